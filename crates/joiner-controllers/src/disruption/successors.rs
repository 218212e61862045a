//! Where the pods are to go that come in the place of those that a command moves.

use joiner_api::types::NodeClaim;
use joiner_disruption::{Command, Fleet};
use joiner_model::{Name, PodIx};
use joiner_state::live::Snapshot;

use crate::nominations::Successor;

/// One for each pod that a command moves, as far as somebody will make another one of it.
pub(super) fn expected(
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
    command: &Command,
    replacements: &[NodeClaim],
) -> Vec<Successor> {
    let problem = fleet.problem;
    let bought = command.plan.launches.iter().zip(replacements);
    let bought = bought.map(|(launch, own)| (&launch.pods, own.metadata.name.as_str()));
    let kept = command.plan.placements.iter();
    let kept = kept.map(|own| (&own.pods, &*problem.nodes[own.node.0 as usize].name));
    let mut all = Vec::new();
    for (pods, to) in bought.chain(kept) {
        let to = Name::from(to);
        let moved = pods.iter().filter_map(|pod| owner(snapshot, fleet, *pod));
        all.extend(moved.map(|owner| Successor {
            owner,
            to: to.clone(),
        }));
    }
    all
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
