//! Which single change would give a pod a place, and for how much: the solver is asked again, about
//! this pod alone, on copies of the problem that differ in one thing.

use std::fmt;

use joiner_model::{
    Labels, Name, NanoDollars, Node, NodeIx, Plan, Pod, PodIx, PodShape, Pool, Problem,
    ResourceName, ShapeIx, StepLimit, keys,
};

use crate::funnel::used;
use crate::remedy_candidates::candidates;
use crate::remedy_changes::Change;
use crate::rounds::solve;

/// Most questions about one pod.
const WHAT_IFS_MAX: usize = 24;
/// One pod is soon placed.
const STEPS: StepLimit = StepLimit(2_000_000);

/// A change that helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What to change.
    pub change: Change,
    /// Where the pod would go.
    pub place: Place,
    /// What that costs more an hour.
    pub price: NanoDollars,
}

/// Where a pod would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// To a node there is, or one that is coming.
    Node(Name),
    /// To a node to buy.
    New {
        /// The pool.
        pool: Name,
        /// The instance type.
        instance_type: Name,
        /// The zone; empty where offerings have none.
        zone: Name,
        /// How it is paid for.
        capacity_type: Name,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node {name}"),
            Self::New {
                pool,
                instance_type,
                zone,
                capacity_type,
            } => write!(
                f,
                "a new {instance_type} ({capacity_type}, {zone}) of NodePool {pool:?}"
            ),
        }
    }
}

/// The single changes that would give a pod a place that a plan leaves over, cheapest first. Changes
/// that take much from the pod come after all others.
///
/// Everything that the plan places stays where it puts it. The number of questions is bounded.
#[must_use]
pub fn remedies(problem: &Problem, plan: &Plan, pod: PodIx) -> Vec<Remedy> {
    if problem[pod].ignored.is_some() {
        return Vec::new();
    }
    let mut bench = Bench::new(problem, plan, pod);
    let mut found: Vec<Remedy> = candidates(&bench.work, bench.pod)
        .into_iter()
        .take(WHAT_IFS_MAX)
        .filter_map(|change| bench.ask(change))
        .collect();
    found.sort_by(|a, b| {
        let rank = |own: &Remedy| (own.change.is_drastic(), own.price, own.change.rank());
        rank(a).cmp(&rank(b))
    });
    found
}

/// A copy of the problem with one pod to place.
struct Bench {
    work: Problem,
    pod: PodIx,
    shape: PodShape,
    pools: Vec<Pool>,
}

