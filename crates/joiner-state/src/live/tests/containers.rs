//! Containers of pods.

use super::*;

fn templated(name: &str, more: Value) -> Value {
    let mut object = pod(name, 1, json!({}));
    object["spec"] = json!({
        "containers": [
            {"name": "web", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"},
                "limits": {"memory": "128Mi"}}},
            {"name": "log", "resources": {"limits": {"cpu": "100m"}}}],
        "initContainers": [
            {"name": "setup", "resources": {"requests": {"cpu": "2"}}},
            {"name": "proxy", "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "50m"}}}]});
    merge(&mut object, more);
    object
}

fn known(state: &ClusterState, name: &str) -> Arc<LivePod> {
    Arc::clone(state.snapshot().pod(name).unwrap())
}

#[test]
fn a_pod_says_what_each_of_its_containers_asks_for() {
    let mut state = ClusterState::default();
    state.apply(Kind::Pod, &templated("a", json!({})));
    let own = known(&state, "default/a");
    let told: Vec<_> = own
        .containers()
        .iter()
        .map(|own| {
            let cpu = own.requests.get(&ResourceName::Cpu);
            let limit = own.limits.get(&ResourceName::Memory) >> 20;
            (&*own.name, own.role, cpu, limit)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("web", ContainerRole::Main, 250, 128),
            ("log", ContainerRole::Main, 100, 0),
            ("setup", ContainerRole::Init, 2000, 0),
            ("proxy", ContainerRole::Sidecar, 50, 0),
        ]
    );
}

#[test]
fn pods_that_look_alike_share_their_containers() {
    let mut state = ClusterState::default();
    let labels = |name: &str| json!({"metadata": {"labels": {"pod": name}}});
    for name in ["a", "b"] {
        state.apply(Kind::Pod, &templated(name, json!({})));
    }
    state.apply(Kind::Pod, &templated("c", labels("c")));
    let [a, b, c] = ["default/a", "default/b", "default/c"].map(|name| known(&state, name));
    assert!(Arc::ptr_eq(&a.draft, &b.draft));
    assert!(
        !Arc::ptr_eq(&a.draft, &c.draft),
        "labels of its own make a shape of its own"
    );
    assert!(Arc::ptr_eq(&a.draft.containers, &c.draft.containers));
    // One that was resized is another shape.
    let more = json!([{"name": "web", "resources": {"requests": {"cpu": "300m"}}}]);
    let resized = json!({"spec": {"containers": more}, "metadata": {"resourceVersion": "2"}});
    state.apply(Kind::Pod, &templated("b", resized));
    let b = known(&state, "default/b");
    assert_eq!(b.containers()[0].requests.get(&ResourceName::Cpu), 300);
    assert_eq!(a.containers()[0].requests.get(&ResourceName::Cpu), 250);
}

#[test]
fn how_a_pod_is_cut_into_containers_makes_no_other_problem() {
    let mut state = ClusterState::default();
    let one = json!([{"name": "c", "resources": {"requests": {"cpu": "1"}}}]);
    let two = json!([{"name": "a", "resources": {"requests": {"cpu": "400m"}}},
        {"name": "b", "resources": {"requests": {"cpu": "600m"}}}]);
    for (name, containers) in [("a", one), ("b", two)] {
        let mut object = pod(name, 1, json!({}));
        object["spec"]["containers"] = containers;
        state.apply(Kind::Pod, &object);
    }
    let problem = asked(&state.snapshot()).problem;
    assert_eq!((problem.pods.len(), problem.shapes.len()), (2, 1));
}

#[test]
fn what_the_planner_is_told_of_a_live_pod_is_what_it_reads_in_a_file() {
    let owner = |kind: &str| {
        json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind,
            "name": "web", "uid": kind, "controller": true}]}})
    };
    let volumes = json!({"spec": {"volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}});
    let gated = json!({"spec": {"schedulingGates": [{"name": "wait"}]}});
    let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let failed = json!({"status": {"phase": "Failed"}});
    let stray = json!({"status": {"phase": "Running"}});
    let more = [
        json!({}),
        on_node("n1"),
        owner("ReplicaSet"),
        owner("DaemonSet"),
        owner("Rollout"),
        volumes,
        gated,
        deleting,
        failed,
        stray,
    ];
    for more in more {
        let object = pod("a", 1, more);
        let mut read = crate::objects::Objects::trusting();
        super::super::reading::accept(&mut read, &object).unwrap();
        let mut state = ClusterState::default();
        state.apply(Kind::Pod, &object);
        let own = known(&state, "default/a");
        let ix = read.pods[0].draft;
        assert_eq!(
            format!("{:?}", own.record(ix)),
            format!("{:?}", read.pods[0])
        );
        assert_eq!(*own.draft, *read.drafts.get(ix));
    }
}
