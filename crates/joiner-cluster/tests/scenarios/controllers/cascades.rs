use joiner_cluster::{Deployments, GarbageCollector, Namespaces, ReplicaSets, Resource};
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::controllers::world::{DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS, World};

const CONFIG_MAPS: Resource = ("", "configmaps");
const ACCOUNTS: Resource = ("", "serviceaccounts");

fn world() -> World {
    let mut world = World::new(vec![
        Box::<Deployments>::default(),
        Box::<ReplicaSets>::default(),
        Box::<GarbageCollector>::default(),
        Box::new(Namespaces::new("PEM")),
    ]);
    world.create(
        NAMESPACES,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}),
    );
    world.create(
        DEPLOYMENTS,
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
        }),
    );
    world.settle();
    assert_eq!(world.list(PODS).len(), 2);
    world
}

fn config_map(name: &str, owners: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": owners}})
}

fn reference(object: &Value, uid: &str) -> Value {
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": meta::name(object), "uid": uid})
}

#[test]
fn in_the_background_the_owner_goes_first() {
    let mut world = world();
    world.delete(DEPLOYMENTS, "web", Some("Background"));
    assert!(world.find(DEPLOYMENTS, "web").is_none());
    world.settle();
    assert_eq!(world.list(REPLICA_SETS).len(), 0);
    assert_eq!(world.list(PODS).len(), 0);
}

#[test]
fn in_the_foreground_the_owner_goes_last() {
    let mut world = world();
    world.pods_end = false;
    world.delete(DEPLOYMENTS, "web", Some("Foreground"));
    world.settle();
    assert!(world.find(DEPLOYMENTS, "web").is_some());
    assert!(world.list(PODS).iter().all(meta::is_deleting));
    assert_eq!(world.list(PODS).len(), 2);
    world.pods_end = true;
    world.settle_and(|world| {
        let [deployments, sets, pods] =
            [DEPLOYMENTS, REPLICA_SETS, PODS].map(|r| world.list(r).len());
        assert!(deployments >= sets.min(1) && sets >= pods.min(1));
    });
    assert!(world.find(DEPLOYMENTS, "web").is_none());
    assert_eq!(world.list(REPLICA_SETS).len(), 0);
}

#[test]
fn orphans_stay() {
    let mut world = world();
    let set = world.names(REPLICA_SETS)[0].clone();
    world.delete(DEPLOYMENTS, "web", Some("Orphan"));
    world.settle();
    assert!(world.find(DEPLOYMENTS, "web").is_none());
    assert!(meta::controller(&world.get(REPLICA_SETS, &set)).is_none());
    assert_eq!(world.list(PODS).len(), 2);
}

#[test]
fn one_living_owner_is_enough() {
    let mut world = world();
    let web = world.get(DEPLOYMENTS, "web");
    let both = json!([reference(&web, meta::uid(&web)), reference(&web, "another")]);
    world.create(CONFIG_MAPS, config_map("shared", both));
    world.create(
        CONFIG_MAPS,
        config_map("stale", json!([reference(&web, "another")])),
    );
    let unknown = json!([{"apiVersion": "own/v1", "kind": "Own", "name": "o", "uid": "u"}]);
    world.create(CONFIG_MAPS, config_map("strange", unknown));
    world.settle();
    let owners = &world.get(CONFIG_MAPS, "shared")["metadata"]["ownerReferences"];
    assert_eq!(owners.as_array().unwrap().len(), 1);
    assert!(world.find(CONFIG_MAPS, "stale").is_none());
    assert!(world.find(CONFIG_MAPS, "strange").is_some());
}

#[test]
fn a_namespace_is_furnished_and_emptied() {
    let mut world = world();
    assert!(world.find(ACCOUNTS, "default").is_some());
    assert_eq!(
        world.get(CONFIG_MAPS, "kube-root-ca.crt")["data"]["ca.crt"],
        "PEM"
    );
    world.delete(CONFIG_MAPS, "kube-root-ca.crt", None);
    world.settle();
    assert!(world.find(CONFIG_MAPS, "kube-root-ca.crt").is_some());

    world.pods_end = false;
    world.delete(NAMESPACES, "default", None);
    world.settle();
    let namespace = world.get(NAMESPACES, "default");
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let conditions = namespace["status"]["conditions"].as_array().unwrap();
    let remaining = conditions
        .iter()
        .find(|c| c["type"] == "NamespaceContentRemaining")
        .unwrap();
    assert_eq!(
        remaining["message"],
        "Some resources are remaining: pods. has 2 resource instances"
    );
    world.pods_end = true;
    world.settle();
    assert!(world.find(NAMESPACES, "default").is_none());
    let left: usize = world.kinds.values().map(|objects| objects.len()).sum();
    assert_eq!(left, 0, "{:?}", world.kinds.keys());
}
