//! When a node is no longer what its pool asks for.

use joiner_api::node_pool_hash;
use joiner_model::{InstanceType, Labels, NanoDollars, Offering, Resources};
use joiner_state::live::{Kind, Snapshot};
use serde_json::{Value, json};

use super::drift::{Question, is_type_lost, question};
use super::{Consolidatable, put};
use crate::nodeclaim::lifecycle::conditions;
use crate::nodeclaim::lifecycle::made::{Cluster, at, launched, merge, pool};

const HASH: &str = "karpenter.sh/nodepool-hash";
const VERSION: &str = "karpenter.sh/nodepool-hash-version";

fn world(claim: Value, more: &Value) -> Snapshot {
    let mut pool = pool("uid-p");
    merge(&mut pool, more);
    let cluster = Cluster::default().with(Kind::NodeClaim, claim);
    cluster.with(Kind::NodePool, pool).snapshot()
}

fn asked(now: &Snapshot, secs: i64) -> Question {
    question(
        now.claim("c").unwrap(),
        now.pool("p").unwrap(),
        None,
        at(secs),
    )
}

/// A claim with these labels, launched.
fn labeled(labels: &Value) -> Value {
    launched(&["Launched"], &json!({"metadata": {"labels": labels}}))
}

fn requiring(requirements: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"requirements": requirements}}}})
}

