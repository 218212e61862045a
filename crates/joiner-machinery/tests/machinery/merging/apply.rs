//! Server-side apply.

use joiner_machinery::apply::{Writer, apply, record};
use joiner_machinery::{ApiError, Kind, Reason};
use serde_json::{Value, json};

use super::{ELEVEN, TEN, by, config_map, custom, deployment, object, owned, owners, pod, service};

/// Applies parts of one object, one after the other, by name and without force.
struct World {
    kind: Kind,
    live: Option<Value>,
}

impl World {
    fn new(kind: Kind) -> Self {
        Self { kind, live: None }
    }

    fn tries(&self, manager: &str, part: Value, force: bool) -> Result<Value, ApiError> {
        let config = object(&self.kind, part);
        apply(
            &self.kind,
            self.live.as_ref(),
            &config,
            force,
            &by(manager, TEN),
        )
    }

    fn applies(&mut self, manager: &str, part: Value) -> &Value {
        let out = self.tries(manager, part, false).unwrap();
        self.live.insert(out)
    }

    fn forces(&mut self, manager: &str, part: Value) -> &Value {
        let out = self.tries(manager, part, true).unwrap();
        self.live.insert(out)
    }

    fn updates(&mut self, manager: &str, change: impl FnOnce(&mut Value)) -> &Value {
        let before = self.live.take().unwrap();
        let mut after = before.clone();
        change(&mut after);
        record(&self.kind, Some(&before), &mut after, &by(manager, TEN));
        self.live.insert(after)
    }
}

fn data(data: Value) -> Value {
    json!({ "data": data })
}

fn template(containers: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

#[test]
fn a_first_apply_creates_and_owns() {
    let mut world = World::new(deployment());
    let out = world.applies("one", json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {
            "containers": [{"name": "web", "image": "i", "ports": [{"containerPort": 80}], "resources": {}}],
            "tolerations": [{"key": "x"}],
        }}},
    }));
    let entry = json!([{
        "manager": "one", "operation": "Apply", "apiVersion": "apps/v1", "time": TEN, "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {"f:a": {}}},
            "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {
                "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}, "f:resources": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}},
                "f:tolerations": {},
            }}},
        },
    }]);
    assert_eq!(out["metadata"]["managedFields"], entry);
}

#[test]
fn what_is_no_longer_applied_goes() {
    let mut world = World::new(config_map());
    world.applies("one", data(json!({"a": "1", "b": "2"})));
    assert_eq!(
        world.applies("one", data(json!({"a": "1"})))["data"],
        json!({"a": "1"})
    );
    let out = world.applies("one", json!({}));
    assert!(out.get("data").is_none(), "{out}");
    assert!(owners(out).is_empty());
}

#[test]
fn a_field_of_two_goes_with_the_second() {
    let mut world = World::new(config_map());
    world.applies("one", data(json!({"a": "1"})));
    let out = world.applies("two", data(json!({"a": "1"})));
    assert_eq!(
        owners(out),
        ["two", "one"],
        "both own it; the second changed nothing, so has no time"
    );
    assert_eq!(world.applies("one", json!({}))["data"], json!({"a": "1"}));
    assert!(world.applies("two", json!({})).get("data").is_none());
}

