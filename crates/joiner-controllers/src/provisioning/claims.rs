//! From nodes of a plan to NodeClaims.

use std::collections::{BTreeMap, BTreeSet};

use joiner_api::labels::{
    self, CAPACITY_OVERLAY_APPLIED, MIN_VALUES_RELAXED, PRICE_OVERLAY_APPLIED,
};
use joiner_api::types::{
    self as api, NodeClaim, NodeClaimResources, NodePool, Operator as ApiOperator,
};
use joiner_model::{
    InstanceType, Labels, Launch, Name, Operator, Pool, Problem, Requirement, Requirements,
    Resources, keys, tolerates_all,
};
use joiner_state::live::{PLANNED, planned_text};

use crate::nodeclaim::template::{claim_from, claim_name, some_value};

/// A NodeClaim to create.
#[derive(Clone, Debug)]
pub(crate) struct NewClaim {
    /// The object.
    pub(crate) claim: NodeClaim,
    /// The pods it is for, by `namespace/name`.
    pub(crate) pods: Vec<Name>,
}

/// The claim for a node of the plan. `uids` are those of its pods; `taken` says which names exist.
pub(crate) fn claim_for(
    problem: &Problem,
    launch: &Launch,
    pool: &NodePool,
    uids: &[&str],
    taken: &dyn Fn(&str) -> bool,
) -> NewClaim {
    let name = name(pool, uids, taken);
    let mut claim = claim_from(pool, &name);
    let own = &problem.pools[launch.pool.0 as usize];
    let left_open = left_open(problem, launch, own);
    claim.spec.requirements = requirements(problem, launch, &left_open);
    let mut requests = launch.requests.clone();
    requests.add(&daemon_overhead(problem, launch, &left_open));
    claim.spec.resources = Some(NodeClaimResources {
        requests: Some(amounts(&requests)),
    });
    for requirement in left_open.iter() {
        if let Some(value) = custom_label(problem, launch, requirement) {
            let key = requirement.key().to_string();
            claim.metadata.labels.entry(key).or_insert(value);
        }
    }
    let annotations = &mut claim.metadata.annotations;
    let instance_type = &problem.types[launch.offering.0.0 as usize];
    if let Some(planned) = planned_text(instance_type, launch.offering.1) {
        annotations.insert(PLANNED.to_owned(), planned);
    }
    if own.requirements.iter().any(|r| r.min_values().is_some()) {
        let relaxed = launch.min_values_relaxed.to_string();
        annotations.insert(MIN_VALUES_RELAXED.to_owned(), relaxed);
    }
    let names = launch.pods.iter();
    let pods = names.map(|pod| problem.pods[pod.0 as usize].name.clone());
    NewClaim {
        claim,
        pods: pods.collect(),
    }
}

/// Says on the claim which overlays the plan counted on: those that make the type other than what
/// the cloud sells.
pub(crate) fn mark_overlays(
    new: &mut NewClaim,
    problem: &Problem,
    launch: &Launch,
    sold: &[InstanceType],
) {
    let planned = &problem.types[launch.offering.0.0 as usize];
    let Some(original) = sold.iter().find(|own| own.name == planned.name) else {
        return;
    };
    let ix = launch.offering.1.0 as usize;
    let (offering, before) = (&planned.offerings[ix], original.offerings.get(ix));
    let annotations = &mut new.claim.metadata.annotations;
    if before.is_some_and(|before| before.price != offering.price) {
        annotations.insert(PRICE_OVERLAY_APPLIED.to_owned(), "true".to_owned());
    }
    let more = before.is_some_and(|before| before.extra_capacity != offering.extra_capacity);
    if more || planned.capacity != original.capacity {
        annotations.insert(CAPACITY_OVERLAY_APPLIED.to_owned(), "true".to_owned());
    }
}

