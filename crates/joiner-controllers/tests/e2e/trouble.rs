//! What people get wrong: they are told, and when it is put right everything works.

use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{CLAIMS, CLASSES, NODES, POOLS, Setup, Stage, condition};

/// Who was told that there is nothing for them asks again after seconds; on a real control plane it
/// need not be that long.
fn quick() -> Setup {
    Setup::default().speed(4)
}

/// Waits for a condition of the only pool.
async fn pool_is(stage: &Stage, kind: &str, expected: &str) {
    let text = format!("the pool's {kind} is {expected}");
    stage
        .until(&text, 60, async |stage| {
            let pools = stage.list(POOLS).await;
            condition(&pools[0], kind) == expected
        })
        .await;
}

/// What a pod of an app was told about why it has no place.
async fn failed_scheduling(stage: &Stage, app: &str) -> Option<String> {
    let events = stage.list(joiner_testkit::stage::EVENTS).await;
    let of = |own: &&Value| {
        let pod = own["involvedObject"]["name"].as_str().unwrap_or_default();
        let ours = own["source"]["component"] == "karpenter";
        own["reason"] == "FailedScheduling" && ours && pod.starts_with(app)
    };
    events.iter().find(of).map(|own| own["message"].to_string())
}

on_both!(a_pool_without_its_class_buys_nothing, quick());
async fn a_pool_without_its_class_buys_nothing(stage: &Stage) {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "later"});
    let pool = json!({"spec": {"template": {"spec": {"nodeClassRef": class}}}});
    stage.pool("general", pool).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    pool_is(stage, "NodeClassReady", "False NodeClassNotFound").await;
    pool_is(stage, "Ready", "False UnhealthyDependents").await;
    stage
        .stays("nothing is bought", 5, async |stage| {
            stage.list(CLAIMS).await.is_empty()
        })
        .await;
    stage
        .apply(CLASSES, json!({"metadata": {"name": "later"}}))
        .await;
    pool_is(stage, "Ready", "True Ready").await;
    stage.all_run(1, 60).await;
    stage.settles(1, 30).await;
}

on_both!(a_pool_that_makes_no_sense_says_so, quick());
async fn a_pool_that_makes_no_sense_says_so(stage: &Stage) {
    let requirements = |operator: &str| {
        json!({"spec": {"template": {"spec": {"requirements": [
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.kwok.sh/instance-cpu", "operator": operator, "values": ["4"]}]}}}})
    };
    // No machine has a number of cores that is greater than 4 and less than 4.
    let mut broken = requirements("Gt");
    let all = &mut broken["spec"]["template"]["spec"]["requirements"];
    let lt = json!({"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["4"]});
    all.as_array_mut().unwrap().push(lt);
    stage.pool("general", broken).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage.told("FailedScheduling", "general").await;
    assert!(stage.list(CLAIMS).await.is_empty());
    stage.pool("general", requirements("In")).await;
    stage.all_run(1, 60).await;
    stage.settles(1, 30).await;
}

on_both!(a_pod_that_fits_nowhere_is_told_why, quick());
async fn a_pod_that_fits_nowhere_is_told_why(stage: &Stage) {
    stage.pool("general", json!({})).await;
    stage.deployment("huge", 1, "5000", json!({})).await;
    let selector = |zone: &str| json!({"nodeSelector": {"topology.kubernetes.io/zone": zone}});
    stage
        .deployment("lost", 1, "500m", selector("nowhere"))
        .await;
    for (app, word) in [("huge", "cpu"), ("lost", "zone")] {
        stage
            .until(&format!("{app} is told"), 60, async |stage| {
                let message = failed_scheduling(stage, app).await.unwrap_or_default();
                message.contains(word)
            })
            .await;
    }
    stage
        .stays("nothing is bought for them", 15, async |stage| {
            stage.list(CLAIMS).await.is_empty()
        })
        .await;
    stage.deployment("huge", 1, "2", json!({})).await;
    stage
        .deployment("lost", 1, "500m", selector("test-zone-d"))
        .await;
    stage.all_run(2, 90).await;
    let n_nodes = stage.agrees().await;
    assert!((1..=2).contains(&n_nodes), "{n_nodes} nodes");
    assert_eq!(stage.list(NODES).await.len(), n_nodes);
}

/// The embedded scheduler does not mind claims for devices, so these pods are large enough to need a
/// node of their own.
#[tokio::test(start_paused = true)]
async fn core_206_pods_that_claim_devices_are_told_and_others_get_nodes() {
    let stage = Stage::embedded(quick()).await;
    let container = |name: &str, claims: Value| {
        json!({"name": name, "image": "pause",
            "resources": {"requests": {"cpu": "3"}, "claims": claims}})
    };
    let (none, gpu) = (json!([]), json!([{"name": "gpu"}]));
    let plain = container("c", none);
    let (claims, first) = (container("c", gpu.clone()), container("first", gpu));
    let claim = json!([{"name": "gpu", "resourceClaimName": "one"}]);
    // A wish that would be given up, if anything were tried.
    let wish = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["nowhere"]}]}}]}});
    let refused = [
        ("whole", json!({"containers": [plain]})),
        ("inside", json!({"containers": [claims], "affinity": wish})),
        (
            "before",
            json!({"containers": [plain], "initContainers": [first]}),
        ),
    ];
    for (app, mut spec) in refused.clone() {
        spec["resourceClaims"] = claim.clone();
        stage.deployment(app, 1, "3", spec).await;
    }
    stage.deployment("web", 1, "500m", json!({})).await;
    // All wait by now, and are in the same batch.
    stage.pool("general", json!({})).await;
    let words = "it claims devices (resourceClaims), which is not supported yet";
    for (app, _) in &refused {
        stage
            .until(&format!("{app} is told"), 60, async |stage| {
                let message = failed_scheduling(stage, app).await.unwrap_or_default();
                message.contains(words) && !message.contains("; ")
            })
            .await;
    }
    let runs = async |stage: &Stage| {
        let pods = stage.list(joiner_testkit::stage::PODS).await;
        let up = |own: &&Value| own["status"]["phase"] == "Running";
        let app = |own: &Value| own["metadata"]["labels"]["app"].to_string();
        let up: Vec<String> = pods.iter().filter(up).map(app).collect();
        up == ["\"web\""]
    };
    stage.until("the other pod runs", 60, runs).await;
    stage
        .stays("nothing is bought for devices", 15, async |stage| {
            runs(stage).await && stage.list(CLAIMS).await.len() == 1
        })
        .await;
}
