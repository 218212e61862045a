//! How long steps of the workload controllers take on a cluster with 10,000 pods: at first, at rest, and
//! when one pod has changed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a world that cannot be made should stop the benchmark, which prints figures"
)]

use std::time::{Duration, Instant};

use joiner_cluster::{
    Action, Controller, CronJobs, DaemonSets, Deployments, DisruptionBudgets, GarbageCollector,
    Jobs, Namespaces, ReplicaSets, StatefulSets,
};
use serde_json::json;

#[path = "../../joiner-cluster/tests/scenarios/controllers/world.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod world;

use world::{BUDGETS, DEPLOYMENTS, NAMESPACES, PODS, World};

fn main() {
    for (apps, replicas) in [(100, 100), (1, 10_000)] {
        measure(apps, replicas);
    }
}

fn measure(apps: usize, replicas: usize) {
    let mut world = World::new(vec![
        Box::<Deployments>::default(),
        Box::<ReplicaSets>::default(),
        Box::<DisruptionBudgets>::default(),
    ]);
    world.create(
        NAMESPACES,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}),
    );
    for n in 0..apps {
        let app = format!("app-{n}");
        world.create(DEPLOYMENTS, json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": {
                "metadata": {"labels": {"app": app}},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
            }},
        }));
        world.create(
            BUDGETS,
            json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
            }),
        );
    }
    world.settle();
    let mut controllers: Vec<Box<dyn Controller>> = vec![
        Box::<Deployments>::default(),
        Box::<ReplicaSets>::default(),
        Box::<StatefulSets>::default(),
        Box::<DaemonSets>::default(),
        Box::<Jobs>::default(),
        Box::<CronJobs>::default(),
        Box::<DisruptionBudgets>::default(),
        Box::<GarbageCollector>::default(),
        Box::new(Namespaces::new("PEM")),
    ];
    let pods = world.names(PODS);
    println!("{apps} deployments of {replicas} pods: first look, at rest, one pod changed");
    for controller in &mut controllers {
        let mut time = |world: &World| {
            let start = Instant::now();
            for action in controller.step(&world.view()).actions {
                assert!(!matches!(action, Action::Delete { .. }), "{action:?}");
            }
            start.elapsed()
        };
        let first = time(&world);
        let rest = time(&world).min(time(&world));
        let mut changed = Duration::MAX;
        for name in pods.iter().take(5) {
            world.patch(PODS, name, json!({"metadata": {"annotations": {"a": "b"}}}));
            changed = changed.min(time(&world));
            world.patch(PODS, name, json!({"metadata": {"annotations": null}}));
        }
        println!(
            "{:>28} {first:>12.3?} {rest:>12.3?} {changed:>12.3?}",
            controller.name()
        );
    }
}
