//! Objects in which every field is in use. Where fields exclude each other there are two.

use super::{full_condition, full_metadata, full_node_pool, with};
use serde_json::{Value, json};

/// NodePools, growing and fixed.
pub(crate) fn node_pools() -> Vec<Value> {
    let fixed = with(full_node_pool(), "/spec/weight", Value::Null);
    let fixed = with(fixed, "/spec/limits", json!({"nodes": "10"}));
    vec![full_node_pool(), with(fixed, "/spec/replicas", json!(3))]
}

/// A NodeClaim.
pub(crate) fn node_claims() -> Vec<Value> {
    vec![json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": full_metadata("default-x7k2p"),
        "spec": {
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule",
                        "timeAdded": "2026-01-31T12:00:00Z"}],
            "startupTaints": [{"key": "a", "value": "c", "effect": "NoExecute",
                               "timeAdded": "2026-01-31T12:00:00Z"}],
            "requirements": [
                {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["default"]},
                {"key": "node.kubernetes.io/instance-type", "operator": "In",
                 "values": ["m5.large", "m5.xlarge"], "minValues": 2},
            ],
            "resources": {"requests": {"cpu": "1500m", "memory": "2Gi"}},
            "nodeClassRef":
                {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "terminationGracePeriod": "30s",
            "expireAfter": "720h",
        },
        "status": {
            "nodeName": "ip-10-0-0-1",
            "providerID": "aws:///us-east-1a/i-0123",
            "imageID": "ami-123",
            "capacity": {"cpu": "2", "memory": "8Gi"},
            "allocatable": {"cpu": "1930m", "memory": "7Gi"},
            "lastPodEventTime": "2026-01-31T12:00:00+01:00",
            "conditions": [full_condition()],
        },
    })]
}

/// NodeOverlays, with a price and with a shift of it.
pub(crate) fn node_overlays() -> Vec<Value> {
    let overlay = json!({
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": full_metadata("discount"),
        "spec": {
            "requirements":
                [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
            "price": "0.25",
            "capacity": {"example.com/gpu": "4"},
            "weight": 10,
        },
        "status": {"conditions": [full_condition()]},
    });
    let shifted = with(overlay.clone(), "/spec/price", Value::Null);
    vec![
        overlay,
        with(shifted, "/spec/priceAdjustment", json!("-10%")),
    ]
}

/// EC2NodeClasses: with selectors and a role, with aliases and a profile.
pub(crate) fn ec2_node_classes() -> Vec<Value> {
    let mut class = json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": full_metadata("default"),
        "spec": {
            "subnetSelectorTerms": [{"tags": {"a": "*"}}, {"id": "subnet-0123"}],
            "securityGroupSelectorTerms":
                [{"tags": {"a": "b"}}, {"id": "sg-0123"}, {"name": "nodes"}],
            "capacityReservationSelectorTerms": [
                {"id": "cr-0123"},
                {"tags": {"a": "b"}, "ownerID": "123456789012", "instanceMatchCriteria": "open"},
            ],
            "placementGroupSelector": {"name": "together"},
            "associatePublicIPAddress": false,
            "ipPrefixCount": 2,
            "amiSelectorTerms": [
                {"tags": {"a": "b"}, "name": "mine-*", "owner": "self"},
                {"id": "ami-0123"},
                {"ssmParameter": "/my/ami"},
            ],
            "amiFamily": "AL2023",
            "userData": "#!/bin/sh\n",
            "role": "nodes",
            "tags": {"team": "a"},
            "instanceStorePolicy": "RAID0",
            "detailedMonitoring": true,
            "connectionTracking":
                {"tcpEstablishedTimeout": 60, "udpStreamTimeout": 60, "udpTimeout": 30},
            "context": "any",
            "cpuOptions": {"nestedVirtualization": "enabled"},
        },
        "status": ec2_status(),
    });
    hardware(&mut class);
    let other = with(class.clone(), "/spec/role", Value::Null);
    let other = with(other, "/spec/instanceProfile", json!("nodes"));
    let other = with(
        other,
        "/spec/placementGroupSelector",
        json!({"id": "pg-0123"}),
    );
    let other = with(other, "/spec/kubelet/maxPods", json!("max_pods - 10"));
    vec![
        class,
        with(
            other,
            "/spec/amiSelectorTerms",
            json!([{"alias": "al2023@v20240807"}]),
        ),
    ]
}

fn hardware(class: &mut Value) {
    class["spec"]["kubelet"] = json!({
        "clusterDNS": ["10.0.0.10"],
        "maxPods": 110,
        "podsPerCore": 10,
        "systemReserved": {"cpu": "100m"},
        "kubeReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"pid.available": "10%"},
        "evictionSoftGracePeriod": {"pid.available": "1m30s"},
        "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 80,
        "cpuCFSQuota": true,
        "registryPullQPS": 10,
    });
    class["spec"]["blockDeviceMappings"] = json!([{
        "deviceName": "/dev/xvda",
        "rootVolume": true,
        "ebs": {
            "deleteOnTermination": true, "encrypted": true, "iops": 3000,
            "kmsKeyID": "1234abcd", "snapshotID": "snap-0123", "throughput": 125,
            "volumeInitializationRate": 100, "volumeSize": "100Gi", "volumeType": "gp3",
        },
    }]);
    class["spec"]["networkInterfaces"] = json!([
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
    ]);
    class["spec"]["metadataOptions"] = json!({
        "httpEndpoint": "enabled", "httpProtocolIPv6": "enabled", "httpPutResponseHopLimit": 2,
        "httpTokens": "optional",
    });
}

fn ec2_status() -> Value {
    json!({
        "subnets": [{"id": "subnet-0123", "zone": "us-east-1a", "zoneID": "use1-az1"}],
        "securityGroups": [{"id": "sg-0123", "name": "nodes"}],
        "amis": [{
            "id": "ami-0123", "name": "mine-1", "deprecated": true,
            "requirements":
                [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
        }],
        "capacityReservations": [{
            "id": "cr-0123", "availabilityZone": "us-east-1a", "instanceType": "m5.large",
            "instanceMatchCriteria": "targeted", "ownerID": "123456789012",
            "reservationType": "capacity-block", "interruptible": false, "state": "expiring",
            "endTime": "2026-01-31T12:00:00Z",
        }],
        "instanceProfile": "nodes",
        "conditions": [full_condition()],
    })
}

/// A KWOKNodeClass.
pub(crate) fn kwok_node_classes() -> Vec<Value> {
    vec![json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": full_metadata("default"),
        "spec": {"nodeRegistrationDelay": "30s"},
        "status": {"conditions": [full_condition()]},
    })]
}

/// CapacityBuffers, for a template and for a workload.
pub(crate) fn capacity_buffers() -> Vec<Value> {
    let by_template = json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": with(full_metadata("headroom"), "/namespace", json!("web")),
        "spec": {
            "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
            "podTemplateRef": {"name": "web"},
            "replicas": 3,
            "limits": {"cpu": "10"},
        },
        "status": {
            "podTemplateRef": {"name": "web"},
            "replicas": 3,
            "podTemplateGeneration": 2,
            "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
            "conditions": [full_condition()],
        },
    });
    let by_workload = with(by_template.clone(), "/spec/podTemplateRef", Value::Null);
    let by_workload = with(by_workload, "/spec/percentage", json!(10));
    let scalable = json!({"apiGroup": "apps", "kind": "Deployment", "name": "web"});
    vec![
        by_template,
        with(by_workload, "/spec/scalableRef", scalable),
    ]
}
