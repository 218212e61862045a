//! Settings of the updater, by the names of its flags.

use jiff::SignedDuration;

use crate::part::{FieldError, Part};

/// Settings of the updater.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdaterSettings {
    /// `--min-replicas`.
    pub min_replicas: i32,
    /// `--eviction-tolerance`.
    pub eviction_tolerance: f64,
    /// `--pod-update-threshold`.
    pub update_threshold: f64,
    /// `--in-recommendation-bounds-eviction-lifetime-threshold`.
    pub lifetime_threshold: SignedDuration,
    /// `--evict-after-oom-threshold`.
    pub evict_after_oom: SignedDuration,
    /// `--in-place-skip-disruption-budget`.
    pub skip_budget: bool,
    /// The gate `InPlace`.
    pub in_place: bool,
    /// The gate `PerVPAConfig`.
    pub per_vpa: bool,
    /// The gate `CPUStartupBoost`.
    pub startup_boost: bool,
}

impl Default for UpdaterSettings {
    fn default() -> Self {
        Self {
            min_replicas: 2,
            eviction_tolerance: 0.5,
            update_threshold: 0.1,
            lifetime_threshold: SignedDuration::from_hours(12),
            evict_after_oom: SignedDuration::from_mins(10),
            skip_budget: false,
            in_place: false,
            per_vpa: false,
            startup_boost: false,
        }
    }
}

impl UpdaterSettings {
    /// Reads flags and gates that differ from their defaults.
    pub(crate) fn read(flags: &Part<'_>, gates: &Part<'_>) -> Result<Self, FieldError> {
        let mut settings = Self::default();
        for (name, value) in flags.entries()? {
            match name {
                "min-replicas" => settings.min_replicas = value.int32()?.unwrap_or(2),
                "eviction-tolerance" => {
                    settings.eviction_tolerance = value.float()?.unwrap_or(0.5);
                }
                "pod-update-threshold" => {
                    settings.update_threshold = value.float()?.unwrap_or(0.1);
                }
                "in-recommendation-bounds-eviction-lifetime-threshold" => {
                    settings.lifetime_threshold = value.duration()?.unwrap_or_default();
                }
                "evict-after-oom-threshold" => {
                    settings.evict_after_oom = value.duration()?.unwrap_or_default();
                }
                "in-place-skip-disruption-budget" => {
                    settings.skip_budget = value.boolean()? == Some(true);
                }
                // Other flags are about pace, not about which pods.
                _ => {}
            }
        }
        settings.in_place = gates.field("InPlace").boolean()? == Some(true);
        settings.per_vpa = gates.field("PerVPAConfig").boolean()? == Some(true);
        settings.startup_boost = gates.field("CPUStartupBoost").boolean()? == Some(true);
        Ok(settings)
    }
}
