//! Which pod keeps a node, and who is told.

use joiner_disruption::{Audience, Pin, Why, pins};
use joiner_testkit::{World, ZONE, pod};

use crate::stage::{SMALL, Stage, own};

/// The pod that keeps a node, if one does.
fn pin(stage: &mut Stage, name: &str) -> Option<Pin> {
    let decision = stage.decide();
    let fleet = stage.fleet();
    let at = fleet.members.iter().position(|own| *own.name == *name);
    pins(&fleet, &decision.verdicts).swap_remove(at.expect("the node is there"))
}

#[test]
fn the_largest_pod_that_fits_no_hole_elsewhere() {
    let world = World::standard()
        .add(own("n0", SMALL))
        .add(pod("little").cpu("400m").on("n0"))
        .add(pod("large").cpu("1500m").on("n0"))
        .add(own("n1", SMALL))
        .add(pod("other").cpu("1300m").on("n1"));
    let mut stage = Stage::of(&world);
    let pin = pin(&mut stage, "n0").expect("something keeps it");
    assert_eq!(&*pin.pod, "default/large");
    assert!(pin.needs.starts_with("cpu 1500m"), "{}", pin.needs);
    let hole = pin.largest_hole.expect("there is a hole");
    assert!(hole.starts_with("cpu 700m"), "{hole}");
}

#[test]
fn a_pod_without_any_place_says_which_rule_is_in_the_way() {
    let world = World::standard()
        .add(own("n0", SMALL).label("example.com/disk", "fast"))
        .add(
            pod("web")
                .cpu("1")
                .node_selector("example.com/disk", "fast")
                .on("n0"),
        )
        .add(pod("more").cpu("900m").on("n0"))
        .add(own("n1", SMALL))
        .add(pod("other").cpu("1").on("n1"));
    let mut stage = Stage::of(&world);
    let pin = pin(&mut stage, "n0").expect("something keeps it");
    assert_eq!(&*pin.pod, "default/web");
    assert!(pin.because.contains("example.com/disk"), "{}", pin.because);
}

#[test]
fn a_node_that_others_keep_has_no_pin() {
    let world = World::standard()
        .add(own("n0", SMALL))
        .add(pod("web").cpu("1").on("n0"));
    let mut stage = Stage::of(&world).with("n0", |own| own.do_not_disrupt = true);
    assert_eq!(pin(&mut stage, "n0"), None);
}

#[test]
fn who_is_told() {
    let pinned = Why::Pinned(Pin {
        pod: "default/web".into(),
        needs: "cpu 1".to_owned(),
        because: "no room".to_owned(),
        largest_hole: None,
        n_more: 0,
    });
    for (why, is_drifted, expected) in [
        (Why::DoNotDisrupt, false, Audience::Blocked),
        (
            Why::PodBudget("default/web".to_owned()),
            false,
            Audience::Blocked,
        ),
        (Why::Nominated, false, Audience::Blocked),
        (Why::InCommand, false, Audience::Nobody),
        (pinned.clone(), true, Audience::Blocked),
        (pinned, false, Audience::Unconsolidatable),
        (
            Why::OnlyWhenEmpty("p".into()),
            false,
            Audience::Unconsolidatable,
        ),
        (
            Why::ConsolidationOff("p".into()),
            false,
            Audience::Unconsolidatable,
        ),
        (Why::MissingLabel(ZONE), false, Audience::Unconsolidatable),
        (Why::Buffer, false, Audience::Unconsolidatable),
        (Why::Static("p".into()), false, Audience::Nobody),
        (Why::NotQuiet, false, Audience::Nobody),
        (Why::NotLookedAt, false, Audience::Nobody),
        (Why::AnotherFirst, false, Audience::Nobody),
    ] {
        assert_eq!(why.audience(is_drifted), expected, "{why}");
    }
}
