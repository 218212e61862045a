//! Of two processes one acts; the other takes over in seconds.

use crate::run::cluster::Served;
use crate::run::process::Joiner;
use joiner_testkit::stage::{LEASES, NODES};

const LEADS: &str = "\"message\":\"leading\"";

/// An orderly hand-over, and a take-over after a crash.
async fn one_leads_and_the_other_follows_on(cluster: &Served) {
    cluster.pool().await;
    let mut first = Joiner::start(&cluster.kubeconfig, &[]);
    first.says(LEADS).await;
    let mut second = Joiner::start(&cluster.kubeconfig, &[]);
    second.says("starting").await;

    cluster.deployment("web", 10).await;
    cluster.all_run(10, 60).await;
    cluster.agrees().await;
    assert!(!first.told("launched nodeclaim").is_empty());
    assert!(second.told("created nodeclaim").is_empty());
    assert!(second.told("launched nodeclaim").is_empty());
    assert!(!second.said().contains(LEADS), "two lead");
    // The one that waits is as ready as the one that acts: it would be restarted else.
    assert_eq!(second.get("health", "/readyz").await.0, 200);

    let status = first.stop().await;
    assert_eq!(status.code(), Some(0), "{}", first.said());
    let mut warnings = first.lines();
    warnings.retain(|line| line["level"] == "WARN" || line["level"] == "ERROR");
    assert!(warnings.is_empty(), "an orderly end: {warnings:?}");
    // How soon is asked in virtual time.
    second.says(LEADS).await;
    cluster.deployment("web", 20).await;
    cluster.all_run(20, 60).await;
    cluster.agrees().await;

    let mut third = Joiner::start(&cluster.kubeconfig, &[]);
    third.says("starting").await;
    second.kill();
    third.says(LEADS).await;
    let n_nodes = cluster.list(NODES).await.len();
    cluster.deployment("web", 60).await;
    cluster.all_run(60, 60).await;
    assert!(cluster.agrees().await > n_nodes);
    assert_eq!(third.stop().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: takes half a minute; in virtual time, and on the real control plane, it always runs"]
async fn one_leads_and_the_other_follows() {
    one_leads_and_the_other_follows_on(&Served::embedded().await).await;
}

mod real {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_leads_and_the_other_follows() {
        if let Some(cluster) = Served::real().await {
            one_leads_and_the_other_follows_on(&cluster).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_is_upstreams_and_a_dry_run_has_its_own() {
    let cluster = Served::embedded().await;
    let namespaced = |name: &'static str| {
        let leases = cluster.api(LEASES, Some("kube-system"));
        async move { leases.get_opt(name).await.unwrap() }
    };
    let mut dry = Joiner::start(&cluster.kubeconfig, &["--dry-run"]);
    dry.says(LEADS).await;
    assert!(namespaced("karpenter-leader-election").await.is_none());
    let mut real = Joiner::start(&cluster.kubeconfig, &[]);
    real.says(LEADS).await;
    for name in [
        "karpenter-leader-election",
        "karpenter-leader-election-dry-run",
    ] {
        let lease = namespaced(name).await.unwrap();
        let holder = lease.data["spec"]["holderIdentity"].as_str().unwrap();
        assert!(!holder.is_empty(), "{name}");
    }
    assert_eq!(real.stop().await.code(), Some(0));
    let lease = namespaced("karpenter-leader-election").await.unwrap();
    assert_eq!(lease.data["spec"]["holderIdentity"], "");
}
