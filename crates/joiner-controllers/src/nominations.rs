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
/// How often it is looked whether a proposal must still be held.
const LOOK_EVERY: Duration = Duration::from_millis(200);
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
    /// Those of them whose pods have been told once more, and whose nodes can be opened.
    ready: BTreeSet<Name>,
    /// Pods whose proposal is to be withdrawn.
    passing: Vec<Passing>,
    /// Where pods are to go that will take the place of those that move.
    successors: Vec<(Successor, Timestamp)>,
    /// Nodes that headroom counts on, as of the last plan.
    headroom: BTreeSet<Name>,
}

/// A proposal that is to be withdrawn.
#[derive(Debug)]
struct Passing {
    pod: PlannedPod,
    /// Not before.
    from: Timestamp,
    /// Nor later.
    until: Timestamp,
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
    /// How it is proposed to.
    pub standing: Standing,
}

/// How a pod is proposed to. Pods of a spread cannot all be: the scheduler counts those that are as if
/// they were on their node already, and turns all of them down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Until it has a place.
    Alone,
    /// Not at all: it is one of a spread, and among the largest of those, and takes what room there is.
    Foremost,
    /// Only until the foremost have places: it is one of a spread, and might take their room.
    Yielding,
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

    /// Nobody is spoken for any more.
    pub fn forget_all(&self) {
        *self.lock() = Memory::default();
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
        all.ready.retain(|claim| claims.contains(claim));
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

    /// The pods that wait for this claim's node have been told once more.
    pub fn make_ready(&self, claim: &Name) {
        self.lock().ready.insert(claim.clone());
        self.told.notify_waiters();
    }

    /// True when the pods that wait for this claim's node know of it.
    #[must_use]
    pub fn is_told(&self, claim: &str) -> bool {
        self.lock().told.contains(claim)
    }

    /// Comes to an end when the pods of another claim have been told of their node, or once more.
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

    /// Claims whose pods know of their node and are being told once more.
    #[must_use]
    pub fn unready(&self) -> BTreeSet<Name> {
        let all = self.lock();
        all.told.difference(&all.ready).cloned().collect()
    }

    /// The proposals to these pods are to be withdrawn between these times.
    pub fn withdraw_within(
        &self,
        (from, until): (Timestamp, Timestamp),
        pods: impl Iterator<Item = PlannedPod>,
    ) {
        let new = pods.map(|pod| Passing { pod, from, until });
        self.lock().passing.extend(new);
    }

    /// The foremost of the last plan.
    #[must_use]
    pub fn foremost(&self) -> Vec<PlannedPod> {
        let all = self.lock();
        let planned = all.planned.iter();
        let foremost = planned.filter(|pod| pod.standing == Standing::Foremost);
        foremost.cloned().collect()
    }

    /// Pods whose proposal is to be withdrawn now; each is returned once. They are held as long as
    /// possible while others wait.
    #[must_use]
    pub fn withdrawn(&self, now: Timestamp, others_wait: bool) -> Vec<PlannedPod> {
        let is_due = |own: &mut Passing| match others_wait {
            true => own.until <= now,
            false => own.from <= now,
        };
        let mut all = self.lock();
        let due = all.passing.extract_if(.., is_due);
        due.map(|own| own.pod).collect()
    }

    /// When the next proposal may have to be withdrawn, if it was looked at them then.
    #[must_use]
    pub fn next_withdrawal(&self, looked: Timestamp) -> Option<Timestamp> {
        let next = self.lock().passing.iter().map(|own| own.from).min()?;
        Some(next.max(looked.checked_add(LOOK_EVERY).unwrap_or(Timestamp::MAX)))
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

    fn planned(name: &str, claim: &str, standing: Standing) -> PlannedPod {
        PlannedPod {
            name: name.into(),
            uid: name.into(),
            claim: claim.into(),
            standing,
        }
    }

    #[test]
    fn a_proposal_is_held_while_others_wait() {
        let at = |secs| Timestamp::from_second(secs).unwrap();
        let all = Nominations::default();
        let small = planned("small", "claim", Standing::Yielding);
        all.withdraw_within((at(2), at(8)), [small.clone()].into_iter());
        assert_eq!(all.next_withdrawal(at(0)), Some(at(2)));
        assert!(all.withdrawn(at(1), false).is_empty());
        assert!(all.withdrawn(at(7), true).is_empty());
        let soon = all.next_withdrawal(at(7)).unwrap();
        assert!(soon > at(7) && soon < at(8), "{soon}");
        assert_eq!(all.withdrawn(at(8), true), std::slice::from_ref(&small));
        assert!(all.withdrawn(at(9), false).is_empty(), "once is enough");
        all.withdraw_within((at(2), at(8)), [small.clone()].into_iter());
        assert_eq!(all.withdrawn(at(2), false), [small]);
        assert_eq!(all.next_withdrawal(at(9)), None);
    }

    #[test]
    fn a_claim_stays_told_as_long_as_it_is_planned_for() {
        let all = Nominations::default();
        let one = planned("a", "one", Standing::Alone);
        let two = planned("b", "two", Standing::Foremost);
        all.plan(vec![one.clone(), two.clone()]);
        all.tell(&"one".into());
        assert!(all.is_told("one") && !all.is_told("two"));
        assert_eq!(all.foremost(), std::slice::from_ref(&two));
        all.plan(vec![one, two.clone()]);
        assert!(all.is_told("one"), "it is not said again");
        assert_eq!(all.untold().len(), 1);
        assert_eq!(all.unready().len(), 1);
        all.make_ready(&"one".into());
        assert!(all.unready().is_empty(), "the other one is not told yet");
        all.plan(vec![two]);
        assert!(!all.is_told("one") && all.unready().is_empty());
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
