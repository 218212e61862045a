//! An HPA through many syncs: what its status is after each of them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::condition::{Condition, Conditions};
use crate::hpa::{
    Gates, Hpa, Memory, Metric, Pod, PodUsage, PodValue, Reading, Scale, Settings, World, Written,
    decide, wants_readings,
};
use crate::part::{FieldError, Part};
use crate::selector::{Labels, Selector};

/// What a metrics API that does not answer is said to do.
const NO_ANSWER: &str = "the API does not answer";

pub(super) fn answer(problem: &Part<'_>) -> Result<Value, FieldError> {
    let mut replay = Replay {
        settings: settings(problem)?,
        object: problem.field("hpa").value().clone(),
        hpa: None,
        memory: Memory::default(),
        pods: BTreeMap::new(),
    };
    let mut steps = Vec::new();
    for sync in problem.field("steps").items()? {
        steps.push(replay.sync(&sync)?);
    }
    Ok(json!({"id": problem.field("id").some_text()?, "steps": steps}))
}

fn settings(problem: &Part<'_>) -> Result<Settings, FieldError> {
    let controller = problem.field("controller");
    let default = Settings::default();
    let seconds = |name, default| -> Result<SignedDuration, FieldError> {
        let field = controller.field(name);
        Ok(field.duration()?.unwrap_or(default))
    };
    let gates = problem.field("featureGates");
    let gate = |name, default| -> Result<bool, FieldError> {
        let field = gates.field(name);
        Ok(field.boolean()?.unwrap_or(default))
    };
    let tolerance = controller.field("tolerance");
    Ok(Settings {
        downscale_stabilization: seconds(
            "downscaleStabilizationSeconds",
            default.downscale_stabilization,
        )?,
        tolerance: tolerance.float()?.unwrap_or(default.tolerance),
        cpu_initialization_period: seconds(
            "cpuInitializationPeriodSeconds",
            default.cpu_initialization_period,
        )?,
        initial_readiness_delay: seconds(
            "initialReadinessDelaySeconds",
            default.initial_readiness_delay,
        )?,
        gates: Gates {
            scale_to_zero: gate("HPAScaleToZero", default.gates.scale_to_zero)?,
            configurable_tolerance: gate(
                "HPAConfigurableTolerance",
                default.gates.configurable_tolerance,
            )?,
            pod_level_resources: gate("PodLevelResources", default.gates.pod_level_resources)?,
        },
    })
}

/// An HPA on its way through the syncs.
struct Replay {
    settings: Settings,
    object: Value,
    /// As read from the object, with the status of the last sync.
    hpa: Option<Hpa>,
    memory: Memory,
    pods: BTreeMap<String, Pod>,
}

impl Replay {
    fn sync(&mut self, sync: &Part<'_>) -> Result<Value, FieldError> {
        let now = sync.field("time").some_time()?;
        let hpa = self.current(sync)?;
        self.follow(&sync.field("podEvents"))?;
        let scale = scale(sync)?;
        let selector = scale
            .as_ref()
            .ok()
            .filter(|scale| !scale.selector.is_empty());
        let selector = selector.and_then(|scale| Selector::parse(&scale.selector).ok());
        let chosen = |pod: &&Pod| selector.as_ref().is_some_and(|s| s.matches(&pod.labels));
        let wanted = match &scale {
            Ok(scale) => wants_readings(&hpa, scale, &self.settings),
            Err(_) => false,
        };
        let mut readings = Vec::new();
        for metric in hpa.spec.metrics.iter().filter(|_| wanted) {
            readings.push(reading(metric, &hpa.namespace, selector.as_ref(), sync)?);
        }
        let world = World {
            settings: self.settings,
            scale,
            pods: self.pods.values().filter(chosen).collect(),
            rivals: Vec::new(),
            readings,
        };
        let decision = decide(&hpa, &world, &self.memory, now);
        let fails = sync.field("scaleUpdateFails").boolean()? == Some(true);
        let (written, scaled_to) = match decision.scale_to {
            None => (Written::Nothing, None),
            Some(_) if fails => (Written::Failed("the API does not take it".to_owned()), None),
            Some(size) => (Written::Done, Some(size)),
        };
        let conclusion = decision.conclude(&hpa, &written, &self.settings, now);
        self.memory = conclusion.memory;
        let status = conclusion.status;
        let shown = json!({
            "time": sync.field("time").value(),
            "currentReplicas": status.current_replicas,
            "desiredReplicas": status.desired_replicas,
            "scaledTo": scaled_to,
            "lastScaleTime": status.last_scale_time.map(|time: Timestamp| time.to_string()),
            "conditions": conditions(&status.conditions),
            "currentMetrics": status.current_metrics,
        });
        self.hpa = Some(Hpa { status, ..hpa });
        Ok(shown)
    }

    /// The HPA as it is now: with another spec where the user has replaced it.
    fn current(&mut self, sync: &Part<'_>) -> Result<Hpa, FieldError> {
        let replaced = sync.field("hpaSpec");
        if let (true, Some(object)) = (replaced.is_set(), self.object.as_object_mut()) {
            object.insert("spec".to_owned(), replaced.value().clone());
        }
        let before = self.hpa.take();
        if let Some(hpa) = before.as_ref().filter(|_| !replaced.is_set()) {
            return Ok(hpa.clone());
        }
        let hpa = Hpa::read_stored(&self.object, &self.settings.gates);
        let mut hpa = hpa.map_err(|mut errors| errors.swap_remove(0).below("hpa"))?;
        if let Some(before) = before {
            hpa.status = before.status;
        }
        Ok(hpa)
    }

