//! Machine, which NodeClaim has replaced.

use super::fields::{at, put, shift, take, text};
use super::{class_reference, kubelet, metadata};
use serde_json::{Value, json};

const CONDITIONS: &[(&str, &str)] = &[
    ("MachineLaunched", "Launched"),
    ("MachineRegistered", "Registered"),
    ("MachineInitialized", "Initialized"),
];

/// The claim that takes the place of a machine.
pub(super) fn convert(machine: &Value) -> Value {
    let mut claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata::carried(machine),
    });
    for part in ["spec", "status"] {
        if let Some(value) = at(machine, &[part]) {
            put(&mut claim, &[part], value.clone());
        }
    }
    shift(
        &mut claim,
        &["spec", "machineTemplateRef"],
        &["spec", "nodeClassRef"],
    );
    let reference = take(&mut claim, &["spec", "nodeClassRef"]).unwrap_or_default();
    put(
        &mut claim,
        &["spec", "nodeClassRef"],
        class_reference::of_v1alpha5(&reference),
    );
    if at(&claim, &["spec", "requirements"]).is_none() {
        put(&mut claim, &["spec", "requirements"], json!([]));
    }
    kubelet::raise(&mut claim, &["spec", "kubelet"]);
    let conditions = super::fields::list_at(&mut claim, &["status", "conditions"]);
    for condition in conditions.into_iter().flatten() {
        let kind = text(condition, "type").to_owned();
        if let Some((_, new)) = CONDITIONS.iter().find(|(old, _)| *old == kind) {
            put(condition, &["type"], (*new).into());
        }
        take(condition, &["severity"]);
    }
    claim
}
