//! Volumes: the numbered behaviors 171 and 187 to 198.

use joiner_testkit::{HOSTNAME, PodBuilder, World, ZONE, instance_type, node, pod, pool};
use serde_json::{Value, json};

const EBS: &str = "ebs.csi.aws.com";

/// One type of two cores, in zones a, b and c.
fn world() -> World {
    World::new()
        .add(pool("default"))
        .add(instance_type("small").cpu("2").price(0.1))
}

fn app(name: &str) -> PodBuilder {
    pod(name).cpu("500m")
}

/// A class that waits for its first consumer, in one of these groups of zones.
fn class(name: &str, terms: &[&[&str]]) -> Value {
    let terms: Vec<Value> = (terms.iter())
        .map(|zones| json!({"matchLabelExpressions": [{"key": ZONE, "values": zones}]}))
        .collect();
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name}, "provisioner": EBS,
        "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": terms})
}

/// A claim that is not bound yet.
fn claim(name: &str, class: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"storageClassName": class}})
}

/// A claim bound to the volume of the same name.
fn bound_claim(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"storageClassName": "", "volumeName": name},
        "status": {"phase": "Bound"}})
}

fn volume(name: &str, source: &Value, terms: &[Value]) -> Value {
    let mut spec = source.clone();
    if !terms.is_empty() {
        let terms: Vec<Value> = terms
            .iter()
            .map(|e| json!({"matchExpressions": e}))
            .collect();
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name}, "spec": spec})
}

fn csi() -> Value {
    json!({"csi": {"driver": EBS, "volumeHandle": "vol"}})
}

fn is(key: &str, value: &str) -> Value {
    json!([{"key": key, "operator": "In", "values": [value]}])
}

/// A bound claim and its volume, reachable in any of these zones.
fn bound_in(world: World, name: &str, zones: &[&str]) -> World {
    let terms: Vec<Value> = zones.iter().map(|zone| is(ZONE, zone)).collect();
    world
        .add(bound_claim(name))
        .add(volume(name, &csi(), &terms))
}

