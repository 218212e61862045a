//! Upstream behaviors 258 to 265: empty nodes.

use jiff::Timestamp;
use joiner_disruption::{EvictionCost, Method, Policy, Reason};
use joiner_testkit::{World, daemon, pod, pool};

use crate::stage::{LARGE, MEDIUM, Stage, budget, of_pool, own};

fn empty_nodes(count: usize) -> World {
    let nodes: Vec<_> = (0..count).map(|n| own(&format!("n{n}"), MEDIUM)).collect();
    World::standard().add(nodes)
}

#[test]
fn core_258_all_in_one_command() {
    let mut stage = Stage::of(&empty_nodes(3));
    let decision = stage.decide();
    let command = &decision.commands[0];
    assert_eq!(stage.names(&decision), "n0 n1 n2");
    assert_eq!(
        (command.method, command.reason),
        (Method::Empty, Reason::Empty)
    );
    assert!(command.is_delete() && command.method.waits());
    assert_eq!(command.savings(), crate::stage::dollars(0.6));
    for policy in [Policy::WhenEmpty, Policy::Balanced] {
        let mut stage = Stage::of(&empty_nodes(1)).terms(|t| t.policy = policy);
        assert_eq!(stage.gone().as_deref(), Some("n0"));
    }
}

#[test]
fn core_259_within_budgets() {
    for (nodes, expected) in [("30%", 3), ("100%", 10), ("0", 0), ("4", 4)] {
        let mut stage = Stage::of(&empty_nodes(10)).terms(|t| t.budgets = vec![budget(nodes)]);
        let decision = stage.decide();
        let found: usize = decision.commands.iter().map(|c| c.members.len()).sum();
        assert_eq!(found, expected, "{nodes}");
    }
    let world = empty_nodes(2).add(pool("other")).add(
        (0..4)
            .map(|n| of_pool(&format!("o{n}"), "other", MEDIUM))
            .collect::<Vec<_>>(),
    );
    let mut stage = Stage::of(&world).terms(|t| {
        let nodes = if t.name.as_ref() == "other" {
            "1"
        } else {
            "100%"
        };
        t.budgets = vec![budget(nodes)];
    });
    assert_eq!(stage.gone().as_deref(), Some("n0 n1 o0"));
}

#[test]
fn core_260_daemons_and_pods_that_cost_nothing_do_not_count() {
    let world = empty_nodes(1)
        .add(daemon("agent").cpu("100m"))
        .add(pod("agent-1").owned_by("DaemonSet", "agent").on("n0"));
    assert_eq!(Stage::of(&world).gone().as_deref(), Some("n0"));
    let world = empty_nodes(1).add(pod("cheap").on("n0"));
    let free = EvictionCost::of(i32::MIN, 0);
    let mut stage = Stage::of(&world).with("n0", |m| m.pods[0].cost = free);
    assert_eq!(stage.decide().commands[0].method, Method::Empty);
}

#[test]
fn core_261_and_264_who_is_left_alone() {
    let figures: [fn(&mut joiner_disruption::Member); 3] = [
        |m| m.consolidatable = false,
        |m| m.do_not_disrupt = true,
        |m| m.has_buffer_pods = true,
    ];
    for change in figures {
        let mut stage = Stage::of(&empty_nodes(2)).with("n0", change);
        assert_eq!(stage.gone().as_deref(), Some("n1"));
    }
    let mut fixed = Stage::of(&empty_nodes(1)).terms(|t| t.static_replicas = Some(1));
    assert_eq!(fixed.gone(), None);
    let mut never = Stage::of(&empty_nodes(1)).terms(|t| t.consolidate_after_never = true);
    assert_eq!(never.gone(), None);
    assert_eq!(
        never.why("n0"),
        "NodePool \"default\" has consolidation disabled"
    );
}

#[test]
fn core_262_empty_and_drifted_is_empty() {
    let drifted = |m: &mut joiner_disruption::Member| m.drifted = Some(Timestamp::UNIX_EPOCH);
    let mut stage = Stage::of(&empty_nodes(1)).with("n0", drifted);
    assert_eq!(stage.decide().commands[0].method, Method::Empty);
}

