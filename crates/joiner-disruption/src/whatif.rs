//! Where pods would go if some nodes were gone.
//!
//! One working copy of the problem serves all questions of a pass: nodes are closed, their pods made
//! homeless, the solver asked, and everything put back. The copy is smaller than the original: a
//! bound pod that no topology rule, port, volume or daemon makes interesting is folded into the room
//! of its node, and comes back only when its own node is in question. Of the nodes that could take
//! pods only the roomiest are left open when it is about money: what is missed is at most a saving.
//!
//! Pods that wait already are not part of a question. Those for which there is room are seated first
//! and then count as bound there, so that nobody else is promised their room, and they need another
//! place if that node goes. The others need a new node in any case; that is provisioning's business.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{
    Name, Node, Plan, Pod, PodIx, PodShape, PodTerm, Problem, ResourceName, Resources, Selector,
    StepLimit, keys,
};

use crate::candidates::is_no_destination;
use crate::fleet::Fleet;

/// How many nodes a question leaves open for each pod that needs a place.
const HOMES_PER_POD: usize = 2;
/// So many are left open in any case.
const HOMES_MIN: usize = 40;
/// And never more than so many.
const HOMES_MAX: usize = 400;

/// How hard to look for a cheap answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// To see whether a set of nodes is worth a closer look.
    Explore,
    /// As for any plan.
    Full,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Drift: any node that is open takes pods.
    MustGo,
    /// Consolidation: nodes inside their quiet time take none.
    ToSave,
}

/// What would happen.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// New nodes and where pods go.
    pub(crate) plan: Plan,
    /// Pods without a place, and why.
    pub(crate) stranded: Vec<(PodIx, String)>,
}

/// A working copy of the fleet's problem, for questions.
pub(crate) struct WhatIf<'f> {
    fleet: &'f Fleet<'f>,
    work: Problem,
    /// For each pod of the copy the one it stands for.
    origin: Vec<PodIx>,
    /// For each pod of the problem its place in the copy; none when it is folded into its node.
    place: Vec<Option<u32>>,
    /// Pods that wait and were seated, by node.
    guests: BTreeMap<u32, Vec<PodIx>>,
    /// Nodes that take no pods for money.
    resting: Vec<u32>,
    /// Cores and memory that are free, by node.
    free: Vec<[u64; 2]>,
    /// Nodes by zone and pool.
    alike: Vec<Vec<u32>>,
    /// Questions asked so far.
    pub(crate) n_asked: u32,
}

impl<'f> WhatIf<'f> {
    /// Copies what matters.
    pub(crate) fn new(fleet: &'f Fleet<'f>) -> Self {
        Self::with_seats(fleet, &seat_waiting(fleet.problem))
    }

    /// The same, where it is known already where pods that wait are seated.
    pub(crate) fn with_seats(fleet: &'f Fleet<'f>, seats: &Seats) -> Self {
        let problem = fleet.problem;
        let mut guests: BTreeMap<u32, Vec<PodIx>> = BTreeMap::new();
        for (pod, node) in seats {
            guests.entry(*node).or_default().push(*pod);
        }
        let telling = Telling::new(problem);
        let mut nodes = problem.nodes.clone();
        for member in fleet.members.iter().filter(|m| m.in_command || m.deleting) {
            nodes[member.node.0 as usize].closed = true;
        }
        let mut this = Self {
            fleet,
            work: Problem {
                pods: Vec::new(),
                shapes: problem.shapes.clone(),
                nodes,
                pools: problem.pools.clone(),
                types: problem.types.clone(),
                daemons: problem.daemons.clone(),
                well_known: problem.well_known.clone(),
                policy: problem.policy,
            },
            origin: Vec::new(),
            place: vec![None; problem.pods.len()],
            guests,
            resting: Vec::new(),
            free: problem
                .nodes
                .iter()
                .map(|n| cores_and_memory(&n.allocatable))
                .collect(),
            alike: alike(problem),
            n_asked: 0,
        };
        for (ix, pod) in (0u32..).zip(&problem.pods) {
            let seat = seats.get(&PodIx(ix)).copied();
            let Some(node) = pod.node.map(|node| node.0).or(seat) else {
                continue;
            };
            let used = cores_and_memory(&problem.shape(PodIx(ix)).requests);
            for (free, used) in this.free[node as usize].iter_mut().zip(used) {
                *free = free.saturating_sub(used);
            }
            if telling.must_stay(pod) {
                this.push(PodIx(ix), Some(node));
            } else {
                fold(
                    &mut this.work.nodes[node as usize],
                    problem.shape(PodIx(ix)),
                );
            }
        }
        let resting = fleet.members.iter().filter(|m| is_no_destination(fleet, m));
        let open = |n: &u32| !this.work.nodes[*n as usize].closed;
        this.resting = resting.map(|m| m.node.0).filter(open).collect();
        this
    }

