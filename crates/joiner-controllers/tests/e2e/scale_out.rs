//! Pods come, nodes follow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use joiner_controllers::settings::SpreadDefaults;
use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{
    CLAIMS, DAEMON_SETS, NODES, PODS, STATEFUL_SETS, STORAGE, Setup, Stage, condition,
};

const ZONE: &str = "topology.kubernetes.io/zone";
const POOL: &str = "karpenter.sh/nodepool";

/// Where the pods of every app run: labels of their nodes, and the nodes' names.
struct Places(BTreeMap<String, Vec<Value>>);

impl Places {
    async fn of(stage: &Stage) -> Self {
        let nodes = stage.list(NODES).await.into_iter();
        let by_name: BTreeMap<String, Value> = nodes
            .map(|own| (own["metadata"]["name"].to_string(), own))
            .collect();
        let mut places: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for pod in stage.list(PODS).await {
            let app = pod["metadata"]["labels"]["app"].as_str().unwrap();
            let node = &by_name[&pod["spec"]["nodeName"].to_string()];
            let own = places.entry(app.to_owned()).or_default();
            own.push(node["metadata"].clone());
        }
        Self(places)
    }

    /// How many pods of an app run under each value of a label.
    fn by(&self, app: &str, key: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for node in &self.0[app] {
            let value = node["labels"][key].as_str().unwrap_or_default();
            *counts.entry(value.to_owned()).or_insert(0) += 1;
        }
        counts
    }
}

fn spread(app: &str, key: &str, skew: u32) -> Value {
    json!({"topologySpreadConstraints": [{"maxSkew": skew, "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": app}}}]})
}

fn apart(app: &str) -> Value {
    json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": app}}}]}}})
}

/// Everything that was planned is there, and nothing else.
async fn is_as_planned(stage: &Stage) {
    stage
        .until("everything that was planned is there", 60, async |stage| {
            stage.agrees().await == stage.n_planned()
        })
        .await;
}

/// So many pods run in each of the four zones. A real scheduler may fill those first that join first: then
/// it is in our hands only that there are nodes in all of them.
async fn is_even(stage: &Stage, zones: &BTreeMap<String, usize>, n: usize) {
    if !stage.is_real() {
        assert_eq!(zones.values().collect::<Vec<_>>(), [&n; 4], "{zones:?}");
    }
    let nodes = stage.list(NODES).await;
    let bought = nodes.iter().map(|own| &own["metadata"]["labels"][ZONE]);
    let bought: BTreeSet<String> = bought.map(ToString::to_string).collect();
    assert_eq!(bought.len(), 4, "{bought:?}");
}

on_both!(always one_pod, Setup::adaptive());
async fn one_pod(stage: &Stage) {
    stage.pool("general", json!({})).await;
    stage.deployment("web", 1, "1", json!({})).await;
    stage.all_run(1, 60).await;
    assert_eq!(stage.agrees().await, 1);
    is_as_planned(stage).await;
    let claim = stage.ready_claim().await;
    let node = &stage.list(NODES).await[0];
    assert_eq!(node["metadata"]["labels"][POOL], "general");
    assert_eq!(
        node["metadata"]["labels"]["karpenter.sh/initialized"],
        "true"
    );
    assert_eq!(
        node["metadata"]["ownerReferences"],
        json!([{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "name": claim["metadata"]["name"], "uid": claim["metadata"]["uid"],
            "blockOwnerDeletion": true}])
    );
}

