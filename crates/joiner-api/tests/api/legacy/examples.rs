//! Old objects in which every field is in use.

use serde_json::{Value, json};

pub(super) fn node_pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "general", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {
            "template": {
                "metadata": {"labels": {"team": "a"}, "annotations": {"x": "y"}},
                "spec": {
                    "requirements": [
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
                        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt",
                         "values": ["3"]},
                        {"key": "node.kubernetes.io/instance-type", "operator": "Exists",
                         "minValues": 3},
                    ],
                    "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
                    "startupTaints": [{"key": "cni", "effect": "NoExecute"}],
                    "kubelet": kubelet(),
                    "nodeClassRef": {"apiVersion": "karpenter.k8s.aws/v1beta1",
                                     "kind": "EC2NodeClass", "name": "general"},
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "30s",
                "expireAfter": "336h",
                "budgets": [{"nodes": "20%"},
                            {"nodes": "0", "schedule": "0 9 * * 1-5", "duration": "8h"}],
            },
            "limits": {"cpu": "100", "memory": "400Gi"},
            "weight": 10,
        },
        "status": {"resources": {"cpu": "4"}},
    })
}

pub(super) fn kubelet() -> Value {
    json!({
        "clusterDNS": ["10.0.0.10"],
        "maxPods": 40,
        "podsPerCore": 8,
        "systemReserved": {"cpu": "100m"},
        "kubeReserved": {"cpu": "200m", "memory": "500Mi"},
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"memory.available": "8%"},
        "evictionSoftGracePeriod": {"memory.available": "1m0s"},
        "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 80,
        "cpuCFSQuota": true,
    })
}

pub(super) fn node_claim() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodeClaim",
        "metadata": {"name": "general-x7k2p", "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {
            "requirements":
                [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}],
            "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "cni", "effect": "NoExecute"}],
            "resources": {"requests": {"cpu": "1500m"}},
            "kubelet": {"maxPods": 40},
            "nodeClassRef": {"name": "general"},
        },
        "status": {"nodeName": "ip-10-0-0-1", "providerID": "aws:///us-east-1a/i-0123",
                   "imageID": "ami-1", "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3900m"},
                   "conditions": [{"type": "Empty", "status": "True",
                                   "lastTransitionTime": "2024-01-31T12:00:00Z"}]},
    })
}

pub(super) fn node_class() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1beta1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "general"},
        "spec": {
            "amiFamily": "AL2023",
            "amiSelectorTerms": [{"id": "ami-0123"},
                                 {"name": "mine-*", "owner": "self", "tags": {"a": "*"}}],
            "subnetSelectorTerms": [{"tags": {"a": "*"}}, {"id": "subnet-0123"}],
            "securityGroupSelectorTerms":
                [{"tags": {"a": "b"}}, {"id": "sg-0123"}, {"name": "nodes"}],
            "associatePublicIPAddress": false,
            "role": "nodes",
            "tags": {"team": "a"},
            "userData": "#!/bin/sh\n",
            "instanceStorePolicy": "RAID0",
            "detailedMonitoring": true,
            "context": "any",
            "metadataOptions": {"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled",
                                "httpPutResponseHopLimit": 2, "httpTokens": "required"},
            "blockDeviceMappings": [{
                "deviceName": "/dev/xvda",
                "rootVolume": true,
                "ebs": {"deleteOnTermination": true, "encrypted": true, "iops": 3000,
                        "kmsKeyID": "1234abcd", "snapshotID": "snap-0123", "throughput": 125,
                        "volumeSize": "100Gi", "volumeType": "gp3"},
            }],
        },
        "status": {"instanceProfile": "nodes",
                   "subnets": [{"id": "subnet-0123", "zone": "us-east-1a"}]},
    })
}

pub(super) fn provisioner() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {
            "name": "general",
            "uid": "1", "resourceVersion": "2", "generation": 3,
            "creationTimestamp": "2023-01-31T12:00:00Z",
            "labels": {"karpenter.sh/provisioner-name": "general", "a": "b"},
            "annotations": {"karpenter.sh/provisioner-hash": "1", "karpenter.sh/linked": "x",
                            "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {
            "labels": {"team": "a"},
            "annotations": {"karpenter.sh/do-not-consolidate": "true"},
            "requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In",
                 "values": ["spot", "on-demand"]},
                {"key": "karpenter.k8s.aws/instance-category", "operator": "In",
                 "values": ["c", "m"]},
            ],
            "taints": [{"key": "team", "value": "", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "cni", "effect": "NoExecute"}],
            "kubeletConfiguration":
                {"maxPods": 20, "containerRuntime": "containerd", "systemReserved": {"cpu": 1}},
            "providerRef": {"name": "general"},
            "ttlSecondsAfterEmpty": 30,
            "ttlSecondsUntilExpired": 2_592_000,
            "limits": {"resources": {"cpu": "100", "memory": "400Gi"}},
            "weight": 10,
        },
        "status": {"resources": {"cpu": "4"}, "lastScaleTime": "2023-01-31T12:00:00Z"},
    })
}

pub(super) fn node_template() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": {"name": "general",
                     "annotations": {"karpenter.k8s.aws/nodetemplate-hash": "1"}},
        "spec": {
            "amiFamily": "Bottlerocket",
            "subnetSelector": {"karpenter.sh/discovery": "prod, test"},
            "securityGroupSelector": {"aws-ids": "sg-1,sg-2"},
            "amiSelector": {"aws::name": "mine-*", "aws::owners": "self"},
            "instanceProfile": "nodes",
            "tags": {"team": "a"},
            "userData": "[settings]\n",
            "detailedMonitoring": true,
            "context": "any",
            "metadataOptions": {"httpTokens": "optional"},
            "blockDeviceMappings":
                [{"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "102400Mi"}}],
        },
        "status": {"subnets": [{"id": "subnet-1", "zone": "us-east-1a"}]},
    })
}

pub(super) fn machine() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Machine",
        "metadata": {"name": "general-1",
                     "labels": {"karpenter.sh/provisioner-name": "general"}},
        "spec": {
            "taints": [{"key": "team", "effect": "NoSchedule"}],
            "requirements":
                [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
            "resources": {"requests": {"cpu": "1"}},
            "kubelet": {"maxPods": 20},
            "machineTemplateRef": {"name": "general"},
        },
        "status": {"providerID": "aws:///us-east-1a/i-0123", "nodeName": "ip-10-0-0-1",
                   "conditions": [{"type": "MachineLaunched", "status": "True",
                                   "severity": "", "lastTransitionTime": "2023-01-31T12:00:00Z"}]},
    })
}
