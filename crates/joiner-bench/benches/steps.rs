//! How long steps of scheduler, kubelets and node lifecycle take with 10,000 pods on 1,000 nodes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a world that cannot be made should stop the benchmark"
)]

use std::cell::LazyCell;
use std::time::Duration;

use criterion::{BatchSize, Criterion, SamplingMode};
use joiner_cluster::{Controller, Kubelets, NodeLifecycle, Scheduler, Step};
use serde_json::{Value, json};

#[path = "../../joiner-cluster/tests/scenarios/nodes/world.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod world;

use world::{NODES, PODS, World, node, pod};

const ALL_PODS: usize = 10_000;
const ALL_NODES: usize = 1_000;

/// What is special about a pod.
type More = fn(usize) -> Value;

fn large(more: More) -> World {
    let mut world = World::new(Vec::new());
    for ix in 0..ALL_NODES {
        let labels = json!({"metadata": {"labels": {
            "topology.kubernetes.io/zone": format!("z{}", ix % 3),
        }}});
        world.create(NODES, node(&format!("n{ix:04}"), labels));
    }
    for ix in 0..ALL_PODS {
        world.create(PODS, pod(&format!("p{ix:05}"), "300m", more(ix)));
    }
    world
}

fn app(ix: usize) -> String {
    format!("app-{}", ix % 50)
}

fn plain(ix: usize) -> Value {
    json!({"metadata": {"labels": {"app": app(ix)}}})
}

fn spread(ix: usize) -> Value {
    let constraint = json!({"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": app(ix)}}});
    json!({"metadata": {"labels": {"app": app(ix)}},
        "spec": {"topologySpreadConstraints": [constraint]}})
}

fn apart(ix: usize) -> Value {
    let term = json!({"labelSelector": {"matchLabels": {"app": app(ix)}},
        "topologyKey": "kubernetes.io/hostname"});
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    json!({"metadata": {"labels": {"app": app(ix)}},
        "spec": {"affinity": {"podAntiAffinity": terms}}})
}

fn hopeless(_: usize) -> Value {
    json!({"spec": {"overhead": {"cpu": "9"}}})
}

fn apply(world: &mut World, step: &Step) {
    for action in &step.actions {
        world.apply(action).unwrap();
    }
}

/// Every pod has been scheduled and runs, or cannot be.
fn settled(more: More) -> World {
    let mut world = large(more);
    let step = Scheduler::default().step(&world.view());
    apply(&mut world, &step);
    let mut kubelets = Kubelets::default();
    for _ in 0..3 {
        let step = kubelets.step(&world.view());
        apply(&mut world, &step);
        world.now += jiff::SignedDuration::from_secs(1);
    }
    world
}

/// Ten pods of low rank on every node, and 2,000 of higher rank that want in.
fn crowded() -> World {
    let mut world = World::new(Vec::new());
    let ranked = |name: &str, priority: i64, node: Option<&str>| {
        pod(
            name,
            "400m",
            json!({"spec": {"priority": priority, "nodeName": node}}),
        )
    };
    for ix in 0..ALL_NODES {
        let name = format!("n{ix:04}");
        world.create(NODES, node(&name, json!({})));
        for slot in 0..10 {
            world.create(
                PODS,
                ranked(&format!("low-{ix:04}-{slot}"), -1, Some(&name)),
            );
        }
    }
    for ix in 0..2_000 {
        world.create(PODS, ranked(&format!("high-{ix:04}"), 0, None));
    }
    world
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let families: [(&str, More); 4] = [
        ("plain", plain),
        ("spread", spread),
        ("apart", apart),
        ("hopeless", hopeless),
    ];
    for (name, more) in families {
        let mut group = criterion.benchmark_group(name);
        group.sampling_mode(SamplingMode::Flat);
        let (fresh, done) = (
            LazyCell::new(|| large(more)),
            LazyCell::new(|| settled(more)),
        );
        group.bench_function("schedule all", |bencher| {
            let world = LazyCell::force(&fresh);
            let view = || (Scheduler::default(), world.view());
            bencher.iter_batched(
                view,
                |(mut own, view)| own.step(&view),
                BatchSize::PerIteration,
            );
        });
        group.bench_function("schedule nothing", |bencher| {
            let view = LazyCell::force(&done).view();
            let mut scheduler = Scheduler::default();
            scheduler.step(&view);
            bencher.iter(|| scheduler.step(&view));
        });
        group.bench_function("kubelets idle", |bencher| {
            let view = LazyCell::force(&done).view();
            let mut kubelets = Kubelets::default();
            kubelets.step(&view);
            bencher.iter(|| kubelets.step(&view));
        });
        group.bench_function("lifecycle idle", |bencher| {
            let view = LazyCell::force(&done).view();
            let mut lifecycle = NodeLifecycle::default();
            lifecycle.step(&view);
            bencher.iter(|| lifecycle.step(&view));
        });
        group.finish();
    }
    let world = LazyCell::new(crowded);
    criterion.bench_function("2,000 pods displace as many", |bencher| {
        let world = LazyCell::force(&world);
        let view = || (Scheduler::default(), world.view());
        bencher.iter_batched(
            view,
            |(mut own, view)| own.step(&view),
            BatchSize::PerIteration,
        );
    });
    criterion.final_summary();
}