    fn push(&mut self, pod: PodIx, node: Option<u32>) {
        let at = u32::try_from(self.work.pods.len()).unwrap_or(u32::MAX);
        self.place[pod.0 as usize] = Some(at);
        self.origin.push(pod);
        self.work.pods.push(Pod {
            node: node.map(joiner_model::NodeIx),
            ..self.fleet.problem[pod].clone()
        });
    }

    /// How many pods a question about these members is about.
    pub(crate) fn n_pods(&self, members: &[usize]) -> usize {
        let pods = members.iter().map(|m| self.fleet.members[*m].pods.len());
        pods.sum()
    }

    /// What would happen if these members were gone.
    pub(crate) fn ask(&mut self, members: &[usize], purpose: Purpose, effort: Effort) -> Answer {
        self.n_asked += 1;
        let homeless = homeless(self.fleet, &self.guests, members);
        if self.work.pools.iter().all(|pool| pool.closed.is_some()) {
            let closed = self.work.pools.iter().map(|pool| {
                let why = pool.closed.as_deref().unwrap_or_default();
                (pool.name.clone(), why.to_owned())
            });
            let why = joiner_model::none_ready(&closed.collect::<Vec<_>>());
            let homeless = homeless.into_iter();
            return Answer {
                plan: Plan::default(),
                stranded: homeless.map(|pod| (pod, why.clone())).collect(),
            };
        }
        let mut undo = self.remove(members, &homeless);
        if purpose == Purpose::ToSave {
            self.bar_resting(&mut undo);
        }
        self.shortlist(&homeless, purpose, &mut undo);
        self.work.policy.steps_max = match effort {
            Effort::Explore => StepLimit(self.fleet.settings.explore_steps),
            Effort::Full => StepLimit(self.fleet.settings.final_steps),
        };
        let plan = joiner_solver::solve(&self.work);
        let answer = self.answer(plan, &homeless);
        self.put_back(undo);
        answer
    }

    /// Closes members and makes their pods homeless.
    fn remove(&mut self, members: &[usize], homeless: &[PodIx]) -> Undo {
        let mut undo = Undo {
            n_pods: self.work.pods.len(),
            closed: Vec::new(),
            pools: Vec::new(),
            bound: Vec::new(),
        };
        for m in members {
            let n = self.fleet.members[*m].node.0;
            let node = &mut self.work.nodes[n as usize];
            undo.pools.push((n, node.pool.take()));
            close(node, n, &mut undo);
        }
        for pod in homeless {
            match self.place[pod.0 as usize] {
                Some(at) => {
                    let node = self.work.pods[at as usize].node.take();
                    undo.bound.push((at, node));
                }
                None => self.push(*pod, None),
            }
        }
        undo
    }

    fn put_back(&mut self, undo: Undo) {
        for (at, node) in undo.bound {
            self.work.pods[at as usize].node = node;
        }
        for pod in &self.origin[undo.n_pods..] {
            self.place[pod.0 as usize] = None;
        }
        self.origin.truncate(undo.n_pods);
        self.work.pods.truncate(undo.n_pods);
        for n in undo.closed {
            self.work.nodes[n as usize].closed = false;
        }
        for (n, pool) in undo.pools {
            self.work.nodes[n as usize].pool = pool;
        }
    }

    /// Closes the nodes inside their quiet time.
    fn bar_resting(&mut self, undo: &mut Undo) {
        for n in &self.resting {
            close(&mut self.work.nodes[*n as usize], *n, undo);
        }
    }

