//! What controllers need to know of a pod, and how they make one from a template.

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Map, Value, json};

use super::owned::Owner;
use crate::fields;
use crate::names::Digest;
use crate::view::Resource;

/// The kind.
pub(crate) const PODS: Resource = ("", "pods");

/// Since when a pod counts as available, or from when on it will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Available {
    /// Ready for long enough.
    Yes,
    /// Ready, but not for long enough before then.
    From(Timestamp),
    /// Not ready.
    No,
}

/// The phase of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Not started, or nobody has said anything yet.
    Pending,
    /// Its node does not answer.
    Unknown,
    /// Started.
    Running,
    /// All containers ended well.
    Succeeded,
    /// A container ended badly.
    Failed,
}

/// What is asked of a pod most often, read once per version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Its phase.
    pub(crate) phase: Phase,
    /// Deletion has been asked for.
    pub(crate) is_deleting: bool,
    /// Its `Ready` condition holds.
    pub(crate) is_ready: bool,
    /// Since when.
    pub(crate) ready_since: Option<Timestamp>,
    /// Equal for equal labels.
    pub(crate) labels: u64,
    /// Equal for the same controller, if there is one.
    pub(crate) owner: Option<u64>,
}

impl Facts {
    /// Reads a pod, or whatever else has labels.
    pub(crate) fn read(pod: &Value) -> Self {
        let ready = fields::condition(pod, "Ready").filter(|ready| ready["status"] == "True");
        Self {
            phase: match pod["status"]["phase"].as_str() {
                Some("Running") => Phase::Running,
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                Some("Unknown") => Phase::Unknown,
                Some(_) | None => Phase::Pending,
            },
            is_deleting: meta::is_deleting(pod),
            is_ready: ready.is_some(),
            ready_since: ready.and_then(|ready| fields::instant(&ready["lastTransitionTime"])),
            labels: Digest::default().value(&pod["metadata"]["labels"]).finish(),
            owner: meta::controller(pod)
                .map(|owner| Digest::default().value(&owner["uid"]).finish()),
        }
    }

    /// True when all of its containers have ended for good.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// True when it runs or will run: neither finished nor being deleted.
    pub(crate) fn is_active(&self) -> bool {
        !self.is_deleting && !self.is_finished()
    }

    /// True when it is on its way out and has not got there.
    pub(crate) fn is_terminating(&self) -> bool {
        self.is_deleting && !self.is_finished()
    }

    /// Whether it has been ready for the time that its controller asks for.
    pub(crate) fn available(&self, min_ready_secs: i64, now: Timestamp) -> Available {
        if !self.is_ready {
            return Available::No;
        }
        if min_ready_secs <= 0 {
            return Available::Yes;
        }
        let Some(since) = self.ready_since else {
            return Available::No;
        };
        let from = fields::after(since, min_ready_secs);
        if from <= now {
            Available::Yes
        } else {
            Available::From(from)
        }
    }
}

/// The most restarts of any of its containers.
pub(crate) fn restarts(pod: &Value) -> i64 {
    let statuses = pod["status"]["containerStatuses"].as_array();
    let counts = statuses.into_iter().flatten();
    counts
        .map(|status| fields::count(&status["restartCount"], 0))
        .max()
        .unwrap_or(0)
}

/// A pod as its controller's template describes it, with a name and an owner.
pub(crate) fn from_template(template: &Value, owner: &Owner<'_>, name: String) -> Value {
    let mut metadata = Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        let value = &template["metadata"][field];
        if !value.is_null() {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("name".to_owned(), Value::String(name));
    let namespace = meta::namespace(owner.object);
    metadata.insert("namespace".to_owned(), json!(namespace));
    metadata.insert("ownerReferences".to_owned(), json!([owner.reference()]));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template["spec"],
    })
}

/// Puts a label on an object under construction.
pub(crate) fn label(object: &mut Value, key: &str, value: &str) {
    if !object["metadata"]["labels"].is_object() {
        object["metadata"]["labels"] = json!({});
    }
    object["metadata"]["labels"][key] = json!(value);
}

/// Puts an annotation on an object under construction.
pub(crate) fn annotate(object: &mut Value, key: &str, value: &str) {
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"][key] = json!(value);
}
