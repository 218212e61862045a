//! Fleets in which some nodes have claims and others are of node groups.

use joiner_disruption::{
    Command, GroupNode, Leaver, Method, Policy, PoolName, Reason, Rejection, Why, confirm,
};
use joiner_testkit::{World, pod};

use crate::stage::{LARGE, MEDIUM, SMALL, Stage, at, budget, own};

fn nodes(sizes: &[(&str, (&str, &str, &str))]) -> World {
    let nodes: Vec<_> = sizes.iter().map(|(name, size)| own(name, *size)).collect();
    World::standard().add(nodes)
}

fn node(group: &str, node: &str) -> GroupNode {
    GroupNode {
        group: group.into(),
        node: node.into(),
    }
}

fn only(stage: &mut Stage) -> Command {
    let mut decision = stage.decide();
    assert_eq!(decision.commands.len(), 1);
    decision.commands.remove(0)
}

#[test]
fn empty_nodes_of_both_owners_go_in_one_command() {
    let world = nodes(&[("c", MEDIUM), ("g", LARGE)]);
    let mut stage = Stage::of(&world).grouped("workers", 0, &["g"]);
    let command = only(&mut stage);
    assert_eq!(command.method, Method::Empty);
    assert_eq!(command.claims, ["claim-c".into()]);
    assert_eq!(command.group_nodes, [node("workers", "g")]);
    let leavers: Vec<String> = command.leavers().map(|found| found.to_string()).collect();
    assert_eq!(
        leavers,
        ["NodeClaim claim-c", "Node g of node group workers"]
    );
    stage.apply(&command);
    assert!(stage.members.is_empty());
}

#[test]
fn a_group_keeps_its_minimum() {
    let names = ["a", "b", "c"];
    let world = nodes(&names.map(|name| (name, MEDIUM)));
    for (min, going) in [(0, 3), (1, 2), (2, 1), (3, 0), (9, 0)] {
        let mut stage = Stage::of(&world).grouped("workers", min, &names);
        let decision = stage.decide();
        let gone = decision
            .commands
            .iter()
            .map(|found| found.group_nodes.len());
        assert_eq!(gone.sum::<usize>(), going, "{min}");
        let kept = decision
            .verdicts
            .iter()
            .filter_map(|found| found.stays.clone());
        for why in kept {
            assert_eq!(why, Why::GroupMinimum("workers".into()));
        }
    }
    let mut stage = Stage::of(&world).grouped("workers", 3, &names);
    assert_eq!(
        stage.why("a"),
        "node group \"workers\" has no more nodes than it keeps"
    );
}

#[test]
fn nodes_that_go_already_count_against_the_minimum() {
    let names = ["a", "b", "c"];
    let world = nodes(&names.map(|name| (name, MEDIUM)));
    let mut stage = Stage::of(&world).grouped("workers", 2, &names);
    let first = only(&mut stage);
    assert_eq!(first.group_nodes.len(), 1);
    stage.begin(&first);
    assert_eq!(stage.gone(), None);
}

#[test]
fn budgets_hold_for_groups_as_for_pools() {
    let names = ["a", "b", "c", "d"];
    let world = nodes(&names.map(|name| (name, MEDIUM)));
    let stage = Stage::of(&world).grouped("workers", 1, &names);
    let mut stage = stage.terms(|terms| terms.budgets = vec![budget("25%")]);
    let decision = stage.decide();
    assert_eq!(decision.commands[0].group_nodes.len(), 1);
    let kept = decision
        .verdicts
        .iter()
        .find_map(|found| found.stays.clone());
    let workers = PoolName::NodeGroup("workers".into());
    assert_eq!(kept, Some(Why::Budget(workers, Reason::Empty)));
}

#[test]
fn nodes_of_groups_never_drift() {
    let world = nodes(&[("c", MEDIUM), ("g", MEDIUM)])
        .add([pod("web-1").cpu("3").on("c"), pod("web-2").cpu("3").on("g")]);
    let mut stage = Stage::of(&world)
        .grouped("workers", 0, &["g"])
        .terms(|terms| terms.policy = Policy::WhenEmpty);
    for name in ["c", "g"] {
        stage.member(name).drifted = Some(at("2026-01-01T00:00:00Z"));
    }
    let decision = stage.decide();
    assert!(decision.eligible.contains(&(Reason::Drifted, 1)));
    assert_eq!(stage.names(&decision), "c");
    assert_eq!(decision.commands[0].reason, Reason::Drifted);
    let mut stage = Stage::of(&world).grouped("workers", 0, &["c", "g"]);
    for name in ["c", "g"] {
        stage.member(name).drifted = Some(at("2026-01-01T00:00:00Z"));
    }
    let decision = stage
        .terms(|terms| terms.policy = Policy::WhenEmpty)
        .decide();
    assert!(decision.commands.is_empty(), "all of them are of a group");
}

