//! Nodes that are unhealthy for too long are replaced: controller `node.health`.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::labels::{CAPACITY_TYPE, TERMINATION_TIMESTAMP};
use joiner_cloud::{Cloud, RepairPolicy};
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared, events, write};
use joiner_model::Name;
use joiner_runtime::Event;
use joiner_runtime::metric_names::NODECLAIMS_UNHEALTHY_DISRUPTED;
use joiner_state::live::{Change, Kind, LiveClaim, LiveNode, Snapshot, rfc3339};
use serde_json::{Value, json};

use crate::nodeclaim::{is_managed, lifecycle};

/// More than this many percent of the nodes unhealthy, and it is not the nodes.
const PERCENT_MAX: usize = 20;
/// When to check again after that.
const BLOCKED_FOR: Duration = Duration::from_secs(300);
/// That is reported this often at most.
const REPORTED_EVERY: Duration = Duration::from_secs(900);

/// What is to become of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Health<'p> {
    /// Nothing is wrong with it.
    Healthy,
    /// Something is, but not for long enough yet: it has this much time left.
    Tolerated(Duration),
    /// It would have to go, but too many others are unhealthy, too.
    Blocked,
    /// It goes, because of this.
    Replace(&'p RepairPolicy),
}

/// What is to become of a node.
pub(crate) fn health<'p>(
    snapshot: &Snapshot,
    node: &LiveNode,
    claim: &LiveClaim,
    policies: &'p [RepairPolicy],
    now: Timestamp,
) -> Health<'p> {
    let Some((policy, until)) = sickness(node, policies) else {
        return Health::Healthy;
    };
    if now < until {
        let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
        return Health::Tolerated(left);
    }
    if blocked(snapshot, claim, policies) {
        return Health::Blocked;
    }
    Health::Replace(policy)
}

/// The condition of a node that will be tolerated no longer first, and until when.
fn sickness<'p>(
    node: &LiveNode,
    policies: &'p [RepairPolicy],
) -> Option<(&'p RepairPolicy, Timestamp)> {
    let matching = policies.iter().filter_map(|policy| {
        let condition = node.condition(policy.condition)?;
        let until = condition.since.checked_add(policy.toleration).ok()?;
        (&*condition.status == policy.status).then_some((policy, until))
    });
    matching.min_by_key(|(_, until)| *until)
}

/// True when so many nodes are unhealthy that replacing them would not help.
fn is_blocked<'n>(nodes: impl Iterator<Item = &'n LiveNode>, policies: &[RepairPolicy]) -> bool {
    let (mut n, mut sick) = (0usize, 0usize);
    for node in nodes {
        n += 1;
        sick += usize::from(sickness(node, policies).is_some());
    }
    sick > (n * PERCENT_MAX).div_ceil(100)
}

/// The patch that lets the claim's machine go at once, whatever its grace period: none when its
/// time has come already.
pub(crate) fn deadline(claim: &LiveClaim, now: Timestamp) -> Option<Value> {
    let set = claim.meta.annotation(TERMINATION_TIMESTAMP);
    let set = set.and_then(|text| text.parse::<Timestamp>().ok());
    if set.is_some_and(|at| at <= now) {
        return None;
    }
    Some(json!({"metadata": {"annotations": {TERMINATION_TIMESTAMP: rfc3339(now)}}}))
}

/// Replaces unhealthy nodes.
pub(super) struct NodeHealth {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl NodeHealth {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn check(&self, snapshot: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(node) = snapshot.node(key) else {
            return Ok(Next::Done);
        };
        let claim = snapshot.claim_of(node);
        let managed = claim.filter(|claim| is_managed(&*self.cloud, claim));
        let Some(claim) = managed.filter(|claim| claim.meta.deleting.is_none()) else {
            return Ok(Next::Done);
        };
        let policies = self.cloud.repair_policies();
        let now = self.shared.clock.now();
        let health = health(snapshot, node, claim, &policies, now);
        if !matches!(health, Health::Replace(_)) {
            self.spare(claim).await?;
        }
        match health {
            Health::Healthy => Ok(Next::Done),
            Health::Tolerated(wait) => Ok(Next::Again(wait)),
            Health::Blocked => {
                self.report_blocked(node, claim);
                Ok(Next::Again(BLOCKED_FOR))
            }
            Health::Replace(policy) => {
                self.replace(claim, policy, now).await?;
                Ok(Next::Done)
            }
        }
    }

