//! Which pods have to leave a node, and which of them now.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use joiner_model::{Name, Precedence};
use joiner_state::live::LivePod;

/// A pod that should have been gone for this long is stuck: nothing waits for it.
const STUCK_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// A pod that has to leave its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evictee {
    /// `namespace/name`.
    pub pod: Name,
    /// Its uid: a pod of the same name that comes later is another one.
    pub uid: Name,
    /// When its node goes, drained or not.
    pub deadline: Option<Timestamp>,
    /// It cannot have all of its grace before the deadline any more.
    pub is_due: bool,
    /// Of those whose turn it is the greatest go first: their successors come first, and the others
    /// fill what is left.
    pub precedence: Precedence,
}

/// What is left to be done on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    /// Pods that have to leave now.
    pub now: Vec<Evictee>,
    /// All pods that the node waits for.
    pub n_waiting: usize,
}

impl Drain {
    /// True when the node waits for nobody.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.n_waiting == 0
    }
}

/// Which pods have to leave a node that goes at `deadline`, if it says when.
///
/// Pods leave in groups, one after the other: ordinary ones, those of DaemonSets, critical ones,
/// critical ones of DaemonSets. A pod that is due does not wait for its group.
#[must_use]
pub fn drain<'a>(
    pods: impl IntoIterator<Item = &'a LivePod>,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Drain {
    let waiting: Vec<&LivePod> = pods
        .into_iter()
        .filter(|pod| is_waited_for(pod, now))
        .collect();
    let first = waiting.iter().map(|pod| group(pod)).min();
    let leaves = |pod: &&&LivePod| {
        let turn = Some(group(pod)) == first && pod.deleting.is_none();
        turn || is_due(pod, deadline, now)
    };
    let leaving = waiting.iter().filter(leaves).map(|pod| Evictee {
        pod: pod.name.clone(),
        uid: pod.uid.clone(),
        deadline,
        is_due: is_due(pod, deadline, now),
        precedence: pod.precedence(),
    });
    Drain {
        now: leaving.collect(),
        n_waiting: waiting.len(),
    }
}

/// Earlier groups leave first.
fn group(pod: &LivePod) -> (bool, bool) {
    (pod.critical, pod.is_daemon())
}

/// The node does not go before this pod has.
#[must_use]
pub fn is_waited_for(pod: &LivePod, now: Timestamp) -> bool {
    !pod.is_terminal() && is_drainable(pod, now)
}

/// It leaves when its node does, or has: it neither means to stay, nor is it stuck.
#[must_use]
pub(super) fn is_drainable(pod: &LivePod, now: Timestamp) -> bool {
    let stuck = pod
        .deleting
        .is_some_and(|gone| now.duration_since(gone) > STUCK_AFTER);
    !pod.tolerates_disrupted && !pod.mirror && !stuck
}

/// It would not be gone by the deadline with all of its grace, or has been given more time than
/// there is.
#[must_use]
pub(super) fn is_due(pod: &LivePod, deadline: Option<Timestamp>, now: Timestamp) -> bool {
    let Some(deadline) = deadline else {
        return false;
    };
    now > due_at(pod, deadline) && pod.deleting.is_none_or(|gone| gone > deadline)
}

/// The last moment at which it still has all of its grace before the deadline.
#[must_use]
pub(super) fn due_at(pod: &LivePod, deadline: Timestamp) -> Timestamp {
    let grace = Duration::from_secs(u64::from(pod.grace_secs));
    deadline.checked_sub(grace).unwrap_or(Timestamp::MIN)
}
