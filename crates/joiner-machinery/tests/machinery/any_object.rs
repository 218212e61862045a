//! Whatever a client sends, the way of an object through the server ends in an answer.

use std::sync::OnceLock;

use joiner_machinery::admission::{Context, Nothing, prepare_create, prepare_update};
use joiner_machinery::crd::{CustomRules, custom_kinds};
use joiner_machinery::kinds::{Kind, builtin, convert, fields};
use joiner_machinery::quantity::Quantity;
use joiner_machinery::selector::{FieldSelector, LabelSelector};
use joiner_machinery::{defaults, validate};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any JSON whose keys are mostly those that objects have.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "name",
        "labels",
        "annotations",
        "template",
        "selector",
        "matchLabels",
        "containers",
        "resources",
        "requests",
        "limits",
        "cpu",
        "volumes",
        "ports",
        "strategy",
        "rollingUpdate",
        "tolerations",
        "affinity",
        "versions",
        "schema",
        "names",
        "metrics",
        "jobTemplate",
        "clusterIP",
        "clusterIPs",
        "finalizers",
        "data",
        "rules",
        "type",
        "ownerReferences",
        "taints",
        "storedVersions",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z0-9./%=-]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..8).prop_map(|entries| {
                let entries = entries.into_iter().map(|(k, v)| (k.to_owned(), v));
                Value::Object(entries.collect())
            }),
        ]
    })
}

/// Any object: its parts are more often objects than not.
fn any_object() -> impl Strategy<Value = Value> {
    let part = || prop_oneof![1 => any_json(), 3 => any_json().prop_map(|v| json!({"spec": v}))];
    (part(), part(), part(), any_json()).prop_map(|(spec, template, status, whole)| {
        let spec = match spec {
            Value::Object(mut map) => {
                map.insert("template".to_owned(), template);
                Value::Object(map)
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => spec,
        };
        match whole {
            Value::Object(mut map) => {
                map.insert("spec".to_owned(), spec);
                Value::Object(map)
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => json!({"metadata": {"name": "a"}, "spec": spec, "status": status}),
        }
    })
}

fn context() -> Context<'static> {
    Context {
        now: jiff::Timestamp::UNIX_EPOCH,
        uid: "u",
        lookup: &Nothing,
        default_service_account: true,
    }
}

/// Our own kinds with their rules.
fn custom() -> &'static [(Kind, CustomRules)] {
    static ALL: OnceLock<Vec<(Kind, CustomRules)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let kinds = joiner_api::crds()
            .into_iter()
            .flat_map(|crd| custom_kinds(&crd));
        kinds
            .map(|kind| {
                let version = kind.custom.as_deref().expect("a custom kind");
                let rules = CustomRules::compile(version).expect("our own schema");
                (kind, rules)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn built_in_kinds_answer(object in any_object(), other in any_object()) {
        for kind in builtin() {
            let mut old = object.clone();
            let mut new = other.clone();
            let ready = |o: &mut Value| {
                fields::decode(&kind, o).is_ok() && {
                    defaults::apply(&kind, o);
                    prepare_create(&kind, o, &context()).is_ok()
                }
            };
            if kind.is_stored() && ready(&mut old) {
                let _ = validate::create(&kind, &old);
                let once = old.clone();
                fields::decode(&kind, &mut old).expect("what was decoded can be decoded");
                prop_assert_eq!(&old, &once, "decoding what was prepared changes nothing");
                let fits = fields::decode(&kind, &mut new).is_ok();
                if fits && prepare_update(&kind, &old, &mut new, None, &context()).is_ok() {
                    let _ = validate::update(&kind, &old, &new);
                    convert::to_stored(&kind, &mut new);
                    convert::from_stored(&kind, &mut new);
                }
            }
        }
    }

    #[test]
    fn custom_kinds_answer(object in any_object(), other in any_object()) {
        for (kind, rules) in custom() {
            let (mut old, mut new) = (object.clone(), other.clone());
            if rules.decode(kind, &mut old).is_err() || rules.decode(kind, &mut new).is_err() {
                continue;
            }
            rules.apply_defaults(&mut old);
            rules.apply_defaults(&mut new);
            if prepare_create(kind, &mut old, &context()).is_err() {
                continue;
            }
            let _ = rules.create(kind, &old);
            if prepare_update(kind, &old, &mut new, None, &context()).is_ok() {
                let _ = rules.update(kind, &old, &new);
            }
        }
    }

    #[test]
    fn definitions_answer(schema in any_json()) {
        let crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let kind = builtin().into_iter().find(|k| k.kind == "CustomResourceDefinition");
        let _ = validate::create(&kind.expect("it is built in"), &crd);
        let _ = custom_kinds(&crd);
    }

    #[test]
    fn texts_answer(text in "\\PC{0,24}", signs in "[a-c=!,() <>/.\\\\]{0,16}") {
        for text in [&text, &signs] {
            let _ = LabelSelector::parse(text);
            for kind in builtin() {
                let _ = FieldSelector::parse(&kind, text);
            }
            if let Ok(amount) = Quantity::parse(text) {
                let again = Quantity::parse(&amount.to_string());
                prop_assert_eq!(again, Ok(amount), "{}", amount);
            }
        }
    }
}
