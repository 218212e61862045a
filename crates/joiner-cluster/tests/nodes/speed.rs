//! How long steps take on a large cluster: measured, not judged.

use std::time::Instant;

use joiner_cluster::{Action, Controller, Kubelets, NodeLifecycle, Scheduler, Step};
use serde_json::{Value, json};

use crate::world::{NODES, PODS, World, node, pod};

const ALL_PODS: usize = 10_000;
const ALL_NODES: usize = 1_000;

fn large(more: &dyn Fn(usize) -> Value) -> World {
    let mut world = World::new(Vec::new());
    for ix in 0..ALL_NODES {
        let name = format!("n{ix:04}");
        let labels = json!({"metadata": {"labels": {
            "topology.kubernetes.io/zone": format!("z{}", ix % 3),
        }}});
        world.create(NODES, node(&name, labels));
    }
    for ix in 0..ALL_PODS {
        world.create(PODS, pod(&format!("p{ix:05}"), "300m", more(ix)));
    }
    world
}

fn timed(what: &str, world: &World, controller: &mut dyn Controller) -> Step {
    let start = Instant::now();
    let step = controller.step(&world.view());
    println!(
        "{what}: {:?}, {} actions",
        start.elapsed(),
        step.actions.len()
    );
    step
}

fn apply(world: &mut World, step: &Step) {
    for action in &step.actions {
        world.apply(action).unwrap();
    }
}

#[test]
#[ignore = "takes a while; run it with --release and --nocapture"]
fn ten_thousand_pods_on_a_thousand_nodes() {
    let app = |ix: usize| format!("app-{}", ix % 50);
    let plain = |ix: usize| json!({"metadata": {"labels": {"app": app(ix)}}});
    let spread = |ix: usize| {
        let constraint = json!({
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app(ix)}},
        });
        json!({
            "metadata": {"labels": {"app": app(ix)}},
            "spec": {"topologySpreadConstraints": [constraint]},
        })
    };
    let apart = |ix: usize| {
        let term = json!({
            "labelSelector": {"matchLabels": {"app": app(ix)}},
            "topologyKey": "kubernetes.io/hostname",
        });
        let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        json!({
            "metadata": {"labels": {"app": app(ix)}},
            "spec": {"affinity": {"podAntiAffinity": terms}},
        })
    };
    let huge = |_: usize| json!({"spec": {"overhead": {"cpu": "9"}}});
    let families: [(&str, &dyn Fn(usize) -> Value); 4] = [
        ("plain", &plain),
        ("spread", &spread),
        ("apart", &apart),
        ("hopeless", &huge),
    ];
    for (name, more) in families {
        let mut world = large(more);
        let (mut scheduler, mut kubelets) = (Scheduler::default(), Kubelets::default());
        let mut lifecycle = NodeLifecycle::default();
        let first = timed(&format!("{name}: schedule all"), &world, &mut scheduler);
        let bound = first
            .actions
            .iter()
            .filter(|one| matches!(one, Action::Bind { .. }))
            .count();
        println!("{name}: {bound} bound");
        apply(&mut world, &first);
        timed(&format!("{name}: schedule none"), &world, &mut scheduler);
        timed(&format!("{name}: schedule idle"), &world, &mut scheduler);
        for round in 0..3 {
            let step = timed(&format!("{name}: kubelets {round}"), &world, &mut kubelets);
            apply(&mut world, &step);
            world.now += jiff::SignedDuration::from_secs(1);
        }
        for round in ["settled", "idle"] {
            timed(&format!("{name}: kubelets {round}"), &world, &mut kubelets);
        }
        timed(&format!("{name}: lifecycle first"), &world, &mut lifecycle);
        timed(&format!("{name}: lifecycle idle"), &world, &mut lifecycle);
        timed(&format!("{name}: schedule settled"), &world, &mut scheduler);
        world.create(PODS, pod("one-more", "100m", json!({})));
        timed(
            &format!("{name}: schedule one more"),
            &world,
            &mut scheduler,
        );
    }
}
