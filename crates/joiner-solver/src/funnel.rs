//! How offerings are ruled out for one pod, one question after another.

use std::collections::BTreeMap;

use joiner_model::{
    MinValuesPolicy, Name, Plan, PodIx, PodShape, Pool, Problem, Refusal, Requirements,
    ResourceName, Resources, Ruling, render_amount, tolerates_all,
};

use crate::finish::distinct_values;
use crate::ground::Ground;
use crate::refuse::nothing_left;
use crate::select::{Asks, Choices};

/// How the offerings of all pools are ruled out for one pod, question by question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Funnel {
    /// One list of steps per pool, heaviest pool first.
    pub pools: Vec<(Name, Vec<FunnelStep>)>,
}

/// One question and what is left after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunnelStep {
    /// What was asked, in words.
    pub question: String,
    /// Offerings left.
    pub n_left: usize,
}

/// The funnel from all offerings to those that can hold a pod next to what a plan buys already; for
/// a pod that the plan leaves over it ends with none.
#[must_use]
pub fn explain(problem: &Problem, plan: &Plan, pod: PodIx) -> Funnel {
    let ground = Ground::new(problem);
    let mut pools: Vec<usize> = (0..problem.pools.len()).collect();
    pools.sort_by(|a, b| {
        let (a, b) = (&problem.pools[*a], &problem.pools[*b]);
        b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name))
    });
    let left_over = plan.unplaced.iter().find(|own| own.pod == pod);
    let refusals = left_over.map(|own| own.refusals.as_slice());
    // For a pod that has a place, what is bought for it is not in its way.
    let nothing = Plan::default();
    let view = View {
        ground: &ground,
        plan: if left_over.is_some() { plan } else { &nothing },
        shape: problem.shape(pod),
    };
    let of = |p: usize| (problem.pools[p].name.clone(), view.steps(p, refusals));
    Funnel {
        pools: pools.into_iter().map(of).collect(),
    }
}

/// What the questions are about.
struct View<'a, 'p> {
    ground: &'a Ground<'p>,
    plan: &'a Plan,
    shape: &'a PodShape,
}

impl View<'_, '_> {
    fn steps(&self, p: usize, refusals: Option<&[Refusal]>) -> Vec<FunnelStep> {
        let (ground, shape) = (self.ground, self.shape);
        let problem = ground.problem;
        let pool = &problem.pools[p];
        let types = pool.types.iter().map(|t| &problem[*t]);
        let n_all = types.map(|own| own.offerings.len()).sum();
        let mut steps = Steps::default();
        steps.ask("offerings of the pool's types", n_all);
        if let Some(why) = &pool.closed {
            steps.ask(&format!("in use, which the pool is not: {why}"), 0);
            return steps.0;
        }
        // Pools that are alike share what they can buy.
        let stand_in = ground.stands_for[p].map(|like| &problem.pools[like]);
        let Some(stand_in) = stand_in else {
            steps.ask("within the number of pools that one plan can weigh", 0);
            return steps.0;
        };
        let own = |k: &&crate::ground::Kind| problem.pools[ground.pool_of(k)].name == stand_in.name;
        let n_sold = ground.kinds.iter().filter(own).count();
        steps.ask("for sale and allowed by the pool", n_sold);
        if let Err(taint) = tolerates_all(&shape.tolerations, &pool.taints, true) {
            steps.ask(&format!("with the taint {taint} tolerated"), 0);
            return steps.0;
        }
        let narrowing = Narrowing::new(ground, shape, stand_in);
        let asks = own_asks(shape).to_string();
        let asks = match asks.as_str() {
            "" => "with any label (no node selection)".to_owned(),
            asks => format!("with {asks}"),
        };
        steps.ask(&asks, narrowing.n_matching);
        steps.ask("that reach its volumes", narrowing.n_with_volumes);
        let room = format!("with room for {}", without_pods(&shape.requests));
        steps.ask(&room, narrowing.n_fitting);
        steps.ask("with host ports free of daemons", narrowing.n_port_free);
        if let Some(limits) = &pool.limits {
            let (question, n_left) = self.within(p, limits, &narrowing.types);
            steps.ask(&question, n_left);
        }
        if let Some(last) = refusals.and_then(|all| last_question(&pool.name, all)) {
            steps.ask(&last, 0);
        }
        steps.0
    }

