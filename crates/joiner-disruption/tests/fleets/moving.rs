//! Workloads that were moved often enough are left alone.

use joiner_disruption::{EvictionCost, Rejection, Why, confirm};
use joiner_testkit::{World, pod};

use crate::stage::{LARGE, SMALL, Stage, own};

/// Four small nodes with a pod each, all of which fit the large one; its pod stays where it is.
fn four_too_many() -> Stage {
    let world = World::standard()
        .add(own("home", LARGE))
        .add(["n0", "n1", "n2", "n3"].map(|name| own(name, SMALL)))
        .add(pod("rest").cpu("2").on("home"))
        .add(pod("api").cpu("1").on("n0"))
        .add(pod("web").cpu("1").on("n1"))
        .add(pod("www").cpu("1").on("n2"))
        .add(pod("job").cpu("1").on("n3"));
    let stage = Stage::of(&world).with("home", |m| m.do_not_disrupt = true);
    ["n0", "n1", "n2"].into_iter().fold(stage, |stage, name| {
        stage.with(name, |m| {
            m.pods[0].owner = Some("default/Deployment/api".into())
        })
    })
}

fn limited(moves: u32) -> Stage {
    let mut stage = four_too_many();
    stage.moves_left = [("default/Deployment/api".into(), moves)].into();
    stage
}

#[test]
fn a_command_uses_no_more_moves_than_are_left() {
    assert_eq!(four_too_many().gone().as_deref(), Some("n0 n1 n2 n3"));
    for (left, n_moved) in [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3)] {
        let mut stage = limited(left);
        let gone = stage.gone().unwrap();
        let names: Vec<&str> = gone.split(' ').collect();
        assert!(names.contains(&"n3"), "others do not care: {gone}");
        assert_eq!(names.len(), n_moved + 1, "{left} left: {gone}");
    }
}

#[test]
fn who_is_left_alone_is_told_why() {
    let words = "pods of default/Deployment/api were moved often enough for now";
    assert_eq!(limited(0).why("n0"), words);
}

#[test]
fn a_node_with_more_pods_than_moves_stays() {
    let world = World::standard()
        .add([own("home", LARGE), own("spare", SMALL)])
        .add(pod("rest").cpu("2").on("home"))
        .add(pod("api").replicas(2).cpu("500m").on("spare"));
    let owned = |m: &mut joiner_disruption::Member| {
        m.pods
            .iter_mut()
            .for_each(|pod| pod.owner = Some("default/Deployment/api".into()));
    };
    let stage = Stage::of(&world).with("home", |m| m.do_not_disrupt = true);
    let mut stage = stage.with("spare", owned);
    stage.moves_left = [("default/Deployment/api".into(), 1)].into();
    assert_eq!(stage.gone(), None, "half a node cannot be moved");
    stage.moves_left = [("default/Deployment/api".into(), 2)].into();
    stage.changed = stage.now + jiff::SignedDuration::from_secs(300);
    assert_eq!(stage.gone().as_deref(), Some("spare"));
}

#[test]
fn moves_used_up_in_the_meantime_stop_a_command() {
    let stage = limited(3);
    let command = stage.clone().decide().commands.remove(0);
    assert!(confirm(&stage.fleet(), &command).is_ok());
    let later = limited(2);
    let rejection = confirm(&later.fleet(), &command).unwrap_err();
    let expected = Why::MovedEnough("default/Deployment/api".into());
    assert_eq!(rejection, Rejection::Budget(expected));
}

#[test]
fn pods_that_cost_nothing_to_move_are_counted_all_the_same() {
    let cheap = |m: &mut joiner_disruption::Member| {
        for pod in &mut m.pods {
            pod.cost = EvictionCost::of(i32::MIN, 0);
        }
    };
    let mut stage = limited(1).with("n0", cheap).with("n1", cheap);
    stage = stage.with("n2", |m| m.do_not_disrupt = true);
    stage = stage.with("n3", |m| m.do_not_disrupt = true);
    assert_eq!(stage.gone().as_deref(), Some("n0"), "one of two empty ones");
    let mut none = limited(0).with("n0", cheap);
    none = none.with("n3", |m| m.do_not_disrupt = true);
    assert_eq!(none.gone(), None);
    assert!(none.why("n0").contains("often enough"));
}

#[test]
fn drift_does_not_ask() {
    let mut stage = limited(0);
    stage.member("n0").drifted = Some(stage.now);
    assert_eq!(stage.gone().as_deref(), Some("n0"));
}

#[test]
fn nobody_is_looked_at_again_until_moves_may_have_come_back() {
    let mut stage = limited(0).with("n3", |m| m.do_not_disrupt = true);
    assert_eq!(stage.gone(), None);
    let again = stage.decide();
    assert_eq!(again.n_what_ifs, 0);
    assert!(
        again.memory.is_idle(&stage.fleet()),
        "until something changes, or for a while"
    );
}
