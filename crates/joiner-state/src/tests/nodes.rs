use joiner_model::{Node, ResourceName};

use super::*;

fn node<'p>(problem: &'p Problem, name: &str) -> &'p Node {
    let found = problem.nodes.iter().find(|node| &*node.name == name);
    found.unwrap_or_else(|| panic!("no node {name}"))
}

fn taints(node: &Node) -> Vec<String> {
    node.taints.iter().map(ToString::to_string).collect()
}

fn claim(name: &str, rest: &str) -> String {
    format!(
        "---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: {name}, labels: {{karpenter.sh/nodepool: default, topology.kubernetes.io/zone: a}}}}
spec:
  nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: main}}
  requirements:
  - {{key: kubernetes.io/arch, operator: In, values: [amd64]}}
  - {{key: node.kubernetes.io/instance-type, operator: In, values: [small, large]}}
  taints: [{{key: team, value: a, effect: NoSchedule}}]
  startupTaints: [{{key: boot, effect: NoExecute}}]
{rest}
"
    )
}

#[test]
fn labels_are_current_and_hostname_is_there() {
    let input = read(
        "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {beta.kubernetes.io/arch: amd64, failure-domain.beta.kubernetes.io/zone: old, topology.kubernetes.io/zone: new}},
          spec: {taints: [{key: k, value: v, effect: NoSchedule}]}, status: {capacity: {cpu: 2500m, memory: 1.5Ki, pods: '10'}, allocatable: {cpu: 1.9999, memory: 1000}}}",
    );
    let node = node(&input.problem, "n1");
    let labels: Vec<String> = node
        .labels
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    assert_eq!(
        labels,
        [
            "kubernetes.io/arch=amd64",
            "kubernetes.io/hostname=n1",
            "topology.kubernetes.io/zone=new"
        ]
    );
    assert_eq!(taints(node), ["k=v:NoSchedule"]);
    assert_eq!(node.capacity.to_string(), "cpu 2500m, memory 1536, pods 10");
    assert_eq!(node.allocatable.to_string(), "cpu 1999m, memory 1000");
    assert!(node.initialized && !node.closed && node.pool.is_none());
}

#[test]
fn cordoned_going_and_disrupted_nodes_are_closed() {
    for (meta, spec, closed) in [
        ("", "{}", false),
        ("", "{unschedulable: true}", true),
        (", deletionTimestamp: '2026-01-01T00:00:00Z'", "{}", true),
        (
            "",
            "{taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}]}",
            true,
        ),
    ] {
        let text =
            format!("{{apiVersion: v1, kind: Node, metadata: {{name: n1{meta}}}, spec: {spec}}}");
        assert_eq!(node(&read(&text).problem, "n1").closed, closed, "{text}");
    }
}

#[test]
fn core_139_140_taints_of_a_booting_node() {
    let boot = "[{key: node.kubernetes.io/not-ready, effect: NoExecute}, {key: karpenter.sh/unregistered, effect: NoExecute}, \
                 {key: readiness.k8s.io/gpu, effect: NoSchedule}, {key: boot, effect: NoExecute}, {key: other, effect: NoSchedule}]";
    let text = |labels: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: n1, labels: {{karpenter.sh/nodepool: default, karpenter.sh/registered: 'true'{labels}}}}}, spec: {{providerID: 'x:///1', taints: {boot}}}}}\n{}",
            claim("c1", "status: {providerID: 'x:///1'}")
        )
    };
    let booting = read(&text(""));
    assert_eq!(taints(node(&booting.problem, "n1")), ["other:NoSchedule"]);
    assert_eq!(booting.problem.nodes.len(), 1);
    assert!(!node(&booting.problem, "n1").initialized);
    let up = read(&text(", karpenter.sh/initialized: 'true'"));
    assert_eq!(taints(node(&up.problem, "n1")).len(), 5);
    assert!(node(&up.problem, "n1").initialized);
}

#[test]
fn startup_taints_come_from_the_pool_when_there_is_no_claim() {
    let pool = POOL.replace(
        "requirements: []",
        "requirements: []\n      startupTaints: [{key: boot, effect: NoSchedule}]",
    );
    let input = read(&format!(
        "{pool}\n---\n{{apiVersion: v1, kind: Node, metadata: {{name: n1, labels: {{karpenter.sh/nodepool: default}}}}, spec: {{taints: [{{key: boot, effect: NoSchedule}}]}}}}"
    ));
    assert!(node(&input.problem, "n1").taints.is_empty());
    assert_eq!(node(&input.problem, "n1").pool.as_deref(), Some("default"));
}

#[test]
fn core_144_figures_a_booting_node_lacks_come_from_its_claim() {
    let text = format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: n1}}, status: {{allocatable: {{cpu: 2, nvidia.com/gpu: 0}}}}}}\n{}",
        claim(
            "c1",
            "status: {nodeName: n1, providerID: 'x:///1', allocatable: {cpu: 3, nvidia.com/gpu: 1}, capacity: {cpu: 4}}"
        )
    );
    let input = read(&text);
    let node = node(&input.problem, "n1");
    assert_eq!(node.allocatable.get(&ResourceName::Cpu), 2000);
    assert_eq!(
        node.allocatable.get(&ResourceName::parse("nvidia.com/gpu")),
        1
    );
    // Not registered either: labels and taints are the claim's.
    assert_eq!(taints(node), ["team=a:NoSchedule"]);
    assert_eq!(
        node.labels.get("topology.kubernetes.io/zone").map(|z| &**z),
        Some("a")
    );
    assert_eq!(node.pool.as_deref(), Some("default"));
}

#[test]
fn core_135_launched_claims_are_nodes_on_their_way() {
    let launched = claim(
        "c1",
        "status: {providerID: 'x:///1', capacity: {cpu: 4}, allocatable: {cpu: 3500m}}",
    );
    let input = read(&format!("{launched}{}", claim("c2", "")));
    assert_eq!(input.problem.nodes.len(), 1);
    let node = node(&input.problem, "c1");
    assert_eq!(taints(node), ["team=a:NoSchedule"]);
    assert_eq!(
        node.labels.get("kubernetes.io/hostname").map(|v| &**v),
        Some("c1")
    );
    assert_eq!(
        node.labels.get("kubernetes.io/arch").map(|v| &**v),
        Some("amd64")
    );
    assert!(!node.labels.contains_key("node.kubernetes.io/instance-type"));
    assert!(!node.initialized && !node.closed);
    assert_eq!(
        input.warnings,
        ["NodeClaim c2 is not launched yet and is not counted"]
    );
}

#[test]
fn csi_nodes_limit_volumes() {
    let input = read(
        "{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n1}, spec: {drivers: [{name: ebs.csi.aws.com, allocatable: {count: 25}}, {name: nfs}]}}",
    );
    let limits = &node(&input.problem, "n1").volume_limits;
    assert_eq!(limits.get("ebs.csi.aws.com"), Some(&25));
    assert_eq!(limits.len(), 1);
}
