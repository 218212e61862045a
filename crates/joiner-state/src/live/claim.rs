//! NodeClaims, and conditions of anything.

use std::sync::Arc;

use jiff::Timestamp;
use joiner_api::types::{Condition, ConditionStatus, NodeClaim};
use joiner_model::Name;
use serde::Deserialize as _;
use serde_json::Value;

use super::meta::Meta;
use crate::names::Names;
use crate::nodes::ClaimRecord;

/// A NodeClaim of the cluster.
#[derive(Clone, Debug)]
pub struct LiveClaim {
    /// Metadata.
    pub meta: Meta,
    /// The object, without managed fields. Its requirements are left out once it is launched:
    /// there may be hundreds of types in them, and only launching needs them.
    pub claim: Arc<NodeClaim>,
    /// The machine, once launched.
    pub provider_id: Option<Name>,
    /// As the planner sees it.
    pub(crate) record: ClaimRecord,
}

/// Questions about a list of conditions.
pub trait Conditions {
    /// A condition by type.
    fn condition(&self, kind: &str) -> Option<&Condition>;

    /// True when the condition is `True`.
    fn is_true(&self, kind: &str) -> bool {
        self.condition(kind)
            .is_some_and(|own| own.status == ConditionStatus::True)
    }

    /// True when the condition is `Unknown`, or is not there.
    fn is_unknown(&self, kind: &str) -> bool {
        self.condition(kind)
            .is_none_or(|own| own.status == ConditionStatus::Unknown)
    }

    /// When the condition last changed its status.
    fn since(&self, kind: &str) -> Option<Timestamp> {
        self.condition(kind)?.last_transition_time.parse().ok()
    }
}

impl Conditions for Option<Vec<Condition>> {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.iter().flatten().find(|own| own.type_ == kind)
    }
}

impl Conditions for [Condition] {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.iter().find(|own| own.type_ == kind)
    }
}

impl Conditions for LiveClaim {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.claim.status.as_ref()?.conditions.condition(kind)
    }
}

impl LiveClaim {
    /// Reads a claim; `record` is what the planner made of the same object.
    pub(crate) fn read(
        object: &Value,
        record: ClaimRecord,
        names: &mut Names,
    ) -> Result<Self, serde_json::Error> {
        let mut claim = NodeClaim::deserialize(object)?;
        claim.metadata.managed_fields = Vec::new();
        let status = claim.status.as_ref();
        let launched = status.is_some_and(|status| status.conditions.is_true("Launched"));
        if launched {
            claim.spec.requirements = Vec::new();
        }
        let id = status.and_then(|status| status.provider_id.as_deref());
        Ok(Self {
            meta: Meta::read(object, names),
            provider_id: id.filter(|id| !id.is_empty()).map(Name::from),
            claim: Arc::new(claim),
            record,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.meta.name
    }

    /// The pool it belongs to; none for one made by hand.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        self.meta.label(joiner_api::labels::NODE_POOL)
    }

    /// The Node it became.
    #[must_use]
    pub fn node_name(&self) -> Option<&str> {
        self.claim.status.as_ref()?.node_name.as_deref()
    }

    /// The conditions.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        let status = self.claim.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref());
        conditions.unwrap_or_default()
    }
}
