//! What is or was wrong: each test says what should be.

use crate::support::{any_pool, documents, plan, plan_on, pod, small_catalog, small_pod};

#[test]
fn a_list_without_a_list_is_an_error() {
    plan("apiVersion: v1\nkind: List\nitems: 5\n").fails_in_one_line(&["items"]);
}

#[test]
#[ignore = "defect: of a YAML key that is there twice, all but the last are dropped in silence"]
fn a_key_that_is_there_twice_is_an_error() {
    let text = documents(&[&any_pool(), &(small_pod("web") + "spec: {}\n")]);
    plan(text).fails_in_one_line(&["objects.yaml:", "spec"]);
}

#[test]
#[ignore = "defect: operators of label selectors are not checked"]
fn operators_of_label_selectors_are_known() {
    let spread = "topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, \
                  topologyKey: topology.kubernetes.io/zone, labelSelector: \
                  {matchExpressions: [{key: app, operator: Gt, values: [\"1\"]}]}}]";
    let text = documents(&[&any_pool(), &pod("web", "{cpu: 1}", spread)]);
    plan(text).fails_in_one_line(&["labelSelector.matchExpressions[0].operator"]);
}

#[test]
#[ignore = "defect: ReplicaSets that own each other are dropped in silence"]
fn owners_in_a_circle_do_not_lose_pods() {
    let set = |name: &str, owner: &str| {
        format!(
            "apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: {name}
  uid: {name}
  ownerReferences:
    - {{apiVersion: apps/v1, kind: ReplicaSet, name: {owner}, uid: {owner}, controller: true}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: app}}]}}
"
        )
    };
    let run = plan(documents(&[
        &any_pool(),
        &set("one", "two"),
        &set("two", "one"),
    ]));
    let silent = run.code == Some(0) && run.stderr.is_empty();
    assert!(!silent || run.stdout.contains("2 pods on"), "{run:?}");
}

#[test]
fn a_catalog_may_start_with_a_byte_order_mark() {
    let types = format!("\u{feff}{}", small_catalog());
    plan_on(&types, documents(&[&any_pool(), &small_pod("web")]), &[]).exits(0);
}

#[test]
#[ignore = "defect: control characters in names reach the terminal"]
fn control_characters_are_not_printed() {
    let text = documents(&[&any_pool(), &small_pod("\"a\\e[31mb\"")]);
    let run = plan(text);
    assert!(
        !run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'),
        "{run:?}"
    );
}

#[test]
fn an_empty_catalog_is_called_empty() {
    let run = plan_on("[]", documents(&[&any_pool(), &small_pod("web")]), &[]);
    assert!(!run.stdout.contains("its own requirements"), "{run:?}");
}
