//! Whether the cluster's scheduler will hit a plan by itself.
//!
//! A plan says where every pod goes, but the scheduler places the pods that come in their stead, one
//! by one, where it finds most room, in an order that nobody knows. When a plan leaves no room to
//! spare, the last ones find none. So a plan is played through as the scheduler would do it, in
//! several orders: each pod goes where the least is in use and the fewest of its kind are.
//!
//! What depends on single nodes (ports, pods that must be together or apart) is taken to go as
//! planned, and pods that are spread over zones stay in the zone they are planned for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{
    InstanceType, Launch, Name, Node, NodeIx, Offering, Plan, PodIx, PodShape, Problem,
    Requirement, ShapeIx, Terms, keys, tolerates_all,
};

use super::bounds::{Rooms, fits, subtract};
use crate::fleet::Fleet;
use crate::whatif::cores_and_memory;

const SCORE_MAX: u64 = 100;
/// Spreading counts for this many times as much as an empty node.
const SPREAD_WEIGHT: u64 = 2;

/// True when some order of the pods leaves one of them over, though the plan has a place for each.
pub(crate) fn is_tight(fleet: &Fleet<'_>, rooms: &Rooms, members: &[usize], plan: &Plan) -> bool {
    let problem = fleet.problem;
    let launches = plan.launches.iter().flat_map(|own| &own.pods);
    let placements = plan.placements.iter().flat_map(|own| &own.pods);
    let mut pods: Vec<PodIx> = launches.chain(placements).copied().collect();
    let name = |pod: &PodIx| &problem[*pod].name;
    pods.sort_by(|a, b| name(a).cmp(name(b)));
    let (fixed, by_name): (Vec<PodIx>, Vec<PodIx>) =
        (pods.iter()).partition(|pod| is_fixed(problem.shape(**pod)));
    let size = |pod: &PodIx| problem.shape(*pod).precedence().size;
    let mut small_first = by_name.clone();
    small_first.sort_by_key(size);
    let mut large_first = by_name.clone();
    large_first.sort_by_key(|pod| Reverse(size(pod)));
    let stage = Stage::new(fleet, rooms, members, plan, &pods);
    let mut start = Scene::new(&stage, fleet);
    for pod in fixed {
        if let Some(at) = stage.planned.get(&pod) {
            start.put(pod, *at);
        }
    }
    let mut orders = [small_first, by_name, large_first].into_iter();
    orders.any(|order| {
        let mut scene = start.clone();
        order.into_iter().any(|pod| match scene.best(pod) {
            Some(at) => {
                scene.put(pod, at);
                false
            }
            None => true,
        })
    })
}

/// It matters on which node exactly a pod like this is.
fn is_fixed(shape: &PodShape) -> bool {
    let by_node = |own: &joiner_model::Spread| own.hard && own.key.as_ref() != keys::ZONE;
    !shape.ports.is_empty()
        || !shape.affinity.is_empty()
        || !shape.anti_affinity.is_empty()
        || shape.spreads.iter().any(by_node)
}

/// A node that takes pods, there or to come.
struct Site<'f> {
    what: What<'f>,
    zone: Option<&'f Name>,
    /// Free room before anybody moves, in the terms of [`Rooms`].
    free: Vec<u64>,
    /// Cores and memory in all.
    size: [u64; 2],
}

enum What<'f> {
    Node(&'f Node),
    New(&'f Launch),
}

/// The nodes that take pods, and what does not change while pods are placed.
struct Stage<'f> {
    problem: &'f Problem,
    rooms: &'f Rooms,
    sites: Vec<Site<'f>>,
    at: BTreeMap<NodeIx, usize>,
    planned: BTreeMap<PodIx, usize>,
    /// Sites that take a shape, for all shapes that move.
    open_to: BTreeMap<ShapeIx, Vec<usize>>,
    /// Workloads of pods that move.
    owners: BTreeMap<PodIx, &'f Name>,
}

