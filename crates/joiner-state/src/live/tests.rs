//! Tests of the live state, from objects to snapshots and problems.

mod annotations;
mod containers;
mod doomed;
mod ground;
mod kinds;
mod pools;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use joiner_model::{
    InstanceType, Labels, Name, NanoDollars, Offering, Policy, ResourceName, Resources, keys,
};
use serde_json::{Value, json};

use super::*;
use crate::pools::NodeClassRef;

fn pod(name: &str, version: u64, more: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}});
    merge(&mut pod, more);
    pod
}

fn node(name: &str, version: u64, more: Value) -> Value {
    let mut node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
            "labels": {"node.kubernetes.io/instance-type": "small"}},
        "spec": {"providerID": format!("sim://{name}")},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}});
    merge(&mut node, more);
    node
}

fn claim(name: &str, more: Value) -> Value {
    let mut claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1",
            "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {"nodeClassRef": {"group": "g", "kind": "K", "name": "c"}, "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["small"]}]}});
    merge(&mut claim, more);
    claim
}

fn pool() -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "general", "uid": "uid-general", "resourceVersion": "1"},
        "spec": {"template": {"spec": {"requirements": [],
            "nodeClassRef": {"group": "g", "kind": "K", "name": "c"}}}},
        "status": {"conditions": [{"type": "Ready", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

fn catalogs() -> BTreeMap<NodeClassRef, Arc<Vec<InstanceType>>> {
    let class = NodeClassRef {
        group: "g".into(),
        kind: "K".into(),
        name: "c".into(),
    };
    let small = InstanceType {
        name: "small".into(),
        labels: BTreeMap::from([(keys::INSTANCE_TYPE.into(), vec!["small".into()])]),
        capacity: Resources::new()
            .with(ResourceName::Cpu, 4000)
            .with(ResourceName::Memory, 8 << 30)
            .with(ResourceName::Pods, 10),
        overhead: Resources::new(),
        offerings: vec![Offering {
            labels: Labels::from([
                (keys::ZONE.into(), "a".into()),
                (keys::CAPACITY_TYPE.into(), "on-demand".into()),
            ]),
            price: NanoDollars::new(100),
            available: true,
            reservation: None,
            extra_capacity: Resources::new(),
        }],
    };
    BTreeMap::from([(class, Arc::new(vec![small]))])
}

fn asked(now: &Snapshot) -> Asked {
    now.problem(&Ask {
        catalogs: &catalogs(),
        policy: Policy::default(),
        now: Timestamp::from_second(1_800_000_000).unwrap(),
        planned: &BTreeSet::new(),
        headroom: &[],
    })
    .unwrap()
}

fn on_node(name: &str) -> Value {
    json!({"spec": {"nodeName": name}, "status": {"phase": "Running", "conditions": []}})
}

#[test]
fn nobody_looks_for_a_place_for_pods_that_have_a_plan() {
    let mut state = ClusterState::default();
    let mut node = node("n1", 1, json!({}));
    node["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    node["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    state.apply(Kind::Node, &node);
    state.apply(Kind::Pod, &pod("a", 1, on_node("n1")));
    let now = state.snapshot();
    assert_eq!(asked(&now).problem.pending().count(), 1);
    let planned = BTreeSet::from(["n1".into()]);
    let asked = now.problem(&Ask {
        catalogs: &catalogs(),
        policy: Policy::default(),
        now: Timestamp::from_second(1_800_000_000).unwrap(),
        planned: &planned,
        headroom: &[],
    });
    assert_eq!(asked.unwrap().problem.pending().count(), 0);
}

#[test]
fn pods_are_indexed_by_node_and_by_waiting() {
    let mut state = ClusterState::default();
    state.apply(Kind::Pod, &pod("a", 1, json!({})));
    let waiting = |state: &ClusterState| {
        let now = state.snapshot();
        now.provisionable()
            .map(|pod| pod.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(waiting(&state), ["default/a"]);
    let change = state.apply(Kind::Pod, &pod("a", 2, on_node("n1"))).unwrap();
    assert_eq!(
        (change.what, change.about.as_deref()),
        (What::Changed, Some("n1"))
    );
    assert!(waiting(&state).is_empty());
    let now = state.snapshot();
    assert_eq!(now.pods_on("n1").count(), 1);
    // The earlier snapshot does not change.
    state.remove(Kind::Pod, &pod("a", 3, json!({})));
    assert_eq!(now.pods_on("n1").count(), 1);
    assert_eq!(state.snapshot().pods_on("n1").count(), 0);
    assert_eq!(state.snapshot().n_pods(), 0);
}

#[test]
fn older_news_and_the_dead_are_ignored() {
    let mut state = ClusterState::default();
    state.apply(Kind::Pod, &pod("a", 5, on_node("n1")));
    assert!(state.apply(Kind::Pod, &pod("a", 4, json!({}))).is_none());
    assert_eq!(state.snapshot().pods_on("n1").count(), 1);
    state.remove(Kind::Pod, &pod("a", 6, json!({})));
    assert!(
        state.apply(Kind::Pod, &pod("a", 7, json!({}))).is_none(),
        "an answer that came late"
    );
    // Another pod of the same name is another pod, also when the old one's end is told later.
    let other = pod("a", 8, json!({"metadata": {"uid": "other"}}));
    assert!(state.apply(Kind::Pod, &other).is_some());
    assert!(state.remove(Kind::Pod, &pod("a", 9, json!({}))).is_none());
    assert_eq!(state.snapshot().n_pods(), 1);
}

#[test]
fn a_list_drops_what_is_not_on_it_but_not_what_we_made_meanwhile() {
    let mut state = ClusterState::default();
    assert!(!state.snapshot().is_listed(Kind::Node, ""));
    for name in ["n1", "n2"] {
        state.apply(Kind::Node, &node(name, 1, json!({})));
    }
    state.begin(Kind::Node, "");
    state.apply(Kind::Node, &node("n2", 1, json!({})));
    state.apply(Kind::Node, &node("n3", 9, json!({})));
    let gone: Vec<String> = (state.finish(Kind::Node, "").iter())
        .map(|change| change.name.to_string())
        .collect();
    assert_eq!(gone, ["n1"]);
    assert!(state.snapshot().is_listed(Kind::Node, ""));
    assert_eq!(state.snapshot().n_nodes(), 2);
}

#[test]
fn node_and_claim_meet_by_provider_id() {
    let mut state = ClusterState::default();
    state.apply(Kind::Node, &node("n1", 1, json!({})));
    state.apply(
        Kind::NodeClaim,
        &claim("c1", json!({"status": {"providerID": "sim://n1"}})),
    );
    let now = state.snapshot();
    let own = now.claim("c1").unwrap();
    assert_eq!(&**now.node_of(own).unwrap().name(), "n1");
    // A second node with the same id: neither counts.
    let twin = node("n2", 1, json!({"spec": {"providerID": "sim://n1"}}));
    state.apply(Kind::Node, &twin);
    let now = state.snapshot();
    assert!(now.node_of(own).is_none());
    assert_eq!(now.nodes_with_id("sim://n1").count(), 2);
}

#[test]
fn what_cannot_be_understood_is_left_out_and_named() {
    let mut state = ClusterState::default();
    state.apply(Kind::Pod, &pod("a", 1, json!({})));
    let odd = pod(
        "a",
        2,
        json!({"spec": {"containers": [{"name": "c", "resources":
        {"requests": {"cpu": "much"}}}]}}),
    );
    let change = state.apply(Kind::Pod, &odd).unwrap();
    assert_eq!(change.what, What::Gone);
    assert!(state.broken(Kind::Pod, "default/a").is_some());
    assert_eq!(state.snapshot().n_pods(), 0);
    // Mended, it is the same object.
    state.apply(Kind::Pod, &pod("a", 3, json!({})));
    assert!(state.broken(Kind::Pod, "default/a").is_none());
    assert_eq!(state.snapshot().n_pods(), 1);
}

#[test]
fn a_budget_that_loses_its_selector_is_about_nobody_until_it_has_one_again() {
    let mut state = ClusterState::default();
    state.apply(
        Kind::Pod,
        &pod("a", 1, json!({"metadata": {"labels": {"app": "a"}}})),
    );
    for (version, selector, n) in [
        ("1", json!({"matchLabels": {"app": "a"}}), 1),
        ("2", Value::Null, 0),
        ("3", json!({}), 1),
    ] {
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default", "uid": "b", "resourceVersion": version},
            "spec": {"selector": selector, "maxUnavailable": 1}});
        state.apply(Kind::PodDisruptionBudget, &budget);
        let now = state.snapshot();
        let own = now.pod("default/a").unwrap();
        assert_eq!(now.budgets_of(own).count(), n, "version {version}");
    }
}

#[test]
fn a_claim_in_flight_is_a_node_of_the_planned_type() {
    let mut state = ClusterState::default();
    state.apply(Kind::NodePool, &pool());
    state.apply(Kind::Pod, &pod("a", 1, json!({})));
    let planned = json!({"metadata": {"annotations": {"joiner.dev/planned": "small/a/on-demand"}}});
    state.apply(Kind::NodeClaim, &claim("c1", planned));
    let asked = asked(&state.snapshot());
    let problem = &asked.problem;
    assert_eq!(problem.nodes.len(), 1);
    let node = &problem.nodes[0];
    assert_eq!(node.allocatable.get(&ResourceName::Cpu), 4000);
    assert_eq!(node.labels[keys::ZONE], Name::from("a"));
    assert_eq!(node.pool.as_deref(), Some("general"));
    assert!(!node.initialized && !node.closed);
    assert_eq!(
        asked.in_flight.values().map(|c| &**c).collect::<Vec<_>>(),
        ["c1"]
    );
    // Launched, it is what the cloud says it is.
    let launched = json!({"metadata": {"resourceVersion": "2"}, "status": {"providerID": "sim://x",
        "allocatable": {"cpu": "2"}, "capacity": {"cpu": "2"}, "conditions": [{"type": "Launched",
        "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    state.apply(Kind::NodeClaim, &claim("c1", launched));
    let later = self::asked(&state.snapshot());
    assert_eq!(
        later.problem.nodes[0].allocatable.get(&ResourceName::Cpu),
        2000
    );
    assert!(
        state
            .snapshot()
            .claim("c1")
            .unwrap()
            .claim
            .spec
            .requirements
            .is_empty()
    );
}

#[test]
fn a_machine_that_joins_before_its_claim_is_told_counts_once() {
    let mut state = ClusterState::default();
    state.apply(Kind::NodePool, &pool());
    state.apply(Kind::Pod, &pod("a", 1, json!({})));
    let planned = json!({"metadata": {"annotations": {"joiner.dev/planned": "small/a/on-demand"}}});
    state.apply(Kind::NodeClaim, &claim("c1", planned));
    let labels = json!({"karpenter.sh/nodepool": "general",
        "node.kubernetes.io/instance-type": "small"});
    let joined = json!({"metadata": {"labels": labels}, "spec": {"providerID": "sim://x"}});
    state.apply(Kind::Node, &node("n1", 1, joined));
    assert_eq!(asked(&state.snapshot()).problem.nodes.len(), 1);
    // Told, claim and node are one.
    let launched =
        json!({"metadata": {"resourceVersion": "2"}, "status": {"providerID": "sim://x"}});
    state.apply(Kind::NodeClaim, &claim("c1", launched));
    assert_eq!(asked(&state.snapshot()).problem.nodes.len(), 1);
    // A node of somebody else's counts for itself.
    state.apply(Kind::Node, &node("other", 1, json!({})));
    assert_eq!(asked(&state.snapshot()).problem.nodes.len(), 2);
}

#[test]
fn pods_of_a_node_that_goes_need_a_place() {
    let mut state = ClusterState::default();
    state.apply(Kind::NodePool, &pool());
    state.apply(Kind::Node, &node("n1", 1, json!({})));
    state.apply(Kind::Pod, &pod("moves", 1, on_node("n1")));
    let kept = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let mut stays = pod("stays", 1, on_node("n1"));
    merge(&mut stays, kept);
    state.apply(Kind::Pod, &stays);
    let daemon = json!({"metadata": {"ownerReferences": [{"kind": "DaemonSet", "name": "d",
        "uid": "d", "apiVersion": "apps/v1", "controller": true}]}});
    let mut of_daemon = pod("daemon", 1, on_node("n1"));
    merge(&mut of_daemon, daemon);
    state.apply(Kind::Pod, &of_daemon);
    let pending = |state: &ClusterState| {
        let asked = asked(&state.snapshot());
        let problem = asked.problem;
        let names = problem.pending().map(|ix| problem[ix].name.to_string());
        names.collect::<Vec<_>>()
    };
    assert!(pending(&state).is_empty());
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    state.apply(Kind::Node, &node("n1", 2, going));
    assert_eq!(pending(&state), ["default/moves"]);
    // A budget that never allows anything keeps it where it is.
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default", "uid": "b", "resourceVersion": "1"},
        "spec": {"maxUnavailable": 0, "selector": {}}});
    state.apply(Kind::PodDisruptionBudget, &budget);
    assert!(pending(&state).is_empty());
}

#[test]
fn pools_that_are_not_ready_do_not_buy() {
    let mut state = ClusterState::default();
    state.apply(Kind::NodePool, &pool());
    assert!(asked(&state.snapshot()).problem.pools[0].closed.is_none());
    let mut unready = pool();
    merge(
        &mut unready,
        json!({"metadata": {"resourceVersion": "2"}, "status": {"conditions": []}}),
    );
    state.apply(Kind::NodePool, &unready);
    assert!(asked(&state.snapshot()).problem.pools[0].closed.is_some());
}

#[test]
fn do_not_disrupt_may_be_a_duration() {
    let mut state = ClusterState::default();
    let at = |secs| Timestamp::from_second(secs).unwrap();
    let mut protected = |text: &str, secs: i64| {
        let mut object = pod("p", 1, on_node("n1"));
        merge(
            &mut object,
            json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": text},
            "uid": format!("{text}{secs}")}, "status": {"startTime": "1970-01-01T00:01:40Z"}}),
        );
        state.apply(Kind::Pod, &object);
        let now = state.snapshot();
        now.pod("default/p").unwrap().is_protected(at(secs))
    };
    assert!(protected("true", 9_999));
    assert!(protected("1m", 159));
    assert!(!protected("1m", 160));
    for text in ["false", "", "0s", "-5m", "soon"] {
        assert!(!protected(text, 100), "{text}");
    }
}

#[test]
fn shapes_that_nobody_has_are_thrown_away() {
    let mut state = ClusterState::default();
    for n in 0..6_000u64 {
        let labels = json!({"metadata": {"labels": {"n": n.to_string()}}});
        state.apply(Kind::Pod, &pod("a", n + 1, labels));
    }
    assert!(state.n_shapes() < 4_100, "{}", state.n_shapes());
    assert_eq!(asked(&state.snapshot()).problem.pods.len(), 1);
}

/// Pods bound to a node of the problem.
fn bound(state: &ClusterState, node: &str) -> usize {
    let problem = asked(&state.snapshot()).problem;
    let at = problem
        .nodes
        .iter()
        .position(|own| &*own.name == node)
        .unwrap();
    let ix = joiner_model::NodeIx(u32::try_from(at).unwrap());
    problem
        .pods
        .iter()
        .filter(|pod| pod.node == Some(ix))
        .count()
}

#[test]
fn core_327_what_pods_use_follows_them_exactly() {
    let mut state = ClusterState::default();
    for name in ["n1", "n2"] {
        state.apply(Kind::Node, &node(name, 1, json!({})));
    }
    state.apply(Kind::Pod, &pod("a", 1, json!({})));
    assert_eq!(bound(&state, "n1"), 0, "not bound yet");
    state.apply(Kind::Pod, &pod("a", 2, on_node("n1")));
    assert_eq!(bound(&state, "n1"), 1);
    // The same again changes nothing.
    state.apply(Kind::Pod, &pod("a", 2, on_node("n1")));
    assert_eq!(bound(&state, "n1"), 1);
    // Deleted and made anew elsewhere under the same name.
    state.remove(Kind::Pod, &pod("a", 3, json!({})));
    let mut again = pod("a", 4, on_node("n2"));
    merge(&mut again, json!({"metadata": {"uid": "again"}}));
    state.apply(Kind::Pod, &again);
    assert_eq!((bound(&state, "n1"), bound(&state, "n2")), (0, 1));
    // Finished pods use nothing.
    merge(
        &mut again,
        json!({"metadata": {"resourceVersion": "5"}, "status": {"phase": "Succeeded"}}),
    );
    state.apply(Kind::Pod, &again);
    assert_eq!(bound(&state, "n2"), 0);
}

#[test]
fn core_328_the_end_of_both_objects_is_the_end_of_the_node() {
    let mut state = ClusterState::default();
    // Node and claim of the same name.
    state.apply(Kind::Node, &node("x", 1, json!({})));
    let launched = json!({"metadata": {"uid": "claim"}, "status": {"providerID": "sim://x"}});
    state.apply(Kind::NodeClaim, &claim("x", launched.clone()));
    assert_eq!(asked(&state.snapshot()).problem.nodes.len(), 1);
    state.remove(Kind::Node, &node("x", 2, json!({})));
    assert_eq!(
        asked(&state.snapshot()).problem.nodes.len(),
        1,
        "its claim stands for it"
    );
    state.remove(Kind::NodeClaim, &claim("x", launched));
    assert_eq!(asked(&state.snapshot()).problem.nodes.len(), 0);
}

#[test]
fn core_329_a_node_that_gains_a_provider_id_is_one_node() {
    let mut state = ClusterState::default();
    let launched = json!({"status": {"providerID": "sim://n1", "allocatable": {"cpu": "4"}}});
    state.apply(Kind::NodeClaim, &claim("c1", launched));
    state.apply(
        Kind::Node,
        &node("n1", 1, json!({"spec": {"providerID": ""}})),
    );
    assert!(state.snapshot().nodes_with_id("sim://n1").next().is_none());
    state.apply(Kind::Node, &node("n1", 2, json!({})));
    assert_eq!(asked(&state.snapshot()).problem.nodes.len(), 1);
    assert_eq!(state.snapshot().nodes_with_id("sim://n1").count(), 1);
}

#[test]
fn core_332_taints_of_a_booting_node_are_hidden_until_it_is_up() {
    let mut state = ClusterState::default();
    let startup = json!({"spec": {"startupTaints": [{"key": "boot", "effect": "NoSchedule"}]},
        "status": {"providerID": "sim://n1"}});
    state.apply(Kind::NodeClaim, &claim("c1", startup));
    let taints = json!([{"key": "boot", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "own", "effect": "NoSchedule"}]);
    let booting = json!({"metadata": {"labels": {"karpenter.sh/registered": "true"}},
        "spec": {"taints": taints}});
    state.apply(Kind::Node, &node("n1", 1, booting.clone()));
    let shown = |state: &ClusterState| {
        let problem = asked(&state.snapshot()).problem;
        let taints = problem.nodes[0].taints.iter();
        taints.map(|own| own.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&state), ["own"]);
    let mut up = booting;
    merge(
        &mut up,
        json!({"metadata": {"labels": {"karpenter.sh/initialized": "true"}}}),
    );
    state.apply(Kind::Node, &node("n1", 2, up));
    assert_eq!(shown(&state).len(), 3);
}

#[test]
fn core_172_default_spread_constraints_follow_services_and_owners() {
    let text = "podTopologySpread: {defaultConstraints: [{maxSkew: 1, \
        topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]}";
    let defaults = crate::SpreadDefaults::parse("scheduler.yaml", text).unwrap();
    let mut state = ClusterState::default().with_spread_defaults(Arc::new(defaults));
    state.apply(Kind::NodePool, &pool());
    let set = |version: u64, replicas: u64| {
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-web",
            "resourceVersion": version.to_string()},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}}})
    };
    let service = |version: u64, selector: Value| {
        json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "front", "namespace": "default", "uid": "uid-front",
            "resourceVersion": version.to_string()},
        "spec": {"selector": selector}})
    };
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
        "uid": "uid-web", "controller": true}]);
    let meta = json!({"metadata": {"labels": {"app": "web"}, "ownerReferences": owner}});
    state.apply(Kind::Pod, &pod("a", 1, meta));
    let keys = |state: &ClusterState| -> Vec<String> {
        let problem = asked(&state.snapshot()).problem;
        let spreads = &problem.shapes[problem.pods[0].shape.0 as usize].spreads;
        let selectors = spreads.iter().filter_map(|own| own.selector.as_ref());
        let exprs = selectors.flat_map(|own| own.exprs());
        exprs.map(|expr| expr.key.to_string()).collect()
    };
    assert!(keys(&state).is_empty(), "nobody is known to select it");
    state.apply(Kind::ReplicaSet, &set(2, 1));
    assert_eq!(keys(&state), ["app"]);
    state.apply(Kind::Service, &service(3, json!({"app": "web"})));
    assert_eq!(keys(&state), ["app"]);
    state.apply(Kind::Service, &service(4, json!({})));
    assert_eq!(keys(&state), ["app"]);
    // A revision of the past has no pods, and is not kept.
    state.apply(Kind::ReplicaSet, &set(5, 0));
    assert!(keys(&state).is_empty());
    state.apply(Kind::Service, &service(6, json!({"app": "web"})));
    assert_eq!(keys(&state), ["app"]);
    state.remove(Kind::Service, &service(7, json!({})));
    assert!(keys(&state).is_empty());
}

#[test]
fn what_selects_pods_is_kept_only_for_default_spread_constraints() {
    let mut state = ClusterState::default();
    let set = json!({"metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}}});
    state.apply(Kind::ReplicaSet, &set);
    assert!(state.snapshot().choices.is_empty());
    assert!(
        state
            .snapshot()
            .scalable(Kind::ReplicaSet, "default/web")
            .is_some()
    );
}