on_both!(always a_hundred_pods_with_rules, Setup::adaptive());
async fn a_hundred_pods_with_rules(stage: &Stage) {
    stage.pool("general", json!({})).await;
    let arm = json!({"spec": {"weight": 10, "template": {"spec": {"requirements": [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}}}});
    stage.pool("arm", arm).await;
    let zones = spread("spread", ZONE, 1);
    stage.deployment("spread", 40, "500m", zones).await;
    stage.deployment("apart", 10, "250m", apart("apart")).await;
    let selected = json!({"nodeSelector": {"kubernetes.io/arch": "amd64"}});
    stage.deployment("selected", 50, "300m", selected).await;
    stage.all_run(100, 180).await;
    is_as_planned(stage).await;
    let places = Places::of(stage).await;
    is_even(stage, &places.by("spread", ZONE), 10).await;
    assert_eq!(places.by("apart", "kubernetes.io/hostname").len(), 10);
    let archs = places.by("selected", "kubernetes.io/arch");
    assert_eq!(archs, BTreeMap::from([("amd64".to_owned(), 50)]));
}

on_both!(a_thousand_pods, Setup::adaptive());
async fn a_thousand_pods(stage: &Stage) {
    stage.pool("general", json!({})).await;
    stage.deployment("plain", 600, "500m", json!({})).await;
    let zones = spread("zones", ZONE, 1);
    stage.deployment("zones", 300, "1", zones).await;
    let hosts = spread("hosts", "kubernetes.io/hostname", 10);
    stage.deployment("hosts", 90, "250m", hosts).await;
    stage.deployment("apart", 10, "250m", apart("apart")).await;
    stage.all_run(1_000, 300).await;
    is_as_planned(stage).await;
    let places = Places::of(stage).await;
    is_even(stage, &places.by("zones", ZONE), 75).await;
    let hosts = places.by("hosts", "kubernetes.io/hostname");
    let (most, fewest) = (hosts.values().max(), hosts.values().min());
    assert!(most.unwrap() - fewest.unwrap() <= 10, "{hosts:?}");
    assert_eq!(places.by("apart", "kubernetes.io/hostname").len(), 10);
}

on_both!(
    always pods_with_volumes_go_where_their_volumes_can,
    Setup::default().speed(4)
);
async fn pods_with_volumes_go_where_their_volumes_can(stage: &Stage) {
    stage.pool("general", json!({})).await;
    let class = json!({"metadata": {"name": "zonal"}, "provisioner": "zonal.example.com",
        "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": [{
            "matchLabelExpressions": [{"key": ZONE, "values": ["test-zone-b", "test-zone-c"]}]}]});
    stage.apply(STORAGE, class).await;
    let labels = json!({"app": "stored"});
    let set = json!({"metadata": {"name": "stored", "namespace": "default"}, "spec": {
        "replicas": 6, "serviceName": "stored", "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "pause",
                "volumeMounts": [{"name": "own", "mountPath": "/own"}],
                "resources": {"requests": {"cpu": "1"}}}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "own"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "zonal",
            "resources": {"requests": {"storage": "1Gi"}}}}]}});
    stage.apply(STATEFUL_SETS, set).await;
    stage.all_run(6, 120).await;
    is_as_planned(stage).await;
    let zones = Places::of(stage).await.by("stored", ZONE);
    let allowed = |zone: &String| ["test-zone-b", "test-zone-c"].contains(&zone.as_str());
    assert!(zones.keys().all(allowed), "{zones:?}");
    // The volumes are where they are: so is whatever replaces the nodes.
    for claim in stage.list(CLAIMS).await {
        let name = claim["metadata"]["name"].as_str().unwrap();
        stage.delete(CLAIMS, name).await;
        stage.gone(&claim, 120).await;
    }
    stage.all_run(6, 120).await;
    assert_eq!(Places::of(stage).await.by("stored", ZONE), zones);
}

on_both!(twice daemons_have_their_place_on_every_node);
async fn daemons_have_their_place_on_every_node(stage: &Stage) {
    stage.pool("general", json!({})).await;
    let labels = json!({"app": "agent"});
    let set = json!({"metadata": {"name": "agent", "namespace": "default"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "pause",
                "resources": {"requests": {"cpu": "700m"}}}]}}}});
    stage.apply(DAEMON_SETS, set).await;
    stage.deployment("apart", 3, "800m", apart("apart")).await;
    stage.all_run(6, 60).await;
    is_as_planned(stage).await;
    let places = Places::of(stage).await;
    assert_eq!(places.by("agent", "kubernetes.io/hostname").len(), 3);
    assert_eq!(places.by("apart", "kubernetes.io/hostname").len(), 3);
}

