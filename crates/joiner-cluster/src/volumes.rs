//! Claims and the volumes they get: what everybody needs to know about them, and who binds, makes,
//! protects and attaches them.

mod attachments;
mod binding;
mod provisioning;
mod uses;

pub use attachments::VolumeAttacher;
pub use binding::VolumeBinder;

use joiner_machinery::meta;
use joiner_machinery::quantity::Quantity;
use serde_json::{Value, json};

use crate::scheduler::labels::{Labels, Selector, texts};
use crate::view::{Action, Resource, View};

pub(crate) const CLAIMS: Resource = ("", "persistentvolumeclaims");
pub(crate) const VOLUMES: Resource = ("", "persistentvolumes");
pub(crate) const CLASSES: Resource = ("storage.k8s.io", "storageclasses");
pub(crate) const CSI_NODES: Resource = ("storage.k8s.io", "csinodes");

/// The annotation that tells a claim where its first consumer will run.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// When a claim gets its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// At once.
    Immediate,
    /// When a node is chosen for the first pod that uses it.
    WaitForFirstConsumer,
}

/// The name of a claim's or a volume's class; empty for none.
pub(crate) fn class_name(object: &Value) -> &str {
    let old = meta::annotation(object, "volume.beta.kubernetes.io/storage-class");
    old.or(object["spec"]["storageClassName"].as_str())
        .unwrap_or("")
}

/// The class of a claim, if it is there.
pub(crate) fn class_of<'v>(view: &View<'v>, claim: &Value) -> Option<&'v Value> {
    match class_name(claim) {
        "" => None,
        name => view.get(CLASSES, "", name).map(AsRef::as_ref),
    }
}

/// When a claim is to be bound.
pub(crate) fn mode(view: &View<'_>, claim: &Value) -> Mode {
    let class = class_of(view, claim);
    match class.and_then(|class| class["volumeBindingMode"].as_str()) {
        Some("WaitForFirstConsumer") => Mode::WaitForFirstConsumer,
        Some(_) | None => Mode::Immediate,
    }
}

/// True when the class makes volumes.
pub(crate) fn can_provision(class: &Value) -> bool {
    let provisioner = class["provisioner"].as_str().unwrap_or("");
    !matches!(provisioner, "" | "kubernetes.io/no-provisioner")
}

/// True when the claim has its volume and both sides know.
pub(crate) fn is_bound(claim: &Value) -> bool {
    let named = claim["spec"]["volumeName"]
        .as_str()
        .is_some_and(|name| !name.is_empty());
    let done = meta::annotation(claim, BIND_COMPLETED).is_some();
    named && (done || claim["status"]["phase"] == "Bound")
}

/// Driver and handle of a volume that has to be attached.
pub(crate) fn csi_of(volume: &Value) -> Option<(&str, &str)> {
    let spec = &volume["spec"];
    if let Some(id) = spec["awsElasticBlockStore"]["volumeID"].as_str() {
        return Some(("ebs.csi.aws.com", id));
    }
    let csi = &spec["csi"];
    Some((csi["driver"].as_str()?, csi["volumeHandle"].as_str()?))
}

/// Free volumes that would do for a claim, the smallest first.
pub(crate) fn candidates<'v>(
    view: &View<'v>,
    claim: &Value,
) -> impl Iterator<Item = &'v Value> + use<'v> {
    let mut fitting: Vec<(Option<Quantity>, &Value)> = view
        .all(VOLUMES)
        .map(AsRef::as_ref)
        .filter(|volume| is_candidate(volume, claim))
        .map(|volume| (Quantity::of(&volume["spec"]["capacity"]["storage"]), volume))
        .collect();
    fitting.sort_by_key(|(size, _)| *size);
    fitting.into_iter().map(|(_, volume)| volume)
}

fn is_candidate(volume: &Value, claim: &Value) -> bool {
    let (have, want) = (&volume["spec"], &claim["spec"]);
    let named = want["volumeName"].as_str().unwrap_or("");
    if !(named.is_empty() || named == meta::name(volume)) || meta::is_deleting(volume) {
        return false;
    }
    if !have["claimRef"].is_null() {
        // Reserved beforehand; bound already when it names a uid.
        return refers_to(volume, claim);
    }
    let modes: Vec<&str> = texts(&have["accessModes"]).collect();
    let size = Quantity::of(&have["capacity"]["storage"]);
    let kind = |spec: &Value| {
        spec["volumeMode"]
            .as_str()
            .unwrap_or("Filesystem")
            .to_owned()
    };
    let selector = &want["selector"];
    let chosen = selector.is_null()
        || Selector::read(selector).matches(&Labels::read(&volume["metadata"]["labels"]));
    let phase = volume["status"]["phase"].as_str().unwrap_or("Available");
    matches!(phase, "Available" | "Pending" | "")
        && class_name(volume) == class_name(claim)
        && size >= Quantity::of(&want["resources"]["requests"]["storage"])
        && texts(&want["accessModes"]).all(|mode| modes.contains(&mode))
        && kind(have) == kind(want)
        && chosen
}

/// True when a volume is for this claim.
fn refers_to(volume: &Value, claim: &Value) -> bool {
    let reference = &volume["spec"]["claimRef"];
    let uid = reference["uid"].as_str().unwrap_or("");
    reference["name"] == meta::name(claim)
        && reference["namespace"] == meta::namespace(claim)
        && (uid.is_empty() || uid == meta::uid(claim))
}

/// What a volume says about whom it is for.
fn reference_to(claim: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta::namespace(claim),
        "name": meta::name(claim),
        "uid": meta::uid(claim),
        "resourceVersion": meta::text(claim, "resourceVersion"),
    })
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    texts(&object["metadata"]["finalizers"]).any(|own| own == finalizer)
}

/// Puts a finalizer on, or takes it off.
fn with_finalizer(resource: Resource, object: &Value, finalizer: &str, on: bool) -> Action {
    let others = texts(&object["metadata"]["finalizers"]).filter(|own| *own != finalizer);
    let all: Vec<&str> = others.chain(on.then_some(finalizer)).collect();
    Action::Patch {
        resource,
        key: crate::fields::key(object),
        subresource: None,
        patch: json!({"metadata": {
            "resourceVersion": meta::text(object, "resourceVersion"),
            "finalizers": all,
        }}),
    }
}
