//! What is told of the objects we look after: events in our words, under upstream's reasons, and
//! metrics about their conditions.
//!
//! Whoever writes conditions calls [`transitions`], which tells events. The metrics come from
//! [`ConditionObserver`], which sees every object whoever changed it, and tells of Nodes, too.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use joiner_api::labels::{INITIALIZED, NODE_POOL, node_class_label};
use joiner_api::types::Condition;
use joiner_model::Name;
use joiner_runtime::metric_names::{
    ConditionFamilies, NODE_CONDITIONS, NODECLAIM_CONDITIONS, NODEPOOL_CONDITIONS,
};
use joiner_runtime::{About, ConditionMetrics, Event, Seen};
use joiner_state::live::{Change, LiveClaim, LiveNode, LivePod, LivePool, Meta, Snapshot};

use crate::conditions::Transition;
use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;

/// Events about a claim.
#[must_use]
pub fn claim(claim: &LiveClaim) -> About {
    about("NodeClaim", "karpenter.sh/v1", &claim.meta)
}

/// Events about a pool.
#[must_use]
pub fn pool(pool: &LivePool) -> About {
    about("NodePool", "karpenter.sh/v1", &pool.meta)
}

/// Events about a node.
#[must_use]
pub fn node(node: &LiveNode) -> About {
    about("Node", "v1", &node.meta)
}

/// Events about a pod.
#[must_use]
pub fn pod(pod: &LivePod) -> About {
    About {
        kind: "Pod",
        api_version: "v1".into(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

fn about(kind: &'static str, api_version: &'static str, meta: &Meta) -> About {
    About {
        kind,
        api_version: api_version.into(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
    }
}

/// Tells something that needs somebody's attention, once in two minutes for each object.
pub fn warn(ctx: &Ctx, about: About, reason: &'static str, message: String) {
    ctx.events.tell(Event::warning(about, reason, message));
}

/// Tells something, once in two minutes for each object.
pub fn note(ctx: &Ctx, about: About, reason: &'static str, message: String) {
    ctx.events.tell(Event::normal(about, reason, message));
}

/// Tells something that needs somebody's attention, once in two minutes for each other object that
/// it is about.
pub fn warn_of(ctx: &Ctx, about: About, reason: &'static str, message: String, other: &str) {
    let mut event = Event::warning(about, reason, message);
    other.clone_into(&mut event.same);
    ctx.events.tell(event);
}

/// Tells which conditions of an object changed their status.
pub fn transitions(ctx: &Ctx, about: &About, transitions: &[Transition]) {
    if ctx.settings.quiet_state {
        return;
    }
    for own in transitions {
        let change = Told {
            kind: &own.kind,
            from: own.from.as_str(),
            to: own.to.as_str(),
            reason: &own.reason,
            message: &own.message,
        };
        tell_transition(ctx, about, &change);
    }
}

/// A change of a condition, as it is told.
struct Told<'a> {
    kind: &'a str,
    from: &'a str,
    to: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl Told<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "Status condition transitioned, Type: {}, Status: {} -> {}, Reason: {}",
            self.kind, self.from, self.to, self.reason
        );
        if !self.message.is_empty() {
            text = format!("{text}, Message: {}", self.message);
        }
        text
    }
}

/// Conditions whose changes are told under their own name; the others have one in common.
const TOLD: &[&str] = &[
    "Launched",
    "Registered",
    "Initialized",
    "Ready",
    "Consolidatable",
    "Drifted",
    "Drained",
    "VolumesDetached",
    "InstanceTerminating",
    "ConsistentStateFound",
    "DisruptionReason",
    "ValidationSucceeded",
    "NodeClassReady",
    "NodeRegistrationHealthy",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
];

fn event_reason(kind: &str) -> &'static str {
    let known = TOLD.iter().find(|own| **own == kind);
    known.copied().unwrap_or("StatusCondition")
}

fn tell_transition(ctx: &Ctx, about: &About, change: &Told<'_>) {
    let message = change.text();
    let mut event = Event::normal(about.clone(), event_reason(change.kind), message);
    // A change there and back is news both times.
    event.same.clone_from(&event.message);
    ctx.events.tell(event);
}

/// Tells that a machine could not be had.
pub(crate) fn insufficient_capacity(ctx: &Ctx, own: &LiveClaim, why: &str) {
    let message = format!("NodeClaim {} event: {why}", own.name());
    warn(ctx, claim(own), "InsufficientCapacityError", message);
}

/// Tells that a node joined open to all pods.
pub(crate) fn taint_missing(ctx: &Ctx, own: &LiveClaim, node: &str) {
    let message = format!(
        "node {node} joined without the taint karpenter.sh/unregistered; \
         have its image or user data register it with the taint"
    );
    warn(ctx, claim(own), "UnregisteredTaintMissing", message);
}

/// Tells by when all pods of a node will be gone.
pub(crate) fn grace_period_expiring(ctx: &Ctx, about: About, at: &str) {
    let message = format!("All pods will be deleted by {at}");
    warn(ctx, about, "TerminationGracePeriodExpiring", message);
}

/// Tells that a finalizer of ours was removed.
pub(crate) fn finalized(ctx: &Ctx, about: About, finalizer: &str) {
    if !ctx.settings.quiet_state {
        note(ctx, about, "Finalized", format!("Finalized {finalizer}"));
    }
}

/// The controllers of this module.
#[must_use]
pub fn controllers(ctx: &Ctx) -> Vec<Arc<dyn Controller>> {
    let metrics = ConditionMetrics::new(Arc::clone(&ctx.metrics), &ctx.clock);
    vec![Arc::new(ConditionObserver::new(metrics))]
}

