//! How notices are kept until the claims of their machine are deleted.

use std::time::Duration;

use joiner_cloud::ProviderId;
use joiner_receipts::DecisionQuery;
use joiner_runtime::{Api, Build, DecisionSettings, Decisions, Events, Metrics, World};
use joiner_sandbox::Sandbox;
use joiner_sim::{Network, Trouble, virtual_sandbox};
use joiner_state::live::Kind;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::nodeclaim::lifecycle::made;

/// A cluster whose only controller handles what is sent to it.
struct Stage {
    shared: Shared,
    network: Network,
    notices: Option<mpsc::UnboundedSender<joiner_cloud::Interruption>>,
    running: JoinHandle<()>,
    _sandbox: Sandbox,
}

impl Stage {
    /// With these claims, the machine of each called like it.
    async fn start(claims: &[&str]) -> Self {
        let (sandbox, clock) = virtual_sandbox(0).unwrap();
        let (client, network) = Network::to(sandbox.client(), 0);
        let metrics = Arc::new(Metrics::new(clock.clone(), &Build::default()));
        let (events, writer) =
            Events::new(sandbox.client(), clock.clone(), Arc::clone(&metrics), false);
        tokio::spawn(writer.run());
        let world = World::start();
        let shared = Shared {
            api: Api::new(client, world.clone(), false),
            world,
            clock,
            events,
            decisions: Decisions::new(&DecisionSettings::default(), Arc::clone(&metrics)),
            metrics,
        };
        for name in claims {
            let named = json!({"metadata": {"name": name, "uid": null,
                "creationTimestamp": null, "ownerReferences": null}});
            let claim = made::launched(&[], &named);
            shared.api.create(Kind::NodeClaim, &claim).await.unwrap();
            let status = json!({"status": {"providerID": name}});
            let written = shared.api.patch_status(Kind::NodeClaim, name, &status);
            written.await.unwrap();
        }
        let (notices, mut heard) = mpsc::unbounded_channel();
        let stream = futures::stream::poll_fn(move |waiting| heard.poll_recv(waiting));
        let controller = Interruption {
            shared: shared.clone(),
            stream: tokio::sync::Mutex::new(stream.fuse().boxed()),
            notices: Notices::default(),
        };
        let running = joiner_engine::run(Controller::keyed(controller), shared.clone());
        Self {
            shared,
            network,
            notices: Some(notices),
            running: tokio::spawn(running),
            _sandbox: sandbox,
        }
    }

    fn notice(&self, id: &str) {
        let notice = joiner_cloud::Interruption {
            id: ProviderId(id.into()),
            kind: InterruptionKind::SpotInterruption,
        };
        self.notices.as_ref().unwrap().send(notice).unwrap();
    }

    fn refuse(&self, fail_percent: u64) {
        self.network.set(Trouble {
            fail_percent,
            ..Trouble::default()
        });
    }

    async fn wait(&self, millis: u64) {
        let clock = &self.shared.clock;
        clock.sleep(Duration::from_millis(millis)).await;
    }

    fn is_deleted(&self, claim: &str) -> bool {
        let now = self.shared.world.snapshot();
        now.claim(claim)
            .is_some_and(|claim| claim.meta.deleting.is_some())
    }

    fn n_tries(&self) -> usize {
        let seen = self.network.seen();
        seen.iter().filter(|seen| seen.method == "DELETE").count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_cannot_be_handled_is_reported_once_and_dropped_after_a_minute() {
    let stage = Stage::start(&["a"]).await;
    stage.refuse(100);
    stage.notice("a");
    stage.wait(50_000).await;
    assert!(stage.n_tries() < 12, "{}", stage.n_tries());
    stage.wait(100_000).await;
    assert_eq!(stage.n_tries(), 12);
    let counted =
        "karpenter_interruption_received_messages_total{message_type=\"spot_interrupted\"} 1\n";
    assert!(stage.shared.metrics.render().contains(counted));
    let decided = stage.shared.decisions.recent(&DecisionQuery::default());
    assert_eq!(decided.len(), 1, "{decided:?}");
    // The next notice about the same machine is another one.
    stage.refuse(0);
    stage.notice("a");
    stage.wait(1_000).await;
    assert!(stage.is_deleted("a"));
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_waits_keeps_no_other_waiting() {
    let stage = Stage::start(&["a", "b"]).await;
    stage.refuse(100);
    stage.notice("a");
    // The pause after the seventh try.
    stage.wait(7_000).await;
    stage.refuse(0);
    stage.notice("b");
    stage.wait(1_000).await;
    assert!(stage.is_deleted("b"));
    assert!(!stage.is_deleted("a"));
    stage.wait(10_000).await;
    assert!(stage.is_deleted("a"));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_notices_is_not_the_end_of_the_controller() {
    let mut stage = Stage::start(&["a"]).await;
    stage.notice("a");
    stage.notice("nothing is known of it");
    stage.notices = None;
    stage.wait(60_000).await;
    assert!(stage.is_deleted("a"));
    assert!(!stage.running.is_finished());
}