/// The same pods of the same pool give the same name, so that a retry after a crash finds what the
/// first try made; a name that is in use gives the next one.
pub(crate) fn name(pool: &NodePool, uids: &[&str], taken: &dyn Fn(&str) -> bool) -> String {
    let mut sorted = uids.to_vec();
    sorted.sort_unstable();
    let mut attempt = 0u32;
    loop {
        let number = attempt.to_string();
        let parts: Vec<&str> = sorted.iter().copied().chain([number.as_str()]).collect();
        let name = claim_name(&pool.metadata.name, &parts);
        if !taken(&name) {
            return name;
        }
        attempt += 1;
    }
}

/// What the pool asks for, as far as the plan leaves it open.
fn left_open(problem: &Problem, launch: &Launch, pool: &Pool) -> Requirements {
    let mut all = pool.requirements.clone();
    let narrower = launch.requirements.iter().cloned();
    narrower.for_each(|own| all.add(own));
    let sold = capacity_types(problem, launch);
    if !sold.is_empty() {
        all.add(Requirement::one_of(keys::CAPACITY_TYPE, sold));
    }
    all
}

fn requirements(
    problem: &Problem,
    launch: &Launch,
    left_open: &Requirements,
) -> Vec<api::Requirement> {
    let n_types = u32::try_from(launch.types.len()).unwrap_or(u32::MAX);
    let asked = left_open.get(keys::INSTANCE_TYPE);
    let asked = asked.and_then(Requirement::min_values);
    let types = launch.types.iter();
    let types = types.map(|ix| problem.types[ix.0 as usize].name.to_string());
    let mut all = vec![api::Requirement {
        key: keys::INSTANCE_TYPE.to_owned(),
        operator: ApiOperator::In,
        values: types.collect(),
        min_values: asked.map(|asked| asked.min(n_types)),
    }];
    for requirement in left_open.iter() {
        let key = requirement.key();
        let of_a_node_that_is_up = [keys::REGISTERED, keys::INITIALIZED, keys::HOSTNAME];
        if &**key == keys::INSTANCE_TYPE || of_a_node_that_is_up.contains(&&**key) {
            continue;
        }
        for (operator, values) in requirement.entries() {
            let Some(operator) = api_operator(operator.as_str()) else {
                continue;
            };
            all.push(api::Requirement {
                key: key.to_string(),
                operator,
                values: values.iter().map(ToString::to_string).collect(),
                min_values: min_values(problem, launch, requirement),
            });
        }
    }
    all
}

/// `minValues` of a requirement: where they were lowered, what the types have; and never more than
/// there are values on the list, which the API server refuses.
fn min_values(problem: &Problem, launch: &Launch, requirement: &Requirement) -> Option<u32> {
    let mut least = requirement.min_values()?;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    if launch.min_values_relaxed {
        let key = requirement.key();
        let types = launch.types.iter().map(|ix| &problem.types[ix.0 as usize]);
        let values: BTreeSet<&Name> = types
            .flat_map(|own| {
                let sold = own.offerings.iter().filter(|own| own.available);
                let sold = sold.filter_map(|own| own.labels.get(key));
                own.labels.get(key).into_iter().flatten().chain(sold)
            })
            .filter(|value| requirement.has(value))
            .collect();
        least = least.min(count(values.len()));
    }
    if let Some(members) = requirement.members() {
        least = least.min(count(members.len()));
    }
    (least > 0).then_some(least)
}

/// The capacity types that the plan leaves open.
fn capacity_types(problem: &Problem, launch: &Launch) -> BTreeSet<Name> {
    let mut values = BTreeSet::new();
    for ix in &launch.types {
        for offering in &problem.types[ix.0 as usize].offerings {
            let allowed = launch
                .requirements
                .iter()
                .filter(|own| offering.labels.contains_key(own.key()))
                .all(|own| own.holds(offering.labels.get(own.key()).map(AsRef::as_ref)));
            if let Some(value) = offering.labels.get(keys::CAPACITY_TYPE)
                && allowed
                && offering.available
            {
                values.insert(value.clone());
            }
        }
    }
    values
}

