use joiner_cluster::{Deployments, ReplicaSets};
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::controllers::world::{DEPLOYMENTS, PODS, REPLICA_SETS, World};

fn world() -> World {
    World::new(vec![
        Box::<Deployments>::default(),
        Box::new(ReplicaSets::default()),
    ])
}

fn deployment(replicas: i64, strategy: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "annotations": {"note": "kept"}},
        "spec": {
            "replicas": replicas,
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "strategy": strategy,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "v1"}]},
            },
        },
    })
}

fn rolling(surge: Value, unavailable: Value) -> Value {
    let limits = json!({"maxSurge": surge, "maxUnavailable": unavailable});
    json!({"type": "RollingUpdate", "rollingUpdate": limits})
}

fn set_image(world: &mut World, image: &str) {
    let containers = json!([{"name": "c", "image": image}]);
    let spec = json!({"template": {"spec": {"containers": containers}}});
    world.patch(DEPLOYMENTS, "web", json!({"spec": spec}));
}

fn condition(object: &Value, kind: &str) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|c| c["type"] == kind).unwrap();
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    (text("status"), text("reason"))
}

fn says(object: &Value, kind: &str, status: &str, reason: &str) {
    assert_eq!(
        condition(object, kind),
        (status.to_owned(), reason.to_owned())
    );
}

