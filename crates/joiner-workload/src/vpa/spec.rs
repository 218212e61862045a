//! What a VerticalPodAutoscaler asks for, parsed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::amounts::{Resource, Resources};
use crate::condition::Conditions;
use crate::hpa::TargetRef;
use crate::part::{FieldError, Part};
use crate::quantity::Quantity;

/// What is done with running pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateMode {
    /// Nothing, and nothing with new ones.
    Off,
    /// Nothing.
    Initial,
    /// They are evicted.
    Recreate,
    /// They are resized where they run, else evicted.
    InPlaceOrRecreate,
    /// They are resized where they run.
    InPlace,
    /// The same as `Recreate`; on its way out.
    Auto,
}

impl UpdateMode {
    const WORDS: [(&'static str, Self); 6] = [
        ("Off", Self::Off),
        ("Initial", Self::Initial),
        ("Recreate", Self::Recreate),
        ("InPlaceOrRecreate", Self::InPlaceOrRecreate),
        ("InPlace", Self::InPlace),
        ("Auto", Self::Auto),
    ];

    /// The mode of a word of the API.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(name, _)| *name == word);
        found.map(|(_, mode)| *mode)
    }
}

/// A VerticalPodAutoscaler.
#[derive(Clone, Debug, PartialEq)]
pub struct Vpa {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Whose pods.
    pub target: TargetRef,
    /// What is done with running pods.
    pub mode: UpdateMode,
    /// How many pods there must be before any is evicted; `None` stands for the updater's setting.
    pub min_replicas: Option<i32>,
    /// When an eviction is worth it.
    pub requirements: Vec<Requirement>,
    /// How quickly memory must run out for an eviction at once; `None` stands for the updater's setting.
    pub evict_after_oom: Option<SignedDuration>,
    /// What is said about containers.
    pub policies: Vec<ContainerPolicy>,
    /// Who recommends; the default recommender when empty.
    pub recommenders: Vec<String>,
    /// More CPU while pods start.
    pub startup_boost: Option<Boost>,
    /// What is recommended, as it was last written.
    pub recommendation: Vec<ContainerRecommendation>,
    /// What it says of itself.
    pub conditions: Conditions,
}

/// When an eviction is worth it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Of which resources one must change …
    pub resources: Vec<String>,
    /// … upwards, or else downwards.
    pub higher: bool,
}

/// What is said about a container, or about all others.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerPolicy {
    /// The container; `*` for all that have no policy of their own.
    pub container: String,
    /// Whether nothing is recommended for it.
    pub is_off: bool,
    /// The least that is recommended.
    pub min_allowed: Resources<Quantity>,
    /// The most that is recommended.
    pub max_allowed: Resources<Quantity>,
    /// Of which resources something is recommended.
    pub resources: Vec<Resource>,
    /// Whether limits stay as they are.
    pub requests_only: bool,
    /// How peaks of memory are collected, where it says so.
    pub collecting: Collecting,
    /// More CPU while pods start.
    pub startup_boost: Option<Boost>,
}

/// How peaks of memory of a container are collected, where its policy says so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Collecting {
    /// One peak for so long.
    pub interval: Option<SignedDuration>,
    /// So many peaks count.
    pub n_intervals: Option<i64>,
    /// How much more memory there is after it ran out.
    pub oom_ratio: Option<f64>,
    /// How much more at least, in bytes.
    pub oom_min: Option<f64>,
}

/// More CPU while pods start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boost {
    /// How much.
    pub by: BoostBy,
    /// For how long after a pod is ready.
    pub duration: SignedDuration,
}

/// How much more CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoostBy {
    /// So many times as much.
    Factor(i32),
    /// So much more.
    Quantity(Quantity),
}

/// What is recommended for a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRecommendation {
    /// The container.
    pub container: String,
    /// What it should request.
    pub target: Resources<Quantity>,
    /// Less than this is too little.
    pub lower: Resources<Quantity>,
    /// More than this is too much.
    pub upper: Resources<Quantity>,
    /// What it should request without any policy.
    pub uncapped: Resources<Quantity>,
}

