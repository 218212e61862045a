//! Objects of which little is needed.

use std::sync::Arc;

use joiner_api::types::{CapacityBuffer, NodeOverlay};
use joiner_model::{Name, Selector};
use serde::Deserialize as _;
use serde_json::Value;

use super::meta::Meta;
use super::pod::LivePod;
use crate::names::Names;

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

    pub(crate) fn read(object: &Value, selector: Option<Selector>, names: &mut Names) -> Self {
        let spec = &object["spec"];
        let none = |value: &Value| value.as_i64() == Some(0) || value.as_str() == Some("0%");
        Self {
            meta: Meta::read(object, names),
            selector,
            allowed: object["status"]["disruptionsAllowed"].as_i64().unwrap_or(0),
            blocks_always: none(&spec["maxUnavailable"])
                || spec["minAvailable"].as_str() == Some("100%"),
            spares_unready: spec["unhealthyPodEvictionPolicy"].as_str() == Some("AlwaysAllow"),
        }
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

impl LiveAttachment {
    pub(crate) fn read(object: &Value, names: &mut Names) -> Self {
        let spec = &object["spec"];
        let volume = &spec["source"]["persistentVolumeName"];
        Self {
            meta: Meta::read(object, names),
            node: names.get(spec["nodeName"].as_str().unwrap_or_default()),
            volume: names.get(volume.as_str().unwrap_or_default()),
        }
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

impl LiveOverlay {
    pub(crate) fn read(object: &Value, names: &mut Names) -> Result<Self, serde_json::Error> {
        Ok(Self {
            meta: Meta::read(object, names),
            overlay: Arc::new(NodeOverlay::deserialize(object)?),
        })
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

impl LiveBuffer {
    pub(crate) fn read(object: &Value, names: &mut Names) -> Result<Self, serde_json::Error> {
        Ok(Self {
            meta: Meta::read(object, names),
            buffer: Arc::new(CapacityBuffer::deserialize(object)?),
        })
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

/// A Deployment, ReplicaSet or StatefulSet.
#[derive(Clone, Debug)]
pub struct LiveScalable {
    /// Metadata.
    pub meta: Meta,
    /// `spec.replicas`, 1 when absent.
    pub replicas: i64,
    /// `spec.template`: metadata and spec of a pod. Null unless templates are kept.
    pub template: Arc<Value>,
}

impl LiveTemplate {
    pub(crate) fn read(object: &Value, names: &mut Names) -> Self {
        Self {
            meta: Meta::read(object, names),
            template: Arc::new(object["template"].clone()),
        }
    }
}

impl LiveScalable {
    /// Reads one; its template is large, and kept only for whoever needs it.
    pub(crate) fn read(object: &Value, keeps_template: bool, names: &mut Names) -> Self {
        let template = keeps_template.then(|| object["spec"]["template"].clone());
        Self {
            meta: Meta::read(object, names),
            replicas: object["spec"]["replicas"].as_i64().unwrap_or(1),
            template: Arc::new(template.unwrap_or_default()),
        }
    }
}
