use joiner_cluster::{GarbageCollector, StatefulSets};
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::controllers::world::{CLAIMS, PODS, REVISIONS, STATEFUL_SETS, World};

fn world() -> World {
    World::new(vec![Box::<StatefulSets>::default()])
}

fn set(replicas: i64, policy: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db-headless",
            "podManagementPolicy": policy,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "c", "image": "v1"}]},
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}],
        },
    })
}

fn set_image(world: &mut World, image: &str) {
    let containers = json!([{"name": "c", "image": image}]);
    let spec = json!({"template": {"spec": {"containers": containers}}});
    world.patch(STATEFUL_SETS, "db", json!({"spec": spec}));
}

fn image(world: &World, name: &str) -> String {
    world.get(PODS, name)["spec"]["containers"][0]["image"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn is_up(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running" && !meta::is_deleting(pod)
}

#[test]
fn pods_come_up_in_order_with_names_and_claims() {
    let mut world = world();
    world.create(STATEFUL_SETS, set(3, "OrderedReady"));
    world.settle_and(|world| {
        // A pod is there only when all before it are up.
        let pods = world.list(PODS);
        let up = pods.iter().filter(|pod| is_up(pod)).count();
        assert!(pods.len() <= up + 1, "{} pods, {up} up", pods.len());
    });
    assert_eq!(world.names(PODS), ["db-0", "db-1", "db-2"]);
    assert_eq!(world.names(CLAIMS), ["data-db-0", "data-db-1", "data-db-2"]);
    let pod = world.get(PODS, "db-1");
    assert_eq!(pod["spec"]["hostname"], "db-1");
    assert_eq!(pod["spec"]["subdomain"], "db-headless");
    assert_eq!(
        pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"],
        "data-db-1"
    );
    assert_eq!(meta::label(&pod, "apps.kubernetes.io/pod-index"), Some("1"));
    let status = &world.get(STATEFUL_SETS, "db")["status"];
    for field in [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "currentReplicas",
        "updatedReplicas",
    ] {
        assert_eq!(status[field], 3, "{field}");
    }
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(status["currentRevision"], world.names(REVISIONS)[0]);
    assert_eq!(
        meta::label(&pod, "controller-revision-hash"),
        status["currentRevision"].as_str()
    );
}

#[test]
fn pods_go_down_in_reverse_and_their_claims_stay() {
    let mut world = world();
    world.create(STATEFUL_SETS, set(4, "OrderedReady"));
    world.settle();
    world.patch(STATEFUL_SETS, "db", json!({"spec": {"replicas": 1}}));
    let mut leaving = Vec::new();
    world.settle_and(|world| {
        let pods = world.list(PODS);
        let gone: Vec<_> = pods.iter().filter(|pod| meta::is_deleting(pod)).collect();
        assert!(gone.len() <= 1, "one at a time");
        leaving.extend(gone.iter().map(|pod| meta::name(pod).to_owned()));
    });
    leaving.dedup();
    assert_eq!(leaving, ["db-3", "db-2", "db-1"]);
    assert_eq!(world.list(CLAIMS).len(), 4);
}

#[test]
fn parallel_sets_do_not_wait() {
    let mut world = world();
    world.pods_start = false;
    world.create(STATEFUL_SETS, set(3, "Parallel"));
    world.settle();
    assert_eq!(world.list(PODS).len(), 3);
    world.patch(STATEFUL_SETS, "db", json!({"spec": {"replicas": 0}}));
    world.settle();
    assert_eq!(world.list(PODS).len(), 0);
}

#[test]
fn an_update_starts_at_the_highest_number_and_stops_at_the_partition() {
    let mut world = world();
    world.create(STATEFUL_SETS, set(3, "OrderedReady"));
    world.settle();
    let partition = json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}});
    world.patch(STATEFUL_SETS, "db", json!({"spec": partition}));
    set_image(&mut world, "v2");
    let mut updated = Vec::new();
    world.settle_and(|world| {
        let pods = world.list(PODS);
        assert!(pods.iter().filter(|pod| is_up(pod)).count() >= 2);
        for pod in pods
            .iter()
            .filter(|pod| pod["spec"]["containers"][0]["image"] == "v2")
        {
            let name = meta::name(pod).to_owned();
            if !updated.contains(&name) {
                updated.push(name);
            }
        }
    });
    assert_eq!(updated, ["db-2", "db-1"]);
    let status = &world.get(STATEFUL_SETS, "db")["status"];
    assert_eq!(
        (&status["currentReplicas"], &status["updatedReplicas"]),
        (&json!(1), &json!(2))
    );
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    // A pod below the partition comes back as it was.
    world.delete(PODS, "db-0", None);
    world.settle();
    assert_eq!(image(&world, "db-0"), "v1");
    let partition = json!({"updateStrategy": {"rollingUpdate": {"partition": 0}}});
    world.patch(STATEFUL_SETS, "db", json!({"spec": partition}));
    world.settle();
    assert_eq!(image(&world, "db-0"), "v2");
    let status = &world.get(STATEFUL_SETS, "db")["status"];
    assert_eq!(status["currentRevision"], status["updateRevision"]);
}

#[test]
fn on_delete_and_start_ordinal() {
    let mut world = world();
    let mut db = set(2, "OrderedReady");
    db["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    db["spec"]["ordinals"] = json!({"start": 5});
    world.create(STATEFUL_SETS, db);
    world.settle();
    assert_eq!(world.names(PODS), ["db-5", "db-6"]);
    set_image(&mut world, "v2");
    world.settle();
    assert_eq!(image(&world, "db-5"), "v1");
    world.delete(PODS, "db-5", None);
    world.settle();
    assert_eq!(image(&world, "db-5"), "v2");
    assert_eq!(image(&world, "db-6"), "v1");
}

#[test]
fn claims_live_as_long_as_the_policy_says() {
    let cases = [
        (
            "Retain",
            "Retain",
            vec!["data-db-0", "data-db-1"],
            vec!["data-db-0", "data-db-1"],
        ),
        ("Delete", "Retain", vec!["data-db-0", "data-db-1"], vec![]),
        ("Retain", "Delete", vec!["data-db-0"], vec!["data-db-0"]),
        ("Delete", "Delete", vec!["data-db-0"], vec![]),
    ];
    for (deleted, scaled, after_scaling, after_deletion) in cases {
        let mut world = World::new(vec![
            Box::<StatefulSets>::default(),
            Box::<GarbageCollector>::default(),
        ]);
        let mut set = set(2, "OrderedReady");
        set["spec"]["persistentVolumeClaimRetentionPolicy"] =
            json!({"whenDeleted": deleted, "whenScaled": scaled});
        world.create(STATEFUL_SETS, set);
        world.settle();
        assert_eq!(world.names(CLAIMS).len(), 2);
        world.patch(STATEFUL_SETS, "db", json!({"spec": {"replicas": 1}}));
        world.settle();
        assert_eq!(world.names(PODS), ["db-0"]);
        assert_eq!(world.names(CLAIMS), after_scaling, "{deleted}, {scaled}");
        world.delete(STATEFUL_SETS, "db", None);
        world.settle();
        assert_eq!(world.names(CLAIMS), after_deletion, "{deleted}, {scaled}");
    }
}
