//! Upstream behaviors about what decisions rest on, and about commands under way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use joiner_api::labels::aws::CAPACITY_RESERVATION_ID;
use joiner_api::labels::{CAPACITY_TYPE, ZONE};
use joiner_disruption::{Member, Settings};
use joiner_model::{InstanceType, NanoDollars, Offering, Policy, Resources};
use joiner_state::NodeClassRef;
use joiner_state::live::{Ask, Asked, Change, ClusterState, Kind, PLANNED, Snapshot, What};
use serde_json::{Value, json};

use super::fleet::{Facts, fleet};
use super::moves::Book;
use super::queue_tests::intent;
use super::when::{is_stale, is_too_early, matters};
use super::{COMMAND, apply};
use crate::capacity_buffer::Headroom;
use crate::catalogs::Lists;
use crate::nodeclaim::lifecycle::made::{
    Cluster, at, going_node, launched, merge, node, pod, pool, text,
};
use crate::provisioning::Nominations;

pub(super) const UP: &[&str] = &["Launched", "Registered", "Initialized", "Consolidatable"];

fn of_pool() -> Value {
    json!({"metadata": {"labels": {"karpenter.sh/nodepool": "p",
        "node.kubernetes.io/instance-type": "m", "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true"}}, "spec": {"taints": []}})
}

/// A pool with one node that is up.
fn cluster() -> Cluster {
    Cluster::default()
        .with(Kind::NodePool, pool("uid-p"))
        .with(Kind::NodeClaim, launched(UP, &json!({})))
        .with(Kind::Node, node(&of_pool()))
}

fn asked(snapshot: &Snapshot, catalogs: &Lists, now: Timestamp) -> Asked {
    snapshot
        .problem(&Ask {
            catalogs,
            policy: Policy::default(),
            now,
            planned: &BTreeSet::new(),
            headroom: &[],
        })
        .unwrap()
}

fn members_at(cluster: &Cluster, nominations: &Nominations, now: Timestamp) -> Vec<Member> {
    members_of(cluster, &Lists::new(), nominations, now)
}

fn members_of(
    cluster: &Cluster,
    catalogs: &Lists,
    nominations: &Nominations,
    now: Timestamp,
) -> Vec<Member> {
    let snapshot = cluster.snapshot();
    let asked = asked(&snapshot, catalogs, now);
    let facts = Facts {
        snapshot: &snapshot,
        nominations,
        headroom: &Headroom::default(),
        book: &Book::default(),
        terms: crate::nodeclaim::lifecycle::made::terms(),
        settings: Settings::default(),
        changed: now,
        now,
    };
    fleet(&facts, &asked.problem).members
}

fn members(cluster: &Cluster) -> Vec<Member> {
    members_at(cluster, &Nominations::default(), at(100))
}

