//! One metric: from what its API answered to how many replicas it asks for, and what the status shows.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::pods::{Groups, NO_PODS, Sample, Samples, count_ready, requests};
use super::replicas::{Answer, PerPod, Tolerances, in_all, per_replica};
use super::spec::{Hpa, Metric, MetricId, ResourceTarget, Spec, TargetRef, ValueTarget};
use super::world::{PodUsage, PodValue, Reading, Scale, World};
use crate::quantity::{Quantity, Suffixes};

/// Window of a figure that has none.
const WINDOW: SignedDuration = SignedDuration::from_mins(1);

/// What one metric asks for, and what that rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// What messages call the metric.
    pub metric: String,
    /// How many replicas.
    pub replicas: i32,
    /// Measured over wanted, before pods are assumed that have no sample.
    pub ratio: f64,
    /// Percent of the requests that are used.
    pub utilization: Option<i32>,
    /// The figure in thousandths: per pod, per replica, or in all.
    pub measured: i64,
    /// As the status shows it.
    pub(crate) status: Value,
}

/// Why a metric asks for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In one word.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

/// What the metrics of an HPA are evaluated with.
pub(crate) struct Evaluation<'a> {
    world: &'a World<'a>,
    scale: &'a Scale,
    tolerances: Tolerances,
    now: Timestamp,
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(hpa: &Hpa, world: &'a World<'a>, scale: &'a Scale, now: Timestamp) -> Self {
        Self {
            world,
            scale,
            tolerances: tolerances(&hpa.spec, world),
            now,
        }
    }

    /// What a metric asks for, given what its API answered.
    pub(crate) fn proposal(
        &self,
        metric: &Metric,
        reading: Option<&Result<Reading, String>>,
    ) -> Result<Proposal, Failure> {
        let answer = match metric {
            Metric::Unknown { kind } => Err(format!(
                "{kind:?} is no type of metric; use Resource, ContainerResource, Pods, Object or External"
            )),
            Metric::Resource { .. }
            | Metric::ContainerResource { .. }
            | Metric::Pods { .. }
            | Metric::Object { .. }
            | Metric::External { .. } => match reading {
                Some(Ok(reading)) => self.answer(metric, reading),
                Some(Err(why)) => Err(why.clone()),
                None => Err("it was not asked for".to_owned()),
            },
        };
        let answer = answer.map_err(|why| Failure {
            reason: metric.failure(),
            message: format!("{}: {why}", metric.describe()),
        })?;
        Ok(Proposal {
            metric: metric.describe(),
            replicas: answer.replicas,
            ratio: answer.ratio,
            utilization: answer.utilization,
            measured: answer.measured,
            status: status(metric, &answer, self.scale.status_replicas),
        })
    }

    fn answer(&self, metric: &Metric, reading: &Reading) -> Result<Answer, String> {
        match (metric, reading) {
            (Metric::Resource { name, target }, Reading::Usage(usage)) => {
                self.of_resource(usage, name, None, *target)
            }
            (
                Metric::ContainerResource {
                    name,
                    container,
                    target,
                },
                Reading::Usage(usage),
            ) => self.of_resource(usage, name, Some(container), *target),
            (Metric::Pods { average, .. }, Reading::Values(values)) => {
                self.of_pods(by_pod(values)?, "", *average)
            }
            (Metric::Object { target, .. }, Reading::Object(values)) => {
                let [value] = values.as_slice() else {
                    let n = values.len();
                    return Err(format!("the API answered with {n} values instead of one"));
                };
                self.of_value(*value, *target)
            }
            (Metric::External { target, .. }, Reading::Series(values)) => {
                let sum = sum(values)?;
                let mut answer = self.of_value(sum, *target)?;
                if sum == i64::MAX {
                    answer.measured = sum;
                }
                Ok(answer)
            }
            (
                Metric::Resource { .. }
                | Metric::ContainerResource { .. }
                | Metric::Pods { .. }
                | Metric::Object { .. }
                | Metric::External { .. }
                | Metric::Unknown { .. },
                _,
            ) => Err("the answer is that of another type of metric".to_owned()),
        }
    }

    fn of_resource(
        &self,
        usage: &[PodUsage],
        resource: &str,
        container: Option<&str>,
        target: ResourceTarget,
    ) -> Result<Answer, String> {
        let target = match target {
            ResourceTarget::Utilization(percent) => {
                let samples = samples(usage, resource, container)?;
                return self.of_requests(samples, resource, container, percent);
            }
            ResourceTarget::Average(average) => average,
            ResourceTarget::Unset => {
                return Err("neither averageUtilization nor averageValue is set".to_owned());
            }
        };
        self.of_pods(samples(usage, resource, container)?, resource, target)
    }

    fn of_requests(
        &self,
        samples: Samples,
        resource: &str,
        container: Option<&str>,
        percent: i32,
    ) -> Result<Answer, String> {
        let (samples, groups) = self.counted(samples, resource)?;
        let pods = &self.world.pods;
        let requests = requests(pods, resource, container, &self.world.settings)?;
        self.per_pod(samples, groups, Some(&requests), percent.into())
    }

    fn of_pods(&self, samples: Samples, resource: &str, target: i64) -> Result<Answer, String> {
        let (samples, groups) = self.counted(samples, resource)?;
        self.per_pod(samples, groups, None, target)
    }

    fn per_pod(
        &self,
        samples: Samples,
        groups: Groups,
        requests: Option<&BTreeMap<String, i64>>,
        target: i64,
    ) -> Result<Answer, String> {
        let per_pod = PerPod {
            samples,
            groups,
            current: self.scale.replicas,
            tolerances: self.tolerances,
            requests,
            target,
        };
        per_pod.answer()
    }

    /// Samples of pods that count, and which those are.
    fn counted(&self, mut samples: Samples, resource: &str) -> Result<(Samples, Groups), String> {
        let (pods, settings) = (&self.world.pods, &self.world.settings);
        if pods.is_empty() {
            return Err(NO_PODS.to_owned());
        }
        let groups = Groups::of(pods, &samples, resource, settings, self.now);
        samples.retain(|pod, _| !groups.ignored.contains(pod) && !groups.unready.contains(pod));
        if samples.is_empty() {
            return Err("no pod that counts has a metric; they may not be ready yet".to_owned());
        }
        Ok((samples, groups))
    }

    fn of_value(&self, usage: i64, target: ValueTarget) -> Result<Answer, String> {
        let (scale, tolerances) = (self.scale, self.tolerances);
        match target {
            ValueTarget::Value(target) => {
                let ready = || count_ready(&self.world.pods);
                in_all(usage, target, scale.replicas, tolerances, ready)
            }
            ValueTarget::Average(target) => Ok(per_replica(
                usage,
                target,
                scale.status_replicas,
                tolerances,
            )),
            ValueTarget::Unset => Err("neither value nor averageValue is set".to_owned()),
        }
    }
}

