//! Objects with mistakes: the message names file, object and field.

use crate::cli::support::{any_pool, documents, plan, pod, pool, small_pod};

/// Plans for the pool that sells everything and one more document.
fn plan_for(document: &str) -> crate::cli::support::Outcome {
    plan(documents(&[&any_pool(), document]))
}

fn plan_in(pool: &str) -> crate::cli::support::Outcome {
    plan(documents(&[pool, &small_pod("web")]))
}

fn workload(kind: &str, spec: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: {kind}
metadata: {{name: web}}
spec:
  {spec}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: app, resources: {{requests: {{cpu: 100m}}}}}}]}}
"
    )
}

#[test]
fn requests_are_quantities() {
    let field = "spec.containers[0].resources.requests";
    for (requests, parts) in [
        ("{cpu: -1}", ["requests.cpu", "negative"]),
        ("{cpu: abc}", ["requests.cpu", "not a quantity"]),
        ("{cpu: \"\"}", ["requests.cpu", "not a quantity"]),
        ("{cpu: true}", ["requests.cpu", "must be a quantity"]),
        ("{cpu: [1]}", ["requests.cpu", "must be a quantity"]),
        ("{cpu: 1.5.2}", ["requests.cpu", "not a quantity"]),
        ("{cpu: 9E}", ["requests.cpu", "\"9E\" is too large"]),
        (
            "{cpu: \"1e400\"}",
            ["requests.cpu", "\"1e400\" is too large"],
        ),
        ("{memory: 1gb}", ["requests.memory", "write for example"]),
        ("{memory: 8Ei}", ["requests.memory", "too large"]),
        ("5", ["requests", "must be an object"]),
    ] {
        let run = plan_for(&pod("web", requests, ""));
        run.fails_in_one_line(&["objects.yaml:12: Pod web: ", field]);
        run.fails_in_one_line(&parts);
    }
    for odd in [".nan", "1e400"] {
        let run = plan_for(&pod("web", &format!("{{cpu: {odd}}}"), ""));
        run.fails_in_one_line(&["objects.yaml:16:", "Pod web: ", field, odd, "quotes"]);
    }
}

#[test]
fn huge_requests_are_left_over() {
    let run = plan_for(&pod("web", "{memory: 7Ei}", "")).exits(2);
    run.prints(&["no type large enough", "of memory"]);
}

#[test]
fn pods_have_names_and_containers_are_lists() {
    plan_for("apiVersion: v1\nkind: Pod\nmetadata: {}").fails_in_one_line(&["metadata.name"]);
    let wrong = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: 5}";
    plan_for(wrong).fails_in_one_line(&["Pod web: spec.containers", "must be a list"]);
}

#[test]
fn operators_of_pools_are_known() {
    let wrong = pool(
        "",
        "[{key: kubernetes.io/arch, operator: Equals, values: [amd64]}]",
    );
    plan_in(&wrong).fails_in_one_line(&[
        "objects.yaml:1: NodePool general: spec.template.spec.requirements[0].operator",
        "\"In\", \"NotIn\"",
        "(got \"Equals\")",
    ]);
    let lower = pool(
        "",
        "[{key: kubernetes.io/arch, operator: in, values: [amd64]}]",
    );
    plan_in(&lower).fails_in_one_line(&["did you mean \"In\"?"]);
    let empty = pool("", "[{key: kubernetes.io/arch, operator: In, values: []}]");
    plan_in(&empty).fails_in_one_line(&["requirements[0]", "at least one value"]);
    let text = pool("", "[{key: example.com/n, operator: Gt, values: [many]}]");
    plan_in(&text).fails_in_one_line(&["requirements[0]", "a whole number"]);
}

#[test]
fn min_values_are_from_one_to_fifty() {
    for (number, part) in [
        ("0", "at least 1"),
        ("-1", "at least 1"),
        ("51", "at most 50"),
        ("1.5", "whole number"),
        ("\"2\"", "not a string"),
        ("3", "more values than are listed"),
    ] {
        let requirement = format!(
            "[{{key: node.kubernetes.io/instance-type, operator: In, values: [small, large], \
             minValues: {number}}}]"
        );
        plan_in(&pool("", &requirement)).fails_in_one_line(&["requirements[0]", part]);
    }
}

#[test]
fn weights_and_limits_of_pools_are_checked() {
    for (spec, parts) in [
        ("weight: -1", ["spec.weight", "at least 1"]),
        ("weight: 101", ["spec.weight", "at most 100"]),
        ("weight: heavy", ["spec.weight", "whole number"]),
        ("limits: {cpu: -1}", ["spec.limits", "negative"]),
        ("limits: {cpu: x}", ["spec.limits", "quantity"]),
        ("limits: 5", ["spec.limits", "must be an object"]),
    ] {
        plan_in(&pool(spec, "[]")).fails_in_one_line(&parts);
    }
    for limits in ["{cpu: 0}", "{nodes: 0}", "{pods: 0}"] {
        let run = plan_in(&pool(&format!("limits: {limits}"), "[]")).exits(2);
        run.prints(&["pool \"general\" is limited to 0 of"]);
    }
    plan_in(&pool("limits: {example.com/odd: 0}", "[]")).exits(0);
}

