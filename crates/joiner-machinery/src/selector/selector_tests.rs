use super::*;
use crate::kinds::{Kind, builtin};
use serde_json::json;
use std::sync::Arc;

fn kind(group: &str, name: &str) -> Kind {
    let mut all = builtin().into_iter();
    all.find(|k| k.group == group && k.kind == name).unwrap()
}

#[test]
fn label_queries() {
    let object = json!({"metadata": {"labels": {"a": "b", "e": "x", "n": "5"}}});
    for (text, expected) in [
        ("", true),
        ("a=b", true),
        ("a==b", true),
        ("a=c", false),
        ("a!=c", true),
        ("missing!=c", true),
        ("e in (x,y)", true),
        ("e notin (x,y)", false),
        ("missing notin (x)", true),
        ("a", true),
        ("!a", false),
        ("!f,a=b", true),
        ("n>4", true),
        ("n<5", false),
        ("a=b,e in (x),!zz", true),
        ("a=", false),
        ("in", false),
        ("a in ()", false),
        ("a in (b,)", true),
    ] {
        let selector = LabelSelector::parse(text).unwrap();
        assert_eq!(selector.matches(&object), expected, "{text}");
    }
}

#[test]
fn bad_label_queries() {
    let word = "in, notin, =, ==, !=, gt, lt";
    for (text, why) in [
        (
            "a===b",
            "unable to parse requirement: found '=', expected: identifier".to_owned(),
        ),
        (
            "a in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier".to_owned(),
        ),
        (
            "a b",
            format!("unable to parse requirement: found 'b', expected: {word}"),
        ),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier".to_owned(),
        ),
        (
            "a in x",
            "unable to parse requirement: found 'x' expected: '('".to_owned(),
        ),
        (
            "a=b,,c",
            "found ',', expected: identifier after ','".to_owned(),
        ),
        (
            "a=b,",
            "found '', expected: identifier after ','".to_owned(),
        ),
        (
            ",a=b",
            "found ',', expected: !, identifier, or 'end of string'".to_owned(),
        ),
        (
            "=b",
            "found '=', expected: !, identifier, or 'end of string'".to_owned(),
        ),
        (
            "a in (b c)",
            "unable to parse requirement: found 'c', expected: ',' or ')'".to_owned(),
        ),
        (
            "a=b c",
            "found 'c', expected: ',' or 'end of string'".to_owned(),
        ),
        (
            "a!b",
            format!("unable to parse requirement: found '!', expected: {word}"),
        ),
        (
            "a notin (b)x",
            "found 'x', expected: ',' or 'end of string'".to_owned(),
        ),
        (
            "a > x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' \
             operators, the value must be an integer"
                .to_owned(),
        ),
    ] {
        let error = LabelSelector::parse(text).unwrap_err();
        assert_eq!(error.message, why, "{text}");
        assert_eq!(error.reason.code(), 400);
    }
    let error = LabelSelector::parse("a=_b").unwrap_err().message;
    assert!(
        error.starts_with("unable to parse requirement: values[0][a]: Invalid value: \"_b\": a")
    );
    let error = LabelSelector::parse("-a=b").unwrap_err().message;
    assert!(
        error.starts_with("unable to parse requirement: <nil>: Invalid value: \"-a\": name part")
    );
}

#[test]
fn selector_objects() {
    let labels = json!({"a": "b"});
    for (object, expected) in [
        (json!({}), true),
        (json!(null), false),
        (json!({"matchLabels": {"a": "b"}}), true),
        (json!({"matchLabels": {"a": "c"}}), false),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Odd"}]}),
            false,
        ),
    ] {
        assert_eq!(
            LabelSelector::of(&object).matches_labels(&labels),
            expected,
            "{object}"
        );
    }
}

#[test]
fn field_queries() {
    let pod = json!({
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"nodeName": "a"},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
    });
    for (text, expected) in [
        ("", true),
        ("spec.nodeName=a", true),
        ("spec.nodeName!=a", false),
        ("spec.host=a", true),
        ("metadata.name==p,metadata.namespace=n", true),
        ("status.phase!=Succeeded,status.phase!=Failed", true),
        ("spec.hostNetwork=false", true),
        ("status.podIPs=10.0.0.1", true),
        ("status.nominatedNodeName=", true),
    ] {
        let selector = FieldSelector::parse(&kind("", "Pod"), text).unwrap();
        assert_eq!(selector.matches(&pod), expected, "{text}");
    }
    let selector = FieldSelector::parse(&kind("", "Pod"), "spec.nodeName=a").unwrap();
    assert_eq!(selector.exact("spec.nodeName"), Some("a"));
    let event = json!({"involvedObject": {"name": "p"}, "source": {"component": "kubelet"}});
    for (group, text) in [
        ("", "involvedObject.name=p,source=kubelet"),
        ("events.k8s.io", "regarding.name=p"),
    ] {
        let selector = FieldSelector::parse(&kind(group, "Event"), text).unwrap();
        assert!(selector.matches(&event), "{text}");
    }
    let node = FieldSelector::parse(&kind("", "Node"), "spec.unschedulable=false").unwrap();
    assert!(node.matches(&json!({"spec": {}})));
    assert!(!node.matches(&json!({"spec": {"unschedulable": true}})));
}

#[test]
fn bad_field_queries() {
    let plain = "is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    for (group, name, text, why) in [
        (
            "",
            "Pod",
            "spec.foo=bar",
            "field label not supported: spec.foo".to_owned(),
        ),
        (
            "",
            "Pod",
            "spec.foo",
            "invalid selector: 'spec.foo'; can't understand 'spec.foo'".to_owned(),
        ),
        (
            "",
            "Pod",
            "metadata.name=a,foo",
            "invalid selector: 'metadata.name=a,foo'; can't understand 'foo'".to_owned(),
        ),
        (
            "apps",
            "Deployment",
            "spec.replicas=1",
            format!("\"spec.replicas\" {plain}"),
        ),
        (
            "",
            "Node",
            "metadata.namespace=a",
            "field label not supported: metadata.namespace".to_owned(),
        ),
    ] {
        let error = FieldSelector::parse(&kind(group, name), text).unwrap_err();
        assert_eq!(error.message, why, "{text}");
    }
}

#[test]
fn fields_that_a_definition_declares() {
    let mut custom = kind("apps", "Deployment");
    custom.custom = Some(Arc::new(
        json!({"selectableFields": [{"jsonPath": ".spec.color"}]}),
    ));
    let selector = FieldSelector::parse(&custom, "spec.color=red").unwrap();
    assert!(selector.matches(&json!({"spec": {"color": "red"}})));
    let error = FieldSelector::parse(&custom, "spec.size=1").unwrap_err();
    assert_eq!(error.message, "field label not supported: spec.size");
}
