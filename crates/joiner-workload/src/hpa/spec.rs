//! What an HPA asks for, parsed, with defaults filled in.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::Conditions;
use crate::quantity::Quantity;
use crate::selector::Selector;

/// A HorizontalPodAutoscaler.
#[derive(Clone, Debug, PartialEq)]
pub struct Hpa {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it asks for.
    pub spec: Spec,
    /// What it says of itself.
    pub status: Status,
}

/// What an HPA asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What to scale.
    pub target: TargetRef,
    /// The fewest replicas.
    pub min_replicas: i32,
    /// The most replicas.
    pub max_replicas: i32,
    /// What to look at; the largest answer counts.
    pub metrics: Vec<Metric>,
    /// How fast to go up and down.
    pub behavior: Option<Behavior>,
}

impl Spec {
    /// Whether a metric says something while there are no pods.
    #[must_use]
    pub fn looks_outside(&self) -> bool {
        self.metrics.iter().any(Metric::is_outside)
    }
}

/// An object by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetRef {
    /// Group and version, such as `apps/v1`.
    pub api_version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// Its name, in the namespace of who refers to it.
    pub name: String,
}

/// A metric by name, narrowed by labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricId {
    /// The metric's name.
    pub name: String,
    /// Which of its series.
    pub selector: Option<Selector>,
    /// The selector as it was written, to be repeated in the status.
    pub selector_text: Option<Value>,
}

/// What to look at, and what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Usage of a resource, of all containers of a pod.
    Resource {
        /// `cpu`, `memory` or another resource.
        name: String,
        /// What a pod should use.
        target: ResourceTarget,
    },
    /// Usage of a resource, of one container of each pod.
    ContainerResource {
        /// `cpu`, `memory` or another resource.
        name: String,
        /// The container.
        container: String,
        /// What it should use.
        target: ResourceTarget,
    },
    /// A figure that each pod has.
    Pods {
        /// The figure.
        metric: MetricId,
        /// What it should be on average, in thousandths.
        average: i64,
    },
    /// A figure of another object.
    Object {
        /// The object.
        described: TargetRef,
        /// The figure.
        metric: MetricId,
        /// What it should be.
        target: ValueTarget,
    },
    /// A figure from outside the cluster.
    External {
        /// The figure.
        metric: MetricId,
        /// What it should be.
        target: ValueTarget,
    },
    /// A kind of metric that this version does not know.
    Unknown {
        /// What it is called.
        kind: String,
    },
}

/// What the usage of a resource should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceTarget {
    /// Percent of what is requested.
    Utilization(i32),
    /// Thousandths per pod.
    Average(i64),
    /// Neither was given.
    Unset,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueTarget {
    /// Thousandths in all.
    Value(i64),
    /// Thousandths per replica.
    Average(i64),
    /// Neither was given, or not the one that the type of the target says.
    Unset,
}

impl Metric {
    /// The name of its type in the API.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Resource { .. } => "Resource",
            Self::ContainerResource { .. } => "ContainerResource",
            Self::Pods { .. } => "Pods",
            Self::Object { .. } => "Object",
            Self::External { .. } => "External",
            Self::Unknown { kind } => kind,
        }
    }

    /// Whether it can be read while there are no pods.
    #[must_use]
    pub const fn is_outside(&self) -> bool {
        matches!(self, Self::Object { .. } | Self::External { .. })
    }

    /// What messages call it.
    #[must_use]
    pub fn describe(&self) -> String {
        let per_replica = |metric: &MetricId| {
            let selector = metric.selector.as_ref();
            let selector = selector.map(ToString::to_string).unwrap_or_default();
            format!("external metric {}({selector})", metric.name)
        };
        match self {
            Self::Resource { name, target } => match target {
                ResourceTarget::Utilization(_) => {
                    format!("{name} resource utilization (percentage of request)")
                }
                ResourceTarget::Average(_) | ResourceTarget::Unset => format!("{name} resource"),
            },
            Self::ContainerResource { name, target, .. } => match target {
                ResourceTarget::Utilization(_) => {
                    format!("{name} container resource utilization (percentage of request)")
                }
                ResourceTarget::Average(_) | ResourceTarget::Unset => {
                    format!("{name} container resource")
                }
            },
            Self::Pods { metric, .. } => format!("pods metric {}", metric.name),
            Self::Object {
                described,
                metric,
                target,
            } => match target {
                ValueTarget::Value(_) => format!("{} metric {}", described.kind, metric.name),
                ValueTarget::Average(_) | ValueTarget::Unset => per_replica(metric),
            },
            Self::External { metric, .. } => per_replica(metric),
            Self::Unknown { kind } => format!("metric of unknown type {kind:?}"),
        }
    }

    /// The word for conditions and events when it cannot be read.
    #[must_use]
    pub const fn failure(&self) -> &'static str {
        match self {
            Self::Resource { .. } => "FailedGetResourceMetric",
            Self::ContainerResource { .. } => "FailedGetContainerResourceMetric",
            Self::Pods { .. } => "FailedGetPodsMetric",
            Self::Object { .. } => "FailedGetObjectMetric",
            Self::External { .. } => "FailedGetExternalMetric",
            Self::Unknown { .. } => "InvalidMetricSourceType",
        }
    }
}

/// How fast to go up and down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behavior {
    /// Towards more replicas.
    pub up: Rules,
    /// Towards fewer replicas.
    pub down: Rules,
}

/// How fast to go one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// For how long older recommendations count, in seconds; `None` stands for the controller's setting.
    pub window_secs: Option<i32>,
    /// Which policy counts.
    pub select: Select,
    /// How much may change in how long.
    pub policies: Vec<Policy>,
    /// How far from the target a metric may be without effect; `None` stands for the controller's setting.
    pub tolerance: Option<Quantity>,
}

/// Which of several policies counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The one that allows the most change.
    Max,
    /// The one that allows the least change.
    Min,
    /// None: there is no change in this direction.
    Disabled,
}

/// How much may change in how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How much.
    pub amount: Amount,
    /// In how long, in seconds.
    pub period_secs: i32,
}

/// How many replicas may come or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Pods(i32),
    /// So many in a hundred of those that there were.
    Percent(i32),
}

/// What an HPA says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Replicas before the last decision.
    pub current_replicas: i32,
    /// Replicas after it.
    pub desired_replicas: i32,
    /// When the size was last changed.
    pub last_scale_time: Option<Timestamp>,
    /// What the metrics were, as the API has them.
    pub current_metrics: Vec<Value>,
    /// What else is to say.
    pub conditions: Conditions,
}

impl Status {
    /// As the API has it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("currentReplicas".to_owned(), json!(self.current_replicas));
        map.insert("desiredReplicas".to_owned(), json!(self.desired_replicas));
        if let Some(time) = self.last_scale_time {
            map.insert("lastScaleTime".to_owned(), json!(time.to_string()));
        }
        let metrics = match self.current_metrics.as_slice() {
            [] => Value::Null,
            metrics => json!(metrics),
        };
        map.insert("currentMetrics".to_owned(), metrics);
        map.insert("conditions".to_owned(), self.conditions.to_json());
        Value::Object(map)
    }
}