impl Vpa {
    /// The policy of a container: its own, else the one for all others.
    #[must_use]
    pub fn policy(&self, container: &str) -> Option<&ContainerPolicy> {
        let of = |name: &str| self.policies.iter().find(|policy| policy.container == name);
        of(container).or_else(|| of("*"))
    }

    /// Whether a recommender of this name is meant.
    #[must_use]
    pub fn is_for(&self, recommender: &str) -> bool {
        match self.recommenders.first() {
            Some(name) => name == recommender,
            None => recommender == "default",
        }
    }

    /// Reads a VPA. What it may ask for is checked by [`super::complaints`].
    ///
    /// # Errors
    /// The field that cannot be read.
    pub fn read(object: &Value) -> Result<Self, FieldError> {
        let top = Part::top(object);
        let (meta, spec, status) = (
            top.field("metadata"),
            top.field("spec"),
            top.field("status"),
        );
        let target = spec.field("targetRef");
        let update = spec.field("updatePolicy");
        let owned = |part: Part<'_>| -> Result<String, FieldError> {
            Ok(part.text()?.unwrap_or_default().to_owned())
        };
        let mode = update.field("updateMode");
        let mode = match mode.text()?.filter(|word| !word.is_empty()) {
            Some(word) => UpdateMode::of(word).ok_or_else(|| {
                mode.not("Off, Initial, Recreate, InPlaceOrRecreate, InPlace or Auto")
            })?,
            None => UpdateMode::Recreate,
        };
        let mut recommenders = Vec::new();
        for item in spec.field("recommenders").items()? {
            recommenders.push(item.field("name").some_text()?.to_owned());
        }
        let mut policies = Vec::new();
        for item in spec
            .field("resourcePolicy")
            .field("containerPolicies")
            .items()?
        {
            policies.push(policy(&item)?);
        }
        let provided = status.field("recommendation");
        Ok(Self {
            namespace: owned(meta.field("namespace"))?,
            name: meta.field("name").some_text()?.to_owned(),
            created: meta.field("creationTimestamp").time()?,
            annotations: meta.field("annotations").labels()?,
            target: TargetRef {
                api_version: owned(target.field("apiVersion"))?,
                kind: target.field("kind").some_text()?.to_owned(),
                name: target.field("name").some_text()?.to_owned(),
            },
            mode,
            min_replicas: update.field("minReplicas").int32()?,
            requirements: requirements(&update.field("evictionRequirements"))?,
            evict_after_oom: update.field("evictAfterOOMSeconds").duration()?,
            policies,
            recommenders,
            startup_boost: boost(&spec.field("startupBoost"))?,
            recommendation: recommendations(&provided.field("containerRecommendations"))?,
            conditions: Conditions::read(&status.field("conditions"))?,
        })
    }
}

fn requirements(list: &Part<'_>) -> Result<Vec<Requirement>, FieldError> {
    let mut requirements = Vec::new();
    for item in list.items()? {
        let change = item.field("changeRequirement");
        let higher = match change.some_text()? {
            "TargetHigherThanRequests" => true,
            "TargetLowerThanRequests" => false,
            _ => return Err(change.not("TargetHigherThanRequests or TargetLowerThanRequests")),
        };
        requirements.push(Requirement {
            resources: item.field("resources").texts()?,
            higher,
        });
    }
    Ok(requirements)
}