fn api_operator(text: &str) -> Option<ApiOperator> {
    let mut all = ApiOperator::ALL.iter();
    all.find(|operator| operator.as_str() == text).copied()
}

/// A label of the user's own that a node has to carry. Where its value is open it is one that none of
/// its pods speaks of, as the plan has it.
fn custom_label(problem: &Problem, launch: &Launch, requirement: &Requirement) -> Option<String> {
    let key = requirement.key();
    let simulated = [keys::REGISTERED, keys::INITIALIZED, keys::HOSTNAME];
    let well_known = problem.well_known.contains(key) || labels::is_well_known(key);
    if well_known || simulated.contains(&&**key) || requirement.holds(None) {
        return None;
    }
    if requirement.members().is_some() {
        return some_value(requirement);
    }
    let shapes = launch.pods.iter().map(|pod| problem.shape(*pod));
    let asked = shapes.flat_map(|shape| {
        let terms = shape.node_terms.iter().flatten();
        shape.node_selector.iter().chain(terms)
    });
    let named = asked.filter(|own| own.key() == key);
    let named = named.flat_map(|own| own.named_values().iter().cloned());
    let other = Requirement::new(key, Operator::NotIn, named).ok()?;
    some_value(&requirement.and(&other))
}

/// What daemons take on every type that is left: the least of each resource.
fn daemon_overhead(problem: &Problem, launch: &Launch, left_open: &Requirements) -> Resources {
    if problem.daemons.is_empty() {
        return Resources::new();
    }
    let pool = &problem.pools[launch.pool.0 as usize];
    let mut least: Option<Resources> = None;
    for ix in &launch.types {
        let own = overhead_on(problem, pool, &problem.types[ix.0 as usize], left_open);
        least = Some(match least {
            None => own,
            Some(least) => smaller(&least, &own),
        });
    }
    least.unwrap_or_default()
}

fn smaller(a: &Resources, b: &Resources) -> Resources {
    let mut out = Resources::new();
    for (name, amount) in a.iter() {
        let amount = amount.min(b.get(name));
        if amount > 0 {
            out.set(name.clone(), amount);
        }
    }
    out
}

fn overhead_on(
    problem: &Problem,
    pool: &Pool,
    instance_type: &InstanceType,
    left_open: &Requirements,
) -> Resources {
    let node = node_labels(pool, instance_type, left_open);
    let mut sum = Resources::new();
    for daemon in &problem.daemons {
        let shape = &daemon.shape;
        let holds = |own: &Requirement| own.holds(node.get(own.key()).map(AsRef::as_ref));
        let selected = shape.node_selector.iter().all(holds)
            && (shape.node_terms.is_empty()
                || shape.node_terms.iter().any(|term| term.iter().all(holds)));
        if selected && tolerates_all(&shape.tolerations, &pool.taints, true).is_ok() {
            sum.add(&shape.requests);
        }
    }
    sum
}

/// Labels of a node of this type, where they are settled.
fn node_labels(pool: &Pool, instance_type: &InstanceType, left_open: &Requirements) -> Labels {
    let mut labels = pool.labels.clone();
    for (key, values) in &instance_type.labels {
        if let [value] = values.as_slice() {
            labels.insert(key.clone(), value.clone());
        }
    }
    for requirement in left_open.iter() {
        if let Some(members) = requirement.members()
            && members.len() == 1
            && let Some(value) = members.first()
        {
            labels.insert(requirement.key().clone(), value.clone());
        }
    }
    labels
}

/// Resources as objects carry them.
fn amounts(resources: &Resources) -> api::ResourceMap {
    let all: BTreeMap<String, String> = resources
        .rendered()
        .map(|(name, amount)| (name.to_owned(), amount))
        .collect();
    let value = serde_json::to_value(all).unwrap_or_default();
    serde_json::from_value(value).unwrap_or_default()
}
