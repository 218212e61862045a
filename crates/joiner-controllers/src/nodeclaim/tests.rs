//! Consolidatable, expiration, garbage, hydration, consistency, pod events, interruptions.

use joiner_cloud::{Instance, InterruptionKind, ProviderId};
use joiner_model::{Labels, Resources};
use joiner_state::live::{Change, Kind, LiveClaim, Snapshot, What};
use serde_json::{Value, json};

use super::consistency::issues;
use super::disruption::{Consolidatable, consolidatable, put};
use super::expiration::expires;
use super::garbage_collection::{lost, orphans};
use super::hydration::missing;
use super::lifecycle::made::{Cluster, at, claim, launched, merge, node, pod, pool, terms, text};
use super::lifecycle::{conditions, termination_mode};
use super::pod_events::{SeenPods, is_too_soon};
use super::{consistency, is_on};
use crate::interruption::meaning;

const UP: &[&str] = &["Launched", "Registered", "Initialized"];

fn one(claim: Value) -> Cluster {
    Cluster::default().with(Kind::NodeClaim, claim)
}

/// Writes conditions as the controllers do.
fn write(cluster: &mut Cluster, claim: &LiveClaim, set: joiner_engine::conditions::ConditionSet) {
    let patch = json!({
        "metadata": {"resourceVersion": claim.meta.version.to_string()},
        "status": {"conditions": set.finished().to_value()},
    });
    cluster.change(Kind::NodeClaim, claim.name(), &patch);
}

#[test]
fn core_242_a_node_is_consolidatable_when_nothing_has_happened_for_long_enough() {
    let at_once = Consolidatable::Yes;
    let later = |secs| Consolidatable::NotBefore(at(secs));
    // consolidateAfter, true conditions (since second 10), last pod event, now, expected
    for (after, up, event, now, expected) in [
        ("0s", UP, None, 10, at_once),
        ("0s", UP, Some(500), 500, at_once),
        ("0s", &UP[..2], None, 500, Consolidatable::No),
        ("30s", UP, None, 39, later(40)),
        ("30s", UP, None, 40, at_once),
        ("30s", UP, Some(100), 100, later(130)),
        ("30s", UP, Some(100), 129, later(130)),
        ("30s", UP, Some(100), 130, at_once),
        ("30s", &UP[..2], Some(100), 200, Consolidatable::No),
        ("Never", UP, Some(100), 9999, Consolidatable::No),
    ] {
        let event = json!({"status": {"lastPodEventTime": event.map(text)}});
        let mut pool = pool("uid-p");
        merge(
            &mut pool,
            &json!({"spec": {"disruption": {"consolidateAfter": after}}}),
        );
        let cluster = one(launched(up, &event)).with(Kind::NodePool, pool.clone());
        let seen = cluster.snapshot();
        let claim = seen.claim("c").unwrap();
        let found = consolidatable(claim, seen.pool("p").unwrap(), at(now));
        assert_eq!(found, expected, "{after} {up:?} {event} at {now}");
        // Static pools keep their size whatever runs on them.
        merge(&mut pool, &json!({"spec": {"replicas": 1}}));
        let seen = cluster.with(Kind::NodePool, pool).snapshot();
        let found = consolidatable(claim, seen.pool("p").unwrap(), at(now));
        assert_eq!(found, Consolidatable::No);
    }
}

#[test]
fn core_242_both_conditions_can_be_set_and_a_new_window_takes_one_away() {
    let mut cluster = one(launched(UP, &json!({})));
    for (found, consolidatable, drifted) in [
        (Consolidatable::Yes, "True Consolidatable", "True Why Why"),
        (Consolidatable::NotBefore(at(900)), "", "True Why Why"),
        (Consolidatable::No, "", "True Why Why"),
    ] {
        let now = cluster.snapshot();
        let claim = now.claim("c").unwrap();
        let mut set = conditions(claim, at(100));
        put(&mut set, found, Some(Some("Why")));
        write(&mut cluster, claim, set);
        assert_eq!(
            cluster.condition("Consolidatable"),
            consolidatable,
            "{found:?}"
        );
        assert_eq!(cluster.condition("Drifted"), drifted, "{found:?}");
    }
}

fn instance(id: &str, claim: Option<&str>, launched: i64, terminating: bool) -> Instance {
    Instance {
        id: ProviderId(id.into()),
        claim: claim.map(Into::into),
        claim_uid: None,
        labels: Labels::new(),
        annotations: Labels::new(),
        image_id: None,
        capacity: Resources::new(),
        allocatable: Resources::new(),
        launched: at(launched),
        terminating,
    }
}

