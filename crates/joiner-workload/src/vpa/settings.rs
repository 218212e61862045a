//! Settings of the recommender, by the names of its flags.

use jiff::SignedDuration;

use crate::part::{FieldError, Part};
use crate::quantity::Quantity;

use super::amounts::{Resource, Resources};

/// One day.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// How usage becomes one resource's recommendation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResourceSettings {
    /// The share of samples below the target.
    pub target: f64,
    /// The share of samples below the lower bound.
    pub lower: f64,
    /// The share of samples below the upper bound.
    pub upper: f64,
    /// How long it takes until bounds are close.
    pub confidence_interval: SignedDuration,
    /// How long it takes until a sample weighs half.
    pub half_life: SignedDuration,
    /// Multiples that recommendations are rounded up to.
    pub round_to: i64,
}

/// How peaks of memory are collected, and what happens when memory runs out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregation {
    /// One peak for so long.
    pub interval: SignedDuration,
    /// So many peaks count.
    pub n_intervals: i64,
    /// How much more memory there is after it ran out.
    pub oom_ratio: f64,
    /// How much more at least, in bytes.
    pub oom_min: f64,
}

impl Aggregation {
    /// For how long samples count.
    #[must_use]
    pub fn window(&self) -> SignedDuration {
        let nanos = self.interval.as_nanos() * i128::from(self.n_intervals);
        SignedDuration::try_from_nanos_i128(nanos).unwrap_or(SignedDuration::MAX)
    }
}

/// Settings of the recommender.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// About CPU.
    pub cpu: ResourceSettings,
    /// About memory.
    pub memory: ResourceSettings,
    /// How much more than was used is recommended.
    pub margin: f64,
    /// The least CPU of a pod, in millicores.
    pub min_cpu_millis: f64,
    /// The least memory of a pod, in units of 1024² bytes.
    pub min_memory_mb: f64,
    /// Peaks of memory.
    pub aggregation: Aggregation,
    /// The most that a container is recommended.
    pub max_allowed: Resources<Quantity>,
    /// Whether memory is shown with two digits and a large unit.
    pub humanize_memory: bool,
    /// Whether CPU may be rounded up to whole cores where an annotation says so.
    pub integer_cpu: bool,
    /// The name by which VPAs choose this recommender.
    pub name: String,
    /// Whether VPAs may say how peaks of memory are collected.
    pub per_vpa: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let resource = ResourceSettings {
            target: 0.9,
            lower: 0.5,
            upper: 0.95,
            confidence_interval: DAY,
            half_life: DAY,
            round_to: 1,
        };
        Self {
            cpu: resource,
            memory: resource,
            margin: 0.15,
            min_cpu_millis: 25.0,
            min_memory_mb: 250.0,
            aggregation: Aggregation {
                interval: DAY,
                n_intervals: 8,
                oom_ratio: 1.2,
                oom_min: 104_857_600.0,
            },
            max_allowed: Resources::new(),
            humanize_memory: false,
            integer_cpu: false,
            name: "default".to_owned(),
            per_vpa: false,
        }
    }
}

impl Settings {
    /// What is said about one resource.
    #[must_use]
    pub const fn of(&self, resource: Resource) -> &ResourceSettings {
        match resource {
            Resource::Cpu => &self.cpu,
            Resource::Memory => &self.memory,
        }
    }

    /// Reads flags that differ from their defaults; others stay.
    pub(crate) fn read(flags: &Part<'_>) -> Result<Self, FieldError> {
        let mut settings = Self::default();
        for (name, value) in flags.entries()? {
            settings.set(name, &value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &Part<'_>) -> Result<(), FieldError> {
        let float = || value.float()?.ok_or_else(|| value.missing());
        let duration = || value.duration()?.ok_or_else(|| value.missing());
        let whole = || value.int64()?.ok_or_else(|| value.missing());
        match name {
            "recommendation-margin-fraction" => self.margin = float()?,
            "pod-recommendation-min-cpu-millicores" => self.min_cpu_millis = float()?,
            "pod-recommendation-min-memory-mb" => self.min_memory_mb = float()?,
            "target-cpu-percentile" => self.cpu.target = float()?,
            "target-memory-percentile" => self.memory.target = float()?,
            "recommendation-lower-bound-cpu-percentile" => self.cpu.lower = float()?,
            "recommendation-lower-bound-memory-percentile" => self.memory.lower = float()?,
            "recommendation-upper-bound-cpu-percentile" => self.cpu.upper = float()?,
            "recommendation-upper-bound-memory-percentile" => self.memory.upper = float()?,
            "confidence-interval-cpu" => self.cpu.confidence_interval = duration()?,
            "confidence-interval-memory" => self.memory.confidence_interval = duration()?,
            "cpu-histogram-decay-half-life" => self.cpu.half_life = duration()?,
            "memory-histogram-decay-half-life" => self.memory.half_life = duration()?,
            "round-cpu-millicores" => self.cpu.round_to = whole()?,
            "round-memory-bytes" => self.memory.round_to = whole()?,
            "memory-aggregation-interval" => self.aggregation.interval = duration()?,
            "memory-aggregation-interval-count" => self.aggregation.n_intervals = whole()?,
            "oom-bump-up-ratio" => self.aggregation.oom_ratio = float()?,
            "oom-min-bump-up-bytes" => self.aggregation.oom_min = float()?,
            "recommender-name" => value.some_text()?.clone_into(&mut self.name),
            "humanize-memory" => self.humanize_memory = value.boolean()? == Some(true),
            "cpu-integer-post-processor-enabled" => {
                self.integer_cpu = value.boolean()? == Some(true);
            }
            "container-recommendation-max-allowed-cpu" => self.allow(Resource::Cpu, value)?,
            "container-recommendation-max-allowed-memory" => self.allow(Resource::Memory, value)?,
            // Other flags do not change what is recommended.
            _ => {}
        }
        Ok(())
    }

    fn allow(&mut self, resource: Resource, value: &Part<'_>) -> Result<(), FieldError> {
        let amount = value.quantity()?.filter(|amount| amount.is_positive());
        self.max_allowed
            .extend(amount.map(|amount| (resource, amount)));
        Ok(())
    }
}
