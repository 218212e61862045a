//! KWOKNodeClass: the node class of the simulated provider.

use super::{Condition, DurationText, Object, Resource};
use serde::{Deserialize, Serialize};

/// How simulated nodes come to life.
pub type KwokNodeClass = Object<KwokNodeClassSpec, KwokNodeClassStatus>;

impl Resource for KwokNodeClass {
    const GROUP: &'static str = "karpenter.kwok.sh";
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "KWOKNodeClass";
    const PLURAL: &'static str = "kwoknodeclasses";
    const NAMESPACED: bool = false;
}

/// Settings of simulated nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KwokNodeClassSpec {
    /// How long a node takes to appear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_registration_delay: Option<DurationText>,
}

/// Whether the class can be used; ready unless somebody says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KwokNodeClassStatus {
    /// Observations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
