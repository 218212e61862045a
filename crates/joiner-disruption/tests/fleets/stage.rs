//! A fleet made from a world of the testkit, and what becomes of it when commands are carried out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use joiner_disruption::{
    Budget, Command, Decision, EvictionCost, Fleet, Leaver, Member, Memory, Method, Moved,
    NodeOwner, PoolTerms, Reason, Settings, cost, decide, question,
};
use joiner_model::{Name, NanoDollars, Node, NodeIx, Offering, Pod, PodIx, Problem, keys};
use joiner_testkit::{InstanceTypeBuilder, NodeBuilder, Outcome, World, instance_type, node};

/// Cores, gibibytes and the type's name, as in [`World::standard`].
pub(crate) const SMALL: (&str, &str, &str) = ("small", "2", "8Gi");
pub(crate) const MEDIUM: (&str, &str, &str) = ("medium", "4", "16Gi");
pub(crate) const LARGE: (&str, &str, &str) = ("large", "8", "32Gi");

/// These three types for these prices.
pub(crate) fn sold(prices: [f64; 3]) -> Vec<InstanceTypeBuilder> {
    let sizes = [SMALL, MEDIUM, LARGE].into_iter().zip(prices);
    let types = sizes.map(|((name, cpu, memory), price)| {
        instance_type(name).cpu(cpu).memory(memory).price(price)
    });
    types.collect()
}

/// An initialized node of pool `default`, on demand in zone a.
pub(crate) fn own(name: &str, (ty, cpu, memory): (&str, &str, &str)) -> NodeBuilder {
    of_pool(name, "default", (ty, cpu, memory))
}

/// An initialized node of a pool, on demand in zone a.
pub(crate) fn of_pool(
    name: &str,
    pool: &str,
    (ty, cpu, memory): (&str, &str, &str),
) -> NodeBuilder {
    let bare = node(name).instance_type(ty).cpu(cpu).memory(memory);
    bare.capacity_type("on-demand").pool(pool)
}

pub(crate) fn dollars(dollars: f64) -> NanoDollars {
    NanoDollars::new((dollars * 1e9).round() as u64)
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// A budget of so many nodes, always and for everything.
pub(crate) fn budget(nodes: &str) -> Budget {
    Budget {
        nodes: nodes.to_owned(),
        ..Budget::default()
    }
}

/// All that a fleet needs, owned.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) problem: Problem,
    pub(crate) members: Vec<Member>,
    pub(crate) pools: Vec<PoolTerms>,
    pub(crate) moves_left: BTreeMap<Name, u32>,
    pub(crate) settings: Settings,
    pub(crate) memory: Memory,
    pub(crate) changed: Timestamp,
    pub(crate) now: Timestamp,
    n_launched: usize,
}

impl Stage {
    /// Every node that has a pool is a member; all is quiet, and budgets allow everything.
    pub(crate) fn of(world: &World) -> Self {
        let problem = world.problem();
        let pools = problem.pools.iter().map(|pool| PoolTerms {
            name: pool.name.clone(),
            ..PoolTerms::default()
        });
        let now = at("2026-03-02T10:00:00Z");
        let mut stage = Self {
            pools: pools.collect(),
            problem,
            members: Vec::new(),
            moves_left: BTreeMap::new(),
            settings: Settings::default(),
            memory: Memory::default(),
            changed: now,
            now,
            n_launched: 0,
        };
        for n in 0..stage.problem.nodes.len() {
            stage.join(n);
        }
        stage.seat();
        stage
    }

    fn join(&mut self, n: usize) {
        let node = &self.problem.nodes[n];
        let Some(pool) = node.pool.clone() else {
            return;
        };
        let label = |key: &str| node.labels.get(key).cloned().unwrap_or_default();
        let (type_name, zone) = (label(keys::INSTANCE_TYPE), label(keys::ZONE));
        let capacity_type = label(keys::CAPACITY_TYPE);
        let ix = NodeIx(u32::try_from(n).expect("few enough"));
        self.members.push(Member {
            node: ix,
            name: node.name.clone(),
            owner: NodeOwner::Claim(format!("claim-{}", node.name).into()),
            pool: self
                .pools
                .iter()
                .position(|p| p.name == pool)
                .expect("its pool"),
            price: price_of(&self.problem, node),
            capacity_type,
            zone,
            type_name,
            pods: Vec::new(),
            initialized: node.initialized,
            ready: true,
            deleting: false,
            nominated: false,
            do_not_disrupt: false,
            protected_pod: None,
            blocking_budget: None,
            several_budgets: None,
            grace_period: false,
            consolidatable: true,
            drifted: None,
            has_buffer_pods: false,
            in_command: false,
            terminating_instance: false,
        });
    }

