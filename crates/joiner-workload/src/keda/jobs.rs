//! How many Jobs a ScaledJob makes, and which old ones go.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::readings::{MetricSpec, TriggerReading, mean_target};
use super::rules;
use super::spec::{MAX_REPLICAS, Trigger, seconds, triggers};
use crate::floats::to_i64;
use crate::part::{FieldError, Part};
use crate::selector::Labels;

const POLLING_SECS: i64 = 30;
const HISTORY_LIMIT: i32 = 100;

/// A ScaledJob.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledJob {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The version of what it asks for.
    pub generation: i64,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The Jobs that it makes.
    pub job: Value,
    /// How often triggers are asked.
    pub polling_interval: SignedDuration,
    /// So many Jobs that ended well are kept.
    pub successful_limit: i32,
    /// So many Jobs that failed are kept.
    pub failed_limit: i32,
    /// So many Jobs run always.
    pub min_replicas: i32,
    /// So many Jobs run at most.
    pub max_replicas: Option<i32>,
    /// Whether Jobs of an older version may end by themselves.
    pub is_gradual: bool,
    /// How the queue becomes Jobs.
    pub strategy: Strategy,
    /// Conditions that a pod must have for its Job not to wait any more.
    pub pending_pod_conditions: Vec<String>,
    /// How several triggers become one queue.
    pub calculation: Calculation,
    /// What to look at.
    pub triggers: Vec<Trigger>,
}

/// How a queue becomes Jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strategy {
    /// As many as the queue asks for, less those that run.
    Default,
    /// Less a fixed number and a share of those that run.
    Custom {
        /// The fixed number.
        deduction: i32,
        /// The share.
        percentage: f64,
    },
    /// Messages that are worked on are not in the queue any more; those of waiting Jobs are.
    Accurate,
    /// As many as may run.
    Eager,
}

/// How several triggers become one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calculation {
    /// The longest.
    Max,
    /// The shortest.
    Min,
    /// Their average.
    Avg,
    /// All together.
    Sum,
}

/// A queue, as a number of Jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    /// Whether a trigger is active.
    pub is_active: bool,
    /// How many are wanted.
    pub scale_to: i64,
    /// How many there may be.
    pub max_scale: i64,
}

/// Jobs of a ScaledJob that have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// All of them.
    pub running: i64,
    /// Those that wait for a pod.
    pub pending: i64,
}

impl ScaledJob {
    /// Most Jobs that a queue may ask for.
    #[must_use]
    pub fn max(&self) -> i64 {
        match self.max_replicas {
            Some(max) => i64::from(max) - i64::from(self.min()),
            None => MAX_REPLICAS.into(),
        }
    }

    /// Fewest Jobs, never more than there may be.
    #[must_use]
    pub fn min(&self) -> i32 {
        self.max_replicas
            .map_or(self.min_replicas, |max| self.min_replicas.min(max))
    }

    /// Reads a ScaledJob.
    ///
    /// # Errors
    /// The field that cannot be read.
    pub fn read(object: &Value) -> Result<Self, FieldError> {
        let top = Part::top(object);
        let (meta, spec) = (top.field("metadata"), top.field("spec"));
        let job = spec.field("jobTargetRef");
        if !job.value().is_object() {
            return Err(job.missing());
        }
        let number = |name, default| -> Result<i32, FieldError> {
            let field = spec.field(name);
            match field.int32()? {
                Some(number) if number < 0 => Err(field.not("0 or more")),
                number => Ok(number.unwrap_or(default)),
            }
        };
        let scaling = spec.field("scalingStrategy");
        let conditions = scaling.field("pendingPodConditions");
        Ok(Self {
            namespace: meta
                .field("namespace")
                .text()?
                .unwrap_or_default()
                .to_owned(),
            name: meta.field("name").some_text()?.to_owned(),
            generation: meta.field("generation").int64()?.unwrap_or(0),
            labels: meta.field("labels").labels()?,
            annotations: meta.field("annotations").labels()?,
            job: job.value().clone(),
            polling_interval: seconds(&spec.field("pollingInterval"), 1, POLLING_SECS)?,
            successful_limit: number("successfulJobsHistoryLimit", HISTORY_LIMIT)?,
            failed_limit: number("failedJobsHistoryLimit", HISTORY_LIMIT)?,
            min_replicas: number("minReplicaCount", 0)?,
            max_replicas: spec.field("maxReplicaCount").int32()?,
            is_gradual: is_gradual(&spec)?,
            strategy: strategy(&scaling)?,
            pending_pod_conditions: conditions.texts()?,
            calculation: calculation(&scaling.field("multipleScalersCalculation"))?,
            triggers: triggers(&spec.field("triggers"))?,
        })
    }