/// How far a metric may be from its target: what the HPA says, else what the controller says.
fn tolerances(spec: &Spec, world: &World<'_>) -> Tolerances {
    let default = world.settings.tolerance;
    let behavior = spec.behavior.as_ref();
    let behavior = behavior.filter(|_| world.settings.gates.configurable_tolerance);
    let of = |tolerance: Option<Quantity>| tolerance.map_or(default, Quantity::approximately);
    Tolerances {
        up: of(behavior.and_then(|behavior| behavior.up.tolerance)),
        down: of(behavior.and_then(|behavior| behavior.down.tolerance)),
    }
}

/// Usage of pods, of one container or all. Pods of which something is missing have no sample.
fn samples(usage: &[PodUsage], resource: &str, container: Option<&str>) -> Result<Samples, String> {
    if usage.is_empty() {
        return Err("the API has no metrics of pods that the selector chooses".to_owned());
    }
    let value = |pod: &PodUsage| -> Option<i64> {
        if let Some(container) = container {
            let mut all = pod.containers.iter();
            let (_, usage) = all.find(|(name, _)| name == container)?;
            return usage.get(resource).copied();
        }
        let mut sum = None;
        for (_, usage) in &pod.containers {
            sum = Some(sum.unwrap_or(0_i64).wrapping_add(*usage.get(resource)?));
        }
        sum
    };
    let sample = |pod: &PodUsage| {
        let sample = Sample {
            time: pod.time,
            window: pod.window,
            value: value(pod)?,
        };
        Some((pod.pod.clone(), sample))
    };
    Ok(usage.iter().filter_map(sample).collect())
}

