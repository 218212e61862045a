//! What would be done for one node after the other is done for all of them at once.

use joiner_disruption::Method;
use joiner_testkit::{HOSTNAME, World, instance_type, pod, pool};

use crate::stage::{LARGE, MEDIUM, Stage, budget, dollars, own, sold};

/// Nodes that are full, and come first in upstream's order: more than one command may be about.
const FULL: usize = 110;
/// Nodes that are too large for the one pod each that may not share a node with the others.
const LOOSE: usize = 12;

fn world() -> World {
    let mut world = World::new()
        .add(sold([0.029, 0.054, 0.108]))
        .add(pool("default"));
    for n in 0..FULL {
        let (pod, name) = (pod(&format!("full-{n:03}")), format!("full-{n:03}"));
        world = world.add(own(&name, LARGE)).add(pod.cpu("7").on(&name));
    }
    for n in 0..LOOSE {
        let name = format!("loose-{n:02}");
        let apart = pod(&name).label("app", "db").cpu("1500m");
        let apart = apart.anti_affinity_to(HOSTNAME, "db");
        world = world.add(own(&name, MEDIUM)).add(apart.on(&name));
    }
    world
}

#[test]
fn many_alike_are_replaced_in_one_command() {
    let mut stage = Stage::of(&world());
    let decision = stage.decide();
    let command = &decision.commands[0];
    assert_eq!(command.method, Method::Multi);
    assert_eq!(
        (command.members.len(), command.plan.launches.len()),
        (LOOSE, LOOSE)
    );
    // No more than eight times what moving costs: for one node at a time that is enough.
    assert_eq!(command.savings(), dollars(0.3));
    assert_eq!(command.move_cost, dollars(0.036));
    stage.verify(command);
    stage.apply(&command.clone());
    assert_eq!(stage.gone(), None);
}

#[test]
fn no_more_than_budgets_allow() {
    let mut stage = Stage::of(&world()).terms(|t| t.budgets = vec![budget("5")]);
    assert_eq!(stage.decide().commands[0].members.len(), 5);
}

#[test]
fn one_at_a_time_as_upstream_does() {
    let mut stage = Stage::of(&world()).settings(|s| *s = s.as_upstream());
    let decision = stage.decide();
    let command = &decision.commands[0];
    assert_eq!(command.method, Method::Single);
    assert_eq!(command.plan.launches.len(), 1);
}

#[test]
fn pods_that_are_mixed_anew_have_to_be_worth_it() {
    // Two nodes of a large and a little pod each would become one for the large, one for the little.
    let mut world = World::new().add(pool("default")).add([
        instance_type("two").cpu("2").memory("8Gi").price(0.05),
        instance_type("large").cpu("8").memory("32Gi").price(0.1),
        instance_type("ten")
            .cpu("10500m")
            .memory("40Gi")
            .price(0.12),
    ]);
    for n in ["n0", "n1"] {
        let (big, little) = (pod(&format!("big-{n}")), pod(&format!("little-{n}")));
        let pods = [big.cpu("5").on(n), little.cpu("800m").on(n)];
        world = world.add(own(n, LARGE)).add(pods);
    }
    assert_eq!(Stage::of(&world).gone(), None);
    let mut easy = Stage::of(&world).settings(|s| s.several_factor = 1);
    assert_eq!(easy.decide().commands[0].savings(), dollars(0.03));
}
