//! Whether nodes have what was bought: controller `nodeclaim.consistency`. It tells, and does
//! nothing else.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use joiner_model::{Name, ResourceName, render_amount};
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, LiveNode, Snapshot};
use joiner_state::quantity::parse_request;

use crate::claim;
use crate::conditions::ConditionSet;
use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;
use crate::observe;

/// How often a claim is looked at.
const EVERY: Duration = Duration::from_secs(600);
/// A node with less than this many percent of what was promised is told of.
const PERCENT_MIN: u64 = 90;

/// What a node has too little of, in words.
pub(crate) fn issues(claim: &LiveClaim, node: &LiveNode) -> Vec<String> {
    let resources = claim.claim.spec.resources.as_ref();
    let requested = resources.and_then(|own| own.requests.as_ref());
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

/// Puts the outcome into a set.
pub(crate) fn put(set: &mut ConditionSet, issues: &[String]) {
    let kind = "ConsistentStateFound";
    if issues.is_empty() {
        set.set_true(kind);
    } else {
        set.set_false(kind, "ConsistencyCheckFailed", "Consistency Check Failed");
    }
}

/// Tells of nodes that have less than was bought.
#[derive(Debug)]
pub(crate) struct Consistency;

impl Consistency {
    async fn look(&self, ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
        let snapshot = ctx.world.snapshot();
        let Some(claim) = snapshot.claim(key) else {
            return Ok(Next::Done);
        };
        let due = claim.meta.deleting.is_none() && claim.is_true("Initialized");
        let node = snapshot.node_of(claim).filter(|_| due);
        let Some(node) = node.filter(|_| super::is_managed(&*ctx.cloud, claim)) else {
            return Ok(Next::Again(EVERY));
        };
        let issues = issues(claim, node);
        let mut set = claim::conditions(claim, ctx.clock.now());
        put(&mut set, &issues);
        for issue in issues {
            // Each is news of its own.
            let (about, same) = (observe::claim(claim), issue.clone());
            observe::warn_of(ctx, about, "FailedConsistencyCheck", issue, &same);
        }
        super::write_conditions(ctx, claim, &set.finished()).await?;
        Ok(Next::Again(EVERY))
    }
}

impl Controller for Consistency {
    fn name(&self) -> &'static str {
        "nodeclaim.consistency"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        // Only the first time: from then on it looks by itself.
        let own = now
            .claim(&change.name)
            .filter(|_| change.kind == Kind::NodeClaim);
        let fresh = own.filter(|own| {
            own.is_true("Initialized") && own.condition("ConsistentStateFound").is_none()
        });
        fresh.map(|own| own.name().clone()).into_iter().collect()
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        super::all_claims(now)
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        self.look(ctx, key).boxed()
    }
}
