//! Strategic merge patches.

use joiner_machinery::patch::strategic;
use serde_json::{Value, json};

use super::{deployment, kind, object, pod, service};

fn containers(list: Value) -> Value {
    object(
        &deployment(),
        json!({"spec": {"template": {"spec": {"containers": list}}}}),
    )
}

fn patched(target: &Value, pod_spec: Value) -> Value {
    let patch = json!({"spec": {"template": {"spec": pod_spec}}});
    let out = strategic(&deployment(), target, &patch).unwrap();
    out["spec"]["template"]["spec"].clone()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect()
}

#[test]
fn containers_are_merged_by_name() {
    let target = containers(
        json!([{"name": "a", "image": "a:1", "tty": true}, {"name": "b", "image": "b:1"}]),
    );
    let spec = patched(
        &target,
        json!({"containers": [{"name": "a", "image": "a:2"}, {"name": "c", "image": "c:1"}]}),
    );
    let expected = json!([
        {"name": "a", "image": "a:2", "tty": true},
        {"name": "c", "image": "c:1"},
        {"name": "b", "image": "b:1"},
    ]);
    assert_eq!(spec["containers"], expected);
}

#[test]
fn variables_are_deleted_changed_and_added() {
    let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]);
    let target = containers(json!([{"name": "a", "env": env}]));
    let env = json!([{"name": "A", "$patch": "delete"}, {"name": "C", "value": "4"}, {"name": "D", "value": "5"}]);
    let spec = patched(&target, json!({"containers": [{"name": "a", "env": env}]}));
    let expected = json!([{"name": "B", "value": "2"}, {"name": "C", "value": "4"}, {"name": "D", "value": "5"}]);
    assert_eq!(spec["containers"][0]["env"], expected);
}

#[test]
fn the_order_that_a_patch_asks_for() {
    let target = containers(json!([{"name": "a"}, {"name": "b"}, {"name": "s"}]));
    let order = json!([{"name": "n"}, {"name": "b"}, {"name": "a"}]);
    let spec = patched(
        &target,
        json!({"$setElementOrder/containers": order, "containers": [{"name": "n"}]}),
    );
    assert_eq!(names(&spec["containers"]), ["n", "b", "a", "s"]);
    let order = json!([{"name": "b"}, {"name": "a"}]);
    let spec = patched(&target, json!({"$setElementOrder/containers": order}));
    assert_eq!(names(&spec["containers"]), ["b", "a", "s"]);
    assert!(spec.get("$setElementOrder/containers").is_none());
}

#[test]
fn scalars_are_added_ordered_and_taken_out() {
    let target = object(&pod(), json!({"metadata": {"finalizers": ["a", "b", "c"]}}));
    let cases = [
        (
            json!({"finalizers": ["d", "b"]}),
            json!(["d", "a", "b", "c"]),
        ),
        (
            json!({"$deleteFromPrimitiveList/finalizers": ["a", "c"]}),
            json!(["b"]),
        ),
        (
            json!({"$setElementOrder/finalizers": ["c", "a"]}),
            json!(["b", "c", "a"]),
        ),
        (json!({"finalizers": null}), json!(null)),
    ];
    for (metadata, expected) in cases {
        let out = strategic(&pod(), &target, &json!({"metadata": metadata})).unwrap();
        assert_eq!(out["metadata"]["finalizers"], expected, "{metadata}");
    }
}

#[test]
fn lists_without_a_merge_key_are_replaced() {
    let target = object(
        &pod(),
        json!({"spec": {"tolerations": [{"key": "a"}], "containers": [{"name": "c", "args": ["x"]}]}}),
    );
    let patch = json!({"spec": {"tolerations": [{"key": "b"}], "containers": [{"name": "c", "args": ["y"]}]}});
    let out = strategic(&pod(), &target, &patch).unwrap();
    assert_eq!(
        out["spec"],
        json!({"tolerations": [{"key": "b"}], "containers": [{"name": "c", "args": ["y"]}]})
    );
    let node = kind("", "v1", "Node");
    let target = object(
        &node,
        json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
    );
    let out = strategic(&node, &target, &json!({"spec": {"taints": [{"key": "b"}]}})).unwrap();
    assert_eq!(out["spec"]["taints"], json!([{"key": "b"}]));
}

