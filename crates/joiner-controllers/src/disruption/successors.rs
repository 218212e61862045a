//! Where the pods are to go that come in the place of those that a command moves.

use joiner_api::types::NodeClaim;
use joiner_disruption::{Command, Fleet};
use joiner_model::{Name, PodIx, Problem};
use joiner_state::live::Snapshot;

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
        let moved = moved.filter_map(|pod| owner(snapshot, fleet, *pod));
        all.extend(moved.map(|owner| Successor {
            owner,
            to: to.clone(),
        }));
    }
    all
}

/// Pods of one command leave in this many turns at most.
const TURNS_MAX: usize = 24;

/// In which turns the pods of a command leave. None when all may leave at once.
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
    let mut turns = Vec::new();
    for together in slots.chunks(size) {
        let mut turn = Turn {
            opens: closable(together),
            leavers: Vec::new(),
        };
        for own in together {
            for pod in own.pods {
                let live = snapshot.pod(&problem.pods[pod.0 as usize].name);
                let Some(live) = live.filter(|own| own.node.is_some()) else {
                    continue;
                };
                // Critical pods leave their node after all others; where those of a spread go depends
                // on who comes first.
                let is_spread = !problem.shape(*pod).spreads.is_empty();
                let turn = if live.critical || is_spread {
                    &mut last
                } else {
                    &mut turn
                };
                turn.leavers.push(Leaver {
                    pod: live.name.clone(),
                    uid: live.uid.clone(),
                    owner: live.owner.as_ref().map(|owner| owner.uid.clone()),
                });
            }
        }
        turns.push(turn);
    }
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

/// Uid of the owner of a pod that is bound now. Pods of a spread are left to the scheduler: where
/// they may go depends on which of them comes first.
fn owner(snapshot: &Snapshot, fleet: &Fleet<'_>, pod: PodIx) -> Option<Name> {
    let own = &fleet.problem.pods[pod.0 as usize];
    let shape = &fleet.problem.shapes[own.shape.0 as usize];
    let live = snapshot.pod(&own.name)?;
    let is_moved = live.node.is_some() && shape.spreads.is_empty();
    Some(live.owner.as_ref().filter(|_| is_moved)?.uid.clone())
}
