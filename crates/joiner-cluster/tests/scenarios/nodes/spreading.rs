//! Pods that care about other pods.

use joiner_cluster::Scheduler;
use serde_json::{Value, json};

use crate::nodes::world::{NODES, PODS, World, merge, node, pod, zone};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// Nodes `a1`, `a2`, `b1` and so on: the first letter is the zone.
fn world(nodes: &[&str]) -> World {
    let mut world = World::new(vec![Box::new(Scheduler::default())]);
    world.create(("", "namespaces"), json!({"metadata": {"name": "default"}}));
    for name in nodes {
        world.create(NODES, node(name, zone(&name[..1])));
    }
    world
}

fn labeled(app: &str, more: Value) -> Value {
    let mut all = json!({"metadata": {"labels": {"app": app}}});
    merge(&mut all, &more);
    all
}

fn spread(key: &str, skew: i64, more: Value) -> Value {
    let mut constraint = json!({
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    });
    merge(&mut constraint, &more);
    labeled(
        "web",
        json!({"spec": {"topologySpreadConstraints": [constraint]}}),
    )
}

fn term(kind: &str, app: &str, key: &str) -> Value {
    let term = json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key});
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    json!({"spec": {"affinity": {kind: terms}}})
}

/// How many of the pods are in each zone.
fn by_zone(world: &World, zones: &[&str]) -> Vec<usize> {
    let pods = world.list(PODS);
    let placed = pods
        .iter()
        .filter_map(|pod| pod["spec"]["nodeName"].as_str());
    let placed: Vec<&str> = placed.collect();
    let count = |zone: &&str| placed.iter().filter(|name| name.starts_with(zone)).count();
    zones.iter().map(count).collect()
}

fn refusal(world: &World, pod: &str) -> String {
    let [_, _, message] = world.condition(PODS, pod, "PodScheduled");
    let reasons = message.split_once(": ").unwrap().1;
    reasons.split(". preemption:").next().unwrap().to_owned()
}

#[test]
fn zones_are_kept_even() {
    let mut world = world(&["a1", "a2", "a3", "b1", "c1"]);
    for ix in 0..6 {
        world.create(
            PODS,
            pod(&format!("p{ix}"), "100m", spread(ZONE, 1, json!({}))),
        );
    }
    world.settle();
    assert_eq!(by_zone(&world, &["a", "b", "c"]), [2, 2, 2]);
}

#[test]
fn a_full_zone_holds_the_others_back() {
    let mut world = world(&["a1", "b1"]);
    for ix in 0..4 {
        world.create(
            PODS,
            pod(&format!("p{ix}"), "100m", spread(ZONE, 1, json!({}))),
        );
    }
    let big = json!({"spec": {"nodeName": "b1"}});
    world.create(PODS, pod("load", "3950m", big));
    world.settle();
    assert_eq!(by_zone(&world, &["a"]), [1]);
    assert_eq!(
        refusal(&world, "p3"),
        "1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints"
    );
}

#[test]
fn spread_has_fine_print() {
    // What is changed, and how many of three pods find a place on nodes a1, b1 (tainted) and x
    // (without a zone).
    let cases = [
        ("plain: the tainted zone counts", json!({}), 1),
        ("taints honored", json!({"nodeTaintsPolicy": "Honor"}), 3),
        (
            "more domains wanted",
            json!({"nodeTaintsPolicy": "Honor", "minDomains": 2}),
            1,
        ),
    ];
    for (what, more, expected) in cases {
        let mut world = world(&["a1"]);
        let mut tainted = zone("b");
        tainted["spec"] = json!({"taints": [{"key": "x", "effect": "NoSchedule"}]});
        world.create(NODES, node("b1", tainted));
        world.create(NODES, node("x", json!({})));
        for ix in 0..3 {
            world.create(
                PODS,
                pod(&format!("p{ix}"), "100m", spread(ZONE, 1, more.clone())),
            );
        }
        world.settle();
        assert_eq!(by_zone(&world, &["a", "x"]), [expected, 0], "{what}");
    }
}