#[test]
fn other_merge_keys() {
    let cases = [
        (
            service(),
            "/spec/ports",
            json!([{"port": 80, "name": "a"}]),
            json!([{"port": 80, "targetPort": 1}]),
            json!([{"port": 80, "name": "a", "targetPort": 1}]),
        ),
        (
            pod(),
            "/spec/hostAliases",
            json!([{"ip": "1", "hostnames": ["a"]}]),
            json!([{"ip": "1", "hostnames": ["b"]}]),
            json!([{"ip": "1", "hostnames": ["b"]}]),
        ),
        (
            pod(),
            "/spec/volumes",
            json!([{"name": "v", "emptyDir": {}}]),
            json!([{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]),
            json!([{"name": "v", "hostPath": {"path": "/"}}]),
        ),
        (
            pod(),
            "/status/conditions",
            json!([{"type": "Ready", "status": "False", "reason": "x"}]),
            json!([{"type": "Ready", "status": "True"}]),
            json!([{"type": "Ready", "status": "True", "reason": "x"}]),
        ),
        (
            pod(),
            "/spec/topologySpreadConstraints",
            json!([{"topologyKey": "z", "maxSkew": 1}]),
            json!([{"topologyKey": "z", "maxSkew": 2}]),
            json!([{"topologyKey": "z", "maxSkew": 2}]),
        ),
        (
            pod(),
            "/metadata/ownerReferences",
            json!([{"uid": "u", "name": "n"}]),
            json!([{"uid": "u", "controller": true}]),
            json!([{"uid": "u", "name": "n", "controller": true}]),
        ),
    ];
    for (kind, path, old, patch, expected) in cases {
        let at = |value: Value| {
            let mut steps = path.split('/').skip(1);
            let (outer, inner) = (steps.next().unwrap(), steps.next().unwrap());
            json!({ outer: { inner: value } })
        };
        let out = strategic(&kind, &object(&kind, at(old)), &at(patch)).unwrap();
        assert_eq!(out.pointer(path), Some(&expected), "{path}");
    }
}

#[test]
fn directives_for_whole_objects() {
    let target = object(
        &deployment(),
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}),
    );
    let strategy = |patch: Value| {
        strategic(
            &deployment(),
            &target,
            &json!({"spec": {"strategy": patch}}),
        )
        .unwrap()["spec"]["strategy"]
            .clone()
    };
    assert_eq!(
        strategy(json!({"$patch": "replace", "type": "Recreate"})),
        json!({"type": "Recreate"})
    );
    assert_eq!(strategy(json!({"$patch": "delete"})), json!({}));
    assert_eq!(
        strategy(json!({"$retainKeys": ["type"], "type": "Recreate"})),
        json!({"type": "Recreate"})
    );
    assert_eq!(
        strategy(json!({"rollingUpdate": null})),
        json!({"type": "RollingUpdate"})
    );
}

#[test]
fn a_list_can_be_replaced_or_emptied() {
    let target = containers(json!([{"name": "a"}, {"name": "b"}]));
    let spec = patched(
        &target,
        json!({"containers": [{"name": "c", "image": "i"}, {"$patch": "replace"}]}),
    );
    assert_eq!(spec["containers"], json!([{"name": "c", "image": "i"}]));
    let spec = patched(&target, json!({"containers": null}));
    assert!(spec.get("containers").is_none());
}

#[test]
fn a_selector_of_a_disruption_budget_is_replaced() {
    let budget = kind("policy", "v1", "PodDisruptionBudget");
    let target = object(
        &budget,
        json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}),
    );
    let patch = json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}});
    let out = strategic(&budget, &target, &patch).unwrap();
    assert_eq!(out["spec"]["selector"], json!({"matchLabels": {"b": "2"}}));
    let target = object(&deployment(), json!({"spec": target["spec"]}));
    let out = strategic(&deployment(), &target, &patch).unwrap();
    assert_eq!(
        out["spec"]["selector"],
        json!({"matchLabels": {"a": "1", "b": "2"}})
    );
}

#[test]
fn nulls_and_directives_do_not_stay_in_what_is_new() {
    let target = object(&deployment(), json!({"spec": {}}));
    let spec = patched(
        &target,
        json!({
            "hostname": null,
            "$setElementOrder/containers": [{"name": "a"}],
            "containers": [{"name": "a", "image": null, "env": [{"name": "A", "$patch": "delete"}]}],
        }),
    );
    assert_eq!(spec, json!({"containers": [{"name": "a", "env": []}]}));
}

#[test]
fn what_fails() {
    let target = containers(json!([{"name": "a"}]));
    let spec = |pod: Value| json!({"spec": {"template": {"spec": pod}}});
    let cases = [
        (
            json!([]),
            400,
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            spec(json!({"$setElementOrder/containers": 1})),
            400,
            "invalid patch format of setElementOrder list",
        ),
        (
            spec(json!({"$deleteFromPrimitiveList": ["x"]})),
            400,
            "invalid patch format of primitive list",
        ),
        (
            spec(json!({"$retainKeys": ["a"], "b": 1})),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            spec(json!({"containers": [{"image": "x"}]})),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            spec(json!({"containers": [{"name": "a", "$patch": "dance"}]})),
            500,
            "unknown patch type: dance in map: map[$patch:dance name:a]",
        ),
        (
            spec(json!({"$patch": "dance"})),
            500,
            "unknown patch type: dance in map: map[$patch:dance]",
        ),
        (
            spec(json!({"containers": [1]})),
            500,
            "the items of a list with a merge key must be objects",
        ),
    ];
    for (patch, code, message) in cases {
        let error = strategic(&deployment(), &target, &patch).unwrap_err();
        assert_eq!(
            (error.reason.code(), &error.message[..]),
            (code, message),
            "{patch}"
        );
    }
}
