//! What workloads put up with.

use joiner_state::live::{Kind, Snapshot};
use serde_json::{Value, json};

use super::{Book, MOVES, Tally, Workloads, of_intent};
use crate::disruption::Intent;
use crate::nodeclaim::lifecycle::made::{Cluster, at, launched, node, pod};

fn owner(kind: &str, name: &str) -> Value {
    json!({"metadata": {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("uid-{kind}-{name}"),
         "controller": true}]}})
}

fn workload(kind: &str, name: &str, replicas: u32, more: Value) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "web", "uid": format!("uid-{kind}-{name}")},
        "spec": {"replicas": replicas}});
    crate::nodeclaim::lifecycle::made::merge(&mut object, &more);
    object
}

fn moved(text: &str) -> Value {
    json!({"metadata": {"annotations": {MOVES: text}}})
}

/// A Deployment of three with a ReplicaSet, a ReplicaSet of somebody else, a StatefulSet, a Job, and
/// a pod of its own.
fn cluster() -> Cluster {
    let set = |name: &str, more: Value| workload("ReplicaSet", name, 3, more);
    let used = Tally::default().and(at(0), 4, 0).text();
    Cluster::default()
        .with(
            Kind::Deployment,
            workload("Deployment", "api", 3, moved(&used)),
        )
        .with(Kind::ReplicaSet, set("api-1", owner("Deployment", "api")))
        .with(Kind::ReplicaSet, set("api-2", owner("Deployment", "api")))
        .with(Kind::ReplicaSet, set("rollout", owner("Rollout", "theirs")))
        .with(
            Kind::StatefulSet,
            workload("StatefulSet", "db", 1, json!({})),
        )
        .with(Kind::Pod, pod("api-1-a", &owner("ReplicaSet", "api-1")))
        .with(Kind::Pod, pod("api-2-a", &owner("ReplicaSet", "api-2")))
        .with(Kind::Pod, pod("rollout-a", &owner("ReplicaSet", "rollout")))
        .with(Kind::Pod, pod("db-0", &owner("StatefulSet", "db")))
        .with(Kind::Pod, pod("job-a", &owner("Job", "job")))
        .with(Kind::Pod, pod("job-b", &owner("Job", "job")))
        .with(Kind::Pod, pod("agent", &owner("DaemonSet", "agent")))
        .with(Kind::Pod, pod("lonely", &json!({})))
}

fn left(snapshot: &Snapshot, book: &Book, limit: u32) -> Vec<(String, u32)> {
    let all = Workloads::new(snapshot, book, limit, at(60));
    let left = all.left.iter();
    left.map(|(name, n)| (name.to_string(), *n)).collect()
}

fn expected(all: &[(&str, u32)]) -> Vec<(String, u32)> {
    all.iter()
        .map(|(name, n)| ((*name).to_owned(), *n))
        .collect()
}

#[test]
fn a_workload_puts_up_with_two_moves_for_each_replica() {
    let snapshot = cluster().snapshot();
    let mut book = Book::default();
    let all = [
        ("web/Deployment/api", 2),
        ("web/Job/job", 4),
        ("web/ReplicaSet/rollout", 6),
        ("web/StatefulSet/db", 2),
    ];
    assert_eq!(left(&snapshot, &book, 2), expected(&all));
    book.add(&"web/Job/job".into(), at(0), 3);
    book.add(&"web/Deployment/api".into(), at(0), 1);
    let after = left(&snapshot, &book, 2);
    assert_eq!(
        after[..2],
        expected(&[("web/Deployment/api", 1), ("web/Job/job", 1)])
    );
    assert_eq!(left(&snapshot, &book, 0), [], "no limit");
}

#[test]
fn pods_of_both_sides_of_a_rollout_are_one_workload() {
    let snapshot = cluster().snapshot();
    let all = Workloads::new(&snapshot, &Book::default(), 2, at(60));
    let of = |name: &str| {
        all.of(snapshot.pod(name).unwrap())
            .map(|own| own.to_string())
    };
    assert_eq!(of("web/api-1-a").as_deref(), Some("web/Deployment/api"));
    assert_eq!(of("web/api-2-a").as_deref(), Some("web/Deployment/api"));
    assert_eq!(of("web/lonely"), None);
}

#[test]
fn a_namesake_of_a_dead_owner_is_not_blamed() {
    let mut cluster = cluster();
    cluster.put(
        Kind::StatefulSet,
        workload(
            "StatefulSet",
            "db",
            7,
            json!({
        "metadata": {"uid": "another"}}),
        ),
    );
    let all = left(&cluster.snapshot(), &Book::default(), 2);
    let db = all.iter().find(|(name, _)| name.ends_with("/db"));
    assert_eq!(db.map(|(_, n)| *n), Some(2), "counted by its pods");
}

#[test]
fn the_book_is_bounded() {
    let mut book = Book::default();
    for n in 0..super::BOOK_MAX + 10 {
        let now = at(i64::try_from(n).unwrap() * 3600 / 1000);
        book.add(&format!("web/Job/{n}").into(), now, 1);
    }
    assert!(book.0.len() <= super::BOOK_MAX, "{}", book.0.len());
    let last: joiner_model::Name = format!("web/Job/{}", super::BOOK_MAX + 9).into();
    assert!(book.0.contains_key(&last), "the latest is there");
}

#[test]
fn what_a_command_counted_is_found_again_when_it_is_undone() {
    let mut cluster = cluster()
        .with(Kind::Node, node(&json!({})))
        .with(Kind::NodeClaim, launched(&["Initialized"], &json!({})));
    let intent = |reason: &str| Intent {
        id: "command-1".to_owned(),
        reason: reason.to_owned(),
        method: "single".to_owned(),
        started: at(30),
        members: vec!["c".to_owned()],
        replacements: Vec::new(),
        saves: 0,
        moves: 6,
    };
    // It came after the command began.
    let late =
        json!({"metadata": {"creationTimestamp": crate::nodeclaim::lifecycle::made::text(40)}});
    cluster.change(Kind::Pod, "job-b", &late);
    let snapshot = cluster.snapshot();
    let moves = of_intent(&snapshot, &intent("Underutilized"));
    let found: Vec<(String, u32)> = moves
        .iter()
        .map(|(name, n)| (name.to_string(), *n))
        .collect();
    let all = [
        ("web/Deployment/api", 2),
        ("web/Job/job", 1),
        ("web/ReplicaSet/rollout", 1),
        ("web/StatefulSet/db", 1),
    ];
    assert_eq!(found, expected(&all));
    assert!(
        of_intent(&snapshot, &intent("Drifted")).is_empty(),
        "drift counts none"
    );
}
