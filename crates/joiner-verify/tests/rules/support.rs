//! Small problems with plans, legal until a test breaks them.
//!
//! The starting point: one pool, `general`, that sells `small` (2 cores) and `large` (8 cores) on
//! demand in zones a, b and c.

use joiner_model::{
    Claim, Daemon, DaemonIx, Effect, HostPort, InstanceType, Labels, Launch, Name, NanoDollars,
    Node, NodeIx, Offering, OfferingIx, Operator, Placement, Plan, Pod, PodIx, PodShape, PodTerm,
    Pool, PoolIx, Problem, Protocol, Refusal, Requirement, Requirements, ResourceName, Resources,
    Selector, SelectorExpr, SelectorOp, ShapeIx, Spread, Taint, Toleration, TolerationOp, TypeIx,
    Unplaced, keys,
};
use joiner_verify::{Rule, check};

pub(crate) const SMALL: TypeIx = TypeIx(0);
pub(crate) const LARGE: TypeIx = TypeIx(1);
pub(crate) const GENERAL: PoolIx = PoolIx(0);
pub(crate) const ZONE: &str = keys::ZONE;
pub(crate) const HOST: &str = keys::HOSTNAME;
pub(crate) const GIB: u64 = 1 << 30;

/// A problem and an answer to it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) problem: Problem,
    pub(crate) plan: Plan,
}

impl Case {
    pub(crate) fn new() -> Self {
        let problem = Problem {
            types: vec![
                instance_type("small", 2000, 4, 100_000_000),
                instance_type("large", 8000, 16, 400_000_000),
            ]
            .into(),
            pools: vec![pool("general", &[SMALL, LARGE])],
            ..Problem::default()
        };
        Self {
            problem,
            plan: Plan::default(),
        }
    }

    /// Adds a pod to place.
    pub(crate) fn pod(&mut self, shape: &PodShape) -> PodIx {
        self.any_pod(shape, None)
    }

    pub(crate) fn pods(&mut self, n: usize, shape: &PodShape) -> Vec<PodIx> {
        (0..n).map(|_| self.pod(shape)).collect()
    }

    /// Adds a pod that runs on a node.
    pub(crate) fn bound(&mut self, node: NodeIx, shape: &PodShape) -> PodIx {
        self.any_pod(shape, Some(node))
    }

    fn any_pod(&mut self, shape: &PodShape, node: Option<NodeIx>) -> PodIx {
        let shapes = &mut self.problem.shapes;
        let known = shapes.iter().position(|s| s == shape);
        let ix = known.unwrap_or_else(|| {
            shapes.push(shape.clone());
            shapes.len() - 1
        });
        let pod = self.problem.pods.len();
        self.problem.pods.push(Pod {
            name: format!("{}/pod-{pod}", shape.namespace).into(),
            shape: ShapeIx(ix as u32),
            claims: Box::new([]),
            node,
            daemon: None,
            terminating: false,
            ignored: None,
        });
        PodIx(pod as u32)
    }

    pub(crate) fn claim(&mut self, pod: PodIx, claim: &str) {
        self.problem[pod].claims = Box::new([Claim {
            driver: "ebs".into(),
            claim: claim.into(),
        }]);
    }

    /// Adds a node of 4 cores and 8 GiB in a zone.
    pub(crate) fn node(&mut self, name: &str, zone: &str) -> NodeIx {
        let room = resources(4000, 8, 20);
        self.problem.nodes.push(Node {
            name: name.into(),
            labels: labels(&[(HOST, name), (ZONE, zone)]),
            taints: Vec::new(),
            capacity: room.clone(),
            allocatable: room,
            pool: None,
            initialized: true,
            closed: false,
            volume_limits: Default::default(),
        });
        NodeIx(self.problem.nodes.len() as u32 - 1)
    }

    pub(crate) fn daemon(&mut self, shape: PodShape) -> DaemonIx {
        let name = format!("system/daemon-{}", self.problem.daemons.len()).into();
        self.problem.daemons.push(Daemon { name, shape });
        DaemonIx(self.problem.daemons.len() as u32 - 1)
    }

