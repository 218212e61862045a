use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use joiner_api::types::NodeClaim;
use joiner_model::{InstanceType, Name};
use tokio::time::{sleep, timeout};

use super::*;
use crate::{
    CatalogError, ClassKind, CloudError, Instance, LaunchError, NodeClass, Order, ProviderId,
    Termination,
};

/// Sells nothing.
struct Closed;

fn closed() -> CloudError {
    CloudError::Other("closed".to_owned())
}

#[async_trait]
impl Cloud for Closed {
    fn name(&self) -> &'static str {
        "closed"
    }

    fn classes(&self) -> &'static [ClassKind] {
        &[]
    }

    async fn instance_types(&self, _: &NodeClass) -> Result<Arc<Vec<InstanceType>>, CatalogError> {
        Err(CatalogError::Other("closed".to_owned()))
    }

    async fn launch(&self, _: &Order) -> Result<Instance, LaunchError> {
        Err(LaunchError::Other("closed".to_owned()))
    }

    async fn terminate(&self, _: &ProviderId) -> Result<Termination, CloudError> {
        Err(closed())
    }

    async fn instance(&self, _: &ProviderId) -> Result<Option<Instance>, CloudError> {
        Err(closed())
    }

    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        Err(closed())
    }

    async fn drift(&self, _: &NodeClaim, _: &NodeClass) -> Result<Option<Name>, CloudError> {
        Err(closed())
    }
}

/// Counts seconds for as long as it runs.
fn counter(seconds: &Arc<AtomicU32>) -> impl Fn() -> BoxFuture<'static, ()> + Send + Sync + use<> {
    let seconds = Arc::clone(seconds);
    move || {
        let seconds = Arc::clone(&seconds);
        Box::pin(async move {
            loop {
                sleep(Duration::from_secs(1)).await;
                seconds.fetch_add(1, Ordering::SeqCst);
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_run_for_as_long_as_they_are_polled_and_can_start_anew() {
    let (prices, machines): (Arc<AtomicU32>, Arc<AtomicU32>) = Default::default();
    let provider = Provider::new(Arc::new(Closed))
        .reading("prices", counter(&prices))
        .acting("machines", counter(&machines));
    let seen = || [&prices, &machines].map(|seconds| seconds.load(Ordering::SeqCst));
    let reads = provider.reads();
    tokio::pin!(reads);
    for expected in [[10, 10], [20, 20]] {
        let acts = timeout(Duration::from_millis(10_500), provider.acts());
        tokio::select! {
            biased;
            ended = &mut reads => panic!("{ended} ended"),
            ended = acts => assert!(ended.is_err()),
        }
        assert_eq!(seen()[1], expected[1]);
        assert!(seen()[0] >= expected[0], "reading goes on");
    }
    let only_reads = timeout(Duration::from_millis(10_500), reads).await;
    assert!(only_reads.is_err());
    assert_eq!(seen()[1], 20, "nothing acts any more");
    assert!(seen()[0] >= 30);
}

#[tokio::test(start_paused = true)]
async fn the_first_task_that_ends_is_named() {
    let provider = Provider::new(Arc::new(Closed))
        .acting("machines", counter(&Arc::default()))
        .acting("queue", || sleep(Duration::from_secs(3)));
    let ended = timeout(Duration::from_secs(60), provider.acts()).await;
    assert_eq!(ended, Ok("queue"));
    assert_eq!(
        format!("{provider:?}"),
        r#"Provider { cloud: "closed", reading: [], acting: ["machines", "queue"] }"#
    );
    // Without tasks there is none that could end.
    let nothing = timeout(Duration::from_secs(60), provider.reads()).await;
    assert!(nothing.is_err());
}
