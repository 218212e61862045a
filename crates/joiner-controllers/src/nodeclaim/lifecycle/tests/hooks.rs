//! What a cloud's registration hooks keep a Node from.

use std::time::Duration;

use joiner_cloud::{Pending, Registration};
use joiner_model::Labels;
use joiner_state::live::Kind;
use serde_json::{Value, json};

use super::{FakeCloud, GOOD, Hooks, joined, settle};
use crate::nodeclaim::lifecycle::made::{Cluster, at};

fn pending(hook: &str, again: Option<u64>) -> Pending {
    Pending {
        hook: hook.into(),
        again: again.map(Duration::from_secs),
        error: None,
    }
}

fn failed(hook: &str, error: &str) -> Pending {
    Pending {
        error: Some(error.to_owned()),
        ..pending(hook, None)
    }
}

fn held(all: impl IntoIterator<Item = Pending>) -> Registration {
    Registration {
        pending: all.into_iter().collect(),
        ..Registration::default()
    }
}

fn with_hooks(hooks: Hooks) -> FakeCloud {
    FakeCloud {
        hooks: Some(hooks),
        ..GOOD
    }
}

/// Two hooks at work, one of them more impatient.
const AT_WORK: Hooks = || held([pending("storage", Some(30)), pending("network", Some(12))]);
/// All hooks are ready; one of them has found out something.
const READY: Hooks = || Registration {
    labels: Labels::from([
        ("example.com/rack".into(), "r1".into()),
        ("team".into(), "b".into()),
    ]),
    ..Registration::default()
};

fn unregistered() -> Value {
    json!({"key": "karpenter.sh/unregistered", "effect": "NoExecute"})
}

/// A claim with a label, an annotation and taints, and its Node.
fn world() -> Cluster {
    let claim = json!({
        "metadata": {"labels": {"team": "a"}, "annotations": {"example.com/x": "1"}},
        "spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "cni", "effect": "NoSchedule"}]},
    });
    joined(&claim, &json!({}))
}

/// Keys of the taints of the Node.
fn taints(cluster: &Cluster) -> Vec<&str> {
    let taints = &cluster.get(Kind::Node, "n")["spec"]["taints"];
    let taints = taints.as_array().into_iter().flatten();
    taints.map(|own| own["key"].as_str().unwrap()).collect()
}

fn label<'a>(cluster: &'a Cluster, kind: Kind, name: &str, key: &str) -> &'a Value {
    &cluster.get(kind, name)["metadata"]["labels"][key]
}

#[test]
fn core_221_a_node_whose_hooks_are_pending_is_synced_and_stays_closed() {
    let mut cluster = world();
    let told = settle(&mut cluster, &with_hooks(AT_WORK), at(30));
    assert_eq!(told, ["ask hooks", "take in", "write", "wait 12 s"]);
    assert_eq!(
        cluster.condition("Registered"),
        "Unknown RegistrationHookPending network, storage"
    );
    let wanted = ["karpenter.sh/unregistered", "dedicated", "cni"];
    assert_eq!(taints(&cluster), wanted);
    let node = &cluster.get(Kind::Node, "n")["metadata"];
    assert_eq!(node["finalizers"], json!(["karpenter.sh/termination"]));
    assert_eq!(node["ownerReferences"][0]["uid"], "uid-c");
    assert_eq!(node["labels"]["team"], "a");
    assert_eq!(node["labels"]["karpenter.sh/registered"], Value::Null);
    assert_eq!(node["annotations"]["example.com/x"], "1");
    let claim = cluster.get(Kind::NodeClaim, "c");
    assert_eq!(claim["status"]["nodeName"], Value::Null);
    // What is written is not written again.
    let told = settle(&mut cluster, &with_hooks(AT_WORK), at(42));
    assert_eq!(told, ["ask hooks", "wait 12 s"]);
}

#[test]
fn core_221_a_node_is_opened_when_its_hooks_are_ready_and_gets_their_labels() {
    let mut cluster = world();
    settle(&mut cluster, &with_hooks(AT_WORK), at(30));
    let told = settle(&mut cluster, &with_hooks(READY), at(60));
    let wanted = ["ask hooks", "add labels", "sync", "write", "write", "wait"];
    assert_eq!(told, wanted);
    assert_eq!(cluster.condition("Registered"), "True Registered");
    assert_eq!(taints(&cluster), ["dedicated", "cni"]);
    assert_eq!(
        label(&cluster, Kind::Node, "n", "karpenter.sh/registered"),
        "true"
    );
    for (kind, name) in [(Kind::NodeClaim, "c"), (Kind::Node, "n")] {
        assert_eq!(label(&cluster, kind, name, "example.com/rack"), "r1");
        let own = label(&cluster, kind, name, "team");
        assert_eq!(own, "a", "the claim's own stays");
    }
    // Nobody is asked about a Node that is registered.
    assert_eq!(settle(&mut cluster, &with_hooks(AT_WORK), at(90)), ["wait"]);
}