    /// Buys a node of the general pool for pods.
    pub(crate) fn launch(
        &mut self,
        types: &[TypeIx],
        rules: &[Requirement],
        pods: &[PodIx],
    ) -> usize {
        self.launch_from(GENERAL, types, rules, pods)
    }

    pub(crate) fn launch_from(
        &mut self,
        pool: PoolIx,
        types: &[TypeIx],
        rules: &[Requirement],
        pods: &[PodIx],
    ) -> usize {
        let n = self.plan.launches.len();
        self.plan.launches.push(Launch {
            name: format!("new-{n}").into(),
            pool,
            requirements: rules.to_vec(),
            types: types.to_vec(),
            offering: (SMALL, OfferingIx(0)),
            price: NanoDollars::ZERO,
            pods: pods.to_vec(),
            requests: Resources::new(),
            min_values_relaxed: false,
        });
        self.settle();
        n
    }

    /// Buys one node in a zone for pods.
    pub(crate) fn in_zone(&mut self, zone: &str, pods: &[PodIx]) -> usize {
        self.launch(&[SMALL, LARGE], &[is(ZONE, zone)], pods)
    }

    pub(crate) fn place(&mut self, node: NodeIx, pods: &[PodIx]) {
        let pods = pods.to_vec();
        self.plan.placements.push(Placement { node, pods });
    }

    pub(crate) fn leave(&mut self, pod: PodIx) {
        let refusals = vec![Refusal::NoPools];
        self.plan.unplaced.push(Unplaced { pod, refusals });
    }

    /// Makes figures that follow from the rest follow from it.
    pub(crate) fn settle(&mut self) {
        let mut total = NanoDollars::ZERO;
        for launch in &mut self.plan.launches {
            launch.requests = Resources::new();
            for pod in &launch.pods {
                launch.requests.add(&self.problem.shape(*pod).requests);
            }
            let best = cheapest(&self.problem, launch);
            if let Some((price, ty, offering)) = best {
                launch.price = price;
                launch.offering = (ty, offering);
                total += price;
            }
        }
        self.plan.cost.price = total;
        self.plan.cost.bound = total;
    }

    #[track_caller]
    pub(crate) fn legal(self) -> Self {
        let found: Vec<String> = check(&self.problem, &self.plan)
            .iter()
            .map(|v| v.to_string())
            .collect();
        assert!(found.is_empty(), "should be legal: {found:#?}");
        self
    }

    /// The same with one thing wrong: exactly this rule is reported.
    #[track_caller]
    pub(crate) fn broken_by(
        &self,
        rule: Rule,
        what: &str,
        change: impl FnOnce(&mut Self),
    ) -> String {
        let mut broken = self.clone();
        change(&mut broken);
        broken.breaks(rule, what)
    }

    /// Only this rule is broken; returns the first message.
    #[track_caller]
    pub(crate) fn breaks(&self, rule: Rule, what: &str) -> String {
        let found = check(&self.problem, &self.plan);
        assert!(!found.is_empty(), "{what}: not noticed");
        for violation in &found {
            assert_eq!(violation.rule, rule, "{what}: {violation}");
        }
        found[0].to_string()
    }

    /// The same with something changed that is no violation.
    #[track_caller]
    pub(crate) fn legal_with(&self, change: impl FnOnce(&mut Self)) {
        let mut changed = self.clone();
        change(&mut changed);
        changed.legal();
    }

    pub(crate) fn shape_of(&mut self, pod: PodIx) -> &mut PodShape {
        let shape = self.problem[pod].shape.0 as usize;
        &mut self.problem.shapes[shape]
    }
}