#[test]
fn another_value_is_a_conflict() {
    let mut world = World::new(deployment());
    world.applies("one", json!({"spec": {"replicas": 1}}));
    let error = world
        .tries("two", json!({"spec": {"replicas": 2}}), false)
        .unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas"
    );
    let causes = json!([{"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".spec.replicas"}]);
    assert_eq!(error.details, Some(json!({ "causes": causes })));
    let out = world.forces("two", json!({"spec": {"replicas": 2}}));
    assert_eq!(
        (&out["spec"]["replicas"], owners(out)),
        (&json!(2), vec!["two".to_owned()])
    );
}

#[test]
fn an_edit_in_between_is_a_conflict_and_names_the_version() {
    let mut world = World::new(deployment());
    world.applies("one", json!({"spec": {"replicas": 1, "paused": true}}));
    world.updates("kubectl-edit", |object| {
        object["spec"]["replicas"] = json!(3);
        object["metadata"]["labels"] = json!({"x": "y"});
    });
    let again =
        json!({"metadata": {"labels": {"x": "z"}}, "spec": {"replicas": 1, "paused": false}});
    let error = world.tries("one", again, false).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 2 conflicts: conflicts with \"kubectl-edit\" using apps/v1:\n\
         - .metadata.labels.x\n- .spec.replicas"
    );
    let out = world.applies("one", json!({"spec": {"paused": false}}));
    assert_eq!(out["spec"], json!({"replicas": 3, "paused": false}));
}

#[test]
fn the_same_again_changes_nothing() {
    for part in [
        json!({"spec": {"replicas": 1}}),
        template(json!([{"name": "a", "image": "i"}])),
    ] {
        let mut world = World::new(deployment());
        let first = world.applies("one", part.clone()).clone();
        let config = object(&world.kind, part);
        let again = apply(
            &world.kind,
            Some(&first),
            &config,
            false,
            &by("one", ELEVEN),
        )
        .unwrap();
        assert_eq!(again, first, "not even the time");
    }
}

#[test]
fn containers_of_two_are_merged() {
    let mut world = World::new(deployment());
    world.applies(
        "one",
        template(json!([{"name": "web", "image": "w"}, {"name": "log", "image": "l"}])),
    );
    world.applies(
        "two",
        template(json!([{"name": "side", "image": "s"}, {"name": "web", "tty": true}])),
    );
    let out = world.applies("one", template(json!([{"name": "web", "image": "w2"}])));
    let containers = &out["spec"]["template"]["spec"]["containers"];
    assert_eq!(
        containers,
        &json!([{"name": "side", "image": "s"}, {"name": "web", "image": "w2", "tty": true}])
    );
}

#[test]
fn defaults_go_with_the_item_they_belong_to() {
    let mut world = World::new(deployment());
    world.applies(
        "one",
        template(json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i"}])),
    );
    if let Some(live) = &mut world.live {
        live["spec"]["template"]["spec"]["containers"][1]["imagePullPolicy"] = json!("Always");
    }
    let out = world.applies("one", template(json!([{"name": "a", "image": "i"}])));
    assert_eq!(
        out["spec"]["template"]["spec"]["containers"],
        json!([{"name": "a", "image": "i"}])
    );
}

#[test]
fn ports_are_known_by_number_and_protocol() {
    let mut world = World::new(service());
    let ports = |list: Value| json!({"spec": {"ports": list}});
    world.applies(
        "one",
        ports(json!([{"port": 53, "protocol": "UDP", "name": "u"}, {"port": 53, "name": "t"}])),
    );
    world.applies(
        "two",
        ports(json!([{"port": 53, "protocol": "TCP", "targetPort": 5353}])),
    );
    let out = world.applies("one", ports(json!([{"port": 53, "name": "t"}])));
    assert_eq!(
        out["spec"]["ports"],
        json!([{"port": 53, "name": "t", "targetPort": 5353, "protocol": "TCP"}])
    );
}

#[test]
fn lists_and_maps_in_one_piece_have_one_owner() {
    let mut world = World::new(pod());
    let spec =
        |key: &str| json!({"spec": {"tolerations": [{"key": key}], "nodeSelector": {key: ""}}});
    world.applies("one", spec("a"));
    let error = world.tries("two", spec("b"), false).unwrap_err();
    assert!(
        error
            .message
            .ends_with("- .spec.nodeSelector\n- .spec.tolerations"),
        "{error}"
    );
    let out = world.forces("two", spec("b"));
    assert_eq!(out["spec"], spec("b")["spec"]);
    assert_eq!(owners(out), ["two"]);
}

#[test]
fn items_of_sets_have_owners_of_their_own() {
    let mut world = World::new(config_map());
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    world.applies("one", finalizers(json!(["a", "b"])));
    world.applies("two", finalizers(json!(["b", "c"])));
    let out = world.applies("one", finalizers(json!(["a"])));
    assert_eq!(out["metadata"]["finalizers"], json!(["a", "b", "c"]));
    let out = world.applies("two", finalizers(json!(["c"])));
    assert_eq!(out["metadata"]["finalizers"], json!(["a", "c"]));
    assert_eq!(
        owned(out, "two", "Apply"),
        json!({"f:metadata": {"f:finalizers": {"v:\"c\"": {}}}})
    );
}

#[test]
fn lists_and_maps_of_custom_kinds() {
    let item = json!({"type": "object", "properties": {
        "k": {"type": "string"}, "p": {"type": "string", "default": "D"}, "v": {"type": "string"}}});
    let mut world = World::new(custom(json!({"type": "object", "properties": {
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"], "items": item},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "piece": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "plain": {"type": "array", "items": {"type": "string"}},
    }})));
    world.applies("one", json!({"spec": {"list": [{"k": "a", "v": "1"}, {"k": "a", "p": "E"}], "set": ["x"], "piece": {"a": "1"}}}));
    world.applies(
        "two",
        json!({"spec": {"list": [{"k": "b"}], "set": ["y"], "plain": ["p"]}}),
    );
    let out = world.applies(
        "one",
        json!({"spec": {"list": [{"k": "a", "p": "D", "v": "2"}]}}),
    );
    let expected =
        json!({"list": [{"k": "a", "p": "D", "v": "2"}, {"k": "b"}], "set": ["y"], "plain": ["p"]});
    assert_eq!(out["spec"], expected);
    let item = json!({".": {}, "f:k": {}, "f:p": {}, "f:v": {}});
    assert_eq!(
        owned(out, "one", "Apply"),
        json!({"f:spec": {"f:list": {"k:{\"k\":\"a\",\"p\":\"D\"}": item}}})
    );
}

#[test]
fn ownership_moves_by_sharing_and_letting_go() {
    let mut world = World::new(deployment());
    world.applies("user", json!({"spec": {"replicas": 2, "paused": true}}));
    world.applies("scaler", json!({"spec": {"replicas": 2}}));
    world.applies("user", json!({"spec": {"paused": true}}));
    let out = world.applies("scaler", json!({"spec": {"replicas": 5}}));
    assert_eq!(out["spec"], json!({"replicas": 5, "paused": true}));
    assert_eq!(
        owned(out, "user", "Apply"),
        json!({"f:spec": {"f:paused": {}}})
    );
}

#[test]
fn what_nobody_claimed_belongs_to_the_time_before() {
    let mut world = World::new(config_map());
    world.live = Some(object(&world.kind, data(json!({"a": "1"}))));
    let error = world
        .tries("one", data(json!({"a": "2"})), false)
        .unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
    );
    let out = world.applies("one", data(json!({"b": "2"})));
    assert_eq!(
        owned(out, "before-first-apply", "Update"),
        json!({"f:data": {".": {}, "f:a": {}}})
    );
}

#[test]
fn status_is_for_the_subresource() {
    let kind = deployment();
    let config = object(
        &kind,
        json!({"spec": {"replicas": 1}, "status": {"replicas": 1}}),
    );
    let out = apply(&kind, None, &config, false, &by("one", TEN)).unwrap();
    assert_eq!(
        owned(&out, "one", "Apply"),
        json!({"f:spec": {"f:replicas": {}}})
    );
    let writer = Writer {
        subresource: Some("status"),
        ..by("one", TEN)
    };
    let out = apply(&kind, Some(&out), &config, false, &writer).unwrap();
    let entries = out["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "an entry per subresource");
    let of_status = entries
        .iter()
        .find(|entry| entry["subresource"] == "status")
        .unwrap();
    assert_eq!(
        of_status["fieldsV1"],
        json!({"f:status": {"f:replicas": {}}})
    );
}

#[test]
fn kubectl_takes_over_from_itself() {
    let kind = config_map();
    let last = "kubectl.kubernetes.io/last-applied-configuration";
    let applied = object(&kind, data(json!({"a": "1"})));
    let mut live = applied.clone();
    live["metadata"]["annotations"] = json!({ last: format!("{applied}\n") });
    record(
        &kind,
        None,
        &mut live,
        &by("kubectl-client-side-apply", TEN),
    );
    let config = object(&kind, data(json!({"a": "2"})));
    assert!(apply(&kind, Some(&live), &config, false, &by("other", TEN)).is_err());
    let out = apply(&kind, Some(&live), &config, false, &by("kubectl", TEN)).unwrap();
    assert_eq!(out["data"], json!({"a": "2"}));
    assert_eq!(out["metadata"]["annotations"][last], format!("{config}\n"));
}

#[test]
fn what_is_refused() {
    let cases = [
        (
            json!({"apiVersion": "apps/v2"}),
            400,
            "invalid object type: apps/v2, Kind=Deployment",
        ),
        (
            json!({"kind": "Pod"}),
            400,
            "invalid object type: apps/v1, Kind=Pod",
        ),
        (
            json!({"metadata": {"managedFields": []}}),
            400,
            "metadata.managedFields must be nil",
        ),
        (
            template(json!([{"name": "a"}, {"name": "a"}])),
            500,
            "failed to create typed patch object (default/x; apps/v1, Kind=Deployment): \
             .spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
        ),
        (
            json!({"metadata": {"finalizers": [{}]}}),
            500,
            "failed to create typed patch object (default/x; apps/v1, Kind=Deployment): \
             .metadata.finalizers: element 0: associative list without keys has an element that's a map type",
        ),
    ];
    for (part, code, message) in cases {
        let error = World::new(deployment())
            .tries("one", part, false)
            .unwrap_err();
        assert_eq!((error.reason.code(), &error.message[..]), (code, message));
    }
    let config = object(&deployment(), json!({"metadata": {"managedFields": null}}));
    assert!(apply(&deployment(), None, &config, false, &by("one", TEN)).is_ok());
}