    /// How many offerings are left by the pool's limits.
    fn within(
        &self,
        p: usize,
        limits: &Resources,
        types: &BTreeMap<u32, usize>,
    ) -> (String, usize) {
        let problem = self.ground.problem;
        let mut words = Vec::new();
        let mut left = Vec::new();
        for (name, limit) in limits.iter() {
            let rest = limit.saturating_sub(used(problem, self.plan, p, name));
            let amount = |n: u64| render_amount(name, n);
            words.push(format!("{name} {}, {} left", amount(limit), amount(rest)));
            left.push((name, rest));
        }
        let fits = |ty: u32| {
            left.iter().all(|(name, rest)| {
                let has = match name.as_str() {
                    "nodes" => 1,
                    _ => problem.types[ty as usize].capacity.get(name),
                };
                has <= *rest
            })
        };
        let n_left = types.iter().filter(|(ty, _)| fits(**ty)).map(|(_, n)| n);
        (
            format!("within the limits of the pool ({})", words.join("; ")),
            n_left.sum(),
        )
    }
}

/// What a pool has of a limited resource, with what a plan buys for it.
pub(crate) fn used(problem: &Problem, plan: &Plan, p: usize, name: &ResourceName) -> u64 {
    let amount = |capacity: &Resources| match name.as_str() {
        "nodes" => 1,
        _ => capacity.get(name),
    };
    let pool = &problem.pools[p].name;
    let there = problem.nodes.iter();
    let there = there.filter(|node| node.pool.as_ref() == Some(pool));
    let coming = plan.launches.iter();
    let coming = coming.filter(|launch| launch.pool.0 as usize == p);
    let there: u64 = there.map(|node| amount(&node.capacity)).sum();
    let coming = coming.map(|launch| &problem[launch.offering.0].capacity);
    there.saturating_add(coming.map(amount).sum())
}

/// The steps so far. What nothing is left of is not asked about further.
#[derive(Default)]
struct Steps(Vec<FunnelStep>);

impl Steps {
    fn ask(&mut self, question: &str, n_left: usize) {
        if self.0.last().is_none_or(|last| last.n_left > 0) {
            self.0.push(FunnelStep {
                question: question.to_owned(),
                n_left,
            });
        }
    }
}

/// What ruled out offerings that a pod could have alone: rules about its company. Pools that are
/// refused in the same way as an earlier one have no words of their own.
fn last_question(pool: &Name, refusals: &[Refusal]) -> Option<String> {
    let mut rulings = refusals.iter().filter_map(|own| match own {
        Refusal::Pool(own) => Some(own),
        Refusal::Ignored(_) | Refusal::NoPools | Refusal::Absent { .. } | Refusal::Nodes { .. } => {
            None
        }
    });
    let by_name = rulings.clone().find(|own| own.pool == *pool);
    let own = by_name.or_else(|| rulings.find(|own| own.n_alike > 0))?;
    Some(match &own.ruling {
        Ruling::Spread { key, max_skew } => {
            format!("that keep the spread over {key} within a skew of {max_skew}")
        }
        Ruling::Affinity { key } => format!("in a {key} with a pod that its affinity asks for"),
        Ruling::AntiAffinity { key } => {
            format!("in a {key} free of pods that anti-affinity keeps apart")
        }
        Ruling::MinValues { key, needed, .. } => format!("with {needed} different values of {key}"),
        Ruling::Full => "with a place next to the other pods of the plan".to_owned(),
        other @ (Ruling::Closed(_)
        | Ruling::Taint(_)
        | Ruling::Labels(_)
        | Ruling::NoOffering { .. }
        | Ruling::NoTypes { .. }
        | Ruling::NotSelected { .. }
        | Ruling::SoldOut
        | Ruling::TooLarge { .. }
        | Ruling::NotTogether(_)
        | Ruling::Limit { .. }
        | Ruling::Port(_)
        | Ruling::Volumes) => format!("but the pool {other}"),
    })
}

