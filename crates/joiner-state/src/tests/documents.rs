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
    let input = read("apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {priority: 010}\n");
    assert_eq!(shape(&input.problem, "default/b").priority, 8);
}

#[test]
fn a_key_that_is_there_twice_is_an_error_in_yaml_and_in_json() {
    let twice = "is there twice in one object; remove one of them";
    for (text, expected) in [
        (
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n",
            "in.yaml:5:3: Pod b: metadata.name: ",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\nspec: {}\n",
            "in.yaml:5:1: Pod a: spec: ",
        ),
        (
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n\
             - {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{}, {image: x, image: y}]}}\n",
            "in.yaml:5:87: Pod b: spec.containers[1].image: ",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"x":"1","x":"2"}}}"#,
            "in.yaml:1:77: Pod a: metadata.labels.x: ",
        ),
        (
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\n\"spec\":{},\n\"spec\":{}}",
            "in.yaml:3:7: Pod a: spec: ",
        ),
        (
            r#"{"apiVersion":"v1","kind":"List","items":[],"items":[]}"#,
            "in.yaml:1:52: List: items: ",
        ),
        (
            r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"a":1,"a":1}}]}"#,
            "in.yaml:1:116: Pod a: spec.a: ",
        ),
    ] {
        assert_eq!(refused(text), format!("{expected}{twice}"), "{text}");
    }
    let merged =
        "a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: {x: 4, <<: *a}\nkind: K\napiVersion: v1\n";
    read(merged);
}

#[test]
fn empty_sources_are_told_and_lists_without_items_are_not_empty() {
    let source = |name: &str, text: &str| Source::new(name, text);
    for text in ["", " \n", "# x\n", "---\n---\n", "null\n", "\u{feff}"] {
        let objects = Objects::read([source("a.yaml", text)]).unwrap();
        assert!(objects.is_empty(), "{text:?}");
        let objects = Objects::read([source("a.yaml", text), source("b.json", A)]).unwrap();
        assert!(!objects.is_empty(), "{text:?}");
        let input = objects.problem(Catalog::default()).unwrap();
        assert_eq!(input.warnings, ["a.yaml: there is no object in it"]);
    }
    for text in [
        "[]",
        "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}",
    ] {
        let objects = Objects::read([source("a.json", text)]).unwrap();
        assert!(!objects.is_empty(), "{text}");
    }
    assert!(Objects::read([]).unwrap().is_empty());
}

