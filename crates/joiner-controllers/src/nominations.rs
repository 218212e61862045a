//! Nodes that pods were told to expect a place on: nothing disrupts them for a while.
//!
//! It is memory on purpose: after a restart the next plan nominates anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use joiner_model::Name;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The least time that a nomination lasts.
const LASTS_MIN: Duration = Duration::from_secs(10);

/// How long a pod that takes the place of another is expected: drains take their time.
const EXPECTED_FOR: Duration = Duration::from_secs(600);
/// Most pods that are expected.
const EXPECTED_MAX: usize = 20_000;

/// Nodes and claims that are spoken for, and pods that a place is planned for. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Nominations {
    all: Arc<Mutex<Memory>>,
    /// Rings when the pods of another claim know of their node.
    told: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Memory {
    /// Nodes and claims, and until when they are spoken for.
    until: BTreeMap<Name, Timestamp>,
    /// The claim that each pod without a node is planned for, as of the last plan.
    planned: Vec<PlannedPod>,
    /// Claims of that plan whose pods know of their node.
    told: BTreeSet<Name>,
    /// Pods whose proposal is to be withdrawn, and when.
    passing: Vec<(Timestamp, PlannedPod)>,
    /// Where pods are to go that will take the place of those that move.
    successors: Vec<(Successor, Timestamp)>,
    /// Nodes that headroom counts on, as of the last plan.
    headroom: BTreeSet<Name>,
}

/// A pod that waits for a node to come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPod {
    /// `namespace/name`.
    pub name: Name,
    /// Uid.
    pub uid: Name,
    /// The claim of the node.
    pub claim: Name,
    /// It is one of a spread: where it may go depends on which of them comes first.
    pub is_spread: bool,
}

/// A pod that will be made when another one is evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// Uid of the owner that will make it.
    pub owner: Name,
    /// The node that the plan has it on, or the claim of one.
    pub to: Name,
}

impl Nominations {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a nomination lasts when batches take at most `batch_max`.
    #[must_use]
    pub fn lasting(batch_max: Duration) -> Duration {
        (batch_max * 2).max(LASTS_MIN)
    }

    /// A node, or the claim of one to come, is spoken for.
    pub fn nominate(&self, name: &Name, now: Timestamp, lasting: Duration) {
        let until = now.checked_add(lasting).unwrap_or(Timestamp::MAX);
        let mut all = self.lock();
        all.until.retain(|_, until| *until > now);
        all.until.insert(name.clone(), until);
    }

    /// True while it is spoken for.
    #[must_use]
    pub fn is_nominated(&self, name: &str, now: Timestamp) -> bool {
        self.lock()
            .until
            .get(name)
            .is_some_and(|until| *until > now)
    }

    /// Where the last plan has all pods whose node is still to come.
    pub fn plan(&self, pods: Vec<PlannedPod>) {
        let mut all = self.lock();
        let claims: BTreeSet<&Name> = pods.iter().map(|pod| &pod.claim).collect();
        all.told.retain(|claim| claims.contains(claim));
        all.planned = pods;
    }

    /// The pods that wait for this claim's node.
    #[must_use]
    pub fn planned_for(&self, claim: &str) -> Vec<PlannedPod> {
        let all = self.lock();
        let planned = all.planned.iter().filter(|pod| &*pod.claim == claim);
        planned.cloned().collect()
    }

    /// The pods that wait for this claim's node know of it.
    pub fn tell(&self, claim: &Name) {
        self.lock().told.insert(claim.clone());
        self.told.notify_waiters();
    }

    /// True when the pods that wait for this claim's node know of it.
    #[must_use]
    pub fn is_told(&self, claim: &str) -> bool {
        self.lock().told.contains(claim)
    }

