//! What a ScaledObject may ask for: the rules that need nothing but the object.

use std::collections::{BTreeMap, BTreeSet};

use super::formula::Formula;
use super::spec::{FallbackBehavior, MetricType, ScaledObject, Trigger};
use crate::part::FieldError;

/// Longest name that is also the value of a label.
const NAME_MAX: usize = 63;

/// What breaks the rules in a ScaledObject.
#[must_use]
pub fn complaints(object: &ScaledObject) -> Vec<FieldError> {
    let mut errors = names(object);
    sizes(object, &mut errors);
    triggers(&object.triggers, &mut errors);
    fallback(object, &mut errors);
    errors.extend(modifiers(object));
    if object.looks_inside_only() && object.min() == 0 && !object.triggers.is_empty() {
        errors.push(FieldError::new(
            "spec.minReplicaCount",
            "must be 1 or more where all triggers are cpu or memory: usage of no pods says nothing",
        ));
    }
    errors
}

/// What works but is not what was meant.
#[must_use]
pub fn warnings(object: &ScaledObject, has_interval: bool, has_cooldown: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let never_zero = object.min() > 0 && object.idle_replicas != Some(0);
    let cached = object.triggers.iter().any(|trigger| trigger.use_cached);
    if never_zero && has_interval && !cached {
        warnings.push(
            "pollingInterval does nothing while minReplicaCount is above 0: the autoscaler asks at \
             its own pace"
                .to_owned(),
        );
    }
    if never_zero && has_cooldown {
        warnings.push(
            "cooldownPeriod does nothing while minReplicaCount is above 0: it is about the way to \
             zero"
                .to_owned(),
        );
    }
    warnings
}

fn names(object: &ScaledObject) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if object.name.len() > NAME_MAX {
        let problem = format!("must have at most {NAME_MAX} characters");
        errors.push(FieldError::new("metadata.name", problem));
    }
    let name = object.hpa_name();
    if name.len() > NAME_MAX {
        let problem = format!("must have at most {NAME_MAX} characters, {name} has more");
        let path = "spec.advanced.horizontalPodAutoscalerConfig.name";
        errors.push(FieldError::new(path, problem));
    }
    errors
}

fn sizes(object: &ScaledObject, errors: &mut Vec<FieldError>) {
    let (min, max) = (object.min(), object.max());
    if min > max {
        let problem = format!("must be at most maxReplicaCount, which is {max}, not {min}");
        errors.push(FieldError::new("spec.minReplicaCount", problem));
    }
    if let Some(idle) = object.idle_replicas.filter(|idle| *idle >= min) {
        let problem = format!("must be less than minReplicaCount, which is {min}, not {idle}");
        errors.push(FieldError::new("spec.idleReplicaCount", problem));
    }
}

/// Rules of triggers that ScaledObjects and ScaledJobs share.
pub(super) fn triggers(triggers: &[Trigger], errors: &mut Vec<FieldError>) {
    if triggers.is_empty() {
        errors.push(FieldError::new(
            "spec.triggers",
            "must have at least one trigger",
        ));
    }
    let mut seen = BTreeSet::new();
    for (ix, trigger) in triggers.iter().enumerate() {
        let path = |field: &str| format!("spec.triggers[{ix}].{field}");
        if !trigger.name.is_empty() && !seen.insert(&trigger.name) {
            let problem = format!("must be another name, {} is taken", trigger.name);
            errors.push(FieldError::new(&path("name"), problem));
        }
        let has_cache = !trigger.is_resource() && trigger.kind != "cron";
        if trigger.use_cached && !has_cache {
            let problem = format!("must be left out of a trigger of type {}", trigger.kind);
            errors.push(FieldError::new(&path("useCachedMetrics"), problem));
        }
    }
}

fn fallback(object: &ScaledObject, errors: &mut Vec<FieldError>) {
    let Some(fallback) = &object.fallback else {
        return;
    };
    for (name, number) in [
        ("failureThreshold", fallback.failure_threshold),
        ("replicas", fallback.replicas),
    ] {
        if number < 0 {
            let problem = format!("must be 0 or more, not {number}");
            errors.push(FieldError::new(&format!("spec.fallback.{name}"), problem));
        }
    }
    if object.modifiers.is_none() && object.looks_inside_only() {
        errors.push(FieldError::new(
            "spec.fallback",
            "must be left out where all triggers are cpu or memory",
        ));
    }
    if fallback.behavior == FallbackBehavior::ScalingModifiers && object.modifiers.is_none() {
        errors.push(FieldError::new(
            "spec.fallback.behavior",
            "must not be scalingModifiers without a formula",
        ));
    }
}

fn modifiers(object: &ScaledObject) -> Option<FieldError> {
    let modifiers = object.modifiers.as_ref()?;
    let error = |field: &str, problem: String| {
        let path = format!("spec.advanced.scalingModifiers.{field}");
        Some(FieldError::new(&path, problem))
    };
    if modifiers.formula.is_empty() {
        return error(
            "formula",
            "is missing; set it or leave out the target".to_owned(),
        );
    }
    let target = modifiers.target.parse::<f64>().unwrap_or(0.0);
    if modifiers.target.is_empty() || target <= 0.0 || !target.is_finite() {
        let problem = format!("must be a number above 0, not {:?}", modifiers.target);
        return error("target", problem);
    }
    if modifiers.metric_type == MetricType::Utilization {
        return error("metricType", "must be AverageValue or Value".to_owned());
    }
    let names = formula_names(&object.triggers);
    let values = names.iter().map(|name| ((*name).to_owned(), Some(-1.0)));
    let values: BTreeMap<String, Option<f64>> = values.collect();
    let formula = Formula::parse(&modifiers.formula, &names);
    let computed = formula.and_then(|formula| formula.number(&values));
    computed
        .err()
        .and_then(|why| error("formula", why.to_string()))
}

/// Names that a formula may use.
pub(super) fn formula_names(triggers: &[Trigger]) -> Vec<&str> {
    let usable = triggers.iter().filter(|trigger| !trigger.is_resource());
    let names = usable.map(|trigger| trigger.name.as_str());
    names.filter(|name| !name.is_empty()).collect()
}