fn by_pod(values: &[PodValue]) -> Result<Samples, String> {
    if values.is_empty() {
        return Err("the API has no metrics of pods that the selector chooses".to_owned());
    }
    let sample = |value: &PodValue| {
        let sample = Sample {
            time: value.time,
            window: value.window.unwrap_or(WINDOW),
            value: value.value,
        };
        (value.pod.clone(), sample)
    };
    Ok(values.iter().map(sample).collect())
}

/// All series together; more than can be counted is the most that can be.
fn sum(values: &[i64]) -> Result<i64, String> {
    if values.is_empty() {
        return Err("the API has no series that the selector chooses".to_owned());
    }
    Ok(values
        .iter()
        .fold(0, |sum: i64, one| sum.saturating_add(*one)))
}

/// A metric in the status, in the form of the API.
fn status(metric: &Metric, answer: &Answer, status_replicas: i32) -> Value {
    let milli = |suffixes| json!(Quantity::of_millis(answer.measured, suffixes).to_string());
    let of_resource = |name: &str| {
        let memory = name == "memory";
        let suffixes = if memory {
            Suffixes::Binary
        } else {
            Suffixes::Decimal
        };
        let mut current = Map::new();
        if let Some(percent) = answer.utilization {
            current.insert("averageUtilization".to_owned(), json!(percent));
        }
        current.insert("averageValue".to_owned(), milli(suffixes));
        current
    };
    let of_value = |target: &ValueTarget| match target {
        ValueTarget::Value(_) => json!({"value": milli(Suffixes::Decimal)}),
        // There is no average over nothing.
        ValueTarget::Average(_) | ValueTarget::Unset if status_replicas == 0 => json!({}),
        ValueTarget::Average(_) | ValueTarget::Unset => {
            json!({"averageValue": milli(Suffixes::Decimal)})
        }
    };
    match metric {
        Metric::Resource { name, .. } => json!({"type": "Resource", "resource": {
            "name": name, "current": of_resource(name),
        }}),
        Metric::ContainerResource {
            name, container, ..
        } => json!({"type": "ContainerResource", "containerResource": {
            "name": name, "container": container, "current": of_resource(name),
        }}),
        Metric::Pods { metric, .. } => json!({"type": "Pods", "pods": {
            "metric": identifier(metric), "current": {"averageValue": milli(Suffixes::Decimal)},
        }}),
        Metric::Object {
            described,
            metric,
            target,
        } => json!({"type": "Object", "object": {
            "describedObject": reference(described),
            "metric": identifier(metric),
            "current": of_value(target),
        }}),
        Metric::External { metric, target } => json!({"type": "External", "external": {
            "metric": identifier(metric), "current": of_value(target),
        }}),
        Metric::Unknown { .. } => failed(),
    }
}

/// A metric in the status that could not be read.
pub(crate) fn failed() -> Value {
    json!({"type": ""})
}

fn identifier(metric: &MetricId) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(metric.name));
    if let Some(selector) = &metric.selector_text {
        map.insert("selector".to_owned(), selector.clone());
    }
    Value::Object(map)
}

fn reference(target: &TargetRef) -> Value {
    let mut map = Map::new();
    if !target.api_version.is_empty() {
        map.insert("apiVersion".to_owned(), json!(target.api_version));
    }
    map.insert("kind".to_owned(), json!(target.kind));
    map.insert("name".to_owned(), json!(target.name));
    Value::Object(map)
}