#[track_caller]
fn only(cluster: &Cluster) -> Member {
    let mut all = members(cluster);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

pub(super) fn annotated(key: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

/// Type `m`, with two reservations in zone a: `dear` for 4, `cheap` for 2.
fn reserved_catalog() -> Lists {
    let offering = |id: &str, nanos| Offering {
        labels: [
            (ZONE, "a"),
            (CAPACITY_TYPE, "reserved"),
            (CAPACITY_RESERVATION_ID, id),
        ]
        .map(|(key, value)| (key.into(), value.into()))
        .into(),
        price: NanoDollars::new(nanos),
        available: true,
        reservation: Some((id.into(), 1)),
        extra_capacity: Resources::new(),
    };
    let own = InstanceType {
        name: "m".into(),
        labels: BTreeMap::new(),
        capacity: Resources::new(),
        overhead: Resources::new(),
        offerings: vec![offering("cheap", 2), offering("dear", 4)],
    };
    let class = NodeClassRef {
        group: "karpenter.kwok.sh".into(),
        kind: "KWOKNodeClass".into(),
        name: "k".into(),
    };
    Lists::from([(class, Arc::new(vec![own]))])
}

#[test]
fn core_204_members_are_priced_by_their_own_reservation() {
    for (id, expected) in [("cheap", 2), ("dear", 4)] {
        let mut own = cluster();
        let labels = json!({"metadata": {"labels": {ZONE: "a", CAPACITY_TYPE: "reserved",
            CAPACITY_RESERVATION_ID: id}}});
        own.change(Kind::Node, "n", &labels);
        let all = members_of(&own, &reserved_catalog(), &Nominations::default(), at(100));
        assert_eq!(all[0].price, Some(NanoDollars::new(expected)), "{id}");
    }
}

const KEEP: &str = "karpenter.sh/do-not-disrupt";

#[test]
fn core_249_a_node_says_no_with_one_word() {
    for (value, expected) in [("true", true), ("false", false), ("yes", false)] {
        let mut own = cluster();
        own.change(Kind::Node, "n", &annotated(KEEP, value));
        assert_eq!(only(&own).do_not_disrupt, expected, "{value}");
    }
    assert!(!only(&cluster()).do_not_disrupt);
}

fn budget(name: &str, namespace: &str, more: &Value) -> Value {
    let mut object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}")},
        "spec": {"selector": {"matchLabels": {"app": "a"}}},
        "status": {"disruptionsAllowed": 0}});
    merge(&mut object, more);
    object
}

/// With a pod that budgets for `app: a` are about.
fn with_pod(more: &Value) -> Cluster {
    let mut own = json!({"metadata": {"labels": {"app": "a"}}});
    merge(&mut own, more);
    cluster().with(Kind::Pod, pod("a", &own))
}

fn owned(kind: &str) -> Value {
    json!({"metadata": {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "uid-o", "controller": true}]}})
}

#[test]
fn core_250_whose_budgets_count() {
    let blocked = |more: &Value| {
        let own = with_pod(more).with(Kind::PodDisruptionBudget, budget("b", "web", &json!({})));
        only(&own).blocking_budget
    };
    assert_eq!(blocked(&json!({})).as_deref(), Some("web/b"));
    assert_eq!(
        blocked(&owned("DaemonSet")).as_deref(),
        Some("web/b"),
        "a DaemonSet's, too"
    );
    let nobody = [
        ("mirror", annotated("kubernetes.io/config.mirror", "x")),
        ("finished", json!({"status": {"phase": "Succeeded"}})),
        (
            "going",
            json!({"metadata": {"deletionTimestamp": text(90)}}),
        ),
        ("kept by itself", annotated(KEEP, "true")),
    ];
    for (what, more) in nobody {
        assert_eq!(blocked(&more), None, "{what}");
    }
    let two = with_pod(&json!({}))
        .with(Kind::PodDisruptionBudget, budget("b", "web", &json!({})))
        .with(Kind::PodDisruptionBudget, budget("c", "web", &json!({})));
    assert_eq!(only(&two).several_budgets.as_deref(), Some("web/b, web/c"));
}

#[test]
fn core_251_who_is_no_candidate() {
    let mut no_claim = cluster();
    no_claim.remove(Kind::NodeClaim, "c");
    assert!(members(&no_claim).is_empty(), "a Node without a claim");
    let mut no_node = cluster();
    no_node.remove(Kind::Node, "n");
    assert!(members(&no_node).is_empty(), "a claim without a Node");
    let mut no_pool = cluster();
    no_pool.remove(Kind::NodePool, "p");
    assert!(members(&no_pool).is_empty(), "nobody knows its pool");
    let booting = cluster().with(Kind::NodeClaim, launched(&["Launched"], &json!({})));
    assert!(!only(&booting).initialized);
    let mut going = cluster();
    going.delete(Kind::NodeClaim, "c", at(90));
    assert!(only(&going).deleting);
    let nominations = Nominations::default();
    nominations.nominate(&"n".into(), at(90), Duration::from_secs(20));
    let all = members_at(&cluster(), &nominations, at(100));
    assert!(all[0].nominated);
    let mut commanded = cluster();
    commanded.change(
        Kind::NodeClaim,
        "c",
        &annotated(COMMAND, &intent(&["c"], &[]).text()),
    );
    assert!(only(&commanded).in_command);
}

