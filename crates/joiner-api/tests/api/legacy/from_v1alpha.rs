//! Provisioner, AWSNodeTemplate and Machine.

use super::{all, examples, one, said};
use crate::support::with;
use serde_json::{Value, json};

fn bare_provisioner(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner",
        "metadata": {"name": "default"}, "spec": {"providerRef": {"name": "default"}},
    });
    for (key, value) in spec.as_object().expect("a spec") {
        object["spec"][key] = value.clone();
    }
    object
}

fn bare_template(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate",
        "metadata": {"name": "default"},
        "spec": {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}},
    });
    for (key, value) in spec.as_object().expect("a spec") {
        object = with(object, &format!("/spec/{key}"), value.clone());
    }
    object
}

#[test]
fn a_provisioner_with_everything() {
    let new = all(&[examples::provisioner(), examples::node_template()]);
    assert_eq!(
        new[0].objects,
        [json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {
                "name": "general",
                "labels": {"karpenter.sh/nodepool": "general", "a": "b"},
                "annotations": {"karpenter.sh/nodepool-hash": "1"},
            },
            "spec": {
                "template": {
                    "metadata": {"labels": {"team": "a"},
                                 "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
                    "spec": {
                        "requirements": [
                            {"key": "karpenter.sh/capacity-type", "operator": "In",
                             "values": ["spot", "on-demand"]},
                            {"key": "karpenter.k8s.aws/instance-category", "operator": "In",
                             "values": ["c", "m"]},
                            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                        ],
                        "taints": [{"key": "team", "effect": "NoSchedule"}],
                        "startupTaints": [{"key": "cni", "effect": "NoExecute"}],
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass",
                                         "name": "general"},
                        "expireAfter": "2592000s",
                    },
                },
                "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
                "limits": {"cpu": "100", "memory": "400Gi"},
                "weight": 10,
            },
        })]
    );
    let class = &new[1].objects[0];
    assert_eq!(
        class["metadata"],
        json!({
            "name": "general", "annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "1"},
        })
    );
    assert_eq!(
        class["spec"]["kubelet"],
        json!({"maxPods": 20, "systemReserved": {"cpu": "1"}})
    );
    assert_eq!(
        said(&new[0]),
        [
            "spec.ttlSecondsUntilExpired: is spec.template.spec.expireAfter: 2592000s now; since v1 \
             a node of this age goes whatever budgets say, as soon as its pods are drained",
            "spec.ttlSecondsAfterEmpty: is spec.disruption.consolidationPolicy WhenEmpty with \
             consolidateAfter 30s now; at most 10 % of the pool's nodes go at once, which \
             spec.disruption.budgets can change",
            "spec.limits.resources: is spec.limits now (cpu, memory); nodes that are being launched \
             count, so a limit is never exceeded",
            "spec.weight: 10 stays; among pools of the same weight the cheaper one is taken",
            "spec.startupTaints: are spec.template.spec.startupTaints now; pods wait until something \
             lifts them, as before",
            "spec.annotations[karpenter.sh/do-not-consolidate]: is karpenter.sh/do-not-disrupt now, \
             which keeps nodes that have drifted, too",
            "spec.kubeletConfiguration.containerRuntime: is left out: images have one runtime",
            "spec.requirements: written out what v1alpha5 added without saying so: kubernetes.io/os \
             In [linux], kubernetes.io/arch In [amd64]",
            "spec.kubeletConfiguration: is spec.kubelet of the EC2NodeClass general now",
        ]
    );
}

#[test]
fn how_nodes_go() {
    let disruption = |spec: Value| {
        let mut new = one(&bare_provisioner(&spec));
        let pool = new.objects.remove(0);
        (
            pool["spec"]["disruption"].clone(),
            pool["spec"]["template"]["spec"]["expireAfter"].clone(),
        )
    };
    let (policy, expiry) = disruption(json!({}));
    assert_eq!(
        policy,
        json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"})
    );
    assert_eq!(expiry, "Never");
    let (policy, expiry) =
        disruption(json!({"consolidation": {"enabled": true}, "ttlSecondsUntilExpired": 60}));
    assert_eq!(
        policy,
        json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"})
    );
    assert_eq!(expiry, "60s");
    let (policy, _) =
        disruption(json!({"consolidation": {"enabled": false}, "ttlSecondsAfterEmpty": 0}));
    assert_eq!(
        policy,
        json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"})
    );
}

