//! What creates, updates and patches leave in `managedFields`.

use joiner_machinery::Kind;
use joiner_machinery::apply::{Writer, record};
use serde_json::{Value, json};

use super::{ELEVEN, TEN, by, config_map, custom, deployment, object, owned, owners, pod};

fn created(kind: &Kind, part: Value, manager: &str) -> Value {
    let mut after = object(kind, part);
    record(kind, None, &mut after, &by(manager, TEN));
    after["metadata"]["uid"] = json!("u");
    after
}

fn updated(
    kind: &Kind,
    before: &Value,
    writer: &Writer<'_>,
    change: impl FnOnce(&mut Value),
) -> Value {
    let mut after = before.clone();
    change(&mut after);
    record(kind, Some(before), &mut after, writer);
    after
}

#[test]
fn a_create_owns_all_but_what_the_server_keeps() {
    let out = created(
        &pod(),
        json!({
            "metadata": {"uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": TEN, "labels": {"a": "b"},
                "ownerReferences": [{"uid": "o", "name": "n"}]},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}], "nodeSelector": {"a": "b"}},
            "status": {"phase": "Pending"},
        }),
        "kubelet",
    );
    assert_eq!(
        owned(&out, "kubelet", "Update"),
        json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:ownerReferences": {".": {}, "k:{\"uid\":\"o\"}": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {},
                    "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}}}}},
                "f:nodeSelector": {},
            },
        })
    );
    let entry = &out["metadata"]["managedFields"][0];
    assert_eq!(
        (&entry["time"], &entry["apiVersion"]),
        (&json!(TEN), &json!("v1"))
    );
}

#[test]
fn custom_objects_have_no_fields_that_are_always_there() {
    let out = created(
        &custom(json!({"type": "object"})),
        json!({"spec": {"a": 1}}),
        "k",
    );
    assert_eq!(
        owned(&out, "k", "Update"),
        json!({"f:spec": {".": {}, "f:a": {}}})
    );
}

#[test]
fn changed_fields_move_and_removed_fields_vanish() {
    let kind = config_map();
    let before = created(
        &kind,
        json!({"data": {"a": "1", "b": "2", "c": "3"}}),
        "one",
    );
    let after = updated(&kind, &before, &by("two", ELEVEN), |object| {
        object["data"] = json!({"a": "9", "b": "2", "d": "4"});
    });
    assert_eq!(
        owned(&after, "one", "Update"),
        json!({"f:data": {".": {}, "f:b": {}}})
    );
    assert_eq!(
        owned(&after, "two", "Update"),
        json!({"f:data": {"f:a": {}, "f:d": {}}})
    );
    assert_eq!(after["metadata"]["managedFields"][0]["time"], TEN);
    assert_eq!(after["metadata"]["managedFields"][1]["time"], ELEVEN);
    let after = updated(&kind, &after, &by("two", ELEVEN), |object| {
        object["data"] = json!({"a": "9", "d": "4"});
        object["data"]["e"] = json!("");
    });
    let after = updated(&kind, &after, &by("three", ELEVEN), |object| {
        object.as_object_mut().unwrap().remove("data");
    });
    assert!(owners(&after).is_empty(), "entries without fields vanish");
}

#[test]
fn nothing_changed_nothing_written() {
    let before = created(&deployment(), json!({"spec": {"replicas": 1}}), "one");
    let after = updated(&deployment(), &before, &by("two", ELEVEN), |object| {
        object["metadata"]["resourceVersion"] = json!("7");
        object["metadata"]["generation"] = json!(2);
    });
    assert_eq!(
        after["metadata"]["managedFields"],
        before["metadata"]["managedFields"]
    );
}

#[test]
fn a_client_that_leaves_entries_out_does_not_lose_them() {
    let kind = config_map();
    let before = created(&kind, json!({"data": {"a": "1"}}), "one");
    for sent in [json!(null), json!([{"manager": "x"}])] {
        let after = updated(&kind, &before, &by("two", ELEVEN), |object| {
            object["metadata"]["managedFields"] = sent;
        });
        assert_eq!(
            after["metadata"]["managedFields"],
            before["metadata"]["managedFields"]
        );
    }
}

#[test]
fn entries_can_be_edited_and_cleared() {
    let kind = config_map();
    let before = created(&kind, json!({"data": {"a": "1"}}), "one");
    let renamed = updated(&kind, &before, &by("two", ELEVEN), |object| {
        object["metadata"]["managedFields"][0]["manager"] = json!("renamed");
    });
    assert_eq!(owners(&renamed), ["renamed"]);
    for reset in [json!([]), json!([{}])] {
        let cleared = updated(&kind, &before, &by("two", ELEVEN), |object| {
            object["metadata"]["managedFields"] = reset;
        });
        assert!(cleared["metadata"].get("managedFields").is_none());
        let later = updated(&kind, &cleared, &by("two", ELEVEN), |object| {
            object["data"]["a"] = json!("2")
        });
        assert!(
            later["metadata"].get("managedFields").is_none(),
            "no tracking until an apply"
        );
    }
}

#[test]
fn a_status_write_has_an_entry_of_its_own() {
    let before = created(&pod(), json!({"spec": {"containers": []}}), "kubelet");
    let writer = Writer {
        subresource: Some("status"),
        ..by("kubelet", ELEVEN)
    };
    let after = updated(&pod(), &before, &writer, |object| {
        object["metadata"]["managedFields"] = json!([{}]);
        object["status"] =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    });
    let entries = after["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(
        entries[1]["fieldsV1"],
        json!({"f:status": {
            "f:phase": {},
            "f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {".": {}, "f:type": {}, "f:status": {}}},
        }})
    );
}

#[test]
fn at_most_ten_entries_of_updates() {
    let kind = config_map();
    let mut object = created(&kind, json!({"data": {"k": ""}}), "m00");
    for i in 1..14 {
        let (name, at) = (format!("m{i:02}"), format!("2026-01-01T10:00:{i:02}Z"));
        object = updated(&kind, &object, &by(&name, &at), |object| {
            object["data"][&name] = json!("x")
        });
    }
    let owners = owners(&object);
    assert_eq!(owners.len(), 10);
    assert!(owners.contains(&"ancient-changes".to_owned()) && owners.contains(&"m13".to_owned()));
    let ancient = owned(&object, "ancient-changes", "Update");
    assert_eq!(
        ancient,
        json!({"f:data": {".": {}, "f:k": {}, "f:m01": {}, "f:m02": {}, "f:m03": {}, "f:m04": {}}})
    );
}

#[test]
fn an_item_that_becomes_another_kind_of_value() {
    let kind = custom(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let before = created(&kind, json!({"spec": {"a": {"b": 1}, "c": 1}}), "one");
    let after = updated(&kind, &before, &by("two", ELEVEN), |object| {
        object["spec"] = json!({"a": 1, "c": {"d": 1}})
    });
    assert_eq!(owned(&after, "one", "Update"), json!({"f:spec": {}}));
    assert_eq!(
        owned(&after, "two", "Update"),
        json!({"f:spec": {"f:a": {}, "f:c": {".": {}, "f:d": {}}}})
    );
}
