//! Does what was decided about Deployments that are being surged.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use joiner_api::labels::POD_DELETION_COST;
use joiner_engine::{Controller, Failure, Keyed, Next, Reconcile, Shared, events};
use joiner_model::Name;
use joiner_runtime::{About, ApiFailure, Event};
use joiner_state::live::{Change, Kind, LivePod, LiveScalable, SURGE, Snapshot};
use serde_json::{Value, json};

use super::{CHEAPEST, SURGE_ON_MOVE, Surge, SurgeStep, View, next_step};

/// How often a surge under way is looked at.
const POLL: Duration = Duration::from_secs(1);

/// The controller of Deployments that are being surged, or are to be.
pub(in crate::node::termination) fn controller(shared: &Shared) -> Controller {
    Controller::keyed(Surges {
        shared: shared.clone(),
    })
}

/// Looks after Deployments that are being surged, or are to be. Keys are Deployments.
struct Surges {
    shared: Shared,
}

impl Surges {
    async fn surge(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(view) = View::of(now, key) else {
            return Ok(Next::Done);
        };
        let workload = view.workload;
        match next_step(&view, self.shared.clock.now()) {
            SurgeStep::Nothing => return Ok(Next::Done),
            SurgeStep::Wait => {}
            SurgeStep::Write(surge) => write(self, workload, Some(&surge)).await?,
            SurgeStep::GiveUp(surge) => {
                write(self, workload, Some(&surge)).await?;
                let message = "The new pod is not ready; the old one is evicted all the same";
                let events = &self.shared.events;
                events::warn(events, about(workload), "SurgeTimedOut", message.to_owned());
            }
            SurgeStep::Scale(replicas) => scale(self, workload, replicas).await?,
            SurgeStep::Cheapen(pod) => cheapen(self, &pod).await?,
            SurgeStep::Clear => write(self, workload, None).await?,
        }
        Ok(Next::Again(POLL))
    }
}

/// Events about a Deployment.
fn about(workload: &LiveScalable) -> About {
    events::about("Deployment", "apps/v1", &workload.meta)
}

/// Writes how far it has come, through the status: see `disruption::moves`.
async fn write(
    surges: &Surges,
    workload: &LiveScalable,
    surge: Option<&Surge>,
) -> Result<(), Failure> {
    let text = surge.map(Surge::text);
    let patch = json!({"metadata": {
        "resourceVersion": workload.meta.version.to_string(),
        "annotations": {SURGE: text},
    }});
    let name = &workload.meta.name;
    ignore_gone(
        surges
            .shared
            .api
            .patch_status(Kind::Deployment, name, &patch)
            .await,
    )
}

/// Sets the number of replicas, unless somebody has just changed the Deployment.
async fn scale(surges: &Surges, workload: &LiveScalable, replicas: i64) -> Result<(), Failure> {
    let patch = json!({
        "metadata": {"resourceVersion": workload.meta.version.to_string()},
        "spec": {"replicas": replicas},
    });
    let name = &workload.meta.name;
    ignore_gone(
        surges
            .shared
            .api
            .patch_scale(Kind::Deployment, name, &patch)
            .await,
    )?;
    let message = match replicas {
        1 => "Scaled back to 1: the pod on the node that goes is not needed any more",
        _ => "Scaled to 2: the node of its pod goes, and another pod takes its place first",
    };
    tracing::info!(Deployment = &**name, replicas, "surged deployment");
    let mut event = Event::normal(about(workload), "Surged", message.to_owned());
    event.same = replicas.to_string();
    surges.shared.events.tell(event);
    Ok(())
}

/// Makes a pod the first that its ReplicaSet deletes.
async fn cheapen(surges: &Surges, pod: &Name) -> Result<(), Failure> {
    let patch: Value =
        json!({"metadata": {"annotations": {POD_DELETION_COST: CHEAPEST.to_string()}}});
    ignore_gone(surges.shared.api.patch_status(Kind::Pod, pod, &patch).await)
}

fn ignore_gone<T>(answer: Result<T, ApiFailure>) -> Result<(), Failure> {
    match answer {
        Ok(_) | Err(ApiFailure::NotFound) => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

/// The Deployment of a pod, if it is to do with surging.
fn key(now: &Snapshot, pod: &LivePod) -> Option<Name> {
    let (kind, own) = now.workload_of(pod)?;
    if kind != Kind::Deployment {
        return None;
    }
    let node = || now.node(pod.node.as_ref()?);
    let pool = || now.pool(node()?.pool()?);
    let asked = own.meta.annotation(SURGE).is_some()
        || own.surge_on_move.is_some()
        || pool().is_some_and(|pool| pool.surge_on_move.is_some());
    asked.then(|| own.meta.name.clone())
}

impl Keyed for Surges {
    fn name(&self) -> &'static str {
        "surge"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        let name = &change.name;
        let keys: Option<Vec<Name>> = if change.kind == Kind::Deployment {
            let own = now.scalable(Kind::Deployment, name);
            let has = |key: &str| own.is_some_and(|own| own.meta.annotation(key).is_some());
            (has(SURGE) || has(SURGE_ON_MOVE)).then(|| vec![name.clone()])
        } else if change.kind == Kind::Pod {
            let pod = now.pod(name);
            pod.and_then(|pod| key(now, pod)).map(|key| vec![key])
        } else if change.kind == Kind::Node {
            let node = now.node(name);
            let node = node.filter(|node| node.meta.deleting.is_some());
            let pods = node.map(|node| now.pods_on(node.name()));
            pods.map(|pods| pods.filter_map(|pod| key(now, pod)).collect())
        } else {
            None
        };
        keys.unwrap_or_default()
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let begun = now.workloads(Kind::Deployment);
        let begun = begun.filter(|own| own.meta.annotation(SURGE).is_some());
        let mut all: Vec<Name> = begun.map(|own| own.meta.name.clone()).collect();
        let going = now.nodes().filter(|node| node.meta.deleting.is_some());
        let pods = going.flat_map(|node| now.pods_on(node.name()));
        all.extend(pods.filter_map(|pod| key(now, pod)));
        all.sort();
        all.dedup();
        all
    }

    fn runs_dry(&self) -> bool {
        false
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.surge(now, key).boxed()
    }
}
