//! The lines of a node's whole life, as people's scripts read them: upstream's words and upstream's keys.

use serde_json::{Value, json};

use crate::run::cluster::Served;
use crate::run::process::Joiner;
use joiner_testkit::stage::CLAIMS;

/// Messages that runbooks look for, in the order of a life; and which objects each names.
const LIFE: [(&str, &[&str]); 8] = [
    ("created nodeclaim", &["NodePool", "NodeClaim"]),
    ("launched nodeclaim", &["NodeClaim", "NodePool"]),
    ("registered nodeclaim", &["NodeClaim", "Node"]),
    ("initialized nodeclaim", &["NodeClaim", "Node"]),
    ("disrupting node(s)", &[]),
    ("tainted node", &["Node", "NodeClaim"]),
    ("deleted node", &["Node", "NodeClaim"]),
    ("deleted nodeclaim", &["NodeClaim", "Node"]),
];

/// The names of the objects that a line is about.
fn name<'l>(line: &'l Value, kind: &str) -> &'l str {
    let name = line[kind]["name"].as_str();
    name.unwrap_or_else(|| panic!(".{kind}.name is no text: {line}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nodes_life_is_told_in_upstreams_shape() {
    let cluster = Served::embedded().await;
    let quick = json!({"spec": {"disruption": {
        "consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty", "budgets": [{"nodes": "100%"}]}}});
    joiner_testkit::stage::Cluster::pool(&cluster, "general", quick).await;
    let mut joiner = Joiner::start(&cluster.kubeconfig, &["--disable-leader-election"]);
    cluster.deployment("web", 3).await;
    cluster.all_run(3, 60).await;
    joiner.says("initialized nodeclaim").await;
    cluster.deployment("web", 0).await;
    cluster
        .until("the node is gone", 120, async |cluster| {
            cluster.list(CLAIMS).await.is_empty()
        })
        .await;
    joiner.says("\"deleted nodeclaim\"").await;
    let first = &joiner.told("created nodeclaim")[0];
    let claim = name(first, "NodeClaim").to_owned();
    let node = name(&joiner.told("registered nodeclaim")[0], "Node").to_owned();
    for (message, kinds) in LIFE {
        let told = joiner.told(message);
        let line = told
            .first()
            .unwrap_or_else(|| panic!("no {message}: {}", joiner.said()));
        assert_eq!(line["level"], "INFO", "{line}");
        for kind in kinds {
            let expected: &str = match *kind {
                "NodeClaim" => &claim,
                "Node" => &node,
                _ => "general",
            };
            assert_eq!(name(line, kind), expected, "{line}");
        }
    }
    let line = &joiner.told("disrupting node(s)")[0];
    assert_eq!(line["reason"], "empty", "{line}");
    assert_eq!(line["decision"], "delete", "{line}");
    assert_eq!(line["disrupted-node-count"], 1, "{line}");
    assert_eq!(line["replacement-node-count"], 0, "{line}");
    assert!(line["command-id"].is_string(), "{line}");
    let disrupted = &line["disrupted-nodes"][0];
    assert_eq!(name(disrupted, "NodeClaim"), claim, "{line}");
    assert_eq!(name(disrupted, "Node"), node, "{line}");
    assert_eq!(disrupted["capacity-type"], "on-demand", "{line}");
    let found = &joiner.told("found provisionable pod(s)")[0];
    assert!(
        found["Pods"].as_str().unwrap().starts_with("default/web-"),
        "{found}"
    );
    assert_eq!(
        joiner.told("deleted nodeclaim")[0]["provider-id"],
        told_id(&joiner)
    );
    assert_eq!(joiner.stop().await.code(), Some(0));
}

/// The machine that was launched.
fn told_id(joiner: &Joiner) -> Value {
    joiner.told("launched nodeclaim")[0]["provider-id"].clone()
}
