//! A process that starts on a cluster where nothing waits.

use serde_json::json;

use joiner_testkit::on_both;
use joiner_testkit::stage::{CLAIMS, POOLS, Setup, Stage};

on_both!(
    after_a_restart_nodes_are_replaced_though_nothing_was_bought,
    Setup::default()
);
async fn after_a_restart_nodes_are_replaced_though_nothing_was_bought(stage: &mut Stage) {
    let free = json!({"spec": {"disruption": {"consolidateAfter": "Never",
        "budgets": [{"nodes": "100%"}]}}});
    stage.pool("general", free).await;
    stage.deployment("web", 3, "900m", json!({})).await;
    stage.all_run(3, 60).await;
    let before = stage.names(CLAIMS).await;
    // What is sold was asked for when these were bought, by a process that is no more.
    stage.restart().await;
    let label = json!({"spec": {"template": {"metadata": {"labels": {"example.com/new": "yes"}}}}});
    stage.patch(POOLS, "general", label).await;
    stage
        .until("all nodes are new", 300, async |stage| {
            let names = stage.names(CLAIMS).await;
            !names.is_empty() && names.iter().all(|name| !before.contains(name))
        })
        .await;
    stage.all_run(3, 60).await;
}
