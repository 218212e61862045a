//! All that a decision about an HPA may rest on besides the HPA and what was decided before.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::pods::{Pod, amounts};
use crate::part::{FieldError, Part};

/// Settings of the controller, by the names of its flags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// `--horizontal-pod-autoscaler-downscale-stabilization`.
    pub downscale_stabilization: SignedDuration,
    /// `--horizontal-pod-autoscaler-tolerance`.
    pub tolerance: f64,
    /// `--horizontal-pod-autoscaler-cpu-initialization-period`.
    pub cpu_initialization_period: SignedDuration,
    /// `--horizontal-pod-autoscaler-initial-readiness-delay`.
    pub initial_readiness_delay: SignedDuration,
    /// Feature gates.
    pub gates: Gates,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            downscale_stabilization: SignedDuration::from_mins(5),
            tolerance: 0.1,
            cpu_initialization_period: SignedDuration::from_mins(5),
            initial_readiness_delay: SignedDuration::from_secs(30),
            gates: Gates::default(),
        }
    }
}

/// Feature gates of Kubernetes that scaling knows, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// `HPAScaleToZero`.
    pub scale_to_zero: bool,
    /// `HPAConfigurableTolerance`.
    pub configurable_tolerance: bool,
    /// `PodLevelResources`.
    pub pod_level_resources: bool,
}

impl Default for Gates {
    /// As Kubernetes 1.36 has them.
    fn default() -> Self {
        Self {
            scale_to_zero: false,
            configurable_tolerance: true,
            pod_level_resources: true,
        }
    }
}

/// What the scale subresource of the target says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// Replicas that were asked for.
    pub replicas: i32,
    /// Replicas that there are.
    pub status_replicas: i32,
    /// The selector of the pods, as text; empty when there is none.
    pub selector: String,
}

/// What a pod used, as the metrics API says it.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUsage {
    /// The pod's name.
    pub pod: String,
    /// When it was measured.
    pub time: Timestamp,
    /// For how long it was measured.
    pub window: SignedDuration,
    /// Each container with its usage of resources, in thousandths.
    pub containers: Vec<(String, BTreeMap<String, i64>)>,
}

impl PodUsage {
    /// Reads an item of the metrics API.
    ///
    /// # Errors
    /// The field that cannot be read.
    pub fn read(item: &Value) -> Result<Self, FieldError> {
        let top = Part::top(item);
        let mut containers = Vec::new();
        for container in top.field("containers").items()? {
            let name = container.field("name").some_text()?.to_owned();
            containers.push((name, amounts(&container.field("usage"))?));
        }
        Ok(Self {
            pod: top.field("metadata").field("name").some_text()?.to_owned(),
            time: top.field("timestamp").some_time()?,
            window: top.field("window").duration()?.unwrap_or_default(),
            containers,
        })
    }
}

/// What a pod's figure is.
#[derive(Clone, Debug, PartialEq)]
pub struct PodValue {
    /// The pod's name.
    pub pod: String,
    /// When it was measured.
    pub time: Timestamp,
    /// For how long it was measured; `None` counts as a minute.
    pub window: Option<SignedDuration>,
    /// The figure, in thousandths.
    pub value: i64,
}

/// What a metrics API answered for one metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Usage of pods that the target's selector chooses.
    Usage(Vec<PodUsage>),
    /// A figure of each of those pods.
    Values(Vec<PodValue>),
    /// A figure of an object, in thousandths; there should be one.
    Object(Vec<i64>),
    /// Series from outside, in thousandths.
    Series(Vec<i64>),
}

/// All that a decision may rest on besides the HPA and what was decided before.
#[derive(Clone, Debug)]
pub struct World<'a> {
    /// Settings of the controller.
    pub settings: Settings,
    /// The target's scale, or why it could not be read.
    pub scale: Result<Scale, String>,
    /// The pods of the namespace that the scale's selector chooses.
    pub pods: Vec<&'a Pod>,
    /// Other HPAs whose selectors choose one of these pods, as `namespace/name`.
    pub rivals: Vec<String>,
    /// For each metric of the HPA, in order, what its API answered or why it did not. Nothing needs to
    /// be asked where [`super::wants_readings`] says so.
    pub readings: Vec<Result<Reading, String>>,
}
