//! Buffers, from what users write to what is planned and said of it.

use super::outcome::provisioning;
use super::*;
use crate::nodepool::made::{any, at, made, merged};
use joiner_state::live::{Ask, Conditions as _, What};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn buffer(spec: Value) -> (Kind, Value) {
    any(Kind::CapacityBuffer, "ns/b", json!({"spec": spec}))
}

fn pod_spec(cpu: &str) -> Value {
    let requests = match cpu {
        "" => json!({}),
        cpu => json!({"requests": {"cpu": cpu}}),
    };
    json!({"metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": requests}]}})
}

fn template(cpu: &str) -> (Kind, Value) {
    any(
        Kind::PodTemplate,
        "ns/t",
        json!({"metadata": {"generation": 7}, "template": pod_spec(cpu)}),
    )
}

fn scalable(kind: Kind, replicas: Value) -> (Kind, Value) {
    let spec = json!({"replicas": replicas, "template": pod_spec("1")});
    any(kind, "ns/w", json!({"spec": spec}))
}

fn of_template(more: Value) -> (Kind, Value) {
    buffer(merged(json!({"podTemplateRef": {"name": "t"}}), more))
}

fn of_scalable(kind: &str, more: Value) -> (Kind, Value) {
    let reference = json!({"apiGroup": "apps", "kind": kind, "name": "w"});
    buffer(merged(json!({"scalableRef": reference}), more))
}

/// Replicas, or the reason why not.
fn resolved(objects: Vec<(Kind, Value)>) -> String {
    let now = made(objects);
    match resolve(&now, now.buffer("ns/b").unwrap()) {
        Ok(resolved) => resolved.replicas.to_string(),
        Err(why) => format!("{}: {why}", why.reason()),
    }
}

#[test]
fn core_352_355_what_a_buffer_refers_to_is_found_or_named() {
    let three = json!({"replicas": 3});
    let elsewhere = any(
        Kind::PodTemplate,
        "other/t",
        json!({"template": pod_spec("1")}),
    );
    let of_group = |group: &str, kind: &str| {
        let reference = json!({"apiGroup": group, "kind": kind, "name": "w"});
        buffer(json!({"scalableRef": reference, "replicas": 3}))
    };
    let set = || scalable(Kind::ReplicaSet, json!(9));
    for (objects, expected) in [
        (vec![of_template(three.clone()), template("1")], "3"),
        (
            vec![of_template(three.clone()), elsewhere],
            "PodTemplateNotFound: there is no PodTemplate ns/t",
        ),
        (vec![of_scalable("ReplicaSet", three.clone()), set()], "3"),
        (vec![of_group("", "ReplicaSet"), set()], "3"),
        (
            vec![of_scalable("Deployment", three), set()],
            "ScalableRefNotFound: there is no Deployment ns/w",
        ),
        (
            vec![of_group("apps", "Job")],
            "ResolutionFailed: scalableRef cannot be a Job of group \"apps\": name a Deployment, \
             StatefulSet or ReplicaSet of apps",
        ),
        (
            vec![of_group("batch", "Deployment")],
            "ResolutionFailed: scalableRef cannot be a Deployment of group \"batch\": name a \
             Deployment, StatefulSet or ReplicaSet of apps",
        ),
        (
            vec![buffer(json!({"replicas": 1}))],
            "ResolutionFailed: neither podTemplateRef nor scalableRef is set",
        ),
    ] {
        assert_eq!(resolved(objects.clone()), expected, "{objects:?}");
    }
}

