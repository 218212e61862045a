//! NodeClaims, and conditions of anything.

use std::sync::Arc;

use jiff::Timestamp;
use joiner_api::labels::IN_TURN;
use joiner_api::types::{Condition, ConditionStatus, NodeClaim, ObjectMeta};
use joiner_model::{Name, Resources};
use serde::Deserialize as _;
use serde_json::Value;

use super::command::{COMMAND, CommandIntent};
use super::kind::Kind;
use super::meta::Meta;
use super::node::MachineIndex;
use super::planned::{PLANNED, Planned};
use super::reading::{Live, Reading};
use super::shelf::Indexed;
use crate::nodes::ClaimRecord;

/// A NodeClaim of the cluster.
#[derive(Clone, Debug)]
pub struct LiveClaim {
    /// Metadata.
    pub meta: Meta,
    /// The object, as far as it is used. Its requirements and figures are left out once it is launched:
    /// there may be hundreds of types in them, and only launching needs them. Once it is registered,
    /// all that there is of its metadata is its name.
    pub claim: Arc<NodeClaim>,
    /// The machine, once launched.
    pub provider_id: Option<Name>,
    /// The command that takes it away; none without one, or when that cannot be read.
    pub command: Option<Arc<CommandIntent>>,
    /// The offering that the plan counts on; none when that is not said, or cannot be read.
    pub planned: Option<Box<Planned>>,
    /// Its node takes the place of others, and waits for its turn to be filled.
    pub in_turn: bool,
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
    fn new(
        object: &Value,
        record: ClaimRecord,
        reading: &mut Reading<'_>,
    ) -> Result<Self, serde_json::Error> {
        let mut claim = NodeClaim::deserialize(object)?;
        claim.metadata.managed_fields = Vec::new();
        if let Some(status) = &mut claim.status {
            if status.conditions.is_true("Launched") {
                claim.spec.requirements = Vec::new();
                status.capacity = None;
                status.allocatable = None;
            }
            if status.conditions.is_true("Registered") {
                claim.metadata = ObjectMeta {
                    name: claim.metadata.name,
                    ..ObjectMeta::default()
                };
            }
        }
        let status = claim.status.as_ref();
        let id = status.and_then(|status| status.provider_id.as_deref());
        let mut meta = reading.meta(object);
        meta.labels = meta.labels.shared_with(record.labels());
        let command = meta.annotation(COMMAND).and_then(CommandIntent::parse);
        let planned = meta.annotation(PLANNED);
        let planned = planned.and_then(|text| Planned::read(text, reading.names()));
        Ok(Self {
            command: command.map(Arc::new),
            planned: planned.map(Box::new),
            in_turn: meta.annotation(IN_TURN) == Some("true"),
            meta,
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

    /// The object for a cloud to look at, with its labels and the annotations in use.
    #[must_use]
    pub fn object(&self) -> NodeClaim {
        let mut claim = (*self.claim).clone();
        let ObjectMeta {
            labels,
            annotations,
            ..
        } = &mut claim.metadata;
        for (texts, known) in [
            (labels, &self.meta.labels),
            (annotations, &self.meta.annotations),
        ] {
            let known = known.iter();
            texts.extend(known.map(|(key, value)| (key.to_string(), value.to_string())));
        }
        claim
    }

    /// True when it will not be a node for long, and its pods need a place elsewhere.
    #[must_use]
    pub fn is_going(&self) -> bool {
        self.meta.deleting.is_some()
            || self.is_true("InstanceTerminating")
            || self.meta.annotation(COMMAND).is_some()
    }

    /// It says what it is meant to become, whether that can be read or not.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.meta.annotation(PLANNED).is_some()
    }

    /// What the cloud said that the machine has.
    #[must_use]
    pub fn capacity(&self) -> &Resources {
        self.record.capacity()
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

impl Live for LiveClaim {
    const KINDS: &'static [Kind] = &[Kind::NodeClaim];

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        reading.parse(object)?;
        let record = reading.reader.claims.pop().ok_or("it was not read")?;
        Self::new(object, record, reading).map_err(|error| error.to_string())
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }

    fn about(&self) -> Option<&Name> {
        self.provider_id.as_ref()
    }
}

impl Indexed for LiveClaim {
    type Index = MachineIndex;

    fn enter(&self, name: &Name, index: &mut MachineIndex) {
        index.enter(self.provider_id.as_ref(), name);
    }

    fn leave(&self, name: &Name, index: &mut MachineIndex) {
        index.leave(self.provider_id.as_ref(), name);
    }
}
