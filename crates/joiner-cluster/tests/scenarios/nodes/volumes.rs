//! Claims, volumes, and the pods that wait for them.

use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::nodes::world::{
    ATTACHMENTS, CLAIMS, CLASSES, CSI_NODES, NODES, PODS, VOLUMES, World, merge, node, pod, zone,
};

const ZONE: &str = "topology.kubernetes.io/zone";

fn world(zones: &[&str]) -> World {
    let mut world = World::whole();
    for name in zones {
        world.create(NODES, node(&format!("{name}1"), zone(name)));
    }
    world
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "provisioner": provisioner,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": mode,
    })
}

fn claim(name: &str, class: &str, more: Value) -> Value {
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
        "status": {"phase": "Pending"},
    });
    merge(&mut claim, &more);
    claim
}

fn volume(name: &str, class: &str, size: &str, more: Value) -> Value {
    let mut volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": class,
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    });
    merge(&mut volume, &more);
    volume
}

fn using(claim: &str) -> Value {
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    json!({"spec": {"volumes": volumes}})
}

fn only_in(zone: &str) -> Value {
    let expression = json!({"key": ZONE, "operator": "In", "values": [zone]});
    let terms = json!([{"matchExpressions": [expression]}]);
    json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}})
}

fn phase(world: &World, claim: &str) -> String {
    world.get(CLAIMS, claim)["status"]["phase"]
        .as_str()
        .unwrap_or("")
        .to_owned()
}

#[test]
fn the_first_consumer_decides_where_the_volume_is() {
    let mut world = world(&["a", "b"]);
    world.create(
        CLASSES,
        class("gp3", "ebs.csi.aws.com", "WaitForFirstConsumer"),
    );
    world.create(CLAIMS, claim("data", "gp3", json!({})));
    world.pass(5);
    assert_eq!(phase(&world, "data"), "Pending");
    assert_eq!(
        world.events("WaitForFirstConsumer"),
        ["waiting for first consumer to be created before binding"]
    );
    let mut more = using("data");
    more["spec"]["nodeSelector"] = json!({ZONE: "b"});
    world.create(PODS, pod("p", "100m", more));
    world.pass(5);
    let data = world.get(CLAIMS, "data");
    assert_eq!(phase(&world, "data"), "Bound");
    assert_eq!(
        meta::annotation(&data, "volume.kubernetes.io/selected-node"),
        Some("b1")
    );
    assert_eq!(world.node_of("p").as_deref(), Some("b1"));
    let made = world.get(VOLUMES, data["spec"]["volumeName"].as_str().unwrap());
    assert_eq!(made["status"]["phase"], "Bound");
    assert_eq!(made["spec"]["csi"]["driver"], "ebs.csi.aws.com");
    assert_eq!(made["spec"]["capacity"]["storage"], "10Gi");
    let expression = &made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0];
    assert_eq!(expression["matchExpressions"][0]["values"], json!(["b"]));
    let attachments = world.list(ATTACHMENTS);
    assert_eq!(attachments.len(), 1);
    assert_eq!(attachments[0]["spec"]["nodeName"], "b1");
    assert_eq!(attachments[0]["status"]["attached"], true);

    // A later pod has to follow the volume.
    let mut more = using("data");
    more["spec"]["nodeSelector"] = json!({ZONE: "a"});
    world.create(PODS, pod("q", "100m", more));
    world.settle();
    let [_, _, message] = world.condition(PODS, "q", "PodScheduled");
    assert!(
        message.contains("1 node(s) didn't match PersistentVolume's node affinity"),
        "{message}"
    );
}

#[test]
fn what_is_in_use_is_protected_and_what_is_left_is_reclaimed() {
    let mut world = world(&["a"]);
    world.create(
        CLASSES,
        class("gp3", "ebs.csi.aws.com", "WaitForFirstConsumer"),
    );
    world.create(CLAIMS, claim("data", "gp3", json!({})));
    world.create(PODS, pod("p", "100m", using("data")));
    world.pass(5);
    world.delete(CLAIMS, "data");
    world.pass(5);
    assert!(world.find(CLAIMS, "data").is_some(), "a pod uses it");
    world.delete(PODS, "p");
    world.pass(5);
    assert!(world.find(CLAIMS, "data").is_none());
    assert!(world.list(VOLUMES).is_empty(), "deleted with its claim");
    assert!(world.list(ATTACHMENTS).is_empty());
}

#[test]
fn immediate_claims_are_bound_at_once_to_the_smallest_that_fits() {
    let mut world = world(&["a", "b"]);
    world.create(VOLUMES, volume("large", "", "100Gi", json!({})));
    world.create(VOLUMES, volume("fitting", "", "20Gi", only_in("b")));
    world.create(VOLUMES, volume("small", "", "5Gi", json!({})));
    world.create(CLAIMS, claim("data", "", json!({})));
    world.create(PODS, pod("p", "100m", using("data")));
    world.pass(5);
    let data = world.get(CLAIMS, "data");
    assert_eq!(data["spec"]["volumeName"], "fitting");
    assert_eq!(data["status"]["capacity"]["storage"], "20Gi");
    assert_eq!(world.node_of("p").as_deref(), Some("b1"));
    assert_eq!(world.get(VOLUMES, "small")["status"]["phase"], "Available");
    world.delete(PODS, "p");
    world.pass(2);
    world.delete(CLAIMS, "data");
    world.pass(1);
    assert_eq!(
        world.get(VOLUMES, "fitting")["status"]["phase"],
        "Released",
        "kept"
    );
}

