use std::collections::BTreeSet;

use joiner_disruption::{Method, Reason, Settings};
use joiner_model::{NanoDollars, NodeIx, Placement, Plan, Policy};
use joiner_state::live::{Ask, Kind};
use serde_json::{Value, json};

use joiner_disruption::Command;
use joiner_model::PodIx;

use super::successors::{SPREADS_MAX, Successor, Successors, turns};
use super::turns::{Target, Turn};
use crate::capacity_buffer::Headroom;
use crate::catalogs::Lists;
use crate::disruption::{Book, Facts, fleet};
use crate::nodeclaim::lifecycle::made::{Cluster, at, launched, node, pod, pool};
use crate::provisioning::Nominations;

fn own_node(name: &str) -> Value {
    node(&json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"),
            "labels": {"karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true",
                "karpenter.sh/initialized": "true", "node.kubernetes.io/instance-type": "m"}},
        "spec": {"providerID": format!("kwok://{name}"), "taints": []},
    }))
}

/// A pod of the workload `owner` on the node that goes, with so many millicores.
fn mover(name: &str, owner: &str, milli: u32, spec: &Value) -> Value {
    let mut own = pod(
        name,
        &json!({"metadata": {"labels": {"app": owner}, "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner,
            "controller": true}]}, "spec": spec}),
    );
    let requests = json!({"requests": {"cpu": format!("{milli}m")}});
    own["spec"]["containers"][0]["resources"] = requests;
    own
}

fn spread(name: &str, owner: &str, milli: u32) -> Value {
    mover(name, owner, milli, &evenly(owner, "DoNotSchedule"))
}

fn evenly(owner: &str, or_else: &str) -> Value {
    json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": or_else, "labelSelector": {"matchLabels": {"app": owner}}}]})
}

/// What a command that takes the node `n` away does: these pods are planned for each of these nodes.
fn turns_of(cluster: Cluster, plan: &[(&str, &[&str])], is_tight: bool) -> Vec<Turn> {
    let cluster = cluster
        .with(Kind::NodePool, pool("uid-p"))
        .with(Kind::NodeClaim, launched(&["Initialized"], &json!({})))
        .with(Kind::Node, own_node("n"))
        .with(Kind::Node, own_node("a"))
        .with(Kind::Node, own_node("b"));
    let snapshot = cluster.snapshot();
    let asked = snapshot.problem(&Ask {
        catalogs: &Lists::new(),
        policy: Policy::default(),
        now: at(100),
        planned: &BTreeSet::new(),
        headroom: &[],
    });
    let asked = asked.unwrap();
    let facts = Facts {
        snapshot: &snapshot,
        nominations: &Nominations::default(),
        headroom: &Headroom::default(),
        book: &Book::default(),
        terms: crate::nodeclaim::lifecycle::made::terms(),
        settings: Settings::default(),
        changed: at(100),
        now: at(100),
    };
    let fleet = fleet(&facts, &asked.problem);
    let nodes = &asked.problem.nodes;
    let node = |name: &str| nodes.iter().position(|own| &*own.name == name).unwrap();
    let pods = &asked.problem.pods;
    let pod = |name: &&str| {
        let name = format!("web/{name}");
        let at = pods.iter().position(|own| *own.name == *name).unwrap();
        PodIx(u32::try_from(at).unwrap())
    };
    let placements = plan.iter().map(|(to, pods)| Placement {
        node: NodeIx(u32::try_from(node(to)).unwrap()),
        pods: pods.iter().map(pod).collect(),
    });
    let command = Command {
        reason: Reason::Underutilized,
        method: Method::Single,
        members: vec![0],
        claims: vec!["c".into()],
        group_nodes: Vec::new(),
        plan: Plan {
            placements: placements.collect(),
            ..Plan::default()
        },
        from_template: 0,
        is_tight,
        price_before: NanoDollars::ZERO,
        price_after: NanoDollars::ZERO,
        move_cost: NanoDollars::ZERO,
        why: String::new(),
    };
    turns(&snapshot, &fleet, &command, &[])
}