    /// Says of every member which of its pods would have to move.
    pub(crate) fn seat(&mut self) {
        let mut moved: BTreeMap<NodeIx, Vec<Moved>> = BTreeMap::new();
        let can_move = |pod: &Pod| pod.daemon.is_none() && !pod.terminating;
        for (ix, pod) in (0u32..).zip(&self.problem.pods) {
            if let Some(node) = pod.node.filter(|_| can_move(pod)) {
                moved.entry(node).or_default().push(Moved {
                    pod: PodIx(ix),
                    cost: EvictionCost::of(0, self.problem.shape(PodIx(ix)).priority),
                    owner: pod.name.rsplit_once('-').map(|(owner, _)| owner.into()),
                    stuck: false,
                });
            }
        }
        for member in &mut self.members {
            member.pods = moved.remove(&member.node).unwrap_or_default();
        }
        self.count();
    }

    /// Totals of pools, from their members.
    pub(crate) fn count(&mut self) {
        for (p, terms) in self.pools.iter_mut().enumerate() {
            let own = || self.members.iter().filter(|m| m.pool == p);
            let leaving = own().filter(|m| m.deleting).count();
            terms.n_leaving = u32::try_from(leaving).expect("few enough");
            terms.n_staying = u32::try_from(own().count() - leaving).expect("few enough");
            terms.total_cost = own().filter_map(|m| m.price).sum();
            terms.total_disruption = own().map(cost::disruption).sum();
        }
    }

    pub(crate) fn fleet(&self) -> Fleet<'_> {
        Fleet {
            problem: &self.problem,
            members: self.members.clone(),
            pools: self.pools.clone(),
            moves_left: self.moves_left.clone(),
            settings: self.settings,
            changed: self.changed,
            now: self.now,
        }
    }

    /// The member of this name, to change.
    #[track_caller]
    pub(crate) fn member(&mut self, name: &str) -> &mut Member {
        let mut members = self.members.iter_mut();
        members.find(|m| m.name.as_ref() == name).expect("a member")
    }

    /// The same with one member changed.
    #[track_caller]
    pub(crate) fn with(mut self, name: &str, change: impl FnOnce(&mut Member)) -> Self {
        change(self.member(name));
        self
    }

    /// The same with the terms of all pools changed.
    pub(crate) fn terms(mut self, change: impl Fn(&mut PoolTerms)) -> Self {
        self.pools.iter_mut().for_each(change);
        self
    }

    /// The same with these members in a node group that keeps so many nodes; they have no claims.
    pub(crate) fn grouped(mut self, group: &str, min: u32, names: &[&str]) -> Self {
        self.pools.push(PoolTerms {
            name: group.into(),
            group_min: Some(min),
            ..PoolTerms::default()
        });
        let pool = self.pools.len() - 1;
        for name in names {
            let member = self.member(name);
            (member.owner, member.pool) = (NodeOwner::Group(group.into()), pool);
            let node = member.node;
            self.problem[node].pool = None;
        }
        self.count();
        self
    }

    /// The same with other settings.
    pub(crate) fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Decides; plans are verified, and the memory is kept.
    #[track_caller]
    pub(crate) fn decide(&mut self) -> Decision {
        let decision = decide(&self.fleet(), &self.memory);
        self.memory = decision.memory.clone();
        for command in &decision.commands {
            self.verify(command);
        }
        decision
    }

    #[track_caller]
    pub(crate) fn verify(&self, command: &Command) {
        if command.plan.launches.is_empty() && command.plan.placements.is_empty() {
            return;
        }
        let problem = question(&self.fleet(), &[], &command.members);
        let outcome = Outcome::verified(problem, command.plan.clone());
        outcome.assert_all_placed();
    }

    /// Names of the nodes that a decision gives back, sorted; `None` for no command.
    #[track_caller]
    pub(crate) fn gone(&mut self) -> Option<String> {
        let decision = self.decide();
        (!decision.commands.is_empty()).then(|| self.names(&decision))
    }

    pub(crate) fn names(&self, decision: &Decision) -> String {
        let members = decision.commands.iter().flat_map(|c| &c.members);
        let mut names: Vec<&str> = members.map(|m| self.members[*m].name.as_ref()).collect();
        names.sort_unstable();
        names.join(" ")
    }

    /// Why a node stays.
    #[track_caller]
    pub(crate) fn why(&mut self, name: &str) -> String {
        let decision = self.decide();
        let at = self.members.iter().position(|m| m.name.as_ref() == name);
        let verdict = &decision.verdicts[at.expect("a member")];
        verdict.stays.as_ref().expect("it stays").to_string()
    }

    /// Buys what the pods that wait need.
    pub(crate) fn provision(&mut self) {
        let plan = joiner_solver::solve(&self.problem);
        let price = plan.cost.price;
        self.apply(&Command {
            reason: Reason::Underutilized,
            method: Method::Multi,
            members: Vec::new(),
            claims: Vec::new(),
            group_nodes: Vec::new(),
            plan,
            is_tight: false,
            from_template: 0,
            price_before: NanoDollars::ZERO,
            price_after: price,
            move_cost: NanoDollars::ZERO,
            why: String::new(),
        });
    }

    /// What all pods would cost if they were planned afresh.
    pub(crate) fn price_afresh(&self) -> NanoDollars {
        let mut problem = self.problem.clone();
        for node in &mut problem.nodes {
            (node.closed, node.pool) = (true, None);
        }
        for pod in &mut problem.pods {
            pod.node = None;
        }
        joiner_solver::solve(&problem).cost.price
    }

    /// What all members cost an hour.
    pub(crate) fn price(&self) -> NanoDollars {
        self.members.iter().filter_map(|m| m.price).sum()
    }

    /// Begins a command: what takes the place of its members is on its way, and their pods wait.
    pub(crate) fn begin(&mut self, command: &Command) {
        for launch in &command.plan.launches {
            self.n_launched += 1;
            let mut made = launched(&self.problem, launch, self.n_launched);
            made.initialized = false;
            self.problem.nodes.push(made);
            self.join(self.problem.nodes.len() - 1);
        }
        for m in &command.members {
            let member = &mut self.members[*m];
            (member.in_command, member.deleting) = (true, true);
            let node = &mut self.problem[member.node];
            (node.closed, node.pool) = (true, None);
            for moved in &member.pods {
                self.problem[moved.pod].node = None;
            }
        }
        self.count();
    }

    /// Carries out a command: nodes go, others come, pods move.
    pub(crate) fn apply(&mut self, command: &Command) {
        for placement in &command.plan.placements {
            for pod in &placement.pods {
                self.problem[*pod].node = Some(placement.node);
            }
        }
        let n_before = self.problem.nodes.len();
        for launch in &command.plan.launches {
            let node = NodeIx(u32::try_from(self.problem.nodes.len()).expect("few enough"));
            self.n_launched += 1;
            let made = launched(&self.problem, launch, self.n_launched);
            self.problem.nodes.push(made);
            for pod in &launch.pods {
                self.problem[*pod].node = Some(node);
            }
        }
        for m in &command.members {
            let node = &mut self.problem.nodes[self.members[*m].node.0 as usize];
            (node.closed, node.pool) = (true, None);
        }
        let gone: BTreeSet<Leaver> = command.leavers().collect();
        self.members
            .retain(|member| !gone.contains(&member.leaver()));
        for n in n_before..self.problem.nodes.len() {
            self.join(n);
        }
        self.seat();
        self.now += SignedDuration::from_secs(10);
        self.changed = self.now;
    }
}

