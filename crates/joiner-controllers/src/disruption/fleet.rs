//! From a snapshot to the fleet that disruption decides about.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use joiner_api::conditions as condition;
use joiner_api::labels::{CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, ZONE};
use joiner_api::types::{ConsolidationPolicy, NodePoolSpec};
use joiner_disruption::{
    Budget, EvictionCost, Fleet, Member, Moved, NodeOwner, Policy, PoolTerms, Reason, Settings,
    cost,
};
use joiner_model::{Name, NanoDollars, NodeIx, PodIx, Problem};
use joiner_state::live::{Conditions as _, LiveClaim, LiveNode, LivePod, LivePool, Snapshot};

use super::intent::Intent;
use super::moves::{Book, Workloads};
use crate::capacity_buffer::Headroom;
use crate::nodeclaim::is_on;
use crate::nodeclaim::lifecycle::Terms;
use crate::provisioning::Nominations;

/// The budget of a pool that says nothing.
const DEFAULT_BUDGET: &str = "10%";

/// What a fleet is made of, beside the problem.
pub(crate) struct Facts<'a> {
    /// The cluster.
    pub(crate) snapshot: &'a Snapshot,
    /// Nodes that are spoken for.
    pub(crate) nominations: &'a Nominations,
    /// Nodes that headroom counts on.
    pub(crate) headroom: &'a Headroom,
    /// Moves that workloads do not carry themselves.
    pub(crate) book: &'a Book,
    /// What is the cloud's: nobody else's nodes are touched.
    pub(crate) terms: Terms,
    /// Figures that change decisions.
    pub(crate) settings: Settings,
    /// When something last changed.
    pub(crate) changed: Timestamp,
    /// The time.
    pub(crate) now: Timestamp,
}

/// The fleet of a cluster; `problem` was made from the same snapshot.
pub(crate) fn fleet<'p>(facts: &Facts<'_>, problem: &'p Problem) -> Fleet<'p> {
    let snapshot = facts.snapshot;
    let pools: Vec<&LivePool> = snapshot.pools().map(AsRef::as_ref).collect();
    let pool_ix: HashMap<&str, usize> = pools
        .iter()
        .enumerate()
        .map(|(ix, pool)| (&**pool.name(), ix))
        .collect();
    let limit = facts.settings.moves_per_replica;
    let workloads = Workloads::new(snapshot, facts.book, limit, facts.now);
    let index = Index::new(problem, &workloads);
    let awaited = awaited(snapshot);
    let mut members = Vec::new();
    for claim in snapshot.claims().filter(|own| is_on(facts.terms, own)) {
        let (Some(node), Some(pool)) = (snapshot.node_of(claim), claim.pool()) else {
            continue;
        };
        if let (Some(ix), Some(pool)) = (index.node(node.name()), pool_ix.get(pool)) {
            let mut own = member(facts, &index, (claim, node), (ix, *pool));
            // What takes the place of others is empty until those are drained.
            own.nominated |= awaited.contains(claim.name());
            members.push(own);
        }
    }
    let mut terms: Vec<PoolTerms> = pools
        .iter()
        .map(|pool| self::terms(pool, snapshot))
        .collect();
    for member in &members {
        let own = &mut terms[member.pool];
        own.total_cost += member.price.unwrap_or_default();
        own.total_disruption = own
            .total_disruption
            .saturating_add(cost::disruption(member));
    }
    Fleet {
        problem,
        members,
        pools: terms,
        moves_left: workloads.left,
        settings: facts.settings,
        changed: facts.changed,
        now: facts.now,
    }
}

/// Claims that take the place of others in commands under way.
fn awaited(snapshot: &Snapshot) -> BTreeSet<Name> {
    let intents = snapshot.claims().filter_map(|claim| Intent::of(claim));
    let names = intents.flat_map(|intent| intent.replacements.clone());
    names.map(Name::from).collect()
}

/// Where things are in a problem.
struct Index<'p> {
    problem: &'p Problem,
    workloads: &'p Workloads,
    nodes: HashMap<&'p str, NodeIx>,
    pods: HashMap<&'p str, PodIx>,
}

