//! Node pools.

use joiner_model::keys;
use serde_json::{Value, json};

use super::text::{expression, merge, push, taint};

/// A NodePool.
#[derive(Clone, Debug)]
#[must_use]
pub struct PoolBuilder {
    wire: Value,
}

/// A NodePool that buys anything there is.
pub fn pool(name: &str) -> PoolBuilder {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    let wire = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"nodeClassRef": class, "requirements": []}}},
    });
    PoolBuilder { wire }
}

impl PoolBuilder {
    /// Adds a requirement: `requirement(ZONE, "In", "a b")`.
    pub fn requirement(mut self, key: &str, operator: &str, values: &str) -> Self {
        let requirement = expression(key, operator, values);
        push(&mut self.node_spec()["requirements"], requirement);
        self
    }

    /// Adds a requirement with `minValues`.
    pub fn min_values(mut self, key: &str, operator: &str, values: &str, count: u32) -> Self {
        let mut requirement = expression(key, operator, values);
        requirement["minValues"] = json!(count);
        push(&mut self.node_spec()["requirements"], requirement);
        self
    }

    /// Buys in these zones only.
    pub fn zones(self, zones: &str) -> Self {
        self.requirement(keys::ZONE, "In", zones)
    }

    /// Buys these capacity types only.
    pub fn capacity_types(self, capacity_types: &str) -> Self {
        self.requirement(keys::CAPACITY_TYPE, "In", capacity_types)
    }

    /// Buys these instance types only.
    pub fn types(self, types: &str) -> Self {
        self.requirement(keys::INSTANCE_TYPE, "In", types)
    }

    /// Buys this architecture only.
    pub fn arch(self, arch: &str) -> Self {
        self.requirement(keys::ARCH, "In", arch)
    }

    /// Sets the weight, 1 to 100.
    pub fn weight(mut self, weight: u32) -> Self {
        self.wire["spec"]["weight"] = json!(weight);
        self
    }

    /// Limits a resource of all its nodes together.
    pub fn limit(mut self, resource: &str, amount: &str) -> Self {
        self.wire["spec"]["limits"][resource] = json!(amount);
        self
    }

    /// Taints its nodes: `taint("team=a:NoSchedule")`.
    pub fn taint(mut self, text: &str) -> Self {
        push(&mut self.node_spec()["taints"], taint(text));
        self
    }

    /// Taints its nodes until they are up.
    pub fn startup_taint(mut self, text: &str) -> Self {
        push(&mut self.node_spec()["startupTaints"], taint(text));
        self
    }

    /// Labels its nodes.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.wire["spec"]["template"]["metadata"]["labels"][key] = json!(value);
        self
    }

    /// Uses another EC2NodeClass than `default`.
    pub fn node_class(mut self, name: &str) -> Self {
        self.node_spec()["nodeClassRef"]["name"] = json!(name);
        self
    }

    /// Its controller says that it is not ready, and why.
    pub fn not_ready(mut self, message: &str) -> Self {
        self.wire["status"]["conditions"] = json!([{
            "type": "Ready", "status": "False", "reason": "NotReady", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        self
    }

    /// Lays wire JSON over what is there.
    pub fn patch(mut self, patch: Value) -> Self {
        merge(&mut self.wire, patch);
        self
    }

    fn node_spec(&mut self) -> &mut Value {
        &mut self.wire["spec"]["template"]["spec"]
    }

    /// The object, as it would be on the wire.
    #[must_use]
    pub fn wire(self) -> Value {
        self.wire
    }
}
