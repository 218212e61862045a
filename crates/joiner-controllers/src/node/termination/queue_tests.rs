//! What becomes of pods that have to leave.

use std::time::Duration;

use jiff::Timestamp;
use joiner_model::Precedence;
use joiner_runtime::ApiFailure;
use joiner_state::live::Kind;
use serde_json::{Value, json};

use super::book::{Action, Book, Eviction, Key, action};
use super::drain::Evictee;
use super::queue::{Refused, reason, verdict};
use crate::nodeclaim::lifecycle::made::{Cluster, at, going_node, launched, pod, text};

/// What is to be done about the pod `a`, whose uid is `uid-a`.
fn todo(more: &Value, deadline: Option<i64>, now: Timestamp) -> Action {
    let snapshot = Cluster::default()
        .with(Kind::Pod, pod("a", more))
        .snapshot();
    let pod = snapshot.pod("web/a").map(AsRef::as_ref);
    action(pod, "uid-a", deadline.map(at), now)
}

fn evictee(deadline: Option<i64>, is_due: bool) -> Evictee {
    Evictee {
        precedence: Precedence::default(),
        pod: "web/a".into(),
        uid: "uid-a".into(),
        deadline: deadline.map(at),
        is_due,
    }
}

fn key() -> Key {
    ("web/a".into(), "uid-a".into())
}

#[test]
fn choosy_pods_and_large_ones_go_first() {
    let mut book = Book::default();
    let pods = [
        ("a", false, 100),
        ("b", false, 4_000),
        ("c", true, 50),
        ("d", false, 500),
        ("e", true, 70),
    ];
    for (name, choosy, size) in pods {
        let one = Evictee {
            precedence: Precedence { choosy, size },
            pod: format!("web/{name}").into(),
            ..evictee(None, false)
        };
        book.add(&one, at(0));
    }
    let order = std::iter::from_fn(|| book.take(at(0)));
    let order: Vec<String> = order.map(|(key, _)| key.0.to_string()).collect();
    assert_eq!(order, ["web/e", "web/c", "web/b", "web/d", "web/a"]);
}

#[test]
fn core_317_a_pod_that_took_the_name_is_not_touched() {
    assert_eq!(todo(&json!({}), None, at(110)), Action::Evict);
    let other = json!({"metadata": {"uid": "another"}});
    assert_eq!(todo(&other, Some(50), at(110)), Action::Drop);
    assert_eq!(action(None, "uid-a", None, at(110)), Action::Drop);
}

#[test]
fn core_318_a_due_pod_gets_the_time_that_is_left() {
    let long = json!({"spec": {"terminationGracePeriodSeconds": 300}});
    assert_eq!(todo(&long, Some(160), at(100)), Action::Delete(60));
    let short = json!({"spec": {"terminationGracePeriodSeconds": 30}});
    assert_eq!(todo(&short, Some(160), at(100)), Action::Evict);
    assert_eq!(todo(&short, Some(160), at(131)), Action::Delete(29));
}

#[test]
fn core_320_a_pod_that_ends_too_late_is_cut_short() {
    let ending = |secs| json!({"metadata": {"deletionTimestamp": text(secs)}});
    assert_eq!(todo(&ending(400), Some(160), at(150)), Action::Delete(10));
    assert_eq!(todo(&ending(155), Some(160), at(150)), Action::Drop);
    assert_eq!(todo(&ending(400), None, at(150)), Action::Drop);
}

#[test]
fn core_324_past_the_deadline_a_second_is_left() {
    assert_eq!(todo(&json!({}), Some(160), at(500)), Action::Delete(1));
}

#[test]
fn force_leaves_out_those_that_stay_or_are_done() {
    let stays = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
    let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
    let finished = json!({"status": {"phase": "Succeeded"}});
    let stuck = json!({"metadata": {"deletionTimestamp": text(200)}});
    for more in [stays, mirror, finished, stuck] {
        assert_eq!(todo(&more, Some(160), at(500)), Action::Drop, "{more}");
    }
}

#[test]
fn do_not_disrupt_holds_a_pod_until_it_elapses_or_force_is_used() {
    let says =
        |text: &str| json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": text}}});
    let not_started = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "1m"}},
        "status": {"startTime": null}});
    let cases = [
        (says("true"), None, 110, Action::Hold(Timestamp::MAX)),
        (says("2m"), None, 110, Action::Hold(at(140))),
        (says("2m"), None, 139, Action::Hold(at(140))),
        (says("2m"), None, 140, Action::Evict),
        (says("false"), None, 110, Action::Evict),
        (says("0s"), None, 110, Action::Evict),
        (says("-1m"), None, 110, Action::Evict),
        (not_started, None, 500, Action::Hold(Timestamp::MAX)),
        (says("true"), Some(160), 120, Action::Hold(Timestamp::MAX)),
        (says("true"), Some(160), 131, Action::Delete(29)),
    ];
    for (more, deadline, now, wanted) in cases {
        assert_eq!(todo(&more, deadline, at(now)), wanted, "{more} at {now}");
    }
}