#[test]
fn settings_inside_of_a_provisioner_become_a_class() {
    let provisioner = bare_provisioner(&json!({
        "provider": {
            "apiVersion": "extensions.karpenter.sh/v1alpha1", "kind": "AWS",
            "subnetSelector": {"aws-ids": "subnet-1"},
            "securityGroupSelector": {"Name": "nodes"},
            "instanceProfile": "nodes", "amiFamily": "Ubuntu",
        },
        "kubeletConfiguration": {"maxPods": 20},
    }));
    let provisioner = with(provisioner, "/spec/providerRef", Value::Null);
    let new = one(&provisioner);
    assert_eq!(new.objects.len(), 2);
    assert_eq!(
        new.objects[1],
        json!({
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": {"name": "default"},
            "spec": {
                "amiFamily": "AL2",
                "amiSelectorTerms": [{"id": "ami-placeholder"}],
                "subnetSelectorTerms": [{"id": "subnet-1"}],
                "securityGroupSelectorTerms": [{"tags": {"Name": "nodes"}}],
                "instanceProfile": "nodes",
                "metadataOptions": {"httpPutResponseHopLimit": 2},
                "blockDeviceMappings": [{
                    "deviceName": "/dev/sda1", "rootVolume": true,
                    "ebs": {"encrypted": true, "volumeType": "gp3", "volumeSize": "20Gi"},
                }],
                "kubelet": {"maxPods": 20},
            },
        })
    );
    let hands: Vec<String> = said(&new)
        .into_iter()
        .filter(|line| line.starts_with('!'))
        .collect();
    assert_eq!(hands.len(), 1, "{hands:?}");
    assert!(hands[0].starts_with("! spec.provider.amiFamily: there is no family Ubuntu"));
}

#[test]
fn what_only_people_know_is_a_placeholder() {
    let new = one(&bare_template(&json!({})));
    assert_eq!(new.objects[0]["spec"]["role"], "$KARPENTER_NODE_ROLE");
    assert!(
        said(&new)
            .iter()
            .any(|line| line.starts_with("! spec.instanceProfile: there is none"))
    );

    let template = bare_template(&json!({"launchTemplate": "mine", "securityGroupSelector": null}));
    let new = one(&template);
    let spec = &new.objects[0]["spec"];
    assert_eq!(spec["amiFamily"], "Custom");
    assert_eq!(spec["amiSelectorTerms"], json!([{"id": "ami-placeholder"}]));
    assert!(spec["securityGroupSelectorTerms"].is_array());
    let lines = said(&new);
    assert!(
        lines
            .iter()
            .any(|l| l.starts_with("! spec.launchTemplate: launch templates are no longer")),
        "{lines:?}"
    );

    let mut provisioner = bare_provisioner(&json!({}));
    provisioner["spec"] = json!({});
    let new = one(&provisioner);
    assert_eq!(
        new.objects[0]["spec"]["template"]["spec"]["nodeClassRef"]["name"],
        "default"
    );
    assert!(
        said(&new)
            .iter()
            .any(|line| line.starts_with("! spec.providerRef: there is none"))
    );
}

#[test]
fn a_family_that_was_not_said_is_said() {
    let new = one(&bare_template(&json!({"instanceProfile": "nodes"})));
    assert_eq!(
        new.objects[0]["spec"]["amiSelectorTerms"],
        json!([{"alias": "al2@latest"}])
    );
    assert_eq!(new.objects[0]["spec"].get("amiFamily"), None);
    let lines = said(&new);
    assert!(
        lines.iter().any(|line| line
            == "spec.amiFamily: AL2 is written out, which it was \
                                             without saying so"),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("al2023@latest")),
        "{lines:?}"
    );
}

#[test]
fn labels_that_are_gone_are_left_out() {
    let new = one(&bare_provisioner(&json!({
        "labels": {"karpenter.k8s.aws/instance-ami-id": "ami-1"},
        "requirements": [
            {"key": "karpenter.k8s.aws/instance-pods", "operator": "Gt", "values": ["20"]},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]},
        ],
    })));
    let template = &new.objects[0]["spec"]["template"];
    assert_eq!(template["metadata"].get("labels"), None);
    assert_eq!(
        template["spec"]["requirements"][0]["key"],
        "node.kubernetes.io/instance-type"
    );
    assert_eq!(
        said(&new)
            .iter()
            .filter(|line| line.starts_with('!'))
            .count(),
        2
    );
}

#[test]
fn a_machine_is_a_claim() {
    let new = all(&[
        examples::provisioner(),
        examples::node_template(),
        examples::machine(),
    ]);
    assert_eq!(
        new[2].objects,
        [json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": "general-1", "labels": {"karpenter.sh/nodepool": "general"}},
            "spec": {
                "taints": [{"key": "team", "effect": "NoSchedule"}],
                "requirements":
                    [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
                "resources": {"requests": {"cpu": "1"}},
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass",
                                 "name": "general"},
                "expireAfter": "2592000s",
            },
            "status": {
                "providerID": "aws:///us-east-1a/i-0123", "nodeName": "ip-10-0-0-1",
                "conditions": [{"type": "Launched", "status": "True",
                                "lastTransitionTime": "2023-01-31T12:00:00Z"}],
            },
        })]
    );
}