impl Bench {
    /// The world as it will be when the plan has been carried out.
    fn new(problem: &Problem, plan: &Plan, pod: PodIx) -> Self {
        let mut nodes = problem.nodes.clone();
        let mut home: Vec<Option<NodeIx>> = problem.pods.iter().map(|own| own.node).collect();
        for placement in &plan.placements {
            for own in &placement.pods {
                home[own.0 as usize] = Some(placement.node);
            }
        }
        for launch in &plan.launches {
            let ix = NodeIx(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
            if let Some(node) = coming(problem, launch) {
                nodes.push(node);
                for own in &launch.pods {
                    home[own.0 as usize] = Some(ix);
                }
            }
        }
        let mut shapes = problem.shapes.clone();
        let shape = problem.shape(pod).clone();
        let own = ShapeIx(u32::try_from(shapes.len()).unwrap_or(u32::MAX));
        shapes.push(shape.clone());
        let folds = !minds_company(problem, pod);
        let mut pods: Vec<Pod> = Vec::new();
        for (own, node) in problem.pods.iter().zip(home) {
            let Some(node) = node else { continue };
            let housed = &problem[own.shape];
            if folds && own.daemon.is_none() && housed.anti_affinity.is_empty() {
                let room = &mut nodes[node.0 as usize].allocatable;
                *room = room.minus_saturating(&housed.requests);
            } else {
                pods.push(Pod {
                    node: Some(node),
                    ..own.clone()
                });
            }
        }
        let ix = PodIx(u32::try_from(pods.len()).unwrap_or(u32::MAX));
        pods.push(Pod {
            shape: own,
            ..problem[pod].clone()
        });
        let mut policy = problem.policy;
        policy.steps_max = policy.steps_max.min(STEPS);
        let work = Problem {
            pods,
            shapes,
            nodes,
            pools: problem.pools.clone(),
            types: problem.types.clone(),
            daemons: problem.daemons.clone(),
            well_known: problem.well_known.clone(),
            policy,
        };
        Self {
            pools: problem.pools.clone(),
            work,
            pod: ix,
            shape,
        }
    }

    /// Makes a change, looks where the pod would go, and takes the change back.
    fn ask(&mut self, change: Change) -> Option<Remedy> {
        if let Some(shape) = self.work.shapes.last_mut() {
            change.to_shape(shape);
        }
        let pool = change.pool().and_then(|name| {
            let mut pools = self.work.pools.iter();
            pools.position(|own| own.name == *name)
        });
        if let Some(p) = pool {
            change.to_pool(&mut self.work.pools[p]);
        }
        let plan = solve(&self.work);
        let remedy = self.place(&plan).map(|place| Remedy {
            change: self.exactly(change, pool, &plan),
            place,
            price: plan.cost.price,
        });
        if let Some(shape) = self.work.shapes.last_mut() {
            shape.clone_from(&self.shape);
        }
        if let Some(p) = pool {
            self.work.pools[p].clone_from(&self.pools[p]);
        }
        remedy
    }

    fn place(&self, plan: &Plan) -> Option<Place> {
        let mut placements = plan.placements.iter();
        if let Some(own) = placements.find(|own| own.pods.contains(&self.pod)) {
            let node = &self.work[own.node];
            return Some(Place::Node(node.name.clone()));
        }
        let mut launches = plan.launches.iter();
        let launch = launches.find(|own| own.pods.contains(&self.pod))?;
        let instance_type = &self.work[launch.offering.0];
        let offering = &instance_type.offerings[launch.offering.1.0 as usize];
        let label = |key: &str| offering.labels.get(key).cloned().unwrap_or_default();
        Some(Place::New {
            pool: self.work[launch.pool].name.clone(),
            instance_type: instance_type.name.clone(),
            zone: label(keys::ZONE),
            capacity_type: label(keys::CAPACITY_TYPE),
        })
    }

    /// A limit was lifted altogether; now it is known how far it has to be raised.
    fn exactly(&self, change: Change, pool: Option<usize>, plan: &Plan) -> Change {
        match (change, pool) {
            (
                Change::RaiseLimit {
                    pool,
                    resource,
                    from,
                    ..
                },
                Some(p),
            ) => Change::RaiseLimit {
                to: round_up(&resource, used(&self.work, plan, p, &resource)),
                pool,
                resource,
                from,
            },
            (change, _) => change,
        }
    }
}

/// True when it matters to a pod who else is where. If it does not, those who do not mind either are
/// no more than the room they take, and thousands of them cost nothing.
fn minds_company(problem: &Problem, pod: PodIx) -> bool {
    let shape = problem.shape(pod);
    let has_terms = !shape.affinity.is_empty()
        || !shape.anti_affinity.is_empty()
        || !shape.preferred_affinity.is_empty()
        || !shape.preferred_anti_affinity.is_empty()
        || !shape.spreads.is_empty();
    has_terms || !shape.ports.is_empty() || !problem[pod].claims.is_empty()
}

/// Whole cores and gibibytes: limits are not written in anything smaller.
fn round_up(resource: &ResourceName, amount: u64) -> u64 {
    match resource {
        ResourceName::Cpu => amount.next_multiple_of(1000),
        ResourceName::Memory | ResourceName::EphemeralStorage => amount.next_multiple_of(1 << 30),
        ResourceName::Pods | ResourceName::Other(_) => amount,
    }
}

/// The node that a launch becomes.
fn coming(problem: &Problem, launch: &joiner_model::Launch) -> Option<Node> {
    let pool = &problem[launch.pool];
    let instance_type = &problem[launch.offering.0];
    let offering = &instance_type.offerings[launch.offering.1.0 as usize];
    let single = |(key, values): (&Name, &Vec<Name>)| match values.as_slice() {
        [value] => Some((key.clone(), value.clone())),
        _ => None,
    };
    let mut labels: Labels = instance_type.labels.iter().filter_map(single).collect();
    labels.extend(offering.labels.clone());
    labels.extend(pool.labels.clone());
    for requirement in &launch.requirements {
        if let Some([value]) = requirement
            .members()
            .map(|own| own.iter().collect::<Vec<_>>())
            .as_deref()
        {
            labels.insert(requirement.key().clone(), (*value).clone());
        }
    }
    labels.insert(keys::INSTANCE_TYPE.into(), instance_type.name.clone());
    labels.insert(keys::HOSTNAME.into(), launch.name.clone());
    let mut allocatable = instance_type.allocatable().ok()?;
    allocatable.add(&offering.extra_capacity);
    let mut capacity = instance_type.capacity.clone();
    capacity.add(&offering.extra_capacity);
    Some(Node {
        name: launch.name.clone(),
        labels,
        taints: pool.taints.clone(),
        capacity,
        allocatable,
        pool: Some(pool.name.clone()),
        initialized: false,
        closed: false,
        volume_limits: Default::default(),
    })
}
