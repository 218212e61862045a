//! What the planner reads once for many snapshots.

use super::*;
use crate::objects::Objects;
use joiner_model::Problem;

fn read(objects: &[Value]) -> Objects {
    let mut read = Objects::trusting();
    for object in objects {
        super::super::reading::accept(&mut read, object).unwrap();
    }
    read
}

/// What a live cluster with one object gives the planner.
fn ground(kind: Kind, object: &Value) -> Arc<Objects> {
    let mut state = ClusterState::default();
    state.apply(kind, object).unwrap();
    state.snapshot().ground()
}

#[test]
fn a_live_pool_is_read_as_in_a_file() {
    let full = json!({"metadata": {"labels": {"own": "label"}}, "spec": {"weight": 7,
        "limits": {"cpu": "1500m", "memory": "2Gi", "example.com/gpu": "3"},
        "template": {"metadata": {"labels": {"team": "web"}}, "spec": {
            "requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"],
                    "minValues": 1},
                {"key": "example.com/size", "operator": "Gt", "values": ["3"]},
                {"key": "example.com/old", "operator": "DoesNotExist"}],
            "taints": [{"key": "busy", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "boot", "value": "yes", "effect": "NoExecute"}]}}}});
    let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False",
        "reason": "R", "message": "why", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let more = [
        json!({}),
        full,
        unready,
        json!({"spec": {"replicas": 3}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        json!({"spec": {"template": {"metadata": {"labels": {"kubernetes.io/hostname": "x"}}}}}),
        json!({"spec": {"template": {"spec": {"requirements": [
            {"key": "example.com/size", "operator": "Gt", "values": ["much"]}]}}}}),
    ];
    for more in more {
        let mut object = pool();
        merge(&mut object, more);
        let live = ground(Kind::NodePool, &object);
        assert_eq!(live.pools.len(), 1, "{object}");
        let expected = read(&[object]);
        assert_eq!(format!("{:?}", live.pools), format!("{:?}", expected.pools));
    }
}

#[test]
fn a_live_overlay_is_read_as_in_a_file() {
    let requirements = json!([{"key": "node.kubernetes.io/instance-type", "operator": "In",
        "values": ["small"]}]);
    let more = [
        json!({"price": "0.5", "weight": 3}),
        json!({"priceAdjustment": "-10%"}),
        json!({"capacity": {"example.com/gpu": "4"}}),
        json!({"capacity": {"cpu": "4"}}),
        json!({"price": "1", "priceAdjustment": "+1"}),
    ];
    for more in more {
        let mut object = json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
            "metadata": {"name": "own", "uid": "u", "resourceVersion": "1"},
            "spec": {"requirements": requirements}});
        merge(&mut object["spec"], more);
        let live = ground(Kind::NodeOverlay, &object);
        let expected = read(&[object]);
        assert_eq!(
            format!("{:?} {:?}", live.overlays, live.warnings),
            format!("{:?} {:?}", expected.overlays, expected.warnings)
        );
    }
}

#[test]
fn only_what_is_ground_makes_it_anew() {
    let mut state = ClusterState::default();
    state.apply(Kind::NodePool, &pool());
    let before = state.snapshot().ground();
    state.apply(Kind::Pod, &pod("a", 1, json!({})));
    state.apply(Kind::Node, &node("n", 1, json!({})));
    let now = state.snapshot();
    assert!(Arc::ptr_eq(&before, &now.ground()));
    let mut other = pool();
    merge(&mut other, json!({"metadata": {"resourceVersion": "2"}}));
    state.apply(Kind::NodePool, &other);
    assert!(!Arc::ptr_eq(&before, &state.snapshot().ground()));
    assert!(Arc::ptr_eq(&before, &now.ground()), "of a snapshot before");
    state.remove(Kind::NodePool, &other);
    assert!(state.snapshot().ground().pools.is_empty());
}

fn problem(now: &Snapshot, catalogs: &BTreeMap<NodeClassRef, Arc<Vec<InstanceType>>>) -> Problem {
    let ask = Ask {
        catalogs,
        policy: Policy::default(),
        now: Timestamp::UNIX_EPOCH,
        planned: &BTreeSet::new(),
        headroom: &[],
    };
    now.problem(&ask).unwrap().problem
}

#[test]
fn a_problem_shares_its_catalog_and_copies_what_overlays_change() {
    let mut state = ClusterState::default();
    state.apply(Kind::NodePool, &pool());
    let (class, small) = catalogs().pop_first().unwrap();
    let mut large = small[0].clone();
    large.name = "large".into();
    large.labels = BTreeMap::from([(keys::INSTANCE_TYPE.into(), vec!["large".into()])]);
    let list = Arc::new(vec![small[0].clone(), large]);
    let catalogs = BTreeMap::from([(class, Arc::clone(&list))]);
    let plain = problem(&state.snapshot(), &catalogs);
    assert_eq!(plain.types.len(), 2);
    for ix in 0..2 {
        assert!(std::ptr::eq(
            &raw const plain.types[ix],
            &raw const list[ix]
        ));
    }
    let overlay = json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
        "metadata": {"name": "own", "uid": "u", "resourceVersion": "1"},
        "spec": {"price": "7", "requirements": [{"key": "node.kubernetes.io/instance-type",
            "operator": "In", "values": ["large"]}]}});
    state.apply(Kind::NodeOverlay, &overlay);
    let changed = problem(&state.snapshot(), &catalogs);
    assert_eq!(changed.types.len(), 3);
    assert!(std::ptr::eq(
        &raw const changed.types[1],
        &raw const list[1]
    ));
    let own: Vec<(&str, u64)> = (changed.pools[0].types.iter())
        .map(|ix| {
            let own = &changed[*ix];
            (&*own.name, own.offerings[0].price.get())
        })
        .collect();
    assert_eq!(own, [("small", 100), ("large", 7_000_000_000)]);
}