    /// What breaks the rules in it.
    #[must_use]
    pub fn complaints(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        // A cache is left aside here, where triggers are asked for each poll only.
        let mut triggers = self.triggers.clone();
        for trigger in &mut triggers {
            trigger.use_cached = false;
        }
        rules::triggers(&triggers, &mut errors);
        for (ix, trigger) in self.triggers.iter().enumerate() {
            if trigger.metric_type.is_some() {
                let path = format!("spec.triggers[{ix}].metricType");
                errors.push(FieldError::new(&path, "must be left out of a ScaledJob"));
            }
        }
        errors
    }

    /// What the triggers ask for.
    #[must_use]
    pub fn queue(&self, triggers: &[(Vec<MetricSpec>, TriggerReading)]) -> Queue {
        let max = self.max() as f64;
        let active = triggers.iter().filter(|(_, reading)| reading.is_active);
        let lengths = active.map(|(specs, reading)| {
            let length: f64 = reading.values.iter().map(|(_, value)| value).sum();
            let target = mean_target(specs);
            let most = if target == 0.0 {
                0.0
            } else {
                (length / target).min(max)
            };
            (length, most)
        });
        let lengths: Vec<(f64, f64)> = lengths.collect();
        let (length, most) = self.calculation.of(&lengths);
        Queue {
            is_active: !lengths.is_empty() || self.min() > 0,
            scale_to: to_i64(length.ceil()),
            max_scale: to_i64(most.min(max).ceil()),
        }
    }

    /// How many Jobs to make now.
    #[must_use]
    pub fn n_to_create(&self, queue: Queue, unfinished: Unfinished) -> i64 {
        let min = i64::from(self.min());
        if unfinished.running < min {
            return min - unfinished.running;
        }
        if !queue.is_active {
            return 0;
        }
        let running = unfinished.running - min;
        let (effective, scale_to) = self.strategy.effective(
            queue,
            Unfinished {
                running,
                ..unfinished
            },
            self.max(),
        );
        scale_to.min(effective.max(0))
    }

    /// A Job to make; `version` is that of the program.
    #[must_use]
    pub fn new_job(&self, version: &str) -> Value {
        let mut labels = Map::new();
        for (label, value) in [
            ("app.kubernetes.io/name", self.name.as_str()),
            ("app.kubernetes.io/version", version),
            ("app.kubernetes.io/part-of", &self.name),
            ("app.kubernetes.io/managed-by", "keda-operator"),
            (JOB_LABEL, &self.name),
        ] {
            labels.insert(label.to_owned(), json!(value));
        }
        let excluded = self
            .annotations
            .get("scaledjob.keda.sh/job-excluded-labels");
        let excluded = excluded.map(String::as_str).unwrap_or_default();
        for (label, value) in &self.labels {
            if !excluded.split(',').any(|name| name.trim() == label) {
                labels.insert(label.clone(), json!(value));
            }
        }
        let mut annotations: Map<String, Value> = Map::new();
        for (name, value) in &self.annotations {
            annotations.insert(name.clone(), json!(value));
        }
        annotations.insert(GENERATION.to_owned(), json!(self.generation.to_string()));
        let mut spec = self.job.clone();
        let template = spec.get_mut("template").and_then(Value::as_object_mut);
        if let Some(template) = template {
            fill_in(template, &labels);
        }
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "generateName": format!("{}-", self.name),
                "namespace": self.namespace,
                "labels": labels,
                "annotations": annotations,
            },
            "spec": spec,
        })
    }
}

/// The label by which Jobs are found again.
pub const JOB_LABEL: &str = "scaledjob.keda.sh/name";
/// The annotation with the version that a Job was made of.
pub const GENERATION: &str = "scaledjob.keda.sh/generation";

/// Pods of Jobs do not start again unless they are told to, and carry the name of the ScaledJob.
fn fill_in(template: &mut Map<String, Value>, labels: &Map<String, Value>) {
    let spec = template.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        let policy = spec.entry("restartPolicy").or_insert(Value::Null);
        if policy.is_null() || *policy == "" {
            *policy = json!("OnFailure");
        }
    }
    let meta = template.entry("metadata").or_insert_with(|| json!({}));
    let meta = meta.as_object_mut();
    let all = meta.map(|meta| meta.entry("labels").or_insert_with(|| json!({})));
    if let Some(all) = all.and_then(Value::as_object_mut) {
        all.insert(JOB_LABEL.to_owned(), labels[JOB_LABEL].clone());
    }
}

fn is_gradual(spec: &Part<'_>) -> Result<bool, FieldError> {
    let old = spec.field("rolloutStrategy");
    let rollout = spec.field("rollout");
    let new = rollout.field("strategy");
    let text = old.text()?.filter(|text| !text.is_empty());
    match text.map_or_else(|| new.text(), |text| Ok(Some(text)))? {
        Some("gradual") => Ok(true),
        Some("immediate" | "default" | "") | None => Ok(false),
        Some(_) => Err(new.not("gradual or immediate")),
    }
}