#[test]
fn core_253_pods_that_say_no_for_a_while() {
    let until = |annotations: &[&str], secs: i64| {
        let mut own = cluster();
        for (n, value) in annotations.iter().enumerate() {
            own.put(Kind::Pod, pod(&format!("p{n}"), &annotated(KEEP, value)));
        }
        let all = members_at(&own, &Nominations::default(), at(secs));
        all[0].protected_pod.is_some()
    };
    // Pods start at second 20.
    assert!(until(&["1m"], 79) && !until(&["1m"], 81));
    assert!(until(&["1m", "2m"], 139), "the longest counts");
    assert!(!until(&["1m", "2m"], 141));
    assert!(until(&["true"], 1_000_000));
    assert!(!until(&["soon"], 21), "what cannot be read does not count");
}

#[test]
fn core_257_what_counts_against_budgets() {
    assert!(only(&cluster()).ready);
    let mut unready = cluster();
    let status = json!([{"type": "Ready", "status": "False", "lastTransitionTime": text(0)}]);
    let mut object = unready.get(Kind::Node, "n").clone();
    object["status"]["conditions"] = status;
    unready.put(Kind::Node, object);
    assert!(!only(&unready).ready);
    let mut going = cluster();
    going.put(Kind::Node, going_node(&of_pool()));
    assert!(only(&going).deleting);
    let conditions = [UP, &["InstanceTerminating"]].concat();
    let ending = cluster().with(Kind::NodeClaim, launched(&conditions, &json!({})));
    assert!(only(&ending).terminating_instance, "out of all counts");
}

#[test]
fn core_271_budgets_that_let_unhealthy_pods_go() {
    let blocked = |ready: bool, more: &Value, namespace: &str| {
        let status = if ready { "True" } else { "False" };
        let condition = json!({"status": {"conditions": [
            {"type": "Ready", "status": status, "lastTransitionTime": text(30)}]}});
        let own = with_pod(&condition);
        let own = own.with(Kind::PodDisruptionBudget, budget("b", namespace, more));
        only(&own).blocking_budget.is_some()
    };
    let spares = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    assert!(blocked(true, &json!({}), "web") && blocked(false, &json!({}), "web"));
    assert!(blocked(true, &spares, "web"), "healthy ones are held");
    assert!(!blocked(false, &spares, "web"), "unhealthy ones are not");
    assert!(
        !blocked(true, &json!({}), "other"),
        "a budget of another namespace"
    );
    let one = json!({"status": {"disruptionsAllowed": 1}});
    assert!(!blocked(true, &one, "web"));
}

#[test]
fn core_286_what_takes_the_place_of_others_is_spoken_for() {
    let mut own = cluster();
    let old = json!({"metadata": {"name": "old", "uid": "uid-old",
        "annotations": {COMMAND: intent(&["old"], &["c"]).text()}},
        "status": {"providerID": "kwok://old"}});
    own.put(Kind::NodeClaim, launched(UP, &old));
    assert!(only(&own).nominated, "its pods have not come yet");
}

#[test]
fn core_300_pods_that_stay_are_told_apart_on_drifted_nodes() {
    let drifted = [UP, &["Drifted"]].concat();
    let mut own = cluster().with(Kind::NodeClaim, launched(&drifted, &json!({})));
    own.put(Kind::Pod, pod("kept", &annotated(KEEP, "true")));
    own.put(Kind::Pod, pod("free", &json!({})));
    let stuck: Vec<bool> = only(&own).pods.iter().map(|pod| pod.stuck).collect();
    assert_eq!(stuck.iter().filter(|own| **own).count(), 1);
    assert_eq!(stuck.len(), 2);
}

const DISRUPTED: &str = "karpenter.sh/disrupted";

