//! Where the pods are to go that come in the place of those that a command moves.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use joiner_api::types::NodeClaim;
use joiner_disruption::{Command, Fleet};
use joiner_model::{Name, PodIx, Problem};
use joiner_state::live::{LivePod, Snapshot};

use super::state::{Write, after};
use super::turns::{Leaver, Target, Turn};

/// How long a pod that takes the place of another is expected: drains take their time.
const EXPECTED_FOR: Duration = Duration::from_secs(600);
/// Most pods that are expected.
const EXPECTED_MAX: usize = 20_000;

/// A pod that will be made when another one is evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// Uid of the owner that will make it.
    pub owner: Name,
    /// The node that the plan has it on, or the claim of one.
    pub to: Name,
}

/// Pods that are expected in the place of others, each until a time.
#[derive(Debug, Default)]
pub(super) struct Successors {
    expected: Vec<(Successor, Timestamp)>,
}

impl Successors {
    /// Pods will be evicted; these are to come in their place.
    pub(super) fn expect(&mut self, successors: Vec<Successor>, now: Timestamp) {
        let until = after(now, EXPECTED_FOR);
        self.expected.retain(|(_, until)| *until > now);
        let new = successors.into_iter().map(|successor| (successor, until));
        self.expected.extend(new);
        let excess = self.expected.len().saturating_sub(EXPECTED_MAX);
        self.expected.drain(..excess);
    }

    /// True when a pod is expected in the place of another.
    pub(super) fn expects_any(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Where a new pod of this owner is to go, if one is expected. Each is expected once.
    pub(super) fn welcome(&mut self, owner: &str, now: Timestamp) -> Option<Name> {
        let mut expected = self.expected.iter();
        let ix =
            expected.position(|(successor, until)| &*successor.owner == owner && *until > now)?;
        Some(self.expected.remove(ix).0.to)
    }

    /// What is proposed to pods that have just appeared. The scheduler may be faster, then it decides.
    pub(super) fn proposals(
        &mut self,
        snapshot: &Snapshot,
        arrived: &[Name],
        now: Timestamp,
    ) -> Vec<Write> {
        let mut writes = Vec::new();
        for pod in arrived.iter().filter_map(|name| snapshot.pod(name)) {
            let owner = pod.owner.as_ref().filter(|_| pod.is_fresh());
            let Some(to) = owner.and_then(|owner| self.welcome(&owner.uid, now)) else {
                continue;
            };
            let node = match snapshot.claim(&to) {
                Some(claim) => claim.node_name().map(Name::from),
                None => Some(to),
            };
            if let Some(node) = node.filter(|node| snapshot.node(node).is_some()) {
                writes.push(Write::Propose {
                    pod: pod.name.clone(),
                    uid: pod.uid.clone(),
                    node,
                });
            }
        }
        writes
    }
}

/// One for each pod that a command moves, as far as its owner will make another one of it.
pub(crate) fn expected(
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
    command: &Command,
    replacements: &[NodeClaim],
) -> Vec<Successor> {
    let mut all = Vec::new();
    for slot in slots(fleet.problem, command, replacements) {
        let (Target::Node(to) | Target::Claim(to)) = slot.place;
        let moved = slot.pods.iter();
        let moved = moved.filter_map(|pod| owner(snapshot, fleet, command, *pod));
        all.extend(moved.map(|owner| Successor {
            owner,
            to: to.clone(),
        }));
    }
    all
}

/// Pods of one command leave for single nodes in this many turns at most.
const TURNS_MAX: usize = 24;
/// And pods of spreads in this many more.
pub(super) const SPREADS_MAX: usize = 12;

/// In which turns the pods of a command leave. None when all may leave at once.
///
/// First go those that a node is enough for, one node after the other. Where pods of a spread go depends
/// on who of their own comes first, so that all nodes that the plan has for them are open at once, from then
/// on; but one spread leaves after the other, the largest pods first: smaller ones would take their room. Critical
/// pods leave their node after all others.
pub(crate) fn turns(
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
    command: &Command,
    replacements: &[NodeClaim],
) -> Vec<Turn> {
    if !command.is_tight {
        return Vec::new();
    }
    let problem = fleet.problem;
    let slots = slots(problem, command, replacements);
    let size = slots.len().div_ceil(TURNS_MAX).max(1);
    let mut last = Turn {
        opens: closable(&slots),
        leavers: Vec::new(),
    };
    let mut spreads: BTreeMap<(Reverse<u64>, Option<Name>), Turn> = BTreeMap::new();
    let mut turns = Vec::new();
    for together in slots.chunks(size) {
        let mut turn = Turn {
            opens: closable(together),
            leavers: Vec::new(),
        };
        for slot in together {
            for pod in slot.pods {
                let Some(live) = moved(snapshot, fleet, command, *pod) else {
                    continue;
                };
                let leaver = Leaver {
                    pod: live.name.clone(),
                    uid: live.uid.clone(),
                    owner: live.owner.as_ref().map(|owner| owner.uid.clone()),
                };
                let shape = problem.shape(*pod);
                if live.critical {
                    last.leavers.push(leaver);
                } else if !shape.spreads.iter().any(|spread| spread.hard) {
                    turn.leavers.push(leaver);
                } else {
                    let of = (Reverse(shape.precedence().size), leaver.owner.clone());
                    let turn = spreads.entry(of).or_default();
                    let is_new = slot.is_ours && !turn.opens.contains(&slot.place);
                    turn.opens.extend(is_new.then(|| slot.place.clone()));
                    turn.leavers.push(leaver);
                }
            }
        }
        turns.push(turn);
    }
    let mut opened: Vec<Target> = Vec::new();
    for (n, mut turn) in spreads.into_values().enumerate() {
        if n >= SPREADS_MAX {
            last.leavers.append(&mut turn.leavers);
            continue;
        }
        // Pods that are late find a place as well: nodes that were open for a spread stay open.
        let new = turn
            .opens
            .into_iter()
            .filter(|target| !opened.contains(target));
        let new: Vec<Target> = new.collect();
        opened.extend(new);
        turn.opens = opened.clone();
        turns.push(turn);
    }
    turns.retain(|turn| !turn.leavers.is_empty());
    turns.push(last);
    turns
}

/// A node that a plan has pods for.
struct Slot<'c> {
    place: Target,
    /// We close no others.
    is_ours: bool,
    pods: &'c [PodIx],
}