#[test]
fn unknown_fields_of_pools_are_warned_about() {
    plan_in(&pool("wieght: 5", "[]"))
        .exits(0)
        .warns(&["spec.wieght", "did you mean weight?"]);
}

#[test]
fn spreads_are_checked() {
    let key = "topologyKey: topology.kubernetes.io/zone";
    for (fields, parts) in [
        (format!("{key}, maxSkew: 0"), ["maxSkew", "not above zero"]),
        (format!("{key}, maxSkew: -1"), ["maxSkew", "not above zero"]),
        (
            format!("{key}, maxSkew: 1, minDomains: 0"),
            ["minDomains", "not above zero"],
        ),
        (
            "maxSkew: 1".to_owned(),
            ["topologyKey", "there is no topologyKey"],
        ),
        (
            format!("{key}, maxSkew: 1, whenUnsatisfiable: x"),
            ["whenUnsat", "DoNotSchedule"],
        ),
    ] {
        let spread = format!("topologySpreadConstraints: [{{{fields}}}]");
        let run = plan_for(&pod("web", "{cpu: 1}", &spread));
        run.fails_in_one_line(&["web: spec.topologySpreadConstraints[0]."]);
        run.fails_in_one_line(&parts);
    }
}

#[test]
fn tolerations_and_taints_are_checked() {
    let run = plan_for(&pod(
        "web",
        "{cpu: 1}",
        "tolerations: [{key: a, operator: In}]",
    ));
    run.fails_in_one_line(&["spec.tolerations[0].operator", "Equal, Exists"]);
    let taint = any_pool() + "      taints: [{key: a, effect: Never}]\n";
    plan_in(&taint).fails_in_one_line(&["taints[0].effect", "\"NoSchedule\""]);
}

#[test]
fn node_affinity_is_checked() {
    let path = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let affinity = |terms: &str| {
        let line = format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{nodeSelectorTerms: {terms}}}}}}}"
        );
        plan_for(&pod("web", "{cpu: 1}", &line))
    };
    affinity("[]").fails_in_one_line(&["objects.yaml:12: Pod default/web: ", path, "at least one"]);
    for (expression, parts) in [
        (
            "{key: a, operator: Has}",
            ["[0].operator: ", "\"Has\" is not one of In"],
        ),
        (
            "{key: a, operator: In}",
            ["[0].values: ", "at least one value"],
        ),
        (
            "{key: a, operator: Exists, values: [b]}",
            ["[0].values: ", "takes no values"],
        ),
        (
            "{key: a, operator: Gt, values: [\"1\", \"2\"]}",
            ["[0].values: ", "exactly one"],
        ),
        (
            "{key: a, operator: Lt, values: [b]}",
            ["[0].values: ", "whole number"],
        ),
    ] {
        let run = affinity(&format!("[{{matchExpressions: [{expression}]}}]"));
        run.fails_in_one_line(&["objects.yaml:12: Pod default/web: ", path]);
        run.fails_in_one_line(&parts);
    }
    let run = affinity("[{}]").exits(2);
    run.prints(&["only empty terms, which match no node"]);
    affinity("[{}, {matchExpressions: [{key: kubernetes.io/arch, operator: Exists}]}]").exits(0);
}

#[test]
fn operators_of_label_selectors_are_known() {
    let spread = "topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, \
                  topologyKey: topology.kubernetes.io/zone, labelSelector: \
                  {matchExpressions: [{key: app, operator: Gt, values: [\"1\"]}]}}]";
    let run = plan_for(&pod("web", "{cpu: 1}", spread));
    run.fails_in_one_line(&["labelSelector.matchExpressions[0].operator", "DoesNotExist"]);
}

#[test]
fn owners_in_a_circle_do_not_lose_pods() {
    let set = |name: &str, owner: &str| {
        let owners = format!(
            "metadata:\n  name: {name}\n  ownerReferences:\n    - {{apiVersion: apps/v1, kind: \
             ReplicaSet, name: {owner}, uid: {owner}, controller: true}}"
        );
        workload("ReplicaSet", "replicas: 1").replace("metadata: {name: web}", &owners)
    };
    plan_for(&documents(&[&set("one", "two"), &set("two", "one")]))
        .exits(0)
        .prints(&["2 pods on"]);
}

