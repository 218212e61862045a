//! The cloud as controllers see it: its calls are counted and timed, under upstream's names, and its
//! reservations can be left alone.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use joiner_api::types::NodeClaim;
use joiner_cloud::{
    CatalogError, ClassKind, Cloud, CloudError, Instance, Interruption, LaunchError, NodeClass,
    Order, ProviderId, Registration, RepairPolicy, Termination,
};
use joiner_model::{InstanceType, Name};
use joiner_runtime::metric_names::{CLOUDPROVIDER_DURATION, CLOUDPROVIDER_ERRORS};
use joiner_runtime::{Clock, Metrics};

use crate::reservations::{unreserved, without_reservations};

/// A cloud whose calls are counted and timed.
pub struct MeteredCloud {
    inner: Arc<dyn Cloud>,
    metrics: Arc<Metrics>,
    clock: Clock,
    /// Its reservations are used.
    reserving: bool,
}

/// A method: upstream's name for it, and who calls it.
struct Method(&'static str, &'static str);

const LAUNCH: Method = Method("Create", "nodeclaim.lifecycle");
const TERMINATE: Method = Method("Delete", "nodeclaim.lifecycle");
const GET: Method = Method("Get", "node.termination");
const LIST: Method = Method("List", "nodeclaim.garbagecollection");
const TYPES: Method = Method("GetInstanceTypes", "provisioner");
const DRIFT: Method = Method("IsDrifted", "nodeclaim.disruption");

impl MeteredCloud {
    /// The same cloud, measured.
    #[must_use]
    pub fn new(inner: Arc<dyn Cloud>, metrics: Arc<Metrics>, clock: Clock) -> Self {
        Self {
            inner,
            metrics,
            clock,
            reserving: true,
        }
    }

    /// Whether its reservations are used.
    #[must_use]
    pub fn reserving(self, reserving: bool) -> Self {
        Self { reserving, ..self }
    }

    async fn measured<T, E>(
        &self,
        method: Method,
        call: impl Future<Output = Result<T, E>> + Send,
        class: impl Fn(&E) -> &'static str,
    ) -> Result<T, E> {
        let started = self.clock.now();
        let answer = call.await;
        let took = self.clock.now().duration_since(started).as_secs_f64();
        let labels = [
            ("controller", method.1),
            ("method", method.0),
            ("provider", self.inner.name()),
        ];
        self.metrics.observe(CLOUDPROVIDER_DURATION, &labels, took);
        if let Err(error) = &answer {
            let [controller, method, provider] = labels;
            let labels = [controller, method, provider, ("error", class(error))];
            self.metrics.count(CLOUDPROVIDER_ERRORS, &labels, 1.0);
        }
        answer
    }
}

fn of_launch(error: &LaunchError) -> &'static str {
    match error {
        LaunchError::InsufficientCapacity(_) => "InsufficientCapacityError",
        LaunchError::ClassNotReady(_) => "NodeClassNotReadyError",
        LaunchError::Refused { .. } | LaunchError::Throttled(_) | LaunchError::Other(_) => "",
    }
}

#[async_trait]
impl Cloud for MeteredCloud {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn classes(&self) -> &'static [ClassKind] {
        self.inner.classes()
    }

    async fn instance_types(
        &self,
        class: &NodeClass,
    ) -> Result<Arc<Vec<InstanceType>>, CatalogError> {
        let types = self
            .measured(TYPES, self.inner.instance_types(class), |_| "")
            .await?;
        Ok(match self.reserving {
            true => types,
            false => without_reservations(types),
        })
    }

    async fn launch(&self, order: &Order) -> Result<Instance, LaunchError> {
        let unreserved = (!self.reserving).then(|| unreserved(order));
        let order = unreserved.as_ref().unwrap_or(order);
        self.measured(LAUNCH, self.inner.launch(order), of_launch)
            .await
    }

    async fn terminate(&self, id: &ProviderId) -> Result<Termination, CloudError> {
        self.measured(TERMINATE, self.inner.terminate(id), |_| "")
            .await
    }

    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, CloudError> {
        self.measured(GET, self.inner.instance(id), |_| "").await
    }

    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        self.measured(LIST, self.inner.instances(), |_| "").await
    }

    async fn drift(
        &self,
        claim: &NodeClaim,
        class: &NodeClass,
    ) -> Result<Option<Name>, CloudError> {
        self.measured(DRIFT, self.inner.drift(claim, class), |_| "")
            .await
    }

    fn has_registration_hooks(&self) -> bool {
        self.inner.has_registration_hooks()
    }

    /// Not measured: a hook need not call the cloud, and its failures are in its answer.
    async fn registration(&self, claim: &NodeClaim) -> Registration {
        self.inner.registration(claim).await
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.inner.repair_policies()
    }

    fn launch_timeout(&self) -> Duration {
        self.inner.launch_timeout()
    }

    fn interruptions(&self) -> BoxStream<'static, Interruption> {
        self.inner.interruptions()
    }
}