#[test]
fn core_236_a_claim_that_is_not_launched_has_not_drifted() {
    let stale = json!({"metadata": {"annotations": {HASH: "1", VERSION: "v3"}}});
    let fresh = json!({"metadata": {"annotations": {HASH: "2", VERSION: "v3"}}});
    let now = world(launched(&[], &stale), &fresh);
    assert_eq!(asked(&now, 0), Question::Settled(None));
    let failed = json!({"status": {"conditions": [{"type": "Launched", "status": "False",
        "reason": "LaunchFailed", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"}]}});
    let mut claim = launched(&[], &stale);
    merge(&mut claim, &failed);
    assert_eq!(asked(&world(claim, &fresh), 0), Question::Settled(None));
    let now = world(launched(&["Launched"], &stale), &fresh);
    assert_eq!(asked(&now, 0), Question::Settled(Some("NodePoolDrifted")));
}

#[test]
fn core_240_only_hashes_of_the_same_version_are_compared() {
    let both = |hash: &str, version: &str| json!({HASH: hash, VERSION: version});
    for (claim, pool, drifted) in [
        (both("1", "v3"), both("2", "v3"), true),
        (both("1", "v3"), both("1", "v3"), false),
        (both("1", "v2"), both("2", "v3"), false),
        (json!({VERSION: "v3"}), both("2", "v3"), false),
        (json!({HASH: "1"}), both("2", "v3"), false),
        (both("1", "v3"), json!({VERSION: "v3"}), false),
        (both("1", "v3"), json!({HASH: "2"}), false),
        (json!({}), json!({}), false),
    ] {
        let case = format!("{claim} {pool}");
        let claim = launched(&["Launched"], &json!({"metadata": {"annotations": claim}}));
        let now = world(claim, &json!({"metadata": {"annotations": pool}}));
        let expected = if drifted {
            Question::Settled(Some("NodePoolDrifted"))
        } else {
            Question::Cloud
        };
        assert_eq!(asked(&now, 0), expected, "{case}");
    }
}

#[test]
fn core_239_a_change_of_the_template_drifts_and_a_change_of_behavior_does_not() {
    let base = requiring(&json!([{"key": "a", "operator": "NotIn", "values": ["b"]}]));
    let before = world(labeled(&json!({})), &base);
    let stamp = node_pool_hash(&before.pool("p").unwrap().pool);
    let spec = |field: &str, value: Value| json!({"spec": {"template": {"spec": {field: value}}}});
    let taints = json!([{"key": "k", "effect": "NoSchedule"}]);
    for (change, drifted) in [
        (
            json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}),
            true,
        ),
        (
            json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
            true,
        ),
        (spec("taints", taints.clone()), true),
        (spec("startupTaints", taints), true),
        (spec("nodeClassRef", json!({"name": "other"})), true),
        (spec("expireAfter", json!("1h")), true),
        (spec("terminationGracePeriod", json!("1h")), true),
        (json!({"spec": {"limits": {"cpu": "10"}}}), false),
        (json!({"spec": {"weight": 10}}), false),
        (
            json!({"spec": {"disruption": {"consolidateAfter": "1h"}}}),
            false,
        ),
        (requiring(&json!([])), false),
    ] {
        let mut changed = base.clone();
        merge(&mut changed, &change);
        let hash = node_pool_hash(&world(labeled(&json!({})), &changed).pool("p").unwrap().pool);
        merge(
            &mut changed,
            &json!({"metadata": {"annotations": {HASH: hash, VERSION: "v3"}}}),
        );
        let stamped = json!({"metadata": {"annotations": {HASH: stamp, VERSION: "v3"}}});
        let now = world(launched(&["Launched"], &stamped), &changed);
        let found = asked(&now, 0) == Question::Settled(Some("NodePoolDrifted"));
        assert_eq!(found, drifted, "{change}");
    }
}

#[test]
fn core_237_labels_are_held_against_requirements() {
    let one = |operator: &str, values: Value| json!([{"key": "example.com/size", "operator": operator, "values": values}]);
    let with = json!({"example.com/size": "4"});
    for (labels, requirements, drifted) in [
        (&with, one("In", json!(["4"])), false),
        (&with, one("In", json!(["4", "8"])), false),
        (&with, one("In", json!(["8"])), true),
        (&with, one("NotIn", json!(["8"])), false),
        (&with, one("NotIn", json!(["4", "8"])), true),
        (&with, one("Exists", json!([])), false),
        (&with, one("DoesNotExist", json!([])), true),
        (&with, one("Gt", json!(["3"])), false),
        (&with, one("Gt", json!(["4"])), true),
        (&with, one("Lt", json!(["5"])), false),
        (&with, one("Lt", json!(["4"])), true),
        (&json!({}), one("In", json!(["4"])), true),
        (&json!({}), one("Exists", json!([])), true),
        (&json!({}), one("DoesNotExist", json!([])), false),
        (&json!({}), one("NotIn", json!(["4"])), false),
    ] {
        let now = world(labeled(labels), &requiring(&requirements));
        let expected = if drifted {
            Question::Settled(Some("RequirementsDrifted"))
        } else {
            Question::Cloud
        };
        assert_eq!(asked(&now, 0), expected, "{labels} {requirements}");
    }
}

#[test]
fn old_spellings_of_keys_are_the_same_keys() {
    let labels = json!({"topology.kubernetes.io/zone": "z"});
    let old = "failure-domain.beta.kubernetes.io/zone";
    for (zone, expected) in [
        ("z", Question::Cloud),
        ("y", Question::Settled(Some("RequirementsDrifted"))),
    ] {
        let wanted = json!([{"key": old, "operator": "In", "values": [zone]}]);
        let now = world(labeled(&labels), &requiring(&wanted));
        assert_eq!(asked(&now, 0), expected, "{zone}");
    }
}

#[test]
fn core_238_only_claims_whose_labels_conflict_drift() {
    let named = |name: &str, zone: &str| {
        let labels = json!({"topology.kubernetes.io/zone": zone});
        launched(
            &["Launched"],
            &json!({"metadata": {"name": name, "uid": name, "labels": labels}}),
        )
    };
    let wanted = json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]);
    let mut pool = pool("uid-p");
    merge(&mut pool, &requiring(&wanted));
    let cluster = Cluster::default().with(Kind::NodePool, pool);
    let cluster = cluster.with(Kind::NodeClaim, named("stays", "a"));
    let now = cluster.with(Kind::NodeClaim, named("goes", "b")).snapshot();
    let pool = now.pool("p").unwrap();
    let of = |name: &str| question(now.claim(name).unwrap(), pool, None, at(0));
    assert_eq!(of("stays"), Question::Cloud);
    assert_eq!(of("goes"), Question::Settled(Some("RequirementsDrifted")));
}

#[test]
fn core_235_the_pool_is_heard_before_types_and_cloud() {
    let wanted = json!([{"key": "a", "operator": "Exists"}]);
    let claim = json!({"metadata": {"annotations": {HASH: "1", VERSION: "v3"}}});
    let mut more = requiring(&wanted);
    let late = 7200;
    // Only the requirements have changed.
    let same = launched(&["Launched"], &claim);
    assert_eq!(
        asked(&world(same.clone(), &more), late),
        Question::Settled(Some("RequirementsDrifted"))
    );
    // The hash, too.
    merge(
        &mut more,
        &json!({"metadata": {"annotations": {HASH: "2", VERSION: "v3"}}}),
    );
    assert_eq!(
        asked(&world(same, &more), late),
        Question::Settled(Some("NodePoolDrifted"))
    );
}

#[test]
fn core_234_types_are_looked_for_after_an_hour_and_then_twice_an_hour() {
    let now = world(labeled(&json!({})), &json!({}));
    let (claim, pool) = (now.claim("c").unwrap(), now.pool("p").unwrap());
    for (found, secs, due) in [
        (None, 3599, false),
        (None, 3600, true),
        (Some(3600), 5399, false),
        (Some(3600), 5400, true),
    ] {
        let asked = question(claim, pool, found.map(at), at(secs));
        let expected = if due {
            Question::TypesAndCloud
        } else {
            Question::Cloud
        };
        assert_eq!(asked, expected, "{found:?} {secs}");
    }
}

/// A type that is sold as these `zone/capacity-type`; a third part is a reservation.
fn sold(name: &str, offerings: &[&str]) -> InstanceType {
    let offerings = offerings.iter().map(|offering| {
        let mut parts = offering.split('/');
        let keys = ["topology.kubernetes.io/zone", "karpenter.sh/capacity-type"];
        let mut labels: Labels = keys
            .into_iter()
            .zip(parts.by_ref())
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        let reservation = parts.next().map(|id| (id.into(), 0));
        if let Some((id, _)) = &reservation {
            labels.insert(
                "karpenter.k8s.aws/capacity-reservation-id".into(),
                std::sync::Arc::clone(id),
            );
        }
        Offering {
            labels,
            price: NanoDollars::new(1),
            available: false,
            reservation,
            extra_capacity: Resources::new(),
        }
    });
    InstanceType {
        name: name.into(),
        labels: std::collections::BTreeMap::new(),
        capacity: Resources::new(),
        overhead: Resources::new(),
        offerings: offerings.collect(),
    }
}

#[test]
fn core_234_a_type_that_is_not_sold_there_any_more_is_lost() {
    let bought = |capacity_type: &str| {
        json!({"node.kubernetes.io/instance-type": "m", "topology.kubernetes.io/zone": "a",
            "karpenter.sh/capacity-type": capacity_type})
    };
    let mut reserved = bought("reserved");
    reserved["karpenter.k8s.aws/capacity-reservation-id"] = json!("r-1");
    for (labels, types, lost) in [
        // Sold out is still sold.
        (bought("spot"), vec![sold("m", &["a/spot"])], false),
        (bought("spot"), vec![sold("m", &["b/spot"])], true),
        (bought("spot"), vec![sold("m", &["a/on-demand"])], true),
        (bought("spot"), vec![sold("m", &[])], true),
        (bought("spot"), vec![sold("c", &["a/spot"])], true),
        (bought("spot"), vec![], true),
        (json!({}), vec![sold("m", &["a/spot"])], true),
        // A reservation may end; the machine goes on as an ordinary one.
        (
            reserved.clone(),
            vec![sold("m", &["a/reserved/r-1"])],
            false,
        ),
        (
            reserved.clone(),
            vec![sold("m", &["a/reserved/r-2"])],
            false,
        ),
        (reserved.clone(), vec![sold("m", &["a/on-demand"])], false),
        (reserved.clone(), vec![sold("m", &["a/spot"])], true),
        (reserved, vec![sold("m", &["b/on-demand"])], true),
    ] {
        let now = world(labeled(&labels), &json!({}));
        let found = is_type_lost(now.claim("c").unwrap(), &types);
        assert_eq!(found, lost, "{labels} {types:?}");
    }
}

/// The same, with one more label on every offering.
fn labeled_offerings(mut sold: InstanceType, key: &str, value: &str) -> InstanceType {
    for offering in &mut sold.offerings {
        offering.labels.insert(key.into(), value.into());
    }
    sold
}

#[test]
fn core_205_what_was_reserved_is_not_lost_while_it_is_sold_reserved_or_on_demand() {
    const KIND: &str = "karpenter.k8s.aws/capacity-reservation-type";
    const TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
    let labels = json!({"node.kubernetes.io/instance-type": "m", "topology.kubernetes.io/zone": "a",
        "karpenter.sh/capacity-type": "reserved", "karpenter.k8s.aws/capacity-reservation-id": "r-1",
        KIND: "default", TENANCY: "default"});
    let other = |key: &str| labeled_offerings(sold("m", &["a/reserved/r-2"]), key, "other");
    let now = world(labeled(&labels), &json!({}));
    for (sold, lost) in [
        (sold("m", &["a/reserved/r-1"]), false),
        (sold("m", &["a/reserved/r-2"]), false),
        (sold("m", &["a/reserved"]), false),
        (other(KIND), false),
        (sold("m", &["a/on-demand"]), false),
        (sold("m", &["a/spot", "b/spot", "a/on-demand"]), false),
        (sold("m", &["a/spot"]), true),
        (
            sold("m", &["a/spot", "b/on-demand", "b/reserved/r-1"]),
            true,
        ),
        // Only the reservation does not count.
        (other(TENANCY), true),
        (sold("m", &[]), true),
        (sold("c", &["a/reserved/r-1", "a/on-demand"]), true),
    ] {
        let types = [sold];
        let found = is_type_lost(now.claim("c").unwrap(), &types);
        assert_eq!(found, lost, "{types:?}");
    }
    // Others do not get away with what was bought as something else.
    let mut ordinary = labels;
    ordinary["karpenter.sh/capacity-type"] = json!("on-demand");
    let now = world(labeled(&ordinary), &json!({}));
    assert!(is_type_lost(
        now.claim("c").unwrap(),
        &[sold("m", &["a/reserved/r-1"])]
    ));
}

#[test]
fn core_233_the_reason_is_on_the_claim_until_it_is_no_longer_true() {
    let mut cluster = Cluster::default().with(Kind::NodeClaim, launched(&["Launched"], &json!({})));
    for (drifted, expected) in [
        (Some(Some("ImageDrifted")), "True ImageDrifted ImageDrifted"),
        // The cloud does not answer: nothing new.
        (None, "True ImageDrifted ImageDrifted"),
        (Some(None), ""),
    ] {
        let now = cluster.snapshot();
        let claim = now.claim("c").unwrap();
        let mut set = conditions(claim, at(100));
        put(&mut set, Consolidatable::No, drifted);
        let patch = json!({
            "metadata": {"resourceVersion": claim.meta.version.to_string()},
            "status": {"conditions": set.finished().to_value()},
        });
        cluster.change(Kind::NodeClaim, "c", &patch);
        assert_eq!(cluster.condition("Drifted"), expected, "{drifted:?}");
    }
}
