use super::*;
use crate::admission::{Context, Nothing, prepare_create};
use crate::kinds::{builtin, fields};
use crate::{defaults, validate};

fn definition_kind() -> Kind {
    let mut all = builtin().into_iter();
    all.find(|k| k.kind == "CustomResourceDefinition").unwrap()
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn our_own_definitions_are_served() {
    let context = Context {
        now: now(),
        uid: "u",
        lookup: &Nothing,
        default_service_account: false,
    };
    for mut crd in joiner_api::crds() {
        let kind = definition_kind();
        assert_eq!(
            fields::decode(&kind, &mut crd).unwrap(),
            Vec::<String>::new()
        );
        defaults::apply(&kind, &mut crd);
        prepare_create(&kind, &mut crd, &context).unwrap();
        assert_eq!(validate::create(&kind, &crd), [], "{}", meta::name(&crd));
        let kinds = custom_kinds(&crd);
        assert!(!kinds.is_empty());
        for kind in kinds {
            CustomRules::compile(kind.custom.as_deref().unwrap()).unwrap();
        }
    }
}

#[test]
fn versions_are_served_in_order_of_preference() {
    let version =
        |name: &str| json!({"name": name, "served": name != "v9", "storage": name == "v1"});
    let names = [
        "v1alpha1", "v1", "foo", "v2beta1", "v10", "v9", "v2beta2", "v2",
    ];
    let versions: Vec<Value> = names.into_iter().map(version).collect();
    let crd = json!({"spec": {"group": "g", "scope": "Cluster", "versions": versions, "names": {
        "kind": "Foo", "plural": "foos", "singular": "foo", "shortNames": ["fo"]}}});
    let kinds = custom_kinds(&crd);
    let order: Vec<&str> = kinds.iter().map(|k| k.version.as_str()).collect();
    assert_eq!(
        order,
        ["v10", "v2", "v1", "v2beta2", "v2beta1", "v1alpha1", "foo"]
    );
    assert_eq!(kinds[0].short_names, ["fo"]);
    assert!(!kinds[0].namespaced);
    assert_eq!(storage_version(&crd), Some("v1"));
}

#[test]
fn an_accepted_definition_keeps_its_times() {
    let mut crd = json!({"spec": {"names": {"kind": "Foo"}, "versions": [
        {"name": "v1", "storage": true, "served": true}]}});
    let first = accepted_status(&crd, now());
    assert_eq!(first["conditions"][1]["type"], "Established");
    assert_eq!(first["storedVersions"], json!(["v1"]));
    crd["status"] = first.clone();
    let later = "2027-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(accepted_status(&crd, later), first);
}

#[test]
fn scale_paths_read_and_write() {
    let mut object = json!({"spec": {"replicas": 3}});
    assert_eq!(ScalePaths::get(".spec.replicas", &object), &json!(3));
    assert_eq!(ScalePaths::get(".status.replicas", &object), &Value::Null);
    ScalePaths::set(".spec.deep.count", &mut object, json!(4));
    assert_eq!(object["spec"]["deep"]["count"], 4);
}