#[test]
fn core_323_what_refusals_mean() {
    let many = "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                does not support.";
    for (failure, wanted) in [
        (ApiFailure::NotFound, Refused::Gone),
        (ApiFailure::Conflict("uid".to_owned()), Refused::Gone),
        (
            ApiFailure::TooManyRequests("budget".to_owned()),
            Refused::Budget,
        ),
        (ApiFailure::Away(many.to_owned()), Refused::Budgets),
        (
            ApiFailure::Other {
                code: 500,
                message: many.to_owned(),
            },
            Refused::Budgets,
        ),
        (ApiFailure::Away("timeout".to_owned()), Refused::Trouble),
        (ApiFailure::Forbidden("rbac".to_owned()), Refused::Trouble),
    ] {
        assert_eq!(verdict(&failure), wanted, "{failure}");
    }
}

#[test]
fn core_323_the_reason_is_that_of_the_disruption() {
    let disrupted = json!([{"type": "DisruptionReason", "status": "True", "reason": "Drifted",
        "message": "Drifted", "lastTransitionTime": text(90)}]);
    let all = Cluster::default()
        .with(Kind::Node, going_node(&json!({})))
        .with(Kind::Pod, pod("a", &json!({})));
    let deleted = all.clone().with(Kind::NodeClaim, launched(&[], &json!({})));
    let drifted = json!({"status": {"conditions": disrupted}});
    let drifted = all.clone().with(Kind::NodeClaim, launched(&[], &drifted));
    for (cluster, wanted) in [
        (all, ""),
        (deleted, "Forceful Termination"),
        (drifted, "Drifted"),
    ] {
        let snapshot = cluster.snapshot();
        assert_eq!(reason(&snapshot, snapshot.pod("web/a").unwrap()), wanted);
    }
}

/// Takes the pod out of the book, if it is its turn.
fn takes(book: &mut Book, now: Timestamp) -> bool {
    book.take(now).is_some()
}

#[test]
fn core_314_a_blocked_pod_is_tried_again_with_growing_pauses() {
    let mut book = Book::default();
    let mut now = at(100);
    book.add(&evictee(None, false), now);
    for millis in [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000] {
        assert!(takes(&mut book, now));
        book.add(&evictee(None, false), now);
        book.done(&key(), Eviction::Failed, None, now);
        book.add(&evictee(None, false), now);
        let early = now + Duration::from_millis(millis - 1);
        assert!(!takes(&mut book, early), "{millis} ms are not over");
        now += Duration::from_millis(millis);
        assert_eq!(book.next_time(), Some(now));
    }
}

#[test]
fn core_324_the_deadline_ends_a_pause_and_the_earlier_one_counts() {
    let cluster = Cluster::default().with(Kind::Pod, pod("a", &json!({})));
    let snapshot = cluster.snapshot();
    let pod = snapshot.pod("web/a").map(AsRef::as_ref);
    let mut book = Book::default();
    book.add(&evictee(Some(160), false), at(125));
    book.add(&evictee(Some(900), false), at(125));
    book.add(&evictee(None, false), at(125));
    let (key, entry) = book.take(at(125)).unwrap();
    assert_eq!(entry.deadline, Some(at(160)));
    // Protected for long, but the pod is due from second 130 on.
    book.done(&key, Eviction::Until(Timestamp::MAX), pod, at(125));
    assert!(book.next_time().unwrap() > at(130));
    assert!(book.next_time().unwrap() < at(131));
    // A drain that finds it due does not wait for that.
    book.add(&evictee(Some(120), true), at(126));
    assert!(takes(&mut book, at(126)));
    // What was forced is not forced again each time that somebody looks.
    book.done(&key, Eviction::Forced, pod, at(126));
    book.add(&evictee(Some(120), true), at(127));
    assert!(!takes(&mut book, at(130)));
    assert!(takes(&mut book, at(131)));
    book.done(&key, Eviction::Done, pod, at(131));
    assert_eq!(book.next_time(), None);
}

#[test]
fn core_323_a_pod_that_was_told_to_go_is_not_told_again_at_once() {
    let mut book = Book::default();
    book.add(&evictee(None, false), at(100));
    assert!(takes(&mut book, at(100)));
    book.done(&key(), Eviction::Told, None, at(100));
    book.add(&evictee(None, false), at(101));
    assert!(!takes(&mut book, at(104)), "the watch may lag");
    assert!(takes(&mut book, at(105)));
}

#[test]
fn a_held_pod_is_looked_at_when_its_time_has_come() {
    let mut book = Book::default();
    book.add(&evictee(None, false), at(100));
    assert!(takes(&mut book, at(100)));
    book.done(&key(), Eviction::Until(at(103)), None, at(100));
    assert_eq!(book.next_time(), Some(at(103)));
}
