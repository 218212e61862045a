use joiner_model::{Protocol, ResourceName, TolerationOp};

use super::*;

fn requests(spec: &str) -> String {
    shape_of(spec).requests.to_string()
}

fn container(resources: &str) -> String {
    format!("{{containers: [{{resources: {resources}}}]}}")
}

#[test]
fn core_092_limits_act_as_requests_and_083_zero_is_none() {
    for (resources, expected) in [
        (
            "{requests: {cpu: 1500m, memory: 1Gi}}",
            "cpu 1500m, memory 1Gi, pods 1",
        ),
        (
            "{limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 0.5}}",
            "cpu 500m, memory 1Gi, pods 1",
        ),
        ("{limits: {cpu: 2}}", "cpu 2, pods 1"),
        ("{requests: {cpu: 0, memory: \"0\"}}", "pods 1"),
        ("{}", "pods 1"),
        (
            "{requests: {nvidia.com/gpu: 1}}",
            "pods 1, nvidia.com/gpu 1",
        ),
        ("{requests: {cpu: 100u}}", "cpu 1m, pods 1"),
    ] {
        assert_eq!(requests(&container(resources)), expected, "{resources}");
    }
}

#[test]
fn limits_are_added_up_like_requests() {
    let one = "{resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 9}}}";
    for (spec, expected) in [
        ("{}".to_owned(), "pods 1"),
        (container("{requests: {cpu: 3}}"), "pods 1"),
        (
            format!("{{containers: [{one}, {one}]}}"),
            "cpu 2, memory 2Gi, pods 1",
        ),
        (
            format!(
                "{{containers: [{one}], initContainers: [{{resources: {{limits: {{cpu: 3}}}}}}]}}"
            ),
            "cpu 3, memory 1Gi, pods 1",
        ),
        (
            format!("{{containers: [{one}], resources: {{limits: {{cpu: 500m}}}}}}"),
            "cpu 500m, memory 1Gi, pods 1",
        ),
        // Overhead is part of a limit, and makes none.
        (
            "{containers: [{resources: {limits: {cpu: 1}}}], overhead: {cpu: 1, memory: 1Gi}}"
                .to_owned(),
            "cpu 2, pods 1",
        ),
    ] {
        let objects = Objects::read([Source::new("in.yaml", pod_with(&spec))]).unwrap();
        let limits = &objects.drafts.get(objects.pods[0].draft).limits;
        assert_eq!(limits.to_string(), expected, "{spec}");
    }
}

#[test]
fn core_081_085_090_091_the_whole_pod_counts() {
    let main = "containers: [{resources: {requests: {cpu: 6, memory: 2Gi}}}]";
    let sidecar = "{restartPolicy: Always, resources: {requests: {cpu: 4.9, memory: 2.9Gi}}}";
    for (name, spec, expected) in [
        (
            "overhead",
            format!("{{{main}, overhead: {{cpu: 250m}}}}"),
            6250,
        ),
        (
            "big init",
            format!("{{{main}, initContainers: [{{resources: {{requests: {{cpu: 7}}}}}}]}}"),
            7000,
        ),
        (
            "init, sidecar",
            format!(
                "{{{main}, initContainers: [{{resources: {{requests: {{cpu: 10}}}}}}, {sidecar}]}}"
            ),
            10900,
        ),
        (
            "sidecar, init 5",
            format!(
                "{{{main}, initContainers: [{sidecar}, {{resources: {{requests: {{cpu: 5}}}}}}]}}"
            ),
            10900,
        ),
        (
            "sidecar, init 6, container 5",
            format!(
                "{{containers: [{{resources: {{requests: {{cpu: 5}}}}}}], initContainers: [{sidecar}, {{resources: {{requests: {{cpu: 6}}}}}}]}}"
            ),
            10900,
        ),
        (
            "pod level",
            format!("{{{main}, resources: {{requests: {{cpu: 3}}}}, overhead: {{cpu: 1}}}}"),
            4000,
        ),
    ] {
        assert_eq!(cpu(&shape_of(&spec)), expected, "{name}");
    }
    let both = shape_of(&format!("{{{main}, initContainers: [{sidecar}]}}"));
    assert_eq!(both.requests.get(&ResourceName::Memory), 5_261_334_938);
}

