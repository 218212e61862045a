use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::admission::{Context, Nothing, prepare_create};
use crate::kinds::{builtin, fields};
use crate::{defaults, meta, validate};

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

fn gear(name: &str, plural: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"group": "g", "names": {
        "kind": "Gear", "listKind": "GearList", "plural": plural, "singular": "gear"}}})
}

#[test]
fn a_definition_in_force_keeps_its_times() {
    let mut crd = gear("gears.g", "gears");
    crd["status"] = settled_status(&crd, std::iter::empty(), now());
    assert!(is_established(&crd));
    let later = "2027-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(
        settled_status(&crd, std::iter::once(&crd), later),
        crd["status"]
    );
    let going = terminating(&crd, Termination::Pending, later);
    assert_eq!(going["conditions"][2]["type"], "Terminating");
}

#[test]
fn the_second_of_two_with_one_name_waits() {
    let mut first = gear("gears.g", "gears");
    first["status"] = settled_status(&first, std::iter::empty(), now());
    let mut second = gear("cogs.g", "cogs");
    second["status"] = settled_status(&second, std::iter::once(&first), now());
    assert!(!is_established(&second));
    let said = &second["status"]["conditions"][0];
    assert_eq!(said["message"], "\"GearList\" is already in use");
    assert_eq!(second["status"]["acceptedNames"], json!({"plural": "cogs"}));
    // Once the first is gone, the names are free.
    second["status"] = settled_status(&second, std::iter::empty(), now());
    assert!(is_established(&second));
}

#[test]
fn scale_paths_read_and_write() {
    let mut object = json!({"spec": {"replicas": 3}});
    assert_eq!(ScalePaths::get(".spec.replicas", &object), &json!(3));
    assert_eq!(ScalePaths::get(".status.replicas", &object), &Value::Null);
    ScalePaths::set(".spec.deep.count", &mut object, json!(4));
    assert_eq!(object["spec"]["deep"]["count"], 4);
}
