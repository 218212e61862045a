//! The life of a claim: it is launched, its node joins and is replaced, and nothing is left behind.

use std::time::Duration;

use joiner_cloud_sim::{Delay, Faults, Match, Notice, Quotas, Settings as CloudSettings, Shortage};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{
    CLAIMS, DEPLOYMENTS, EVENTS, NODES, PODS, POOLS, Setup, Stage, condition, n_running, since,
};

/// Drains take seconds; on a real control plane they need not.
fn quick() -> Setup {
    Setup::default().speed(4)
}

fn faulty(faults: Faults, speed: u32) -> Setup {
    let cloud = CloudSettings {
        faults,
        ..CloudSettings::default()
    };
    Setup {
        cloud,
        speed,
        ..Setup::default()
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// One node with three pods.
async fn three_pods(stage: &Stage) -> Value {
    stage.deployment("web", 3, "500m", json!({})).await;
    stage.pool_for(3, "general", json!({})).await;
    stage.all_run(3, 60).await;
    stage.ready_claim().await
}

on_both!(a_deleted_claim_is_drained_and_replaced, quick());
async fn a_deleted_claim_is_drained_and_replaced(stage: &Stage) {
    let old = three_pods(stage).await;
    stage.delete(CLAIMS, name(&old)).await;
    stage.gone(&old, 120).await;
    stage.all_run(3, 60).await;
    stage.settles(1, 60).await;
    stage
        .until("it is told", 60, async |stage| {
            stage.is_told("Evicted", "").await || stage.is_told("Disrupted", "").await
        })
        .await;
}

on_both!(a_deleted_node_takes_its_claim_along, quick());
async fn a_deleted_node_takes_its_claim_along(stage: &Stage) {
    let old = three_pods(stage).await;
    let node = stage.names(NODES).await.pop().unwrap();
    stage.delete(NODES, &node).await;
    stage.gone(&old, 120).await;
    stage.all_run(3, 60).await;
    stage.settles(1, 60).await;
}

on_both!(
    a_replacement_is_bought_before_the_drain_is_over,
    Setup::default()
);
async fn a_replacement_is_bought_before_the_drain_is_over(stage: &Stage) {
    // Its pods take their time to leave.
    let slow = json!({"metadata": {"annotations": {"joiner.dev/stop-seconds": "20"}},
        "spec": {"terminationGracePeriodSeconds": 40}});
    stage.deployment_of("web", 3, "500m", slow).await;
    stage.pool_for(3, "general", json!({})).await;
    stage.all_run(3, 60).await;
    let old = stage.ready_claim().await;
    let id = &old["status"]["providerID"];
    stage.delete(CLAIMS, name(&old)).await;
    stage
        .until("two nodes at the same time", 30, async |stage| {
            let nodes = stage.list(NODES).await;
            nodes.len() == 2 && nodes.iter().any(|own| own["spec"]["providerID"] == *id)
        })
        .await;
    stage.gone(&old, 120).await;
    stage.settles(1, 60).await;
}

on_both!(a_node_with_startup_taints_waits_for_their_owner, quick());
async fn a_node_with_startup_taints_waits_for_their_owner(stage: &Stage) {
    let taint = json!({"key": "example.com/agent", "effect": "NoSchedule"});
    let pool = json!({"spec": {"template": {"spec": {"startupTaints": [taint]}}}});
    stage.pool("general", pool).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage
        .until("the claim waits for the taint", 60, async |stage| {
            let claims = stage.list(CLAIMS).await;
            let own = claims.first();
            own.is_some_and(|own| condition(own, "Initialized") == "Unknown StartupTaintsExist")
        })
        .await;
    stage
        .stays("no second claim", 12, async |stage| {
            stage.list(CLAIMS).await.len() == 1 && n_running(&stage.list(PODS).await) == 0
        })
        .await;
    let node = stage.names(NODES).await.pop().unwrap();
    let none = json!({"spec": {"taints": null}});
    stage.patch(NODES, &node, none).await;
    stage.all_run(1, 60).await;
    stage.ready_claim().await;
    stage.settles(1, 10).await;
}

fn never_joins() -> Setup {
    let faults = Faults {
        never_join_percent: 100.0,
        ..Faults::default()
    };
    faulty(faults, 100)
}

on_both!(twice a_machine_that_never_joins_is_replaced, never_joins());
async fn a_machine_that_never_joins_is_replaced(stage: &Stage) {
    stage.pool("general", json!({})).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage
        .until("a machine is launched", 60, async |stage| {
            let claims = stage.list(CLAIMS).await;
            claims.len() == 1 && condition(&claims[0], "Launched") == "True Launched"
        })
        .await;
    let lost = stage.list(CLAIMS).await.pop().unwrap();
    stage.cloud().set_faults(Faults::default());
    let until = since(&lost, "Registered") + Duration::from_secs(600);
    stage
        .stays_until("it is waited for", until, async |stage| {
            stage.names(CLAIMS).await == [name(&lost)]
        })
        .await;
    stage.gone(&lost, 1_200).await;
    stage.all_run(1, 60).await;
    stage.settles(1, 60).await;
}

const CHEAP: &str = "c-1x-amd64-linux";
const DEAR: &str = "m-2x-amd64-linux";

fn sold_out() -> Setup {
    let of = Match {
        instance_type: Some(CHEAP.to_owned()),
        ..Match::default()
    };
    let faults = Faults {
        shortages: vec![Shortage { of }],
        ..Faults::default()
    };
    faulty(faults, 1)
}

fn only(types: &[&str]) -> Value {
    json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}])
}

