//! The Node that a machine joins as.

use joiner_api::labels::{HOSTNAME, UNREGISTERED_TAINT, aws, kwok};
use joiner_cluster::{Runs, node_info};
use joiner_model::keys;
use serde_json::{Map, Value, json};

use crate::class_status::family_named;
use crate::record::Record;
use crate::settings::SIMULATED_LABEL;

/// Where kubelets listen.
const KUBELET_PORT: u16 = 10_250;

/// The Node of a machine, as it is when it joins a server of this version: not ready, and tainted
/// until it is registered.
pub(crate) fn render(record: &Record, server: &str) -> Value {
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
        "nodeInfo": info(record, server),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
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

/// What the machine says that it runs.
fn info(record: &Record, server: &str) -> Value {
    let label = |key: &str| record.labels.get(key).map(String::as_str);
    let image = record.image.as_ref();
    let runs = Runs {
        family: family_named(image.and_then(|own| own.family.as_deref())),
        release: image.and_then(|own| own.release.as_deref()),
        arch: label(keys::ARCH).unwrap_or("amd64"),
        gpu: label(aws::INSTANCE_GPU_COUNT).is_some(),
        server,
    };
    node_info(&runs, &record.claim_uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Image;
    use crate::record::tests::record;

    #[test]
    fn a_kwok_node_is_what_kwok_looks_for() {
        let node = render(&record(), "v1.36.3");
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
        let node = render(&record, "v1.36.3");
        assert_eq!(node["metadata"]["labels"][HOSTNAME], record.node_name);
        assert_eq!(node["status"]["addresses"][0]["address"], "10.1.2.3");
    }

    #[test]
    fn a_node_says_what_its_image_and_hardware_are() {
        let mut record = record();
        record
            .labels
            .insert(keys::ARCH.to_owned(), "arm64".to_owned());
        record.image = Some(Image {
            id: Some("ami-1".to_owned()),
            family: Some("bottlerocket".to_owned()),
            release: Some("1.49.0".to_owned()),
        });
        let info = &render(&record, "v1.35.2-eks-1234567")["status"]["nodeInfo"];
        assert_eq!(info["osImage"], "Bottlerocket OS 1.49.0 (aws-k8s-1.35)");
        assert_eq!(info["architecture"], "arm64");
        let kubelet = info["kubeletVersion"].as_str().unwrap();
        assert!(kubelet.starts_with("v1.35.2-eks-"), "{kubelet}");
        assert_eq!(kubelet.matches("eks").count(), 1, "{kubelet}");
        record.image = None;
        let info = &render(&record, "v1.36.3")["status"]["nodeInfo"];
        assert_eq!(info["kernelVersion"], "6.12.53-69.119.amzn2023.aarch64");
    }
}
