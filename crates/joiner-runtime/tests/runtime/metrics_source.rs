//! What pods and nodes use, as the embedded control plane tells it.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::time::Duration;

use jiff::Timestamp;
use joiner_model::ResourceName;
use joiner_runtime::Clock;
use joiner_runtime::metrics_source::{
    AggregatedMetrics, DescribedObject, MetricId, MetricsApi, MetricsError, MetricsSource,
};
use joiner_sandbox::{Sandbox, Settings};
use joiner_state::quantity::Quantity;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

const CPU: ResourceName = ResourceName::Cpu;
const MEMORY: ResourceName = ResourceName::Memory;

fn pod(name: &str, cpu: &str) -> Pod {
    let container = |name: &str, cpu: &str| json!({"name": name, "image": "app", "resources": {"requests": {"cpu": cpu}}});
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": name}, "annotations": {
            "joiner.dev/cpu-usage": cpu, "joiner.dev/memory-usage": "512Mi"}},
        "spec": {"containers": [container("app", "300m"), container("sidecar", "100m")]},
    });
    serde_json::from_value(pod).unwrap()
}

fn quantity(text: &str) -> Option<Quantity> {
    Some(Quantity::parse(text).unwrap())
}

#[tokio::test(start_paused = true)]
async fn usage_of_running_pods_and_nodes_is_read() {
    let clock = Clock::new(Timestamp::from_second(1_000_000).unwrap(), 1);
    let sandbox = Sandbox::start(clock.clone(), &Settings::default()).unwrap();
    let source = AggregatedMetrics::new(sandbox.client());
    let pods: Api<Pod> = Api::default_namespaced(sandbox.client());
    for (name, cpu) in [("web", "200m"), ("job", "1")] {
        let how = PostParams::default();
        pods.create(&how, &pod(name, cpu)).await.unwrap();
    }
    clock.sleep(Duration::from_secs(60)).await;

    let both = source.pods(None, "").await.unwrap();
    assert_eq!(both.len(), 2, "{both:?}");
    let web = source.pods(Some("default"), "app=web").await.unwrap();
    assert_eq!(web.len(), 1);
    let web = &web[0];
    assert_eq!((&*web.namespace, &*web.name), ("default", "web"));
    assert_eq!(web.total(&CPU), quantity("200m"));
    assert_eq!(web.of_container("app", &CPU), quantity("150m"));
    assert_eq!(web.of_container("sidecar", &CPU), quantity("50m"));
    assert_eq!(web.total(&MEMORY), quantity("512Mi"));
    assert_eq!(web.taken.window, Some(Duration::from_secs(15)));
    let age = clock.now().duration_since(web.taken.at).as_secs();
    assert!((0..15).contains(&age), "{age} s");
    assert_eq!(source.pods(Some("kube-system"), "").await, Ok(Vec::new()));
    assert_eq!(source.pods(None, "app=other").await, Ok(Vec::new()));

    let nodes = source.nodes("").await.unwrap();
    assert_eq!(nodes.len(), 2);
    let used = nodes.iter().map(|node| node.amounts[&CPU]);
    let used = used.fold(Quantity::ZERO, Quantity::plus);
    // Two pods, and two percent of two nodes of four cores.
    assert_eq!(Some(used), quantity("1360m"));
}

#[tokio::test(start_paused = true)]
async fn the_embedded_control_plane_has_no_custom_metrics() {
    let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
    let sandbox = Sandbox::start(clock, &Settings::default()).unwrap();
    let source = AggregatedMetrics::new(sandbox.client());
    let metric = MetricId {
        name: "qps",
        selector: "",
    };
    let web = DescribedObject {
        group: "",
        resource: "services",
        namespace: "default",
        name: "web",
    };
    let custom = source.object_metric(web, metric).await;
    assert_eq!(custom, Err(MetricsError::NoApi(MetricsApi::Custom)));
    let external = source.external_metric("default", metric).await;
    assert_eq!(external, Err(MetricsError::NoApi(MetricsApi::External)));
}
