use std::collections::BTreeMap;

use joiner_api::labels::IN_TURN_TAINT;
use joiner_state::live::{COMMAND, CommandIntent, Kind};
use serde_json::{Value, json};

use super::Write;
use super::turns::{Leaver, Move, Target, Turn, Turns};
use crate::nodeclaim::lifecycle::made::{self, Cluster, at, launched};

const ID: &str = "command-x";

fn intent() -> String {
    let intent = CommandIntent {
        id: ID.to_owned(),
        reason: "Underutilized".to_owned(),
        method: "single".to_owned(),
        started: at(50),
        members: vec!["c".to_owned()],
        replacements: vec!["new".to_owned()],
        saves: 1,
        moves: 2,
    };
    intent.text()
}

/// A node called `name`, closed or not.
fn node(name: &str, closed: bool) -> Value {
    let taints = match closed {
        true => vec![IN_TURN_TAINT.to_taint()],
        false => Vec::new(),
    };
    made::node(&json!({
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"providerID": format!("kwok://{name}"), "taints": taints},
    }))
}

/// A pod of the owner `rs`.
fn pod(name: &str, node: Option<&str>) -> Value {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs",
        "controller": true}]);
    made::pod(
        name,
        &json!({"metadata": {"ownerReferences": owner}, "spec": {"nodeName": node}}),
    )
}

/// Two pods on the node of the claim `c`, which goes; one of them is planned for the node `old`, the
/// other for that of the claim `new`.
fn cluster() -> Cluster {
    let member = launched(
        &["Launched", "Registered", "Initialized"],
        &json!({"metadata": {"annotations": {COMMAND: intent()}}}),
    );
    let new = launched(
        &["Launched", "Registered", "Initialized"],
        &json!({"metadata": {"name": "new", "uid": "uid-new"},
            "status": {"providerID": "kwok://young"}}),
    );
    Cluster::default()
        .with(Kind::NodeClaim, member)
        .with(Kind::NodeClaim, new)
        .with(Kind::Node, node("n", false))
        .with(Kind::Node, node("old", false))
        .with(Kind::Node, node("young", true))
        .with(Kind::Pod, pod("a", Some("n")))
        .with(Kind::Pod, pod("b", Some("n")))
}

fn leaver(name: &str) -> Leaver {
    Leaver {
        pod: format!("web/{name}").into(),
        uid: format!("uid-{name}").into(),
        owner: Some("rs".into()),
    }
}

fn turns() -> Turns {
    let mut turns = Turns::default();
    turns.plan(Move {
        id: ID.to_owned(),
        members: vec!["c".into()],
        turns: vec![
            Turn {
                opens: vec![Target::Node("old".into())],
                leavers: vec![leaver("a")],
            },
            Turn {
                opens: vec![Target::Claim("new".into())],
                leavers: vec![leaver("b")],
            },
        ],
        replicas: BTreeMap::from([("rs".into(), 2)]),
    });
    turns
}

fn held(turns: &Turns) -> [bool; 2] {
    ["uid-a", "uid-b"].map(|uid| turns.holds(uid))
}

fn tainted(cluster: &Cluster) -> Vec<&'static str> {
    let snapshot = cluster.snapshot();
    let is_closed = |name: &&str| snapshot.node(name).unwrap().has_taint(&IN_TURN_TAINT);
    ["old", "young"].into_iter().filter(is_closed).collect()
}

/// Closes and opens nodes as they should be, and goes on.
fn sweep(turns: &mut Turns, cluster: &mut Cluster, secs: i64) {
    for write in turns.decide(&cluster.snapshot(), at(secs)) {
        match write {
            Write::Close(name) => cluster.put(Kind::Node, node(&name, true)),
            Write::Open(name) => cluster.put(Kind::Node, node(&name, false)),
            Write::Propose { .. } | Write::Withdraw { .. } => panic!("turns propose nothing"),
        }
    }
    turns.decide(&cluster.snapshot(), at(secs));
}