#[test]
fn core_228_a_claim_without_machine_and_without_ready_node_is_lost() {
    let not_ready = json!({"status": {"conditions": [
        {"type": "Ready", "status": "Unknown", "lastTransitionTime": text(0)}]}});
    let deleting = json!({"metadata": {"deletionTimestamp": text(50)}});
    let there = || vec![instance("kwok://n", Some("c"), 0, false)];
    let going = || vec![instance("kwok://n", Some("c"), 0, true)];
    let other = || vec![instance("kwok://other", None, 0, false)];
    for (case, claim, node, instances, expected) in [
        (
            "all is well",
            launched(UP, &json!({})),
            Some(node(&not_ready)),
            there(),
            false,
        ),
        (
            "no machine",
            launched(UP, &json!({})),
            Some(node(&not_ready)),
            other(),
            true,
        ),
        (
            "none at all",
            launched(UP, &json!({})),
            Some(node(&not_ready)),
            vec![],
            true,
        ),
        (
            "no node either",
            launched(UP, &json!({})),
            None,
            vec![],
            true,
        ),
        (
            "a machine on its way out",
            launched(UP, &json!({})),
            None,
            going(),
            true,
        ),
        (
            "a ready node",
            launched(UP, &json!({})),
            Some(node(&json!({}))),
            vec![],
            false,
        ),
        (
            "never registered",
            launched(&UP[..1], &json!({})),
            None,
            vec![],
            false,
        ),
        (
            "being deleted",
            launched(UP, &deleting),
            None,
            vec![],
            false,
        ),
        ("never launched", claim(&json!({})), None, vec![], false),
    ] {
        let mut cluster = one(claim);
        if let Some(node) = node {
            cluster.put(Kind::Node, node);
        }
        let found = lost(&cluster.snapshot(), &instances);
        assert_eq!(found.len(), usize::from(expected), "{case}");
    }
}

#[test]
fn core_228_many_are_lost_at_once() {
    let mut cluster = Cluster::default();
    for ix in 0..50 {
        let name = format!("c-{ix:02}");
        let more = json!({"metadata": {"name": name, "uid": name},
            "status": {"providerID": format!("kwok://{ix}")}});
        cluster.put(Kind::NodeClaim, launched(UP, &more));
    }
    let still = [instance("kwok://7", None, 0, false)];
    let lost = lost(&cluster.snapshot(), &still);
    assert_eq!(lost.len(), 49);
    assert!(lost.iter().all(|claim| &**claim.name() != "c-07"));
}

#[test]
fn machines_without_a_claim_are_ended_once_they_are_old_enough() {
    let now = one(launched(UP, &json!({}))).snapshot();
    for (case, machine, expected) in [
        (
            "known by its id",
            instance("kwok://n", None, 0, false),
            false,
        ),
        (
            "known by its claim",
            instance("kwok://new", Some("c"), 0, false),
            false,
        ),
        (
            "its claim is gone",
            instance("kwok://x", Some("gone"), 0, false),
            true,
        ),
        ("of no claim", instance("kwok://x", None, 0, false), true),
        (
            "too young",
            instance("kwok://x", Some("gone"), 41, false),
            false,
        ),
        (
            "just old enough",
            instance("kwok://x", Some("gone"), 40, false),
            true,
        ),
        (
            "on its way out",
            instance("kwok://x", Some("gone"), 0, true),
            false,
        ),
    ] {
        let found = orphans(&now, &[machine], at(100));
        assert_eq!(found.len(), usize::from(expected), "{case}");
    }
    // Claims for the same pods have the same name, one after the other.
    let uid = now.claim("c").unwrap().meta.uid.clone();
    for (uid, expected) in [(uid, 0), ("another".into(), 1)] {
        let machine = Instance {
            claim_uid: Some(uid),
            ..instance("kwok://x", Some("c"), 0, false)
        };
        assert_eq!(orphans(&now, &[machine], at(100)).len(), expected);
    }
}

#[test]
fn core_229_a_claim_expires_by_its_own_age() {
    for (after, expected) in [
        (json!("1h"), Some(3600)),
        (json!("30s"), Some(30)),
        (json!("0s"), Some(0)),
        (json!("Never"), None),
        (Value::Null, None),
    ] {
        let more = json!({
            // Neither protection nor the age of the node matters.
            "metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {"expireAfter": after},
        });
        let old = node(&json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}));
        let now = one(launched(UP, &more)).with(Kind::Node, old).snapshot();
        let found = expires(now.claim("c").unwrap());
        assert_eq!(found, expected.map(at), "{after}");
    }
}

