//! What the NodeClaims of a plan look like.

use std::collections::BTreeSet;
use std::sync::Arc;

use joiner_api::types::{NodeClaim, NodePool};
use joiner_model::{MinValuesPolicy, Policy};
use joiner_state::live::{Ask, Asked, ClusterState, Kind, Snapshot};
use serde_json::{Value, json};

use super::plan::new_claims;
use crate::catalogs::Lists;
use crate::nodepool::made::{any, at, class, merged, pool};

const ARCH: &str = "kubernetes.io/arch";
const PAID: &str = "karpenter.sh/capacity-type";
const TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";

/// `small` and `large`, on demand and as spot in zones a and b, and as arm64 the same.
fn types() -> Value {
    let sold = |zone: &str, capacity_type: &str, price: f64| {
        json!({"Price": price, "Requirements": [
            {"key": PAID, "operator": "In", "values": [capacity_type]},
            {"key": ZONE, "operator": "In", "values": [zone]}]})
    };
    let one = |name: &str, cpu: u32, arch: &str| {
        let price = f64::from(cpu) / 10.0;
        let offerings = ["a", "b"].map(|zone| {
            [
                sold(zone, "on-demand", price),
                sold(zone, "spot", price / 2.0),
            ]
        });
        json!({"name": name, "architecture": arch, "operatingSystems": ["linux"],
            "resources": {"cpu": cpu.to_string(), "memory": "16Gi"},
            "offerings": offerings.concat()})
    };
    json!([
        one("small", 2, "amd64"),
        one("large", 8, "amd64"),
        one("small-arm", 2, "arm64"),
        one("large-arm", 8, "arm64"),
    ])
}

/// The pool `p`, ready; `spec` is merged into its template's.
fn ready(spec: Value, meta: Value) -> (Kind, Value) {
    let yes = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let more = json!({"spec": {"template": {"metadata": meta, "spec": spec}},
        "status": {"conditions": [yes("Ready")]}});
    pool("p", more)
}

fn requires(requirements: Value) -> (Kind, Value) {
    ready(json!({"requirements": requirements}), json!({}))
}

/// A pod that fits nowhere.
fn waiting(more: Value) -> (Kind, Value) {
    let base = json!({
        "spec": {"containers": [{"name": "c", "image": "i",
            "resources": {"requests": {"cpu": "1500m"}}}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable"}]},
    });
    any(Kind::Pod, "default/web", merged(base, more))
}

fn state(objects: impl IntoIterator<Item = (Kind, Value)>) -> ClusterState {
    let mut state = ClusterState::default();
    for (kind, object) in objects {
        assert!(state.apply(kind, &object).is_some(), "{object}");
    }
    state
}

fn lists(now: &Snapshot) -> Lists {
    let text = types().to_string();
    let types = joiner_state::parse_instance_types("types.json", &text).unwrap();
    let class = now.pool("p").unwrap().class.clone();
    Lists::from([(class, Arc::new(types))])
}

fn asked(now: &Snapshot, min_values: MinValuesPolicy) -> Asked {
    now.problem(&Ask {
        catalogs: &lists(now),
        policy: Policy {
            min_values,
            ..Policy::default()
        },
        now: at(2_000_000_000),
        planned: &BTreeSet::new(),
        headroom: &[],
    })
    .unwrap()
}

/// The only claim that is made for what waits.
#[track_caller]
fn claim(now: &Snapshot, min_values: MinValuesPolicy) -> NodeClaim {
    let asked = asked(now, min_values);
    let plan = joiner_solver::solve(&asked.problem);
    let mut claims = new_claims(now, &lists(now), &asked.problem, &plan);
    assert_eq!(claims.len(), 1, "{:?}", plan.unplaced);
    claims.remove(0).1.claim
}

/// The claim for one pod of a pool.
#[track_caller]
fn claim_of(pool: (Kind, Value), pod: Value) -> NodeClaim {
    let now = state([pool, class(json!({})), waiting(pod)]).snapshot();
    claim(&now, MinValuesPolicy::Strict)
}

/// `operator values minValues` of each requirement on a key.
fn on(claim: &NodeClaim, key: &str) -> Vec<String> {
    let own = claim.spec.requirements.iter().filter(|own| own.key == key);
    own.map(|own| {
        let text = format!("{} {}", own.operator.as_str(), own.values.join(" "));
        let least = own.min_values.map(|least| format!(" minValues {least}"));
        text + &least.unwrap_or_default()
    })
    .collect()
}

#[test]
fn core_108_a_claim_has_the_hash_of_the_template_it_was_planned_with() {
    let tainted = || {
        ready(
            json!({"taints": [{"key": "t", "effect": "NoSchedule"}]}),
            json!({}),
        )
    };
    let first = requires(json!([]));
    let hash = |(_, object): &(Kind, Value)| {
        let typed: NodePool = serde_json::from_value(object.clone()).unwrap();
        joiner_api::node_pool_hash(&typed)
    };
    let (before, after) = (hash(&first), hash(&tainted()));
    assert_ne!(before, after);
    let mut state = state([first, class(json!({})), waiting(json!({}))]);
    let solved = state.snapshot();
    let asked = asked(&solved, MinValuesPolicy::Strict);
    let plan = joiner_solver::solve(&asked.problem);
    let (kind, object) = tainted();
    state.apply(kind, &object);
    let later = state.snapshot();
    for (now, expected) in [(&solved, before), (&later, after)] {
        let claims = new_claims(now, &lists(now), &asked.problem, &plan);
        let claim = &claims[0].1.claim;
        let own = &claim.metadata.annotations["karpenter.sh/nodepool-hash"];
        assert_eq!(
            *own, expected,
            "as the snapshot that is planned with has it"
        );
    }
}

#[test]
fn core_109_a_claim_says_whose_it_is_and_what_it_may_be() {
    let pool = requires(json!([
        {"key": ARCH, "operator": "In", "values": ["amd64"]},
        {"key": PAID, "operator": "In", "values": ["on-demand", "reserved", "spot"]}]));
    let claim = claim_of(pool, json!({"spec": {"nodeSelector": {ZONE: "b"}}}));
    let meta = &claim.metadata;
    assert!(meta.name.starts_with("p-"), "{}", meta.name);
    let owners = serde_json::to_value(&meta.owner_references).unwrap();
    assert_eq!(
        owners,
        json!([{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "p",
            "uid": "uid-p", "blockOwnerDeletion": true}])
    );
    assert_eq!(
        serde_json::to_value(&claim.spec.node_class_ref).unwrap(),
        json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "c"})
    );
    assert_eq!(meta.labels["karpenter.kwok.sh/kwoknodeclass"], "c");
    assert_eq!(meta.labels["karpenter.sh/nodepool"], "p");
    assert_eq!(on(&claim, TYPE), ["In small large"], "cheapest first");
    assert_eq!(on(&claim, PAID), ["In on-demand spot"], "what is sold");
    assert_eq!(on(&claim, ZONE), ["In b"], "as its pod asks");
    assert_eq!(on(&claim, ARCH), ["In amd64"], "as its pool asks");
}

