//! How long it takes to complete and judge a pod. Printed, and bounded so loosely that only a change
//! of order is caught: figures of a debug build on a busy machine say no more.

use std::time::{Duration, Instant};

use joiner_machinery::admission::{Context, Nothing, prepare_create};
use joiner_machinery::kinds::{builtin, fields};
use joiner_machinery::{defaults, validate};
use serde_json::json;

#[test]
fn a_pod_takes_microseconds() {
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
    // The best of some runs: others use the machine, too.
    let rounds: u32 = 400;
    let mut each = Duration::MAX;
    for _ in 0..5 {
        let copies: Vec<_> = (0..rounds).map(|_| pod.clone()).collect();
        let start = Instant::now();
        for mut copy in copies {
            fields::decode(&kind, &mut copy).unwrap();
            defaults::apply(&kind, &mut copy);
            prepare_create(&kind, &mut copy, &context).unwrap();
            assert!(validate::create(&kind, &copy).is_empty());
        }
        each = each.min(start.elapsed() / rounds);
    }
    println!("{} ns a pod", each.as_nanos());
    assert!(each.as_micros() < 2000, "{} µs a pod", each.as_micros());
}
