//! Whatever comes in, admission answers; and what it lets through, the types can hold.

use crate::support::full;
use joiner_api::types::{
    CapacityBuffer, Ec2NodeClass, KwokNodeClass, NodeClaim, NodeOverlay, NodePool,
};
use joiner_api::{admit, admit_update};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

fn examples() -> Vec<Value> {
    [
        full::node_pools(),
        full::node_claims(),
        full::node_overlays(),
        full::ec2_node_classes(),
        full::kwok_node_classes(),
        full::capacity_buffers(),
    ]
    .concat()
}

/// Pointers to everything in a value.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    let mut visit = |step: String, child: &Value| {
        let at = format!("{at}/{}", step.replace('~', "~0").replace('/', "~1"));
        pointers(child, &at, out);
        out.push(at);
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, child)| visit(key.clone(), child)),
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(index, child)| visit(index.to_string(), child));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn odd_values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null])),
        Just(json!({"a": 1})),
        Just(json!(2.0)),
        Just(json!(1e300)),
        Just(json!(u64::MAX)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-2_i64..200).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[0-9]{1,3}(s|m|h|%|Gi|)".prop_map(Value::from),
        Just(json!("Never")),
        Just(json!("karpenter.sh/x")),
    ]
}

fn holds(object: &Value) -> Result<(), serde_json::Error> {
    let value = object.clone();
    match object["kind"].as_str().unwrap_or_default() {
        "NodePool" => serde_json::from_value::<NodePool>(value).map(drop),
        "NodeClaim" => serde_json::from_value::<NodeClaim>(value).map(drop),
        "NodeOverlay" => serde_json::from_value::<NodeOverlay>(value).map(drop),
        "EC2NodeClass" => serde_json::from_value::<Ec2NodeClass>(value).map(drop),
        "KWOKNodeClass" => serde_json::from_value::<KwokNodeClass>(value).map(drop),
        _ => serde_json::from_value::<CapacityBuffer>(value).map(drop),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn admitted_objects_have_a_type(
        which in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), odd_values()), 1..4),
        is_update in any::<bool>(),
    ) {
        let examples = examples();
        let old = which.get(&examples);
        let mut object = old.clone();
        for (place, value) in changes {
            let mut all = Vec::new();
            pointers(&object, "", &mut all);
            if !all.is_empty() && let Some(slot) = object.pointer_mut(place.get(&all).as_str()) {
                *slot = value;
            }
        }
        let answer =
            if is_update { admit_update(old, &mut object) } else { admit(&mut object) };
        match answer {
            Ok(_) => {
                let held = holds(&object);
                prop_assert!(held.is_ok(), "{held:?} in {object:#}");
                let again = object.clone();
                prop_assert!(is_update || admit(&mut object).is_ok());
                prop_assert_eq!(object, again, "admission is not idempotent");
            }
            Err(rejection) => prop_assert!(!rejection.to_string().is_empty()),
        }
    }
}