#[test]
fn node_affinity_limits_the_zones_that_count() {
    let mut world = world(&["a1", "b1"]);
    for (name, policy) in [("honored", "Honor"), ("ignored", "Ignore")] {
        for ix in 0..2 {
            let mut more = spread(
                ZONE,
                1,
                json!({
                    "nodeAffinityPolicy": policy,
                    "labelSelector": {"matchLabels": {"app": name}},
                }),
            );
            merge(
                &mut more,
                &json!({
                    "metadata": {"labels": {"app": name}},
                    "spec": {"nodeSelector": {ZONE: "a"}},
                }),
            );
            world.create(PODS, pod(&format!("{name}-{ix}"), "100m", more));
        }
    }
    world.settle();
    assert!(world.node_of("honored-1").is_some());
    assert!(world.node_of("ignored-1").is_none());
}

#[test]
fn revisions_spread_apart_by_match_label_keys() {
    let mut world = world(&["a1", "b1"]);
    let revision = |number: &str| {
        let mut more = spread(ZONE, 1, json!({"matchLabelKeys": ["rev"]}));
        more["metadata"]["labels"]["rev"] = json!(number);
        more
    };
    let mut old = revision("1");
    old["spec"]["nodeName"] = json!("a1");
    for ix in 0..3 {
        world.create(PODS, pod(&format!("old{ix}"), "100m", old.clone()));
    }
    for ix in 0..2 {
        world.create(PODS, pod(&format!("new{ix}"), "100m", revision("2")));
    }
    world.settle();
    assert_eq!(
        by_zone(&world, &["a", "b"]),
        [4, 1],
        "the old ones do not count"
    );
}

#[test]
fn soft_spread_prefers_empty_zones() {
    let mut world = world(&["a1", "b1", "c1"]);
    let soft = spread(ZONE, 1, json!({"whenUnsatisfiable": "ScheduleAnyway"}));
    for ix in 0..6 {
        world.create(PODS, pod(&format!("p{ix}"), "10m", soft.clone()));
    }
    world.settle();
    assert_eq!(by_zone(&world, &["a", "b", "c"]), [2, 2, 2]);
}