impl<'p> Index<'p> {
    fn new(problem: &'p Problem, workloads: &'p Workloads) -> Self {
        let nodes = (0u32..).zip(&problem.nodes);
        let pods = (0u32..).zip(&problem.pods);
        Self {
            problem,
            workloads,
            nodes: nodes.map(|(ix, node)| (&*node.name, NodeIx(ix))).collect(),
            pods: pods.map(|(ix, pod)| (&*pod.name, PodIx(ix))).collect(),
        }
    }

    fn node(&self, name: &str) -> Option<NodeIx> {
        self.nodes.get(name).copied()
    }

    /// What a node costs, available or not.
    fn price(&self, node: &LiveNode) -> Option<NanoDollars> {
        let label = |key: &str| node.meta.label(key);
        let pool = self
            .problem
            .pools
            .iter()
            .find(|own| Some(&*own.name) == node.pool())?;
        let types = pool
            .types
            .iter()
            .map(|ix| &self.problem.types[ix.0 as usize]);
        let own = types
            .into_iter()
            .find(|own| Some(&*own.name) == label(INSTANCE_TYPE))?;
        crate::catalogs::price(own, label)
    }
}

fn member(
    facts: &Facts<'_>,
    index: &Index<'_>,
    (claim, node): (&LiveClaim, &LiveNode),
    (ix, pool): (NodeIx, usize),
) -> Member {
    let (snapshot, now) = (facts.snapshot, facts.now);
    let pods: Vec<&LivePod> = snapshot.pods_on(node.name()).map(AsRef::as_ref).collect();
    let label = |key: &str| Name::from(node.meta.label(key).unwrap_or_default());
    let says_no = |meta: &joiner_state::live::Meta| meta.annotation(DO_NOT_DISRUPT) == Some("true");
    let protected = pods.iter().find(|pod| pod.is_protected(now));
    let nominated = |name: &str| facts.nominations.is_nominated(name, now);
    let (blocking_budget, several_budgets) = budgets(snapshot, &pods, now);
    let drifted = claim
        .since(&condition::DRIFTED)
        .filter(|_| claim.is_true(&condition::DRIFTED));
    // Only drift takes nodes of pods that say no.
    let is_stuck = |pod: &LivePod| {
        drifted.is_some() && (pod.is_protected(now) || snapshot.is_fully_blocked(pod))
    };
    Member {
        node: ix,
        name: node.name().clone(),
        owner: NodeOwner::Claim(claim.name().clone()),
        pool,
        price: index.price(node),
        capacity_type: label(CAPACITY_TYPE),
        zone: label(ZONE),
        type_name: label(INSTANCE_TYPE),
        pods: pods
            .iter()
            .filter(|pod| pod.is_reschedulable())
            .filter_map(|pod| moved(index, pod, is_stuck(pod)))
            .collect(),
        initialized: claim.is_true(&condition::INITIALIZED),
        ready: node.is_ready(),
        deleting: snapshot.is_leaving(node) || node.meta.deleting.is_some(),
        nominated: nominated(node.name()) || nominated(claim.name()),
        do_not_disrupt: says_no(&node.meta) || says_no(&claim.meta),
        protected_pod: protected.map(|pod| pod.name.clone()),
        blocking_budget,
        several_budgets,
        grace_period: claim.claim.spec.termination_grace_period.is_some(),
        consolidatable: claim.is_true(&condition::CONSOLIDATABLE),
        drifted,
        has_buffer_pods: facts.headroom.has(node.name()),
        in_command: Intent::of(claim).is_some(),
        terminating_instance: claim.is_true(&condition::INSTANCE_TERMINATING),
    }
}

fn moved(index: &Index<'_>, pod: &LivePod, stuck: bool) -> Option<Moved> {
    Some(Moved {
        pod: *index.pods.get(&*pod.name)?,
        cost: EvictionCost::of(pod.deletion_cost, pod.priority),
        owner: index.workloads.of(pod),
        stuck,
    })
}

