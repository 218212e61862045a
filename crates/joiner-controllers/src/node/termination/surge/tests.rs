//! How a single replica gets its successor.

use joiner_state::live::{Kind, SURGE, Snapshot};
use serde_json::{Value, json};

use super::{CHEAPEST, Hold, SURGE_ON_MOVE, Stage, Surge, SurgeStep, View, holds, next_step};
use crate::nodeclaim::lifecycle::made::{Cluster, at, going_node, merge, node, pod, pool, text};

fn ready() -> Value {
    json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": text(30)}]}})
}

fn owned(kind: &str, name: &str) -> Value {
    json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name,
        "uid": format!("uid-{kind}"), "controller": true}]}})
}

fn workload(kind: &str, replicas: i64, more: Value) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": "api", "namespace": "web", "uid": format!("uid-{kind}")},
        "spec": {"replicas": replicas}});
    merge(&mut object, &more);
    object
}

fn asked(value: &str) -> Value {
    json!({"metadata": {"annotations": {SURGE_ON_MOVE: value}}})
}

/// A pod of the Deployment, ready on the node `n` unless told otherwise.
fn replica(name: &str, more: Value) -> Value {
    let mut object = pod(name, &owned("ReplicaSet", "api"));
    merge(&mut object, &ready());
    merge(&mut object, &more);
    object
}

/// A Deployment of one whose node goes since second 100; `more` is merged into it.
fn moving(more: Value) -> Cluster {
    let mut annotated = asked("true");
    merge(&mut annotated, &more);
    let label = json!({"metadata": {"labels": {"karpenter.sh/nodepool": "p"}}});
    Cluster::default()
        .with(Kind::NodePool, pool("uid-p"))
        .with(Kind::Node, going_node(&label))
        .with(
            Kind::Node,
            node(&json!({"metadata": {"name": "stays", "uid": "uid-stays"},
            "spec": {"providerID": "kwok://stays", "taints": []}})),
        )
        .with(Kind::Deployment, workload("Deployment", 1, annotated))
        .with(
            Kind::ReplicaSet,
            workload("ReplicaSet", 1, owned("Deployment", "api")),
        )
        .with(Kind::Pod, replica("old", json!({})))
}

/// The same, with this much of a surge behind it.
fn surging(stage: Stage, replicas: i64) -> Cluster {
    let surge = Surge {
        pod: "uid-old".into(),
        stage,
        from: 1,
        to: 2,
        since: at(110),
    };
    let surge = serde_json::to_string(&surge).unwrap();
    moving(json!({"metadata": {"annotations": {SURGE: surge}}, "spec": {"replicas": replicas}}))
}

fn successor(more: Value) -> Value {
    let mut object = replica("new", json!({"spec": {"nodeName": "stays"}}));
    merge(&mut object, &more);
    object
}

fn step(cluster: &Cluster, secs: i64) -> SurgeStep {
    let snapshot = cluster.snapshot();
    next_step(&View::of(&snapshot, "web/api").unwrap(), at(secs))
}

fn hold(snapshot: &Snapshot, secs: i64) -> Hold {
    holds(
        snapshot,
        snapshot.pod("web/old").unwrap(),
        at(105),
        at(secs),
    )
}

fn written(stage: Stage) -> SurgeStep {
    SurgeStep::Write(Surge {
        pod: "uid-old".into(),
        stage,
        from: 1,
        to: 2,
        since: at(110),
    })
}

#[test]
fn it_goes_step_by_step() {
    let unready = json!({"status": {"conditions": []}});
    let cheap = json!({"metadata": {"annotations":
        {"controller.kubernetes.io/pod-deletion-cost": CHEAPEST.to_string()}}});
    let late = 110 + 5 * 60 + 1;
    let mut marked = surging(Stage::Wait, 2).with(Kind::Pod, successor(json!({})));
    marked.change(Kind::Pod, "old", &cheap);
    let mut left = surging(Stage::Wait, 2);
    left.remove(Kind::Pod, "old");
    let mut over = surging(Stage::Late, 2);
    over.remove(Kind::Pod, "old");
    let figures = [
        ("begins", moving(json!({})), 110, written(Stage::Out)),
        (
            "scales out",
            surging(Stage::Out, 1),
            111,
            SurgeStep::Scale(2),
        ),
        (
            "notes it",
            surging(Stage::Out, 2),
            111,
            written(Stage::Wait),
        ),
        ("waits", surging(Stage::Wait, 2), 112, SurgeStep::Wait),
        (
            "waits for a pod that is ready",
            surging(Stage::Wait, 2).with(Kind::Pod, successor(unready)),
            112,
            SurgeStep::Wait,
        ),
        (
            "waits for one that is ready elsewhere",
            surging(Stage::Wait, 2).with(Kind::Pod, successor(json!({"spec": {"nodeName": "n"}}))),
            112,
            SurgeStep::Wait,
        ),
        (
            "says who is to go",
            surging(Stage::Wait, 2).with(Kind::Pod, successor(json!({}))),
            112,
            SurgeStep::Cheapen("web/old".into()),
        ),
        ("turns back", marked, 112, written(Stage::Back)),
        (
            "scales back",
            surging(Stage::Back, 2),
            113,
            SurgeStep::Scale(1),
        ),
        ("forgets it", surging(Stage::Back, 1), 113, SurgeStep::Clear),
        (
            "turns back when the old one left by itself",
            left,
            112,
            written(Stage::Back),
        ),
        (
            "gives up",
            surging(Stage::Wait, 2),
            late,
            SurgeStep::GiveUp(Surge {
                pod: "uid-old".into(),
                stage: Stage::Late,
                from: 1,
                to: 2,
                since: at(110),
            }),
        ),
        (
            "lets the old one leave",
            surging(Stage::Late, 2),
            late,
            SurgeStep::Wait,
        ),
        ("then scales back", over, late, SurgeStep::Scale(1)),
    ];
    for (what, cluster, secs, expected) in figures {
        assert_eq!(step(&cluster, secs), expected, "{what}");
    }
}

