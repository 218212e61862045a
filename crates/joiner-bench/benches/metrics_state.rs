//! What the gauges about nodes and pods cost with 100,000 pods: a look, and writing it out.

use std::cell::LazyCell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::Criterion;
use jiff::Timestamp;
use joiner_controllers::catalogs::Lists;
use joiner_controllers::state_metrics::{FAMILIES, Look, Waits};
use joiner_state::live::{ClusterState, Kind, Snapshot};
use serde_json::json;

const PODS: usize = 100_000;
const PODS_EACH: usize = 10;

fn large() -> Snapshot {
    let mut state = ClusterState::default();
    for ix in 0..PODS / PODS_EACH {
        let name = format!("node-{ix:05}");
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name,
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"karpenter.sh/nodepool": "p",
                "node.kubernetes.io/instance-type": "m-2x", "topology.kubernetes.io/zone": "a",
                "karpenter.sh/capacity-type": "spot", "kubernetes.io/arch": "amd64"}},
            "spec": {"providerID": format!("kwok://{ix}")},
            "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}});
        state.apply(Kind::Node, &node);
    }
    for ix in 0..PODS {
        let name = format!("web-5d4f9c7b6-{ix:05}");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": name,
            "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "r",
                "name": "web-5d4f9c7b6", "controller": true}]},
            "spec": {"nodeName": format!("node-{:05}", ix / PODS_EACH), "containers": [{"name": "c",
                "image": "i", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"},
                    "limits": {"memory": "2Gi"}}}]},
            "status": {"phase": "Running"}});
        state.apply(Kind::Pod, &pod);
    }
    state.snapshot()
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let at = Timestamp::UNIX_EPOCH;
    let now = LazyCell::new(|| Arc::new(large()));
    let look = || Look::new(Arc::clone(&now), &Lists::new(), Waits::default(), at);
    criterion.bench_function("follow waits", |bencher| {
        let now = LazyCell::force(&now);
        let mut waits = Waits::default();
        bencher.iter(|| black_box(waits.follow(now, None, at).len()));
    });
    criterion.bench_function("look", |bencher| bencher.iter(look));
    criterion.bench_function("write all series", |bencher| {
        let look = look();
        bencher.iter(|| {
            let mut n_series = 0_usize;
            for family in FAMILIES {
                look.each(family, &mut |labels, value| {
                    black_box((labels, value));
                    n_series += 1;
                });
            }
            n_series
        });
    });
    criterion.final_summary();
}
