use joiner_model::{Pool, ResourceName, TypeIx};

use super::*;
use crate::NodeClassRef;

fn pool_with(template_meta: &str, node: &str, spec: &str, rest: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: gold{rest}}}
spec:
  template:
    metadata: {template_meta}
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: main}}
{node}
{spec}
"
    )
}

fn only(text: &str) -> Pool {
    let input = read(text);
    assert_eq!(input.problem.pools.len(), 1);
    input.problem.pools[0].clone()
}

#[test]
fn a_pool_in_full() {
    let pool = only(&pool_with(
        "{labels: {team: a, beta.kubernetes.io/arch: arm64}}",
        "      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand], minValues: 2}
      - {key: example.com/size, operator: Gt, values: ['3']}
      taints: [{key: team, value: a, effect: NoSchedule}]
      startupTaints: [{key: boot, effect: NoExecute}]",
        "  weight: 7\n  limits: {cpu: 10500m, memory: 1Gi, nodes: 3}",
        "",
    ));
    assert_eq!((&*pool.name, pool.weight), ("gold", 7));
    assert_eq!(
        pool.requirements.to_string(),
        "example.com/size Exists >=4, karpenter.sh/capacity-type In [on-demand spot] minValues 2"
    );
    let labels: Vec<String> = pool
        .labels
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    assert_eq!(
        labels,
        [
            "karpenter.k8s.aws/ec2nodeclass=main",
            "karpenter.sh/initialized=true",
            "karpenter.sh/nodepool=gold",
            "karpenter.sh/registered=true",
            "kubernetes.io/arch=arm64",
            "team=a"
        ]
    );
    assert_eq!(pool.taints[0].to_string(), "team=a:NoSchedule");
    assert_eq!(pool.startup_taints[0].to_string(), "boot:NoExecute");
    let limits = pool.limits.unwrap();
    assert_eq!(limits.get(&ResourceName::Cpu), 10500);
    assert_eq!(limits.get(&ResourceName::parse("nodes")), 3);
    assert_eq!(pool.types, [TypeIx(0), TypeIx(1)]);
    assert_eq!(pool.closed, None);
}

#[test]
fn core_066_119_pools_that_cannot_grow_are_closed() {
    let none = "      requirements: []";
    let ready = |status: &str| {
        format!(
            "status: {{conditions: [{{type: Ready, status: '{status}', reason: Broken, message: no subnets, lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}"
        )
    };
    for (meta, node, spec, rest, expected) in [
        ("{}", none, String::new(), "", None),
        (
            "{}",
            none,
            "  replicas: 3".to_owned(),
            "",
            Some("it is static (spec.replicas), and pods do not make it grow"),
        ),
        (
            "{}",
            none,
            String::new(),
            ", deletionTimestamp: '2026-01-01T00:00:00Z'",
            Some("it is being deleted"),
        ),
        (
            "{}",
            none,
            ready("False"),
            "",
            Some("it is not ready: no subnets"),
        ),
        ("{}", none, ready("True"), "", None),
        (
            "{labels: {kubernetes.io/arch: arm64}}",
            "      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]",
            String::new(),
            "",
            Some("its label kubernetes.io/arch=arm64 contradicts its own requirements"),
        ),
        (
            "{}",
            "      requirements: []\n      taints: [{key: a, effect: NoSchedule}]\n      startupTaints: [{key: a, effect: NoSchedule}]",
            String::new(),
            "",
            Some("taint a:NoSchedule is there twice"),
        ),
    ] {
        let text = pool_with(meta, node, &spec, rest);
        assert_eq!(only(&text).closed.as_deref(), expected, "{text}");
    }
}

#[test]
fn a_pool_that_is_not_ready_says_why() {
    let condition = |kind: &str, message: &str| {
        format!(
            "{{type: {kind}, status: 'False', reason: R, message: {message}, lastTransitionTime: '2026-01-01T00:00:00Z'}}"
        )
    };
    let conditions = format!(
        "status: {{conditions: [{}, {}]}}",
        condition("Ready", "NodeClassReady=False"),
        condition("NodeClassReady", "no subnets")
    );
    let none = "      requirements: []";
    let text = pool_with("{}", none, &conditions, "");
    let why = only(&text).closed.unwrap();
    assert_eq!(&*why, "it is not ready: no subnets", "{text}");
}

#[test]
fn the_class_of_a_pool_may_be_missing_but_not_broken() {
    let class = |status: &str| {
        format!(
            "{POOL}\n---\napiVersion: example.com/v1\nkind: OtherNodeClass\nmetadata: {{name: main}}\nstatus: {{conditions: [{{type: Ready, status: '{status}'}}]}}\n"
        )
        .replace("group: karpenter.k8s.aws, kind: EC2NodeClass", "group: example.com, kind: OtherNodeClass")
    };
    assert_eq!(only(POOL).closed, None);
    assert_eq!(only(&class("True")).closed, None);
    assert_eq!(
        only(&class("False")).closed.as_deref(),
        Some("its OtherNodeClass main is not ready")
    );
}

#[test]
fn refused_by_the_schema() {
    let message = refused(&pool_with(
        "{}",
        "      requirements: [{key: k, operator: Near}]",
        "",
        "",
    ));
    assert!(
        message
            .starts_with("in.yaml:1: NodePool gold: spec.template.spec.requirements[0].operator: "),
        "{message}"
    );
}

#[test]
fn classes_choose_their_types() {
    let objects = Objects::read([Source::new("in", POOL)]).unwrap();
    let class = NodeClassRef {
        group: "karpenter.k8s.aws".into(),
        kind: "EC2NodeClass".into(),
        name: "main".into(),
    };
    assert_eq!(objects.class_refs(), [class.clone()].into());
    let own: Vec<_> = types().into_iter().take(1).collect();
    let input = objects
        .problem(Catalog::shared(types()).with_class(class, own))
        .unwrap();
    assert_eq!(input.problem.types.len(), 1);
    assert_eq!(input.problem.pools[0].types, [TypeIx(0)]);
}

#[test]
fn well_known_keys_are_those_of_the_catalog() {
    let input = read(POOL);
    assert!(input.problem.well_known.contains("example.com/tier"));
    assert!(
        input
            .problem
            .well_known
            .contains("node.kubernetes.io/windows-build")
    );
    assert!(!input.problem.well_known.contains("kubernetes.io/hostname"));
}
