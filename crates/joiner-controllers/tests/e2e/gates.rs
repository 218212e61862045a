//! What is not for everybody yet: buffers, overlays, repair of nodes, reservations.

use std::collections::BTreeSet;
use std::time::Duration;

use joiner_cloud_sim::Delay;
use joiner_controllers::settings::FeatureGates;
use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{
    BUFFERS, CLAIMS, NODES, OVERLAYS, PODS, Setup, Stage, TEMPLATES, condition,
};

const TYPE: &str = "node.kubernetes.io/instance-type";
const PAID: &str = "karpenter.sh/capacity-type";

fn setup() -> Setup {
    Setup::gates(FeatureGates {
        node_overlay: true,
        static_capacity: true,
        capacity_buffer: true,
        node_repair: true,
        ..FeatureGates::default()
    })
}

fn repairing() -> Setup {
    setup().speed(60)
}

on_both!(an_unhealthy_node_is_replaced, repairing());
async fn an_unhealthy_node_is_replaced(stage: &Stage) {
    stage.deployment("web", 2, "500m", json!({})).await;
    stage.pool_for(2, "general", json!({})).await;
    stage.all_run(2, 60).await;
    let claim = stage.ready_claim().await;
    let node = claim["status"]["nodeName"].as_str().unwrap();
    // Nobody plays its kubelet any more, and the last thing it says is that it is not well.
    let silent = json!({"metadata": {"annotations": {"joiner.dev/kubelet": "false"}}});
    stage.patch(NODES, node, silent).await;
    let own = stage.api(NODES, None).get(node).await.unwrap();
    let mut conditions = own.data["status"]["conditions"].clone();
    let unwell = stage.clock.now();
    for own in conditions.as_array_mut().unwrap() {
        if own["type"] == "Ready" {
            own["status"] = json!("False");
            own["lastTransitionTime"] = json!(unwell.strftime("%FT%TZ").to_string());
        }
    }
    stage
        .patch_status(NODES, node, json!({"conditions": conditions}))
        .await;
    let until = unwell + Duration::from_secs(300);
    stage
        .stays_until("it may recover", until, async |stage| {
            let claims = stage.list(CLAIMS).await;
            let same = |own: &&Value| own["metadata"]["uid"] == claim["metadata"]["uid"];
            let own = claims.iter().find(same);
            own.is_some_and(|own| own["metadata"]["deletionTimestamp"].is_null())
        })
        .await;
    stage.gone(&claim, 900).await;
    stage
        .until("its pods run elsewhere", 120, async |stage| {
            let pods = stage.list(PODS).await;
            joiner_testkit::stage::n_running(&pods) == 2
        })
        .await;
    // A real cluster may take a minute to notice that pods have lost their node.
    stage.settles(1, 180).await;
}

on_both!(a_node_that_recovers_keeps_no_deadline, repairing());
async fn a_node_that_recovers_keeps_no_deadline(stage: &Stage) {
    stage.pool("general", json!({})).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage.all_run(1, 60).await;
    let claim = stage.ready_claim().await;
    let name = claim["metadata"]["name"].as_str().unwrap();
    // A repair that could not delete the claim has left this behind, and then the node was well again.
    let key = "karpenter.sh/nodeclaim-termination-timestamp";
    let deadline = json!({"metadata": {"annotations": {key: "2026-01-01T00:00:00Z"}}});
    stage.patch(CLAIMS, name, deadline).await;
    let node = claim["status"]["nodeName"].as_str().unwrap();
    let well = json!({"metadata": {"labels": {"example.com/well": "again"}}});
    stage.patch(NODES, node, well).await;
    stage
        .until("the deadline is gone", 60, async |stage| {
            let claim = stage.ready_claim().await;
            claim["metadata"]["annotations"][key].is_null()
        })
        .await;
}

/// More room takes so long that pods take the room there is.
fn slow() -> Setup {
    let mut setup = setup();
    setup.cloud.delays.boot = Delay::Constant(Duration::from_secs(12));
    setup
}

