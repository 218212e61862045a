//! NodeClaim, v1beta1 and v1.

use super::fields::{put, take};
use super::{class_reference, kubelet, requirements};
use serde_json::Value;

const REFERENCE: &[&str] = &["spec", "nodeClassRef"];
const KUBELET: &[&str] = &["spec", "kubelet"];

/// v1beta1 as v1.
pub(super) fn up(mut claim: Value) -> Value {
    put(&mut claim, &["apiVersion"], "karpenter.sh/v1".into());
    kubelet::raise(&mut claim, KUBELET);
    class_reference::raise(&mut claim, REFERENCE);
    claim
}

/// v1 as v1beta1.
pub(super) fn down(mut claim: Value) -> Value {
    put(&mut claim, &["apiVersion"], "karpenter.sh/v1beta1".into());
    kubelet::lower(&mut claim, KUBELET);
    class_reference::lower(&mut claim, REFERENCE);
    take(&mut claim, &["spec", "expireAfter"]);
    take(&mut claim, &["spec", "terminationGracePeriod"]);
    requirements::down(&mut claim, &["spec", "requirements"]);
    claim
}
