//! What the state of a large cluster takes, as one line of JSON: bytes for each pod of few shapes, for
//! each pod of a shape of its own, and the time to read one.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use joiner_state::live::{ClusterState, Kind};
use serde_json::{Value, json};

/// The allocator of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PODS: usize = 100_000;
const SHAPES: usize = 20_000;
const NODES: usize = 5_000;
const WORKLOADS: usize = 200;

/// A pod as a cluster has it: two containers, an owner, conditions, and what servers add.
fn pod(n: usize, label: &str) -> Value {
    let workload = n % WORKLOADS;
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("web-{workload}-{n}"), "namespace": "default",
            "uid": format!("6f1c1d0e-0000-4000-8000-{n:012}"), "resourceVersion": n.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": format!("web-{workload}"), "tier": "front", "of": label},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
                "name": format!("web-{workload}"), "uid": format!("owner-{workload}")}]},
        "spec": {"nodeName": format!("node-{}", n % NODES),
            "terminationGracePeriodSeconds": 30, "priority": 0,
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                "effect": "NoExecute", "tolerationSeconds": 300}],
            "containers": [
                {"name": "web", "image": "registry.example/web:1.2.3",
                    "resources": {"requests": {"cpu": format!("{}m", 50 + workload), "memory": "64Mi"},
                        "limits": {"memory": "128Mi"}}},
                {"name": "log", "image": "registry.example/log:1",
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:01Z", "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}]}})
}

/// Resident memory of this process, where the system tells.
fn rss_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    number.unwrap_or(0.0) * 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn each(whole: f64, count: usize) -> f64 {
    (whole / count as f64).round()
}

fn main() {
    // `cargo test` runs benches, too, to see whether they work: figures are not asked for then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let mut figures = BTreeMap::new();
    let mut state = ClusterState::default();
    let before = rss_bytes();
    let mut nanos = 0.0;
    for n in 0..PODS {
        let object = pod(n, "all");
        let started = Instant::now();
        black_box(state.apply(Kind::Pod, &object));
        nanos += started.elapsed().as_secs_f64() * 1e9;
    }
    figures.insert("bytes_per_pod", each(rss_bytes() - before, PODS));
    figures.insert("nanos_to_read_a_pod", each(nanos, PODS));
    let before = rss_bytes();
    for n in PODS..PODS + SHAPES {
        black_box(state.apply(Kind::Pod, &pod(n, &n.to_string())));
    }
    let with_a_shape = each(rss_bytes() - before, SHAPES);
    figures.insert("bytes_per_pod_with_a_shape", with_a_shape);
    black_box(&state);
    #[expect(
        clippy::print_stdout,
        reason = "the figures are for the one who ran this"
    )]
    {
        println!("{}", json!(figures));
    }
}
