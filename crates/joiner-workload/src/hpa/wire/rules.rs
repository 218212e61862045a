//! What an API server refuses in an HPA of the second version.

use serde_json::Value;

use super::metrics::{check, path_segment};
use crate::hpa::world::Gates;
use crate::part::{FieldError, Part};

const WINDOW_SECS_MAX: i32 = 3600;
const PERIOD_SECS_MAX: i32 = 1800;

/// What breaks the rules in an HPA whose defaults are filled in. What was wrong in the `old` object
/// already is let through where upstream does so.
#[must_use]
pub fn complaints(hpa: &Value, old: Option<&Value>, gates: &Gates) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let top = Part::top(hpa);
    let spec = top.field("spec");
    if !spec.value().is_object() {
        return vec![spec.missing()];
    }
    let nothing = Value::Null;
    let old = Part::top(old.unwrap_or(&nothing));
    let old_spec = old.field("spec");
    sizes(&spec, &old_spec, gates, &mut errors);
    target(&spec.field("scaleTargetRef"), &old_spec, &mut errors);
    let metrics = spec.field("metrics");
    let old_metrics = old_spec.field("metrics");
    match metrics.items() {
        Ok(items) => {
            for item in &items {
                check(item, !had_bad_reference(&old_metrics), &mut errors);
            }
            let outside = |item: &Part<'_>| {
                let kind = item.field("type");
                matches!(kind.value().as_str(), Some("Object" | "External"))
            };
            let min = spec.field("minReplicas").int32();
            if min == Ok(Some(0)) && !items.iter().any(outside) {
                errors.push(
                    metrics.error(
                        "must have a metric of type Object or External where minReplicas is 0",
                    ),
                );
            }
        }
        Err(error) => errors.push(error),
    }
    let behavior = spec.field("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        rules(&behavior.field(direction), &mut errors);
    }
    let status = top.field("status");
    for name in ["currentReplicas", "desiredReplicas"] {
        at_least(&status.field(name), 0, &mut errors);
    }
    errors
}

fn sizes(spec: &Part<'_>, old: &Part<'_>, gates: &Gates, errors: &mut Vec<FieldError>) {
    let (min, max) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    let had_zero = old.field("minReplicas").int32() == Ok(Some(0));
    let least = i32::from(!(gates.scale_to_zero || had_zero));
    at_least(&min, least, errors);
    match max.int32() {
        Ok(None | Some(0)) => errors.push(max.error("is missing; set it to 1 or more")),
        Ok(Some(most)) if most < 0 => errors.push(max.not("1 or more")),
        Ok(Some(most)) => {
            let least = min.int32().ok().flatten().unwrap_or(1);
            if most < least {
                errors.push(max.error(format!("must be at least minReplicas, which is {least}")));
            }
        }
        Err(error) => errors.push(error),
    }
}

fn at_least(field: &Part<'_>, least: i32, errors: &mut Vec<FieldError>) {
    match field.int32() {
        Ok(Some(number)) if number < least => errors.push(field.not(&format!("{least} or more"))),
        Ok(_) => {}
        Err(error) => errors.push(error),
    }
}

fn target(target: &Part<'_>, old: &Part<'_>, errors: &mut Vec<FieldError>) {
    for name in ["kind", "name"] {
        path_segment(&target.field(name), errors);
    }
    let before = old.field("scaleTargetRef");
    let same = |name| before.is_set() && before.value()[name] == target.value()[name];
    if same("kind") && same("apiVersion") {
        return;
    }
    let version = target.field("apiVersion");
    let text = version.value().as_str().unwrap_or_default();
    let without_group = target.value()["kind"] == "ReplicationController";
    let fine = match text.split('/').collect::<Vec<_>>().as_slice() {
        [_] => without_group,
        [group, version] => !group.is_empty() && !version.is_empty(),
        _ => false,
    };
    if !fine {
        errors.push(version.error("must be a group and a version, such as apps/v1"));
    }
}

/// Whether a metric referred to an object by a version that does not parse.
fn had_bad_reference(metrics: &Part<'_>) -> bool {
    let items = metrics.items().unwrap_or_default();
    items.iter().any(|metric| {
        let object = &metric.value()["object"]["describedObject"]["apiVersion"];
        object
            .as_str()
            .is_some_and(|text| text.matches('/').count() > 1)
    })
}

fn rules(rules: &Part<'_>, errors: &mut Vec<FieldError>) {
    if !rules.is_set() {
        return;
    }
    between(
        &rules.field("stabilizationWindowSeconds"),
        (0, WINDOW_SECS_MAX),
        errors,
    );
    let select = rules.field("selectPolicy");
    let known = ["Max", "Min", "Disabled"];
    if select.is_set() && !known.iter().any(|word| *word == *select.value()) {
        errors.push(select.not("Max, Min or Disabled"));
    }
    let tolerance = rules.field("tolerance");
    match tolerance.quantity() {
        Ok(Some(amount)) if amount.is_negative() => errors.push(tolerance.not("zero or more")),
        Ok(_) => {}
        Err(error) => errors.push(error),
    }
    let policies = rules.field("policies");
    let items = match policies.items() {
        Ok(items) => items,
        Err(error) => return errors.push(error),
    };
    if items.is_empty() {
        errors.push(policies.error("must have at least one policy"));
    }
    for policy in &items {
        let kind = policy.field("type");
        if !["Pods", "Percent"]
            .iter()
            .any(|word| *word == *kind.value())
        {
            errors.push(kind.not("Pods or Percent"));
        }
        between(&policy.field("value"), (1, i32::MAX), errors);
        between(&policy.field("periodSeconds"), (1, PERIOD_SECS_MAX), errors);
        for name in ["value", "periodSeconds"] {
            if !policy.field(name).is_set() {
                errors.push(policy.field(name).missing());
            }
        }
    }
}

fn between(field: &Part<'_>, (least, most): (i32, i32), errors: &mut Vec<FieldError>) {
    match field.int32() {
        Ok(Some(number)) if number < least => errors.push(field.not(&format!("{least} or more"))),
        Ok(Some(number)) if number > most => errors.push(field.not(&format!("{most} or less"))),
        Ok(_) => {}
        Err(error) => errors.push(error),
    }
}
