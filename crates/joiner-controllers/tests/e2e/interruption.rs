//! Machines that the cloud takes back.

use joiner_cloud_sim::Notice;
use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{CLAIMS, NODES, PODS, Setup, Stage};

on_both!(
    twice pods_of_a_spot_node_are_planned_anew_before_it_is_gone,
    Setup::default()
);
async fn pods_of_a_spot_node_are_planned_anew_before_it_is_gone(stage: &Stage) {
    let spot = json!({"spec": {"template": {"spec": {"requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}}}});
    // Its pods take their time to leave.
    let slow = json!({"metadata": {"annotations": {"joiner.dev/stop-seconds": "20"}},
        "spec": {"terminationGracePeriodSeconds": 40}});
    stage.deployment_of("web", 4, "900m", slow).await;
    stage.pool_for(4, "general", spot).await;
    stage.all_run(4, 60).await;
    let claim = stage.ready_claim().await;
    let node = claim["status"]["nodeName"].as_str().unwrap().to_owned();

    let warned = stage
        .cloud()
        .interrupt(&node, Notice::RebalanceRecommendation);
    assert!(warned.await.unwrap());
    stage.told("SpotRebalanceRecommendation", "soon").await;
    let meta = &stage.ready_claim().await["metadata"];
    assert!(
        meta["deletionTimestamp"].is_null(),
        "a warning ends nothing"
    );

    let noticed = stage.clock.now();
    let taken = stage.cloud().interrupt(&node, Notice::SpotInterruption);
    assert!(taken.await.unwrap());
    let other = |own: &&Value| own["metadata"]["name"] != claim["metadata"]["name"];
    stage
        .until("another is bought", 30, async |stage| {
            let claims = stage.list(CLAIMS).await;
            claims.iter().filter(other).count() == 1
        })
        .await;
    let names = stage.names(NODES).await;
    assert!(names.contains(&node), "the old node is still there");
    stage.gone(&claim, 110).await;
    stage.all_run(4, 60).await;
    for pod in stage.list(PODS).await {
        assert_ne!(pod["spec"]["nodeName"], node.as_str());
    }
    let took = stage.clock.now().duration_since(noticed).as_secs();
    assert!(took < 120, "{took} s: the node was taken with its pods");
    stage.told("SpotInterrupted", "two minutes").await;
    stage
        .told("TerminatingOnInterruption", "another node")
        .await;
    stage.settles(1, 60).await;
    let metrics = stage.autoscaler().shared().metrics.render();
    let counted =
        "karpenter_interruption_received_messages_total{message_type=\"spot_interrupted\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    // What was taken back is not bought again while the cloud is short of it.
    let offering = |own: &Value| {
        let labels = &own["metadata"]["labels"];
        let (ty, zone) = (
            "node.kubernetes.io/instance-type",
            "topology.kubernetes.io/zone",
        );
        (labels[ty].clone(), labels[zone].clone())
    };
    let now = stage.list(CLAIMS).await;
    assert_ne!(offering(&now[0]), offering(&claim));
}
