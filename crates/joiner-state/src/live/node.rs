//! Nodes.

use imbl::OrdSet;
use jiff::Timestamp;
use joiner_api::labels::KnownTaint;
use joiner_api::types::Taint;
use joiner_model::{Name, Resources};
use serde::Deserialize as _;
use serde_json::Value;

use super::kind::Kind;
use super::meta::{Meta, list, time};
use super::reading::{Live, Reading};
use super::shelf::Indexed;
use crate::nodes::NodeRecord;

/// A condition of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCondition {
    /// Type.
    pub kind: Name,
    /// `True`, `False` or `Unknown`.
    pub status: Name,
    /// Since when.
    pub since: Timestamp,
}

/// A node of the cluster.
#[derive(Clone, Debug)]
pub struct LiveNode {
    /// Metadata.
    pub meta: Meta,
    /// The machine behind it.
    pub provider_id: Option<Name>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Cordoned.
    pub unschedulable: bool,
    /// Conditions.
    pub conditions: Vec<NodeCondition>,
    /// As the planner sees it.
    pub(crate) record: NodeRecord,
}

impl LiveNode {
    /// Reads a node; `record` is what the planner made of the same object.
    fn new(object: &Value, record: NodeRecord, reading: &mut Reading<'_>) -> Self {
        let spec = &object["spec"];
        let id = spec["providerID"].as_str().filter(|id| !id.is_empty());
        let conditions = list(&object["status"]["conditions"]).map(|condition| NodeCondition {
            kind: reading.text(condition["type"].as_str().unwrap_or_default()),
            status: reading.text(condition["status"].as_str().unwrap_or_default()),
            since: time(&condition["lastTransitionTime"]).unwrap_or(Timestamp::UNIX_EPOCH),
        });
        let conditions = conditions.collect();
        let mut meta = reading.meta(object);
        meta.labels = meta.labels.shared_with(record.labels());
        Self {
            meta,
            provider_id: id.map(Name::from),
            taints: list(&spec["taints"])
                .filter_map(|taint| Taint::deserialize(taint).ok())
                .collect(),
            unschedulable: spec["unschedulable"].as_bool().unwrap_or(false),
            conditions,
            record,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.meta.name
    }

    /// What it has.
    #[must_use]
    pub fn capacity(&self) -> &Resources {
        self.record.capacity()
    }

    /// What pods can use.
    #[must_use]
    pub fn allocatable(&self) -> &Resources {
        self.record.allocatable()
    }

    /// A condition by type.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.conditions.iter().find(|own| &*own.kind == kind)
    }

    /// True when the kubelet says so.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.condition("Ready")
            .is_some_and(|ready| &*ready.status == "True")
    }

    /// True when it has this taint, by key and effect.
    #[must_use]
    pub fn has_taint(&self, taint: &KnownTaint) -> bool {
        let same = |own: &Taint| own.key == taint.key && own.effect == taint.effect;
        self.taints.iter().any(same)
    }

    /// The pool it belongs to.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        self.meta.label(joiner_api::labels::NODE_POOL)
    }

    /// True when the label says so.
    #[must_use]
    pub fn says(&self, label: &str) -> bool {
        self.meta.label(label) == Some("true")
    }
}

/// Objects by the id of the machine that they stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct MachineIndex {
    /// (provider id, object).
    pub(super) ids: OrdSet<(Name, Name)>,
}

impl MachineIndex {
    pub(super) fn enter(&mut self, id: Option<&Name>, name: &Name) {
        if let Some(id) = id {
            self.ids.insert((id.clone(), name.clone()));
        }
    }

    pub(super) fn leave(&mut self, id: Option<&Name>, name: &Name) {
        if let Some(id) = id {
            self.ids.remove(&(id.clone(), name.clone()));
        }
    }
}

impl Live for LiveNode {
    const KINDS: &'static [Kind] = &[Kind::Node];

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        reading.parse(object)?;
        let record = reading.reader.nodes.pop().ok_or("it was not read")?;
        Ok(Self::new(object, record, reading))
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }

    fn about(&self) -> Option<&Name> {
        self.provider_id.as_ref()
    }
}

impl Indexed for LiveNode {
    type Index = MachineIndex;

    fn enter(&self, name: &Name, index: &mut MachineIndex) {
        index.enter(self.provider_id.as_ref(), name);
    }

    fn leave(&self, name: &Name, index: &mut MachineIndex) {
        index.leave(self.provider_id.as_ref(), name);
    }
}