on_both!(twice a_buffer_keeps_room_for_pods_to_come, slow());
async fn a_buffer_keeps_room_for_pods_to_come(stage: &Stage) {
    stage.pool("general", json!({})).await;
    let template = json!({"metadata": {"name": "t", "namespace": "default"}, "template":
        {"spec": {"containers": [{"name": "c", "image": "pause",
            "resources": {"requests": {"cpu": "1"}}}]}}});
    stage.apply(TEMPLATES, template).await;
    let buffer = json!({"metadata": {"name": "room", "namespace": "default"},
        "spec": {"podTemplateRef": {"name": "t"}, "replicas": 3}});
    stage.apply(BUFFERS, buffer).await;
    stage
        .until("there is room", 60, async |stage| {
            let buffers = stage.list(BUFFERS).await;
            let provisioned = condition(&buffers[0], "Provisioning").starts_with("True");
            let nodes = stage.list(NODES).await;
            let cpu = |own: &Value| own["status"]["allocatable"]["cpu"].as_str().map(millis);
            let room = nodes.iter().filter_map(cpu).sum::<u32>() >= 3_000;
            provisioned && room && all_ready(stage).await
        })
        .await;
    let before: BTreeSet<String> = stage.names(NODES).await.into_iter().collect();
    assert!(stage.list(PODS).await.is_empty());
    stage.deployment("web", 3, "900m", json!({})).await;
    stage.all_run(3, 30).await;
    let pods = stage.list(PODS).await;
    let on_it = |own: &&Value| before.contains(own["spec"]["nodeName"].as_str().unwrap());
    assert_eq!(
        pods.iter().filter(on_it).count(),
        3,
        "they did not use the room"
    );
    stage
        .until("there is room again", 60, async |stage| {
            stage.list(NODES).await.len() > before.len() && all_ready(stage).await
        })
        .await;
    stage.delete(BUFFERS, "room").await;
    // What was bought for it up to now may still be on its way.
    stage
        .until("everything is there", 60, async |stage| {
            let known = stage.autoscaler().shared().world.snapshot();
            let gone = stage.list(BUFFERS).await.is_empty() && known.buffers().next().is_none();
            gone && all_ready(stage).await
        })
        .await;
    let n_claims = stage.list(CLAIMS).await.len();
    stage.deployment("web", 4, "900m", json!({})).await;
    stage.all_run(4, 30).await;
    stage
        .stays(
            "nothing is bought for a buffer that is gone",
            15,
            async |stage| stage.list(CLAIMS).await.len() == n_claims,
        )
        .await;
    stage.agrees().await;
}

/// True when every claim is a node that can be used.
async fn all_ready(stage: &Stage) -> bool {
    let claims = stage.list(CLAIMS).await;
    let ready = claims
        .iter()
        .all(|own| condition(own, "Ready") == "True Ready");
    ready && stage.list(NODES).await.len() == claims.len()
}

fn millis(text: &str) -> u32 {
    match text.strip_suffix('m') {
        Some(millis) => millis.parse().unwrap(),
        None => text.parse::<u32>().unwrap() * 1000,
    }
}

/// One type, almost for nothing out of a reservation, or on demand.
fn with_reservation(reserved_capacity: bool) -> Setup {
    let sold = |capacity_type: &str, price: f64| {
        json!({"Price": price, "Requirements": [
            {"key": PAID, "operator": "In", "values": [capacity_type]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]})
    };
    let mut reserved = sold("reserved", 0.0001);
    reserved["ReservationCapacity"] = json!(5);
    let types = json!([{"name": "m-4x", "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": "4", "memory": "16Gi"},
        "offerings": [reserved, sold("on-demand", 0.2)]}]);
    let types = joiner_state::parse_instance_types("types", &types.to_string());
    let mut setup = Setup::gates(FeatureGates {
        static_capacity: true,
        reserved_capacity,
        ..FeatureGates::default()
    });
    setup.cloud.instance_types = Some(types.unwrap());
    setup
}

