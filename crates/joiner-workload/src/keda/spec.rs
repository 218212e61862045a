//! What a ScaledObject asks for, parsed, with defaults filled in.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::hpa::TargetRef;
use crate::part::{FieldError, Part};
use crate::selector::Labels;

/// Replicas at most where nothing is said.
pub const MAX_REPLICAS: i32 = 100;
const POLLING_SECS: i64 = 30;
const COOLDOWN_SECS: i64 = 300;

/// A ScaledObject.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledObject {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// What to scale.
    pub target: TargetRef,
    /// How often triggers are asked.
    pub polling_interval: SignedDuration,
    /// How long triggers must be quiet before there are no replicas.
    pub cooldown: SignedDuration,
    /// The same for an object whose triggers never were active.
    pub initial_cooldown: SignedDuration,
    /// Replicas while triggers are quiet, where that is another number than the fewest.
    pub idle_replicas: Option<i32>,
    /// The fewest replicas, as it was written.
    pub min_replicas: Option<i32>,
    /// The most replicas, as it was written.
    pub max_replicas: Option<i32>,
    /// What to do when a trigger cannot be asked.
    pub fallback: Option<Fallback>,
    /// Whether the size is set back when the object goes.
    pub restore_size: bool,
    /// Another name for the HPA.
    pub hpa_name: Option<String>,
    /// How fast the HPA goes up and down, as it was written.
    pub behavior: Option<Value>,
    /// One metric made of all.
    pub modifiers: Option<Modifiers>,
    /// What to look at.
    pub triggers: Vec<Trigger>,
}

/// What to do when a trigger cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// After more failures than this.
    pub failure_threshold: i32,
    /// So many replicas, …
    pub replicas: i32,
    /// … or another number.
    pub behavior: FallbackBehavior,
}

/// Which number of replicas a fallback means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackBehavior {
    /// The one that it names.
    Static,
    /// The current one.
    CurrentReplicas,
    /// The larger one of both.
    CurrentReplicasIfHigher,
    /// The smaller one of both.
    CurrentReplicasIfLower,
    /// What the formula makes of the missing value.
    ScalingModifiers,
}

/// One metric made of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modifiers {
    /// How, over the names of triggers.
    pub formula: String,
    /// What it should be, as it was written.
    pub target: String,
    /// Above which it makes the object active, as it was written.
    pub activation_target: String,
    /// How it is compared with the target.
    pub metric_type: MetricType,
}

/// How a metric is compared with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// Per replica.
    AverageValue,
    /// In all.
    Value,
    /// In percent of requests.
    Utilization,
}

impl MetricType {
    /// Its word in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AverageValue => "AverageValue",
            Self::Value => "Value",
            Self::Utilization => "Utilization",
        }
    }
}

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// What it is, such as `cron`.
    pub kind: String,
    /// Its name in formulas; may be empty.
    pub name: String,
    /// What it needs to know.
    pub metadata: BTreeMap<String, String>,
    /// Whether the HPA is told what the last poll found.
    pub use_cached: bool,
    /// Name and kind of the object with its secrets.
    pub authentication: Option<(String, String)>,
    /// How its metric is compared, if that was said.
    pub metric_type: Option<MetricType>,
}

impl Trigger {
    /// Whether it is about the usage of pods, which the HPA looks at itself.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        matches!(self.kind.as_str(), "cpu" | "memory")
    }
}

impl ScaledObject {
    /// The fewest replicas.
    #[must_use]
    pub fn min(&self) -> i32 {
        self.min_replicas.unwrap_or(0)
    }

    /// The most replicas.
    #[must_use]
    pub fn max(&self) -> i32 {
        self.max_replicas.unwrap_or(MAX_REPLICAS)
    }

    /// The name of its HPA.
    #[must_use]
    pub fn hpa_name(&self) -> String {
        let default = || format!("keda-hpa-{}", self.name);
        self.hpa_name.clone().unwrap_or_else(default)
    }

    /// Whether all triggers are about the usage of pods.
    #[must_use]
    pub fn looks_inside_only(&self) -> bool {
        self.triggers.iter().all(Trigger::is_resource)
    }

