//! What becomes of Nodes that are to go, step by step.

use jiff::Timestamp;
use joiner_cloud::Termination;
use joiner_state::live::Kind;
use serde_json::{Value, json};

use super::drain::Drain;
use super::{Answers, NodeStep, NodeView, next_step};
use crate::nodeclaim::lifecycle::made::{Cluster, at, going_node, launched, pod, terms, text};

/// What the cloud says: whether there is a machine, and how its end stands.
#[derive(Clone, Copy)]
struct FakeCloud {
    there: bool,
    end: Termination,
}

const GOOD: FakeCloud = FakeCloud {
    there: true,
    end: Termination::Gone,
};

/// Takes steps until there is nothing to do but wait; tells which, and the last drain.
fn settle(cluster: &mut Cluster, cloud: FakeCloud, now: Timestamp) -> (Vec<String>, Drain) {
    let mut told: Vec<String> = Vec::new();
    let mut asked = Answers::default();
    for _ in 0..20 {
        let snapshot = cluster.snapshot();
        let view = NodeView::of(&snapshot, "n", &terms(), now).unwrap();
        let step = next_step(&view, asked, now);
        told.push(word(&step));
        match step {
            NodeStep::Wait(_) | NodeStep::BadDeadline(_) | NodeStep::AwaitVolumes(_) => {
                return (told, Drain::default());
            }
            NodeStep::Drain(drain) => return (told, drain),
            NodeStep::DeleteClaim => cluster.delete(Kind::NodeClaim, "c", now),
            NodeStep::AskMachine(_) => asked.machine = Some(cloud.there),
            NodeStep::Taint(patch) => cluster.change(Kind::Node, "n", &patch),
            NodeStep::Write(write) => cluster.change(Kind::NodeClaim, "c", &write.patch),
            NodeStep::Terminate(_) => asked.termination = Some(cloud.end),
            NodeStep::RemoveFinalizer(patch) => {
                cluster.change(Kind::Node, "n", &patch);
                return (told, Drain::default());
            }
        }
    }
    panic!("it never settles: {told:?}");
}

fn word(step: &NodeStep) -> String {
    match step {
        NodeStep::Wait(None) => "wait".to_owned(),
        NodeStep::Wait(Some(wait)) => format!("wait {} s", wait.as_secs()),
        NodeStep::DeleteClaim => "delete claim".to_owned(),
        NodeStep::AskMachine(_) => "ask".to_owned(),
        NodeStep::BadDeadline(why) => why.clone(),
        NodeStep::Taint(_) => "taint".to_owned(),
        NodeStep::Write(_) => "write".to_owned(),
        NodeStep::Drain(drain) => format!("drain {}", drain.n_waiting),
        NodeStep::AwaitVolumes(volumes) => format!("await {}", volumes.join(", ")),
        NodeStep::Terminate(_) => "terminate".to_owned(),
        NodeStep::RemoveFinalizer(_) => "release".to_owned(),
    }
}

/// Names of the pods that have to leave now.
fn leaving(drain: &Drain) -> Vec<&str> {
    drain
        .now
        .iter()
        .map(|own| &own.pod["web/".len()..])
        .collect()
}

/// A registered claim and its Node, which was deleted at second 100.
fn cluster(claim_more: &Value, node_more: &Value) -> Cluster {
    let all = ["Launched", "Registered", "Initialized"];
    Cluster::default()
        .with(Kind::NodeClaim, launched(&all, claim_more))
        .with(Kind::Node, going_node(node_more))
}

fn with_pods(mut cluster: Cluster, pods: &[(&str, Value)]) -> Cluster {
    for (name, more) in pods {
        cluster.put(Kind::Pod, pod(name, more));
    }
    cluster
}

/// A claim that goes at this second, drained or not.
fn goes_at(secs: i64) -> Value {
    let key = "karpenter.sh/nodeclaim-termination-timestamp";
    json!({"metadata": {"annotations": {key: text(secs)}}})
}

fn held(cluster: &Cluster) -> bool {
    let node = cluster.get(Kind::Node, "n");
    node["metadata"]["finalizers"] == json!(["karpenter.sh/termination"])
}

#[test]
fn core_310_a_deleted_node_takes_its_claim_and_its_machine_along() {
    let mut cluster = with_pods(cluster(&json!({}), &json!({})), &[("a", json!({}))]);
    let (told, drain) = settle(&mut cluster, GOOD, at(101));
    assert_eq!(told, ["delete claim", "taint", "write", "drain 1"]);
    assert_eq!(leaving(&drain), ["a"]);
    assert_eq!(cluster.condition("Drained"), "Unknown Draining Draining");
    cluster.remove(Kind::Pod, "a");
    let (told, _) = settle(&mut cluster, GOOD, at(110));
    assert_eq!(told, ["write", "terminate", "write", "release"]);
    assert!(!held(&cluster));
    assert_eq!(cluster.condition("Drained"), "True Drained");
    assert_eq!(cluster.condition("VolumesDetached"), "True VolumesDetached");
    assert_eq!(
        cluster.condition("InstanceTerminating"),
        "True InstanceTerminating",
        "stored, though somebody else may hold the Node for longer"
    );
    assert_eq!(settle(&mut cluster, GOOD, at(111)).0, ["wait"]);
}

