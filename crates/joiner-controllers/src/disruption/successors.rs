//! Where the pods are to go that come in the place of those that a command moves.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use joiner_api::types::NodeClaim;
use joiner_disruption::{Command, Fleet};
use joiner_model::{Name, PodIx, Problem};
use joiner_state::live::{LivePod, Snapshot};

use crate::nominations::Successor;
use crate::turns::{Leaver, Place, Turn};

/// One for each pod that a command moves, as far as somebody will make another one of it.
pub(super) fn expected(
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
    command: &Command,
    replacements: &[NodeClaim],
) -> Vec<Successor> {
    let mut all = Vec::new();
    for slot in slots(fleet.problem, command, replacements) {
        let (Place::Node(to) | Place::Claim(to)) = slot.place;
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
const SPREADS_MAX: usize = 12;

/// In which turns the pods of a command leave. None when all may leave at once.
///
/// First go those that a node is enough for, one node after the other. Where pods of a spread go depends
/// on who of their own comes first, so that all nodes that the plan has for them are open at once, from then
/// on; but one spread leaves after the other, the largest pods first: smaller ones would take their room. Critical
/// pods leave their node after all others.
pub(super) fn turns(
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
        for own in together {
            for pod in own.pods {
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
                } else if !shape.spreads.iter().any(|own| own.hard) {
                    turn.leavers.push(leaver);
                } else {
                    let of = (Reverse(shape.precedence().size), leaver.owner.clone());
                    let turn = spreads.entry(of).or_default();
                    let is_new = own.is_ours && !turn.opens.contains(&own.place);
                    turn.opens.extend(is_new.then(|| own.place.clone()));
                    turn.leavers.push(leaver);
                }
            }
        }
        turns.push(turn);
    }
    let mut opened: Vec<Place> = Vec::new();
    for (n, mut turn) in spreads.into_values().enumerate() {
        if n >= SPREADS_MAX {
            last.leavers.append(&mut turn.leavers);
            continue;
        }
        // Whoever is late finds a place as well: nodes that were open for a spread stay open.
        let new = turn.opens.into_iter().filter(|own| !opened.contains(own));
        let new: Vec<Place> = new.collect();
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
    place: Place,
    /// We close no others.
    is_ours: bool,
    pods: &'c [PodIx],
}

fn closable(slots: &[Slot<'_>]) -> Vec<Place> {
    let ours = slots.iter().filter(|own| own.is_ours);
    ours.map(|own| own.place.clone()).collect()
}

/// In the order in which pods leave for them: nodes there are, and then new ones.
fn slots<'c>(problem: &Problem, command: &'c Command, replacements: &[NodeClaim]) -> Vec<Slot<'c>> {
    let kept = command.plan.placements.iter().map(|own| {
        let node = &problem.nodes[own.node.0 as usize];
        Slot {
            place: Place::Node(node.name.clone()),
            is_ours: node.pool.is_some(),
            pods: &own.pods,
        }
    });
    let bought = command.plan.launches.iter().zip(replacements);
    let bought = bought.map(|(launch, own)| Slot {
        place: Place::Claim(own.metadata.name.as_str().into()),
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