#[test]
fn runtime_classes_add_their_overhead_unless_the_pod_has_it() {
    let class = "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: vm}, \
                 overhead: {podFixed: {cpu: 250m}}, scheduling: {nodeSelector: {vm: \"yes\"}}}";
    let spec = "{runtimeClassName: vm, containers: [{resources: {requests: {cpu: 1}}}]}";
    let input = read(&format!("{}---\n{class}", pod_with(spec)));
    let shape = shape(&input.problem, "default/p");
    assert_eq!(cpu(shape), 1250);
    assert_eq!(shape.node_selector[0].to_string(), "vm In [yes]");
    let spec = "{runtimeClassName: vm, overhead: {cpu: 1}, containers: []}";
    let input = read(&format!("{class}\n---\n{}", pod_with(spec)));
    assert_eq!(cpu(super::shape(&input.problem, "default/p")), 1000);
}

#[test]
fn tolerations_of_runtime_classes_are_checked() {
    let runtime = "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: vm}, scheduling: {tolerations: [{operator: Near}]}}";
    assert_eq!(
        refused(runtime),
        "in.yaml:1: RuntimeClass vm: scheduling.tolerations[0].operator: \"Near\" is not one of Equal, Exists, Lt, Gt"
    );
}

#[test]
fn core_041_node_selection_is_in_current_spelling() {
    let shape = shape_of(
        "{nodeSelector: {beta.kubernetes.io/arch: amd64}, affinity: {nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
            {matchExpressions: [{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [a]}]},
            {},
            {matchExpressions: [{key: size, operator: Gt, values: ['3']}, {key: x, operator: DoesNotExist}]}]},
          preferredDuringSchedulingIgnoredDuringExecution: [
            {weight: 7, preference: {matchExpressions: [{key: why, operator: Exists}]}},
            {weight: 9, preference: {}},
            {weight: 9, preference: {matchExpressions: [{key: why, operator: In, values: ['a b']}]}}]}}}",
    );
    assert_eq!(
        shape.node_selector[0].to_string(),
        "kubernetes.io/arch In [amd64]"
    );
    assert_eq!(shape.node_terms.len(), 2);
    assert_eq!(
        shape.node_terms[0][0].to_string(),
        "topology.kubernetes.io/zone In [a]"
    );
    assert_eq!(shape.node_terms[1][0].to_string(), "size Exists >=4");
    assert_eq!(shape.preferred_node_terms.len(), 1);
    assert_eq!(shape.preferred_node_terms[0].weight, 7);
}

#[test]
fn core_059_060_pods_that_must_not_be_placed_say_why() {
    let required = |term: &str| {
        format!(
            "{{affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{nodeSelectorTerms: [{term}]}}}}}}}}"
        )
    };
    let preferred = "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: \
         [{weight: 1, preference: {matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}}]}}}";
    let unpooled = "it asks for a node that belongs to no NodePool";
    for (spec, expected) in [
        (
            "{nodeSelector: {kubernetes.io/hostname: n1}}".into(),
            "it selects nodes by label \"kubernetes.io/hostname\", which is restricted",
        ),
        (
            "{nodeSelector: {karpenter.sh/x: z}}".into(),
            "it selects nodes by label \"karpenter.sh/x\", which is restricted",
        ),
        (
            "{nodeSelector: {'a b': z}}".into(),
            "its node selector \"a b\"=\"z\" is not a label",
        ),
        (
            required("{matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}"),
            unpooled,
        ),
        (preferred.into(), unpooled),
        (
            required("{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}"),
            "its node affinity selects by field (matchFields), which new nodes cannot meet",
        ),
        (
            required("{matchExpressions: [{key: k, operator: In, values: ['a b']}]}"),
            "its node affinity is not valid: \"a b\" of \"k\" is not a label value",
        ),
        (
            required(
                "{matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [free]}]}",
            ),
            "its node affinity is not valid: \"karpenter.sh/capacity-type\" must be one of on-demand, spot, reserved, not free",
        ),
        (
            required("{}"),
            "its required node affinity has only empty terms, which match no node",
        ),
        (
            "{resourceClaims: [{name: gpu}]}".into(),
            "it claims devices (resourceClaims), which is not supported yet",
        ),
        (
            "{schedulingGates: [{name: wait}]}".into(),
            "it has scheduling gates, which must be removed first",
        ),
    ] {
        assert_eq!(ignored("", &spec).as_deref(), Some(expected), "{spec}");
    }
    for spec in [
        "{nodeSelector: {karpenter.sh/nodepool: x, example.com/tier: gold, node.kubernetes.io/foo: x}}",
        "{affinity: {}}",
        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: null}}}",
    ] {
        assert_eq!(ignored("", spec), None, "{spec}");
    }
}