fn images(world: &World) -> Vec<String> {
    let pods = world.list(PODS);
    let image = |pod: &Value| {
        pod["spec"]["containers"][0]["image"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    pods.iter().map(image).collect()
}

#[test]
fn a_new_deployment_comes_up() {
    let mut world = world();
    world.create(
        DEPLOYMENTS,
        deployment(3, rolling(json!("25%"), json!("25%"))),
    );
    world.settle();
    let web = world.get(DEPLOYMENTS, "web");
    assert_eq!(web["status"]["readyReplicas"], 3);
    assert_eq!(web["status"]["availableReplicas"], 3);
    assert_eq!(web["status"]["updatedReplicas"], 3);
    assert_eq!(web["status"]["terminatingReplicas"], 0);
    assert_eq!(web["status"]["observedGeneration"], 1);
    assert!(web["status"]["unavailableReplicas"].is_null());
    says(&web, "Available", "True", "MinimumReplicasAvailable");
    says(&web, "Progressing", "True", "NewReplicaSetAvailable");
    assert_eq!(
        meta::annotation(&web, "deployment.kubernetes.io/revision"),
        Some("1")
    );

    let [set] = &world.list(REPLICA_SETS)[..] else {
        panic!("one set")
    };
    let hash = meta::label(set, "pod-template-hash").unwrap();
    assert_eq!(meta::name(set), format!("web-{hash}"));
    assert_eq!(
        set["spec"]["selector"]["matchLabels"]["pod-template-hash"],
        hash
    );
    assert_eq!(meta::annotation(set, "note"), Some("kept"));
    assert_eq!(
        meta::annotation(set, "deployment.kubernetes.io/desired-replicas"),
        Some("3")
    );
    assert_eq!(
        meta::annotation(set, "deployment.kubernetes.io/max-replicas"),
        Some("4")
    );
    for pod in world.list(PODS) {
        let owner = meta::controller(&pod).unwrap();
        assert_eq!(owner["name"], meta::name(set));
        assert_eq!(owner["blockOwnerDeletion"], true);
        assert_eq!(
            pod["metadata"]["generateName"],
            format!("{}-", meta::name(set))
        );
    }
    let message = format!("Scaled up replica set {} from 0 to 3", meta::name(set));
    assert_eq!(world.events("ScalingReplicaSet"), [message]);
    assert_eq!(world.events("SuccessfulCreate").len(), 3);
}

#[test]
fn a_rolling_update_stays_within_surge_and_unavailable() {
    for (replicas, surge, unavailable, most, least) in [
        (10, json!("25%"), json!("25%"), 13, 8),
        (10, json!(3), json!(0), 13, 10),
        (4, json!(0), json!(1), 4, 3),
        (5, json!("100%"), json!("0%"), 10, 5),
        (1, json!("25%"), json!("25%"), 2, 1),
        (3, json!(0), json!(0), 3, 2),
    ] {
        let mut world = world();
        let limits = rolling(surge.clone(), unavailable.clone());
        world.create(DEPLOYMENTS, deployment(replicas, limits));
        world.settle();
        set_image(&mut world, "v2");
        let case = format!("{replicas} replicas, {surge} more, {unavailable} less");
        world.settle_and(|world| {
            let pods = world.list(PODS);
            let ready =
                |pod: &&Value| pod["status"]["phase"] == "Running" && !meta::is_deleting(pod);
            let alive = pods.iter().filter(|pod| !meta::is_deleting(pod)).count();
            assert!(alive <= most, "{case}: {alive} pods");
            let up = pods.iter().filter(ready).count();
            assert!(up >= least, "{case}: only {up} pods are up");
        });
        assert_eq!(images(&world), vec!["v2"; replicas as usize], "{case}");
        let web = world.get(DEPLOYMENTS, "web");
        says(&web, "Progressing", "True", "NewReplicaSetAvailable");
        assert_eq!(
            meta::annotation(&web, "deployment.kubernetes.io/revision"),
            Some("2")
        );
        assert_eq!(world.list(REPLICA_SETS).len(), 2, "{case}");
    }
}

#[test]
fn undo_takes_the_old_set_again_with_a_new_revision() {
    let mut world = world();
    world.create(DEPLOYMENTS, deployment(2, rolling(json!(1), json!(0))));
    world.settle();
    let first = world.names(REPLICA_SETS)[0].clone();
    set_image(&mut world, "v2");
    world.settle();
    set_image(&mut world, "v1");
    world.settle();
    assert_eq!(images(&world), ["v1", "v1"]);
    assert_eq!(world.list(REPLICA_SETS).len(), 2);
    let set = world.get(REPLICA_SETS, &first);
    assert_eq!(set["spec"]["replicas"], 2);
    assert_eq!(
        meta::annotation(&set, "deployment.kubernetes.io/revision"),
        Some("3")
    );
    assert_eq!(
        meta::annotation(&set, "deployment.kubernetes.io/revision-history"),
        Some("1")
    );
    let web = world.get(DEPLOYMENTS, "web");
    assert_eq!(
        meta::annotation(&web, "deployment.kubernetes.io/revision"),
        Some("3")
    );
}

#[test]
fn scaling_changes_the_one_set_and_shares_out_between_two() {
    let mut world = world();
    world.create(DEPLOYMENTS, deployment(10, rolling(json!(3), json!(2))));
    world.settle();
    world.patch(DEPLOYMENTS, "web", json!({"spec": {"replicas": 6}}));
    world.settle();
    assert_eq!(world.list(PODS).len(), 6);
    world.patch(DEPLOYMENTS, "web", json!({"spec": {"replicas": 10}}));
    world.settle();
    // New pods do not start: the rollout hangs at 8 old and 5 new ones.
    world.pods_start = false;
    set_image(&mut world, "v2");
    world.settle();
    let sizes = |world: &World| {
        let mut sets = world.list(REPLICA_SETS);
        sets.sort_by_key(|set| {
            meta::annotation(set, "deployment.kubernetes.io/revision").map(str::to_owned)
        });
        let size = |set: &Value| set["spec"]["replicas"].as_i64().unwrap();
        sets.iter().map(size).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&world), [8, 5]);
    world.patch(DEPLOYMENTS, "web", json!({"spec": {"replicas": 15}}));
    world.settle();
    // 13 become 18: 8 to 11 and 5 to 7, as upstream's documentation has it.
    assert_eq!(sizes(&world), [11, 7]);
    let web = world.get(DEPLOYMENTS, "web");
    says(&web, "Available", "False", "MinimumReplicasUnavailable");
    world.pods_start = true;
    world.settle();
    assert_eq!(sizes(&world), [0, 15]);
    world.patch(DEPLOYMENTS, "web", json!({"spec": {"replicas": 0}}));
    world.settle();
    assert_eq!(world.list(PODS).len(), 0);
    says(
        &world.get(DEPLOYMENTS, "web"),
        "Available",
        "True",
        "MinimumReplicasAvailable",
    );
}

#[test]
fn recreate_waits_for_the_old_pods_to_be_gone() {
    let mut world = world();
    world.create(DEPLOYMENTS, deployment(3, json!({"type": "Recreate"})));
    world.settle();
    world.pods_end = false;
    set_image(&mut world, "v2");
    world.settle();
    assert_eq!(images(&world), ["v1"; 3]);
    assert_eq!(
        world.get(DEPLOYMENTS, "web")["status"]["terminatingReplicas"],
        3
    );
    world.pods_end = true;
    world.settle_and(|world| {
        let images = images(world);
        assert!(!images.contains(&"v1".to_owned()) || !images.contains(&"v2".to_owned()));
    });
    assert_eq!(images(&world), ["v2"; 3]);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut world = world();
    world.create(DEPLOYMENTS, deployment(2, rolling(json!(1), json!(0))));
    world.settle();
    world.patch(DEPLOYMENTS, "web", json!({"spec": {"paused": true}}));
    set_image(&mut world, "v2");
    world.patch(DEPLOYMENTS, "web", json!({"spec": {"replicas": 4}}));
    world.settle();
    assert_eq!(images(&world), ["v1"; 4]);
    says(
        &world.get(DEPLOYMENTS, "web"),
        "Progressing",
        "Unknown",
        "DeploymentPaused",
    );
    world.patch(DEPLOYMENTS, "web", json!({"spec": {"paused": null}}));
    world.settle();
    assert_eq!(images(&world), ["v2"; 4]);
    says(
        &world.get(DEPLOYMENTS, "web"),
        "Progressing",
        "True",
        "NewReplicaSetAvailable",
    );
}

#[test]
fn a_rollout_without_progress_times_out_and_recovers() {
    let mut world = world();
    world.create(DEPLOYMENTS, deployment(2, rolling(json!(1), json!(0))));
    world.settle();
    world.pods_start = false;
    world.pass(60);
    set_image(&mut world, "v2");
    world.settle();
    says(
        &world.get(DEPLOYMENTS, "web"),
        "Progressing",
        "True",
        "ReplicaSetUpdated",
    );
    let start = world.now;
    world.wait();
    assert_eq!(world.now.as_second() - start.as_second(), 601);
    says(
        &world.get(DEPLOYMENTS, "web"),
        "Progressing",
        "False",
        "ProgressDeadlineExceeded",
    );
    world.pods_start = true;
    world.settle();
    says(
        &world.get(DEPLOYMENTS, "web"),
        "Progressing",
        "True",
        "NewReplicaSetAvailable",
    );
}

#[test]
fn only_as_much_history_is_kept_as_asked_for() {
    let mut world = world();
    let mut web = deployment(1, rolling(json!(1), json!(0)));
    web["spec"]["revisionHistoryLimit"] = json!(2);
    world.create(DEPLOYMENTS, web);
    for image in ["v1", "v2", "v3", "v4", "v5"] {
        world.pass(10);
        set_image(&mut world, image);
        world.settle();
    }
    let mut kept: Vec<String> = (world.list(REPLICA_SETS).iter())
        .map(|set| {
            meta::annotation(set, "deployment.kubernetes.io/revision")
                .unwrap()
                .to_owned()
        })
        .collect();
    kept.sort();
    assert_eq!(kept, ["3", "4", "5"]);
}

#[test]
fn min_ready_seconds_slow_a_rollout_down() {
    let mut world = world();
    let mut web = deployment(2, rolling(json!(0), json!(1)));
    web["spec"]["minReadySeconds"] = json!(30);
    world.create(DEPLOYMENTS, web);
    world.settle();
    assert_eq!(world.get(DEPLOYMENTS, "web")["status"]["readyReplicas"], 2);
    assert!(world.get(DEPLOYMENTS, "web")["status"]["availableReplicas"].is_null());
    world.wait();
    assert_eq!(
        world.get(DEPLOYMENTS, "web")["status"]["availableReplicas"],
        2
    );
    set_image(&mut world, "v2");
    world.settle();
    let mut now = images(&world);
    now.sort();
    assert_eq!(now, ["v1", "v2"]);
    world.wait();
    world.wait();
    assert_eq!(images(&world), ["v2", "v2"]);
}
