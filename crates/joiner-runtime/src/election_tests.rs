//! What a candidate does about a Lease, by what it has seen of it.

use super::*;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(secs).unwrap()
}

fn settings() -> ElectionSettings {
    ElectionSettings::new("kube-system", "me_1".to_owned())
}

fn seen(holder: &str, since: i64) -> Observed {
    let object = json!({"metadata": {"resourceVersion": "7"}, "spec": {
        "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 4,
        // Far off: clocks of others do not matter.
        "acquireTime": "1999-01-01T00:00:00.000000Z", "renewTime": "2999-01-01T00:00:00.000000Z"}});
    Observed {
        object,
        since: at(since),
    }
}

fn written(step: Step) -> Value {
    match step {
        Step::Create(lease) | Step::Write(lease) => lease,
        Step::Wait => panic!("it waits"),
    }
}

#[test]
fn no_lease_is_created() {
    let lease = written(decide(None, &settings(), at(3)));
    assert_eq!(lease["metadata"]["name"], "karpenter-leader-election");
    assert_eq!(lease["metadata"]["namespace"], "kube-system");
    let spec = json!({"holderIdentity": "me_1", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "1970-01-01T00:00:03.000000Z", "renewTime": "1970-01-01T00:00:03.000000Z"});
    assert_eq!(lease["spec"], spec);
}

#[test]
fn somebody_elses_lease_is_left_alone_until_it_has_run_out() {
    let other = seen("you_2", 100);
    assert_eq!(decide(Some(&other), &settings(), at(100)), Step::Wait);
    assert_eq!(decide(Some(&other), &settings(), at(114)), Step::Wait);
    let lease = written(decide(Some(&other), &settings(), at(115)));
    assert_eq!(lease["spec"]["holderIdentity"], "me_1");
    assert_eq!(lease["spec"]["leaseTransitions"], 5);
    assert_eq!(lease["metadata"]["resourceVersion"], "7");
}

#[test]
fn a_lease_that_was_given_back_is_taken_at_once() {
    let lease = written(decide(Some(&seen("", 100)), &settings(), at(100)));
    assert_eq!(lease["spec"]["holderIdentity"], "me_1");
}

#[test]
fn our_own_lease_is_renewed() {
    let lease = written(decide(Some(&seen("me_1", 0)), &settings(), at(100)));
    assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:01:40.000000Z");
    assert_eq!(lease["spec"]["acquireTime"], "1999-01-01T00:00:00.000000Z");
    assert_eq!(lease["spec"]["leaseTransitions"], 4);
}

#[test]
fn a_lease_ages_while_it_does_not_change() {
    let first = seen("you_2", 100);
    let again = observe(Some(first.clone()), first.object.clone(), at(110));
    assert_eq!(again.since, at(100));
    let mut renewed = first.object.clone();
    renewed["metadata"]["resourceVersion"] = json!("8");
    assert_eq!(observe(Some(first), renewed, at(110)).since, at(110));
}

#[test]
fn identities_differ_and_start_with_the_pod() {
    let [one, two] = [identity("karpenter-0"), identity("karpenter-0")];
    assert_ne!(one, two);
    let (pod, uuid) = one.split_once('_').unwrap();
    assert_eq!(pod, "karpenter-0");
    let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert!(uuid[14..].starts_with('4'), "{uuid}");
}

#[test]
fn a_dry_run_has_a_lease_of_its_own() {
    assert_eq!(
        settings().dry_run().name,
        "karpenter-leader-election-dry-run"
    );
}