impl<'f> Stage<'f> {
    fn new(
        fleet: &'f Fleet<'_>,
        rooms: &'f Rooms,
        members: &[usize],
        plan: &'f Plan,
        pods: &[PodIx],
    ) -> Self {
        let problem = fleet.problem;
        let mut stage = Self {
            problem,
            rooms,
            sites: Vec::new(),
            at: BTreeMap::new(),
            planned: BTreeMap::new(),
            open_to: BTreeMap::new(),
            owners: BTreeMap::new(),
        };
        stage.add_nodes(fleet, members, pods);
        for own in &plan.placements {
            if let Some(site) = stage.at.get(&own.node) {
                let pods = own.pods.iter().map(|pod| (*pod, *site));
                stage.planned.extend(pods);
            }
        }
        for launch in &plan.launches {
            let pods = launch.pods.iter().map(|pod| (*pod, stage.sites.len()));
            stage.planned.extend(pods);
            stage.sites.push(new_site(problem, rooms, launch));
        }
        for pod in pods {
            let shape = problem[*pod].shape;
            if !stage.open_to.contains_key(&shape) {
                let open = stage.takers(&problem[shape]);
                stage.open_to.insert(shape, open);
            }
        }
        let moved = members.iter().flat_map(|m| &fleet.members[*m].pods);
        let owned = moved.filter_map(|moved| Some((moved.pod, moved.owner.as_ref()?)));
        stage.owners.extend(owned);
        stage
    }

    /// Nodes that stay and have room for the least of these pods.
    fn add_nodes(&mut self, fleet: &Fleet<'_>, members: &[usize], pods: &[PodIx]) {
        let mut going: BTreeSet<NodeIx> = members.iter().map(|m| fleet.members[*m].node).collect();
        let leaving = fleet.members.iter().filter(|m| m.in_command || m.deleting);
        going.extend(leaving.map(|m| m.node));
        let needs = pods
            .iter()
            .map(|pod| self.rooms.amounts(self.problem, *pod));
        let least = needs.map(<[u64]>::to_vec).reduce(|least, need| {
            let pairs = least.iter().zip(&need);
            pairs.map(|(a, b)| *a.min(b)).collect()
        });
        let least = least.unwrap_or_default();
        for (n, node) in (0u32..).map(NodeIx).zip(&self.problem.nodes) {
            let free = self.rooms.free(n);
            if node.closed || going.contains(&n) || !fits(&least, free) {
                continue;
            }
            self.at.insert(n, self.sites.len());
            self.sites.push(Site {
                what: What::Node(node),
                zone: node.labels.get(keys::ZONE),
                free: free.to_vec(),
                size: cores_and_memory(&node.allocatable),
            });
        }
    }

    /// Sites that take pods of a shape.
    fn takers(&self, shape: &PodShape) -> Vec<usize> {
        let takes = |site: &Site<'_>| match site.what {
            What::Node(node) => {
                let label = |key: &str| node.labels.get(key).map(AsRef::as_ref);
                tolerates_all(&shape.tolerations, &node.taints, true).is_ok()
                    && is_selected(shape, label)
            }
            What::New(launch) => is_new_selected(self.problem, launch, shape),
        };
        let sites = self.sites.iter().enumerate();
        let open = sites.filter(|(_, site)| takes(site));
        open.map(|(at, _)| at).collect()
    }
}

/// What is used, while pods are placed.
#[derive(Clone)]
struct Scene<'s, 'f> {
    stage: &'s Stage<'f>,
    /// Free room by site.
    free: Vec<Vec<u64>>,
    /// Pods of a workload by site, for all workloads that move.
    of_owner: BTreeMap<&'f Name, Vec<u64>>,
}

impl<'s, 'f> Scene<'s, 'f> {
    fn new(stage: &'s Stage<'f>, fleet: &Fleet<'_>) -> Self {
        let none = |owner: &&'f Name| (*owner, vec![0; stage.sites.len()]);
        let mut of_owner: BTreeMap<&'f Name, Vec<u64>> = stage.owners.values().map(none).collect();
        for member in &fleet.members {
            let Some(site) = stage.at.get(&member.node) else {
                continue;
            };
            for owner in member.pods.iter().filter_map(|moved| moved.owner.as_ref()) {
                if let Some(counts) = of_owner.get_mut(owner) {
                    counts[*site] += 1;
                }
            }
        }
        Self {
            stage,
            free: stage.sites.iter().map(|site| site.free.clone()).collect(),
            of_owner,
        }
    }

    fn put(&mut self, pod: PodIx, at: usize) {
        let need = self.stage.rooms.amounts(self.stage.problem, pod);
        subtract(&mut self.free[at], need);
        let owner = self.stage.owners.get(&pod);
        if let Some(counts) = owner.and_then(|owner| self.of_owner.get_mut(owner)) {
            counts[at] += 1;
        }
    }

