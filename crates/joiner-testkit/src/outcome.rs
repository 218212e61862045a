//! A verified plan, as tests like to see it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use joiner_model::{Launch, NanoDollars, Plan, PodIx, Problem, keys};

/// Prices closer than this are equal: floats in tests, integers inside.
const PRICE_TOLERANCE: f64 = 1e-8;

/// Where a pod ended up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Name of the node: one that exists, or the plan's name for a new one.
    pub node: String,
    /// It is yet to be bought.
    pub new: bool,
    /// Its pool; empty for a node outside of pools.
    pub pool: String,
    /// Its instance type: of a new node, the one to launch.
    pub instance_type: String,
    /// Its zone: of a new node, the one to launch in.
    pub zone: String,
    /// How it is paid for: of a new node, what to launch.
    pub capacity_type: String,
}

/// A problem and its verified plan. Pods are named `name` in namespace `default`, or
/// `namespace/name`; assertions panic with the whole plan in the message.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was asked.
    pub problem: Problem,
    /// What was answered.
    pub plan: Plan,
    seats: BTreeMap<String, Seat>,
    left_over: BTreeMap<String, String>,
}

impl Outcome {
    /// Solves and verifies.
    ///
    /// # Panics
    /// When the verifier finds a violation.
    #[must_use]
    #[track_caller]
    pub fn of(problem: Problem) -> Self {
        let plan = joiner_solver::solve(&problem);
        Self::verified(problem, plan)
    }

    /// Verifies a plan that somebody else made.
    ///
    /// # Panics
    /// When the verifier finds a violation.
    #[must_use]
    #[track_caller]
    pub fn verified(problem: Problem, plan: Plan) -> Self {
        let violations = joiner_verify::check(&problem, &plan);
        let mut seats = BTreeMap::new();
        for launch in &plan.launches {
            let seat = new_seat(&problem, launch);
            for pod in &launch.pods {
                seats.insert(full_name(&problem, *pod), seat.clone());
            }
        }
        for placement in &plan.placements {
            let node = &problem.nodes[placement.node.0 as usize];
            let label = |key: &str| node.labels.get(key).map_or("", AsRef::as_ref).to_owned();
            let seat = Seat {
                node: node.name.to_string(),
                new: false,
                pool: label(keys::NODE_POOL),
                instance_type: label(keys::INSTANCE_TYPE),
                zone: label(keys::ZONE),
                capacity_type: label(keys::CAPACITY_TYPE),
            };
            for pod in &placement.pods {
                seats.insert(full_name(&problem, *pod), seat.clone());
            }
        }
        let left_over = plan.unplaced.iter().map(|left| {
            let reasons: Vec<String> = left.refusals.iter().map(ToString::to_string).collect();
            (full_name(&problem, left.pod), reasons.join("; "))
        });
        let left_over = left_over.collect();
        let outcome = Self {
            problem,
            plan,
            seats,
            left_over,
        };
        let said: Vec<String> = (violations.iter())
            .map(|v| format!("  {:?}: {v}", v.rule))
            .collect();
        outcome.demand(
            said.is_empty(),
            &format!("the verifier refuses the plan:\n{}", said.join("\n")),
        );
        outcome
    }

    /// Where a pod goes, if it goes anywhere.
    #[must_use]
    pub fn find(&self, pod: &str) -> Option<&Seat> {
        self.seats.get(&qualified(pod))
    }

    /// Where a pod goes.
    ///
    /// # Panics
    /// When it is not placed.
    #[must_use]
    #[track_caller]
    pub fn seat(&self, pod: &str) -> &Seat {
        match self.find(pod) {
            Some(seat) => seat,
            None => panic!("pod {pod} is not placed\n{self}"),
        }
    }

    /// Why a pod is left over.
    ///
    /// # Panics
    /// When it is placed, or not in the problem.
    #[must_use]
    #[track_caller]
    pub fn reasons(&self, pod: &str) -> &str {
        match self.left_over.get(&qualified(pod)) {
            Some(reasons) => reasons,
            None => panic!("pod {pod} is not left over\n{self}"),
        }
    }

    /// Pods per domain among the placed pods whose `app` label is `app`: by zone, for example.
    /// The key is one of zone, capacity type, hostname, instance type or node pool.
    #[must_use]
    pub fn count_by(&self, key: &str, app: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for pod in self.problem.pending() {
            let labels = &self.problem.shape(pod).labels;
            let seat = self.seats.get(&full_name(&self.problem, pod));
            if labels.get("app").is_some_and(|label| &**label == app)
                && let Some(seat) = seat
            {
                *counts.entry(seat.domain(key).to_owned()).or_default() += 1;
            }
        }
        counts
    }

