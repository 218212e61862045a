//! How long it takes the API server to complete and judge a pod.

#![expect(
    clippy::unwrap_used,
    reason = "a pod that is refused should stop the benchmark"
)]

use criterion::{BatchSize, Criterion};
use joiner_machinery::admission::{Context, Nothing, prepare_create};
use joiner_machinery::kinds::{builtin, fields};
use joiner_machinery::{defaults, validate};
use serde_json::json;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let kind = builtin().into_iter().find(|k| k.kind == "Pod").unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "default", "labels": {"app": "web", "tier": "a"}},
        "spec": {
            "containers": [{
                "name": "web", "image": "nginx:1.27",
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                "ports": [{"containerPort": 80}],
            }],
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}},
            }],
            "nodeSelector": {"kubernetes.io/arch": "arm64"},
        },
    });
    let context = Context {
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        uid: "u",
        lookup: &Nothing,
        default_service_account: true,
    };
    criterion.bench_function("pod", |bencher| {
        let complete = |mut pod| {
            fields::decode(&kind, &mut pod).unwrap();
            defaults::apply(&kind, &mut pod);
            prepare_create(&kind, &mut pod, &context).unwrap();
            assert!(validate::create(&kind, &pod).is_empty());
        };
        bencher.iter_batched(|| pod.clone(), complete, BatchSize::SmallInput);
    });
    criterion.final_summary();
}
