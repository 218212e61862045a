//! From what is known of containers to what is recommended for them.

use std::collections::BTreeMap;

use super::aggregate::Aggregate;
use super::amounts::{Resource, amount, scaled};
use super::policy::apply_policy;
use super::settings::{ResourceSettings, Settings};
use super::spec::{ContainerRecommendation, Vpa};
use crate::quantity::{Quantity, Suffixes};

/// How far the lower bound is below the estimate when little is known.
const LOWER_MULTIPLIER: f64 = 0.001;
const SECONDS_PER_MINUTE: f64 = 60.0;
/// The annotation that makes a container's CPU whole is named after it.
const INTEGER_CPU: [&str; 2] = ["vpa-post-processor.kubernetes.io/", "_integerCPU"];

/// What is recommended for the containers of a VPA, in order of their names: what was estimated, rounded,
/// and kept within its policy.
#[must_use]
pub fn recommend(
    vpa: &Vpa,
    aggregates: &BTreeMap<String, Aggregate>,
    settings: &Settings,
) -> Vec<ContainerRecommendation> {
    let is_on = |name: &str| !vpa.policy(name).is_some_and(|policy| policy.is_off);
    let aggregates: Vec<_> = aggregates.iter().filter(|(name, _)| is_on(name)).collect();
    let share = 1.0 / aggregates.len() as f64;
    let minimum = Minimum {
        cpu: scaled(amount(settings.min_cpu_millis * 0.001 * 1000.0), share),
        memory: scaled(amount(settings.min_memory_mb * 1024.0 * 1024.0), share),
    };
    let of = |(name, aggregate): (&String, &Aggregate)| {
        let policy = vpa.policy(name);
        let resources = policy.map_or(&Resource::ALL[..], |policy| &policy.resources);
        let mut recommendation = estimate(aggregate, &minimum, resources, settings);
        recommendation.container.clone_from(name);
        if settings.integer_cpu {
            make_whole(vpa, &mut recommendation);
        }
        apply_policy(&mut recommendation, policy, &settings.max_allowed);
        recommendation
    };
    aggregates.into_iter().map(of).collect()
}

/// The least that is recommended for a container.
struct Minimum {
    cpu: i64,
    memory: i64,
}

fn estimate(
    aggregate: &Aggregate,
    minimum: &Minimum,
    resources: &[Resource],
    settings: &Settings,
) -> ContainerRecommendation {
    let mut recommendation = ContainerRecommendation::default();
    for resource in resources {
        let of = settings.of(*resource);
        let minimum = match resource {
            Resource::Cpu => minimum.cpu,
            Resource::Memory => minimum.memory,
        };
        let confidence = confidence(aggregate, of);
        let quantity = |share: f64, factor: f64| {
            let estimate = with_margin(base(aggregate, *resource, share), settings.margin);
            let estimate = if factor == 1.0 {
                estimate
            } else {
                scaled(estimate, factor)
            };
            shown(*resource, estimate.max(minimum), settings)
        };
        let target = quantity(of.target, 1.0);
        let narrow = 1.0 + LOWER_MULTIPLIER / confidence;
        recommendation.target.insert(*resource, target);
        recommendation.uncapped.insert(*resource, target);
        let lower = quantity(of.lower, 1.0 / (narrow * narrow));
        recommendation.lower.insert(*resource, lower);
        let upper = quantity(of.upper, 1.0 + 1.0 / confidence);
        recommendation.upper.insert(*resource, upper);
    }
    recommendation
}

/// What this share of the samples is below.
fn base(aggregate: &Aggregate, resource: Resource, share: f64) -> i64 {
    match resource {
        Resource::Cpu => amount(aggregate.cpu.percentile(share) * 1000.0),
        Resource::Memory => amount(aggregate.memory.percentile(share)),
    }
}

fn with_margin(base: i64, margin: f64) -> i64 {
    base.saturating_add(scaled(base, margin))
}

/// How much is known, in intervals with a sample every minute.
pub(super) fn confidence(aggregate: &Aggregate, settings: &ResourceSettings) -> f64 {
    let interval = settings.confidence_interval;
    let lifetime = match (aggregate.first, aggregate.last) {
        (Some(first), Some(last)) => last.as_nanosecond() - first.as_nanosecond(),
        _ => 0,
    };
    let by_time = lifetime as f64 / interval.as_nanos() as f64;
    let minutes = interval.as_secs_f64() / SECONDS_PER_MINUTE;
    by_time.min(aggregate.n_samples as f64 / minutes)
}

/// Rounded up, and in the form that users asked for.
fn shown(resource: Resource, amount: i64, settings: &Settings) -> Quantity {
    let rounded = round_up(amount, settings.of(resource).round_to);
    let quantity = resource.quantity(rounded);
    if resource == Resource::Memory && settings.humanize_memory {
        humanized(rounded)
    } else {
        quantity
    }
}

/// To the next multiple; a unit of nothing leaves it as it is.
pub(super) fn round_up(amount: i64, unit: i64) -> i64 {
    if unit <= 0 || amount % unit == 0 {
        return amount;
    }
    amount.saturating_add(unit - amount % unit)
}

/// Two digits and the largest unit that fits.
fn humanized(bytes: i64) -> Quantity {
    const UNITS: [(&str, i64); 4] = [
        ("Ti", 1 << 40),
        ("Gi", 1 << 30),
        ("Mi", 1 << 20),
        ("Ki", 1 << 10),
    ];
    let whole = Quantity::of_units(bytes, Suffixes::Binary);
    let unit = UNITS.iter().find(|(_, size)| bytes >= *size);
    let text = unit.map(|(name, size)| format!("{:.2}{name}", bytes as f64 / *size as f64));
    let parsed = text.and_then(|text| Quantity::parse(&text).ok());
    parsed.unwrap_or(whole)
}

/// Rounds CPU up to whole cores where an annotation says so.
fn make_whole(vpa: &Vpa, recommendation: &mut ContainerRecommendation) {
    let [before, after] = INTEGER_CPU;
    let annotation = format!("{before}{}{after}", recommendation.container);
    if vpa
        .annotations
        .get(&annotation)
        .is_none_or(|text| text != "true")
    {
        return;
    }
    for amounts in [
        &mut recommendation.target,
        &mut recommendation.lower,
        &mut recommendation.upper,
        &mut recommendation.uncapped,
    ] {
        if let Some(cpu) = amounts.get_mut(&Resource::Cpu) {
            *cpu = Quantity::of_units(cpu.units(), Suffixes::Decimal);
        }
    }
}
