//! Settings of the controllers, as meant; the binary reads them from flags and the environment.

use std::sync::Arc;
use std::time::Duration;

pub use joiner_disruption::Settings as DisruptionSettings;
use joiner_model::{MinValuesPolicy, PreferencePolicy};
pub use joiner_state::SpreadDefaults;

pub use crate::background::Background;

/// Switches for parts that not every cluster uses yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// Unhealthy nodes are replaced.
    pub node_repair: bool,
    /// Reservations are used; off, what is reserved is as good as sold out.
    pub reserved_capacity: bool,
    /// Spot nodes are replaced by cheaper spot nodes.
    pub spot_to_spot_consolidation: bool,
    /// NodeOverlays count.
    pub node_overlay: bool,
    /// NodePools with replicas are kept at that size.
    pub static_capacity: bool,
    /// CapacityBuffers count.
    pub capacity_buffer: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            node_repair: false,
            reserved_capacity: true,
            spot_to_spot_consolidation: false,
            node_overlay: false,
            static_capacity: false,
            capacity_buffer: false,
        }
    }
}

/// How long pods are collected before they are planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// A batch ends when no new pod has come for this long; `None` adapts: at once for a lone pod,
    /// when it stops growing for a burst.
    pub idle: Option<Duration>,
    /// A batch ends after this long in any case.
    pub max: Duration,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            idle: None,
            max: Duration::from_secs(10),
        }
    }
}

/// Settings of the controllers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How pods are collected.
    pub batching: Batching,
    /// What to do with wishes.
    pub preferences: PreferencePolicy,
    /// What to do when `minValues` cannot be met.
    pub min_values: MinValuesPolicy,
    /// Switches.
    pub gates: FeatureGates,
    /// Spread constraints for pods that declare none.
    pub spread_defaults: Option<Arc<SpreadDefaults>>,
    /// Figures that decide about disruption.
    pub disruption: DisruptionSettings,
    /// Leave out metrics and events about single pods, nodes and pools.
    pub quiet_state: bool,
    /// The scheduler is made to follow the plan.
    pub follow_plan: bool,
    /// Where long work is done.
    pub background: Background,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            batching: Batching::default(),
            preferences: PreferencePolicy::default(),
            min_values: MinValuesPolicy::default(),
            gates: FeatureGates::default(),
            spread_defaults: None,
            disruption: DisruptionSettings::default(),
            quiet_state: false,
            follow_plan: true,
            background: Background::default(),
        }
    }
}
