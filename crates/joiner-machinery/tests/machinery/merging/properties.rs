//! What holds for all objects and patches.

use joiner_machinery::apply::{apply, record};
use joiner_machinery::{Kind, patch};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{ELEVEN, TEN, by, config_map, custom, deployment, object, pod};

/// Any JSON, with names that mean something to the code under test.
fn anything() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("template"),
        Just("containers"),
        Just("env"),
        Just("name"),
        Just("ports"),
        Just("finalizers"),
        Just("managedFields"),
        Just("annotations"),
        Just("tolerations"),
        Just("$patch"),
        Just("$retainKeys"),
        Just("$setElementOrder/containers"),
        Just("$deleteFromPrimitiveList/finalizers"),
        Just("op"),
        Just("path"),
        Just("value"),
        Just("from"),
        Just("operation"),
        Just("fieldsV1"),
        Just("l"),
        Just("s"),
        Just(""),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        prop_oneof![
            Just("a"),
            Just("b"),
            Just("delete"),
            Just("replace"),
            Just("/spec"),
            Just("add"),
            Just("copy"),
            Just("move")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((name.clone(), inner), 0..5).prop_map(|fields| fields
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}

/// Any object of a kind, its metadata left alone.
fn parts() -> impl Strategy<Value = Value> {
    (anything(), anything())
        .prop_map(|(spec, data)| json!({"spec": {"template": spec, "containers": [], "s": data}}))
}

fn things() -> Kind {
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}, "env": {"type": "string", "nullable": true}}});
    let mut kind = custom(json!({"type": "object", "properties": {
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item},
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "template": {"type": "object", "x-kubernetes-map-type": "atomic"},
    }}));
    kind.kind = "Thing".to_owned();
    kind
}

/// The merge patch from one document to another; neither has nulls.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return to.clone();
    };
    let mut patch = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in to
        .iter()
        .filter(|(name, value)| from.get(*name) != Some(value))
    {
        let change = from
            .get(name)
            .map_or_else(|| value.clone(), |old| difference(old, value));
        patch.insert(name.clone(), change);
    }
    Value::Object(patch)
}

fn without_nulls(value: Value) -> Value {
    let Value::Object(map) = value else {
        return value;
    };
    let fields = map.into_iter().filter(|(_, value)| !value.is_null());
    fields
        .map(|(name, value)| (name, without_nulls(value)))
        .collect::<Map<_, _>>()
        .into()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_merge_patch_of_the_difference_gives_the_other(from in anything(), to in anything()) {
        let (from, to) = (without_nulls(json!({"x": from})), without_nulls(json!({"x": to})));
        prop_assert_eq!(patch::merge(&from, &difference(&from, &to)).unwrap(), to);
    }

    #[test]
    fn nothing_panics(target in anything(), patch in anything()) {
        let _ = patch::json(&target, &patch);
        let _ = patch::json(&target, &json!([patch]));
        let _ = patch::merge(&target, &patch);
        for kind in [pod(), deployment(), config_map(), things()] {
            let _ = patch::strategic(&kind, &target, &patch);
            let config = object(&kind, json!({"spec": patch}));
            for config in [&config, &patch] {
                let _ = apply(&kind, Some(&target), config, false, &by("a", TEN));
                let _ = apply(&kind, None, config, true, &by("kubectl", TEN));
            }
            let mut after = patch.clone();
            record(&kind, Some(&target), &mut after, &by("a", TEN));
            record(&kind, None, &mut after, &by("a", TEN));
        }
    }

    #[test]
    fn applying_the_same_twice_changes_nothing(part in parts(), other in parts()) {
        for kind in [pod(), deployment(), things()] {
            let (one, two) = (object(&kind, part.clone()), object(&kind, other.clone()));
            let Ok(first) = apply(&kind, None, &two, false, &by("other", TEN)) else { continue };
            let Ok(first) = apply(&kind, Some(&first), &one, true, &by("me", TEN)) else { continue };
            let again = apply(&kind, Some(&first), &one, false, &by("me", ELEVEN));
            prop_assert_eq!(again.as_ref(), Ok(&first));
        }
    }

    #[test]
    fn no_field_has_two_owners_by_update(before in parts(), after in parts(), last in parts()) {
        for kind in [deployment(), things()] {
            let mut live: Option<Value> = None;
            for (i, part) in [&before, &after, &last, &before].into_iter().enumerate() {
                let mut next = object(&kind, part.clone());
                record(&kind, live.as_ref(), &mut next, &by(["a", "b", "c", "b"][i], TEN));
                let entries = next["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
                for (i, one) in entries.iter().enumerate() {
                    for two in &entries[i + 1..] {
                        prop_assert!(are_apart(&one["fieldsV1"], &two["fieldsV1"]), "{} {}", one, two);
                    }
                }
                live = Some(next);
            }
        }
    }

    #[test]
    fn without_lists_a_strategic_patch_is_a_merge_patch(target in parts(), change in parts()) {
        let target = object(&config_map(), without_nulls(target));
        let change = without_lists(change);
        let merged = patch::merge(&target, &change).unwrap();
        prop_assert_eq!(patch::strategic(&config_map(), &target, &change).unwrap(), merged);
    }
}

/// True when no field is in both sets.
fn are_apart(one: &Value, two: &Value) -> bool {
    let (Value::Object(one), Value::Object(two)) = (one, two) else {
        return true;
    };
    let member = |node: &Value| {
        node.as_object()
            .is_some_and(|m| m.is_empty() || m.contains_key("."))
    };
    one.iter()
        .filter(|(step, _)| *step != ".")
        .all(|(step, a)| {
            two.get(step)
                .is_none_or(|b| !(member(a) && member(b)) && are_apart(a, b))
        })
}

fn without_lists(value: Value) -> Value {
    let Value::Object(map) = value else {
        return value;
    };
    let fields = map
        .into_iter()
        .filter(|(name, value)| !value.is_array() && !name.starts_with('$'));
    fields
        .map(|(name, value)| (name, without_lists(value)))
        .collect::<Map<_, _>>()
        .into()
}
