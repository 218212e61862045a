//! Upstream behaviors 297 to 303: nodes that differ from what their pool asks for.

use jiff::Timestamp;
use joiner_disruption::{Member, Method, Reason};
use joiner_testkit::{World, deployment, pod, pool};

use crate::stage::{LARGE, MEDIUM, SMALL, Stage, budget, of_pool, own};

/// Drifted since so many seconds after the beginning of time, and not to be consolidated.
fn since(seconds: i64) -> impl FnOnce(&mut Member) {
    move |m| {
        m.drifted = Some(Timestamp::from_second(seconds).expect("a time"));
        m.consolidatable = false;
    }
}

#[test]
fn core_297_replaced_by_what_its_pods_need() {
    let world = World::standard()
        .add(own("n0", LARGE))
        .add(pod("web").replicas(2).cpu("1").on("n0"));
    let mut stage = Stage::of(&world).with("n0", since(1));
    let decision = stage.decide();
    let command = &decision.commands[0];
    assert_eq!(
        (command.method, command.reason),
        (Method::Drift, Reason::Drifted)
    );
    assert_eq!(command.plan.launches.len(), 1);
    assert!(!command.method.waits());
    // Several when no single one will do.
    let world = World::standard()
        .add(own("n0", LARGE))
        .add(pod("a").cpu("1").zone("a").on("n0"))
        .add(pod("b").cpu("1").zone("b").on("n0"));
    let mut stage = Stage::of(&world).with("n0", since(1));
    assert_eq!(stage.decide().commands[0].plan.launches.len(), 2);
    // None when there is room.
    let world = World::standard()
        .add([own("n0", SMALL), own("n1", MEDIUM)])
        .add(pod("web").cpu("1").on("n0"))
        .add(pod("api").cpu("1").on("n1"));
    let mut stage = Stage::of(&world)
        .with("n0", since(1))
        .with("n1", |m| m.consolidatable = false);
    assert!(stage.decide().commands[0].is_delete());
}

#[test]
fn core_297_in_order_of_age_and_empty_ones_first() {
    let world = World::standard()
        .add([own("old", SMALL), own("young", SMALL), own("bare", SMALL)])
        .add(pod("a").cpu("1").on("old"))
        .add(pod("b").cpu("1").on("young"));
    let mut stage = Stage::of(&world)
        .with("old", since(1))
        .with("young", since(2))
        .with("bare", since(3));
    let mut order = Vec::new();
    for _ in 0..3 {
        let decision = stage.decide();
        order.push(stage.names(&decision));
        assert_eq!(decision.commands.len(), 1, "one at a time");
        stage.apply(&decision.commands[0]);
    }
    assert_eq!(order, ["bare", "old", "young"]);
}

#[test]
fn core_298_the_next_one_when_pods_have_no_place() {
    let world = World::standard()
        .add([own("stuck", ("odd", "64", "64Gi")), own("n1", SMALL)])
        .add(pod("huge").cpu("60").on("stuck"))
        .add(pod("web").cpu("1").on("n1"));
    let mut stage = Stage::of(&world)
        .with("stuck", since(1))
        .with("n1", since(2));
    assert_eq!(stage.gone().as_deref(), Some("n1"));
    stage.member("n1").drifted = None;
    let why = stage.why("stuck");
    assert!(
        why.contains("not all pods would schedule, default/huge"),
        "{why}"
    );
}

#[test]
fn core_299_within_budgets() {
    let nodes: Vec<_> = (0..10).map(|n| own(&format!("n{n}"), SMALL)).collect();
    let mut world = World::standard().add(nodes);
    for n in 0..10 {
        world = world.add(pod(&format!("p{n}")).cpu("1500m").on(&format!("n{n}")));
    }
    let mut stage = Stage::of(&world).terms(|t| t.budgets = vec![budget("3")]);
    for n in 0..10 {
        since(n)(stage.member(&format!("n{n}")));
    }
    for n in 0..3 {
        assert_eq!(stage.gone(), Some(format!("n{n}")));
        stage.member(&format!("n{n}")).in_command = true;
    }
    assert_eq!(stage.gone(), None);
}