#[test]
fn core_263_a_node_that_a_waiting_pod_needs_is_not_made_smaller() {
    let world = World::standard()
        .add(own("n0", ("large", "8", "32Gi")))
        .add(pod("tiny").cpu("100m").on("n0"));
    let mut stage = Stage::of(&world);
    let decision = stage.decide();
    assert_eq!(decision.commands[0].plan.launches.len(), 1, "alone it is");
    let world = world.add(pod("huge").cpu("7"));
    assert_eq!(Stage::of(&world).gone(), None);
}

#[test]
fn core_286_a_node_that_was_bought_for_pods_that_take_their_time_to_leave_stays() {
    // They are still on the node that goes, and wait for a place.
    let world = empty_nodes(2).add(pod("slow").replicas(3).cpu("1"));
    let mut stage = Stage::of(&world);
    let decision = stage.decide();
    assert_eq!(stage.names(&decision), "n1", "one of them is enough");
    let command = &decision.commands[0];
    // Meanwhile more of them have to leave.
    let world = empty_nodes(2).add(pod("slow").replicas(6).cpu("1"));
    let stage = Stage::of(&world);
    let dropped = joiner_disruption::confirm(&stage.fleet(), command).unwrap_err();
    assert_eq!(dropped.as_str(), "churn");
}

#[test]
fn core_265_a_budget_leaves_nothing_to_remember() {
    let mut stage = Stage::of(&empty_nodes(1)).terms(|t| t.budgets = vec![budget("0")]);
    assert_eq!(stage.gone(), None);
    assert!(stage.why("n0").contains("budget of NodePool \"default\""));
    stage.pools[0].budgets.clear();
    assert_eq!(stage.gone().as_deref(), Some("n0"), "nothing else changed");
}

/// An empty node, and another one whose pod fits on a third.
fn empty_and_spare() -> Stage {
    let world = World::standard()
        .add(vec![
            own("bare", MEDIUM),
            own("home", LARGE),
            own("spare", MEDIUM),
        ])
        .add(pod("a").cpu("1").on("home"))
        .add(pod("b").cpu("1").on("spare"));
    Stage::of(&world).with("home", |m| m.do_not_disrupt = true)
}

#[test]
fn others_need_not_wait_for_empty_nodes() {
    let mut stage = empty_and_spare();
    let decision = stage.decide();
    let methods: Vec<_> = decision.commands.iter().map(|own| own.method).collect();
    assert_eq!(methods, [Method::Empty, Method::Single]);
    assert_eq!(stage.names(&decision), "bare spare");
    let to = &decision.commands[1].plan.placements[0];
    let home = &stage.problem[to.node];
    assert_eq!(&*home.name, "home");
    let mut stage = empty_and_spare();
    stage.settings = stage.settings.as_upstream();
    assert_eq!(stage.gone().as_deref(), Some("bare"));
}

#[test]
fn what_goes_takes_nobody_in() {
    let world = World::standard()
        .add(vec![own("bare", LARGE), own("spare", MEDIUM)])
        .add(pod("b").cpu("3").on("spare"));
    let mut stage = Stage::of(&world);
    assert_eq!(stage.gone().as_deref(), Some("bare"));
}

#[test]
fn drift_is_never_second() {
    let mut stage = empty_and_spare();
    stage.member("spare").drifted = Some(stage.now);
    let decision = stage.decide();
    assert_eq!(stage.names(&decision), "bare");
    let stays = decision.verdicts.iter().filter(|own| own.stays.is_some());
    assert_eq!(stays.count(), 2, "nobody else is said to go");
}

#[test]
fn budgets_count_empty_nodes_and_others_together() {
    let one = |t: &mut joiner_disruption::PoolTerms| t.budgets = vec![budget("1")];
    let mut stage = empty_and_spare().terms(one);
    assert_eq!(stage.gone().as_deref(), Some("bare"));
}