#[test]
fn core_310_without_a_claim_or_with_two_it_is_drained_all_the_same() {
    let alone = Cluster::default().with(Kind::Node, going_node(&json!({})));
    let mut twice = cluster(&json!({}), &json!({}));
    let other = json!({"metadata": {"name": "d", "uid": "uid-d"}});
    twice.put(Kind::NodeClaim, launched(&["Launched"], &other));
    for mut cluster in [alone, twice] {
        cluster.put(Kind::Pod, pod("a", &json!({})));
        let (told, drain) = settle(&mut cluster, GOOD, at(101));
        assert_eq!(told, ["taint", "drain 1"]);
        assert_eq!(leaving(&drain), ["a"]);
        cluster.remove(Kind::Pod, "a");
        assert_eq!(settle(&mut cluster, GOOD, at(103)).0, ["wait 2 s"]);
        assert_eq!(settle(&mut cluster, GOOD, at(105)).0, ["release"]);
    }
}

#[test]
fn core_310_nodes_of_others_and_nodes_that_stay_are_ignored() {
    let theirs = json!({"metadata": {"labels": {"karpenter.kwok.sh/kwoknodeclass": null}}});
    let staying = json!({"metadata": {"deletionTimestamp": null}});
    let let_go = json!({"metadata": {"finalizers": ["example.com/theirs"]}});
    let other = json!({"spec": {"nodeClassRef": {"group": "other.example.com"}}});
    for (claim, more) in [(other, theirs), (json!({}), staying), (json!({}), let_go)] {
        let mut cluster = cluster(&claim, &more);
        assert_eq!(settle(&mut cluster, GOOD, at(101)).0, ["wait"], "{more}");
    }
}

#[test]
fn core_311_it_leaves_load_balancers_and_is_closed_to_new_pods() {
    let taints = json!([
        {"key": "karpenter.sh/disrupted", "effect": "PreferNoSchedule"},
        {"key": "own", "effect": "NoExecute", "timeAdded": text(1)},
    ]);
    let mut cluster = cluster(&json!({}), &json!({"spec": {"taints": taints}}));
    settle(&mut cluster, GOOD, at(101));
    let node = cluster.get(Kind::Node, "n");
    let label =
        &node["metadata"]["labels"]["node.kubernetes.io/exclude-from-external-load-balancers"];
    assert_eq!(label, "karpenter");
    let wanted = json!([
        {"key": "own", "effect": "NoExecute", "timeAdded": text(1)},
        {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},
    ]);
    assert_eq!(node["spec"]["taints"], wanted);
}

fn tolerating(toleration: &Value) -> Value {
    json!({"spec": {"tolerations": [toleration]}})
}

#[test]
fn core_312_pods_that_tolerate_the_taint_stay_and_block_nothing() {
    let key = "karpenter.sh/disrupted";
    let cases = [
        (
            json!({"key": key, "operator": "Equal", "effect": "NoSchedule"}),
            false,
        ),
        (json!({"key": key, "operator": "Exists"}), false),
        (json!({"operator": "Exists"}), false),
        (
            json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}),
            true,
        ),
    ];
    for (toleration, evicted) in cases {
        let pods = [("a", tolerating(&toleration))];
        let mut cluster = with_pods(cluster(&json!({}), &json!({})), &pods);
        let (_, drain) = settle(&mut cluster, GOOD, at(101));
        assert_eq!(!drain.is_done(), evicted, "{toleration}");
    }
}

#[test]
fn core_313_who_leaves_and_who_does_not() {
    let owned = |kind: &str| {
        json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": "o",
            "uid": "u", "controller": true}]}})
    };
    let cases = [
        ("no owner", json!({}), true),
        ("replica set", owned("ReplicaSet"), true),
        ("static", owned("Node"), false),
        (
            "succeeded",
            json!({"status": {"phase": "Succeeded"}}),
            false,
        ),
        ("failed", json!({"status": {"phase": "Failed"}}), false),
    ];
    for (what, more, evicted) in cases {
        let mut cluster = with_pods(cluster(&json!({}), &json!({})), &[("a", more)]);
        let (_, drain) = settle(&mut cluster, GOOD, at(101));
        assert_eq!(leaving(&drain) == ["a"], evicted, "{what}");
        assert_eq!(drain.is_done(), !evicted, "{what}");
    }
}

