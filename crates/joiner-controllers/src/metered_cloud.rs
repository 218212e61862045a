//! The cloud as controllers see it: its calls are counted and timed, under upstream's names, none of them
//! takes for ever, and its reservations can be left alone.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use joiner_api::types::NodeClaim;
use joiner_cloud::{
    CatalogError, ClassKind, ClassStatus, Cloud, CloudError, Instance, Interruption, LaunchError,
    NodeClass, Order, Pending, ProviderId, Registration, RepairPolicy, Termination,
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

/// The longest that a call may take, but for a launch: whoever asks has others to look after. A launch that
/// is over may have had its effect; the next one for the same claim finds it.
const CALL_MAX: Duration = Duration::from_secs(60);

/// A method: upstream's name for it, and who calls it.
#[derive(PartialEq, Eq)]
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
    ) -> Result<T, E>
    where
        E: CallError,
    {
        let started = self.clock.now();
        let time_max = match method {
            LAUNCH => self.inner.launch_timeout(),
            _ => CALL_MAX,
        };
        let answer = tokio::select! {
            biased;
            answer = call => answer,
            () = self.clock.sleep(time_max) => Err(E::other(late(time_max))),
        };
        let took = self.clock.now().duration_since(started).as_secs_f64();
        let labels = [
            ("controller", method.1),
            ("method", method.0),
            ("provider", self.inner.name()),
        ];
        self.metrics.observe(CLOUDPROVIDER_DURATION, &labels, took);
        if let Err(error) = &answer {
            let [controller, method, provider] = labels;
            let labels = [controller, method, provider, ("error", error.class())];
            self.metrics.count(CLOUDPROVIDER_ERRORS, &labels, 1.0);
        }
        answer
    }
}

fn late(time_max: Duration) -> String {
    format!("no answer within {} s", time_max.as_secs())
}

/// What a call to the cloud fails with.
trait CallError {
    /// A failure of no kind of its own.
    fn other(message: String) -> Self;

    /// Upstream's word for it, if it has one.
    fn class(&self) -> &'static str {
        ""
    }
}

impl CallError for CatalogError {
    fn other(message: String) -> Self {
        Self::Other(message)
    }
}

impl CallError for CloudError {
    fn other(message: String) -> Self {
        Self::Other(message)
    }
}

impl CallError for LaunchError {
    fn other(message: String) -> Self {
        Self::Other(message)
    }

    fn class(&self) -> &'static str {
        match self {
            Self::InsufficientCapacity(_) => "InsufficientCapacityError",
            Self::ClassNotReady(_) => "NodeClassNotReadyError",
            Self::Refused { .. } | Self::Throttled(_) | Self::Other(_) => "",
        }
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
            .measured(TYPES, self.inner.instance_types(class))
            .await?;
        Ok(match self.reserving {
            true => types,
            false => without_reservations(types),
        })
    }

    /// Not measured: upstream has no name for it, its provider's own controller looks.
    async fn class_status(
        &self,
        class: &NodeClass,
        reserving: bool,
    ) -> Result<Option<ClassStatus>, CloudError> {
        tokio::select! {
            biased;
            answer = self.inner.class_status(class, reserving) => answer,
            () = self.clock.sleep(CALL_MAX) => Err(CloudError::other(late(CALL_MAX))),
        }
    }

    async fn launch(&self, order: &Order) -> Result<Instance, LaunchError> {
        let unreserved = (!self.reserving).then(|| unreserved(order));
        let order = unreserved.as_ref().unwrap_or(order);
        self.measured(LAUNCH, self.inner.launch(order)).await
    }

    async fn terminate(&self, id: &ProviderId) -> Result<Termination, CloudError> {
        self.measured(TERMINATE, self.inner.terminate(id)).await
    }

    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, CloudError> {
        self.measured(GET, self.inner.instance(id)).await
    }

    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        self.measured(LIST, self.inner.instances()).await
    }

    async fn drift(
        &self,
        claim: &NodeClaim,
        class: &NodeClass,
    ) -> Result<Option<Name>, CloudError> {
        self.measured(DRIFT, self.inner.drift(claim, class)).await
    }

    fn has_registration_hooks(&self) -> bool {
        self.inner.has_registration_hooks()
    }

    /// Not measured: a hook need not call the cloud, and its failures are in its answer.
    async fn registration(&self, claim: &NodeClaim) -> Registration {
        tokio::select! {
            biased;
            answer = self.inner.registration(claim) => answer,
            () = self.clock.sleep(CALL_MAX) => Registration {
                pending: vec![Pending {
                    hook: self.inner.name().into(),
                    again: None,
                    error: Some(late(CALL_MAX)),
                }],
                ..Registration::default()
            },
        }
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

#[cfg(test)]
mod tests {
    use joiner_runtime::Build;

    use super::*;
    use crate::catalogs::made::Moody;

    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_never_answers_is_not_waited_for() {
        let clock = Clock::system(1);
        let metrics = Arc::new(Metrics::new(clock.clone(), &Build::default()));
        let silent = Arc::new(Moody::new(Arc::default()));
        let cloud = MeteredCloud::new(silent, metrics, clock);
        let answer = cloud.instances().await;
        assert_eq!(answer.unwrap_err().to_string(), "no answer within 60 s");
    }
}