    /// Closes nodes that have no room for any of these pods and, where it is about money only, all
    /// but the roomiest of the others: a few pods do not need thousands of places to choose from.
    fn shortlist(&mut self, homeless: &[PodIx], purpose: Purpose, undo: &mut Undo) {
        let sizes = homeless
            .iter()
            .map(|pod| cores_and_memory(&self.fleet.problem.shape(*pod).requests));
        let least = sizes
            .reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1])])
            .unwrap_or([0, 0]);
        let most = match purpose {
            Purpose::MustGo => usize::MAX,
            Purpose::ToSave => (homeless.len() * HOMES_PER_POD).clamp(HOMES_MIN, HOMES_MAX),
        };
        let mut ranked: Vec<(usize, u32)> = Vec::new();
        for group in &self.alike {
            let open = group
                .iter()
                .filter(|n| !self.work.nodes[**n as usize].closed);
            let mut open: Vec<u32> = open.copied().collect();
            open.sort_by_key(|n| (std::cmp::Reverse(self.free[*n as usize]), *n));
            // From every zone and pool its roomiest, then the next of each.
            ranked.extend(open.into_iter().enumerate());
        }
        ranked.sort_unstable();
        let mut n_open = 0;
        for (_, n) in ranked {
            let free = self.free[n as usize];
            let fits = free[0] >= least[0] && free[1] >= least[1];
            if fits && n_open < most {
                n_open += 1;
            } else {
                close(&mut self.work.nodes[n as usize], n, undo);
            }
        }
    }

    /// The solver's plan in terms of the problem, and who has no place.
    fn answer(&self, mut plan: Plan, homeless: &[PodIx]) -> Answer {
        let original = |pods: &mut Vec<PodIx>| {
            for pod in pods {
                *pod = self.origin[pod.0 as usize];
            }
        };
        let mut stranded = Vec::new();
        for launch in &mut plan.launches {
            original(&mut launch.pods);
        }
        for placement in &mut plan.placements {
            original(&mut placement.pods);
            let node = &self.work[placement.node];
            if node.pool.is_some() && !node.initialized {
                let why = format!("would schedule against uninitialized node/{}", node.name);
                stranded.extend(placement.pods.iter().map(|pod| (*pod, why.clone())));
            }
        }
        for left in &mut plan.unplaced {
            left.pod = self.origin[left.pod.0 as usize];
            let why: Vec<String> = left.refusals.iter().map(ToString::to_string).collect();
            stranded.push((left.pod, why.join("; ")));
        }
        for pod in homeless {
            if let Some(why) = &self.fleet.problem[*pod].ignored {
                stranded.push((*pod, why.to_string()));
            }
        }
        Answer { plan, stranded }
    }
}

/// How to put back what a question changed.
struct Undo {
    n_pods: usize,
    closed: Vec<u32>,
    pools: Vec<(u32, Option<Name>)>,
    bound: Vec<(u32, Option<joiner_model::NodeIx>)>,
}

/// Closes a node that is open, to be opened again.
fn close(node: &mut Node, n: u32, undo: &mut Undo) {
    if !node.closed {
        node.closed = true;
        undo.closed.push(n);
    }
}

/// Cores and memory.
pub(crate) fn cores_and_memory(resources: &Resources) -> [u64; 2] {
    [ResourceName::Cpu, ResourceName::Memory].map(|name| resources.get(&name))
}

/// Nodes that are in the same zone and pool, in order of their names.
fn alike(problem: &Problem) -> Vec<Vec<u32>> {
    let mut groups: BTreeMap<(Option<&Name>, Option<&Name>), Vec<u32>> = BTreeMap::new();
    for (n, node) in (0u32..).zip(&problem.nodes) {
        let zone = node.labels.get(keys::ZONE);
        groups
            .entry((zone, node.pool.as_ref()))
            .or_default()
            .push(n);
    }
    groups.into_values().collect()
}

/// Pods that need another place when these members go.
fn homeless(
    fleet: &Fleet<'_>,
    guests: &BTreeMap<u32, Vec<PodIx>>,
    members: &[usize],
) -> Vec<PodIx> {
    let members = members.iter().map(|m| &fleet.members[*m]);
    let pods = members.flat_map(|member| {
        let own = member.pods.iter().filter(|moved| !moved.stuck);
        let own = own.map(|moved| moved.pod);
        own.chain(guests.get(&member.node.0).into_iter().flatten().copied())
    });
    pods.collect()
}

