//! From a claim to an order for the cloud, and from its answer to the claim.

use jiff::Timestamp;
use joiner_api::conditions as condition;
use joiner_api::labels::{HOSTNAME, INSTANCE_TYPE, canonical_key, is_restricted};
use joiner_api::types::Operator;
use joiner_cloud::{Instance, LaunchError, NodeClass, Order};
use joiner_model::{Name, ResourceName, Resources};
use joiner_state::live::{Conditions as _, LiveClaim};
use joiner_state::quantity::parse_request;
use serde_json::{Map, Value, json};

use joiner_engine::write::StatusWrite;

use super::step::{GiveUp, conditions, timed_out};
use super::view::ClaimView;
use crate::requirements;

/// Longer messages are cut, in characters.
const MESSAGE_MAX: usize = 300;

/// The order that a claim stands for.
///
/// # Errors
/// When a requirement or a request of the claim cannot be understood; only a claim made by hand
/// past a server that checks nothing can have one.
pub(super) fn order(view: &ClaimView<'_>) -> Result<Order, String> {
    let claim = view.claim;
    let class = view.class.map(|class| NodeClass {
        group: class.reference.group.clone(),
        kind: class.reference.kind.clone(),
        name: class.reference.name.clone(),
        object: class.object.clone(),
    });
    Ok(Order {
        claim: claim.name().clone(),
        claim_uid: claim.meta.uid.clone(),
        pool: claim.pool().map(Name::from),
        requirements: requirements::read(&claim.claim.spec.requirements)?,
        types: types(claim),
        requests: requests(claim)?,
        labels: claim.meta.labels.clone(),
        class,
    })
}

/// Types in the order in which the claim lists them: cheapest first, if the planner made it.
fn types(claim: &LiveClaim) -> Vec<Name> {
    let of_types = claim.claim.spec.requirements.iter().find(|own| {
        canonical_key(&own.key) == INSTANCE_TYPE && matches!(own.operator, Operator::In)
    });
    let values = of_types.map(|own| own.values.as_slice());
    let values = values.unwrap_or_default().iter();
    values.map(|value| Name::from(value.as_str())).collect()
}

/// What the node must offer.
pub(super) fn requests(claim: &LiveClaim) -> Result<Resources, String> {
    let resources = claim.claim.spec.resources.as_ref();
    let requests = resources.and_then(|own| own.requests.as_ref());
    let one = |(name, amount): (&String, &joiner_api::types::Quantity)| {
        let resource = ResourceName::parse(name);
        let amount = parse_request(&resource, amount.as_str());
        let amount = amount.map_err(|why| format!("request {name}: {why}"))?;
        Ok((resource, amount))
    };
    requests.into_iter().flatten().map(one).collect()
}

/// What is written after a launch.
#[derive(Clone, Debug)]
pub(super) struct Launched {
    /// Patch of the metadata, when there is something new in it. It comes first: once the claim is
    /// launched nobody looks for labels that are missing.
    pub(super) metadata: Option<Value>,
    /// Patch of the status.
    pub(super) status: StatusWrite,
    /// The part of the status that cannot be lost: it holds without a look at the version.
    pub(super) machine: Value,
}

/// What to write about the machine that was launched.
#[must_use]
pub(super) fn launched(view: &ClaimView<'_>, instance: &Instance, now: Timestamp) -> Launched {
    let claim = view.claim;
    let mut labels: Map<String, Value> = single_values(claim)
        .chain(pairs(&instance.labels))
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    // What the claim says already stays.
    labels.retain(|key, _| claim.meta.label(key).is_none());
    let known = &claim.claim.metadata.annotations;
    let annotations: Map<String, Value> = pairs(&instance.annotations)
        .filter(|(key, value)| known.get(*key).map(String::as_str) != Some(*value))
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    let mut metadata = Map::new();
    for (field, new) in [("labels", labels), ("annotations", annotations)] {
        if !new.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(new));
        }
    }
    let amounts = |resources: &Resources| -> Value {
        let amounts = resources.rendered();
        let amounts = amounts.map(|(name, amount)| (name.to_owned(), json!(amount)));
        Value::Object(amounts.collect())
    };
    let mut machine = json!({
        "providerID": &*instance.id.0,
        "capacity": amounts(&instance.capacity),
        "allocatable": amounts(&instance.allocatable),
    });
    if let Some(image) = &instance.image_id {
        machine["imageID"] = json!(&**image);
    }
    let mut set = conditions(claim, now);
    set.set_true(condition::LAUNCHED);
    set.set_unknown(condition::REGISTERED, "NodeNotFound", super::step::NO_NODE);
    let metadata = (!metadata.is_empty()).then(|| {
        // The status that follows was made from this version, too.
        let version = claim.meta.version.to_string();
        metadata.insert("resourceVersion".to_owned(), json!(version));
        json!({"metadata": metadata})
    });
    Launched {
        metadata,
        status: StatusWrite::new(&claim.meta, set.finished(), machine.clone()),
        machine: json!({"status": machine}),
    }
}

fn pairs(labels: &joiner_model::Labels) -> impl Iterator<Item = (&str, &str)> {
    labels.iter().map(|(key, value)| (&**key, &**value))
}

/// Labels that follow from requirements with one value.
fn single_values(claim: &LiveClaim) -> impl Iterator<Item = (&str, &str)> {
    let requirements = claim.claim.spec.requirements.iter();
    requirements.filter_map(|own| match own.values.as_slice() {
        [value] if matches!(own.operator, Operator::In) => {
            let key = canonical_key(&own.key);
            (key != HOSTNAME && !is_restricted(key)).then_some((key, value.as_str()))
        }
        _ => None,
    })
}

/// What follows from a launch that failed.
#[derive(Clone, Debug)]
pub(super) enum NotLaunched {
    /// The claim is given up.
    GiveUp(GiveUp),
    /// The claim says why, and it is tried again.
    Retry(StatusWrite),
}

/// What follows from a launch that failed.
#[must_use]
pub(super) fn failed(view: &ClaimView<'_>, error: &LaunchError, now: Timestamp) -> NotLaunched {
    let (reason, message) = match error {
        LaunchError::InsufficientCapacity(_) => {
            return NotLaunched::GiveUp(GiveUp {
                reason: "insufficient_capacity",
                event: Some(cut(&error.to_string())),
                outcome: None,
            });
        }
        LaunchError::ClassNotReady(_) => {
            return NotLaunched::GiveUp(GiveUp {
                reason: "nodeclass_not_ready",
                event: None,
                outcome: None,
            });
        }
        LaunchError::Refused { reason, message } => (reason.to_string(), cut(message)),
        LaunchError::Throttled(_) | LaunchError::Other(_) => {
            ("LaunchFailed".to_owned(), cut(&error.to_string()))
        }
    };
    let since = view.claim.since(&condition::LAUNCHED);
    if timed_out(
        since.unwrap_or(view.claim.meta.created),
        view.terms.launch_timeout,
        now,
    ) {
        return NotLaunched::GiveUp(GiveUp::launch_timeout(reason, message));
    }
    let mut set = conditions(view.claim, now);
    set.set_unknown(condition::LAUNCHED, &reason, &message);
    NotLaunched::Retry(StatusWrite::new(
        &view.claim.meta,
        set.finished(),
        Value::Object(Map::new()),
    ))
}

/// A message short enough for a condition or an event.
#[must_use]
pub fn cut(message: &str) -> String {
    if message.chars().count() <= MESSAGE_MAX {
        return message.to_owned();
    }
    let kept: String = message.chars().take(MESSAGE_MAX).collect();
    format!("{kept}...")
}