#[test]
fn core_206_claims_for_devices_of_a_pod_or_any_container() {
    let why = "it claims devices (resourceClaims), which is not supported yet";
    let claims = "{resources: {claims: [{name: gpu}], requests: {cpu: 1}}}";
    for spec in [
        "{resourceClaims: [{name: gpu, resourceClaimName: one}]}".to_owned(),
        "{resourceClaims: [{name: gpu, resourceClaimTemplateName: many}]}".to_owned(),
        format!("{{containers: [{{}}, {claims}]}}"),
        format!("{{containers: [{{}}], initContainers: [{claims}]}}"),
        "{containers: [{}], resources: {claims: [{name: gpu}]}}".to_owned(),
        // It comes before whatever else is odd about a pod.
        format!("{{containers: [{claims}], nodeSelector: {{kubernetes.io/hostname: n1}}}}"),
    ] {
        assert_eq!(ignored("", &spec).as_deref(), Some(why), "{spec}");
    }
    for spec in [
        "{resourceClaims: [], containers: [{resources: {claims: []}}]}",
        "{resourceClaims: null, containers: [{resources: {claims: null}}]}",
        "{containers: [{resources: {requests: {nvidia.com/gpu: 1}}}]}",
    ] {
        assert_eq!(ignored("", spec), None, "{spec}");
    }
}

#[test]
fn core_206_pods_of_the_same_batch_are_read_as_ever() {
    let text = pod_with("{resourceClaims: [{name: gpu}]}")
        + "---\n{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {containers: [{}]}}\n";
    let input = read(&text);
    let waiting: Vec<&str> = (input.problem.pending())
        .map(|ix| &*input.problem[ix].name)
        .collect();
    assert_eq!(waiting, ["default/q"]);
}

#[test]
fn tolerations_and_ports() {
    let shape = shape_of(
        "{hostNetwork: true, tolerations: [{operator: Exists}, {key: a, value: b, effect: NoExecute}, {key: num, operator: Gt, value: '3'}],
          containers: [{ports: [{containerPort: 80}, {containerPort: 53, hostPort: 54, protocol: UDP, hostIP: 10.0.0.1}]}],
          initContainers: [{ports: [{containerPort: 99, hostPort: 99}]}]}",
    );
    let ops: Vec<_> = shape.tolerations.iter().map(|t| t.op).collect();
    assert_eq!(
        ops,
        [TolerationOp::Exists, TolerationOp::Equal, TolerationOp::Gt]
    );
    let ports: Vec<_> = shape
        .ports
        .iter()
        .map(|p| (&*p.ip, p.port, p.protocol))
        .collect();
    assert_eq!(
        ports,
        [
            ("0.0.0.0", 80, Protocol::Tcp),
            ("10.0.0.1", 54, Protocol::Udp)
        ]
    );
    assert!(
        shape_of("{containers: [{ports: [{containerPort: 80}]}]}")
            .ports
            .is_empty()
    );
}