/// The nodes of pods that wait.
pub(crate) type Seats = BTreeMap<PodIx, u32>;

/// Where pods that wait already can be seated on nodes there are.
pub(crate) fn seat_waiting(problem: &Problem) -> Seats {
    if problem.pending().next().is_none() {
        return BTreeMap::new();
    }
    let plan = joiner_solver::solve(problem);
    let placements = plan.placements.iter();
    placements
        .flat_map(|placement| placement.pods.iter().map(|pod| (*pod, placement.node.0)))
        .collect()
}

/// Takes what a pod uses off the room of its node.
fn fold(node: &mut Node, shape: &PodShape) {
    match node.allocatable.minus(&shape.requests) {
        Ok(left) => node.allocatable = left,
        Err(_) => {
            node.allocatable = node.allocatable.minus_saturating(&shape.requests);
            // A node with more on it than it can hold takes nothing new.
            node.closed = true;
        }
    }
}

/// Which shapes somebody's topology rule is about.
struct Telling {
    shapes: Vec<bool>,
}

impl Telling {
    fn new(problem: &Problem) -> Self {
        let mut rules: BTreeSet<(Option<&Name>, &[Name], Option<&Selector>)> = BTreeSet::new();
        for shape in &problem.shapes {
            for term in pod_terms(shape) {
                rules.insert((None, &term.namespaces, term.selector.as_ref()));
            }
            for spread in &shape.spreads {
                rules.insert((Some(&shape.namespace), &[], spread.selector.as_ref()));
            }
        }
        let about = |shape: &PodShape| {
            rules.iter().any(|(own, listed, selector)| {
                let there = *own == Some(&shape.namespace) || listed.contains(&shape.namespace);
                there && selector.is_none_or(|selector| selector.matches(&shape.labels))
            })
        };
        let keeps = |shape: &PodShape| {
            !shape.ports.is_empty() || pod_terms(shape).next().is_some() || about(shape)
        };
        Self {
            shapes: problem.shapes.iter().map(keeps).collect(),
        }
    }

    /// True when more than its size matters about a bound pod.
    fn must_stay(&self, pod: &Pod) -> bool {
        pod.daemon.is_some() || !pod.claims.is_empty() || self.shapes[pod.shape.0 as usize]
    }
}

fn pod_terms(shape: &PodShape) -> impl Iterator<Item = &PodTerm> {
    let wanted = shape.preferred_affinity.iter();
    let unwanted = shape.preferred_anti_affinity.iter();
    let preferred = wanted.chain(unwanted).map(|preference| &preference.term);
    let required = shape.affinity.iter().chain(&shape.anti_affinity);
    required.chain(preferred)
}

/// The whole problem that the plan of a command about these members answers, for whoever wants to
/// check it: nodes closed, pods homeless, pods that wait seated or set aside. Members that go by another
/// command before it, `aside`, take nobody in.
#[must_use]
pub fn question(fleet: &Fleet<'_>, aside: &[usize], members: &[usize]) -> Problem {
    let mut problem = fleet.problem.clone();
    for m in aside {
        problem.nodes[fleet.members[*m].node.0 as usize].closed = true;
    }
    let seats = seat_waiting(&problem);
    let mut guests: BTreeMap<u32, Vec<PodIx>> = BTreeMap::new();
    for (pod, node) in &seats {
        guests.entry(*node).or_default().push(*pod);
    }
    let waiting: Vec<PodIx> = problem.pending().collect();
    for pod in waiting {
        let own = &mut problem[pod];
        match seats.get(&pod) {
            Some(node) => own.node = Some(joiner_model::NodeIx(*node)),
            None => own.ignored = Some("it waits for a node of its own".into()),
        }
    }
    for pod in homeless(fleet, &guests, members) {
        problem[pod].node = None;
    }
    for m in members {
        let node = &mut problem.nodes[fleet.members[*m].node.0 as usize];
        node.closed = true;
        node.pool = None;
    }
    problem
}
