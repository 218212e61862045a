//! The end of a node, when its pods do not want to leave.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{BUDGETS, CLAIMS, NODES, PODS, POOLS, Setup, Stage, condition};

/// Pods that leave one after the other may be planned for one after the other.
const REPLACED_BY: RangeInclusive<usize> = 1..=2;
const KEEP: &str = "karpenter.sh/do-not-disrupt";

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// True while a claim and its Node are there.
async fn is_there(stage: &Stage, claim: &Value) -> bool {
    let claims = stage.names(CLAIMS).await;
    let nodes = stage.names(NODES).await;
    let node = claim["status"]["nodeName"].as_str().unwrap();
    claims.iter().any(|own| own == name(claim)) && nodes.iter().any(|own| own == node)
}

/// One node with two pods, which have these annotations; `more` is merged into the pool.
async fn two_pods(stage: &Stage, annotations: Value, more: Value) -> Value {
    let template = json!({"metadata": {"annotations": annotations}});
    stage.deployment_of("web", 2, "500m", template).await;
    stage.pool_for(2, "general", more).await;
    stage.all_run(2, 60).await;
    stage.ready_claim().await
}

on_both!(
    always a_budget_holds_up_a_drain_until_it_is_released,
    Setup::default().speed(8)
);
async fn a_budget_holds_up_a_drain_until_it_is_released(stage: &Stage) {
    let claim = two_pods(stage, json!({}), json!({})).await;
    let budget = json!({"metadata": {"name": "web", "namespace": "default"}, "spec":
        {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}});
    stage.apply(BUDGETS, budget).await;
    stage
        .until("the budget counts", 30, async |stage| {
            let budgets = stage.list(BUDGETS).await;
            budgets[0]["status"]["expectedPods"] == 2
        })
        .await;
    stage.delete(CLAIMS, name(&claim)).await;
    let drains = async |stage: &Stage| {
        let (claims, nodes) = (stage.list(CLAIMS).await, stage.list(NODES).await);
        let own = claims.iter().find(|own| name(own) == name(&claim));
        let node = nodes
            .iter()
            .find(|own| own["metadata"]["name"] == claim["status"]["nodeName"]);
        own.is_some_and(|own| condition(own, "Drained") == "Unknown Draining")
            && node.is_some_and(|own| {
                let taints = own["spec"]["taints"].to_string();
                taints.contains("karpenter.sh/disrupted")
            })
    };
    stage.until("it drains", 60, drains).await;
    stage
        .stays("the budget holds", 30, async |stage| {
            drains(stage).await && stage.list(PODS).await.len() == 2
        })
        .await;
    stage.delete(BUDGETS, "web").await;
    stage.gone(&claim, 120).await;
    stage.all_run(2, 60).await;
    stage.settles_within(REPLACED_BY, 60).await;
}

on_both!(a_pod_that_must_not_be_disrupted_has_its_time);
async fn a_pod_that_must_not_be_disrupted_has_its_time(stage: &Stage) {
    let claim = two_pods(stage, json!({KEEP: "45s"}), json!({})).await;
    let pods = stage.list(PODS).await;
    let started = pods.iter().map(|own| {
        let text = own["status"]["startTime"].as_str().unwrap();
        text.parse::<Timestamp>().unwrap()
    });
    let ends = started
        .max()
        .unwrap()
        .checked_add(jiff::SignedDuration::from_secs(45));
    let ends = ends.unwrap();
    let uids: Vec<Value> = pods
        .iter()
        .map(|own| own["metadata"]["uid"].clone())
        .collect();
    stage.delete(CLAIMS, name(&claim)).await;
    let left = ends.duration_since(stage.clock.now()).as_secs() - 2;
    assert!(left > 3, "nothing left to see: {left} s");
    let until = ends - jiff::SignedDuration::from_secs(2);
    stage
        .stays_until("they stay", until, async |stage| {
            let pods = stage.list(PODS).await;
            let there = |uid: &Value| pods.iter().any(|own| own["metadata"]["uid"] == *uid);
            uids.iter().all(there) && is_there(stage, &claim).await
        })
        .await;
    stage.gone(&claim, 90).await;
    stage.all_run(2, 60).await;
    stage.settles_within(REPLACED_BY, 60).await;
}

on_both!(a_grace_period_ends_what_nothing_else_would);
async fn a_grace_period_ends_what_nothing_else_would(stage: &Stage) {
    let pool = json!({"spec": {"template": {"spec": {"terminationGracePeriod": "30s"}}}});
    let claim = two_pods(stage, json!({KEEP: "true"}), pool).await;
    stage.delete(CLAIMS, name(&claim)).await;
    let time = |text: &Value| text.as_str()?.parse::<Timestamp>().ok();
    let mut times = None;
    stage
        .until("it has a deadline", 60, async |stage| {
            let claims = stage.list(CLAIMS).await;
            let own = claims.iter().find(|own| name(own) == name(&claim));
            let meta = &own.unwrap()["metadata"];
            let key = "karpenter.sh/nodeclaim-termination-timestamp";
            let deadline = time(&meta["annotations"][key]);
            times = time(&meta["deletionTimestamp"]).zip(deadline);
            times.is_some()
        })
        .await;
    let (deleted, deadline) = times.unwrap();
    assert_eq!(deadline.duration_since(deleted).as_secs(), 30);
    let until = deleted + jiff::SignedDuration::from_secs(20);
    stage
        .stays_until("it has its grace period", until, async |stage| {
            is_there(stage, &claim).await
        })
        .await;
    stage.gone(&claim, 60).await;
    // The replacement has the same pods, and nobody asks it to go.
    stage.all_run(2, 60).await;
    stage.settles_within(REPLACED_BY, 60).await;
}