    async fn replace(
        &self,
        claim: &LiveClaim,
        policy: &RepairPolicy,
        now: Timestamp,
    ) -> Result<(), Failure> {
        if let Some(patch) = deadline(claim, now) {
            write::patch(&self.shared, Kind::NodeClaim, claim.name(), &patch).await?;
        }
        lifecycle::delete(&self.shared, claim, "unhealthy").await?;
        let status = claim.claim.status.as_ref();
        let image = status.and_then(|status| status.image_id.as_deref());
        let labels = [
            ("condition", &*snake_case(policy.condition)),
            ("nodepool", claim.pool().unwrap_or_default()),
            (
                "capacity_type",
                claim.meta.label(CAPACITY_TYPE).unwrap_or_default(),
            ),
            ("image_id", image.unwrap_or_default()),
        ];
        let metrics = &self.shared.metrics;
        metrics.count(NODECLAIMS_UNHEALTHY_DISRUPTED, &labels, 1.0);
        Ok(())
    }

    /// Takes the deadline away from a claim that stays after all: the node has recovered before it could
    /// be deleted. Left there, it would drive all pods away at once whenever the claim goes later.
    async fn spare(&self, claim: &LiveClaim) -> Result<(), Failure> {
        if claim.meta.annotation(TERMINATION_TIMESTAMP).is_some() {
            let patch = json!({"metadata": {"annotations": {TERMINATION_TIMESTAMP: null}}});
            write::patch(&self.shared, Kind::NodeClaim, claim.name(), &patch).await?;
        }
        Ok(())
    }

    fn report_blocked(&self, node: &LiveNode, claim: &LiveClaim) {
        let within = if claim.pool().is_some() {
            "nodepool"
        } else {
            "cluster"
        };
        self.shared.events.tell(Event {
            about: events::node(node),
            warning: true,
            reason: "NodeRepairBlocked".into(),
            message: format!("more than {PERCENT_MAX}% nodes are unhealthy in the {within}"),
            same: node.name().to_string(),
            every: REPORTED_EVERY,
        });
    }
}

/// The same for the nodes of the claim's pool, or for all nodes when it has none.
fn blocked(snapshot: &Snapshot, claim: &LiveClaim, policies: &[RepairPolicy]) -> bool {
    match claim.pool() {
        Some(pool) => {
            let nodes = snapshot.nodes().filter(|node| node.pool() == Some(pool));
            is_blocked(nodes.map(AsRef::as_ref), policies)
        }
        None => is_blocked(snapshot.nodes().map(AsRef::as_ref), policies),
    }
}

/// `DiskPressure` as `disk_pressure`, `PIDPressure` as `pid_pressure`.
pub(crate) fn snake_case(word: &str) -> String {
    let letters: Vec<char> = word.chars().collect();
    let mut out = String::with_capacity(word.len() + 4);
    for (ix, letter) in letters.iter().enumerate() {
        let before = ix.checked_sub(1).map(|ix| letters[ix]);
        let after = letters.get(ix + 1);
        let starts_word = before.is_some_and(|letter| !letter.is_uppercase())
            || (before.is_some() && after.is_some_and(|letter| letter.is_lowercase()));
        if letter.is_uppercase() && starts_word {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

impl Keyed for NodeHealth {
    fn name(&self) -> &'static str {
        "node.health"
    }

    fn keys(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
        let node = (change.kind == Kind::Node).then(|| change.name.clone());
        node.into_iter().collect()
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        now.nodes().map(|node| node.name().clone()).collect()
    }

    fn runs_dry(&self) -> bool {
        false
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.check(now, key).boxed()
    }
}