fn without_pods(requests: &Resources) -> Resources {
    let named = requests
        .iter()
        .filter(|(name, _)| **name != ResourceName::Pods);
    named.map(|(name, amount)| (name.clone(), amount)).collect()
}

/// Node selection of a shape with its first required term.
fn own_asks(shape: &PodShape) -> Requirements {
    let first = shape.node_terms.first().into_iter().flatten();
    shape.node_selector.iter().chain(first).cloned().collect()
}

/// How many offerings of a pool survive each question.
pub(crate) struct Narrowing<'g, 'p> {
    ground: &'g Ground<'p>,
    n_matching: usize,
    n_with_volumes: usize,
    n_fitting: usize,
    n_port_free: usize,
    most: Vec<u64>,
    need: Vec<u64>,
    /// Types with offerings that pass every question, and how many.
    types: BTreeMap<u32, usize>,
}

impl<'g, 'p> Narrowing<'g, 'p> {
    pub(crate) fn new(ground: &'g Ground<'p>, shape: &PodShape, pool: &Pool) -> Self {
        let mut choices = Choices::default();
        let mut plain = shape.clone();
        plain.volume_terms.clear();
        let bare = choices.of(ground, Asks::new(&plain, None, true));
        let full = choices.of(ground, Asks::new(shape, None, true));
        let need = ground.amounts(&shape.requests);
        let mut this = Self {
            ground,
            n_matching: 0,
            n_with_volumes: 0,
            n_fitting: 0,
            n_port_free: 0,
            most: vec![0; need.len()],
            need,
            types: BTreeMap::new(),
        };
        for kind in &ground.kinds {
            let has = |c: u32| {
                choices.all[c as usize]
                    .alternatives
                    .iter()
                    .any(|sel| sel.has(kind))
            };
            if ground.problem.pools[ground.pool_of(kind)].name != pool.name || !has(bare) {
                continue;
            }
            this.n_matching += 1;
            if !has(full) {
                continue;
            }
            this.n_with_volumes += 1;
            let room = ground.room_of(kind);
            for (most, r) in this.most.iter_mut().zip(room) {
                *most = (*most).max(*r);
            }
            if this.need.iter().zip(room).any(|(q, r)| q > r) {
                continue;
            }
            this.n_fitting += 1;
            let taken = &ground.daemon_ports[kind.ports as usize];
            let free = shape
                .ports
                .iter()
                .all(|p| taken.iter().all(|t| !t.conflicts(p)));
            this.n_port_free += usize::from(free);
            if free {
                *this.types.entry(kind.ty).or_default() += 1;
            }
        }
        this
    }

    pub(crate) fn ruling(&self, shape: &PodShape, pool: &Pool) -> Option<Ruling> {
        if self.n_matching == 0 {
            return Some(nothing_left(self.ground, shape, pool));
        }
        if self.n_with_volumes == 0 {
            return Some(Ruling::Volumes);
        }
        if self.n_fitting == 0 {
            let short = (0..self.need.len())
                .filter(|d| self.need[*d] > self.most[*d])
                .max_by_key(|d| {
                    u128::from(self.need[*d]) * 1000 / u128::from(self.most[*d].max(1))
                });
            let Some(d) = short else {
                let asked = shape
                    .requests
                    .iter()
                    .filter(|(name, n)| *n > 0 && **name != ResourceName::Pods);
                return Some(Ruling::NotTogether(
                    asked.map(|(name, _)| name.clone()).collect(),
                ));
            };
            return Some(Ruling::TooLarge {
                resource: self.ground.dims[d].clone(),
                needed: self.need[d],
                most: self.most[d],
            });
        }
        if self.n_port_free == 0 {
            return shape.ports.first().map(|p| Ruling::Port(p.port));
        }
        let strict = self.ground.problem.policy.min_values == MinValuesPolicy::Strict;
        pool.requirements.iter().filter(|_| strict).find_map(|r| {
            let needed = r.min_values()?;
            let found = distinct_values(self.ground, self.types.keys().copied(), r);
            let key = r.key().clone();
            (found < needed).then_some(Ruling::MinValues { key, needed, found })
        })
    }
}