    /// Values of an offering's label that the new node of a pod may still take.
    ///
    /// # Panics
    /// When the pod is not on a new node.
    #[must_use]
    #[track_caller]
    pub fn open(&self, pod: &str, key: &str) -> BTreeSet<String> {
        let name = qualified(pod);
        let holds = |launch: &&Launch| {
            let mut pods = launch.pods.iter();
            pods.any(|p| full_name(&self.problem, *p) == name)
        };
        match self.plan.launches.iter().find(holds) {
            Some(launch) => open(&self.problem, launch, key),
            None => panic!("pod {pod} is not on a new node\n{self}"),
        }
    }

    /// Dollars an hour for the new nodes.
    #[must_use]
    pub fn price(&self) -> f64 {
        dollars(self.plan.cost.price)
    }

    /// How far the price is above the proven bound: 0.01 is one percent.
    #[must_use]
    pub fn gap(&self) -> f64 {
        let bound = dollars(self.plan.cost.bound);
        if bound > 0.0 {
            self.price() / bound - 1.0
        } else {
            0.0
        }
    }

    /// The new nodes cost so many dollars an hour.
    #[track_caller]
    pub fn assert_price(&self, expected: f64) -> &Self {
        let close = (self.price() - expected).abs() < PRICE_TOLERANCE;
        self.demand(close, &format!("the price is not {expected}"))
    }

    /// The price is at most so far above the bound.
    #[track_caller]
    pub fn assert_gap_at_most(&self, most: f64) -> &Self {
        let gap = self.gap();
        self.demand(gap <= most, &format!("the gap {gap:.4} is above {most}"))
    }

    /// So many nodes are bought.
    #[track_caller]
    pub fn assert_new_nodes(&self, expected: usize) -> &Self {
        let found = self.plan.launches.len();
        let message = format!("{found} new nodes instead of {expected}");
        self.demand(found == expected, &message)
    }

    /// No pod is left over.
    #[track_caller]
    pub fn assert_all_placed(&self) -> &Self {
        self.demand(self.left_over.is_empty(), "some pods are left over")
    }

    /// A pod is left over, with this text somewhere in the reasons.
    #[track_caller]
    pub fn assert_left_over(&self, pod: &str, reason: &str) -> &Self {
        let found = self.reasons(pod).contains(reason);
        self.demand(found, &format!("{reason:?} is not why {pod} is left over"))
    }

    /// A pod goes to the node of this name.
    #[track_caller]
    pub fn assert_on(&self, pod: &str, node: &str) -> &Self {
        self.expect(pod, "on node", &self.seat(pod).node, node)
    }

    /// A pod goes to a node that is yet to be bought.
    #[track_caller]
    pub fn assert_on_new_node(&self, pod: &str) -> &Self {
        let new = self.seat(pod).new;
        self.demand(new, &format!("pod {pod} is not on a new node"))
    }

    /// A pod goes to a node of this pool.
    #[track_caller]
    pub fn assert_pool(&self, pod: &str, pool: &str) -> &Self {
        self.expect(pod, "in pool", &self.seat(pod).pool, pool)
    }

    /// A pod goes to a node of this instance type.
    #[track_caller]
    pub fn assert_type(&self, pod: &str, instance_type: &str) -> &Self {
        let found = &self.seat(pod).instance_type;
        self.expect(pod, "on type", found, instance_type)
    }

    /// A pod goes to this zone.
    #[track_caller]
    pub fn assert_zone(&self, pod: &str, zone: &str) -> &Self {
        self.expect(pod, "in zone", &self.seat(pod).zone, zone)
    }

    /// A pod goes to a node paid for like this.
    #[track_caller]
    pub fn assert_capacity_type(&self, pod: &str, capacity_type: &str) -> &Self {
        let found = &self.seat(pod).capacity_type;
        self.expect(pod, "on capacity type", found, capacity_type)
    }

    /// Two pods share a node.
    #[track_caller]
    pub fn assert_together(&self, one: &str, other: &str) -> &Self {
        let same = self.seat(one).node == self.seat(other).node;
        self.demand(same, &format!("{one} and {other} are on two nodes"))
    }

    /// Two pods are on different nodes.
    #[track_caller]
    pub fn assert_apart(&self, one: &str, other: &str) -> &Self {
        let same = self.seat(one).node == self.seat(other).node;
        self.demand(!same, &format!("{one} and {other} share a node"))
    }

    /// Pods of an app per domain, such as `"a:2 b:1"`; see [`Outcome::count_by`].
    #[track_caller]
    pub fn assert_counts(&self, key: &str, app: &str, expected: &str) -> &Self {
        let counts = self.count_by(key, app);
        let found: Vec<String> = counts.iter().map(|(d, n)| format!("{d}:{n}")).collect();
        self.expect(
            app,
            &format!("spread over {key} as"),
            &found.join(" "),
            expected,
        )
    }