/// A large node with a claim and one of a group, each with one small pod.
fn wasteful() -> World {
    let pods = [
        pod("web-1").cpu("500m").on("c"),
        pod("web-2").cpu("500m").on("g"),
    ];
    nodes(&[("c", LARGE), ("g", LARGE)]).add(pods)
}

#[test]
fn nodes_of_both_owners_are_consolidated_together() {
    let mut stage = Stage::of(&wasteful()).grouped("workers", 0, &["g"]);
    let command = only(&mut stage);
    assert_eq!(command.reason, Reason::Underutilized);
    assert_eq!(
        (command.claims.len(), command.group_nodes.len()),
        (1, 1),
        "{}",
        command.why
    );
    assert_eq!(command.plan.launches.len(), 1, "a small one will do");
    let now = confirm(&stage.fleet(), &command).unwrap();
    assert_eq!(now.group_nodes, [node("workers", "g")]);
    stage.apply(&command);
    let left: Vec<Leaver> = stage.members.iter().map(|found| found.leaver()).collect();
    assert_eq!(left, [Leaver::Claim("claim-new-1".into())]);
}

#[test]
fn what_must_stay_in_a_group_takes_pods_of_others() {
    let mut stage = Stage::of(&wasteful()).grouped("workers", 1, &["g"]);
    let command = only(&mut stage);
    assert_eq!(command.claims, ["claim-c".into()]);
    assert!(command.group_nodes.is_empty() && command.is_delete());
    stage.apply(&command);
    assert_eq!(stage.gone(), None);
    assert!(stage.why("g").contains("has no more nodes than it keeps"));
}

#[test]
fn empty_nodes_that_go_first_leave_less_to_consolidate() {
    let world = nodes(&[("a", LARGE), ("b", LARGE), ("empty", MEDIUM)]);
    let world = world.add([
        pod("web-1").cpu("500m").on("a"),
        pod("web-2").cpu("500m").on("b"),
    ]);
    let names = ["a", "b", "empty"];
    let going = |min: u32| {
        let mut stage = Stage::of(&world).grouped("workers", min, &names);
        let decision = stage.decide();
        let gone = decision
            .commands
            .iter()
            .map(|found| found.group_nodes.len());
        gone.collect::<Vec<_>>()
    };
    assert_eq!(going(0), [1, 2], "empty ones, then both of the others");
    assert_eq!(going(1), [1, 1]);
    assert_eq!(going(2), [1]);
}

#[test]
fn a_command_about_groups_is_asked_once_more() {
    let names = ["a", "b"];
    let world = nodes(&names.map(|name| (name, MEDIUM)));
    let mut stage = Stage::of(&world).grouped("workers", 0, &names);
    let command = only(&mut stage);
    let grown = stage.clone().terms(|terms| {
        terms.group_min = terms.group_min.map(|_| 1);
    });
    let now = confirm(&grown.fleet(), &command).unwrap();
    assert_eq!(now.group_nodes.len(), 1, "as many as may still go");
    let full = stage.clone().terms(|terms| {
        terms.group_min = terms.group_min.map(|_| 2);
    });
    let rejection = confirm(&full.fleet(), &command).unwrap_err();
    assert_eq!(
        rejection,
        Rejection::Budget(Why::GroupMinimum("workers".into()))
    );
    let none = Stage::of(&World::standard());
    let rejection = confirm(&none.fleet(), &command).unwrap_err();
    assert!(
        matches!(&rejection, Rejection::Gone(Leaver::Node(found)) if *found.group == *"workers")
    );
    assert!(
        rejection
            .to_string()
            .ends_with("of node group workers is gone")
    );
}

#[test]
fn a_claim_of_the_name_of_a_node_is_another_one() {
    let world = nodes(&[("a", SMALL), ("b", SMALL)]);
    let mut stage = Stage::of(&world).grouped("workers", 0, &["a"]);
    stage.member("b").owner = joiner_disruption::NodeOwner::Claim("a".into());
    let command = only(&mut stage);
    assert_eq!((command.claims.len(), command.group_nodes.len()), (1, 1));
    let busy = stage.with("b", |found| found.nominated = true);
    let now = confirm(&busy.fleet(), &command).unwrap();
    assert!(now.claims.is_empty());
    assert_eq!(now.group_nodes, [node("workers", "a")]);
}

#[test]
fn words_about_a_group_call_it_one() {
    let world = nodes(&[("g", MEDIUM)]).add(pod("web-1").cpu("1").on("g"));
    let mut stage = Stage::of(&world)
        .grouped("workers", 0, &["g"])
        .terms(|terms| terms.consolidate_after_never = true);
    assert_eq!(
        stage.why("g"),
        "node group \"workers\" has consolidation disabled"
    );
}