#[test]
fn core_158_167_spreads() {
    let shape = shape_of(
        "{topologySpreadConstraints: [
          {maxSkew: 1, topologyKey: failure-domain.beta.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3,
           labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [rev, absent], nodeTaintsPolicy: Honor},
          {maxSkew: 2, topologyKey: k, whenUnsatisfiable: ScheduleAnyway, nodeAffinityPolicy: Ignore},
          {maxSkew: 2, topologyKey: k, whenUnsatisfiable: DoNotSchedule, labelSelector: {}},
          {maxSkew: 2, topologyKey: k, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: In, values: ['a b']}]}}]}",
    );
    let [first, second, third, fourth] = shape.spreads.as_slice() else {
        panic!("{:?}", shape.spreads);
    };
    assert_eq!(&*first.key, "topology.kubernetes.io/zone");
    assert!(first.hard && first.honor_affinity && first.honor_taints);
    assert_eq!(first.min_domains, Some(3));
    let keys: Vec<&str> = first
        .selector
        .iter()
        .flat_map(|s| s.exprs())
        .map(|e| &*e.key)
        .collect();
    assert_eq!(keys, ["app", "rev"]);
    assert!(!second.hard && !second.honor_affinity && !second.honor_taints);
    assert_eq!(second.selector, None);
    assert!(
        third
            .selector
            .as_ref()
            .is_some_and(|s| s.exprs().is_empty())
    );
    assert_eq!(fourth.selector, None);
}

#[test]
fn core_186_namespaces_of_affinity_terms() {
    let term = |rest: &str| {
        format!(
            "{{affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             [{{topologyKey: zone, labelSelector: {{}}{rest}}}]}}}}}}"
        )
    };
    let others = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: red, labels: {color: red}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: blue, labels: {color: blue}}}
- {apiVersion: v1, kind: Pod, metadata: {name: q, namespace: plain}}
";
    for (rest, expected) in [
        ("", vec!["default"]),
        (", namespaces: [b, a, b]", vec!["a", "b"]),
        (
            ", namespaceSelector: {}",
            vec!["blue", "default", "plain", "red"],
        ),
        (
            ", namespaceSelector: {matchLabels: {color: red}}",
            vec!["red"],
        ),
        (
            ", namespaces: [x], namespaceSelector: {matchLabels: {color: red}}",
            vec!["red", "x"],
        ),
        (", namespaceSelector: {matchLabels: {color: green}}", vec![]),
        (
            ", namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: plain}}",
            vec!["plain"],
        ),
    ] {
        let input = read(&format!("{}---\n{others}", pod_with(&term(rest))));
        let shape = shape(&input.problem, "default/p");
        let found: Vec<&str> = shape.anti_affinity[0]
            .namespaces
            .iter()
            .map(|n| &**n)
            .collect();
        assert_eq!(found, expected, "{rest}");
    }
}

#[test]
fn match_label_keys_of_affinity_terms_fold_in() {
    let shape = shape_of(
        "{affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 3, podAffinityTerm:
          {topologyKey: zone, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [rev], mismatchLabelKeys: [app]}}]}}}",
    );
    let wish = &shape.preferred_affinity[0];
    assert_eq!(wish.weight, 3);
    let exprs = wish.term.selector.as_ref().unwrap().exprs();
    let shown: Vec<String> = exprs
        .iter()
        .map(|e| format!("{} {:?} {:?}", e.key, e.op, e.values))
        .collect();
    assert_eq!(
        shown,
        ["app In {\"web\"}", "app NotIn {\"web\"}", "rev In {\"r1\"}"]
    );
}

#[test]
fn priorities() {
    let classes = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClassList
items:
- {metadata: {name: high}, value: 1000}
- {metadata: {name: usual}, value: 10, globalDefault: true}
";
    for (spec, expected) in [
        ("{}", 10),
        ("{priorityClassName: high}", 1000),
        ("{priorityClassName: high, priority: 5}", 5),
        ("{priorityClassName: system-node-critical}", 2_000_001_000),
    ] {
        let input = read(&format!("{}---\n{classes}", pod_with(spec)));
        assert_eq!(
            shape(&input.problem, "default/p").priority,
            expected,
            "{spec}"
        );
    }
    assert_eq!(shape_of("{}").priority, 0);
}

#[test]
fn only_waiting_pods_are_to_be_placed() {
    let pods = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4}}}