#[test]
fn whoever_else_sets_the_number_is_right() {
    for stage in [Stage::Out, Stage::Wait, Stage::Back] {
        assert_eq!(step(&surging(stage, 5), 112), SurgeStep::Clear, "{stage:?}");
    }
    assert_eq!(
        step(&surging(Stage::Wait, 1), 112),
        SurgeStep::Clear,
        "set back by somebody"
    );
    assert_eq!(step(&surging(Stage::Wait, 0), 112), SurgeStep::Clear);
}

#[test]
fn only_who_asks_for_it_and_needs_it() {
    let mut quiet = moving(json!({}));
    quiet.put(Kind::Deployment, workload("Deployment", 1, json!({})));
    assert_eq!(step(&quiet, 110), SurgeStep::Nothing, "nobody asks");
    quiet.change(Kind::NodePool, "p", &asked("true"));
    assert_eq!(step(&quiet, 110), written(Stage::Out), "the pool does");
    quiet.change(Kind::Deployment, "api", &asked("false"));
    assert_eq!(
        step(&quiet, 110),
        SurgeStep::Nothing,
        "the workload does not want it"
    );
    let several = moving(json!({"spec": {"replicas": 2}}));
    assert_eq!(step(&several, 110), SurgeStep::Nothing, "there are others");
    let rolling = moving(json!({})).with(Kind::Pod, successor(json!({})));
    assert_eq!(
        step(&rolling, 110),
        SurgeStep::Nothing,
        "a successor is there already"
    );
    let gone = moving(json!({"metadata": {"deletionTimestamp": text(105)}}));
    assert_eq!(step(&gone, 110), SurgeStep::Nothing, "it goes for good");
    let mut staying = moving(json!({}));
    staying.change(Kind::Pod, "old", &json!({"spec": {"nodeName": "stays"}}));
    assert_eq!(step(&staying, 110), SurgeStep::Nothing, "its node stays");
    let mut protected = moving(json!({}));
    let keep = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    protected.change(Kind::Pod, "old", &keep);
    assert_eq!(
        step(&protected, 110),
        SurgeStep::Nothing,
        "it does not leave yet"
    );
}

#[test]
fn what_cannot_be_read_is_cleared() {
    let odd = moving(json!({"metadata": {"annotations": {SURGE: "?"}}}));
    assert_eq!(step(&odd, 110), SurgeStep::Clear);
}

#[test]
fn the_old_pod_is_held_back_for_a_while() {
    let expected = [
        (moving(json!({})), Hold::Yes),
        (surging(Stage::Out, 1), Hold::Yes),
        (surging(Stage::Wait, 2), Hold::Yes),
        (surging(Stage::Back, 2), Hold::Yes),
        (surging(Stage::Late, 2), Hold::No),
        (moving(json!({"spec": {"replicas": 3}})), Hold::No),
        (
            moving(json!({})).with(Kind::Pod, successor(json!({}))),
            Hold::No,
        ),
    ];
    for (n, (cluster, expected)) in expected.into_iter().enumerate() {
        assert_eq!(hold(&cluster.snapshot(), 112), expected, "{n}");
    }
    let snapshot = surging(Stage::Wait, 2).snapshot();
    assert_eq!(hold(&snapshot, 105 + 6 * 60 + 1), Hold::No, "not for ever");
}

#[test]
fn a_stateful_set_is_not_surged_and_told_so() {
    let mut cluster = moving(json!({}));
    cluster.put(Kind::StatefulSet, workload("StatefulSet", 1, asked("true")));
    cluster.put(Kind::Pod, pod("old", &owned("StatefulSet", "api")));
    assert_eq!(hold(&cluster.snapshot(), 112), Hold::Cannot);
    cluster.put(Kind::StatefulSet, workload("StatefulSet", 3, asked("true")));
    assert_eq!(hold(&cluster.snapshot(), 112), Hold::No, "others are there");
}

#[test]
fn no_room_is_bought_for_a_pod_that_has_a_successor() {
    let moves = |cluster: &Cluster| cluster.snapshot().movable_pods("n", at(112)).count();
    assert_eq!(moves(&moving(json!({}))), 1);
    assert_eq!(moves(&surging(Stage::Wait, 2)), 0);
    assert_eq!(moves(&surging(Stage::Late, 2)), 1, "it will have none");
}
