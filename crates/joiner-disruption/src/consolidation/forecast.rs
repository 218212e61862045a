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
    InstanceType, Launch, Name, Node, NodeIx, Offering, Plan, Pod, PodIx, PodShape, Problem,
    Requirement, ResourceName, Resources, ShapeIx, Terms, keys, tolerates_all,
};

use super::bounds::{Rooms, fits, subtract};
use crate::fleet::Fleet;

const SCORE_MAX: u64 = 100;
/// Spreading counts for this many times as much as an empty node.
const SPREAD_WEIGHT: u64 = 2;

/// True when some order of the pods leaves one of them over, though the plan has a place for each.
pub(crate) fn is_tight(fleet: &Fleet<'_>, rooms: &Rooms, members: &[usize], plan: &Plan) -> bool {
    let problem = fleet.problem;
    let launches = plan.launches.iter().flat_map(|own| &own.pods);
    let placements = plan.placements.iter().flat_map(|own| &own.pods);
    let mut pods: Vec<PodIx> = launches.chain(placements).copied().collect();
    let name = |pod: &PodIx| &problem.pods[pod.0 as usize].name;
    pods.sort_by(|a, b| name(a).cmp(name(b)));
    let (fixed, by_name): (Vec<PodIx>, Vec<PodIx>) =
        (pods.iter()).partition(|pod| is_fixed(problem.shape(**pod)));
    let size = |pod: &PodIx| problem.shape(*pod).precedence().size;
    let mut small_first = by_name.clone();
    small_first.sort_by_key(size);
    let mut large_first = by_name.clone();
    large_first.sort_by_key(|pod| Reverse(size(pod)));
    [small_first, by_name, large_first]
        .into_iter()
        .any(|order| {
            let mut scene = Scene::new(fleet, rooms, members, plan, &pods);
            for pod in &fixed {
                if let Some(at) = scene.planned.get(pod).copied() {
                    scene.put(*pod, at);
                }
            }
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
    /// Free room, in the terms of [`Rooms`].
    free: Vec<u64>,
    /// Cores and memory in all.
    size: [u64; 2],
}

enum What<'f> {
    Node(&'f Node),
    New(&'f Launch),
}

/// The nodes that take pods, while pods are placed.
struct Scene<'f> {
    problem: &'f Problem,
    rooms: &'f Rooms,
    sites: Vec<Site<'f>>,
    planned: BTreeMap<PodIx, usize>,
    /// Sites that take a shape, as far as asked for.
    open_to: BTreeMap<ShapeIx, Vec<usize>>,
    owners: BTreeMap<PodIx, &'f Name>,
    /// Pods of a workload by site.
    of_owner: BTreeMap<&'f Name, Vec<u64>>,
}

impl<'f> Scene<'f> {
    fn new(
        fleet: &'f Fleet<'_>,
        rooms: &'f Rooms,
        members: &[usize],
        plan: &'f Plan,
        pods: &[PodIx],
    ) -> Self {
        let problem = fleet.problem;
        let mut going: BTreeSet<NodeIx> = members.iter().map(|m| fleet.members[*m].node).collect();
        let leaving = fleet.members.iter().filter(|m| m.in_command || m.deleting);
        going.extend(leaving.map(|m| m.node));
        let needs = pods.iter().map(|pod| rooms.amounts(problem, *pod));
        let least = needs.fold(None, |least: Option<Vec<u64>>, need| {
            let smaller = |own: Vec<u64>| own.iter().zip(need).map(|(a, b)| *a.min(b)).collect();
            Some(least.map_or_else(|| need.to_vec(), smaller))
        });
        let least = least.unwrap_or_default();
        let mut sites = Vec::new();
        let mut at: BTreeMap<NodeIx, usize> = BTreeMap::new();
        for (n, node) in (0u32..).map(NodeIx).zip(&problem.nodes) {
            let free = rooms.free(n);
            if node.closed || going.contains(&n) || !fits(&least, free) {
                continue;
            }
            at.insert(n, sites.len());
            sites.push(Site {
                what: What::Node(node),
                zone: node.labels.get(keys::ZONE),
                free: free.to_vec(),
                size: cores_and_memory(&node.allocatable),
            });
        }
        let mut planned = BTreeMap::new();
        for own in &plan.placements {
            if let Some(site) = at.get(&own.node) {
                planned.extend(own.pods.iter().map(|pod| (*pod, *site)));
            }
        }
        for launch in &plan.launches {
            planned.extend(launch.pods.iter().map(|pod| (*pod, sites.len())));
            sites.push(new_site(problem, rooms, launch));
        }
        let mut scene = Self {
            problem,
            rooms,
            sites,
            planned,
            open_to: BTreeMap::new(),
            owners: BTreeMap::new(),
            of_owner: BTreeMap::new(),
        };
        scene.count_owners(fleet, members, &at);
        scene
    }

    /// Counts the pods of all workloads that move.
    fn count_owners(
        &mut self,
        fleet: &'f Fleet<'_>,
        members: &[usize],
        at: &BTreeMap<NodeIx, usize>,
    ) {
        for moved in members.iter().flat_map(|m| &fleet.members[*m].pods) {
            if let Some(owner) = &moved.owner {
                self.owners.insert(moved.pod, owner);
                let none = || vec![0; self.sites.len()];
                self.of_owner.entry(owner).or_insert_with(none);
            }
        }
        for member in &fleet.members {
            let Some(site) = at.get(&member.node) else {
                continue;
            };
            for owner in member.pods.iter().filter_map(|moved| moved.owner.as_ref()) {
                if let Some(counts) = self.of_owner.get_mut(owner) {
                    counts[*site] += 1;
                }
            }
        }
    }

    fn put(&mut self, pod: PodIx, at: usize) {
        let need = self.rooms.amounts(self.problem, pod);
        subtract(&mut self.sites[at].free, need);
        let owner = self.owners.get(&pod);
        if let Some(counts) = owner.and_then(|owner| self.of_owner.get_mut(owner)) {
            counts[at] += 1;
        }
    }

    /// Where the scheduler would put a pod.
    fn best(&mut self, pod: PodIx) -> Option<usize> {
        let own = &self.problem.pods[pod.0 as usize];
        self.open(own);
        let need = self.rooms.amounts(self.problem, pod);
        let shape = &self.problem.shapes[own.shape.0 as usize];
        let spread = shape.spreads.iter().any(|own| own.hard);
        let planned = self.planned.get(&pod).map(|at| &self.sites[*at]);
        let zone = planned.filter(|_| spread).and_then(|site| site.zone);
        let will_do = |at: &usize| {
            let site = &self.sites[*at];
            (zone.is_none() || site.zone == zone) && fits(need, &site.free)
        };
        let open = self.open_to.get(&own.shape)?.iter().copied();
        let open: Vec<usize> = open.filter(will_do).collect();
        let owner = self.owners.get(&pod).filter(|_| shape.spreads.is_empty());
        let counts = owner.and_then(|owner| self.of_owner.get(owner));
        let most = counts.and_then(|counts| open.iter().map(|at| counts[*at]).max());
        let spread = |at: usize| match (counts, most) {
            (Some(counts), Some(most)) if most > 0 => SCORE_MAX * (most - counts[at]) / most,
            _ => SCORE_MAX,
        };
        let cpu_memory = cores_and_memory(&shape.requests);
        let score = |at: usize| {
            let emptiness = emptiness(&self.sites[at], self.rooms, cpu_memory);
            emptiness + SPREAD_WEIGHT * spread(at)
        };
        open.into_iter().max_by_key(|at| (score(*at), Reverse(*at)))
    }

    /// Finds out which sites take a shape.
    fn open(&mut self, pod: &Pod) {
        if self.open_to.contains_key(&pod.shape) {
            return;
        }
        let shape = &self.problem.shapes[pod.shape.0 as usize];
        let takes = |site: &Site<'_>| match site.what {
            What::Node(node) => {
                let label = |key: &str| node.labels.get(key).map(AsRef::as_ref);
                tolerates_all(&shape.tolerations, &node.taints, true).is_ok()
                    && is_selected(shape, label)
            }
            What::New(launch) => is_new_selected(self.problem, launch, shape),
        };
        let sites = self.sites.iter().enumerate();
        let open = sites.filter(|(_, site)| takes(site)).map(|(at, _)| at);
        self.open_to.insert(pod.shape, open.collect());
    }
}

/// How empty a node would be, and how evenly used, of a hundred each.
fn emptiness(site: &Site<'_>, rooms: &Rooms, need: [u64; 2]) -> u64 {
    let free = rooms.cores_and_memory(&site.free);
    let share = |n: usize| {
        let left = u128::from(free[n].saturating_sub(need[n])) * u128::from(SCORE_MAX);
        let share = left / u128::from(site.size[n].max(1));
        u64::try_from(share).unwrap_or(SCORE_MAX).min(SCORE_MAX)
    };
    let (cores, memory) = (share(0), share(1));
    (cores + memory) / 2 + SCORE_MAX - cores.abs_diff(memory) / 2
}

fn cores_and_memory(resources: &Resources) -> [u64; 2] {
    [ResourceName::Cpu, ResourceName::Memory].map(|name| resources.get(&name))
}

/// The type and offering that a launch is planned to become.
fn bought<'p>(problem: &'p Problem, launch: &Launch) -> (&'p InstanceType, Option<&'p Offering>) {
    let (ty, offering) = launch.offering;
    let ty = &problem.types[ty.0 as usize];
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
    let pool = &problem.pools[launch.pool.0 as usize];
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