/// The budget that lets none of a node's pods go now, and budgets that are about the same pod.
fn budgets(
    snapshot: &Snapshot,
    pods: &[&LivePod],
    now: Timestamp,
) -> (Option<String>, Option<String>) {
    let (mut blocking, mut several) = (None, None);
    for pod in pods {
        let evicted =
            pod.is_active() && !pod.mirror && !pod.tolerates_disrupted && !pod.is_protected(now);
        if !evicted {
            continue;
        }
        let own: Vec<_> = snapshot.budgets_of(pod).collect();
        match own.as_slice() {
            [] => {}
            [budget] if budget.allowed <= 0 && !budget.lets_go(pod) => {
                blocking.get_or_insert_with(|| budget.meta.name.to_string());
            }
            [_] => {}
            all => {
                let names: Vec<&str> = all.iter().map(|own| &*own.meta.name).collect();
                several.get_or_insert_with(|| names.join(", "));
            }
        }
    }
    (blocking, several)
}

fn terms(pool: &LivePool, snapshot: &Snapshot) -> PoolTerms {
    let spec = &pool.pool.spec;
    let disruption = spec.disruption.as_ref();
    let policy = disruption.and_then(|own| own.consolidation_policy);
    let leaving = |claim: &&std::sync::Arc<LiveClaim>| {
        claim.meta.deleting.is_some() || Intent::of(claim).is_some()
    };
    let claims = || snapshot.claims_of_pool(pool.name());
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    PoolTerms {
        name: pool.name().clone(),
        group_min: None,
        static_replicas: spec.replicas.map(|n| u32::try_from(n).unwrap_or(0)),
        policy: match policy {
            Some(ConsolidationPolicy::WhenEmpty) => Policy::WhenEmpty,
            Some(ConsolidationPolicy::Balanced) => Policy::Balanced,
            Some(ConsolidationPolicy::WhenEmptyOrUnderutilized) | None => {
                Policy::WhenEmptyOrUnderutilized
            }
        },
        consolidate_after_never: disruption.is_none_or(|own| own.consolidate_after.is_never()),
        budgets: budgets_of(spec),
        limit_nodes: limit_nodes(spec),
        n_staying: count(claims().filter(|claim| !leaving(claim)).count()),
        n_leaving: count(claims().filter(leaving).count()),
        total_cost: NanoDollars::ZERO,
        total_disruption: 0,
    }
}

/// What is wrong with the budgets of pools.
pub(super) fn complaints(snapshot: &Snapshot, now: Timestamp) -> BTreeSet<(Name, String)> {
    let of = |pool: &LivePool| {
        let all = joiner_disruption::complaints(&budgets_of(&pool.pool.spec), now);
        let name = pool.name().clone();
        all.into_iter().map(move |own| (name.clone(), own))
    };
    snapshot.pools().flat_map(|pool| of(pool)).collect()
}

fn limit_nodes(spec: &NodePoolSpec) -> Option<u32> {
    let text = spec.limits.as_ref()?.get("nodes")?.as_str().to_owned();
    let resource = joiner_model::ResourceName::parse("nodes");
    let amount = joiner_state::quantity::Quantity::parse_amount_of(&resource, &text).ok()?;
    u32::try_from(amount.units_down(&resource)).ok()
}

fn budgets_of(spec: &NodePoolSpec) -> Vec<Budget> {
    let given = spec
        .disruption
        .as_ref()
        .and_then(|own| own.budgets.as_ref());
    let Some(given) = given else {
        return vec![Budget {
            nodes: DEFAULT_BUDGET.to_owned(),
            reasons: None,
            schedule: None,
            duration: None,
        }];
    };
    let one = |own: &joiner_api::types::Budget| Budget {
        nodes: own.nodes.clone(),
        reasons: own.reasons.as_ref().map(|reasons| {
            let words = reasons.iter();
            words
                .filter_map(|own| Reason::parse(own.as_str()))
                .collect()
        }),
        schedule: own.schedule.clone(),
        duration: own.duration.as_ref().and_then(|own| {
            let duration = own.parse().ok()??;
            SignedDuration::try_from(duration).ok()
        }),
    };
    given.iter().map(one).collect()
}