on_both!(a_claim_that_is_too_old_is_replaced_once);
async fn a_claim_that_is_too_old_is_replaced_once(stage: &Stage) {
    let age = |age: &str| json!({"spec": {"template": {"spec": {"expireAfter": age}}}});
    let claim = two_pods(stage, json!({}), age("40s")).await;
    // Claims keep what they were made with.
    stage.patch(POOLS, "general", age("Never")).await;
    stage.gone(&claim, 150).await;
    stage.all_run(2, 60).await;
    stage.settles(1, 60).await;
    let replacement = stage.ready_claim().await;
    assert_ne!(name(&replacement), name(&claim));
    assert_eq!(replacement["spec"]["expireAfter"], "Never");
}

on_both!(
    core_121_pods_of_a_claim_that_goes_are_packed_on_one_new_node,
    Setup::default().speed(4)
);
async fn core_121_pods_of_a_claim_that_goes_are_packed_on_one_new_node(stage: &Stage) {
    stage.deployment("web", 3, "500m", json!({})).await;
    stage.pool_for(3, "general", json!({})).await;
    stage.all_run(3, 60).await;
    let old = stage.ready_claim().await;
    stage.delete(CLAIMS, name(&old)).await;
    let others = async |stage: &Stage| -> Vec<Value> {
        let mut claims = stage.list(CLAIMS).await;
        claims.retain(|own| name(own) != name(&old));
        claims
    };
    stage
        .until("one is in flight", 30, async |stage| {
            !others(stage).await.is_empty()
        })
        .await;
    let new = others(stage).await;
    assert_eq!(new.len(), 1, "{new:?}");
    let requests = &new[0]["spec"]["resources"]["requests"];
    assert_eq!(
        (&requests["cpu"], &requests["pods"]),
        (&json!("1500m"), &json!("3"))
    );
    stage.gone(&old, 120).await;
    stage.all_run(3, 60).await;
    stage.settles(1, 60).await;
    assert_eq!(name(&stage.ready_claim().await), name(&new[0]));
}

/// A budget for the pods of an app.
async fn budget(stage: &Stage, name: &str, app: &str, field: &str, value: Value) {
    let spec = json!({field: value, "selector": {"matchLabels": {"app": app}}});
    let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec});
    stage.apply(BUDGETS, object).await;
}

on_both!(
    core_148_nothing_is_bought_for_pods_whose_budget_never_lets_them_go,
    Setup::default().speed(8)
);
async fn core_148_nothing_is_bought_for_pods_whose_budget_never_lets_them_go(stage: &Stage) {
    stage.pool("general", json!({})).await;
    let alone = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}]}}});
    for app in ["none", "percent", "all", "two", "free"] {
        stage.deployment(app, 1, "500m", alone.clone()).await;
    }
    stage.all_run(5, 60).await;
    stage.settles(5, 60).await;
    budget(stage, "none", "none", "maxUnavailable", json!(0)).await;
    budget(stage, "percent", "percent", "maxUnavailable", json!("0%")).await;
    budget(stage, "all", "all", "minAvailable", json!("100%")).await;
    for name in ["two-1", "two-2"] {
        budget(stage, name, "two", "maxUnavailable", json!(1)).await;
    }
    stage
        .until("all budgets count", 30, async |stage| {
            let budgets = stage.list(BUDGETS).await;
            let counts = |own: &Value| own["status"]["expectedPods"] == 1;
            let known = stage.autoscaler().shared().world.snapshot();
            let is_known = known.budgets().count() == 5;
            budgets.len() == 5 && budgets.iter().all(counts) && is_known
        })
        .await;
    let pods = stage.list(PODS).await;
    let free = pods
        .iter()
        .find(|own| own["metadata"]["labels"]["app"] == "free");
    let free = &free.unwrap()["spec"]["nodeName"];
    let claims = stage.list(CLAIMS).await;
    let (free, blocked): (Vec<&Value>, Vec<&Value>) = claims
        .iter()
        .partition(|own| own["status"]["nodeName"] == *free);
    assert_eq!((free.len(), blocked.len()), (1, 4));
    for claim in &blocked {
        stage.delete(CLAIMS, name(claim)).await;
    }
    stage
        .stays("nothing is bought", 40, async |stage| {
            stage.list(CLAIMS).await.len() == 5 && stage.list(PODS).await.len() == 5
        })
        .await;
    stage.delete(CLAIMS, name(free[0])).await;
    stage.gone(free[0], 120).await;
    stage.all_run(5, 60).await;
    let mut now = stage.list(CLAIMS).await;
    now.retain(|own| !claims.iter().any(|old| name(old) == name(own)));
    assert_eq!(now.len(), 1, "what could go was replaced");
}
