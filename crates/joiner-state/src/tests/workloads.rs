use super::*;

fn workload(kind: &str, name: &str, spec: &str) -> String {
    let group = if kind == "Job" { "batch" } else { "apps" };
    format!(
        "---
apiVersion: {group}/v1
kind: {kind}
metadata: {{name: {name}, namespace: shop}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{resources: {{limits: {{cpu: 1}}}}}}]}}
{spec}
"
    )
}

fn pod_named(name: &str, owner: &str, rest: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: shop, labels: {{app: web}}{owner}}}{rest}}}\n"
    )
}

const BY_SET: &str = ", ownerReferences: [{kind: ReplicaSet, name: web-5d9c, controller: true}]";

#[test]
fn workloads_without_pods_become_their_replicas() {
    for (kind, spec, expected) in [
        (
            "Deployment",
            "  replicas: 3",
            vec!["shop/web-0", "shop/web-1", "shop/web-2"],
        ),
        ("Deployment", "", vec!["shop/web-0"]),
        ("Deployment", "  replicas: 0", vec![]),
        (
            "ReplicaSet",
            "  replicas: 2",
            vec!["shop/web-0", "shop/web-1"],
        ),
        (
            "StatefulSet",
            "  replicas: 2\n  ordinals: {start: 5}",
            vec!["shop/web-5", "shop/web-6"],
        ),
        ("Job", "", vec!["shop/web-0"]),
        (
            "Job",
            "  parallelism: 3\n  completions: 2",
            vec!["shop/web-0", "shop/web-1"],
        ),
        (
            "Job",
            "  parallelism: 2\n  completions: 9",
            vec!["shop/web-0", "shop/web-1"],
        ),
        (
            "Job",
            "  parallelism: 3\n  completions: 3\nstatus: {succeeded: 2}",
            vec!["shop/web-0"],
        ),
        ("Job", "  parallelism: 3\n  suspend: true", vec![]),
    ] {
        let input = read(&workload(kind, "web", spec));
        assert_eq!(names(&input.problem), expected, "{kind} {spec}");
    }
    let input = read(&workload("Deployment", "web", "  replicas: 2"));
    let shape = shape(&input.problem, "shop/web-1");
    assert_eq!((cpu(shape), &*shape.namespace), (1000, "shop"));
}

#[test]
fn only_missing_pods_are_added() {
    let set = format!(
        "---\n{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web-5d9c, namespace: shop, ownerReferences: [{{kind: Deployment, name: web, controller: true}}]}}, spec: {{replicas: 3, template: {{}}}}}}\n{}",
        pod_named("web-5d9c-x", BY_SET, "")
    );
    let three = workload("Deployment", "web", "  replicas: 3");
    for (name, rest, expected) in [
        (
            "by set in the input",
            set.clone(),
            vec!["shop/web-5d9c-x", "shop/web-0", "shop/web-1"],
        ),
        (
            "by name of the set",
            pod_named("web-5d9c-x", BY_SET, ""),
            vec!["shop/web-5d9c-x", "shop/web-0", "shop/web-1"],
        ),
        (
            "by selector",
            pod_named("x", "", ""),
            vec!["shop/x", "shop/web-0", "shop/web-1"],
        ),
        (
            "someone else's",
            pod_named("x", ", ownerReferences: [{kind: Job, name: j}]", ""),
            vec!["shop/x", "shop/web-0", "shop/web-1", "shop/web-2"],
        ),
        (
            "a name that is taken",
            pod_named("web-1", ", ownerReferences: [{kind: Job, name: j}]", ""),
            vec!["shop/web-1", "shop/web-0", "shop/web-2", "shop/web-3"],
        ),
        (
            "finished",
            pod_named("x", BY_SET, ", status: {phase: Failed}"),
            vec!["shop/web-0", "shop/web-1", "shop/web-2"],
        ),
        (
            "going",
            pod_named("x", ", deletionTimestamp: now", ""),
            vec!["shop/web-0", "shop/web-1", "shop/web-2"],
        ),
    ] {
        let input = read(&format!("{three}{rest}"));
        assert_eq!(names(&input.problem), expected, "{name}");
    }
    let input = read(&set);
    assert_eq!(
        names(&input.problem),
        ["shop/web-5d9c-x", "shop/web-5d9c-0", "shop/web-5d9c-1"]
    );
}

#[test]
fn two_workloads_of_one_name_do_not_collide() {
    let both = workload("Deployment", "web", "  replicas: 2")
        + &workload("StatefulSet", "web", "  replicas: 1");
    assert_eq!(
        names(&read(&both).problem),
        ["shop/web-0", "shop/web-1", "shop/web-2"]
    );
}