#[test]
fn core_229_how_a_claim_goes_depends_on_its_grace_period() {
    for (grace, mode) in [
        (Value::Null, "graceful"),
        (json!("1h"), "eventual"),
        (json!("0s"), "forceful"),
    ] {
        let now = one(launched(
            UP,
            &json!({"spec": {"terminationGracePeriod": grace}}),
        ))
        .snapshot();
        assert_eq!(termination_mode(now.claim("c").unwrap()), mode, "{grace}");
    }
}

fn change(kind: Kind, name: &str, what: What) -> Change {
    Change {
        kind,
        name: name.into(),
        what,
        about: None,
    }
}

/// The nodes that a pod is news for.
fn news(seen: &SeenPods, pods: Value) -> Vec<String> {
    let name = pods["metadata"]["name"].as_str().unwrap().to_owned();
    let now = Cluster::default().with(Kind::Pod, pods).snapshot();
    let change = change(Kind::Pod, &format!("web/{name}"), What::Changed);
    let keys = seen.changed(&change, &now);
    keys.iter().map(ToString::to_string).collect()
}

#[test]
fn core_230_pods_that_come_end_or_go_are_news_once() {
    let going = json!({"metadata": {"deletionTimestamp": text(90)}});
    let done = json!({"status": {"phase": "Succeeded"}});
    let mut both = going.clone();
    merge(&mut both, &done);
    let unbound = json!({"spec": {"nodeName": null}, "status": {"phase": "Pending"}});
    let daemon = json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1",
        "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]}});
    for (case, steps) in [
        (
            "bound, seen bound",
            vec![(&json!({}), true), (&json!({}), false)],
        ),
        (
            "not bound, then bound",
            vec![(&unbound, false), (&json!({}), true)],
        ),
        (
            "terminating",
            vec![(&json!({}), true), (&going, true), (&going, false)],
        ),
        (
            "terminal",
            vec![(&json!({}), true), (&done, true), (&done, false)],
        ),
        (
            "terminal, then deleted",
            vec![(&json!({}), true), (&done, true), (&both, true)],
        ),
        (
            "deleted, then terminal",
            vec![(&json!({}), true), (&going, true), (&both, true)],
        ),
        ("of a DaemonSet", vec![(&daemon, false)]),
    ] {
        let seen = SeenPods::default();
        for (ix, (more, expected)) in steps.into_iter().enumerate() {
            let found = news(&seen, pod("a", more));
            let expected: &[&str] = if expected { &["n"] } else { &[] };
            assert_eq!(found, expected, "{case}, step {ix}");
        }
    }
}

#[test]
fn core_230_at_the_start_bound_pods_are_news_for_their_nodes() {
    let cluster = Cluster::default().with(Kind::Pod, pod("a", &json!({})));
    let cluster = cluster.with(Kind::Pod, pod("b", &json!({"spec": {"nodeName": "m"}})));
    let now = cluster.with(Kind::Pod, pod("c", &json!({}))).snapshot();
    let seen = SeenPods::default();
    let names = |keys: Vec<joiner_model::Name>| keys.iter().map(ToString::to_string).collect();
    let first: Vec<String> = names(seen.all(&now));
    assert_eq!(first, ["m", "n"]);
    let again: Vec<String> = names(seen.all(&now));
    assert!(again.is_empty(), "{again:?}");
    // What is gone was news when its end began.
    let gone = change(Kind::Pod, "web/a", What::Gone);
    assert!(seen.changed(&gone, &Snapshot::default()).is_empty());
}

#[test]
fn core_230_the_time_is_written_every_ten_seconds_at_most() {
    for (last, now, soon) in [
        (None, 100, false),
        (Some(100), 100, true),
        (Some(100), 109, true),
        (Some(100), 110, false),
    ] {
        let more = json!({"status": {"lastPodEventTime": last.map(text)}});
        let seen = one(launched(UP, &more)).snapshot();
        assert_eq!(
            is_too_soon(seen.claim("c").unwrap(), at(now)),
            soon,
            "{last:?} {now}"
        );
    }
}