    /// Reads a ScaledObject. What it may ask for is checked by [`super::complaints`].
    ///
    /// # Errors
    /// The field that cannot be read.
    pub fn read(object: &Value) -> Result<Self, FieldError> {
        let top = Part::top(object);
        let (meta, spec) = (top.field("metadata"), top.field("spec"));
        let target = spec.field("scaleTargetRef");
        let or = |name, default: &str| -> Result<String, FieldError> {
            let field = target.field(name);
            let text = field.text()?.filter(|text| !text.is_empty());
            Ok(text.unwrap_or(default).to_owned())
        };
        let advanced = spec.field("advanced");
        let config = advanced.field("horizontalPodAutoscalerConfig");
        let hpa_name = config.field("name");
        let hpa_name = hpa_name.text()?.filter(|name| !name.is_empty());
        let behavior = config.field("behavior");
        let restore = advanced.field("restoreToOriginalReplicaCount");
        Ok(Self {
            namespace: meta
                .field("namespace")
                .text()?
                .unwrap_or_default()
                .to_owned(),
            name: meta.field("name").some_text()?.to_owned(),
            created: meta.field("creationTimestamp").time()?,
            labels: meta.field("labels").labels()?,
            annotations: meta.field("annotations").labels()?,
            target: TargetRef {
                api_version: or("apiVersion", "apps/v1")?,
                kind: or("kind", "Deployment")?,
                name: target.field("name").some_text()?.to_owned(),
            },
            polling_interval: seconds(&spec.field("pollingInterval"), 1, POLLING_SECS)?,
            cooldown: seconds(&spec.field("cooldownPeriod"), 0, COOLDOWN_SECS)?,
            initial_cooldown: seconds(&spec.field("initialCooldownPeriod"), 0, 0)?,
            idle_replicas: at_least(&spec.field("idleReplicaCount"), 0)?,
            min_replicas: at_least(&spec.field("minReplicaCount"), 0)?,
            max_replicas: at_least(&spec.field("maxReplicaCount"), 1)?,
            fallback: fallback(&spec.field("fallback"))?,
            restore_size: restore.boolean()?.unwrap_or(false),
            hpa_name: hpa_name.map(str::to_owned),
            behavior: behavior.is_set().then(|| behavior.value().clone()),
            modifiers: modifiers(&advanced.field("scalingModifiers"))?,
            triggers: triggers(&spec.field("triggers"))?,
        })
    }
}

fn at_least(field: &Part<'_>, least: i32) -> Result<Option<i32>, FieldError> {
    let number = field.int32()?;
    if number.is_some_and(|number| number < least) {
        return Err(field.not(&format!("{least} or more")));
    }
    Ok(number)
}

pub(super) fn seconds(
    field: &Part<'_>,
    least: i32,
    default: i64,
) -> Result<SignedDuration, FieldError> {
    let seconds = at_least(field, least)?.map_or(default, i64::from);
    Ok(SignedDuration::from_secs(seconds))
}

fn fallback(part: &Part<'_>) -> Result<Option<Fallback>, FieldError> {
    if !part.is_set() {
        return Ok(None);
    }
    let number = |name| {
        let field = part.field(name);
        field.int32()?.ok_or_else(|| field.missing())
    };
    let behavior = part.field("behavior");
    let behavior = match behavior.text()? {
        None | Some("" | "static") => FallbackBehavior::Static,
        Some("currentReplicas") => FallbackBehavior::CurrentReplicas,
        Some("currentReplicasIfHigher") => FallbackBehavior::CurrentReplicasIfHigher,
        Some("currentReplicasIfLower") => FallbackBehavior::CurrentReplicasIfLower,
        Some("scalingModifiers") => FallbackBehavior::ScalingModifiers,
        Some(_) => {
            return Err(behavior.not(
                "static, currentReplicas, currentReplicasIfHigher, currentReplicasIfLower or \
                 scalingModifiers",
            ));
        }
    };
    Ok(Some(Fallback {
        failure_threshold: number("failureThreshold")?,
        replicas: number("replicas")?,
        behavior,
    }))
}

fn modifiers(part: &Part<'_>) -> Result<Option<Modifiers>, FieldError> {
    let text = |name| -> Result<String, FieldError> {
        let field = part.field(name);
        Ok(field.text()?.unwrap_or_default().to_owned())
    };
    let modifiers = Modifiers {
        formula: text("formula")?,
        target: text("target")?,
        activation_target: text("activationTarget")?,
        metric_type: metric_type(&part.field("metricType"))?.unwrap_or(MetricType::AverageValue),
    };
    let is_empty = modifiers.formula.is_empty() && modifiers.target.is_empty();
    Ok((part.is_set() && !is_empty).then_some(modifiers))
}

fn metric_type(field: &Part<'_>) -> Result<Option<MetricType>, FieldError> {
    Ok(match field.text()? {
        None | Some("") => None,
        Some("AverageValue") => Some(MetricType::AverageValue),
        Some("Value") => Some(MetricType::Value),
        Some("Utilization") => Some(MetricType::Utilization),
        Some(_) => return Err(field.not("AverageValue, Value or Utilization")),
    })
}

pub(super) fn triggers(list: &Part<'_>) -> Result<Vec<Trigger>, FieldError> {
    let mut triggers = Vec::new();
    for item in list.items()? {
        let reference = item.field("authenticationRef");
        let authentication = if reference.is_set() {
            let kind = reference.field("kind");
            let kind = kind.text()?.filter(|kind| !kind.is_empty());
            Some((
                reference.field("name").some_text()?.to_owned(),
                kind.unwrap_or("TriggerAuthentication").to_owned(),
            ))
        } else {
            None
        };
        triggers.push(Trigger {
            kind: item.field("type").some_text()?.to_owned(),
            name: item.field("name").text()?.unwrap_or_default().to_owned(),
            metadata: item.field("metadata").labels()?,
            use_cached: item.field("useCachedMetrics").boolean()?.unwrap_or(false),
            authentication,
            metric_type: metric_type(&item.field("metricType"))?,
        });
    }
    Ok(triggers)
}
