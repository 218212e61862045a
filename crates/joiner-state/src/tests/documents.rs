use super::*;

const A: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#;
const B: &str = r#"{"metadata":{"name":"b"},"kind":"Pod","apiVersion":"v1"}"#;

#[test]
fn all_forms_say_the_same() {
    let yaml_a = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n";
    let yaml_b = "# a comment\nkind: Pod\napiVersion: v1\nmetadata: {name: b}\n";
    let list = format!(r#"{{"apiVersion":"v1","kind":"List","items":[{A},{B}]}}"#);
    for text in [
        format!("{A}{B}"),
        format!("{A}\n{B}\n"),
        format!("\u{feff}[{A}, {B}]"),
        list.clone(),
        format!(r#"{{"items":[{A},{B}],"kind":"List","apiVersion":"v1"}}"#),
        format!(r#"{{"apiVersion":"v1","kind":"List","items":[{list}]}}"#),
        r#"{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#.into(),
        format!("{yaml_a}---\n{yaml_b}"),
        format!("---\n{yaml_a}\n---\n\n---\n{yaml_b}...\n"),
        format!("%YAML 1.2\n---\n{yaml_a}---\n# nothing\n---\r\n{yaml_b}"),
        format!("{A}\n---\n{yaml_b}"),
        format!("--- {A}\n--- {B}\n"),
        format!("- {A}\n- {B}\n"),
        "apiVersion: v1\nkind: List\nitems:\n- &one {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- {<<: *one, metadata: {name: b}}\n".into(),
    ] {
        assert_eq!(names(&read(&text).problem), ["default/a", "default/b"], "{text}");
    }
    for empty in [
        "",
        " \n",
        "---\n---\n",
        "# x\n",
        "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":null}",
    ] {
        assert!(read(empty).problem.pods.is_empty(), "{empty}");
    }
}

#[test]
fn yaml_reads_as_kubectl_does() {
    let input =
        read("apiVersion: v1\nkind: Pod\nmetadata: {name: a, name: b}\nspec: {priority: 010}\n");
    assert_eq!(shape(&input.problem, "default/b").priority, 8);
}

#[test]
fn messages_name_file_object_field_and_remedy() {
    let big = "a: [".repeat(200);
    for (text, expected) in [
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{resources: {requests: {cpu: 1x}}}]}\n",
            "in.yaml:1: Pod shop/web: spec.containers[0].resources.requests.cpu: \"1x\" is not a quantity (write for example 500m, 2 or 1.5Gi)",
        ),
        (
            "\n# c\n---\n{\n\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\"},\n  \"spec\":{\"overhead\":{\"cpu\":-1}}}",
            "in.yaml:6:30: Pod web: spec.overhead.cpu: \"-1\" is negative",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {on: true}}\n",
            "in.yaml:1: Pod web: metadata.labels.on: invalid type: boolean `true`, expected text (in YAML, put the value in quotes)",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: text\n",
            "in.yaml:1: Pod web: spec: invalid type: string \"text\", expected an object",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: {}}\n",
            "in.yaml:1: Pod web: spec.containers: invalid type: map, expected a sequence",
        ),
        (
            "apiVersion: v1\nkind: Pod\nspec: {}\n",
            "in.yaml:1: Pod: metadata.name: there is no name",
        ),
        (
            "a: b\n",
            "in.yaml:1: object: there is no kind; is this a Kubernetes object?",
        ),
        (
            "kind: Pod\nmetadata: {name: web}\n",
            "in.yaml:1: Pod web: there is no apiVersion; is this a Kubernetes object?",
        ),
        (
            "just text\n",
            "in.yaml:1: invalid type: string \"just text\", expected a Kubernetes object",
        ),
        (
            "{\"kind\":\n\"Pod\" \"x\"}",
            "in.yaml:2:7: malformed JSON: expected `,` or `}`",
        ),
        (
            "{\"kind\": \"Pod\"",
            "in.yaml:1:14: malformed JSON: EOF while parsing an object",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {tolerations: [{operator: Near}]}\n",
            "in.yaml:1: Pod default/web: spec.tolerations[0].operator: \"Near\" is not one of Equal, Exists, Lt, Gt",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {topologySpreadConstraints: [{topologyKey: z, maxSkew: 0}]}\n",
            "in.yaml:1: Pod default/web: spec.topologySpreadConstraints[0].maxSkew: 0 is not above zero",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {}}]}}}}}\n",
            "in.yaml:1: Deployment default/web: spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: there is no topologyKey",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n---\n\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\n",
            "in.yaml:6: Pod default/web: is there twice, first at in.yaml:1; remove one of them",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: -2, template: {}}\n",
            "in.yaml:1: Deployment default/web: spec.replicas: -2 is negative",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
            "in.yaml:1: Deployment default/web: spec.template: there is no pod template",
        ),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
    for text in [big.as_str(), "a: b: c\n", "a: [\n", "a: *nobody\n"] {
        let message = refused(text);
        assert!(
            message.starts_with("in.yaml:") && message.contains("malformed YAML"),
            "{message}"
        );
    }
}

#[test]
fn yaml_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..12 {
        let aliases = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb += &format!("a{i}: &a{i} [{aliases}]\n");
    }
    let message = refused(&bomb);
    assert!(
        message.ends_with("malformed YAML: it is too large once its aliases are written out"),
        "{message}"
    );
    let many = "a: &a [b]\nc: [".to_owned() + &"*a, ".repeat(5000) + "]\n";
    assert!(refused(&many).contains("there is no kind"));
}

#[test]
fn duplicates_in_two_files_name_both() {
    let sources = [Source::new("one.json", A), Source::new("two.json", A)];
    let error = Objects::read(sources).unwrap_err();
    assert_eq!(
        error.to_string(),
        "two.json:1:1: Pod default/a: is there twice, first at one.json:1; remove one of them"
    );
}

#[test]
fn other_kinds_are_skipped_and_counted() {
    let input = read(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
---
{apiVersion: serving.knative.dev/v1, kind: Service}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}}
",
    );
    assert_eq!(
        input.warnings,
        [
            "skipped 2 objects of kind ConfigMap (v1), which is not read",
            "skipped 1 object of kind Service (serving.knative.dev/v1), which is not read"
        ]
    );
}

#[test]
fn older_kinds_are_refused_with_the_way_out() {
    let message = refused(
        "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: default}\n",
    );
    assert!(
        message.starts_with(
            "in.yaml:1: Provisioner default: karpenter.sh/v1alpha5 Provisioner is an older API"
        ),
        "{message}"
    );
    let message =
        refused("apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: default}\n");
    assert!(
        message.contains("write it as karpenter.sh/v1 NodePool"),
        "{message}"
    );
}