fn ephemeral(spec: Value) -> Value {
    json!({"spec": {"volumes": [{"name": "scratch",
        "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]}})
}

/// Adds a deletion timestamp.
fn deleting(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object
}

#[test]
fn core_171_zones_of_volumes_do_not_change_the_domains() {
    let spread = |pod: PodBuilder, skew| {
        let pod = pod.label("app", "web").spread_with(
            ZONE,
            skew,
            json!({"minDomains": 3,
            "labelSelector": {"matchLabels": {"app": "web"}}}),
        );
        pod.cpu("500m")
    };
    let mut each = world();
    for (name, zone) in [("one", "a"), ("two", "b"), ("three", "c")] {
        each = bound_in(each, name, &[zone]).add(spread(pod(name), 1).volume_claim(name));
    }
    each.solve()
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:1 b:1 c:1");

    // No pod can reach zone c, yet it counts as the emptiest.
    let mut two = world().add(class("zonal", &[&["a", "b"]]));
    for name in ["one", "two", "three"] {
        two = two.add(claim(name, "zonal"));
    }
    let pods = |skew| ["one", "two", "three"].map(|n| spread(pod(n), skew).volume_claim(n));
    let outcome = two.clone().add(pods(1)).solve();
    outcome.assert_counts(ZONE, "web", "a:1 b:1");
    assert_eq!(outcome.plan.unplaced.len(), 1, "{outcome}");
    two.add(pods(2)).solve().assert_all_placed();
}

#[test]
fn core_187_one_missing_object_holds_back_one_pod() {
    let dangling = bound_claim("dangling");
    let outcome = world()
        .add(claim("no-class", "gone"))
        .add(dangling)
        .add(app("one").volume_claim("absent"))
        .add(app("two").volume_claim("no-class"))
        .add(app("three").volume_claim("dangling"))
        .add(app("fine"))
        .solve();
    outcome.assert_on_new_node("fine");
    outcome.assert_left_over("one", "absent does not exist");
    outcome.assert_left_over("two", "StorageClass gone does not exist");
    outcome.assert_left_over("three", "PersistentVolume dangling, which does not exist");
}

#[test]
fn core_188_classes_of_bound_and_unbound_claims() {
    for class in [json!(""), json!("gone"), Value::Null] {
        let mut claim = bound_claim("data");
        claim["spec"]["storageClassName"] = class;
        let world = world().add(claim).add(volume("data", &csi(), &[]));
        world
            .add(app("web").volume_claim("data"))
            .solve()
            .assert_all_placed();
    }
    let outcome = world()
        .add(claim("data", ""))
        .add(app("web").volume_claim("data"))
        .solve();
    outcome.assert_left_over("web", "no storage class");
}

#[test]
fn core_189_zones_of_a_class() {
    let zonal = || {
        world()
            .add(class("zonal", &[&["c"]]))
            .add(claim("data", "zonal"))
    };
    let outcome = zonal().add(app("web").volume_claim("data")).solve();
    outcome.assert_all_placed().assert_zone("web", "c");
    assert_eq!(outcome.open("web", ZONE).len(), 1, "{outcome}");
    let outcome = zonal()
        .add(app("web").volume_claim("data").zone("a"))
        .solve();
    outcome.assert_left_over("web", "volumes");

    let scratch = || ephemeral(json!({"storageClassName": "zonal"}));
    let outcome = zonal().add(app("web").patch(scratch())).solve();
    outcome.assert_all_placed().assert_zone("web", "c");
    let outcome = zonal().add(app("web").patch(scratch()).zone("a")).solve();
    outcome.assert_left_over("web", "volumes");
}

#[test]
fn core_190_zones_of_a_bound_volume() {
    let outcome = bound_in(world(), "data", &["b"])
        .add(app("web").volume_claim("data"))
        .solve();
    outcome.assert_all_placed().assert_zone("web", "b");
    let pinned = app("web").volume_claim("data").zone("a");
    let outcome = bound_in(world(), "data", &["b"]).add(pinned).solve();
    outcome.assert_left_over("web", "volumes");
    // A node with room in another zone is of no use.
    let world = bound_in(world().add(node("roomy").zone("a")), "data", &["b"]);
    let outcome = world.add(app("web").volume_claim("data")).solve();
    outcome.assert_all_placed().assert_on_new_node("web");
}

#[test]
fn core_190_pods_of_two_zones_do_not_share_a_node() {
    let world = bound_in(bound_in(world(), "one", &["a"]), "two", &["b"]);
    let outcome = world
        .add(app("one").volume_claim("one"))
        .add(app("two").volume_claim("two"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_zone("one", "a")
        .assert_zone("two", "b");
}

#[test]
fn core_190_other_pods_leave_the_zone_to_those_with_a_volume_there() {
    let web = |name: &str| app(name).label("app", "web");
    // Two volumes in one zone, and room for both as long as the loose pods go elsewhere.
    let world = bound_in(bound_in(world(), "one", &["b"]), "two", &["b"]);
    let outcome = world
        .add(["one", "two"].map(|name| web(name).volume_claim(name).spread_over_zones(1)))
        .add(web("loose").replicas(4).spread_over_zones(1))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2 c:2");

    let world = bound_in(bound_in(self::world(), "one", &["a", "b"]), "two", &["a"]);
    let pods =
        ["one", "two"].map(|name| web(name).volume_claim(name).anti_affinity_to(ZONE, "web"));
    let outcome = world.add(pods).solve();
    outcome
        .assert_all_placed()
        .assert_zone("one", "b")
        .assert_zone("two", "a");
}

#[test]
fn core_191_any_of_several_terms() {
    for zone in ["a", "c"] {
        let world = bound_in(world(), "data", &["a", "c"]);
        let outcome = world
            .add(app("web").volume_claim("data").zone(zone))
            .solve();
        outcome.assert_all_placed().assert_zone("web", zone);
        let by_class = self::world()
            .add(class("any", &[&["a"], &["c"]]))
            .add(claim("data", "any"));
        let outcome = by_class
            .add(app("web").volume_claim("data").zone(zone))
            .solve();
        outcome.assert_all_placed().assert_zone("web", zone);
    }
    let two = |one: &[&str], other: &[&str]| {
        let world = bound_in(bound_in(world(), "one", one), "two", other);
        world
            .add(app("web").volume_claim("one").volume_claim("two"))
            .solve()
    };
    two(&["a", "b"], &["b", "c"])
        .assert_all_placed()
        .assert_zone("web", "b");
    two(&["a"], &["b"]).assert_left_over("web", "volumes");
}

#[test]
fn core_191_pods_that_meet_in_one_of_several_zones() {
    // One node in zone b serves both.
    let world = bound_in(bound_in(world(), "one", &["a", "b"]), "two", &["b", "c"]);
    let outcome = world
        .add(app("one").volume_claim("one"))
        .add(app("two").volume_claim("two"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_zone("one", "b")
        .assert_price(0.1);
}

#[test]
fn core_192_volumes_of_one_host() {
    let pinned = |source: Value| {
        let terms = [is(HOSTNAME, "gone")];
        let world = world()
            .add(bound_claim("data"))
            .add(volume("data", &source, &terms));
        world.add(app("web").volume_claim("data"))
    };
    pinned(json!({"local": {"path": "/x"}}))
        .solve()
        .assert_all_placed();
    pinned(json!({"hostPath": {"path": "/x"}}))
        .solve()
        .assert_all_placed();
    let outcome = pinned(csi()).solve();
    outcome.assert_left_over("web", "volumes");
    let outcome = pinned(csi()).add(node("gone")).add(node("other")).solve();
    outcome.assert_on("web", "gone");

    // A zone beside the host still counts.
    let both = json!([{"key": HOSTNAME, "operator": "In", "values": ["gone"]},
        {"key": ZONE, "operator": "In", "values": ["c"]}]);
    let local = volume("data", &json!({"local": {"path": "/x"}}), &[both]);
    let outcome = world()
        .add(bound_claim("data"))
        .add(local)
        .add(app("web").volume_claim("data"));
    outcome.solve().assert_all_placed().assert_zone("web", "c");
}

#[test]
fn core_193_volumes_that_are_not_ready() {
    let mut immediate = class("immediate", &[]);
    immediate["volumeBindingMode"] = json!("Immediate");
    let mut lost = bound_claim("lost");
    lost["status"]["phase"] = json!("Lost");
    let outcome = world()
        .add(immediate)
        .add(class("waits", &[]))
        .add([
            claim("at-once", "immediate"),
            deleting(claim("leaving", "waits")),
            bound_claim("volume-leaving"),
            deleting(volume("volume-leaving", &csi(), &[])),
            lost,
        ])
        .add(["at-once", "leaving", "volume-leaving", "lost"].map(|n| app(n).volume_claim(n)))
        .add(app("fine"))
        .solve();
    outcome.assert_on_new_node("fine");
    outcome.assert_left_over("at-once", "binds at once");
    outcome.assert_left_over("leaving", "is being deleted");
    outcome.assert_left_over(
        "volume-leaving",
        "PersistentVolume volume-leaving is being deleted",
    );
    outcome.assert_left_over("lost", "has lost its PersistentVolume");
}

#[test]
fn core_194_binding_must_be_complete() {
    let mut half = bound_claim("half");
    half["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("annotations");
    let outcome = world()
        .add([
            half,
            volume("half", &csi(), &[]),
            bound_claim("done"),
            volume("done", &csi(), &[]),
        ])
        .add(["half", "done"].map(|name| app(name).volume_claim(name)))
        .solve();
    outcome.assert_on_new_node("done");
    outcome.assert_left_over("half", "bind-completed");
}

#[test]
fn core_196_limits_of_drivers() {
    let mut full = world()
        .add(class("waits", &[]))
        .add(node("limited").volume_limit(EBS, 2));
    for name in ["one", "two", "three"] {
        full = full
            .add(claim(name, "waits"))
            .add(app(name).volume_claim(name));
    }
    let outcome = full.solve();
    outcome.assert_all_placed().assert_new_nodes(1);
    let on_node = |name: &&str| outcome.seat(name).node == "limited";
    assert_eq!(
        ["one", "two", "three"]
            .iter()
            .filter(|n| on_node(n))
            .count(),
        2,
        "{outcome}"
    );
}

#[test]
fn core_196_running_pods_use_up_the_limit() {
    let world = world()
        .add(class("waits", &[]))
        .add(node("limited").volume_limit(EBS, 1))
        .add([claim("old", "waits"), claim("new", "waits")])
        .add(app("old").volume_claim("old").on("limited"));
    let outcome = world.clone().add(app("new").volume_claim("new")).solve();
    outcome.assert_all_placed().assert_on_new_node("new");
    // The same claim does not count twice.
    let outcome = world.add(app("new").volume_claim("old")).solve();
    outcome.assert_on("new", "limited");
}

#[test]
fn core_196_pods_that_share_a_claim() {
    let world = world()
        .add(class("waits", &[]))
        .add(node("limited").volume_limit(EBS, 1));
    let shared = pod("web").replicas(8).volume_claim("shared");
    let outcome = world.add(claim("shared", "waits")).add(shared).solve();
    outcome.assert_all_placed().assert_new_nodes(0);
}

#[test]
fn core_196_volumes_without_a_driver() {
    let nfs = json!({"nfs": {"server": "s", "path": "/"}});
    let mut world = world().add(node("limited").volume_limit(EBS, 1));
    for name in ["one", "two", "three"] {
        world = world.add(bound_claim(name)).add(volume(name, &nfs, &[]));
        world = world.add(app(name).volume_claim(name));
    }
    world.solve().assert_all_placed().assert_new_nodes(0);
}

#[test]
fn core_196_new_nodes_have_no_limit() {
    let mut world = world().add(class("waits", &[]));
    for ix in 0..60 {
        let name = format!("pod-{ix}");
        world = world
            .add(claim(&name, "waits"))
            .add(pod(&name).cpu("10m").volume_claim(&name));
    }
    world.solve().assert_all_placed().assert_new_nodes(1);
}

#[test]
fn core_197_class_of_an_ephemeral_volume() {
    let default = |name: &str, zone: &str, year: u32| {
        let mut class = class(name, &[&[zone]]);
        class["metadata"]["annotations"] =
            json!({"storageclass.kubernetes.io/is-default-class": "true"});
        class["metadata"]["creationTimestamp"] = json!(format!("{year}-01-01T00:00:00Z"));
        class
    };
    let named = ephemeral(json!({"storageClassName": "named"}));
    let unnamed = ephemeral(json!({}));
    let one = world()
        .add(class("named", &[&["a"]]))
        .add(default("older", "b", 2024));
    one.clone()
        .add(app("web").patch(named))
        .solve()
        .assert_zone("web", "a");
    one.clone()
        .add(app("web").patch(unnamed.clone()))
        .solve()
        .assert_zone("web", "b");
    let two = one.add(default("newer", "c", 2025));
    two.add(app("web").patch(unnamed.clone()))
        .solve()
        .assert_zone("web", "c");
    let outcome = world().add(app("web").patch(unnamed)).solve();
    outcome.assert_left_over("web", "no storage class");
}

#[test]
fn core_198_in_tree_volumes_count_for_their_driver() {
    let in_tree = json!({"awsElasticBlockStore": {"volumeID": "vol"}});
    let mut old_class = class("in-tree", &[]);
    old_class["provisioner"] = json!("kubernetes.io/aws-ebs");
    let world = world()
        .add(node("limited").volume_limit(EBS, 1))
        .add([bound_claim("old"), volume("old", &in_tree, &[]), old_class])
        .add(claim("new", "in-tree"))
        .add(["old", "new"].map(|name| app(name).volume_claim(name)));
    let outcome = world.solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_apart("old", "new");
}
