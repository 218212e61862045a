//! Registration hooks: a node that has joined is not open for pods before the cloud says so.

use std::time::Duration;

use joiner_cloud_sim::{Faults, HeldRegistration, Settings as CloudSettings};
use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{CLAIMS, NODES, PODS, Setup, Stage, condition, n_running, since};

const RACK: &str = "example.com/rack";
const HELD: &str = "Unknown RegistrationHookPending";

fn held_for(hold_seconds: u64) -> Faults {
    let registration = HeldRegistration {
        hold_seconds,
        labels: [(RACK.to_owned(), "r1".to_owned())].into(),
    };
    Faults {
        registration: Some(registration),
        ..Faults::default()
    }
}

fn held(hold_seconds: u64, speed: u32) -> Setup {
    let cloud = CloudSettings {
        faults: held_for(hold_seconds),
        ..CloudSettings::default()
    };
    Setup {
        cloud,
        ..Setup::default().speed(speed)
    }
}

fn message(claim: &Value) -> &str {
    let conditions = claim["status"]["conditions"].as_array().unwrap();
    let own = conditions.iter().find(|own| own["type"] == "Registered");
    own.unwrap()["message"].as_str().unwrap()
}

fn is_closed(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array();
    let mut taints = taints.into_iter().flatten();
    taints.any(|own| own["key"] == "karpenter.sh/unregistered" && own["effect"] == "NoExecute")
}

fn labels(object: &Value) -> &Value {
    &object["metadata"]["labels"]
}

/// The only claim and the only node, once the node is held.
async fn held_node(stage: &Stage) -> (Value, Value) {
    stage
        .until("the node is held", 60, async |stage| {
            let claims = stage.list(CLAIMS).await;
            claims.len() == 1 && condition(&claims[0], "Registered") == HELD
        })
        .await;
    let claim = stage.list(CLAIMS).await.pop().unwrap();
    (claim, stage.list(NODES).await.pop().unwrap())
}

on_both!(
    core_221_a_node_is_open_when_its_hooks_are_ready,
    held(240, 4)
);
async fn core_221_a_node_is_open_when_its_hooks_are_ready(stage: &mut Stage) {
    stage.deployment("web", 3, "500m", json!({})).await;
    stage.pool_for(3, "general", json!({})).await;
    let (claim, node) = held_node(stage).await;
    assert_eq!(message(&claim), "simulated-hold");
    assert_eq!(labels(&claim)[RACK], Value::Null);
    // All of the claim is there, but for the sign that it is open.
    assert_eq!(
        node["metadata"]["finalizers"][0],
        "karpenter.sh/termination"
    );
    let owner = &node["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(owner, &claim["metadata"]["uid"]);
    let zone = "topology.kubernetes.io/zone";
    assert_eq!(labels(&node)[zone], labels(&claim)[zone]);
    let is_held = async |stage: &Stage| {
        let (claims, nodes) = (stage.list(CLAIMS).await, stage.list(NODES).await);
        claims.len() == 1
            && condition(&claims[0], "Registered") == HELD
            && nodes.len() == 1
            && is_closed(&nodes[0])
            && labels(&nodes[0])["karpenter.sh/registered"].is_null()
            && n_running(&stage.list(PODS).await) == 0
    };
    stage.stays("it is held", 15, is_held).await;
    // A new process knows no better.
    stage.restart().await;
    stage.stays("it is held after a restart", 15, is_held).await;
    stage.all_run(3, 400).await;
    let claim = stage.ready_claim().await;
    let node = stage.list(NODES).await.pop().unwrap();
    assert!(!is_closed(&node));
    assert_eq!(labels(&node)["karpenter.sh/registered"], "true");
    assert_eq!(labels(&node)[RACK], "r1");
    assert_eq!(labels(&claim)[RACK], "r1");
    stage.settles(1, 10).await;
}

on_both!(
    core_221_a_node_that_is_held_too_long_is_replaced,
    held(86_400, 100)
);
async fn core_221_a_node_that_is_held_too_long_is_replaced(stage: &Stage) {
    stage.pool("general", json!({})).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    let (claim, _) = held_node(stage).await;
    let until = since(&claim, "Registered") + Duration::from_secs(300);
    stage
        .stays_until("it is waited for", until, async |stage| {
            let claims = stage.list(CLAIMS).await;
            claims.len() == 1 && claims[0]["metadata"]["uid"] == claim["metadata"]["uid"]
        })
        .await;
    // It had our finalizer: nothing of it is left behind all the same.
    stage.gone(&claim, 1_200).await;
    // The next one is held, too, and nobody asks again before its time is over.
    stage.cloud().set_faults(Faults::default());
    stage.all_run(1, 1_200).await;
    stage.settles(1, 60).await;
}