/// Who leaves when, and what is open then.
fn told(turns: &[Turn]) -> Vec<String> {
    let of = |turn: &Turn| {
        let opens = turn.opens.iter().map(|place| match place {
            Target::Node(name) | Target::Claim(name) => &**name,
        });
        let leavers = turn.leavers.iter().map(|own| &own.pod["web/".len()..]);
        let (opens, leavers): (Vec<_>, Vec<_>) = (opens.collect(), leavers.collect());
        format!("{}: {}", opens.join(" "), leavers.join(" "))
    };
    turns.iter().map(of).collect()
}

#[test]
fn nobody_takes_turns_where_there_is_room() {
    let cluster = Cluster::default().with(Kind::Pod, mover("x", "x", 100, &json!({})));
    assert!(turns_of(cluster, &[("a", &["x"])], false).is_empty());
}

#[test]
fn what_was_opened_for_a_spread_stays_open_and_there_is_an_end_to_turns() {
    let mut cluster = Cluster::default();
    let name = |n: u32| format!("x{n:02}");
    let names: Vec<String> = (0..14).map(name).collect();
    for (n, name) in (0u32..).zip(&names) {
        cluster = cluster.with(Kind::Pod, spread(name, name, 200 - n));
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let turns = turns_of(cluster, &[("a", &all[1..]), ("b", &all[..1])], true);
    let told = told(&turns);
    assert_eq!(told.len(), SPREADS_MAX + 1);
    assert_eq!(told[..2], ["b: x00", "b a: x01"]);
    assert_eq!(told[SPREADS_MAX], "a b: x12 x13");
}

#[test]
fn spreads_leave_one_after_the_other_the_largest_first() {
    let critical = json!({"priorityClassName": "system-cluster-critical"});
    let cluster = Cluster::default()
        .with(Kind::Pod, mover("plain", "plain", 100, &json!({})))
        .with(
            Kind::Pod,
            mover("rather", "rather", 100, &evenly("rather", "ScheduleAnyway")),
        )
        .with(Kind::Pod, mover("vital", "vital", 100, &critical))
        .with(Kind::Pod, spread("small", "small", 100))
        .with(Kind::Pod, spread("large-1", "large", 500))
        .with(Kind::Pod, spread("large-2", "large", 500));
    let plan: [(&str, &[&str]); 2] = [
        ("a", &["small", "large-1", "vital"]),
        ("b", &["plain", "large-2", "rather"]),
    ];
    let turns = turns_of(cluster, &plan, true);
    assert_eq!(
        told(&turns),
        [
            "b: plain rather",
            "a b: large-1 large-2",
            "a b: small",
            "a b: vital"
        ]
    );
}

#[test]
fn whoever_leaves_by_another_command_does_not_wait_for_this_one() {
    let elsewhere = json!({"nodeName": "b"});
    let cluster = Cluster::default()
        .with(Kind::Pod, mover("x", "x", 100, &json!({})))
        .with(Kind::Pod, mover("y", "y", 100, &elsewhere));
    let turns = turns_of(cluster, &[("a", &["x", "y"])], true);
    assert_eq!(told(&turns), ["a: x", "a: "]);
}

#[test]
fn each_successor_is_welcomed_once() {
    let mut all = Successors::default();
    let to = |owner: &str, to: &str| Successor {
        owner: owner.into(),
        to: to.into(),
    };
    all.expect(vec![to("rs", "a"), to("rs", "b"), to("other", "c")], at(0));
    assert_eq!(all.welcome("rs", at(1)).as_deref(), Some("a"));
    assert_eq!(all.welcome("rs", at(1)).as_deref(), Some("b"));
    assert_eq!(all.welcome("rs", at(1)), None);
    assert_eq!(all.welcome("other", at(600)), None, "too late");
    all.expect(Vec::new(), at(600));
    assert!(!all.expects_any());
}