on_both!(twice what_is_sold_out_is_replaced_by_something_else, sold_out());
async fn what_is_sold_out_is_replaced_by_something_else(stage: &Stage) {
    let template = json!({"spec": {"requirements": only(&[CHEAP, DEAR])}});
    stage
        .pool("general", json!({"spec": {"template": template}}))
        .await;
    // While the cheap one is believed to be there, the wish for it makes a claim for nothing else.
    let term = json!({"matchExpressions": only(&[CHEAP])});
    let wish = json!({"affinity": {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}}});
    stage.deployment("web", 1, "500m", wish).await;
    stage.told("InsufficientCapacityError", "").await;
    stage.all_run(1, 60).await;
    stage.settles(1, 60).await;
    let claim = stage.ready_claim().await;
    let labels = &claim["metadata"]["labels"];
    assert_eq!(labels["node.kubernetes.io/instance-type"], DEAR);
}

fn no_quota() -> Setup {
    let quotas = Quotas {
        max_instances: Some(0),
        ..Quotas::default()
    };
    let faults = Faults {
        quotas,
        ..Faults::default()
    };
    faulty(faults, 30)
}

on_both!(when_nothing_can_be_had_pods_wait_until_it_can, no_quota());
async fn when_nothing_can_be_had_pods_wait_until_it_can(stage: &Stage) {
    let template = json!({"spec": {"requirements": only(&[CHEAP, DEAR])}});
    stage
        .pool("general", json!({"spec": {"template": template}}))
        .await;
    stage.deployment("web", 2, "500m", json!({})).await;
    stage.told("InsufficientCapacityError", "").await;
    stage.told("FailedScheduling", "").await;
    stage.settles(0, 60).await;
    stage.cloud().set_faults(Faults::default());
    stage.all_run(2, 400).await;
    assert_eq!(stage.agrees().await, stage.list(NODES).await.len());
}