#[test]
fn core_109_capacity_types_are_on_the_claim_even_if_nobody_asks() {
    let claim = claim_of(requires(json!([])), json!({}));
    assert_eq!(on(&claim, PAID), ["In on-demand spot"]);
    let picky = json!({"spec": {"nodeSelector": {PAID: "on-demand"}}});
    let claim = claim_of(requires(json!([])), picky);
    assert_eq!(on(&claim, PAID), ["In on-demand"]);
}

/// Labels of a claim that neither the pool's name nor its class explains.
fn labels(claim: &NodeClaim) -> Vec<String> {
    let all = claim.metadata.labels.iter();
    let own = all.filter(|(key, _)| !key.starts_with("karpenter."));
    own.map(|(key, value)| format!("{key}={value}")).collect()
}

#[test]
fn core_111_custom_requirements_are_labels_and_well_known_ones_are_not() {
    let known = json!([{"key": ARCH, "operator": "In", "values": ["arm64"]},
        {"key": ZONE, "operator": "In", "values": ["a"]}]);
    let claim = claim_of(requires(known), json!({}));
    assert!(labels(&claim).is_empty(), "{:?}", labels(&claim));
    assert_eq!(on(&claim, ARCH), ["In arm64"]);

    let one = || json!([{"key": "team", "operator": "In", "values": ["x"]}]);
    let select = |value: &str| json!({"spec": {"nodeSelector": {"team": value}}});
    assert_eq!(labels(&claim_of(requires(one()), json!({}))), ["team=x"]);
    assert_eq!(labels(&claim_of(requires(one()), select("x"))), ["team=x"]);
    let two = || json!([{"key": "team", "operator": "In", "values": ["x", "y"]}]);
    assert_eq!(labels(&claim_of(requires(two()), select("y"))), ["team=y"]);
    assert_eq!(labels(&claim_of(requires(two()), json!({}))), ["team=x"]);
    let none = json!([{"key": "team", "operator": "DoesNotExist"}]);
    assert!(labels(&claim_of(requires(none), json!({}))).is_empty());
    let some = || json!([{"key": "team", "operator": "Exists"}]);
    assert_eq!(labels(&claim_of(requires(some()), select("y"))), ["team=y"]);
    assert_eq!(labels(&claim_of(requires(some()), json!({}))), ["team=0"]);

    let meta = json!({"labels": {"tier": "gold"}, "annotations": {"note": "kept"}});
    let claim = claim_of(ready(json!({}), meta), json!({}));
    assert_eq!(labels(&claim), ["tier=gold"]);
    assert_eq!(claim.metadata.annotations["note"], "kept");
}

#[test]
fn a_custom_label_is_none_that_its_pods_rule_out() {
    let some = requires(json!([{"key": "team", "operator": "Exists"}]));
    let other = json!({"spec": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["0", "1"]}]}]}}}}});
    assert_eq!(labels(&claim_of(some, other)), ["team=2"]);
}

#[test]
fn core_101_min_values_on_a_claim_are_what_can_be_had() {
    let pool = |count: u32| {
        requires(json!([
            {"key": ARCH, "operator": "Exists", "minValues": 2},
            {"key": ZONE, "operator": "In", "values": ["a", "b", "c", "d"], "minValues": count},
            {"key": TYPE, "operator": "Exists", "minValues": 3}]))
    };
    let small = json!({"spec": {"nodeSelector": {ZONE: "a"}}});
    for (count, policy, relaxed) in [
        (2, MinValuesPolicy::Strict, "false"),
        (4, MinValuesPolicy::BestEffort, "true"),
    ] {
        let now = state([pool(count), class(json!({})), waiting(small.clone())]).snapshot();
        let claim = claim(&now, policy);
        let told = &claim.metadata.annotations["karpenter.sh/nodeclaim-min-values-relaxed"];
        assert_eq!(told, relaxed);
        assert_eq!(on(&claim, ARCH), ["Exists  minValues 2"]);
        assert!(on(&claim, TYPE)[0].ends_with("minValues 3"));
        // More than there are values on the list is refused by the API server.
        assert_eq!(on(&claim, ZONE), ["In a minValues 1"]);
    }
}
