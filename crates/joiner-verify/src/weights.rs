//! Heavier pools first, and nobody left over whom a new node could hold.
//!
//! Both rules are checked where they are beyond dispute: for pods free of topology rules, and pools
//! without limits and `minValues`.

use std::collections::{BTreeSet, HashMap};

use joiner_model::{PodShape, Pool, PreferencePolicy, tolerates_all};

use crate::bits::Bits;
use crate::census::Seats;
use crate::classes::Market;
use crate::demands::{Demand, shortage};
use crate::ground::Ground;
use crate::ports::shared;
use crate::topology::Topology;
use crate::violation::{Report, Rule};

/// Whether a new node of a pool could hold a pod by itself, each answer found once.
struct Alone {
    answers: HashMap<(usize, Demand, bool), bool>,
}

/// Checks weights of launches, and pods left over.
pub(crate) fn check<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &mut Topology<'p>,
    seats: &Seats,
    report: &mut Report,
) {
    let heavier = heavier_pools(ground);
    let any_heavier = heavier.iter().any(|pools| !pools.is_empty());
    if !any_heavier && seats.unplaced.is_empty() {
        return;
    }
    let tied = tied_shapes(ground, topology);
    let mut alone = Alone {
        answers: HashMap::new(),
    };
    if any_heavier {
        weights(ground, market, (seats, &tied, &heavier), &mut alone, report);
    }
    left_over(ground, market, (seats, &tied), &mut alone, report);
}

/// Nothing but pods themselves can keep them off such a pool.
fn is_plain(pool: &Pool) -> bool {
    let asks_values = pool.requirements.iter().any(|r| r.min_values().is_some());
    pool.limits.is_none() && pool.closed.is_none() && !asks_values
}

/// For each pool the plain pools that are heavier.
fn heavier_pools(ground: &Ground<'_>) -> Vec<Vec<usize>> {
    let pools = &ground.problem.pools;
    let above = |pool: &Pool| {
        let each = pools.iter().enumerate();
        let heavier = each.filter(|(_, other)| other.weight > pool.weight && is_plain(other));
        heavier.map(|(ix, _)| ix).collect()
    };
    pools.iter().map(above).collect()
}

/// Shapes under a topology rule of their own or under somebody's anti-affinity.
fn tied_shapes<'p>(ground: &Ground<'p>, topology: &mut Topology<'p>) -> BTreeSet<usize> {
    let mut tied = BTreeSet::new();
    let mut in_use = vec![false; ground.problem.shapes.len()];
    for pod in ground.problem.pods.iter().filter(|pod| !pod.terminating) {
        in_use[pod.shape.0 as usize] = true;
    }
    let shapes = ground.problem.shapes.iter().enumerate();
    for (ix, shape) in shapes.filter(|(ix, _)| in_use[*ix]) {
        let spread = shape.spreads.iter().any(|s| s.hard);
        if spread || !shape.affinity.is_empty() || !shape.anti_affinity.is_empty() {
            tied.insert(ix);
        }
        for term in &shape.anti_affinity {
            let matches = topology.matching_term(ground, term);
            tied.extend(&topology.matches(matches).shapes);
        }
    }
    tied
}

/// A wish can send a pod to a lighter pool.
fn has_wishes(shape: &PodShape) -> bool {
    !shape.preferred_node_terms.is_empty()
        || !shape.preferred_affinity.is_empty()
        || !shape.preferred_anti_affinity.is_empty()
        || shape.spreads.iter().any(|s| !s.hard)
}

/// Some pod on a node must have needed its pool.
fn weights<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    (seats, tied, heavier): (&Seats, &BTreeSet<usize>, &[Vec<usize>]),
    alone: &mut Alone,
    report: &mut Report,
) {
    let wishes_count = ground.problem.policy.preferences == PreferencePolicy::Respect;
    for (launch, pods) in ground.plan.launches.iter().zip(&seats.launches) {
        let Some((pool_ix, pool)) = ground.pool_of(launch) else {
            continue;
        };
        let mut better = None;
        let all_could_go = pods.iter().all(|pod| {
            let bound_to_it = tied.contains(&ground.shape_ix(*pod))
                || (wishes_count && has_wishes(ground.shape(*pod)));
            if bound_to_it {
                return false;
            }
            let mut pools = heavier[pool_ix].iter();
            let demand = ground.demand(*pod);
            let found = pools.find(|p| alone.holds(ground, market, **p, demand, false));
            better = better.or(found);
            found.is_some()
        });
        if let (true, Some(better)) = (all_could_go, better) {
            let better = &ground.problem.pools[*better];
            report.say(
                Rule::Weight,
                format_args!(
                    "node {}: each of its pods could be on a pool heavier than {:?}, such as {:?}",
                    launch.name, pool.name, better.name
                ),
            );
        }
    }
}

/// Nobody is left over whom a node of his own could hold.
fn left_over<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    (seats, tied): (&Seats, &BTreeSet<usize>),
    alone: &mut Alone,
    report: &mut Report,
) {
    for pod in &seats.unplaced {
        if tied.contains(&ground.shape_ix(*pod)) {
            continue;
        }
        let demand = ground.demand(*pod);
        let mut pools = ground.problem.pools.iter().enumerate();
        let found = pools
            .find(|(ix, pool)| is_plain(pool) && alone.holds(ground, market, *ix, demand, true));
        if let Some((_, pool)) = found {
            let (name, pool) = (ground.pod_name(*pod), &pool.name);
            report.say(
                Rule::LeftOver,
                format_args!(
                    "pod {name} is left over, but a new node of pool {pool:?} can hold it"
                ),
            );
        }
    }
}

impl Alone {
    /// True when some offering of the pool that needs no reservation holds the pod and its daemons.
    /// A `PreferNoSchedule` taint keeps the pod away unless `wishes_fall`.
    fn holds<'p>(
        &mut self,
        ground: &Ground<'p>,
        market: &mut Market<'p>,
        pool: usize,
        demand: Demand,
        wishes_fall: bool,
    ) -> bool {
        let key = (pool, demand, wishes_fall);
        *self.answers.entry(key).or_insert_with(|| {
            let taints = &ground.problem.pools[pool].taints;
            let tolerations = ground.demands.tolerations(demand.tolerations);
            tolerates_all(tolerations, taints, wishes_fall).is_ok()
                && fits_somewhere(ground, market, pool, demand)
        })
    }
}

fn fits_somewhere<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    pool: usize,
    demand: Demand,
) -> bool {
    let view = &mut market.views[pool];
    let contexts = view.contexts(ground, &[], &[demand]).unwrap_or_default();
    let need = ground.demands.amounts(demand.amounts);
    let ports = ground.demands.ports(demand.ports);
    contexts.into_iter().any(|context| {
        let accepted = view.accepted(ground, context, demand).clone();
        let clashing: Vec<&Bits> = view
            .daemons(context)
            .iter()
            .zip(&ground.problem.daemons)
            .filter(|(_, daemon)| shared(ports, &daemon.shape.ports).is_some())
            .map(|(landing, _)| landing)
            .collect();
        let room = view.room(context);
        let mut worlds = accepted.iter_in(0..view.worlds.list.len());
        worlds.any(|world| {
            shortage(need, room.of(world)).is_none()
                && !clashing.iter().any(|landing| landing.contains(world))
                && !view.worlds.is_reserved(ground, world)
        })
    })
}
