//! The Node that a machine joins as.

use joiner_api::labels::{HOSTNAME, UNREGISTERED_TAINT, kwok};
use serde_json::{Map, Value, json};

use crate::record::Record;
use crate::settings::SIMULATED_LABEL;

/// The Node of a machine, as it is when it joins: not ready, and tainted until it is registered.
pub(crate) fn render(record: &Record) -> Value {
    let name = &record.node_name;
    let hostname = if record.is_its_node() {
        &record.claim
    } else {
        name
    };
    let own = [
        (HOSTNAME, hostname.as_str()),
        (kwok::FAKE_NODE, kwok::FAKE_NODE_VALUE),
        (kwok::PARTITION, kwok::PARTITION_VALUE),
        (SIMULATED_LABEL, "true"),
    ];
    let mut labels: Map<String, Value> = Map::new();
    for (key, value) in record.claim_labels.iter().chain(&record.labels) {
        labels.insert(key.clone(), json!(value));
    }
    for (key, value) in own {
        labels.insert(key.to_owned(), json!(value));
    }
    let mut status = json!({
        "phase": "Pending",
        "capacity": record.capacity,
        "allocatable": record.allocatable,
    });
    if let Some(address) = &record.address {
        status["addresses"] = json!([
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
            {"type": "InternalDNS", "address": name},
        ]);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {kwok::FAKE_NODE: kwok::FAKE_NODE_VALUE},
        },
        "spec": {
            "providerID": record.provider_id,
            "taints": [{
                "key": UNREGISTERED_TAINT.key,
                "effect": UNREGISTERED_TAINT.effect.as_str(),
            }],
        },
        "status": status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn a_kwok_node_is_what_kwok_looks_for() {
        let node = render(&record());
        let labels = &node["metadata"]["labels"];
        assert_eq!(labels[HOSTNAME], "default-abc");
        assert_eq!(labels["kwok-partition"], "a");
        assert_eq!(labels["kwok.x-k8s.io/node"], "fake");
        assert_eq!(labels["karpenter.sh/nodepool"], "default");
        assert_eq!(labels["topology.kubernetes.io/zone"], "test-zone-a");
        assert_eq!(
            node["metadata"]["annotations"]["kwok.x-k8s.io/node"],
            "fake"
        );
        assert_eq!(node["spec"]["providerID"], "kwok://kwok-default-abc-x");
        let taint = json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
        assert_eq!(node["spec"]["taints"], taint);
        assert_eq!(node["status"]["phase"], "Pending");
        assert_eq!(node["status"]["allocatable"]["cpu"], "3900m");
        assert_eq!(node["status"]["addresses"], Value::Null);
    }

    #[test]
    fn an_ec2_node_knows_its_address() {
        let mut record = record();
        record.class_kind = "EC2NodeClass".to_owned();
        record.node_name = "ip-10-1-2-3.ec2.internal".to_owned();
        record.address = Some("10.1.2.3".to_owned());
        let node = render(&record);
        assert_eq!(node["metadata"]["labels"][HOSTNAME], record.node_name);
        assert_eq!(node["status"]["addresses"][0]["address"], "10.1.2.3");
    }
}