#[test]
fn a_pod_waits_for_an_immediate_claim() {
    let mut world = world(&["a"]);
    world.create(CLAIMS, claim("data", "missing", json!({})));
    world.create(PODS, pod("p", "100m", using("data")));
    world.pass(1);
    let [_, _, message] = world.condition(PODS, "p", "PodScheduled");
    assert!(
        message.starts_with(
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. "
        ),
        "{message}"
    );
    world.create(CLASSES, class("missing", "example.com/disk", "Immediate"));
    world.pass(5);
    assert_eq!(phase(&world, "data"), "Bound");
    assert_eq!(world.node_of("p").as_deref(), Some("a1"));
}

#[test]
fn local_volumes_and_allowed_topologies_limit_the_nodes() {
    let mut world = world(&["a", "b"]);
    world.create(
        CLASSES,
        class(
            "local",
            "kubernetes.io/no-provisioner",
            "WaitForFirstConsumer",
        ),
    );
    world.create(VOLUMES, volume("disk", "local", "10Gi", only_in("a")));
    let mut limited = class("limited", "ebs.csi.aws.com", "WaitForFirstConsumer");
    let expressions = json!([{"key": ZONE, "values": ["b"]}]);
    limited["allowedTopologies"] = json!([{"matchLabelExpressions": expressions}]);
    world.create(CLASSES, limited);
    for (name, class) in [("one", "local"), ("two", "local"), ("three", "limited")] {
        world.create(CLAIMS, claim(name, class, json!({})));
        world.create(PODS, pod(name, "100m", using(name)));
        world.pass(3);
    }
    assert_eq!(world.node_of("one").as_deref(), Some("a1"));
    assert_eq!(world.node_of("three").as_deref(), Some("b1"));
    let [_, _, message] = world.condition(PODS, "two", "PodScheduled");
    assert!(
        message.contains("2 node(s) didn't find available persistent volumes to bind"),
        "{message}"
    );
}

#[test]
fn nodes_take_only_so_many_volumes() {
    let mut world = world(&["a"]);
    world.create(
        CLASSES,
        class("gp3", "ebs.csi.aws.com", "WaitForFirstConsumer"),
    );
    let driver = json!({"name": "ebs.csi.aws.com", "nodeID": "i", "allocatable": {"count": 2}});
    world.create(
        CSI_NODES,
        json!({"metadata": {"name": "a1"}, "spec": {"drivers": [driver]}}),
    );
    for ix in 0..3 {
        let name = format!("p{ix}");
        world.create(CLAIMS, claim(&name, "gp3", json!({})));
        world.create(PODS, pod(&name, "100m", using(&name)));
    }
    world.pass(5);
    assert!(world.node_of("p0").is_some() && world.node_of("p1").is_some());
    let [_, _, message] = world.condition(PODS, "p2", "PodScheduled");
    assert!(
        message.contains("1 node(s) exceed max volume count"),
        "{message}"
    );
}

#[test]
fn a_volume_for_one_pod_is_for_one_pod() {
    let mut world = world(&["a"]);
    world.create(CLASSES, class("gp3", "ebs.csi.aws.com", "Immediate"));
    let alone = json!({"spec": {"accessModes": ["ReadWriteOncePod"]}});
    world.create(CLAIMS, claim("data", "gp3", alone));
    world.create(PODS, pod("p", "100m", using("data")));
    world.pass(3);
    world.create(PODS, pod("q", "100m", using("data")));
    world.pass(3);
    let [_, _, message] = world.condition(PODS, "q", "PodScheduled");
    assert!(
        message.contains("ReadWriteOncePod access mode already in-use"),
        "{message}"
    );
}

#[test]
fn claims_without_a_class_get_the_default_one_and_ephemeral_ones_are_made() {
    let mut world = world(&["a"]);
    let mut default = class("gp3", "ebs.csi.aws.com", "WaitForFirstConsumer");
    let is_default = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    default["metadata"]["annotations"] = is_default;
    world.create(CLASSES, default);
    let mut spec = claim("x", "", json!({}))["spec"].clone();
    spec.as_object_mut().unwrap().remove("storageClassName");
    let template = json!({"volumeClaimTemplate": {"spec": spec}});
    let volumes = json!([{"name": "scratch", "ephemeral": template}]);
    world.create(
        PODS,
        pod("p", "100m", json!({"spec": {"volumes": volumes}})),
    );
    world.pass(5);
    let made = world.get(CLAIMS, "p-scratch");
    assert_eq!(made["spec"]["storageClassName"], "gp3");
    assert_eq!(made["metadata"]["ownerReferences"][0]["name"], "p");
    assert_eq!(phase(&world, "p-scratch"), "Bound");
    assert!(world.node_of("p").is_some());
}
