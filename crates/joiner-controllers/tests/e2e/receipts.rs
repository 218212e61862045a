//! Why: pods that wait, nodes that stay, nodes that go, and what is told of them.

use joiner_receipts::why::{self, NoAnswer, NodeAnswer, PodAnswer};
use joiner_receipts::{DecisionQuery, NodeFate, PodFate, UNSCHEDULABLE};
use joiner_runtime::Now;
use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{CLAIMS, DEPLOYMENTS, EVENTS, NODES, PODS, Setup, Stage};

fn eager() -> Value {
    json!({"spec": {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}}})
}

fn pod(stage: &Stage, name: &str) -> Result<PodAnswer, NoAnswer> {
    let shared = stage.autoscaler().shared();
    let snapshot = shared.world.snapshot();
    let time = shared.clock.now();
    let now = Now {
        snapshot: &snapshot,
        time,
    };
    why::pod(name, Some(&now), &|query| {
        let found = shared.decisions.recent(query);
        found.iter().map(|own| own.as_ref().clone()).collect()
    })
}

fn node(stage: &Stage, name: &str) -> Result<NodeAnswer, NoAnswer> {
    let shared = stage.autoscaler().shared();
    let snapshot = shared.world.snapshot();
    let kept = shared.decisions.kept(name).map(|own| own.as_ref().clone());
    let time = shared.clock.now();
    let now = Now {
        snapshot: &snapshot,
        time,
    };
    why::node(name, Some(&now), kept, &|query| {
        let found = shared.decisions.recent(query);
        found.iter().map(|own| own.as_ref().clone()).collect()
    })
}

async fn only_pod(stage: &Stage) -> String {
    let pods = stage.names(PODS).await;
    assert_eq!(pods.len(), 1, "{pods:?}");
    pods[0].clone()
}

fn n_recorded(stage: &Stage, kind: &str) -> usize {
    let query = DecisionQuery {
        kind: Some(kind.to_owned()),
        ..DecisionQuery::default()
    };
    stage.autoscaler().shared().decisions.recent(&query).len()
}

/// Messages of events with a reason about objects of a kind.
async fn told_to(stage: &Stage, kind: &str, reason: &str) -> Vec<String> {
    let events = stage.list(EVENTS).await;
    let own = events
        .iter()
        .filter(|own| own["reason"] == reason && own["involvedObject"]["kind"] == kind);
    own.map(|own| own["message"].as_str().unwrap_or_default().to_owned())
        .collect()
}

on_both!(
    a_pod_that_waits_is_told_what_would_help,
    Setup::default().speed(4)
);
async fn a_pod_that_waits_is_told_what_would_help(stage: &Stage) {
    let taint = json!([{"key": "team", "value": "db", "effect": "NoSchedule"}]);
    let tainted = json!({"spec": {"template": {"spec": {"taints": taint}}}});
    stage.pool("general", tainted).await;
    stage.deployment("web", 1, "1", json!({})).await;
    let hint = "It would help to let the pod tolerate team=db:NoSchedule";
    stage.told("FailedScheduling", hint).await;
    let name = only_pod(stage).await;
    let answer = pod(stage, &name).unwrap();
    let [receipt] = answer.receipts.as_slice() else {
        panic!("{answer:?}");
    };
    let PodFate::Unschedulable { why } = &receipt.fate else {
        panic!("{receipt:?}");
    };
    assert_eq!(why.funnel[0].node_pool, "general");
    let steps = &why.funnel[0].steps;
    assert!(steps[0].offerings_left > 0, "{steps:?}");
    assert_eq!(steps.last().unwrap().offerings_left, 0, "{steps:?}");
    let first = &why.changes[0];
    assert_eq!(first.kind, "AddToleration");
    assert!(first.price_per_hour > 0.0, "{first:?}");
    // The same reason, plan after plan, is written once.
    stage
        .stays("one record", 60, async |stage| {
            n_recorded(stage, UNSCHEDULABLE) == 1
        })
        .await;
    // Doing as told helps.
    let tolerant = json!({"tolerations": [{"key": "team", "value": "db"}]});
    stage.deployment("web", 1, "1", tolerant).await;
    stage.all_run(1, 120).await;
    let new = only_pod(stage).await;
    stage
        .until("it is known, and the old one gone", 60, async |stage| {
            let state = |name: &str| pod(stage, name).ok().and_then(|own| own.state);
            let claim = state(&new).and_then(|own| own.node_claim);
            claim.is_some() && state(&name).is_none()
        })
        .await;
    let answer = pod(stage, &new).unwrap();
    let state = answer.state.unwrap();
    let claims = stage.names(CLAIMS).await;
    assert_eq!(state.node_claim.as_ref(), claims.first());
    let PodFate::NewNode { node } = &answer.receipts.last().unwrap().fate else {
        panic!("{:?}", answer.receipts);
    };
    assert_eq!(Some(&node.machine.node_claim), claims.first());
    let price = node.machine.price_per_hour.unwrap();
    assert!((price - first.price_per_hour).abs() < 1e-9, "{price}");
    assert!(node.next_best.iter().all(|own| own.price_per_hour >= price));
    // The pod that was replaced is gone, and its receipt is not.
    let before = pod(stage, &name).unwrap();
    assert!(before.state.is_none());
    assert!(matches!(
        before.receipts[0].fate,
        PodFate::Unschedulable { .. }
    ));
}

