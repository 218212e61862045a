//! From nodes of a plan to NodeClaims.

use std::collections::BTreeMap;

use joiner_api::labels::{
    self, CAPACITY_OVERLAY_APPLIED, MIN_VALUES_RELAXED, PRICE_OVERLAY_APPLIED,
};
use joiner_api::types::{
    self as api, NodeClaim, NodeClaimResources, NodePool, Operator as ApiOperator,
};
use joiner_model::{
    InstanceType, Labels, Launch, Name, Pool, Problem, Requirement, Resources, keys, tolerates_all,
};
use joiner_state::live::{PLANNED, planned_text};

use crate::claim_template::{claim_from, claim_name};

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
    claim.spec.requirements = requirements(problem, launch, own);
    let mut requests = launch.requests.clone();
    requests.add(&daemon_overhead(problem, launch, own));
    claim.spec.resources = Some(NodeClaimResources {
        requests: Some(amounts(&requests)),
    });
    for requirement in &launch.requirements {
        if let Some(value) = custom_label(problem, requirement) {
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

fn requirements(problem: &Problem, launch: &Launch, pool: &Pool) -> Vec<api::Requirement> {
    let min_values = |key: &str| pool.requirements.get(key).and_then(Requirement::min_values);
    let types = launch.types.iter();
    let types = types.map(|ix| problem.types[ix.0 as usize].name.to_string());
    let mut all = vec![api::Requirement {
        key: keys::INSTANCE_TYPE.to_owned(),
        operator: ApiOperator::In,
        values: types.collect(),
        min_values: min_values(keys::INSTANCE_TYPE),
    }];
    for requirement in &launch.requirements {
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
                min_values: min_values(key).or(requirement.min_values()),
            });
        }
    }
    if !all.iter().any(|own| own.key == keys::CAPACITY_TYPE) {
        all.push(capacity_types(problem, launch));
    }
    all
}

/// The capacity types that the plan leaves open.
fn capacity_types(problem: &Problem, launch: &Launch) -> api::Requirement {
    let mut values: Vec<String> = Vec::new();
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
                && !values.iter().any(|own| **own == **value)
            {
                values.push(value.to_string());
            }
        }
    }
    values.sort();
    api::Requirement {
        key: keys::CAPACITY_TYPE.to_owned(),
        operator: ApiOperator::In,
        values,
        min_values: None,
    }
}

fn api_operator(text: &str) -> Option<ApiOperator> {
    let mut all = ApiOperator::ALL.iter();
    all.find(|operator| operator.as_str() == text).copied()
}

/// A label of the user's own that a requirement settles: a node has to carry some value of it.
fn custom_label(problem: &Problem, requirement: &Requirement) -> Option<String> {
    let key = requirement.key();
    let simulated = [keys::REGISTERED, keys::INITIALIZED, keys::HOSTNAME];
    let well_known = problem.well_known.contains(key) || labels::is_well_known(key);
    if well_known || simulated.contains(&&**key) {
        return None;
    }
    let value = requirement.members()?.first()?;
    Some(value.to_string())
}

/// What daemons take on every type that is left: the least of each resource.
fn daemon_overhead(problem: &Problem, launch: &Launch, pool: &Pool) -> Resources {
    if problem.daemons.is_empty() {
        return Resources::new();
    }
    let mut least: Option<Resources> = None;
    for ix in &launch.types {
        let own = overhead_on(problem, pool, &problem.types[ix.0 as usize], launch);
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
    launch: &Launch,
) -> Resources {
    let node = node_labels(pool, instance_type, launch);
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
fn node_labels(pool: &Pool, instance_type: &InstanceType, launch: &Launch) -> Labels {
    let mut labels = pool.labels.clone();
    for (key, values) in &instance_type.labels {
        if let [value] = values.as_slice() {
            labels.insert(key.clone(), value.clone());
        }
    }
    for requirement in &launch.requirements {
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