fn closable(slots: &[Slot<'_>]) -> Vec<Target> {
    let ours = slots.iter().filter(|slot| slot.is_ours);
    ours.map(|slot| slot.place.clone()).collect()
}

/// In the order in which pods leave for them: nodes there are, and then new ones.
fn slots<'c>(problem: &Problem, command: &'c Command, replacements: &[NodeClaim]) -> Vec<Slot<'c>> {
    let kept = command.plan.placements.iter().map(|placed| {
        let node = &problem.nodes[placed.node.0 as usize];
        Slot {
            place: Target::Node(node.name.clone()),
            is_ours: node.pool.is_some(),
            pods: &placed.pods,
        }
    });
    let bought = command.plan.launches.iter().zip(replacements);
    let bought = bought.map(|(launch, claim)| Slot {
        place: Target::Claim(claim.metadata.name.as_str().into()),
        is_ours: true,
        pods: &launch.pods,
    });
    kept.chain(bought).collect()
}

/// A pod of a plan, if it leaves one of the command's own nodes. Others in the plan wait, or leave a node
/// that another command takes away.
fn moved<'s>(
    snapshot: &'s Snapshot,
    fleet: &Fleet<'_>,
    command: &Command,
    pod: PodIx,
) -> Option<&'s LivePod> {
    let live = snapshot.pod(&fleet.problem.pods[pod.0 as usize].name)?;
    let from = live.node.as_ref()?;
    let mut members = command.members.iter();
    let leaves = members.any(|m| fleet.members[*m].name == *from);
    leaves.then_some(&**live)
}

/// Uid of the owner of a pod that is moved. Pods of a spread are left to the scheduler: where
/// they may go depends on which of them comes first.
fn owner(snapshot: &Snapshot, fleet: &Fleet<'_>, command: &Command, pod: PodIx) -> Option<Name> {
    let live = moved(snapshot, fleet, command, pod)?;
    let is_free = fleet.problem.shape(pod).spreads.is_empty();
    Some(live.owner.as_ref().filter(|_| is_free)?.uid.clone())
}