    fn follow(&mut self, events: &Part<'_>) -> Result<(), FieldError> {
        for event in events.items()? {
            let object = event.field("object");
            if event.field("type").text()? == Some("DELETED") {
                let name = object.field("metadata");
                self.pods.remove(name.field("name").some_text()?);
                continue;
            }
            let pod = Pod::read(object.value()).map_err(|error| error.below(&object.path()))?;
            self.pods.insert(pod.name.clone(), pod);
        }
        Ok(())
    }
}

fn scale(sync: &Part<'_>) -> Result<Result<Scale, String>, FieldError> {
    if sync.field("scaleGetFails").boolean()? == Some(true) {
        return Ok(Err(NO_ANSWER.to_owned()));
    }
    let scale = sync.field("scale");
    let (spec, status) = (scale.field("spec"), scale.field("status"));
    Ok(Ok(Scale {
        replicas: spec.field("replicas").int32()?.unwrap_or(0),
        status_replicas: status.field("replicas").int32()?.unwrap_or(0),
        selector: status
            .field("selector")
            .text()?
            .unwrap_or_default()
            .to_owned(),
    }))
}

/// What the metrics API answers to the query for a metric.
fn reading(
    metric: &Metric,
    namespace: &str,
    selector: Option<&Selector>,
    sync: &Part<'_>,
) -> Result<Result<Reading, String>, FieldError> {
    let list = match metric {
        Metric::Resource { .. } | Metric::ContainerResource { .. } => "podMetrics",
        Metric::Pods { .. } | Metric::Object { .. } => "customMetrics",
        Metric::External { .. } => "externalMetrics",
        Metric::Unknown { .. } => return Ok(Err("nothing is known of it".to_owned())),
    };
    let list = sync.field(list);
    if !list.is_set() {
        return Ok(Err(NO_ANSWER.to_owned()));
    }
    Ok(Ok(match metric {
        Metric::Resource { .. } | Metric::ContainerResource { .. } | Metric::Unknown { .. } => {
            Reading::Usage(usage(&list, selector)?)
        }
        Metric::Pods { metric, .. } => Reading::Values(values(&list, &metric.name)?),
        Metric::Object {
            described, metric, ..
        } => {
            let name = if described.kind == "Namespace" {
                namespace
            } else {
                &described.name
            };
            Reading::Object(of_object(&list, &metric.name, (&described.kind, name))?)
        }
        Metric::External { metric, .. } => {
            Reading::Series(series(&list, &metric.name, metric.selector.as_ref())?)
        }
    }))
}

fn usage(list: &Part<'_>, selector: Option<&Selector>) -> Result<Vec<PodUsage>, FieldError> {
    let mut all = Vec::new();
    for item in list.items()? {
        let meta = item.field("metadata");
        let labels: Labels = meta.field("labels").labels()?;
        if selector.is_some_and(|selector| selector.matches(&labels)) {
            all.push(PodUsage::read(item.value()).map_err(|error| error.below(&item.path()))?);
        }
    }
    Ok(all)
}

fn values(list: &Part<'_>, name: &str) -> Result<Vec<PodValue>, FieldError> {
    let mut all = Vec::new();
    for item in list.items()? {
        let (metric, object) = (item.field("metric"), item.field("describedObject"));
        let is_pod = object.field("kind").text()? == Some("Pod");
        if !is_pod || metric.field("name").text()? != Some(name) {
            continue;
        }
        let window = item.field("windowSeconds").int64()?;
        all.push(PodValue {
            pod: object.field("name").some_text()?.to_owned(),
            time: item.field("timestamp").some_time()?,
            window: window.map(SignedDuration::from_secs),
            value: value(&item)?,
        });
    }
    Ok(all)
}

fn of_object(
    list: &Part<'_>,
    name: &str,
    (kind, object_name): (&str, &str),
) -> Result<Vec<i64>, FieldError> {
    let mut all = Vec::new();
    for item in list.items()? {
        let (metric, object) = (item.field("metric"), item.field("describedObject"));
        if metric.field("name").text()? == Some(name)
            && object.field("kind").text()? == Some(kind)
            && object.field("name").text()? == Some(object_name)
        {
            all.push(value(&item)?);
        }
    }
    Ok(all)
}

fn series(
    list: &Part<'_>,
    name: &str,
    selector: Option<&Selector>,
) -> Result<Vec<i64>, FieldError> {
    let mut all = Vec::new();
    for item in list.items()? {
        let labels = item.field("metricLabels").labels()?;
        let chosen = selector.is_none_or(|selector| selector.matches(&labels));
        if chosen && item.field("metricName").text()? == Some(name) {
            all.push(value(&item)?);
        }
    }
    Ok(all)
}

fn value(item: &Part<'_>) -> Result<i64, FieldError> {
    let field = item.field("value");
    let quantity = field.quantity()?;
    Ok(quantity.ok_or_else(|| field.missing())?.millis())
}

fn conditions(conditions: &Conditions) -> Vec<Value> {
    let shown = |condition: &Condition| {
        json!({
            "type": condition.kind,
            "status": condition.status.as_str(),
            "reason": condition.reason,
        })
    };
    conditions.iter().map(shown).collect()
}