on_both!(a_spot_node_is_replaced_before_it_is_taken, quick());
async fn a_spot_node_is_replaced_before_it_is_taken(stage: &Stage) {
    let spot = json!({"spec": {"template": {"spec": {"requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]}}}});
    stage.deployment("web", 3, "500m", json!({})).await;
    stage.pool_for(3, "spot", spot).await;
    stage.all_run(3, 60).await;
    let old = stage.ready_claim().await;
    let node = old["status"]["nodeName"].as_str().unwrap();
    let notice = stage
        .cloud()
        .interrupt(node, Notice::SpotInterruption)
        .await;
    assert!(notice.unwrap());
    // Long before the two minutes are over.
    stage.gone(&old, 60).await;
    stage.all_run(3, 60).await;
    stage.settles(1, 60).await;
    stage.told("SpotInterrupted", "two minutes").await;
}

fn patient() -> Setup {
    Setup::default().speed(20)
}

on_both!(a_claim_whose_machine_is_lost_goes, patient());
async fn a_claim_whose_machine_is_lost_goes(stage: &Stage) {
    let claim = three_pods(stage).await;
    stage
        .patch(DEPLOYMENTS, "web", json!({"spec": {"replicas": 0}}))
        .await;
    stage.all_run(0, 60).await;
    // A KWOK machine is its Node: somebody takes it away behind our back.
    let node = claim["status"]["nodeName"].as_str().unwrap();
    let bare = json!({"metadata": {"finalizers": null}});
    stage.patch(NODES, node, bare).await;
    stage.delete(NODES, node).await;
    stage.gone(&claim, 300).await;
    stage.settles(0, 60).await;
}

on_both!(a_machine_whose_claim_is_lost_goes, patient());
async fn a_machine_whose_claim_is_lost_goes(stage: &Stage) {
    let claim = three_pods(stage).await;
    let bare = json!({"metadata": {"finalizers": null}});
    stage.patch(CLAIMS, name(&claim), bare).await;
    stage.delete(CLAIMS, name(&claim)).await;
    let bare = json!({"metadata": {"finalizers": null}});
    let api = stage.api(CLAIMS, None);
    // Whoever put the finalizer back was too late, or it is taken off again.
    let _ = api
        .patch(name(&claim), &PatchParams::default(), &Patch::Merge(bare))
        .await;
    stage.gone(&claim, 300).await;
    stage.all_run(3, 120).await;
    stage.settles(1, 60).await;
}

on_both!(a_changed_template_marks_its_nodes_as_drifted, quick());
async fn a_changed_template_marks_its_nodes_as_drifted(stage: &Stage) {
    let tier =
        |value: &str| json!({"spec": {"template": {"metadata": {"labels": {"tier": value}}}}});
    stage.deployment("web", 3, "500m", json!({})).await;
    stage.pool_for(3, "general", tier("gold")).await;
    stage.all_run(3, 60).await;
    let claim = stage.ready_claim().await;
    let drifted = async |stage: &Stage, expected: &str| {
        let claims = stage.list(CLAIMS).await;
        claims.len() == 1 && condition(&claims[0], "Drifted") == expected
    };
    stage.patch(POOLS, "general", tier("silver")).await;
    stage
        .until("it has drifted", 60, async |s| {
            drifted(s, "True NodePoolDrifted").await
        })
        .await;
    stage.patch(POOLS, "general", tier("gold")).await;
    stage
        .until("it has not", 60, async |s| drifted(s, "").await)
        .await;
    assert_eq!(stage.names(CLAIMS).await, [name(&claim)]);
}

fn dry() -> Setup {
    Setup {
        dry_run: true,
        ..Setup::default().speed(8)
    }
}

on_both!(a_dry_run_changes_nothing, dry());
async fn a_dry_run_changes_nothing(stage: &Stage) {
    stage.pool("general", json!({})).await;
    // Nothing has ever written a status.
    let before = versions(stage).await;
    stage.deployment("web", 3, "500m", json!({})).await;
    stage
        .until("nodes are planned", 60, async |stage| stage.n_planned() > 0)
        .await;
    stage
        .stays("nothing changes", 30, async |stage| {
            stage.list(CLAIMS).await.is_empty()
                && stage.list(NODES).await.is_empty()
                && stage.machines().await.is_empty()
        })
        .await;
    assert_eq!(versions(stage).await, before);
    let events = stage.list(EVENTS).await;
    let ours = |own: &&Value| own["source"]["component"] == "karpenter";
    assert_eq!(events.iter().find(ours), None);
}

on_both!(a_dry_run_says_why_no_pool_is_ready, dry());
async fn a_dry_run_says_why_no_pool_is_ready(stage: &Stage) {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "missing"});
    stage
        .pool(
            "general",
            json!({"spec": {"template": {"spec": {"nodeClassRef": class}}}}),
        )
        .await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage
        .until("the reason is known", 60, async |stage| {
            let why = stage.autoscaler().shared().world.snapshot().why_no_pool();
            why.is_some_and(|why| why.contains("general") && why.contains("missing"))
        })
        .await;
    assert_eq!(stage.n_planned(), 0);
}

/// Versions of everything that the autoscaler might write.
async fn versions(stage: &Stage) -> Vec<String> {
    let mut all = Vec::new();
    for what in [POOLS, joiner_testkit::stage::CLASSES, CLAIMS] {
        for own in stage.list(what).await {
            let meta = &own["metadata"];
            all.push(format!("{} {}", meta["name"], meta["resourceVersion"]));
        }
    }
    all
}

fn slow() -> Setup {
    let mut setup = quick();
    setup.cloud.delays.launch = Delay::Constant(Duration::from_secs(1));
    setup.cloud.delays.boot = Delay::Constant(Duration::from_secs(3));
    setup
}

on_both!(always restarts_in_mid_flight_leak_nothing, slow());
async fn restarts_in_mid_flight_leak_nothing(stage: &mut Stage) {
    stage.pool("general", json!({})).await;
    let apart = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "apart"}}}]}}});
    stage.deployment("apart", 12, "500m", apart).await;
    for n in 0..6 {
        let wait = Duration::from_millis(150 * n);
        tokio::time::sleep(wait).await;
        stage.restart().await;
    }
    stage.all_run(12, 120).await;
    stage.settles(12, 60).await;
    // The same on the way down.
    for claim in stage.names(CLAIMS).await.iter().take(6) {
        stage.delete(CLAIMS, claim).await;
    }
    for n in 0..6 {
        tokio::time::sleep(Duration::from_millis(300 * n)).await;
        stage.restart().await;
    }
    stage
        .until("the deleted ones are gone", 180, async |stage| {
            let claims = stage.list(CLAIMS).await;
            let going = |own: &Value| !own["metadata"]["deletionTimestamp"].is_null();
            !claims.iter().any(going)
        })
        .await;
    stage.all_run(12, 120).await;
    stage.settles(12, 120).await;
}
