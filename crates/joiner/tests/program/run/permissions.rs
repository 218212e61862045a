//! With exactly the permissions that the chart gives.

use joiner_testkit::control_plane::{Chart, apply_chart, apply_chart_on};

use crate::run::cluster::Served;
use crate::run::process::{Joiner, run_command};
use joiner_testkit::stage::{CLAIMS, NODES, PODS};

const SKIPPED: &str = "skipped: there is no helm; cargo xtask helm";

/// Scales out and in as the chart's account.
async fn the_charts_permissions_are_enough_on(cluster: &Served, chart: &Chart) {
    cluster.pool().await;
    let start = |flags: &[&str]| {
        let mut command = run_command(&chart.kubeconfig, flags);
        command.env("SYSTEM_NAMESPACE", chart.namespace);
        Joiner::spawn(command)
    };
    let gates = "NodeRepair=true,NodeOverlay=true,StaticCapacity=true,CapacityBuffer=true";
    let mut joiner = start(&["--feature-gates", gates]);
    cluster.deployment("web", 20).await;
    cluster.all_run(20, 120).await;
    let n_nodes = cluster.agrees().await;
    joiner.says("initialized nodeclaim").await;
    assert_eq!(joiner.told("launched nodeclaim").len(), n_nodes);

    let mut dry = start(&["--dry-run"]);
    dry.says("\"message\":\"leading\"").await;
    assert_eq!(dry.stop().await.code(), Some(0));

    // Pods that are still there would need a place elsewhere.
    cluster.deployment("web", 0).await;
    cluster.all_run(0, 60).await;
    cluster.delete_all(CLAIMS, None).await;
    cluster
        .until("everything is gone", 120, async |cluster| {
            let gone = cluster.machines().await.is_empty() && cluster.list(CLAIMS).await.is_empty();
            gone && cluster.list(NODES).await.is_empty() && cluster.list(PODS).await.is_empty()
        })
        .await;
    assert_eq!(joiner.stop().await.code(), Some(0));
    for said in [joiner.said(), dry.said()] {
        // Not by the code: a port can have its digits.
        let refused = said.lines().filter(|line| {
            let line = line.to_lowercase();
            line.contains("forbidden") || line.contains("not allowed")
        });
        assert_eq!(refused.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_charts_permissions_are_enough() {
    let cluster = Served::embedded().await;
    let Some(chart) = apply_chart_on(&cluster.kubeconfig, &[]).unwrap() else {
        println!("{SKIPPED}");
        return;
    };
    // The account may do no more than the chart says: what it does is not an administrator's.
    let account = joiner_testkit::stage::client_of(&chart.kubeconfig).await;
    let secrets = http::Request::get("/api/v1/secrets")
        .body(Vec::new())
        .unwrap();
    let refused = account.request_text(secrets).await.unwrap_err().to_string();
    assert!(
        refused.contains("system:serviceaccount:joiner:joiner"),
        "{refused}"
    );
    the_charts_permissions_are_enough_on(&cluster, &chart).await;
    std::fs::remove_file(&chart.kubeconfig).unwrap();
}

mod real {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_charts_permissions_are_enough() {
        let Some(cluster) = Served::real().await else {
            return;
        };
        let Some(chart) = apply_chart(cluster.plane(), &[]).unwrap() else {
            println!("{SKIPPED}");
            return;
        };
        the_charts_permissions_are_enough_on(&cluster, &chart).await;
    }
}
