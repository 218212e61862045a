//! How far the surge of a workload has come, as it carries it.

use jiff::Timestamp;
use joiner_model::Name;
use serde::{Deserialize, Serialize};

use super::{LiveScalable, Meta};

/// Annotation of a workload that has another replica while one of its pods moves: which pod, and how
/// far that has come.
pub use joiner_api::labels::ours::SURGE;
/// Annotation of workloads and NodePools: `true` asks for it.
pub use joiner_api::labels::ours::SURGE_ON_MOVE;

/// How far a surge has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SurgeStage {
    /// To be scaled out.
    Out,
    /// Scaled out: the new pod is on its way.
    Wait,
    /// The new pod is ready: to be scaled back.
    Back,
    /// It took too long: to be scaled back when the old pod has left.
    Late,
}

/// What is written on a Deployment that is being surged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surge {
    /// Uid of the pod that is to go.
    pub pod: Name,
    /// How far it has come.
    pub stage: SurgeStage,
    /// Replicas before.
    pub from: i64,
    /// Replicas meanwhile.
    pub to: i64,
    /// Since when.
    pub since: Timestamp,
}

impl Surge {
    /// Reads the value of [`SURGE`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// What a workload carries, if it can be understood.
    #[must_use]
    pub fn of(workload: &LiveScalable) -> Option<&Self> {
        workload.surge.as_deref()
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The same one, that far.
    #[must_use]
    pub fn at(&self, stage: SurgeStage) -> Self {
        Self {
            stage,
            ..self.clone()
        }
    }
}

/// What an object says about surging: whether it asks for it; none when it says nothing. What cannot be
/// read does not ask.
pub(super) fn asks_for_surge(meta: &Meta) -> Option<bool> {
    meta.annotation(SURGE_ON_MOVE).map(|text| text == "true")
}
