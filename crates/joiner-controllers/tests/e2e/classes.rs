//! EC2NodeClasses: what their selectors come to, and how pools and nodes follow.

use joiner_testkit::on_both;
use joiner_testkit::stage::{
    CLAIMS, CLASSES, EC2_CLASSES, EVENTS, NODES, POOLS, Setup, Stage, condition,
};
use serde_json::{Value, json};

fn quick() -> Setup {
    Setup::default().speed(8)
}

fn dry() -> Setup {
    Setup {
        dry_run: true,
        ..quick()
    }
}

async fn class(stage: &Stage) -> Option<Value> {
    stage.list(EC2_CLASSES).await.into_iter().next()
}

/// Waits until a condition of the class is as given.
async fn says(stage: &Stage, kind: &str, expected: &str) -> Value {
    let what = format!("the class says {kind}={expected}");
    stage
        .until(&what, 60, async |stage| {
            let class = class(stage).await;
            class.is_some_and(|class| condition(&class, kind) == expected)
        })
        .await;
    class(stage).await.unwrap()
}

on_both!(a_class_is_ready_and_its_nodes_are_of_its_family, quick());
async fn a_class_is_ready_and_its_nodes_are_of_its_family(stage: &Stage) {
    let bottlerocket = json!([{"alias": "bottlerocket@v1.49.0"}]);
    stage
        .ec2_pool("general", json!({"amiSelectorTerms": bottlerocket}))
        .await;
    let class = says(stage, "Ready", "True Ready").await;
    let meta = &class["metadata"];
    assert_eq!(meta["finalizers"], json!(["karpenter.k8s.aws/termination"]));
    let status = &class["status"];
    let n = |field: &str| status[field].as_array().unwrap().len();
    assert_eq!((n("subnets"), n("securityGroups"), n("amis")), (6, 1, 5));
    assert!(status["instanceProfile"].is_string(), "{status}");
    let conditions = status["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 8);
    for own in conditions {
        assert_eq!(own["status"], "True", "{own}");
        assert_eq!(own["observedGeneration"], meta["generation"], "{own}");
    }

    stage.deployment("web", 1, "500m", json!({})).await;
    stage.all_run(1, 120).await;
    let node = stage.list(NODES).await.remove(0);
    let info = &node["status"]["nodeInfo"];
    assert_eq!(info["osImage"], "Bottlerocket OS 1.49.0 (aws-k8s-1.36)");
    let arch = &node["metadata"]["labels"]["kubernetes.io/arch"];
    assert_eq!(info["architecture"], *arch);
    let kubelet = info["kubeletVersion"].as_str().unwrap();
    assert!(
        kubelet.starts_with("v1.36.") && kubelet.contains("-eks-"),
        "{kubelet}"
    );
    let claim = stage.ready_claim().await;
    let image = claim["status"]["imageID"].as_str().unwrap();
    let amis = status["amis"].as_array().unwrap();
    let booted = amis.iter().find(|ami| ami["id"] == *image).unwrap();
    assert_eq!(booted["requirements"][0]["values"][0], *arch);
}

on_both!(
    a_class_without_a_cloud_of_its_own_is_ready_by_itself,
    quick()
);
async fn a_class_without_a_cloud_of_its_own_is_ready_by_itself(stage: &Stage) {
    stage.pool("general", json!({})).await;
    let class = stage.list(CLASSES).await.remove(0);
    assert_eq!(condition(&class, "Ready"), "True Ready");
}

on_both!(a_bad_class_says_why_and_so_do_its_pools, quick());
async fn a_bad_class_says_why_and_so_do_its_pools(stage: &Stage) {
    let missing = json!([{"tags": {"karpenter.sh/discovery": "missing"}}]);
    stage
        .ec2_pool("general", json!({"subnetSelectorTerms": missing}))
        .await;
    stage.deployment("web", 1, "500m", json!({})).await;
    says(stage, "SubnetsReady", "False SubnetsNotFound").await;
    let class = says(stage, "Ready", "False UnhealthyDependents").await;
    assert_eq!(class["status"]["subnets"], Value::Null);
    stage
        .until("the pool says why", 60, async |stage| {
            let pool = stage.list(POOLS).await.remove(0);
            let conditions = pool["status"]["conditions"].to_string();
            conditions.contains("no subnet that spec.subnetSelectorTerms match")
        })
        .await;
    let why = stage.autoscaler().shared().world.snapshot().why_no_pool();
    let start = "no NodePool is ready: general (EC2NodeClass default is not ready: SubnetsReady: ";
    assert!(
        why.clone().is_some_and(|why| why.starts_with(start)),
        "{why:?}"
    );
    assert_eq!(
        stage.n_planned(),
        0,
        "nothing is bought for a class that is not known to be good"
    );

    stage.ec2_class(json!({})).await;
    stage.all_run(1, 120).await;
    let class = says(stage, "Ready", "True Ready").await;
    assert_eq!(class["status"]["subnets"].as_array().unwrap().len(), 6);
}

on_both!(a_class_waits_for_its_claims, quick());
async fn a_class_waits_for_its_claims(stage: &Stage) {
    stage.ec2_pool("general", json!({})).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage.all_run(1, 120).await;
    let claim = stage.ready_claim().await;
    stage.delete(EC2_CLASSES, "default").await;
    stage
        .told(
            "WaitingOnNodeClaimTermination",
            claim["metadata"]["name"].as_str().unwrap(),
        )
        .await;
    assert!(class(stage).await.is_some());
    stage.delete(POOLS, "general").await;
    stage
        .delete(CLAIMS, claim["metadata"]["name"].as_str().unwrap())
        .await;
    stage.gone(&claim, 120).await;
    stage
        .until("the class is gone", 60, async |stage| {
            class(stage).await.is_none()
        })
        .await;
}

on_both!(a_dry_run_plans_for_a_class_without_a_status, dry());
async fn a_dry_run_plans_for_a_class_without_a_status(stage: &Stage) {
    stage.ec2_pool("general", json!({})).await;
    stage.deployment("web", 3, "500m", json!({})).await;
    stage
        .until("nodes are planned", 60, async |stage| stage.n_planned() > 0)
        .await;
    let own = class(stage).await.unwrap();
    assert_eq!(own["status"], Value::Null);
    assert_eq!(own["metadata"]["finalizers"], Value::Null);
    let pool = stage.list(POOLS).await.remove(0);
    assert_eq!(pool["status"]["conditions"], Value::Null);
    assert!(
        stage
            .list(EVENTS)
            .await
            .iter()
            .all(|own| own["source"]["component"] != "karpenter")
    );
    // Who says how the class stands knows better, whenever that is.
    let broken = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "NoQuota",
        "message": "the quota is used up", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    stage.patch_status(EC2_CLASSES, "default", broken).await;
    stage
        .until("the reason is known", 60, async |stage| {
            let why = stage.autoscaler().shared().world.snapshot().why_no_pool();
            why.is_some_and(|why| why.contains("the quota is used up"))
        })
        .await;
}

on_both!(a_dry_run_finds_what_is_wrong_with_a_class, dry());
async fn a_dry_run_finds_what_is_wrong_with_a_class(stage: &Stage) {
    let web = json!([{"id": "subnet-web"}]);
    stage
        .ec2_pool("general", json!({"subnetSelectorTerms": web}))
        .await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage
        .until("the reason is known", 60, async |stage| {
            let why = stage.autoscaler().shared().world.snapshot().why_no_pool();
            why.is_some_and(|why| why.contains("SubnetsReady: the simulated account has no subnet"))
        })
        .await;
    assert_eq!(stage.n_planned(), 0);
}

on_both!(a_dry_run_believes_a_status_that_is_there, dry());
async fn a_dry_run_believes_a_status_that_is_there(stage: &Stage) {
    stage.ec2_class(json!({})).await;
    let condition = |status: &str| {
        json!({"conditions": [{"type": "Ready", "status": status, "reason": "NoQuota",
            "message": "somebody knows better", "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    };
    stage
        .patch_status(EC2_CLASSES, "default", condition("False"))
        .await;
    stage.ec2_pool("general", json!({})).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage
        .until("the reason is known", 60, async |stage| {
            let why = stage.autoscaler().shared().world.snapshot().why_no_pool();
            why.is_some_and(|why| why.contains("is not ready: somebody knows better"))
        })
        .await;
    assert_eq!(stage.n_planned(), 0);
    stage
        .patch_status(EC2_CLASSES, "default", condition("True"))
        .await;
    stage
        .until("nodes are planned", 60, async |stage| stage.n_planned() > 0)
        .await;
}