    /// Comes to an end when the pods of another claim know of their node.
    pub fn telling(&self) -> Notified<'_> {
        self.told.notified()
    }

    /// Claims of the last plan whose pods do not know of their node yet.
    #[must_use]
    pub fn untold(&self) -> BTreeSet<Name> {
        let all = self.lock();
        let claims = all.planned.iter().map(|pod| &pod.claim);
        let untold = claims.filter(|claim| !all.told.contains(*claim));
        untold.cloned().collect()
    }

    /// The proposals to these pods are to be withdrawn then.
    pub fn withdraw_at(&self, at: Timestamp, pods: impl Iterator<Item = PlannedPod>) {
        self.lock().passing.extend(pods.map(|pod| (at, pod)));
    }

    /// Pods whose proposal is to be withdrawn by now; each is returned once.
    #[must_use]
    pub fn withdrawn(&self, now: Timestamp) -> Vec<PlannedPod> {
        let mut all = self.lock();
        let due = all.passing.extract_if(.., |(at, _)| *at <= now);
        due.map(|(_, pod)| pod).collect()
    }

    /// When the next proposal is to be withdrawn.
    #[must_use]
    pub fn next_withdrawal(&self) -> Option<Timestamp> {
        self.lock().passing.iter().map(|(at, _)| *at).min()
    }

    /// Pods will be evicted; these are to come in their place.
    pub fn expect(&self, successors: Vec<Successor>, now: Timestamp) {
        let until = now.checked_add(EXPECTED_FOR).unwrap_or(Timestamp::MAX);
        let all = &mut self.lock().successors;
        all.retain(|(_, until)| *until > now);
        all.extend(successors.into_iter().map(|own| (own, until)));
        let excess = all.len().saturating_sub(EXPECTED_MAX);
        all.drain(..excess);
    }

    /// Where a new pod of this owner is to go, if one is expected.
    #[must_use]
    pub fn welcome(&self, owner: &str, now: Timestamp) -> Option<Name> {
        let all = &mut self.lock().successors;
        let is_own = |(own, until): &(Successor, Timestamp)| &*own.owner == owner && *until > now;
        let own = all.iter().position(is_own)?;
        Some(all.remove(own).0.to)
    }

    /// True when a pod is expected in the place of another.
    #[must_use]
    pub fn expects_any(&self) -> bool {
        !self.lock().successors.is_empty()
    }

    /// Nodes that headroom counts on now.
    pub fn set_headroom(&self, nodes: BTreeSet<Name>) {
        self.lock().headroom = nodes;
    }

    /// True when headroom counts on the node.
    #[must_use]
    pub fn has_headroom(&self, node: &str) -> bool {
        self.lock().headroom.contains(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nomination_ends_by_itself() {
        let at = |secs| Timestamp::from_second(secs).unwrap();
        let all = Nominations::default();
        let lasting = Nominations::lasting(Duration::from_secs(10));
        assert_eq!(lasting, Duration::from_secs(20));
        assert_eq!(Nominations::lasting(Duration::from_secs(1)), LASTS_MIN);
        all.nominate(&"n".into(), at(100), lasting);
        assert!(all.is_nominated("n", at(119)));
        assert!(!all.is_nominated("n", at(120)));
        assert!(!all.is_nominated("m", at(100)));
    }

    #[test]
    fn each_successor_is_welcomed_once() {
        let at = |secs| Timestamp::from_second(secs).unwrap();
        let all = Nominations::default();
        let to = |owner: &str, to: &str| Successor {
            owner: owner.into(),
            to: to.into(),
        };
        all.expect(vec![to("rs", "a"), to("rs", "b"), to("other", "c")], at(0));
        assert_eq!(all.welcome("rs", at(1)).as_deref(), Some("a"));
        assert_eq!(all.welcome("rs", at(1)).as_deref(), Some("b"));
        assert_eq!(all.welcome("rs", at(1)), None);
        assert_eq!(all.welcome("other", at(600)), None, "too late");
        all.expect(Vec::new(), at(600));
        assert!(!all.expects_any());
    }
}