/// Shows claims, pools and nodes to the metrics whenever they change. Keys are `Kind/name`.
#[derive(Debug)]
pub struct ConditionObserver {
    metrics: ConditionMetrics,
}

impl ConditionObserver {
    /// Shows objects to `metrics`.
    #[must_use]
    pub fn new(metrics: ConditionMetrics) -> Self {
        Self { metrics }
    }

    fn look(&self, ctx: &Ctx, key: &str) {
        if ctx.settings.quiet_state {
            return;
        }
        let Some((kind, name)) = key.split_once('/') else {
            return;
        };
        let snapshot = ctx.world.snapshot();
        match kind {
            "NodeClaim" => {
                let seen = snapshot.claim(name).map(|own| {
                    let class = &own.claim.spec.node_class_ref;
                    let class = node_class_label(&class.group, &class.kind);
                    (
                        &own.meta,
                        own.conditions().to_vec(),
                        vec![class, NODE_POOL.to_owned()],
                    )
                });
                self.show(ctx, &NODECLAIM_CONDITIONS, name, seen);
            }
            "NodePool" => {
                let seen = snapshot.pool(name).map(|own| {
                    let status = own.pool.status.as_ref();
                    let conditions = status.and_then(|own| own.conditions.clone());
                    (&own.meta, conditions.unwrap_or_default(), Vec::new())
                });
                self.show(ctx, &NODEPOOL_CONDITIONS, name, seen);
            }
            "Node" => self.show_node(ctx, name, snapshot.node(name).map(AsRef::as_ref)),
            _ => {}
        }
    }

    fn show(
        &self,
        ctx: &Ctx,
        of: &'static ConditionFamilies,
        name: &str,
        seen: Option<(&Meta, Vec<Condition>, Vec<String>)>,
    ) {
        let Some((meta, conditions, keys)) = seen else {
            return self.metrics.gone(of, name, ctx.clock.now());
        };
        let conditions = conditions.into_iter().map(|own| joiner_runtime::Condition {
            since: own.last_transition_time.parse().unwrap_or(meta.created),
            kind: own.type_,
            status: own.status.as_str().to_owned(),
            reason: own.reason.unwrap_or_default(),
        });
        let labels = labels(meta, &keys);
        // What changed is told by whoever changed it.
        self.metrics.seen(Seen {
            of,
            name,
            labels: &labels,
            conditions: conditions.collect(),
            deleting: meta.deleting,
        });
    }

    /// Nodes of ours: their conditions are the kubelet's, so that nobody else here tells of them.
    fn show_node(&self, ctx: &Ctx, name: &str, seen: Option<&LiveNode>) {
        let classes = ctx.cloud.classes().iter();
        let mut keys: Vec<String> = classes
            .map(|class| node_class_label(class.group, class.kind))
            .collect();
        let ours = |own: &&LiveNode| keys.iter().any(|key| own.meta.label(key).is_some());
        let Some(own) = seen.filter(ours) else {
            return self.metrics.gone(&NODE_CONDITIONS, name, ctx.clock.now());
        };
        keys.extend([NODE_POOL.to_owned(), INITIALIZED.to_owned()]);
        let conditions = own.conditions.iter().map(|own| joiner_runtime::Condition {
            kind: own.kind.to_string(),
            status: own.status.to_string(),
            reason: String::new(),
            since: own.since,
        });
        let labels = labels(&own.meta, &keys);
        let changes = self.metrics.seen(Seen {
            of: &NODE_CONDITIONS,
            name,
            labels: &labels,
            conditions: conditions.collect(),
            deleting: own.meta.deleting,
        });
        // A condition that is new was not another one before.
        for change in changes.iter().filter(|change| !change.from.is_empty()) {
            let told = Told {
                kind: &change.kind,
                from: &change.from,
                to: &change.to,
                reason: &change.reason,
                message: "",
            };
            tell_transition(ctx, &node(own), &told);
        }
    }
}

fn labels<'a>(meta: &'a Meta, keys: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let pairs = keys.iter();
    let pairs = pairs.map(|key| (key.as_str(), meta.label(key).unwrap_or_default()));
    pairs.collect()
}

impl Controller for ConditionObserver {
    fn name(&self) -> &'static str {
        "operatorpkg.status"
    }

    fn concerned(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
        // Nodes say often that they are alive; that alone is nothing new, but cheap to look at.
        let (_, _, _, kind) = change.kind.api();
        if ["NodeClaim", "NodePool", "Node"].contains(&kind) {
            vec![format!("{kind}/{}", change.name).into()]
        } else {
            Vec::new()
        }
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let key = |kind: &str, name: &Name| Name::from(format!("{kind}/{name}"));
        let claims = now.claims().map(|own| key("NodeClaim", own.name()));
        let pools = now.pools().map(|own| key("NodePool", own.name()));
        let nodes = now.nodes().map(|own| key("Node", own.name()));
        claims.chain(pools).chain(nodes).collect()
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        self.look(ctx, key);
        futures::future::ready(Ok(Next::Done)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_with_its_message_if_there_is_one() {
        let mut told = Told {
            kind: "Launched",
            from: "Unknown",
            to: "True",
            reason: "Launched",
            message: "",
        };
        let plain = "Status condition transitioned, Type: Launched, Status: Unknown -> True, \
                     Reason: Launched";
        assert_eq!(told.text(), plain);
        told.message = "at last";
        assert_eq!(told.text(), format!("{plain}, Message: at last"));
    }

    #[test]
    fn conditions_are_told_under_their_name() {
        assert_eq!(event_reason("Ready"), "Ready");
        assert_eq!(event_reason("KernelDeadlock"), "StatusCondition");
    }
}
