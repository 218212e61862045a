//! Objects of which little is needed.

use std::sync::Arc;

use joiner_api::types::{CapacityBuffer, NodeOverlay};
use joiner_model::{Name, Selector};
use serde::Deserialize as _;
use serde_json::Value;

use super::kind::Kind;
use super::meta::Meta;
use super::pod::LivePod;
use super::reading::{Live, Reading, accept};
use crate::objects::Objects;

/// A pod disruption budget.
#[derive(Clone, Debug)]
pub struct LiveBudget {
    /// Metadata.
    pub meta: Meta,
    /// The pods it is about; `None` for one that selects nothing.
    pub selector: Option<Selector>,
    /// How many may go now.
    pub allowed: i64,
    /// It never allows a voluntary eviction, whatever its pods do: `maxUnavailable` of 0 or 0 %, or
    /// `minAvailable` of 100 %.
    pub blocks_always: bool,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`: pods that are not ready may always go.
    pub spares_unready: bool,
}

impl LiveBudget {
    /// The pod may go, whatever else the budget says.
    #[must_use]
    pub fn lets_go(&self, pod: &LivePod) -> bool {
        self.spares_unready && pod.ready.is_none()
    }
}

impl Live for LiveBudget {
    const KINDS: &'static [Kind] = &[Kind::PodDisruptionBudget];

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let spec = &object["spec"];
        let none = |value: &Value| value.as_i64() == Some(0) || value.as_str() == Some("0%");
        // One without a selector is about no pods.
        let selector = &spec["selector"];
        let selector = match selector.is_null() {
            true => None,
            false => reading.selector(selector)?,
        };
        Ok(Self {
            meta: reading.meta(object),
            selector,
            allowed: object["status"]["disruptionsAllowed"].as_i64().unwrap_or(0),
            blocks_always: none(&spec["maxUnavailable"])
                || spec["minAvailable"].as_str() == Some("100%"),
            spares_unready: spec["unhealthyPodEvictionPolicy"].as_str() == Some("AlwaysAllow"),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }
}

/// A volume attached to a node.
#[derive(Clone, Debug)]
pub struct LiveAttachment {
    /// Metadata.
    pub meta: Meta,
    /// The node.
    pub node: Name,
    /// The volume; empty for one that is given in line.
    pub volume: Name,
}

impl Live for LiveAttachment {
    const KINDS: &'static [Kind] = &[Kind::VolumeAttachment];

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let spec = &object["spec"];
        let volume = &spec["source"]["persistentVolumeName"];
        Ok(Self {
            meta: reading.meta(object),
            node: reading.text(spec["nodeName"].as_str().unwrap_or_default()),
            volume: reading.text(volume.as_str().unwrap_or_default()),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }

    fn about(&self) -> Option<&Name> {
        Some(&self.node)
    }
}

/// A NodeOverlay.
#[derive(Clone, Debug)]
pub struct LiveOverlay {
    /// Metadata.
    pub meta: Meta,
    /// The object.
    pub overlay: Arc<NodeOverlay>,
}

impl Live for LiveOverlay {
    const KINDS: &'static [Kind] = &[Kind::NodeOverlay];
    const IS_GROUND: bool = true;

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let overlay = NodeOverlay::deserialize(object).map_err(|error| error.to_string())?;
        Ok(Self {
            meta: reading.meta(object),
            overlay: Arc::new(overlay),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }

    fn add_to(&self, objects: &mut Objects) {
        // The server has admitted it; what is odd about it all the same is left out.
        let _ = objects.add_admitted_overlay(&self.overlay);
    }
}

/// A CapacityBuffer.
#[derive(Clone, Debug)]
pub struct LiveBuffer {
    /// Metadata.
    pub meta: Meta,
    /// The object.
    pub buffer: Arc<CapacityBuffer>,
}

impl Live for LiveBuffer {
    const KINDS: &'static [Kind] = &[Kind::CapacityBuffer];

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let buffer = CapacityBuffer::deserialize(object).map_err(|error| error.to_string())?;
        Ok(Self {
            meta: reading.meta(object),
            buffer: Arc::new(buffer),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }
}

/// A PodTemplate.
#[derive(Clone, Debug)]
pub struct LiveTemplate {
    /// Metadata.
    pub meta: Meta,
    /// `template` of the object: metadata and spec of a pod.
    pub template: Arc<Value>,
}

impl Live for LiveTemplate {
    const KINDS: &'static [Kind] = &[Kind::PodTemplate];

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        Ok(Self {
            meta: reading.meta(object),
            template: Arc::new(object["template"].clone()),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }
}

/// What selects pods and is not looked at otherwise: a Service, a ReplicationController.
#[derive(Clone, Debug)]
pub(super) struct LiveSelecting {
    uid: Name,
    version: u64,
}

impl Live for LiveSelecting {
    const KINDS: &'static [Kind] = Kind::SPREADING;

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        reading.choose(object)?;
        let (uid, version) = identity(object);
        Ok(Self { uid, version })
    }

    fn identity(&self) -> (&Name, u64) {
        (&self.uid, self.version)
    }
}

/// What only the planner reads, as it came but for what is not needed.
#[derive(Clone, Debug)]
pub(super) struct LiveObject {
    uid: Name,
    version: u64,
    pub(super) object: Value,
}

impl Live for LiveObject {
    const KINDS: &'static [Kind] = &[
        Kind::DaemonSet,
        Kind::PersistentVolumeClaim,
        Kind::PersistentVolume,
        Kind::StorageClass,
        Kind::CsiNode,
        Kind::Namespace,
        Kind::PriorityClass,
        Kind::RuntimeClass,
    ];
    const IS_GROUND: bool = true;

    fn read(object: &Value, _: &mut Reading<'_>) -> Result<Self, String> {
        let (uid, version) = identity(object);
        Ok(Self {
            uid,
            version,
            object: trimmed(object),
        })
    }

    fn identity(&self) -> (&Name, u64) {
        (&self.uid, self.version)
    }

    fn add_to(&self, objects: &mut Objects) {
        // The server has admitted it; what is odd about it all the same is left out.
        let _ = accept(objects, &self.object);
    }
}

fn identity(object: &Value) -> (Name, u64) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let version = text("resourceVersion").parse().unwrap_or(0);
    (text("uid").into(), version)
}

/// The object without what takes room and is not read.
fn trimmed(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
        if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    object
}