on_both!(twice weights_limits_and_taints_of_pools_count);
async fn weights_limits_and_taints_of_pools_count(stage: &Stage) {
    let small = json!([{"key": "karpenter.kwok.sh/instance-cpu", "operator": "In",
            "values": ["4"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]);
    let first = json!({"spec": {"weight": 50, "limits": {"cpu": "8"},
        "template": {"spec": {"requirements": small}}}});
    stage.pool("first", first).await;
    let taint = json!({"key": "team", "value": "db", "effect": "NoSchedule"});
    let tainted = json!({"spec": {"weight": 100, "template": {"spec": {"taints": [taint]}}}});
    stage.pool("tainted", tainted).await;
    stage.pool("second", json!({"spec": {"weight": 10}})).await;
    stage.deployment("plain", 12, "1", json!({})).await;
    let db = json!({"tolerations": [{"key": "team", "operator": "Exists"}],
        "nodeSelector": {POOL: "tainted"}});
    stage.deployment("db", 2, "1", db).await;
    stage.all_run(14, 120).await;
    is_as_planned(stage).await;
    let places = Places::of(stage).await;
    let pools = places.by("plain", POOL);
    // Two machines of 4 cores, each with room for 3 pods, are all that the first pool may have; a
    // scheduler that is faster than the second plan may leave a gap.
    assert!((1..=6).contains(&pools["first"]), "{pools:?}");
    assert_eq!(pools["first"] + pools["second"], 12, "{pools:?}");
    let claims = stage.list(CLAIMS).await;
    let first = |own: &&Value| own["metadata"]["labels"][POOL] == "first";
    assert!(claims.iter().filter(first).count() <= 2);
    let pools: BTreeSet<String> = places.by("db", POOL).into_keys().collect();
    assert_eq!(pools, BTreeSet::from(["tainted".to_owned()]));
}

on_both!(
    twice pods_beyond_a_limit_wait_and_are_told,
    Setup::default().speed(4)
);
async fn pods_beyond_a_limit_wait_and_are_told(stage: &Stage) {
    let pool = |limit: &str| json!({"spec": {"limits": {"cpu": limit}}});
    stage.pool("small", pool("4")).await;
    stage.deployment("web", 6, "1", json!({})).await;
    stage.told("FailedScheduling", "limit").await;
    stage
        .until("some run", 60, async |stage| {
            joiner_testkit::stage::n_running(&stage.list(PODS).await) >= 1
        })
        .await;
    stage
        .stays("the limit holds", 5, async |stage| {
            let nodes = stage.list(NODES).await;
            let cpu = |own: &Value| {
                own["status"]["capacity"]["cpu"]
                    .as_str()?
                    .parse::<u32>()
                    .ok()
            };
            nodes.iter().filter_map(cpu).sum::<u32>() <= 4
        })
        .await;
    stage.pool("small", pool("16")).await;
    stage.all_run(6, 120).await;
    stage.agrees().await;
    let claims = stage.list(CLAIMS).await;
    assert!(
        claims
            .iter()
            .all(|own| condition(own, "Launched") == "True Launched")
    );
}

/// With a default spread over zones for pods that say nothing about it. There are four zones, so
/// that a fifth pod is one too many.
fn spreading(when_unsatisfiable: &str) -> Setup {
    let config = json!({"podTopologySpread": {"defaultConstraints": [{"maxSkew": 1, "minDomains": 5,
        "topologyKey": ZONE, "whenUnsatisfiable": when_unsatisfiable}]}});
    let defaults = SpreadDefaults::parse("scheduler.yaml", &config.to_string()).unwrap();
    let mut setup = Setup::default();
    setup.settings.spread_defaults = Some(Arc::new(defaults));
    setup
}

/// Six pods that fill a machine each.
async fn six_pods(stage: &Stage) {
    stage.pool("general", json!({})).await;
    stage.deployment("web", 6, "900m", json!({})).await;
}

/// Zones of claims, and how many each has.
async fn zones(stage: &Stage) -> BTreeMap<String, usize> {
    let mut zones = BTreeMap::new();
    for claim in stage.list(CLAIMS).await {
        let zone = claim["metadata"]["labels"][ZONE].as_str();
        *zones.entry(zone.unwrap_or("?").to_owned()).or_insert(0) += 1;
    }
    zones
}

on_both!(core_111_nodes_have_the_labels_that_their_pool_requires);
async fn core_111_nodes_have_the_labels_that_their_pool_requires(stage: &Stage) {
    let requirements = json!([
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "example.com/team", "operator": "In", "values": ["x"]}]);
    let pool = json!({"spec": {"template": {"spec": {"requirements": requirements}}}});
    stage.pool("general", pool).await;
    let select = json!({"nodeSelector": {"example.com/team": "x"}});
    stage.deployment("web", 1, "500m", select).await;
    stage.all_run(1, 60).await;
    let places = Places::of(stage).await;
    assert_eq!(places.by("web", "example.com/team")["x"], 1);
    assert_eq!(stage.agrees().await, 1);
}

on_both!(
    core_173_default_spreads_that_are_rules,
    spreading("DoNotSchedule")
);
async fn core_173_default_spreads_that_are_rules(stage: &Stage) {
    six_pods(stage).await;
    stage.settles(4, 60).await;
    stage
        .until("one pod runs in each zone", 60, async |stage| {
            joiner_testkit::stage::n_running(&stage.list(PODS).await) == 4
        })
        .await;
    assert_eq!(zones(stage).await.len(), 4);
    stage.told("FailedScheduling", "spread").await;
    stage
        .stays("nothing is bought for the others", 25, async |stage| {
            stage.list(CLAIMS).await.len() == 4
        })
        .await;
}

on_both!(
    core_173_default_spreads_that_are_wishes,
    spreading("ScheduleAnyway")
);
async fn core_173_default_spreads_that_are_wishes(stage: &Stage) {
    six_pods(stage).await;
    stage.all_run(6, 60).await;
    let zones = zones(stage).await;
    assert_eq!(zones.len(), 4, "{zones:?}");
}
