//! Taints that controllers put on nodes and take away.

use joiner_api::labels::KnownTaint;
use joiner_api::types::Taint;
use joiner_state::live::LiveNode;
use serde_json::{Value, json};

/// The taints of a node without this one, whatever its effect.
pub(crate) fn without(node: &LiveNode, taint: &KnownTaint) -> Vec<Taint> {
    let others = node.taints.iter().filter(|own| own.key != taint.key);
    others.cloned().collect()
}

/// The taints of a node with this one; one of the same key and another effect is replaced.
pub(crate) fn with(node: &LiveNode, taint: &KnownTaint) -> Vec<Taint> {
    let mut taints = without(node, taint);
    taints.push(taint.to_taint());
    taints
}

/// The patch that gives a node these taints. It holds only for the node as it was looked at.
pub(crate) fn patch(node: &LiveNode, taints: &[Taint]) -> Value {
    json!({
        "metadata": {"resourceVersion": node.meta.version.to_string()},
        "spec": {"taints": taints},
    })
}