#[test]
fn core_314_groups_leave_one_after_the_other() {
    let daemon = json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1",
        "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true}]}});
    let critical = json!({"spec": {"priorityClassName": "system-cluster-critical"}});
    let mut both = daemon.clone();
    both["spec"] = json!({"priorityClassName": "system-node-critical"});
    let pods = [
        ("critical-daemon", both),
        ("critical", critical),
        ("daemon", daemon),
        ("plain", json!({})),
    ];
    let mut cluster = with_pods(cluster(&json!({}), &json!({})), &pods);
    for (n, name) in ["plain", "daemon", "critical", "critical-daemon"]
        .into_iter()
        .enumerate()
    {
        let (_, drain) = settle(&mut cluster, GOOD, at(101));
        assert_eq!((leaving(&drain), drain.n_waiting), (vec![name], 4 - n));
        // While it ends, those after it are not touched.
        cluster.delete(Kind::Pod, name, at(130));
        let (_, drain) = settle(&mut cluster, GOOD, at(102));
        assert_eq!((leaving(&drain), drain.n_waiting), (Vec::new(), 4 - n));
        cluster.remove(Kind::Pod, name);
    }
}

#[test]
fn core_315_the_node_stays_until_its_pods_are_gone() {
    let ending = json!({"metadata": {"deletionTimestamp": text(130)}});
    let mut cluster = with_pods(cluster(&json!({}), &json!({})), &[("a", ending)]);
    let (told, drain) = settle(&mut cluster, GOOD, at(120));
    assert_eq!(told.last().map(String::as_str), Some("drain 1"));
    assert!(drain.now.is_empty(), "it is going already");
    assert!(held(&cluster));
}

#[test]
fn core_315_a_node_without_its_machine_is_let_go_unless_it_is_ready() {
    let gone = FakeCloud {
        there: false,
        ..GOOD
    };
    let not_ready = json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": text(0)}]);
    let not_ready = json!({"status": {"conditions": not_ready}});
    let cases = [
        (&not_ready, gone, vec!["delete claim", "ask", "release"]),
        (
            &not_ready,
            GOOD,
            vec!["delete claim", "ask", "taint", "write", "drain 1"],
        ),
        (
            &json!({}),
            gone,
            vec!["delete claim", "taint", "write", "drain 1"],
        ),
    ];
    for (more, cloud, wanted) in cases {
        let mut cluster = with_pods(cluster(&json!({}), more), &[("a", json!({}))]);
        assert_eq!(settle(&mut cluster, cloud, at(101)).0, wanted);
    }
}

#[test]
fn core_316_a_pod_that_should_long_be_gone_is_not_waited_for() {
    for (now, waits) in [(190, true), (191, false)] {
        let ending = json!({"metadata": {"deletionTimestamp": text(130)}});
        let mut cluster = with_pods(cluster(&json!({}), &json!({})), &[("a", ending)]);
        let (_, drain) = settle(&mut cluster, GOOD, at(now));
        assert_eq!(!drain.is_done(), waits, "at {now} s");
    }
}

#[test]
fn core_318_a_pod_is_due_when_its_grace_does_not_fit_any_more() {
    // The node goes at second 160; its first group is the plain pod.
    let critical = |secs: u32| {
        json!({"spec": {"priorityClassName": "system-node-critical",
            "terminationGracePeriodSeconds": secs}})
    };
    for (grace, now, due) in [
        (300, 101, true),
        (30, 101, false),
        (30, 130, false),
        (30, 131, true),
        (0, 160, false),
        (0, 161, true),
    ] {
        let pods = [
            ("a", json!({"spec": {"terminationGracePeriodSeconds": 1}})),
            ("z", critical(grace)),
        ];
        let mut cluster = with_pods(cluster(&goes_at(160), &json!({})), &pods);
        let (_, drain) = settle(&mut cluster, GOOD, at(now));
        let z = drain.now.iter().find(|own| &*own.pod == "web/z");
        assert_eq!(z.is_some_and(|own| own.is_due), due, "{grace} s at {now}");
        assert!(drain.now.iter().all(|own| own.deadline == Some(at(160))));
    }
}

#[test]
fn core_319_a_due_critical_pod_does_not_wait_for_the_others() {
    let critical = json!({"spec": {"priorityClassName": "system-node-critical"}});
    let pods = [("blocked", json!({})), ("critical", critical)];
    let mut cluster = with_pods(cluster(&goes_at(160), &json!({})), &pods);
    let (_, drain) = settle(&mut cluster, GOOD, at(120));
    assert_eq!(leaving(&drain), ["blocked"]);
    let (_, drain) = settle(&mut cluster, GOOD, at(161));
    assert_eq!(leaving(&drain), ["blocked", "critical"]);
    assert!(drain.now.iter().all(|own| own.is_due));
}