#[test]
fn one_node_after_the_other_is_opened() {
    let (mut turns, mut cluster) = (turns(), cluster());
    sweep(&mut turns, &mut cluster, 60);
    turns.begin(ID);
    // Nothing leaves yet: what is new stays closed meanwhile, what was there before is open.
    sweep(&mut turns, &mut cluster, 60);
    assert_eq!(tainted(&cluster), ["young"]);
    assert_eq!(held(&turns), [true, true]);
    assert!(turns.owners().is_empty());
    cluster.delete(Kind::NodeClaim, "c", at(100));
    sweep(&mut turns, &mut cluster, 100);
    assert_eq!(tainted(&cluster), ["young"]);
    assert_eq!(held(&turns), [false, true]);
    assert_eq!(turns.owners(), ["rs".into()].into());
    // It has left, and the other one has no place yet.
    cluster.remove(Kind::Pod, "a");
    cluster.put(Kind::Pod, pod("a2", None));
    sweep(&mut turns, &mut cluster, 101);
    assert_eq!(held(&turns), [false, true]);
    cluster.put(Kind::Pod, pod("a2", Some("old")));
    sweep(&mut turns, &mut cluster, 102);
    assert_eq!(tainted(&cluster), ["old"], "its turn is over");
    assert_eq!(held(&turns), [false, false]);
    assert_eq!(turns.nodes(&cluster.snapshot()), ["n".into()].into());
    cluster.remove(Kind::Pod, "b");
    cluster.put(Kind::Pod, pod("b2", Some("young")));
    sweep(&mut turns, &mut cluster, 103);
    assert!(turns.is_empty());
    sweep(&mut turns, &mut cluster, 103);
    assert_eq!(tainted(&cluster), [] as [&str; 0]);
}

#[test]
fn a_turn_in_which_nothing_happens_ends() {
    let (mut turns, mut cluster) = (turns(), cluster());
    turns.begin(ID);
    cluster.delete(Kind::NodeClaim, "c", at(100));
    sweep(&mut turns, &mut cluster, 100);
    sweep(&mut turns, &mut cluster, 101);
    assert_eq!(held(&turns), [false, true]);
    // A budget keeps the pod.
    sweep(&mut turns, &mut cluster, 102);
    assert_eq!(held(&turns), [false, false]);
    assert_eq!(tainted(&cluster), ["old"]);
    sweep(&mut turns, &mut cluster, 104);
    sweep(&mut turns, &mut cluster, 104);
    assert!(turns.is_empty());
    assert_eq!(tainted(&cluster), [] as [&str; 0]);
}

#[test]
fn a_node_that_cannot_be_closed_is_not_waited_for() {
    let (mut turns, mut cluster) = (turns(), cluster());
    cluster.put(Kind::Node, node("young", false));
    turns.begin(ID);
    cluster.delete(Kind::NodeClaim, "c", at(100));
    turns.decide(&cluster.snapshot(), at(100));
    turns.decide(&cluster.snapshot(), at(101));
    assert_eq!(held(&turns), [true, true]);
    turns.decide(&cluster.snapshot(), at(102));
    assert!(!turns.holds("uid-a"));
}

#[test]
fn nothing_is_closed_for_a_command_that_is_undone() {
    let (mut turns, mut cluster) = (turns(), cluster());
    turns.begin(ID);
    sweep(&mut turns, &mut cluster, 60);
    assert!(!turns.is_empty());
    let undone = json!({"metadata": {"annotations": {COMMAND: null}}});
    cluster.change(Kind::NodeClaim, "c", &undone);
    sweep(&mut turns, &mut cluster, 61);
    assert!(turns.is_empty());
    assert_eq!(tainted(&cluster), [] as [&str; 0]);

    let mut turns = self::turns();
    turns.forget(ID);
    assert!(turns.is_empty());
    assert_eq!(held(&turns), [false, false]);
}

#[test]
fn after_a_restart_everything_is_opened() {
    let mut cluster = cluster();
    assert_eq!(tainted(&cluster), ["young"]);
    sweep(&mut Turns::default(), &mut cluster, 60);
    assert_eq!(tainted(&cluster), [] as [&str; 0]);
}