    /// The plan in words is this, line by line, leading and trailing spaces aside.
    #[track_caller]
    pub fn assert_plan(&self, expected: &str) -> &Self {
        let lines = |text: &str| -> Vec<String> {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.map(str::to_owned).collect()
        };
        let same = lines(&self.to_string()) == lines(expected);
        self.demand(
            same,
            &format!("expected this plan:\n{expected}\nfound this one:"),
        )
    }

    #[track_caller]
    fn expect(&self, pod: &str, what: &str, found: &str, expected: &str) -> &Self {
        let message = format!("{pod} is {what} {found:?}, not {expected:?}");
        self.demand(found == expected, &message)
    }

    #[track_caller]
    fn demand(&self, fact: bool, message: &str) -> &Self {
        assert!(fact, "{message}\n{self}");
        self
    }
}

impl Seat {
    fn domain(&self, key: &str) -> &str {
        match key {
            keys::ZONE => &self.zone,
            keys::CAPACITY_TYPE => &self.capacity_type,
            keys::HOSTNAME => &self.node,
            keys::INSTANCE_TYPE => &self.instance_type,
            keys::NODE_POOL => &self.pool,
            _ => panic!("pods cannot be counted by {key}"),
        }
    }
}

impl fmt::Display for Outcome {
    /// One line per node and per pod left over, sorted; namespace `default` goes without saying.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pods = |pods: &[PodIx]| {
            let mut names: Vec<String> = (pods.iter())
                .map(|pod| short_name(&self.problem, *pod))
                .collect();
            names.sort();
            names.join(" ")
        };
        let mut lines = Vec::new();
        for placement in &self.plan.placements {
            let node = &self.problem.nodes[placement.node.0 as usize].name;
            lines.push(format!("place {node}: {}", pods(&placement.pods)));
        }
        for launch in &self.plan.launches {
            let seat = new_seat(&self.problem, launch);
            lines.push(format!(
                "launch {} {}@{} {} {}: {}",
                seat.pool,
                seat.instance_type,
                seat.zone,
                seat.capacity_type,
                launch.price,
                pods(&launch.pods)
            ));
        }
        for left in &self.plan.unplaced {
            let pod = full_name(&self.problem, left.pod);
            let name = short_name(&self.problem, left.pod);
            lines.push(format!("left over {name}: {}", self.left_over[&pod]));
        }
        lines.sort_by_cached_key(|line| {
            let rank = ["place", "launch", "left"];
            let rank = rank.iter().position(|verb| line.starts_with(verb));
            let pods = line.split_once(": ").map(|(_, pods)| pods.to_owned());
            (rank, pods)
        });
        f.write_str(&lines.join("\n"))
    }
}

fn new_seat(problem: &Problem, launch: &Launch) -> Seat {
    let instance_type = &problem.types[launch.offering.0.0 as usize];
    let offering = &instance_type.offerings[launch.offering.1.0 as usize];
    let label = |key: &str| {
        offering
            .labels
            .get(key)
            .map_or("", AsRef::as_ref)
            .to_owned()
    };
    Seat {
        node: launch.name.to_string(),
        new: true,
        pool: problem.pools[launch.pool.0 as usize].name.to_string(),
        instance_type: instance_type.name.to_string(),
        zone: label(keys::ZONE),
        capacity_type: label(keys::CAPACITY_TYPE),
    }
}

fn open(problem: &Problem, launch: &Launch, key: &str) -> BTreeSet<String> {
    let types = launch.types.iter().map(|ix| &problem.types[ix.0 as usize]);
    let offerings = types.flat_map(|ty| ty.offerings.iter().filter(|offering| offering.available));
    let left = offerings.filter(|offering| {
        launch.requirements.iter().all(|requirement| {
            let value = offering.labels.get(requirement.key());
            value.is_none_or(|value| requirement.has(value))
        })
    });
    left.filter_map(|offering| offering.labels.get(key))
        .map(ToString::to_string)
        .collect()
}

fn full_name(problem: &Problem, pod: PodIx) -> String {
    problem.pods[pod.0 as usize].name.to_string()
}

fn short_name(problem: &Problem, pod: PodIx) -> String {
    let name = full_name(problem, pod);
    name.strip_prefix("default/").unwrap_or(&name).to_owned()
}

fn qualified(pod: &str) -> String {
    if pod.contains('/') {
        pod.to_owned()
    } else {
        format!("default/{pod}")
    }
}

fn dollars(price: NanoDollars) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "prices are far below 2^53 nano-dollars"
    )]
    let nanos = price.get() as f64;
    nanos / 1e9
}