#[test]
fn items_of_lists_are_objects() {
    for (text, expected) in [
        (
            r#"{"apiVersion":"v1","kind":"List","items":[null]}"#,
            "in.yaml:1:46: object: items[0]: must be a Kubernetes object, not null",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: [null]\n",
            "in.yaml:1: object: items[0]: must be a Kubernetes object, not null",
        ),
        (
            "- 5\n",
            "in.yaml:1: object: items[0]: must be a Kubernetes object, not 5",
        ),
        (
            "[{\"kind\": 5}]",
            "in.yaml:1:11: object: items[0].kind: must be text, not 5; put it in quotes",
        ),
        (
            r#"{"apiVersion":"v1","kind":"List","items":5}"#,
            "in.yaml:1:1: List: items: must be a list of objects",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: {}\n",
            "in.yaml:1: List: items: must be a list of objects",
        ),
        (
            r#"{"apiVersion":"v1","kind":"PodList","items":{}}"#,
            "in.yaml:1:1: PodList: items: must be a list of objects",
        ),
        (
            "apiVersion: v1\nkind: PodList\nitems: {}\n",
            "in.yaml:1: PodList: items: must be a list of objects",
        ),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
    let own = "{apiVersion: example.com/v1, kind: AllowList, metadata: {name: a}}";
    for text in [
        own.to_owned(),
        own.replace(": ", "\": \"")
            .replace(", ", "\", \"")
            .replace('{', "{\"")
            .replace('}', "\"}")
            .replace("\"{", "{")
            .replace("}\"", "}"),
    ] {
        let warnings = read(&text).warnings;
        assert_eq!(
            warnings,
            ["skipped 1 object of kind AllowList (example.com/v1), which is not read"],
            "{text}"
        );
    }
}

#[test]
fn a_catalog_among_manifests_is_recognized() {
    let hint = "this is an instance type, not a Kubernetes object; give files of instance types \
                with --instance-types";
    let message = refused(TYPES);
    assert_eq!(message, format!("in.yaml:2:3: object: {hint}"));
    let message = refused("- name: small\n  offerings: []\n");
    assert_eq!(message, format!("in.yaml:1: object: {hint}"));
}

#[test]
fn names_are_names() {
    let why = "must be lower case letters, digits, '-' and '.', with a letter or digit at both ends \
               of each part";
    for (meta, expected) in [
        ("name: Web", format!("metadata.name: \"Web\" {why}")),
        (
            "name: \"a\\e[31m\"",
            format!("metadata.name: \"a\\u{{1b}}[31m\" {why}"),
        ),
        ("name: \"a\\n\"", format!("metadata.name: \"a\\n\" {why}")),
        ("name: a/b", format!("metadata.name: \"a/b\" {why}")),
        (
            "name: a, namespace: a_b",
            format!("metadata.namespace: \"a_b\" {why}"),
        ),
        ("generateName: A-", format!("metadata.name: \"A-0\" {why}")),
    ] {
        for kind in ["v1, kind: Pod", "apps/v1, kind: Deployment"] {
            let text = format!("{{apiVersion: {kind}, metadata: {{{meta}}}}}");
            let message = refused(&text);
            assert!(message.ends_with(&expected), "{message}");
            assert!(!message.contains(char::is_control), "{message}");
        }
    }
    let long = format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {}}}}}",
        "a".repeat(300)
    );
    let message = refused(&long.replace("aaa", "aaaaaaaaa"));
    assert!(message.ends_with("must have at most 253 characters") && message.len() < 500);
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
            "in.yaml:6:30: Pod web: spec.overhead.cpu: \"-1\" is negative; write 0 or more",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {on: true}}\n",
            "in.yaml:1: Pod web: metadata.labels.on: must be text, not true; put it in quotes",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: text\n",
            "in.yaml:1: Pod web: spec: must be an object, not \"text\"",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: {}}\n",
            "in.yaml:1: Pod web: spec.containers: must be a list, not an object",
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
            "in.yaml:1: object: must be a Kubernetes object, not \"just text\"",
        ),
        (
            "{\"kind\":\n\"Pod\" \"x\"}",
            "in.yaml:2:7: malformed JSON: expected `,` or `}`",
        ),
        (
            "{\"kind\": \"Pod\"",
            "in.yaml:1:14: malformed JSON: the text ends in the middle of an object",
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
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: three}\n",
            "in.yaml:1: Deployment web: spec.replicas: must be a whole number, not \"three\"",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 99999999999}\n",
            "in.yaml:1: Deployment web: spec.replicas: must be a whole number from -2147483648 to 2147483647, not 99999999999",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {hostNetwork: 'yes', containers: []}\n",
            "in.yaml:1: Pod web: spec.hostNetwork: must be true or false, not \"yes\"",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{ports: [{hostPort: 99999}]}]}\n",
            "in.yaml:1: Pod web: spec.containers[0].ports[0].hostPort: must be a whole number from 0 to 65535, not 99999",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: []\n",
            "in.yaml:1: Pod: metadata: must be an object, not a list",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}\n",
            "in.yaml:1: Pod web: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: must be an object, not a list",
        ),
        (
            "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\nspec: {ordinals: [5]}\n",
            "in.yaml:1: StatefulSet web: spec.ordinals: must be an object, not a list",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{resources: {requests: [cpu]}}]}\n",
            "in.yaml:1: Pod web: spec.containers[0].resources.requests: must be an object with a quantity for each resource, not a list",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{resources: {requests: {cpu: 9E}}}]}\n",
            "in.yaml:1: Pod web: spec.containers[0].resources.requests.cpu: \"9E\" is too large; at most 9E can be counted, 9P of cpu",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{resources: {requests: {cpu: 1e400}}}]}\n",
            "in.yaml:4:50: Pod web: spec.containers[0].resources.requests.cpu: 1e400 is not a number that can be counted with; put it in quotes if it is text",
        ),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
    for (text, part) in [
        (big.as_str(), "nested too deeply"),
        ("a: b: c\n", "mapping values"),
        ("a: [\n", "unclosed bracket"),
        ("a: *nobody\n", "there is no anchor of this name"),
        ("a: &a [*a]\n", "an anchor contains itself"),
        ("a: b\n...\nc: d\n", "separate documents with ---"),
        ("{a: b, c: [\n", "unclosed"),
        ("{name: b, c: [\n", "unclosed"),
        ("a: 1\na: 2\nb: [\n", "the key \"a\" is there twice"),
        ("? [a]\n: b\n", "a key must be text"),
        ("null: b\n", "a key must be text"),
        ("!!int 1: b\n", "a key must be text"),
        (", a\n", "the text ends in the middle of"),
    ] {
        let message = refused(text);
        assert!(
            message.starts_with("in.yaml:") && message.contains("malformed YAML"),
            "{message}"
        );
        assert!(message.contains(part), "{message}");
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
{apiVersion: v1, kind: pod, metadata: {name: c}}
---
{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: d}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}}
",
    );
    assert_eq!(
        input.warnings,
        [
            "skipped 2 objects of kind ConfigMap (v1), which is not read",
            "skipped 1 object of kind Deployment (extensions/v1beta1), which is not read; did you mean Deployment (apps/v1)?",
            "skipped 1 object of kind Service (serving.knative.dev/v1), which is not read",
            "skipped 1 object of kind pod (v1), which is not read; did you mean Pod (v1)?"
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