/// Price and place of the cheapest available offering that a launch's requirements allow.
fn cheapest(problem: &Problem, launch: &Launch) -> Option<(NanoDollars, TypeIx, OfferingIx)> {
    let mut best = None;
    for ty in &launch.types {
        let Some(it) = problem.types.get(ty.0 as usize) else {
            continue;
        };
        for (offering, sold) in (0..).map(OfferingIx).zip(&it.offerings) {
            let fine = launch.requirements.iter().all(|r| {
                let value = sold.labels.get(r.key());
                value.is_none_or(|value| r.has(value))
            });
            if sold.available && fine {
                let this = (sold.price, *ty, offering);
                best = Some(best.map_or(
                    this,
                    |b: (NanoDollars, _, _)| if this.0 < b.0 { this } else { b },
                ));
            }
        }
    }
    best
}

pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(k, v)| (Name::from(*k), Name::from(*v)))
        .collect()
}

pub(crate) fn resources(cpu: u64, gib: u64, pods: u64) -> Resources {
    Resources::new()
        .with(ResourceName::Cpu, cpu)
        .with(ResourceName::Memory, gib * GIB)
        .with(ResourceName::Pods, pods)
}

pub(crate) fn instance_type(name: &str, cpu: u64, gib: u64, nanos: u64) -> InstanceType {
    InstanceType {
        name: name.into(),
        labels: [
            (Name::from(keys::INSTANCE_TYPE), vec![name.into()]),
            (keys::ARCH.into(), vec!["amd64".into()]),
            (keys::OS.into(), vec!["linux".into()]),
        ]
        .into(),
        capacity: resources(cpu, gib, 20),
        overhead: Resources::new(),
        offerings: ["a", "b", "c"]
            .map(|zone| offering(zone, "on-demand", nanos))
            .into(),
    }
}

pub(crate) fn offering(zone: &str, how: &str, nanos: u64) -> Offering {
    Offering {
        labels: labels(&[(ZONE, zone), (keys::CAPACITY_TYPE, how)]),
        price: NanoDollars::new(nanos),
        available: true,
        reservation: None,
        extra_capacity: Resources::new(),
    }
}

pub(crate) fn pool(name: &str, types: &[TypeIx]) -> Pool {
    Pool {
        name: name.into(),
        weight: 0,
        requirements: Requirements::new(),
        labels: labels(&[(keys::NODE_POOL, name)]),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        limits: None,
        types: types.to_vec(),
        closed: None,
    }
}

/// A pod of one core and 1 GiB, labeled `app`.
pub(crate) fn shape(app: &str) -> PodShape {
    PodShape {
        namespace: "web".into(),
        labels: labels(&[("app", app)]),
        requests: resources(1000, 1, 1),
        ..PodShape::default()
    }
}

pub(crate) fn is(key: &str, value: &str) -> Requirement {
    Requirement::is(key, value.into())
}

pub(crate) fn rule(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    let values = values.iter().map(|v| Name::from(*v));
    Requirement::new(key, operator, values).expect("a valid requirement")
}

pub(crate) fn selecting(app: &str) -> Option<Selector> {
    Some(Selector::new(vec![SelectorExpr {
        key: "app".into(),
        op: SelectorOp::In,
        values: [Name::from(app)].into(),
    }]))
}

pub(crate) fn near(key: &str, app: &str) -> PodTerm {
    PodTerm {
        key: key.into(),
        namespaces: vec!["web".into()],
        selector: selecting(app),
    }
}

pub(crate) fn over(key: &str, app: &str) -> Spread {
    Spread {
        key: key.into(),
        max_skew: 1,
        hard: true,
        selector: selecting(app),
        min_domains: None,
        honor_affinity: true,
        honor_taints: false,
    }
}

pub(crate) fn taint(key: &str, effect: Effect) -> Taint {
    Taint {
        key: key.into(),
        value: "".into(),
        effect,
    }
}

pub(crate) fn tolerating(key: &str) -> Toleration {
    Toleration {
        key: key.into(),
        op: TolerationOp::Exists,
        value: "".into(),
        effect: None,
    }
}

pub(crate) fn port(ip: &str, port: u16, protocol: Protocol) -> HostPort {
    HostPort {
        ip: ip.into(),
        port,
        protocol,
    }
}