#[test]
fn core_353_354_how_many() {
    let share = |replicas: Value, percentage: i32| {
        let buffer = of_scalable("Deployment", json!({"percentage": percentage}));
        vec![buffer, scalable(Kind::Deployment, replicas)]
    };
    let of_stateful = of_scalable("StatefulSet", json!({"percentage": 25}));
    let both = |replicas: i32, percentage: i32| {
        let spec = json!({"replicas": replicas, "percentage": percentage});
        vec![
            of_scalable("Deployment", spec),
            scalable(Kind::Deployment, json!(10)),
        ]
    };
    let limited = |spec: Value, cpu: &str| vec![of_template(spec), template(cpu)];
    let four = json!({"cpu": "4"});
    for (case, objects, expected) in [
        (353, share(json!(10), 25), "3"),
        (
            353,
            vec![of_stateful, scalable(Kind::StatefulSet, json!(10))],
            "3",
        ),
        (353, share(json!(3), 1), "1"),
        (353, share(json!(0), 25), "0"),
        (353, share(json!(10), 0), "0"),
        (353, share(Value::Null, 100), "1"),
        (354, both(2, 50), "5"),
        (354, both(7, 50), "7"),
        (
            354,
            limited(json!({"replicas": 9, "limits": four}), "1500m"),
            "2",
        ),
        (
            354,
            limited(json!({"replicas": 1, "limits": four}), "1500m"),
            "1",
        ),
        (354, limited(json!({"limits": four}), "1"), "4"),
        (
            354,
            limited(json!({"replicas": 9, "limits": four}), ""),
            "9",
        ),
        (
            354,
            limited(json!({"replicas": 9, "limits": {"memory": "1Gi"}}), "1"),
            "9",
        ),
        // A share is nothing without a workload.
        (
            354,
            limited(json!({"replicas": 2, "percentage": 900}), "1"),
            "2",
        ),
    ] {
        assert_eq!(resolved(objects.clone()), expected, "{case}: {objects:?}");
    }
}

#[test]
fn core_352_356_358_the_status_tells_what_was_resolved() {
    let judged = |objects: Vec<(Kind, Value)>| {
        let now = made(objects);
        let buffer = now.buffer("ns/b").unwrap();
        let written = status(buffer, &resolve(&now, buffer), at(2_000_000_000));
        written.unwrap().patch["status"].clone()
    };
    let shown = |status: &Value| -> Vec<String> {
        let all = status["conditions"].as_array().unwrap().iter();
        all.map(|condition| {
            let text = |field: &str| condition[field].as_str().unwrap().to_owned();
            format!("{}={} {}", text("type"), text("status"), text("reason"))
        })
        .collect()
    };
    let good = judged(vec![of_template(json!({"replicas": 3})), template("1")]);
    assert_eq!(good["replicas"], 3);
    assert_eq!(good["podTemplateRef"], json!({"name": "t"}));
    assert_eq!(good["podTemplateGeneration"], 7);
    assert_eq!(
        good["provisioningStrategy"],
        "buffer.x-k8s.io/active-capacity"
    );
    assert_eq!(shown(&good), ["ReadyForProvisioning=True Resolved"]);
    let empty = judged(vec![of_template(json!({"replicas": 0})), template("1")]);
    assert_eq!(
        shown(&empty),
        [
            "ReadyForProvisioning=True Resolved",
            "Provisioning=False BufferEmpty"
        ]
    );
    let missing = judged(vec![of_template(json!({"replicas": 3}))]);
    assert_eq!(
        shown(&missing),
        [
            "ReadyForProvisioning=False PodTemplateNotFound",
            "Provisioning=False NotReadyForProvisioning"
        ]
    );
}

#[test]
fn a_status_that_is_no_news_is_not_written() {
    let base = || vec![of_template(json!({"replicas": 3})), template("1")];
    let now = made(base());
    let buffer = now.buffer("ns/b").unwrap();
    let written = status(buffer, &resolve(&now, buffer), at(100)).unwrap();
    let mut objects = base();
    objects[0].1["status"] = written.patch["status"].clone();
    let again = made(objects);
    let buffer = again.buffer("ns/b").unwrap();
    assert!(status(buffer, &resolve(&again, buffer), at(200)).is_none());
}

#[test]
fn core_356_357_virtual_pods_look_like_the_template_without_storage() {
    let spec = json!({
        "nodeName": "n", "priorityClassName": "high", "priority": 5,
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"a": "b"},
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}},
            {"name": "tmp", "emptyDir": {}}, {"name": "eph", "ephemeral": {}}],
        "containers": [{"name": "c", "image": "i",
            "volumeMounts": [{"name": "data", "mountPath": "/d"}, {"name": "tmp", "mountPath": "/t"}],
            "volumeDevices": [{"name": "eph", "devicePath": "/e"}]}],
    });
    let whole = json!({"template": {"metadata": {"labels": {"app": "x"}}, "spec": spec}});
    let template = any(Kind::PodTemplate, "ns/t", whole);
    let pods = virtual_pods(&made(vec![of_template(json!({"replicas": 2})), template]));
    let names: Vec<&Value> = pods
        .iter()
        .map(|pod| &pod.object["metadata"]["name"])
        .collect();
    assert_eq!(names, ["capacity-buffer-b-1", "capacity-buffer-b-2"]);
    let pod = &pods[1].object;
    assert_eq!(
        pod["metadata"],
        json!({"name": "capacity-buffer-b-2", "namespace": "ns", "uid": "uid-b-2",
            "labels": {"app": "x"},
            "annotations": {"karpenter.sh/capacity-buffer-fake-pod": "true",
                "karpenter.sh/capacity-buffer-name": "b",
                "karpenter.sh/capacity-buffer-namespace": "ns"}})
    );
    assert_eq!(
        pod["spec"],
        json!({
            "priority": i32::MIN,
            "tolerations": [{"operator": "Exists"}],
            "nodeSelector": {"a": "b"},
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "containers": [{"name": "c", "image": "i",
                "volumeMounts": [{"name": "tmp", "mountPath": "/t"}], "volumeDevices": []}],
        })
    );
    assert_eq!(pod["status"]["conditions"][0]["reason"], "Unschedulable");
    // Nothing to resolve, or on its way out: no pods.
    assert!(virtual_pods(&made(vec![of_template(json!({"replicas": 2}))])).is_empty());
    let mut leaving = of_template(json!({"replicas": 2}));
    leaving.1["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(virtual_pods(&made(vec![leaving, self::template("1")])).is_empty());
}