fn strategy(part: &Part<'_>) -> Result<Strategy, FieldError> {
    let percentage = part.field("customScalingRunningJobPercentage");
    let percentage = percentage.text()?.and_then(|text| text.parse::<f64>().ok());
    let deduction = part.field("customScalingQueueLengthDeduction").int32()?;
    let field = part.field("strategy");
    Ok(match (field.text()?, percentage) {
        (Some("accurate"), _) => Strategy::Accurate,
        (Some("eager"), _) => Strategy::Eager,
        (Some("custom"), Some(percentage)) => Strategy::Custom {
            deduction: deduction.unwrap_or(0),
            percentage,
        },
        (Some("custom" | "default" | "") | None, _) => Strategy::Default,
        (Some(_), _) => return Err(field.not("default, custom, accurate or eager")),
    })
}

fn calculation(field: &Part<'_>) -> Result<Calculation, FieldError> {
    Ok(match field.text()? {
        None | Some("max" | "") => Calculation::Max,
        Some("min") => Calculation::Min,
        Some("avg") => Calculation::Avg,
        Some("sum") => Calculation::Sum,
        Some(_) => return Err(field.not("max, min, avg or sum")),
    })
}

impl Calculation {
    /// Length of a queue and most Jobs for it, of several.
    fn of(self, all: &[(f64, f64)]) -> (f64, f64) {
        let sum = all
            .iter()
            .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        match self {
            Self::Max => all.iter().fold(
                (0.0, 0.0),
                |best, one| if one.0 > best.0 { *one } else { best },
            ),
            // An empty queue is as good as none so far.
            Self::Min => all.iter().fold((0.0, 0.0), |best, one| {
                if best.0 == 0.0 || one.0 < best.0 {
                    *one
                } else {
                    best
                }
            }),
            Self::Avg if all.is_empty() => sum,
            Self::Avg => (sum.0 / all.len() as f64, sum.1 / all.len() as f64),
            Self::Sum => sum,
        }
    }
}

impl Strategy {
    /// How many may be made, and how many are wanted.
    pub(super) fn effective(self, queue: Queue, unfinished: Unfinished, max: i64) -> (i64, i64) {
        let Unfinished { running, pending } = unfinished;
        let wanted = queue.max_scale;
        match self {
            Self::Default => (wanted - running, queue.scale_to),
            Self::Custom {
                deduction,
                percentage,
            } => {
                let share = to_i64(running as f64 * percentage);
                (
                    (wanted - i64::from(deduction) - share).min(max),
                    queue.scale_to,
                )
            }
            Self::Accurate if wanted + running - pending > max => (max - running, queue.scale_to),
            Self::Accurate => (wanted - pending, queue.scale_to),
            Self::Eager => ((max - running - pending).min(wanted), max),
        }
    }
}

/// A Job that a ScaledJob made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Whether it ended, and well.
    pub finished: Option<bool>,
    /// When it ended.
    pub completed: Option<Timestamp>,
    /// Its pods: whether each has run, and which conditions it has.
    pub pods: Vec<JobPod>,
}

/// A pod of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobPod {
    /// Whether it runs, or ended well.
    pub has_run: bool,
    /// The conditions that hold for it.
    pub conditions: Vec<String>,
}

impl ScaledJob {
    /// How many Jobs have not ended, and how many of these wait.
    #[must_use]
    pub fn unfinished(&self, jobs: &[Job]) -> Unfinished {
        let wanted = &self.pending_pod_conditions;
        let has_all = |pod: &JobPod| wanted.iter().all(|kind| pod.conditions.contains(kind));
        let started = |job: &Job| match wanted.is_empty() {
            true => job.pods.iter().any(|pod| pod.has_run),
            false => job.pods.iter().any(has_all),
        };
        let unfinished = jobs.iter().filter(|job| job.finished.is_none());
        let count = |counts: Unfinished, job: &Job| Unfinished {
            running: counts.running + 1,
            pending: counts.pending + i64::from(!started(job)),
        };
        unfinished.fold(Unfinished::default(), count)
    }

    /// Names of ended Jobs that are too many, the oldest first.
    #[must_use]
    pub fn outdated<'j>(&self, jobs: &'j [Job]) -> Vec<&'j str> {
        let mut names = Vec::new();
        for (well, limit) in [(true, self.successful_limit), (false, self.failed_limit)] {
            let mut ended: Vec<&Job> = jobs
                .iter()
                .filter(|job| job.finished == Some(well))
                .collect();
            ended.sort_by_key(|job| job.completed);
            let keep = usize::try_from(limit).unwrap_or(0);
            let n_gone = ended.len().saturating_sub(keep);
            names.extend(ended.into_iter().take(n_gone).map(|job| job.name.as_str()));
        }
        names
    }
}
