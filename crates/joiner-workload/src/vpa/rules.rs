//! What admission refuses in a VPA, and what it fills in.

use serde_json::{Value, json};

use super::amounts::Resource;
use super::spec::Vpa;
use crate::part::{FieldError, Part};

/// Feature gates that admission knows, by their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VpaGates {
    /// `InPlace`.
    pub in_place: bool,
    /// `PerVPAConfig`.
    pub per_vpa: bool,
    /// `CPUStartupBoost`.
    pub startup_boost: bool,
}

/// Fields that the gate `PerVPAConfig` allows in the policy of a container.
const PER_VPA: [&str; 4] = [
    "oomBumpUpRatio",
    "oomMinBumpUp",
    "memoryAggregationIntervalSeconds",
    "memoryAggregationIntervalCount",
];

/// Fills in what the user left open.
pub fn fill_in(vpa: &mut Value) {
    let spec = vpa.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec.filter(|spec| !spec.contains_key("updatePolicy")) {
        spec.insert("updatePolicy".to_owned(), json!({"updateMode": "Recreate"}));
    }
}

/// What breaks the rules in a VPA. What the `old` object has already may stay.
#[must_use]
pub fn complaints(vpa: &Value, old: Option<&Value>, gates: VpaGates) -> Vec<FieldError> {
    if let Err(error) = Vpa::read(vpa) {
        return vec![error];
    }
    let nothing = Value::Null;
    let (top, old) = (Part::top(vpa), Part::top(old.unwrap_or(&nothing)));
    let (spec, old_spec) = (top.field("spec"), old.field("spec"));
    let mut errors = Vec::new();
    update_policy(&spec.field("updatePolicy"), &old_spec, gates, &mut errors);
    let recommenders = spec.field("recommenders");
    if recommenders.items().is_ok_and(|items| items.len() > 1) {
        errors.push(recommenders.error("must have at most one recommender"));
    }
    boost(&spec.field("startupBoost"), &mut errors);
    let resource_policy = spec.field("resourcePolicy");
    let policies = resource_policy.field("containerPolicies");
    for policy in policies.items().unwrap_or_default() {
        container(&policy, &mut errors);
    }
    let family = |allowed: bool, used: fn(&Part<'_>) -> Option<String>, gate: &str| {
        let field = used(&spec).filter(|_| !allowed && used(&old_spec).is_none())?;
        let problem = format!("must be left out: the feature gate {gate} is off");
        Some(FieldError::new(&field, problem))
    };
    errors.extend(family(gates.per_vpa, per_vpa_field, "PerVPAConfig"));
    errors.extend(family(gates.startup_boost, boost_field, "CPUStartupBoost"));
    errors
}

fn update_policy(policy: &Part<'_>, old: &Part<'_>, gates: VpaGates, errors: &mut Vec<FieldError>) {
    let mode = policy.field("updateMode");
    if policy.is_set() && !mode.is_set() {
        errors.push(mode.missing());
    }
    let was = &old.value()["updatePolicy"]["updateMode"];
    if *mode.value() == "InPlace" && !gates.in_place && *was != "InPlace" {
        errors.push(mode.error("must not be InPlace: the feature gate InPlace is off"));
    }
    let positive = |field: Part<'_>| {
        let wrong = field.int64().is_ok_and(|n| n.is_some_and(|n| n < 1));
        wrong.then(|| field.not("1 or more"))
    };
    errors.extend(positive(policy.field("minReplicas")));
    errors.extend(positive(policy.field("evictAfterOOMSeconds")));
}

fn container(policy: &Part<'_>, errors: &mut Vec<FieldError>) {
    let (min, max) = (policy.field("minAllowed"), policy.field("maxAllowed"));
    for resource in Resource::ALL {
        let name = resource.as_str();
        let (least, most) = (min.field(name), max.field(name));
        for bound in [&least, &most] {
            let amount = bound.quantity().ok().flatten();
            let is_whole = amount.is_none_or(|amount| match resource {
                Resource::Cpu => amount.is_whole_millis(),
                Resource::Memory => amount.is_whole(),
            });
            if !is_whole {
                errors.push(bound.not(match resource {
                    Resource::Cpu => "a whole number of millicores",
                    Resource::Memory => "a whole number of bytes",
                }));
            }
        }
        if let (Ok(Some(least)), Ok(Some(most))) = (least.quantity(), most.quantity())
            && most < least
        {
            let path = max.field(name);
            errors.push(path.error(format!("must be at least minAllowed, which is {least}")));
        }
    }
    let values = policy.field("controlledValues");
    if policy.value()["mode"] == "Off" && *values.value() == "RequestsAndLimits" {
        errors.push(values.error("must not be RequestsAndLimits where mode is Off"));
    }
    let ratio = policy.field("oomBumpUpRatio");
    if let Ok(Some(amount)) = ratio.quantity()
        && amount.approximately() < 1.0
    {
        errors.push(ratio.not("1 or more"));
    }
    for name in [
        "memoryAggregationIntervalSeconds",
        "memoryAggregationIntervalCount",
    ] {
        let field = policy.field(name);
        if field.int64().is_ok_and(|n| n.is_some_and(|n| n < 1)) {
            errors.push(field.not("1 or more"));
        }
    }
    boost(&policy.field("startupBoost"), errors);
}

fn boost(boost: &Part<'_>, errors: &mut Vec<FieldError>) {
    let cpu = boost.field("cpu");
    let factor = cpu.field("factor");
    if *cpu.field("type").value() == "Factor"
        && factor.int32().is_ok_and(|n| n.is_some_and(|n| n < 1))
    {
        errors.push(factor.not("1 or more"));
    }
    let quantity = cpu.field("quantity");
    if let Ok(Some(amount)) = quantity.quantity()
        && !amount.is_whole_millis()
    {
        errors.push(quantity.not("a whole number of millicores"));
    }
}

/// A field of the family of `PerVPAConfig` that is in use.
fn per_vpa_field(spec: &Part<'_>) -> Option<String> {
    let update = spec.field("updatePolicy");
    let after_oom = update.field("evictAfterOOMSeconds");
    if after_oom.is_set() {
        return Some(after_oom.path());
    }
    let resource_policy = spec.field("resourcePolicy");
    let policies = resource_policy.field("containerPolicies");
    let items = policies.items().unwrap_or_default();
    let used = |policy: &Part<'_>| {
        let mut fields = PER_VPA.iter().map(|name| policy.field(name));
        fields
            .find(|field| field.is_set())
            .map(|field| field.path())
    };
    items.iter().find_map(used)
}

/// A field of the family of `CPUStartupBoost` that is in use.
fn boost_field(spec: &Part<'_>) -> Option<String> {
    let whole = spec.field("startupBoost");
    if whole.is_set() {
        return Some(whole.path());
    }
    let resource_policy = spec.field("resourcePolicy");
    let policies = resource_policy.field("containerPolicies");
    let items = policies.items().unwrap_or_default();
    let mut fields = items.iter().map(|policy| policy.field("startupBoost"));
    fields
        .find(|field| field.is_set())
        .map(|field| field.path())
}
