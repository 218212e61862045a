//! Nothing is lost between v1beta1 and v1, whatever the objects hold.

use super::examples;
use crate::support::full;
use joiner_api::legacy::{to_v1, to_v1beta1};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

fn raised(object: &Value) -> Value {
    to_v1(object).expect("it is v1beta1").objects.remove(0)
}

fn lowered(object: &Value) -> Value {
    to_v1beta1(object).expect("it is v1")
}

fn old() -> Vec<Value> {
    let mut ubuntu = examples::node_class();
    ubuntu["spec"]["amiFamily"] = json!("Ubuntu");
    let mut published = examples::node_class();
    published["spec"]["amiSelectorTerms"] = json!([]);
    vec![
        examples::node_pool(),
        examples::node_claim(),
        examples::node_class(),
        ubuntu,
        published,
    ]
}

fn new() -> Vec<Value> {
    [
        full::node_pools(),
        full::node_claims(),
        full::ec2_node_classes(),
    ]
    .concat()
}

/// Pointers to everything below the header of an object.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    let mut visit = |step: String, child: &Value| {
        let at = format!("{at}/{}", step.replace('~', "~0").replace('/', "~1"));
        if at != "/apiVersion" && at != "/kind" {
            pointers(child, &at, out);
            out.push(at);
        }
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, child)| visit(key.clone(), child)),
        Value::Array(list) => {
            let items = list.iter().enumerate();
            items.for_each(|(ix, child)| visit(ix.to_string(), child));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// One thing that is done to an object.
#[derive(Clone, Debug)]
enum Change {
    Remove,
    Set(Value),
    /// Puts an item once more at the end of its list.
    Again,
}

fn words() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!("WhenEmpty"),
        json!("WhenUnderutilized"),
        json!("WhenEmptyOrUnderutilized"),
        json!("Balanced"),
        json!("Never"),
        json!("0s"),
        json!("30s"),
        json!("Gte"),
        json!("Lte"),
        json!("Gt"),
        json!("Exists"),
        json!("0"),
        json!("4"),
        json!("18446744073709551615"),
        json!("AL2"),
        json!("AL2023"),
        json!("Ubuntu"),
        json!("Custom"),
        json!("Windows2022"),
        json!("Windows2025"),
        json!("al2023@latest"),
        json!("al2023@v20240807"),
        json!("windows2025@latest"),
        json!("ssm:/a"),
        json!("karpenter.kwok.sh/v1alpha1"),
        json!("v1"),
        json!(""),
        json!([]),
        json!({}),
        json!([{"id": "ami-placeholder"}]),
        json!([{"alias": "bottlerocket@1.2.3"}]),
        json!([{"ssmParameter": "/a"}, {"ssmParameter": "/b", "name": "c"}]),
        json!([{"nodes": "1", "reasons": ["Empty"]}, {"nodes": "1"}]),
        json!({"expireAfter": "1h"}),
        json!({"consolidateAfter": "0s"}),
        json!({"compatibility.karpenter.k8s.aws/v1-alias-version": "v1",
               "compatibility.karpenter.sh/v1beta1-kubelet-conversion": "{ \"maxPods\" : 3 }"}),
        json!({"compatibility.karpenter.k8s.aws/v1beta1-ubuntu": "amiFamily,incompatible",
               "compatibility.karpenter.sh/v1beta1-nodeclass-reference": "{\"name\":\"general\"}"}),
        json!({"joiner.dev/v1beta1-fields": "x"}),
        json!(7),
        json!(true),
        Value::Null,
    ])
}

fn changes() -> impl Strategy<Value = Vec<(Index, Change)>> {
    let change = prop_oneof![
        2 => Just(Change::Remove),
        3 => words().prop_map(Change::Set),
        1 => Just(Change::Again),
    ];
    prop::collection::vec((any::<Index>(), change), 0..8)
}

fn changed(mut object: Value, changes: Vec<(Index, Change)>) -> Value {
    for (place, change) in changes {
        let mut all = Vec::new();
        pointers(&object, "", &mut all);
        if all.is_empty() {
            break;
        }
        let pointer = place.get(&all);
        let Some((above, last)) = pointer.rsplit_once('/') else {
            continue;
        };
        let last = last.replace("~1", "/").replace("~0", "~");
        match (object.pointer_mut(above), change) {
            (Some(Value::Object(map)), Change::Remove) => drop(map.remove(&last)),
            (Some(Value::Array(list)), Change::Remove) => {
                drop(list.remove(last.parse().expect("an index")))
            }
            (Some(Value::Array(list)), Change::Again) => {
                let item = list[last.parse::<usize>().expect("an index")].clone();
                list.push(item);
            }
            (Some(Value::Object(map)), Change::Set(value)) => drop(map.insert(last, value)),
            (Some(Value::Array(list)), Change::Set(value)) => {
                list[last.parse::<usize>().expect("an index")] = value;
            }
            _ => {}
        }
    }
    with_metadata(object)
}

/// Servers see to the metadata before they convert an object.
fn with_metadata(mut object: Value) -> Value {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({"name": "x"});
    }
    let annotations = object["metadata"].get("annotations");
    let is_fine = |map: &serde_json::Map<String, Value>| map.values().all(Value::is_string);
    if annotations.is_some_and(|a| !a.as_object().is_some_and(is_fine)) {
        object["metadata"]
            .as_object_mut()
            .expect("metadata")
            .remove("annotations");
    }
    object
}

#[test]
fn examples_come_back() {
    for object in old() {
        assert_eq!(lowered(&raised(&object)), object, "{object:#}");
    }
    for object in new() {
        assert_eq!(raised(&lowered(&object)), object, "{object:#}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn v1beta1_comes_back(which in any::<Index>(), changes in changes()) {
        let object = changed(which.get(&old()).clone(), changes);
        let up = raised(&object);
        prop_assert_eq!(&lowered(&up), &object, "by way of {:#}", up);
    }

    #[test]
    fn v1_comes_back(which in any::<Index>(), changes in changes()) {
        let object = changed(which.get(&new()).clone(), changes);
        let down = lowered(&object);
        prop_assert_eq!(&raised(&down), &object, "by way of {:#}", down);
    }

    #[test]
    fn there_and_back_and_there_is_stable(which in any::<Index>(), changes in changes()) {
        let object = changed(which.get(&new()).clone(), changes);
        let down = lowered(&object);
        prop_assert_eq!(lowered(&raised(&down)), down);
    }
}