/// What the cheapest offering of its type with the labels of a node costs.
fn price_of(problem: &Problem, node: &Node) -> Option<NanoDollars> {
    let name = node.labels.get(keys::INSTANCE_TYPE)?;
    let ty = problem.types.iter().find(|ty| ty.name == *name)?;
    let is_own = |o: &&Offering| o.labels.iter().all(|(k, v)| node.labels.get(k) == Some(v));
    let own = ty.offerings.iter().filter(is_own);
    own.map(|offering| offering.price).min()
}

fn launched(problem: &Problem, launch: &joiner_model::Launch, number: usize) -> Node {
    let (ty, offering) = launch.offering;
    let ty = &problem[ty];
    let offering = &ty.offerings[offering.0 as usize];
    let pool = &problem[launch.pool];
    let name: Name = format!("new-{number}").into();
    let own = ty
        .labels
        .iter()
        .filter_map(|(k, v)| Some((k.clone(), v.first()?.clone())));
    let mut labels: joiner_model::Labels = own.collect();
    labels.extend(pool.labels.clone());
    labels.extend(offering.labels.clone());
    labels.insert(keys::INSTANCE_TYPE.into(), ty.name.clone());
    labels.insert(keys::HOSTNAME.into(), name.clone());
    Node {
        name,
        labels,
        taints: pool.taints.clone(),
        capacity: ty.capacity.clone(),
        allocatable: ty.allocatable().expect("room for pods"),
        pool: Some(pool.name.clone()),
        initialized: true,
        closed: false,
        volume_limits: BTreeMap::new(),
    }
}