#[test]
fn core_221_a_node_whose_hooks_are_ready_at_once_is_synced_once() {
    let mut cluster = world();
    let told = settle(&mut cluster, &with_hooks(Registration::default), at(30));
    assert_eq!(told, ["ask hooks", "sync", "write", "write", "wait"]);
    assert_eq!(cluster.condition("Registered"), "True Registered");
}

#[test]
fn core_221_without_hooks_nobody_is_asked() {
    let mut cluster = world();
    settle(&mut cluster, &with_hooks(AT_WORK), at(30));
    // They were switched off meanwhile.
    let told = settle(&mut cluster, &GOOD, at(40));
    assert_eq!(told, ["sync", "write", "write", "wait"]);
    assert_eq!(taints(&cluster), ["dedicated", "cni"]);
}

#[test]
fn core_221_a_hook_that_fails_is_told_of_and_tried_again() {
    let mut cluster = world();
    let broken = with_hooks(|| held([failed("tags", "no such volume"), pending("network", None)]));
    let told = settle(&mut cluster, &broken, at(30));
    let failure = "registration hook \"tags\" failed, no such volume";
    assert_eq!(told, ["ask hooks", "take in", "write", failure]);
    assert_eq!(
        cluster.condition("Registered"),
        format!("Unknown RegistrationHookPending network, tags: {failure}")
    );
    assert_eq!(taints(&cluster)[0], "karpenter.sh/unregistered");
    let endless = with_hooks(|| held([failed("tags", &"x".repeat(400))]));
    settle(&mut cluster, &endless, at(40));
    let message = cluster.condition("Registered");
    assert!(message.ends_with("xxx..."), "{message}");
    let told = settle(&mut cluster, &with_hooks(READY), at(50));
    assert_eq!(told[1], "add labels");
    assert_eq!(cluster.condition("Registered"), "True Registered");
}

#[test]
fn core_221_hooks_are_asked_again_as_soon_as_one_wants_it() {
    let cases: [(Hooks, i64, &str); 4] = [
        (|| held([pending("a", None)]), 30, "wait 5 s"),
        (
            || held([pending("a", None), pending("b", Some(40))]),
            30,
            "wait 40 s",
        ),
        (|| held([pending("a", Some(0))]), 30, "wait 1 s"),
        (|| held([pending("a", Some(3600))]), 30, "wait 870 s"),
    ];
    for (hooks, secs, wanted) in cases {
        let told = settle(&mut world(), &with_hooks(hooks), at(secs));
        assert_eq!(told.last().map(String::as_str), Some(wanted));
    }
}

#[test]
fn core_221_a_claim_whose_hooks_never_end_is_given_up_with_its_node() {
    let broken: Hooks = || held([failed("tags", "no")]);
    for hooks in [AT_WORK, broken] {
        let mut cluster = world();
        settle(&mut cluster, &with_hooks(hooks), at(30));
        let told = settle(&mut cluster, &with_hooks(hooks), at(899));
        assert!(!told[1].starts_with("give up"), "{told:?}");
        let told = settle(&mut cluster, &with_hooks(hooks), at(900));
        assert_eq!(told, ["ask hooks", "give up: registration_timeout"]);
        // The Node has our finalizer: it would stay forever if it did not go first.
        cluster.delete(Kind::NodeClaim, "c", at(900));
        let told = settle(&mut cluster, &with_hooks(hooks), at(901));
        assert_eq!(told, ["delete 1 nodes", "wait 5 s"]);
        cluster.remove(Kind::Node, "n");
        let told = settle(&mut cluster, &with_hooks(hooks), at(902));
        assert_eq!(told, ["terminate", "release"]);
    }
}

#[test]
fn core_221_taints_that_were_lifted_while_hooks_were_pending_stay_lifted() {
    let mut cluster = world();
    settle(&mut cluster, &with_hooks(AT_WORK), at(30));
    let version = cluster.get(Kind::Node, "n")["metadata"]["resourceVersion"].clone();
    let lift = json!({"metadata": {"resourceVersion": version},
        "spec": {"taints": [unregistered()]}});
    cluster.change(Kind::Node, "n", &lift);
    settle(&mut cluster, &with_hooks(READY), at(60));
    assert_eq!(taints(&cluster), [""; 0]);
}

#[test]
fn core_221_a_node_that_calls_itself_registered_waits_for_hooks_all_the_same() {
    let node = json!({"metadata": {"labels": {"karpenter.sh/registered": "true"}},
        "spec": {"taints": []}});
    let mut cluster = joined(&json!({}), &node);
    let told = settle(&mut cluster, &with_hooks(AT_WORK), at(30));
    assert_eq!(told, ["ask hooks", "take in", "write", "wait 12 s"]);
    assert_eq!(
        label(&cluster, Kind::Node, "n", "karpenter.sh/registered"),
        &Value::Null
    );
    assert!(cluster.condition("Registered").starts_with("Unknown"));
}

#[test]
fn core_221_a_claim_without_its_node_asks_no_hooks() {
    let mut cluster = world();
    cluster.remove(Kind::Node, "n");
    let told = settle(&mut cluster, &with_hooks(AT_WORK), at(30));
    assert_eq!(told, ["write", "wait 870 s"]);
    assert!(
        cluster
            .condition("Registered")
            .starts_with("Unknown NodeNotFound")
    );
}