/// How the nodes of a pool that grows with its pods and of a static one are paid for.
async fn paid(stage: &Stage) -> Vec<(String, String)> {
    let requirements = json!([
        {"key": TYPE, "operator": "In", "values": ["m-4x"]},
        {"key": PAID, "operator": "In", "values": ["reserved", "on-demand"]}]);
    let spec = json!({"template": {"spec": {"requirements": requirements}}});
    stage.pool("dynamic", json!({"spec": spec})).await;
    let mut fixed = json!({"spec": spec});
    fixed["spec"]["replicas"] = json!(1);
    fixed["spec"]["template"]["spec"]["taints"] = json!([{"key": "t", "effect": "NoSchedule"}]);
    stage.pool("fixed", fixed).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage.all_run(1, 60).await;
    stage.settles(2, 60).await;
    stage
        .until("both are ready", 60, async |stage| all_ready(stage).await)
        .await;
    let label = |own: &Value, key: &str| {
        let value = own["metadata"]["labels"][key].as_str();
        value.unwrap_or_default().to_owned()
    };
    let claims = stage.list(CLAIMS).await;
    let claims = claims.iter();
    let mut paid: Vec<_> = claims
        .map(|own| (label(own, "karpenter.sh/nodepool"), label(own, PAID)))
        .collect();
    paid.sort();
    paid
}

fn both(capacity_type: &str) -> Vec<(String, String)> {
    let pools = ["dynamic", "fixed"].into_iter();
    pools
        .map(|pool| (pool.to_owned(), capacity_type.to_owned()))
        .collect()
}

on_both!(reservations_are_used, with_reservation(true));
async fn reservations_are_used(stage: &Stage) {
    assert_eq!(paid(stage).await, both("reserved"));
}

on_both!(
    reservations_are_left_alone_when_their_gate_is_off,
    with_reservation(false)
);
async fn reservations_are_left_alone_when_their_gate_is_off(stage: &Stage) {
    assert_eq!(paid(stage).await, both("on-demand"));
}

on_both!(an_overlay_changes_what_is_bought, setup());
async fn an_overlay_changes_what_is_bought(stage: &Stage) {
    let only = |name: &str| {
        json!({"spec": {"template": {"spec": {"requirements": [
            {"key": TYPE, "operator": "In", "values": [name]}]}}}})
    };
    let (cheap, dear) = ("c-1x-amd64-linux", "m-16x-arm64-linux");
    stage.pool("cheap", only(cheap)).await;
    stage.pool("dear", only(dear)).await;
    let overlay = json!({"metadata": {"name": "sale"}, "spec": {"price": "0.0001",
        "requirements": [{"key": TYPE, "operator": "In", "values": [dear]}]}});
    stage.apply(OVERLAYS, overlay).await;
    stage
        .until("the overlay is in force", 30, async |stage| {
            let overlays = stage.list(OVERLAYS).await;
            condition(&overlays[0], "Ready") == "True Ready"
        })
        .await;
    let apart = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}]}}});
    stage.deployment("web", 1, "500m", apart.clone()).await;
    stage.all_run(1, 60).await;
    let claim = stage.ready_claim().await;
    assert_eq!(claim["metadata"]["labels"][TYPE], dear);
    stage.delete(OVERLAYS, "sale").await;
    stage
        .until("the overlay is forgotten", 60, async |stage| {
            let known = stage.autoscaler().shared().world.snapshot();
            known.overlays().next().is_none()
        })
        .await;
    stage.deployment("other", 1, "500m", apart).await;
    stage.all_run(2, 60).await;
    assert_eq!(stage.agrees().await, 2);
    let claims = stage.list(CLAIMS).await;
    let types = claims.iter().map(|own| &own["metadata"]["labels"][TYPE]);
    let types: BTreeSet<&str> = types.map(|own| own.as_str().unwrap()).collect();
    assert_eq!(types, BTreeSet::from([cheap, dear]));
}