#[test]
fn core_231_a_node_with_less_than_was_bought_is_told() {
    let more = json!({
        "spec": {"resources": {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "0"}}},
        "status": {"capacity": {"cpu": "10", "memory": "100Gi", "nvidia.com/gpu": "1",
            "pods": "110"}},
    });
    for (capacity, expected) in [
        (json!({"cpu": "10", "memory": "100Gi"}), vec![]),
        (json!({"cpu": "9", "memory": "90Gi"}), vec![]),
        // Pods and a graphics card were not asked for.
        (json!({"cpu": "10", "memory": "100Gi", "pods": "1"}), vec![]),
        (
            json!({"cpu": "1", "memory": "100Gi"}),
            vec!["expected 10 of resource cpu, but found 1 (10% of expected)"],
        ),
        (
            json!({"cpu": "8999m", "memory": "10Gi"}),
            vec![
                "expected 10 of resource cpu, but found 8999m (89% of expected)",
                "expected 100Gi of resource memory, but found 10Gi (10% of expected)",
            ],
        ),
        (
            json!({"cpu": "10"}),
            vec!["expected 100Gi of resource memory, but found 0 (0% of expected)"],
        ),
    ] {
        let mut node = node(&json!({}));
        node["status"]["capacity"] = capacity.clone();
        let mut cluster = one(launched(UP, &more)).with(Kind::Node, node);
        let now = cluster.snapshot();
        let claim = now.claim("c").unwrap();
        let found = issues(claim, now.node("n").unwrap());
        assert_eq!(found, expected, "{capacity}");
        let mut set = conditions(claim, at(100));
        consistency::put(&mut set, &found);
        write(&mut cluster, claim, set);
        let expected = if found.is_empty() {
            "True ConsistentStateFound"
        } else {
            "False ConsistencyCheckFailed Consistency Check Failed"
        };
        assert_eq!(
            cluster.condition("ConsistentStateFound"),
            expected,
            "{capacity}"
        );
    }
}

#[test]
fn core_232_the_label_of_the_class_is_added_where_it_is_missing() {
    let key = "karpenter.kwok.sh/kwoknodeclass";
    let added = json!({"metadata": {"labels": {key: "k"}}});
    for (labels, deleting, expected) in [
        (json!({}), None, Some(&added)),
        (json!({key: "other"}), None, Some(&added)),
        (json!({key: "k"}), None, None),
        (json!({}), Some(text(50)), None),
    ] {
        let more = json!({"metadata": {"labels": labels, "deletionTimestamp": deleting}});
        let mut node = node(&more);
        node["metadata"]["labels"] = labels.clone();
        let cluster = one(launched(UP, &more)).with(Kind::Node, node);
        let now = cluster.snapshot();
        let claim = now.claim("c").unwrap();
        assert_eq!(
            missing(&claim.meta, claim).as_ref(),
            expected,
            "claim {labels}"
        );
        let node = now.node("n").unwrap();
        assert_eq!(
            missing(&node.meta, claim).as_ref(),
            expected,
            "node {labels}"
        );
    }
}

#[test]
fn core_233_claims_of_a_class_that_the_cloud_does_not_know_are_left_alone() {
    let of = |class: Value| {
        let now = one(claim(&json!({"spec": {"nodeClassRef": class}}))).snapshot();
        is_on(terms(), now.claim("c").unwrap())
    };
    assert!(of(json!({})));
    assert!(!of(json!({"kind": "EC2NodeClass"})));
    assert!(!of(json!({"group": "example.com"})));
}

#[test]
fn what_the_cloud_takes_away_is_deleted_and_what_it_may_take_is_told() {
    for (kind, event, message, ends) in [
        (
            InterruptionKind::SpotInterruption,
            "SpotInterrupted",
            "spot_interrupted",
            true,
        ),
        (
            InterruptionKind::RebalanceRecommendation,
            "SpotRebalanceRecommendation",
            "rebalance_recommendation",
            false,
        ),
        (
            InterruptionKind::ScheduledChange,
            "InstanceUnhealthy",
            "scheduled_change",
            true,
        ),
        (
            InterruptionKind::StateChange,
            "InstanceTerminating",
            "instance_terminated",
            true,
        ),
    ] {
        let told = meaning(kind);
        let told = (told.event, told.message, told.ends);
        assert_eq!(told, (event, message, ends), "{kind:?}");
    }
}

#[test]
fn a_pod_is_protected_as_its_annotation_says() {
    let running = |annotation: &str| json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": annotation}}});
    // The pod started at second 20.
    for (annotation, more, now, protected) in [
        ("true", json!({}), 9999, true),
        ("30s", json!({}), 49, true),
        ("30s", json!({}), 50, false),
        ("1h30m", json!({}), 5419, true),
        ("30s", json!({"status": {"startTime": null}}), 9999, true),
        ("false", json!({}), 20, false),
        ("", json!({}), 20, false),
        ("0s", json!({}), 20, false),
        ("-5m", json!({}), 20, false),
        ("True", json!({}), 20, false),
        ("true", json!({"status": {"phase": "Succeeded"}}), 20, false),
        (
            "true",
            json!({"metadata": {"deletionTimestamp": text(90)}}),
            20,
            false,
        ),
    ] {
        let mut pod = pod("a", &running(annotation));
        merge(&mut pod, &more);
        let seen = Cluster::default().with(Kind::Pod, pod).snapshot();
        let found = seen.pod("web/a").unwrap().is_protected(at(now));
        assert_eq!(found, protected, "{annotation:?} {more} at {now}");
    }
}