#[test]
fn core_357_the_planner_takes_virtual_pods_like_any_other() {
    let now = made(vec![of_template(json!({"replicas": 2})), template("1")]);
    let ask = Ask {
        catalogs: &BTreeMap::new(),
        policy: joiner_model::Policy::default(),
        now: at(2_000_000_000),
        planned: &BTreeSet::new(),
        headroom: &virtual_pods(&now),
    };
    let asked = now.problem(&ask).unwrap();
    let names: Vec<&str> = asked.headroom.iter().map(AsRef::as_ref).collect();
    assert_eq!(names, ["ns/capacity-buffer-b-1", "ns/capacity-buffer-b-2"]);
    assert_eq!(asked.problem.pods.len(), 2);
    for pod in &asked.problem.pods {
        assert_eq!((&pod.node, &pod.ignored), (&None, &None), "{}", pod.name);
    }
    assert!(asked.ignored.is_empty());
}

#[test]
fn core_358_what_a_plan_made_of_the_pods() {
    let ready = json!({"status": {"conditions": [{"type": "ReadyForProvisioning",
        "status": "True", "reason": "Resolved", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let (kind, object) = of_template(json!({"replicas": 3}));
    let now = made(vec![(kind, merged(object, ready)), template("1")]);
    let buffer = now.buffer("ns/b").unwrap();
    let pods = virtual_pods(&now);
    for (places, expected) in [
        (
            [Placed::Existing; 3],
            "True FitsExistingCapacity: all 3 virtual pods fit on capacity that is there",
        ),
        (
            [Placed::Existing, Placed::New, Placed::Nowhere],
            "False RequiresNewCapacity: 1/3 virtual pods need new capacity, 1 fit nowhere",
        ),
    ] {
        let placed = |name: &str| {
            let at = pods.iter().position(|pod| {
                name == format!("ns/{}", pod.object["metadata"]["name"].as_str().unwrap())
            });
            places[at.unwrap()]
        };
        let outcomes = outcomes(&pods, placed);
        let written = provisioning(buffer, outcomes["ns/b"], at(2_000_000_000)).unwrap();
        let conditions: Vec<Condition> =
            serde_json::from_value(written.patch["status"]["conditions"].clone()).unwrap();
        let told = conditions.condition(&PROVISIONING).unwrap();
        let (reason, message) = (told.reason.clone().unwrap(), told.message.clone().unwrap());
        assert_eq!(format!("{} {reason}: {message}", told.status), expected);
    }
    assert!(provisioning(buffer, BufferOutcome::default(), at(100)).is_none());
}

#[test]
fn a_target_that_appears_concerns_the_buffers_that_name_it() {
    let now = made(vec![of_scalable("Deployment", json!({"replicas": 1}))]);
    let change = |kind: Kind, name: &str| Change {
        kind,
        name: name.into(),
        what: What::Appeared,
        about: None,
    };
    for (kind, name, is_concerned) in [
        (Kind::Deployment, "ns/w", true),
        (Kind::Deployment, "other/w", false),
        (Kind::StatefulSet, "ns/w", false),
        (Kind::CapacityBuffer, "ns/b", true),
        (Kind::Pod, "ns/w", false),
    ] {
        let keys = concerned(&change(kind, name), &now);
        assert_eq!(!keys.is_empty(), is_concerned, "{kind:?} {name}");
    }
}