fn tainted() -> Value {
    let mut object = node(&of_pool());
    object["spec"]["taints"] = json!([{"key": DISRUPTED, "effect": "NoSchedule"}]);
    object
}

#[test]
fn core_308_taints_without_a_command_are_left_over() {
    let mut own = cluster().with(Kind::Node, tainted());
    let left = |own: &Cluster| apply::left_over(&own.snapshot()).len();
    assert_eq!(left(&own), 1);
    assert_eq!(left(&cluster()), 0, "nothing is tainted");
    own.change(
        Kind::NodeClaim,
        "c",
        &annotated(COMMAND, &intent(&["c"], &[]).text()),
    );
    assert_eq!(left(&own), 0, "a command is about it");
    let mut going = cluster().with(Kind::Node, tainted());
    going.delete(Kind::NodeClaim, "c", at(50));
    assert_eq!(left(&going), 0, "it goes");
    let told = [UP, &["DisruptionReason"]].concat();
    let mut told = cluster().with(Kind::NodeClaim, launched(&told, &json!({})));
    assert_eq!(left(&told), 1, "the last write of an undo failed");
    told.change(
        Kind::NodeClaim,
        "c",
        &annotated(COMMAND, &intent(&["c"], &[]).text()),
    );
    assert_eq!(left(&told), 0);
}

#[test]
fn core_309_nothing_is_bought_twice_for_nodes_being_replaced() {
    let mut own = cluster()
        .with(Kind::Node, tainted())
        .with(Kind::Pod, pod("a", &json!({})));
    own.change(
        Kind::NodeClaim,
        "c",
        &annotated(COMMAND, &intent(&["c"], &["new"]).text()),
    );
    let waiting = |own: &Cluster| {
        asked(&own.snapshot(), &Lists::new(), at(100))
            .problem
            .pending()
            .count()
    };
    let is_spoken_for = |own: &Cluster| own.snapshot().awaiting_replacements().contains("n");
    // From the moment that its successor has been bought it needs a place: nobody else is to have it. But
    // nothing is bought for it while that successor cannot be seen.
    assert_eq!(waiting(&own), 1);
    assert!(is_spoken_for(&own), "its successor is gone");
    let new = json!({"metadata": {"name": "new", "uid": "uid-new"}});
    own.put(
        Kind::NodeClaim,
        crate::nodeclaim::lifecycle::made::claim(&new),
    );
    assert!(is_spoken_for(&own), "nobody knows what it will be");
    own.change(Kind::NodeClaim, "new", &annotated(PLANNED, "m/a/on-demand"));
    assert!(!is_spoken_for(&own), "its pod has a place there");
    own.delete(Kind::NodeClaim, "new", at(80));
    assert!(
        is_spoken_for(&own),
        "until that goes, and the command is undone"
    );
    own.delete(Kind::NodeClaim, "c", at(90));
    assert_eq!(waiting(&own), 1, "and still does");
    assert!(!is_spoken_for(&own), "it goes, whatever comes");
    let booting = json!({"metadata": {"name": "m", "uid": "uid-m",
        "labels": {"karpenter.sh/nodepool": "p", "node.kubernetes.io/instance-type": "m"}},
        "spec": {"providerID": "kwok://m", "taints": []}});
    let claim = json!({"metadata": {"name": "new", "uid": "uid-new"},
        "status": {"providerID": "kwok://m"}});
    own.put(Kind::Node, node(&booting));
    own.put(
        Kind::NodeClaim,
        launched(&["Launched", "Registered"], &claim),
    );
    let problem = asked(&own.snapshot(), &Lists::new(), at(100)).problem;
    let home = problem
        .nodes
        .iter()
        .find(|node| &*node.name == "m")
        .unwrap();
    assert!(
        !home.closed && !home.initialized,
        "a node that boots may take it"
    );
}