on_both!(
    core_283_what_keeps_a_node_is_told,
    Setup::default().speed(4)
);
async fn core_283_what_keeps_a_node_is_told(stage: &Stage) {
    stage.pool("never", json!({})).await;
    let selected = json!({"nodeSelector": {"karpenter.sh/nodepool": "never"}});
    stage.deployment("web", 1, "1", selected).await;
    stage.all_run(1, 60).await;
    stage
        .told(
            "Unconsolidatable",
            "NodePool \"never\" has consolidation disabled",
        )
        .await;
    let empty = json!({"spec": {"disruption": {"consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]}}});
    stage.pool("empty", empty).await;
    let selected = json!({"nodeSelector": {"karpenter.sh/nodepool": "empty"}});
    stage.deployment("api", 1, "1", selected).await;
    stage.all_run(2, 60).await;
    let words = "NodePool \"empty\" has consolidation policy WhenEmpty, but node is not empty";
    stage.told("Unconsolidatable", words).await;
    // On the Node and on the NodeClaim, and once in a quarter of an hour.
    for kind in ["Node", "NodeClaim"] {
        stage
            .until("both are told", 60, async |stage| {
                told_to(stage, kind, "Unconsolidatable").await.len() >= 2
            })
            .await;
        let told = told_to(stage, kind, "Unconsolidatable").await;
        assert_eq!(told.len(), 2, "{told:?}");
    }
    stage
        .told(
            "DisruptionBlocked",
            "No allowed disruptions for disruption reason Empty",
        )
        .await;
    let names = stage.names(NODES).await;
    let answers = names.iter().map(|name| node(stage, name).unwrap());
    let kept: Vec<String> = answers.map(|own| own.kept.unwrap().because).collect();
    assert!(
        kept.contains(&"ConsolidationDisabled".to_owned()),
        "{kept:?}"
    );
    assert!(kept.contains(&"OnlyWhenEmpty".to_owned()), "{kept:?}");
}

on_both!(
    a_pod_that_says_no_blocks_its_node,
    Setup::default().speed(4)
);
async fn a_pod_that_says_no_blocks_its_node(stage: &Stage) {
    stage.pool("general", eager()).await;
    let keep = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    stage.deployment_of("web", 1, "1", keep).await;
    stage.all_run(1, 60).await;
    // First that pods were told to expect a place there, and then nothing for two minutes.
    let words = "Pod has \"karpenter.sh/do-not-disrupt\" annotation";
    stage
        .until("it is told", 180, async |stage| {
            stage.is_told("DisruptionBlocked", words).await
        })
        .await;
    let name = stage.names(NODES).await.pop().unwrap();
    let answer = node(stage, &name).unwrap();
    let kept = answer.kept.unwrap();
    assert!(kept.blocked);
    assert_eq!(kept.because, "ProtectedPod");
    assert!(
        kept.reason.contains(&only_pod(stage).await),
        "{}",
        kept.reason
    );
    assert!(matches!(answer.receipts[0].fate, NodeFate::Bought { .. }));
    // By the name of its claim, too.
    let claim = answer.node_claim.unwrap();
    assert_eq!(node(stage, &claim).unwrap().node, name);
}

on_both!(a_node_that_went_says_where_its_pods_are, Setup::default());
async fn a_node_that_went_says_where_its_pods_are(stage: &Stage) {
    stage.pool("general", eager()).await;
    stage.deployment("web", 24, "900m", json!({})).await;
    stage.all_run(24, 120).await;
    let before = stage.names(NODES).await;
    let patch = json!({"spec": {"replicas": 5}});
    stage.patch(DEPLOYMENTS, "web", patch).await;
    let moved = |stage: &Stage| {
        before.iter().find_map(|name| {
            let answer = node(stage, name).ok()?;
            let last = answer.receipts.into_iter().next_back()?;
            let NodeFate::Removed {
                details,
                price_before,
                price_after,
                ..
            } = last.fate
            else {
                return None;
            };
            let moved = details.moves.iter().any(|own| own.from == *name);
            moved.then_some((name.clone(), details, price_before?, price_after?))
        })
    };
    stage
        .until("a node goes and its pods move", 300, async |stage| {
            moved(stage).is_some()
        })
        .await;
    let (name, details, price_before, price_after) = moved(stage).unwrap();
    assert!(price_after < price_before);
    let own = details.removed.iter().find(|own| own.node == name).unwrap();
    assert!(own.price_per_hour.is_some_and(|price| price > 0.0));
    stage
        .until("the node is gone", 300, async |stage| {
            let known = node(stage, &name).is_ok_and(|own| own.state.is_some());
            !known && !stage.names(NODES).await.contains(&name)
        })
        .await;
    let gone = node(stage, &name).unwrap();
    assert!(gone.state.is_none() && gone.kept.is_none());
    assert_eq!(gone.node_claim.as_deref(), Some(own.node_claim.as_str()));
    let replacements: Vec<String> = (details.replacements.iter())
        .map(|own| format!("nodeclaim/{}", own.node_claim))
        .collect();
    for own in &details.moves {
        let there = own.to.strip_prefix("node/").map(str::to_owned);
        let is_node = there.is_some_and(|node| before.contains(&node));
        assert!(is_node || replacements.contains(&own.to), "{own:?}");
        let pod = pod(stage, &own.pod).unwrap();
        let fates = pod.receipts.iter().map(|own| &own.fate);
        let moves = fates.filter(|fate| matches!(fate, PodFate::Moved { .. }));
        assert!(moves.count() >= 1, "{pod:?}");
    }
}