#[test]
fn core_320_a_pod_that_ends_too_late_is_due_and_one_that_ends_in_time_is_not() {
    for (ends, due) in [(159, false), (160, false), (161, true), (400, true)] {
        let ending = json!({"metadata": {"deletionTimestamp": text(ends)},
            "spec": {"terminationGracePeriodSeconds": 300}});
        let mut cluster = with_pods(cluster(&goes_at(160), &json!({})), &[("a", ending)]);
        let (_, drain) = settle(&mut cluster, GOOD, at(110));
        assert_eq!(leaving(&drain) == ["a"], due, "ends at {ends}");
        assert_eq!(drain.n_waiting, 1);
    }
}

#[test]
fn core_321_a_drain_takes_five_seconds_at_least() {
    let mut cluster = cluster(&json!({}), &json!({}));
    let told = settle(&mut cluster, GOOD, at(150)).0;
    assert_eq!(told, ["delete claim", "taint", "write", "wait 5 s"]);
    // A pod that was bound before the scheduler saw the taint.
    cluster.put(Kind::Pod, pod("late", &json!({})));
    assert_eq!(settle(&mut cluster, GOOD, at(153)).0, ["drain 1"]);
    cluster.remove(Kind::Pod, "late");
    assert_eq!(settle(&mut cluster, GOOD, at(154)).0, ["wait 1 s"]);
    let told = settle(&mut cluster, GOOD, at(155)).0;
    assert_eq!(told, ["write", "terminate", "write", "release"]);
}

fn attachment(name: &str, volume: Option<&str>) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
        "metadata": {"name": name, "uid": name},
        "spec": {"attacher": "csi.example.com", "nodeName": "n",
            "source": {"persistentVolumeName": volume}}})
}

#[test]
fn core_322_volumes_are_waited_for_but_not_those_of_pods_that_stay() {
    let stays = json!({"spec": {"tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "kept"}}]}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "kept", "namespace": "web", "uid": "k"},
        "spec": {"volumeName": "pv-kept", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}});
    let mut cluster = with_pods(cluster(&goes_at(300), &json!({})), &[("stays", stays)]);
    cluster.put(Kind::PersistentVolumeClaim, claim);
    cluster.put(
        Kind::VolumeAttachment,
        attachment("a-kept", Some("pv-kept")),
    );
    cluster.put(Kind::VolumeAttachment, attachment("a-inline", None));
    cluster.put(
        Kind::VolumeAttachment,
        attachment("a-left", Some("pv-left")),
    );
    settle(&mut cluster, GOOD, at(101));
    let told = settle(&mut cluster, GOOD, at(106)).0;
    assert_eq!(told, ["write", "await a-left"]);
    assert!(
        cluster
            .condition("VolumesDetached")
            .starts_with("Unknown AwaitingVolumeDetachment Awaiting deletion")
    );
    let mut late = cluster.clone();
    assert_eq!(settle(&mut late, GOOD, at(300)).0, ["await a-left"]);
    let told = settle(&mut late, GOOD, at(301)).0;
    assert_eq!(told, ["write", "terminate", "write", "release"]);
    assert!(
        late.condition("VolumesDetached")
            .starts_with("False TerminationGracePeriodElapsed")
    );
    cluster.remove(Kind::VolumeAttachment, "a-left");
    let told = settle(&mut cluster, GOOD, at(107)).0;
    assert_eq!(told, ["write", "terminate", "write", "release"]);
    assert_eq!(cluster.condition("VolumesDetached"), "True VolumesDetached");
}

#[test]
fn core_325_the_finalizer_stays_as_long_as_the_machine() {
    let going = FakeCloud {
        end: Termination::Going,
        ..GOOD
    };
    let mut cluster = cluster(&json!({}), &json!({}));
    settle(&mut cluster, going, at(101));
    let told = settle(&mut cluster, going, at(106)).0;
    assert_eq!(told, ["write", "terminate", "write", "wait 5 s"]);
    assert_eq!(
        cluster.condition("InstanceTerminating"),
        "True InstanceTerminating"
    );
    assert!(held(&cluster));
    assert_eq!(
        settle(&mut cluster, going, at(111)).0,
        ["terminate", "wait 5 s"]
    );
    assert_eq!(
        settle(&mut cluster, GOOD, at(116)).0,
        ["terminate", "release"]
    );
}

#[test]
fn a_deadline_that_is_no_time_stops_everything() {
    let key = "karpenter.sh/nodeclaim-termination-timestamp";
    let odd = json!({"metadata": {"annotations": {key: "tomorrow"}}});
    let mut cluster = cluster(&odd, &json!({}));
    let told = settle(&mut cluster, GOOD, at(101)).0;
    let why = told.last().unwrap();
    assert!(why.contains(key) && why.contains("tomorrow"), "{why}");
    assert!(held(&cluster));
}