#[test]
fn core_330_news_in_the_wrong_order_is_ignored() {
    let mut state = ClusterState::default();
    let at_version = |version: &str, node: &str| {
        let more = json!({"metadata": {"resourceVersion": version}, "spec": {"nodeName": node}});
        pod("a", &more)
    };
    state.apply(Kind::Pod, &at_version("7", "n"));
    assert!(state.apply(Kind::Pod, &at_version("5", "m")).is_none());
    let now = state.snapshot();
    assert_eq!(now.pod("web/a").unwrap().node.as_deref(), Some("n"));
    state.remove(Kind::Pod, &at_version("8", "n"));
    assert!(
        state.apply(Kind::Pod, &at_version("7", "n")).is_none(),
        "it is gone"
    );
}

#[test]
fn core_331_a_claim_that_is_being_launched_holds_decisions_up() {
    let is_early =
        |own: &Cluster| is_too_early(crate::nodeclaim::lifecycle::made::terms(), &own.snapshot());
    let mut own = cluster();
    assert!(!is_early(&own));
    let fresh = json!({"metadata": {"name": "fresh", "uid": "uid-fresh"}});
    own.put(
        Kind::NodeClaim,
        crate::nodeclaim::lifecycle::made::claim(&fresh),
    );
    assert!(is_early(&own), "nobody knows what it will be");
    let planned = annotated(PLANNED, "m/a/on-demand");
    own.change(Kind::NodeClaim, "fresh", &planned);
    assert!(is_early(&own), "it is better known in a moment");
    let drifted = [UP, &["Drifted"]].concat();
    own.put(Kind::NodeClaim, launched(&drifted, &json!({})));
    assert!(!is_early(&own), "what must go does not wait for that");
    own.put(Kind::NodeClaim, launched(UP, &json!({})));
    own.delete(Kind::NodeClaim, "fresh", at(50));
    assert!(!is_early(&own), "nobody needs to know");
    let strange = json!({"metadata": {"name": "strange", "uid": "uid-strange"},
        "spec": {"nodeClassRef": {"group": "elsewhere.example", "kind": "Class"}}});
    own.put(
        Kind::NodeClaim,
        crate::nodeclaim::lifecycle::made::claim(&strange),
    );
    assert!(!is_early(&own), "it is somebody else's");
}

#[test]
fn nobody_elses_nodes_are_touched() {
    let mut own = cluster();
    assert_eq!(members(&own).len(), 1);
    let strange =
        json!({"spec": {"nodeClassRef": {"group": "elsewhere.example", "kind": "Class"}}});
    own.change(Kind::NodeClaim, "c", &strange);
    assert!(members(&own).is_empty());
}

#[test]
fn core_334_when_nothing_to_do_is_looked_at_again() {
    let change = |kind: Kind, what: What, about: Option<&str>| Change {
        kind,
        name: "x".into(),
        what,
        about: about.map(Into::into),
    };
    for kind in [Kind::NodePool, Kind::NodeClaim, Kind::NodeOverlay] {
        assert!(matters(&change(kind, What::Changed, None)), "{kind:?}");
    }
    assert!(matters(&change(Kind::Node, What::Appeared, None)));
    assert!(
        matters(&change(Kind::Pod, What::Changed, Some("n"))),
        "it was bound"
    );
    assert!(
        !matters(&change(Kind::Node, What::Changed, None)),
        "a heartbeat"
    );
    assert!(!matters(&change(Kind::Deployment, What::Changed, None)));
    assert!(
        !is_stale(at(0), at(299)) && is_stale(at(0), at(300)),
        "in any case"
    );
}

#[test]
fn core_335_a_daemon_counts_as_long_as_its_set_is_there() {
    let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "web", "uid": "uid-agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let mut own = cluster().with(Kind::DaemonSet, set);
    let n = |own: &Cluster| {
        asked(&own.snapshot(), &Lists::new(), at(100))
            .problem
            .daemons
            .len()
    };
    assert_eq!(n(&own), 1);
    own.remove(Kind::DaemonSet, "agent");
    assert_eq!(n(&own), 0);
}