#[test]
fn core_299_the_next_one_does_not_wait_for_the_successor_of_the_last() {
    let mut world = World::standard().add([own("n0", SMALL), own("n1", SMALL)]);
    for n in 0..2 {
        let name = format!("n{n}");
        world = world.add(pod(&format!("p{n}")).cpu("1500m").on(&name));
    }
    let mut stage = Stage::of(&world).with("n0", since(1)).with("n1", since(2));
    let decision = stage.decide();
    let first = &decision.commands[0];
    assert_eq!(stage.names(&decision), "n0");
    assert_eq!(first.plan.launches.len(), 1);
    // Its successor is on its way, and its pod on the old node until then.
    let n_before = stage.members.len();
    stage.begin(first);
    let second = stage.decide();
    assert_eq!(stage.names(&second), "n1");
    let plan = &second.commands[0].plan;
    assert_eq!(plan.launches.len(), 1, "the successor is spoken for");
    assert_eq!(stage.members.len(), n_before + 1);
    // Without pods it would have room.
    stage.begin(&second.commands[0]);
    assert_eq!(stage.gone(), None);
}

#[test]
fn nodes_that_cannot_go_do_not_keep_others() {
    let n_stuck = 30;
    let mut world = World::standard().add([own("home", LARGE), own("spare", SMALL)]);
    world = world
        .add(pod("a").cpu("1").on("home"))
        .add(pod("b").cpu("1").on("spare"));
    for n in 0..n_stuck {
        let name = format!("stuck{n}");
        world = world
            .add(own(&name, ("odd", "64", "64Gi")))
            .add(pod(&format!("huge{n}")).cpu("60").on(&name));
    }
    let mut stage = Stage::of(&world).with("home", |m| m.do_not_disrupt = true);
    for n in 0..n_stuck {
        since(n)(stage.member(&format!("stuck{n}")));
    }
    assert_eq!(stage.gone().as_deref(), Some("spare"));
}

#[test]
fn core_302_drift_does_not_mind_consolidation_being_off() {
    let world = World::standard().add(own("n0", SMALL));
    let mut stage = Stage::of(&world).with("n0", since(1));
    stage.pools[0].consolidate_after_never = true;
    let decision = stage.decide();
    assert_eq!(decision.commands[0].method, Method::Drift);
    assert!(decision.commands[0].is_delete());
}

fn of_constant_size(replicas: u32, limit: Option<u32>, nodes: &str) -> Stage {
    let all: Vec<_> = (0..4)
        .map(|n| of_pool(&format!("n{n}"), "fixed", SMALL))
        .collect();
    let world = World::standard().add(pool("fixed")).add(all);
    let mut stage = Stage::of(&world);
    for n in 0..4 {
        since(n)(stage.member(&format!("n{n}")));
    }
    let fixed = stage
        .pools
        .iter_mut()
        .find(|p| p.name.as_ref() == "fixed")
        .expect("the pool");
    fixed.static_replicas = Some(replicas);
    fixed.limit_nodes = limit;
    fixed.budgets = vec![budget(nodes)];
    stage
}

#[test]
fn core_303_one_for_one_in_pools_of_constant_size() {
    let figures = [
        (4, None, "100%", 4),
        (4, None, "2", 2),
        (4, None, "50%", 2),
        (4, Some(5), "100%", 1),
        // No room for a successor beside the node that it follows.
        (4, Some(4), "100%", 0),
        // Scaling down comes first.
        (3, None, "100%", 0),
        (0, None, "100%", 0),
        (5, None, "0", 0),
    ];
    for (replicas, limit, nodes, expected) in figures {
        let mut stage = of_constant_size(replicas, limit, nodes);
        let decision = stage.decide();
        let what = format!("{replicas} {limit:?} {nodes}");
        assert_eq!(decision.commands.len(), expected, "{what}");
        for command in &decision.commands {
            assert_eq!(command.method, Method::StaticDrift);
            assert_eq!((command.from_template, command.members.len()), (1, 1));
        }
    }
}

#[test]
fn static_drift_comes_before_drift_and_drift_before_consolidation() {
    let mut stage = of_constant_size(4, None, "1");
    assert_eq!(stage.decide().commands[0].method, Method::StaticDrift);
    let world = World::standard()
        .add([own("n0", LARGE), own("n1", SMALL)])
        .add(pod("web").cpu("100m").on("n0"))
        .add(pod("api").cpu("1").on("n1"))
        .add(deployment("none", 0));
    let mut stage = Stage::of(&world);
    assert_eq!(stage.gone().as_deref(), Some("n0"));
    let mut stage = Stage::of(&world).with("n1", since(1));
    assert_eq!(stage.decide().commands[0].method, Method::Drift);
}
