use joiner_api::types::ConditionStatus;
use joiner_cloud::ClassVerdict;
use joiner_state::live::Conditions as _;
use serde_json::json;

use super::*;
use crate::nodepool::made::{at, class, made};

const KIND: ClassKind = ClassKind {
    group: "karpenter.kwok.sh",
    version: "v1alpha1",
    kind: "KWOKNodeClass",
    plural: "kwoknodeclasses",
    finalizer: Some("example.com/termination"),
};

fn live(more: Value) -> std::sync::Arc<LiveClass> {
    let now = made(vec![class(more)]);
    now.classes().next().unwrap().clone()
}

fn status(failed: Option<(&'static str, String)>) -> ClassStatus {
    ClassStatus {
        verdicts: vec![
            ClassVerdict {
                condition: "SubnetsReady",
                failed,
            },
            ClassVerdict::good("AMIsReady"),
        ],
        fields: json!({"subnets": [{"id": "subnet-1", "zone": "a"}], "amis": null}),
        again: None,
    }
}

#[test]
fn a_class_gets_what_the_cloud_found_once() {
    let found = status(None);
    let young = live(json!({}));
    let finished = judged(&young, &found, at(100));
    assert!(finished.conditions.is_true("Ready"));
    let patch = changed(&young, &found, finished).unwrap().patch;
    assert_eq!(patch["status"]["subnets"][0]["id"], "subnet-1");
    assert_eq!(patch["status"]["conditions"][2]["observedGeneration"], 1);
    let mut written = patch;
    written["status"].as_object_mut().unwrap().remove("amis");
    written["metadata"] = json!({});
    let known = live(written);
    let again = judged(&known, &found, at(200));
    assert!(changed(&known, &found, again).is_none());
}

#[test]
fn what_fails_fails_the_class_with_its_reason() {
    let found = status(Some(("SubnetsNotFound", "none match".to_owned())));
    let finished = judged(&live(json!({})), &found, at(100));
    let of = |kind: &str| finished.conditions.condition(kind).unwrap().clone();
    assert_eq!(of("SubnetsReady").reason.unwrap(), "SubnetsNotFound");
    assert_eq!(of("Ready").status, ConditionStatus::False);
    assert_eq!(of("Ready").message.unwrap(), "SubnetsReady=False");
}

#[test]
fn a_new_generation_is_judged_anew() {
    let found = status(None);
    let first = judged(&live(json!({})), &found, at(100));
    let newer = live(json!({"metadata": {"generation": 2},
        "status": {"conditions": first.to_value(), "subnets": found.fields["subnets"]}}));
    let second = judged(&newer, &found, at(200));
    let patch = changed(&newer, &found, second).unwrap().patch;
    for condition in patch["status"]["conditions"].as_array().unwrap() {
        assert_eq!(condition["observedGeneration"], 2, "{condition}");
    }
}

#[test]
fn the_finalizer_is_added_to_those_that_are_there() {
    let others = live(json!({"metadata": {"finalizers": ["example.com/other"]}}));
    let patch = held(&others, &KIND).unwrap();
    let both = json!(["example.com/other", "example.com/termination"]);
    assert_eq!(patch["metadata"]["finalizers"], both);
    let has = live(json!({"metadata": {"finalizers": both}}));
    assert_eq!(held(&has, &KIND), None);
}

#[test]
fn what_a_class_waits_for_is_named_up_to_five() {
    assert_eq!(pretty(&["a", "b"]), "a, b");
    assert_eq!(
        pretty(&["a", "b", "c", "d", "e", "f", "g"]),
        "a, b, c, d, e and 2 other(s)"
    );
}