#[test]
fn only_a_deployment_decides_for_another_workload() {
    let owned = |kind: &str, name: &str, by: &str, owner: &str| {
        workload(kind, name, "  replicas: 2").replace(
            "namespace: shop}",
            &format!("namespace: shop, ownerReferences: [{{kind: {by}, name: {owner}, controller: true}}]}}"),
        )
    };
    let circle = owned("ReplicaSet", "one", "ReplicaSet", "two")
        + &owned("ReplicaSet", "two", "ReplicaSet", "one");
    assert_eq!(
        names(&read(&circle).problem),
        ["shop/one-0", "shop/one-1", "shop/two-0", "shop/two-1"]
    );
    let itself = owned("ReplicaSet", "one", "ReplicaSet", "one");
    assert_eq!(names(&read(&itself).problem), ["shop/one-0", "shop/one-1"]);
    let upside_down = owned("Deployment", "one", "ReplicaSet", "two")
        + &owned("ReplicaSet", "two", "Deployment", "one");
    assert_eq!(
        names(&read(&upside_down).problem),
        ["shop/one-0", "shop/one-1"]
    );
    let set =
        workload("StatefulSet", "two", "") + &owned("ReplicaSet", "one", "StatefulSet", "two");
    assert_eq!(
        names(&read(&set).problem),
        ["shop/two-0", "shop/one-0", "shop/one-1"]
    );
}

#[test]
fn workloads_with_a_generated_name_get_one() {
    let job = workload("Job", "x", "").replace("{name: x, ", "{generateName: backup-, ");
    let input = read(&format!("{job}{job}"));
    assert_eq!(
        names(&input.problem),
        ["shop/backup-0-0", "shop/backup-1-0"]
    );
}

#[test]
fn a_job_counts_what_succeeded() {
    let done = |name: &str| {
        pod_named(
            name,
            ", ownerReferences: [{kind: Job, name: web}]",
            ", status: {phase: Succeeded}",
        )
    };
    let job = workload("Job", "web", "  parallelism: 5\n  completions: 3");
    let input = read(&format!("{job}{}{}", done("a"), done("b")));
    assert_eq!(names(&input.problem), ["shop/web-0"]);
}

#[test]
fn a_million_replicas_are_fine_and_more_than_enough_is_an_error() {
    let input = read(&workload("Deployment", "web", "  replicas: 1000000"));
    assert_eq!(input.problem.pods.len(), 1_000_000);
    assert_eq!(input.problem.shapes.len(), 1);
    assert_eq!(
        refused(&workload("Deployment", "web", "  replicas: 5000001")),
        "in.yaml:2: Deployment shop/web: asks for 5000001 pods, which makes more than 5000000 in all; plan for fewer at a time"
    );
}

#[test]
fn core_126_129_daemons_are_like_their_newest_pod() {
    let daemon = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {ds: agent}}
  template:
    metadata: {labels: {ds: agent}}
    spec:
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: DoesNotExist}]}]}}}
      containers: [{resources: {limits: {cpu: 100m}}}]
";
    let input = read(daemon);
    let only = &input.problem.daemons[0];
    assert_eq!((&*only.name, cpu(&only.shape)), ("kube-system/agent", 100));
    let pod = |name: &str, cpu: u32, created: &str, owner: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: kube-system, labels: {{ds: agent}}, creationTimestamp: '{created}'{owner}}}, \
             spec: {{nodeName: n1, affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchFields: [{{key: metadata.name, operator: In, values: [n1]}}]}}]}}}}}}, \
             containers: [{{resources: {{requests: {{cpu: {cpu}m}}}}}}]}}}}\n"
        )
    };
    let owned = ", ownerReferences: [{kind: DaemonSet, name: agent, controller: true}]";
    let node = "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}}\n";
    let input = read(&format!(
        "{daemon}{node}{}{}{}",
        pod("new", 300, "2026-02-01T00:00:00Z", owned),
        pod("old", 200, "2026-01-01T00:00:00Z", owned),
        pod("bare", 900, "2026-03-01T00:00:00Z", "")
    ));
    let only = &input.problem.daemons[0];
    assert_eq!(cpu(&only.shape), 300);
    assert_eq!(only.shape.node_terms[0][0].to_string(), "gpu DoesNotExist");
    for pod in &input.problem.pods {
        assert_eq!(pod.daemon.map(|ix| ix.0), Some(0), "{}", pod.name);
    }
}

#[test]
fn core_131_134_which_daemons_count() {
    let daemon = |name: &str, spec: &str| {
        format!(
            "---\n{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: {name}}}, spec: {{template: {{spec: {spec}}}}}}}\n"
        )
    };
    let input = read(
        &(daemon("up", "{nodeSelector: {karpenter.sh/registered: 'true'}}")
            + &daemon("devices", "{resourceClaims: [{name: gpu}]}")
            + &daemon(
                "inside",
                "{initContainers: [{resources: {claims: [{name: gpu}]}}]}",
            )),
    );
    let names: Vec<&str> = input.problem.daemons.iter().map(|d| &*d.name).collect();
    assert_eq!(names, ["default/up"]);
    let selector = &input.problem.daemons[0].shape.node_selector;
    assert_eq!(selector[0].to_string(), "karpenter.sh/registered In [true]");
    assert_eq!(
        input.warnings,
        [
            "DaemonSet default/devices claims devices and is not counted",
            "DaemonSet default/inside claims devices and is not counted"
        ]
    );
}
