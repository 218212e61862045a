//! Whether nodes have what was bought: controller `nodeclaim.consistency`. It reports, and does
//! nothing else.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use joiner_api::conditions::{CONSISTENT_STATE_FOUND, INITIALIZED};
use joiner_cloud::Cloud;
use joiner_engine::conditions::ConditionSet;
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared, events};
use joiner_model::{Name, ResourceName, render_amount};
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, LiveNode, Snapshot};
use joiner_state::quantity::parse_request;

use super::{all_claims, is_managed, lifecycle, write_conditions};

/// How often a claim is checked.
const EVERY: Duration = Duration::from_secs(600);
/// A node with less than this many percent of what was promised is reported.
const PERCENT_MIN: u64 = 90;

/// What a node has too little of, in words.
pub(crate) fn issues(claim: &LiveClaim, node: &LiveNode) -> Vec<String> {
    let resources = claim.claim.spec.resources.as_ref();
    let requested = resources.and_then(|resources| resources.requests.as_ref());
    let mut issues = Vec::new();
    for (name, asked) in requested.into_iter().flatten() {
        let resource = ResourceName::parse(name);
        let asked = parse_request(&resource, asked.as_str()).unwrap_or(0);
        let expected = claim.capacity().get(&resource);
        if asked == 0 || expected == 0 {
            continue;
        }
        let found = node.capacity().get(&resource);
        let percent = u128::from(found) * 100 / u128::from(expected);
        if percent < u128::from(PERCENT_MIN) {
            issues.push(format!(
                "expected {} of resource {name}, but found {} ({percent}% of expected)",
                render_amount(&resource, expected),
                render_amount(&resource, found),
            ));
        }
    }
    issues
}

/// Puts what was found into a set.
pub(crate) fn put(set: &mut ConditionSet, issues: &[String]) {
    let kind = CONSISTENT_STATE_FOUND;
    if issues.is_empty() {
        set.set_true(kind);
    } else {
        set.set_false(kind, "ConsistencyCheckFailed", "Consistency Check Failed");
    }
}

/// Reports nodes that have less than was bought.
pub(super) struct Consistency {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl Consistency {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn check(&self, snapshot: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(claim) = snapshot.claim(key) else {
            return Ok(Next::Done);
        };
        let due = claim.meta.deleting.is_none() && claim.is_true(&INITIALIZED);
        let node = snapshot.node_of(claim).filter(|_| due);
        let Some(node) = node.filter(|_| is_managed(&*self.cloud, claim)) else {
            return Ok(Next::Again(EVERY));
        };
        let issues = issues(claim, node);
        let mut set = lifecycle::conditions(claim, self.shared.clock.now());
        put(&mut set, &issues);
        for issue in issues {
            // Each is news by itself.
            let (about, same) = (events::claim(claim), Name::from(issue.as_str()));
            let events = &self.shared.events;
            events::warn_of(events, about, "FailedConsistencyCheck", issue, &same);
        }
        write_conditions(&self.shared, claim, set.finished()).await?;
        Ok(Next::Again(EVERY))
    }
}

impl Keyed for Consistency {
    fn name(&self) -> &'static str {
        "nodeclaim.consistency"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if change.kind != Kind::NodeClaim {
            return Vec::new();
        }
        // Only the first time: from then on it is checked by the clock.
        let is_new = |claim: &&Arc<LiveClaim>| {
            claim.is_true(&INITIALIZED) && claim.condition(&CONSISTENT_STATE_FOUND).is_none()
        };
        let claim = now.claim(&change.name).filter(is_new);
        claim
            .map(|claim| claim.name().clone())
            .into_iter()
            .collect()
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        all_claims(now)
    }

    fn runs_dry(&self) -> bool {
        false
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.check(now, key).boxed()
    }
}
