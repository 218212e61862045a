//! Upstream behaviors 258 to 265: empty nodes.

use jiff::Timestamp;
use joiner_disruption::{EvictionCost, Method, Policy, Reason};
use joiner_testkit::{World, daemon, pod, pool};

use crate::stage::{MEDIUM, Stage, budget, of_pool, own};

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
fn core_265_a_budget_leaves_nothing_to_remember() {
    let mut stage = Stage::of(&empty_nodes(1)).terms(|t| t.budgets = vec![budget("0")]);
    assert_eq!(stage.gone(), None);
    assert!(stage.why("n0").contains("budget of NodePool \"default\""));
    stage.pools[0].budgets.clear();
    assert_eq!(stage.gone().as_deref(), Some("n0"), "nothing else changed");
}
