//! How claims end.

use joiner_cloud::Termination;
use joiner_state::live::Kind;
use serde_json::{Value, json};

use super::{FakeCloud, GOOD, joined, registered, settle, with};
use crate::nodeclaim::lifecycle::made::{at, claim, launched, node, text};

#[test]
fn core_325_the_machine_goes_before_the_claim() {
    let cases: [(&[&str], Termination, &[&str]); 3] = [
        (&["Launched"], Termination::Gone, &["terminate", "release"]),
        (
            &["Launched"],
            Termination::Going,
            &["terminate", "write", "wait 5 s"],
        ),
        (
            &["Launched", "InstanceTerminating"],
            Termination::Going,
            &["terminate", "wait 5 s"],
        ),
    ];
    for (conditions, end, wanted) in cases {
        let mut cluster = with(launched(conditions, &json!({})));
        cluster.delete(Kind::NodeClaim, "c", at(100));
        let cloud = FakeCloud { end, ..GOOD };
        assert_eq!(settle(&mut cluster, &cloud, at(101)), wanted);
        let released = wanted.contains(&"release");
        let claim = cluster.get(Kind::NodeClaim, "c");
        let held = claim["metadata"]["finalizers"] == json!(["karpenter.sh/termination"]);
        assert_eq!(held, !released);
        if !released {
            assert_eq!(
                cluster.condition("InstanceTerminating").split(' ').next(),
                Some("True")
            );
        }
    }
}

#[test]
fn core_325_all_nodes_of_a_registered_claim_go_first() {
    let mut cluster = registered(&json!({}), &json!({}));
    cluster.put(
        Kind::Node,
        node(&json!({"metadata": {"name": "m", "uid": "uid-m"}})),
    );
    cluster.delete(Kind::NodeClaim, "c", at(100));
    let told = settle(&mut cluster, &GOOD, at(101));
    assert_eq!(told, ["delete 2 nodes", "wait 5 s"]);
    cluster.remove(Kind::Node, "n");
    assert_eq!(settle(&mut cluster, &GOOD, at(102)), ["wait 5 s"]);
    cluster.remove(Kind::Node, "m");
    assert_eq!(
        settle(&mut cluster, &GOOD, at(103)),
        ["terminate", "release"]
    );
}

#[test]
fn core_325_an_unregistered_node_is_left_alone_and_an_unlaunched_claim_just_goes() {
    let mut cluster = joined(&json!({}), &json!({}));
    cluster.delete(Kind::NodeClaim, "c", at(100));
    assert_eq!(
        settle(&mut cluster, &GOOD, at(101)),
        ["terminate", "release"]
    );
    let node = cluster.get(Kind::Node, "n");
    assert_eq!(node["metadata"]["deletionTimestamp"], Value::Null);
    let others = ["example.com/mine", "karpenter.sh/termination"];
    let mut cluster = with(claim(&json!({"metadata": {"finalizers": others}})));
    cluster.delete(Kind::NodeClaim, "c", at(100));
    assert_eq!(settle(&mut cluster, &GOOD, at(101)), ["release"]);
    let claim = cluster.get(Kind::NodeClaim, "c");
    assert_eq!(claim["metadata"]["finalizers"], json!(["example.com/mine"]));
    assert_eq!(settle(&mut cluster, &GOOD, at(102)), ["wait"]);
}

#[test]
fn core_326_a_grace_period_becomes_a_deadline_once() {
    let key = "karpenter.sh/nodeclaim-termination-timestamp";
    let kept = json!({"metadata": {"annotations": {key: text(5000)}},
        "spec": {"terminationGracePeriod": "60s"}});
    let cases = [
        (json!({}), Value::Null),
        (
            json!({"spec": {"terminationGracePeriod": "60s"}}),
            json!(text(160)),
        ),
        (
            json!({"spec": {"terminationGracePeriod": "0s"}}),
            json!(text(100)),
        ),
        (kept, json!(text(5000))),
    ];
    for (claim, wanted) in cases {
        let mut cluster = registered(&claim, &json!({}));
        cluster.delete(Kind::NodeClaim, "c", at(100));
        settle(&mut cluster, &GOOD, at(103));
        let claim = cluster.get(Kind::NodeClaim, "c");
        assert_eq!(claim["metadata"]["annotations"][key], wanted, "{wanted}");
    }
}