#[test]
fn replicas_are_spread_by_default() {
    let mut world = world(&["b1", "c1"]);
    let mut huge = zone("a");
    huge["status"] = json!({"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}});
    world.create(NODES, node("a1", huge));
    let selector = json!({"matchLabels": {"app": "web"}});
    let set = json!({"metadata": {"name": "web"}, "spec": {"selector": selector}});
    world.create(("apps", "replicasets"), set);
    let owner = json!({"kind": "ReplicaSet", "name": "web", "controller": true});
    let owned = labeled("web", json!({"metadata": {"ownerReferences": [owner]}}));
    for (family, more) in [("owned", owned), ("alone", json!({}))] {
        for ix in 0..3 {
            world.create(PODS, pod(&format!("{family}-{ix}"), "100m", more.clone()));
        }
        world.settle();
    }
    let nodes = |family: &str| {
        let nodes = (0..3).map(|ix| world.node_of(&format!("{family}-{ix}")).unwrap());
        nodes.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(
        (nodes("owned"), nodes("alone")),
        (3, 1),
        "the huge node tempts those alone"
    );
}

#[test]
fn affinity_brings_pods_together() {
    let mut world = world(&["a1", "a2", "b1"]);
    world.create(
        PODS,
        pod(
            "db",
            "100m",
            labeled("db", json!({"spec": {"nodeName": "a1"}})),
        ),
    );
    for ix in 0..4 {
        world.create(
            PODS,
            pod(&format!("p{ix}"), "100m", term("podAffinity", "db", ZONE)),
        );
    }
    world.settle();
    assert_eq!(by_zone(&world, &["a", "b"]), [5, 0]);
}

#[test]
fn the_first_of_its_kind_may_stand_alone() {
    let mut world = world(&["a1", "b1"]);
    let more = |app: &str| labeled(app, term("podAffinity", "web", ZONE));
    world.create(PODS, pod("stranger", "100m", more("cache")));
    world.settle();
    assert_eq!(
        refusal(&world, "stranger"),
        "2 node(s) didn't match pod affinity rules"
    );
    for ix in 0..3 {
        world.create(PODS, pod(&format!("p{ix}"), "100m", more("web")));
    }
    world.settle();
    let first = world.node_of("p0");
    assert!(first.is_some());
    assert!((0..3).all(|ix| world.node_of(&format!("p{ix}")) == first));
    assert_eq!(
        world.node_of("stranger"),
        first,
        "there is somebody to join now"
    );
}

#[test]
fn anti_affinity_works_both_ways() {
    let mut world = world(&["a1", "b1"]);
    let shy = labeled("shy", term("podAntiAffinity", "loud", HOST));
    world.create(PODS, pod("p0", "100m", shy.clone()));
    world.settle();
    let taken = world.node_of("p0").unwrap();
    world.create(PODS, pod("q0", "100m", labeled("loud", json!({}))));
    world.settle();
    assert!(world.node_of("q0").is_some_and(|node| node != taken));
    // Now every node has one or the other.
    world.create(PODS, pod("p1", "4", shy));
    world.create(PODS, pod("q1", "4", labeled("loud", json!({}))));
    world.settle();
    assert_eq!(
        refusal(&world, "q1"),
        "2 Insufficient cpu",
        "room is looked at first"
    );
    world.create(
        PODS,
        pod(
            "q2",
            "100m",
            labeled("loud", json!({"spec": {"nodeSelector": {HOST: taken}}})),
        ),
    );
    world.settle();
    assert_eq!(
        refusal(&world, "q2"),
        "1 node(s) didn't match Pod's node affinity/selector, \
         1 node(s) didn't satisfy existing pods anti-affinity rules"
    );
}

#[test]
fn one_pod_per_host() {
    let mut world = world(&["a1", "b1"]);
    for ix in 0..3 {
        let more = labeled("web", term("podAntiAffinity", "web", HOST));
        world.create(PODS, pod(&format!("p{ix}"), "100m", more));
    }
    world.settle();
    assert_eq!(by_zone(&world, &["a", "b"]), [1, 1]);
    assert_eq!(
        refusal(&world, "p2"),
        "2 node(s) didn't match pod anti-affinity rules"
    );
}

#[test]
fn terms_reach_into_other_namespaces_only_when_they_say_so() {
    for (what, namespaces, apart) in [
        ("own namespace only", json!({}), false),
        ("listed", json!({"namespaces": ["other"]}), true),
        (
            "chosen",
            json!({"namespaceSelector": {"matchLabels": {"team": "x"}}}),
            true,
        ),
        ("all", json!({"namespaceSelector": {}}), true),
        (
            "none chosen",
            json!({"namespaceSelector": {"matchLabels": {"team": "y"}}}),
            false,
        ),
    ] {
        let mut world = world(&["a1"]);
        let labels = json!({"metadata": {"name": "other", "labels": {"team": "x"}}});
        world.create(("", "namespaces"), labels);
        let mut there = labeled("web", json!({"spec": {"nodeName": "a1"}}));
        there["metadata"]["namespace"] = json!("other");
        world.create(PODS, pod("there", "100m", there));
        let mut more = term("podAntiAffinity", "web", HOST);
        let terms = &mut more["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            [0];
        merge(terms, &namespaces);
        world.create(PODS, pod("p", "100m", more));
        world.settle();
        assert_eq!(world.node_of("p").is_none(), apart, "{what}");
    }
}

#[test]
fn wishes_about_pods_count_when_there_is_a_choice() {
    let mut world = world(&["a1", "b1", "c1"]);
    world.create(
        PODS,
        pod(
            "db",
            "1",
            labeled("db", json!({"spec": {"nodeName": "b1"}})),
        ),
    );
    let wish = |kind: &str| {
        let term = json!({"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE});
        let wishes = json!([{"weight": 100, "podAffinityTerm": term}]);
        let wishes = json!({"preferredDuringSchedulingIgnoredDuringExecution": wishes});
        json!({"spec": {"affinity": {kind: wishes}}})
    };
    world.create(PODS, pod("near", "100m", wish("podAffinity")));
    world.create(PODS, pod("far", "100m", wish("podAntiAffinity")));
    world.settle();
    assert_eq!(world.node_of("near").as_deref(), Some("b1"));
    assert_ne!(world.node_of("far").as_deref(), Some("b1"));
}