- {apiVersion: v1, kind: Pod, metadata: {name: new}}
- {apiVersion: v1, kind: Pod, metadata: {name: pending}, status: {phase: Pending}}
- {apiVersion: v1, kind: Pod, metadata: {name: done}, status: {phase: Succeeded}}
- {apiVersion: v1, kind: Pod, metadata: {name: failed}, spec: {nodeName: n1}, status: {phase: Failed}}
- {apiVersion: v1, kind: Pod, metadata: {name: going, deletionTimestamp: '2026-01-01T00:00:00Z'}}
- {apiVersion: v1, kind: Pod, metadata: {name: leaving, deletionTimestamp: '2026-01-01T00:00:00Z'}, spec: {nodeName: n1}}
- {apiVersion: v1, kind: Pod, metadata: {name: lost}, spec: {nodeName: n2}, status: {phase: Running}}
- {apiVersion: v1, kind: Pod, metadata: {name: running}, spec: {nodeName: n1}, status: {phase: Running}}
- {apiVersion: v1, kind: Pod, metadata: {name: static, ownerReferences: [{kind: Node, name: n1}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: daemon, ownerReferences: [{kind: DaemonSet, name: d, controller: true}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: odd}, status: {phase: Running}}
";
    let input = read(pods);
    let problem = &input.problem;
    let pending: Vec<&str> = problem.pending().map(|ix| &*problem[ix].name).collect();
    assert_eq!(pending, ["default/new", "default/pending"]);
    assert!(pod(problem, "default/leaving").terminating);
    assert!(!pod(problem, "default/running").terminating);
    assert_eq!(
        names(problem),
        [
            "default/new",
            "default/pending",
            "default/leaving",
            "default/running",
            "default/odd"
        ]
    );
    assert_eq!(
        input.warnings,
        ["1 pod is left out: bound to nodes that are not in the input (n2)"]
    );
}

#[test]
fn equal_pods_share_a_shape() {
    let one = |name: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{resources: {{requests: {{cpu: 1}}}}}}]}}}}"
        )
    };
    let input = read(&format!("{}\n---\n{}\n", one("a"), one("b")));
    assert_eq!(input.problem.shapes.len(), 1);
    assert_eq!(names(&input.problem), ["default/a", "default/b"]);
}

#[test]
fn a_resize_under_way_counts_the_larger_figure() {
    let text = |given: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}, \
             status: {{containerStatuses: [{{name: c, allocatedResources: {{cpu: {given}}}}}]}}}}"
        )
    };
    for (given, expected) in [("500m", 1000), ("2", 2000)] {
        let input = read(&text(given));
        assert_eq!(cpu(shape(&input.problem, "default/p")), expected);
    }
}

#[test]
fn pods_with_a_generated_name_get_one() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {generateName: job-}}";
    let input = read(&format!("{pod}\n---\n{pod}\n"));
    assert_eq!(names(&input.problem), ["default/job-0", "default/job-1"]);
}

#[test]
fn null_is_nothing() {
    let shape = shape_of(
        "{nodeSelector: null, containers: [{resources: {requests: {cpu: null, memory: 1Gi}, limits: null}}], tolerations: null, affinity: {podAffinity: null}}",
    );
    assert_eq!(shape.requests.to_string(), "memory 1Gi, pods 1");
    let input = read(
        "{apiVersion: v1, kind: Pod, metadata: {name: p, creationTimestamp: null, labels: {a: null}}, spec: null, status: null}",
    );
    let labels = &super::shape(&input.problem, "default/p").labels;
    assert_eq!(labels.get("a").map(|v| &**v), Some(""));
}

#[test]
fn absent_classes_are_told_once() {
    let pod = |name: &str, node: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{priorityClassName: high, runtimeClassName: vm{node}}}}}\n"
        )
    };
    let bound: String = (0..9)
        .map(|i| pod(&format!("b{i}"), &format!(", nodeName: n{}", i % 5)))
        .collect();
    let input = read(&(pod("a", "") + &pod("b", "") + &bound));
    assert_eq!(
        input.warnings,
        [
            "PriorityClass high is not in the input; its pods count as priority 0",
            "RuntimeClass vm is not in the input; overhead of its pods is not counted",
            "9 pods are left out: bound to nodes that are not in the input (n0, n1, n2 and 2 others)"
        ]
    );
}
