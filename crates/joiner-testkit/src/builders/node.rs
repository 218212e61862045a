//! Nodes there are, and node claims whose node is yet to come.

use joiner_model::keys;
use serde_json::{Value, json};

use super::text::{merge, push, taint};

/// A Node, or a NodeClaim in flight.
#[derive(Clone, Debug)]
#[must_use]
pub struct NodeBuilder {
    wire: Value,
    volume_limits: Vec<Value>,
}

/// A ready Node outside of all pools: 4 cores, 16 GiB, 110 pods, linux on amd64, zone `a`.
pub fn node(name: &str) -> NodeBuilder {
    let wire = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"providerID": format!("test:///{name}")},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    furnished(wire).label(keys::HOSTNAME, name)
}

/// A launched NodeClaim of a pool, whose Node has not joined yet; figures as for [`node`].
pub fn node_claim(name: &str, pool: &str) -> NodeBuilder {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    let wire = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name},
        "spec": {"nodeClassRef": class, "requirements": []},
        "status": {
            "providerID": format!("test:///{name}"),
            "conditions": [{"type": "Launched", "status": "True", "reason": "Launched",
                "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    });
    furnished(wire).label(keys::NODE_POOL, pool)
}

fn furnished(wire: Value) -> NodeBuilder {
    let bare = NodeBuilder {
        wire,
        volume_limits: Vec::new(),
    };
    bare.cpu("4")
        .memory("16Gi")
        .resource("pods", "110")
        .label(keys::OS, "linux")
        .label(keys::ARCH, "amd64")
        .label(keys::CAPACITY_TYPE, "on-demand")
        .zone("a")
}

impl NodeBuilder {
    /// Sets the CPU that pods can use.
    pub fn cpu(self, amount: &str) -> Self {
        self.resource("cpu", amount)
    }

    /// Sets the memory that pods can use.
    pub fn memory(self, amount: &str) -> Self {
        self.resource("memory", amount)
    }

    /// Sets how much of a resource pods can use; capacity is the same.
    pub fn resource(mut self, resource: &str, amount: &str) -> Self {
        self.wire["status"]["capacity"][resource] = json!(amount);
        self.wire["status"]["allocatable"][resource] = json!(amount);
        self
    }

    /// Sets a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.wire["metadata"]["labels"][key] = json!(value);
        self
    }

    /// Puts it into a zone.
    pub fn zone(self, zone: &str) -> Self {
        self.label(keys::ZONE, zone)
    }

    /// Sets how it is paid for.
    pub fn capacity_type(self, capacity_type: &str) -> Self {
        self.label(keys::CAPACITY_TYPE, capacity_type)
    }

    /// Says what machine it is. The figures stay as they are.
    pub fn instance_type(self, name: &str) -> Self {
        self.label(keys::INSTANCE_TYPE, name)
    }

    /// Makes it an initialized node of a pool.
    pub fn pool(self, pool: &str) -> Self {
        self.label(keys::NODE_POOL, pool)
            .label(keys::REGISTERED, "true")
            .label(keys::INITIALIZED, "true")
    }

    /// Makes it a node of a pool that is still booting.
    pub fn booting(self, pool: &str) -> Self {
        self.label(keys::NODE_POOL, pool)
            .label(keys::REGISTERED, "true")
    }

    /// Taints it: `taint("team=a:NoSchedule")`.
    pub fn taint(mut self, text: &str) -> Self {
        push(&mut self.wire["spec"]["taints"], taint(text));
        self
    }

    /// Closes it for new pods.
    pub fn cordoned(mut self) -> Self {
        self.wire["spec"]["unschedulable"] = json!(true);
        self
    }

    /// Somebody asked for its deletion.
    pub fn deleting(mut self) -> Self {
        self.wire["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        self
    }

    /// Limits the volumes of a CSI driver, by a CSINode of the same name.
    pub fn volume_limit(mut self, driver: &str, count: u32) -> Self {
        let driver = json!({"name": driver, "allocatable": {"count": count}});
        self.volume_limits.push(driver);
        self
    }

    /// Lays wire JSON over what is there.
    pub fn patch(mut self, patch: Value) -> Self {
        merge(&mut self.wire, patch);
        self
    }

    /// The objects, as they would be on the wire.
    #[must_use]
    pub fn wire(self) -> Vec<Value> {
        let mut objects = vec![self.wire];
        if !self.volume_limits.is_empty() {
            objects.push(json!({
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": objects[0]["metadata"]["name"]},
                "spec": {"drivers": self.volume_limits},
            }));
        }
        objects
    }
}