#[test]
fn names_are_there_once() {
    let pools = documents(&[&any_pool(), &any_pool()]);
    plan(pools).fails_in_one_line(&["NodePool general", "twice", "objects.yaml:1;", "remove"]);
    let pods = documents(&[&small_pod("web"), &small_pod("web")]);
    plan(pods).fails_in_one_line(&["Pod default/web", "twice", "remove"]);
}

#[test]
fn older_apis_say_what_to_write_instead() {
    for (api, kind, now) in [
        (
            "karpenter.sh/v1alpha5",
            "Provisioner",
            "karpenter.sh/v1 NodePool",
        ),
        (
            "karpenter.sh/v1beta1",
            "NodePool",
            "karpenter.sh/v1 NodePool",
        ),
        (
            "karpenter.k8s.aws/v1alpha1",
            "AWSNodeTemplate",
            "karpenter.k8s.aws/v1 EC2NodeClass",
        ),
    ] {
        let text = format!("apiVersion: {api}\nkind: {kind}\nmetadata: {{name: old}}\nspec: {{}}");
        let object = format!("{kind} old");
        plan(text).fails_in_one_line(&["objects.yaml:1", &object, "older API", now]);
    }
    let text = any_pool().replace("karpenter.sh/v1", "karpenter.sh/v2");
    plan(text).fails_in_one_line(&["did you mean karpenter.sh/v1 NodePool?"]);
}

#[test]
fn replicas_are_whole_and_not_negative() {
    for replicas in ["-1", "1.5", "\"3\"", "99999999999"] {
        let run = plan_for(&workload("Deployment", &format!("replicas: {replicas}")));
        run.fails_in_one_line(&["web: spec.replicas"]);
    }
    let run = plan_for(&workload("Deployment", "replicas: three"));
    run.fails_in_one_line(&["spec.replicas: must be a whole number, not \"three\""]);
    let run = plan_for(&workload("StatefulSet", "replicas: 2147483647"));
    run.fails_in_one_line(&["StatefulSet default/web", "plan for fewer"]);
    plan_for(&workload("Deployment", "replicas: 0"))
        .exits(0)
        .prints(&["Nothing to place"]);
    let bare = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}";
    plan_for(bare).fails_in_one_line(&["spec.template", "no pod template"]);
}

#[test]
fn missing_volumes_leave_the_pod_over() {
    let claim = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]";
    let web = pod("web", "{cpu: 1}", claim);
    plan_for(&web)
        .exits(2)
        .prints(&["PersistentVolumeClaim default/data does not exist"]);
    let bound = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
                 spec: {volumeName: gone}";
    let run = plan_for(&documents(&[&web, bound])).exits(2);
    run.prints(&["PersistentVolume gone, which does not exist"]);
    let unbound = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
                   spec: {storageClassName: gone}";
    let run = plan_for(&documents(&[&web, unbound])).exits(2);
    run.prints(&["StorageClass gone does not exist"]);
}

#[test]
fn a_pod_on_a_node_that_is_not_there_is_warned_about() {
    let run = plan_for(&pod("web", "{cpu: 1}", "nodeName: gone")).exits(0);
    run.warns(&["left out", "gone"]);
}

#[test]
fn a_claim_without_its_node_does_not_stop_the_plan() {
    let claim = "apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: lost, labels: {karpenter.sh/nodepool: general}}
spec: {nodeClassRef: {group: example.com, kind: RackNodeClass, name: default}, requirements: []}
status: {nodeName: gone}";
    plan_for(&documents(&[claim, &small_pod("web")]))
        .exits(0)
        .prints(&["1 pod on 1 new node"]);
}

#[test]
fn prices_of_overlays_are_checked() {
    for (spec, parts) in [
        (
            "{requirements: [], price: \"-5\"}",
            ["spec.price", "must be a price"],
        ),
        (
            "{requirements: [], price: \"NaN\"}",
            ["spec.price", "must be a price"],
        ),
        (
            "{requirements: [], priceAdjustment: \"-500%\"}",
            ["spec.priceAdjustment", "-100%"],
        ),
        (
            "{requirements: [], price: \"1\", priceAdjustment: \"+1\"}",
            ["price", "exclude"],
        ),
        (
            "{requirements: [], weight: -1, price: \"1\"}",
            ["spec.weight", "at least 1"],
        ),
        (
            "{requirements: [], capacity: {cpu: 5}}",
            ["spec.capacity", "cpu"],
        ),
        ("{price: \"1\"}", ["spec.requirements", "is required"]),
    ] {
        let overlay = format!(
            "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\n\
             metadata: {{name: odd}}\nspec: {spec}"
        );
        plan_for(&overlay).fails_in_one_line(&["objects.yaml:12: NodeOverlay odd"]);
        plan_for(&overlay).fails_in_one_line(&parts);
    }
}
