//! One look at all triggers: what each metric is, what stands in for those that cannot be asked, and
//! whether the object is active.

use std::collections::BTreeMap;

use super::fallback::{HealthByMetric, Replicas, count, valid};
use super::formula::Formula;
use super::readings::{COMPOSITE, MetricSpec, TriggerReading};
use super::rules::formula_names;
use super::spec::{FallbackBehavior, Modifiers, ScaledObject, Trigger};

/// What was found at the triggers, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The metrics that each of them makes.
    pub specs: Vec<Vec<MetricSpec>>,
    /// What each of them says, or why it could not be asked; nothing from those of type `cpu` and
    /// `memory`.
    pub readings: Vec<Option<Result<TriggerReading, String>>>,
}

/// What one look at all triggers came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Poll {
    /// Whether the object is active.
    pub is_active: bool,
    /// What went wrong: at triggers that nothing stood in for, or in the formula.
    pub errors: Vec<String>,
    /// Whether any trigger could not be asked, with or without something that stood in for it.
    pub has_failed: bool,
    /// Metrics by name, as the HPA gets them; with a formula only its own.
    pub values: BTreeMap<String, f64>,
    /// Which metrics are active, by name.
    pub activity: BTreeMap<String, bool>,
    /// Health of metrics, to be stored in the status; only kept with a fallback.
    pub health: HealthByMetric,
    /// Whether a fallback stands in for a metric.
    pub in_fallback: bool,
}

/// What one trigger came to.
enum Found {
    /// It said so itself.
    Said(f64),
    /// It failed, and this stands in for it.
    StandsIn(f64),
    /// It failed, and the formula is told that there is nothing.
    Nothing,
    /// It failed.
    Failed(String),
}

/// Looks at what was found at the triggers of an object.
#[must_use]
pub fn poll(
    object: &ScaledObject,
    findings: &Findings,
    health: &HealthByMetric,
    replicas: Replicas,
) -> Poll {
    let mut poll = Poll {
        health: health.clone(),
        ..Poll::default()
    };
    let mut named = BTreeMap::new();
    let triggers = object
        .triggers
        .iter()
        .zip(&findings.specs)
        .zip(&findings.readings);
    for ((trigger, specs), reading) in triggers {
        let Some(reading) = reading else { continue };
        for spec in specs {
            if let Some((name, found)) = found(object, spec, reading, &mut poll, replicas) {
                poll.note(trigger, &name, &found, reading);
                named.insert(trigger.name.clone(), found);
            }
        }
    }
    match &object.modifiers {
        Some(modifiers) => poll.compose(object, modifiers, named, replicas),
        None => poll.is_active = poll.activity.values().any(|is_active| *is_active),
    }
    // Usage of pods cannot tell whether there should be any.
    if object.looks_inside_only() && !poll.has_failed {
        poll.is_active = true;
    }
    poll
}

/// One metric of a trigger, after fallback.
fn found(
    object: &ScaledObject,
    spec: &MetricSpec,
    reading: &Result<TriggerReading, String>,
    poll: &mut Poll,
    replicas: Replicas,
) -> Option<(String, Found)> {
    let MetricSpec::External {
        name,
        metric_type,
        target_millis,
    } = spec
    else {
        return None;
    };
    let value = reading.as_ref().map_err(Clone::clone).and_then(|reading| {
        let mut values = reading.values.iter();
        let value = values.find(|(metric, _)| metric.eq_ignore_ascii_case(name));
        value
            .map(|(_, value)| *value)
            .ok_or_else(|| format!("it has no metric {name}"))
    });
    let fallback = valid(object);
    let health = fallback.map(|_| count(&mut poll.health, name, value.is_err()));
    let found = match (value, fallback) {
        (Ok(value), _) => Found::Said(value),
        (Err(why), Some(fallback)) if health.is_some_and(|h| fallback.is_due(h)) => {
            if fallback.behavior == FallbackBehavior::ScalingModifiers {
                Found::Nothing
            } else {
                // With a formula its target counts, and not that of the trigger.
                let (target, kind) = match &object.modifiers {
                    Some(made) => (made.target.parse().unwrap_or(0.0), made.metric_type),
                    None => (*target_millis as f64 / 1000.0, *metric_type),
                };
                match fallback.value(target, kind, replicas) {
                    Ok(value) => Found::StandsIn(value),
                    Err(other) => Found::Failed(format!("{why}; {other}")),
                }
            }
        }
        (Err(why), _) => Found::Failed(why),
    };
    Some((name.clone(), found))
}

impl Poll {
    fn note(
        &mut self,
        trigger: &Trigger,
        metric: &str,
        found: &Found,
        reading: &Result<TriggerReading, String>,
    ) {
        self.has_failed |= reading.is_err();
        let said = reading.as_ref().is_ok_and(|reading| reading.is_active);
        let is_active = match found {
            Found::Said(value) => {
                self.values.insert(metric.to_owned(), *value);
                said
            }
            Found::StandsIn(value) => {
                self.values.insert(metric.to_owned(), *value);
                self.in_fallback = true;
                true
            }
            Found::Nothing => false,
            Found::Failed(why) => {
                let title = if trigger.name.is_empty() {
                    &trigger.kind
                } else {
                    &trigger.name
                };
                self.errors.push(format!("trigger {title}: {why}"));
                false
            }
        };
        self.activity.insert(metric.to_owned(), is_active);
    }

    /// Makes one metric of all.
    fn compose(
        &mut self,
        object: &ScaledObject,
        modifiers: &Modifiers,
        named: BTreeMap<String, Found>,
        replicas: Replicas,
    ) {
        let stands_in = named.values().find_map(|found| match found {
            Found::StandsIn(value) => Some(*value),
            Found::Said(_) | Found::Nothing | Found::Failed(_) => None,
        });
        self.values.clear();
        let value = match stands_in {
            Some(value) => Ok(value),
            None => composite(object, modifiers, named, replicas),
        };
        match value {
            Ok(value) => {
                self.values.insert(COMPOSITE.to_owned(), value);
                let threshold = modifiers.activation_target.parse().unwrap_or(0.0);
                self.is_active = self.errors.is_empty() && value > threshold;
            }
            Err(why) => {
                self.is_active = false;
                if self.errors.is_empty() {
                    self.errors.push(format!("formula: {why}"));
                }
            }
        }
    }
}

/// The value of the formula.
fn composite(
    object: &ScaledObject,
    modifiers: &Modifiers,
    named: BTreeMap<String, Found>,
    replicas: Replicas,
) -> Result<f64, String> {
    let mut values = BTreeMap::new();
    for (name, found) in named {
        let value = match found {
            Found::Said(value) | Found::StandsIn(value) => Some(value),
            Found::Nothing => None,
            Found::Failed(why) => return Err(why),
        };
        values.insert(name, value);
    }
    let names = formula_names(&object.triggers);
    let formula = Formula::parse(&modifiers.formula, &names).map_err(|error| error.to_string())?;
    let value = formula.number(&values).map_err(|error| error.to_string())?;
    let nothing = || {
        let fallback = object.fallback.as_ref();
        let fallback = fallback.ok_or_else(|| "the formula came to nothing".to_owned())?;
        let target = modifiers.target.parse().unwrap_or(0.0);
        fallback.value(target, modifiers.metric_type, replicas)
    };
    value.map_or_else(nothing, Ok)
}