    /// Where the scheduler would put a pod.
    fn best(&self, pod: PodIx) -> Option<usize> {
        let stage = self.stage;
        let need = stage.rooms.amounts(stage.problem, pod);
        let shape = stage.problem.shape(pod);
        let spread = shape.spreads.iter().any(|own| own.hard);
        let planned = stage.planned.get(&pod).map(|at| &stage.sites[*at]);
        let zone = planned.filter(|_| spread).and_then(|site| site.zone);
        let will_do = |at: &usize| {
            let in_zone = zone.is_none() || stage.sites[*at].zone == zone;
            in_zone && fits(need, &self.free[*at])
        };
        let takers = stage.open_to.get(&stage.problem[pod].shape)?;
        let open: Vec<usize> = takers.iter().copied().filter(will_do).collect();
        let owner = stage.owners.get(&pod).filter(|_| shape.spreads.is_empty());
        let counts = owner.and_then(|owner| self.of_owner.get(owner));
        let most = counts.and_then(|counts| open.iter().map(|at| counts[*at]).max());
        let spread = |at: usize| match (counts, most) {
            (Some(counts), Some(most)) if most > 0 => SCORE_MAX * (most - counts[at]) / most,
            _ => SCORE_MAX,
        };
        let asked = cores_and_memory(&shape.requests);
        let score = |at: usize| {
            let free = stage.rooms.cores_and_memory(&self.free[at]);
            emptiness(free, stage.sites[at].size, asked) + SPREAD_WEIGHT * spread(at)
        };
        open.into_iter().max_by_key(|at| (score(*at), Reverse(*at)))
    }
}

/// How empty a node with so much free of so much would be, and how evenly used, of a hundred each.
fn emptiness(free: [u64; 2], size: [u64; 2], need: [u64; 2]) -> u64 {
    let share = |n: usize| {
        let left = u128::from(free[n].saturating_sub(need[n])) * u128::from(SCORE_MAX);
        let share = left / u128::from(size[n].max(1));
        u64::try_from(share).unwrap_or(SCORE_MAX).min(SCORE_MAX)
    };
    let (cores, memory) = (share(0), share(1));
    (cores + memory) / 2 + SCORE_MAX - cores.abs_diff(memory) / 2
}

/// The type and offering that a launch is planned to become.
fn bought<'p>(problem: &'p Problem, launch: &Launch) -> (&'p InstanceType, Option<&'p Offering>) {
    let (ty, offering) = launch.offering;
    let ty = &problem[ty];
    (ty, ty.offerings.get(offering.0 as usize))
}

/// A new node, with its daemons on it.
fn new_site<'f>(problem: &'f Problem, rooms: &Rooms, launch: &'f Launch) -> Site<'f> {
    let (ty, offering) = bought(problem, launch);
    let mut room = ty.allocatable().unwrap_or_default();
    if let Some(offering) = offering {
        room.add(&offering.extra_capacity);
    }
    let size = cores_and_memory(&room);
    for daemon in &problem.daemons {
        if is_new_selected(problem, launch, &daemon.shape) {
            room = room.minus_saturating(&daemon.shape.requests);
        }
    }
    Site {
        what: What::New(launch),
        zone: offering.and_then(|own| own.labels.get(keys::ZONE)),
        free: rooms.measured(&room),
        size,
    }
}

/// A new node takes pods of a shape.
fn is_new_selected(problem: &Problem, launch: &Launch, shape: &PodShape) -> bool {
    let pool = &problem[launch.pool];
    let (ty, offering) = bought(problem, launch);
    let label = |key: &str| -> Option<&str> {
        let sold = offering.and_then(|own| own.labels.get(key));
        let typed = ty.labels.get(key).and_then(|values| match &values[..] {
            [value] => Some(value),
            _ => None,
        });
        let own = pool.labels.get(key);
        sold.or(typed).or(own).map(AsRef::as_ref)
    };
    let planned = |pod: &PodIx| std::ptr::eq(problem.shape(*pod), shape);
    tolerates_all(&shape.tolerations, &pool.taints, true).is_ok()
        && (is_selected(shape, label) || launch.pods.iter().any(planned))
}

/// A node with these labels is one that a shape asks for.
fn is_selected<'l>(shape: &PodShape, label: impl Fn(&str) -> Option<&'l str>) -> bool {
    let holds = |r: &Requirement| r.holds(label(r.key()));
    let any = |terms: &[Terms]| terms.is_empty() || terms.iter().any(|own| own.iter().all(holds));
    shape.node_selector.iter().all(holds) && any(&shape.node_terms) && any(&shape.volume_terms)
}