fn policy(item: &Part<'_>) -> Result<ContainerPolicy, FieldError> {
    let mode = item.field("mode");
    let is_off = match mode.text()? {
        Some("Off") => true,
        Some("Auto" | "") | None => false,
        Some(_) => return Err(mode.not("Auto or Off")),
    };
    let values = item.field("controlledValues");
    let requests_only = match values.text()? {
        Some("RequestsOnly") => true,
        Some("RequestsAndLimits" | "") | None => false,
        Some(_) => return Err(values.not("RequestsAndLimits or RequestsOnly")),
    };
    let controlled = item.field("controlledResources");
    let resources = if controlled.is_set() {
        let names = controlled.texts()?;
        names.iter().filter_map(|name| Resource::of(name)).collect()
    } else {
        Resource::ALL.to_vec()
    };
    // Nothing at all is as good as unset.
    let bounds = |name| -> Result<Resources<Quantity>, FieldError> {
        let mut bounds = quantities(&item.field(name))?;
        bounds.retain(|_, amount| amount.is_positive());
        Ok(bounds)
    };
    let oom_min = item.field("oomMinBumpUp");
    Ok(ContainerPolicy {
        container: item.field("containerName").some_text()?.to_owned(),
        is_off,
        min_allowed: bounds("minAllowed")?,
        max_allowed: bounds("maxAllowed")?,
        resources,
        requests_only,
        collecting: Collecting {
            interval: item.field("memoryAggregationIntervalSeconds").duration()?,
            n_intervals: item.field("memoryAggregationIntervalCount").int64()?,
            oom_ratio: item
                .field("oomBumpUpRatio")
                .quantity()?
                .map(Quantity::approximately),
            oom_min: oom_min.quantity()?.map(|amount| amount.units() as f64),
        },
        startup_boost: boost(&item.field("startupBoost"))?,
    })
}

fn boost(part: &Part<'_>) -> Result<Option<Boost>, FieldError> {
    let cpu = part.field("cpu");
    if !cpu.is_set() {
        return Ok(None);
    }
    let kind = cpu.field("type");
    let by = match kind.some_text()? {
        "Factor" => {
            let factor = cpu.field("factor");
            BoostBy::Factor(factor.int32()?.ok_or_else(|| factor.missing())?)
        }
        "Quantity" => {
            let quantity = cpu.field("quantity");
            BoostBy::Quantity(quantity.quantity()?.ok_or_else(|| quantity.missing())?)
        }
        _ => return Err(kind.not("Factor or Quantity")),
    };
    let duration = cpu.field("durationSeconds").duration()?;
    Ok(Some(Boost {
        by,
        duration: duration.unwrap_or_default(),
    }))
}

/// Reads amounts of CPU and memory; others are left out.
pub(super) fn quantities(part: &Part<'_>) -> Result<Resources<Quantity>, FieldError> {
    let mut quantities = Resources::new();
    for (name, value) in part.entries()? {
        if let (Some(resource), Some(amount)) = (Resource::of(name), value.quantity()?) {
            quantities.insert(resource, amount);
        }
    }
    Ok(quantities)
}

fn recommendations(list: &Part<'_>) -> Result<Vec<ContainerRecommendation>, FieldError> {
    let mut recommendations = Vec::new();
    for item in list.items()? {
        recommendations.push(ContainerRecommendation {
            container: item.field("containerName").some_text()?.to_owned(),
            target: quantities(&item.field("target"))?,
            lower: quantities(&item.field("lowerBound"))?,
            upper: quantities(&item.field("upperBound"))?,
            uncapped: quantities(&item.field("uncappedTarget"))?,
        });
    }
    Ok(recommendations)
}

impl ContainerRecommendation {
    /// As the API has it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let amounts = |amounts: &Resources<Quantity>| {
            let entry = |(resource, amount): (&Resource, &Quantity)| {
                (
                    resource.as_str().to_owned(),
                    Value::from(amount.to_string()),
                )
            };
            Value::Object(amounts.iter().map(entry).collect())
        };
        serde_json::json!({
            "containerName": self.container,
            "target": amounts(&self.target),
            "lowerBound": amounts(&self.lower),
            "upperBound": amounts(&self.upper),
            "uncappedTarget": amounts(&self.uncapped),
        })
    }
}
