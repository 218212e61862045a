use joiner_model::{NodeIx, PodIx, PoolIx, TypeIx};
use joiner_verify::{Rule, VIOLATIONS_MAX, check, price_of};

use crate::support::*;

/// One pod on a new node, one on a node there is, one left over, one bound, one set aside.
fn case() -> Case {
    let mut case = Case::new();
    let node = case.node("old", "a");
    let pods = case.pods(2, &shape("web"));
    case.bound(node, &shape("web"));
    let mut huge = shape("huge");
    huge.requests = resources(64_000, 1, 1);
    let huge = case.pod(&huge);
    let aside = case.pod(&shape("aside"));
    case.problem[aside].ignored = Some("its claim is missing".into());
    case.launch(&[SMALL, LARGE], &[], &pods[..1]);
    case.place(node, &pods[1..]);
    case.leave(huge);
    case.legal()
}

#[test]
fn every_pod_once() {
    let case = case();
    let lost = case.broken_by(Rule::Census, "lost", |c| c.plan.unplaced.clear());
    assert_eq!(lost, "pod web/pod-3 is lost: neither placed nor left over");
    case.broken_by(Rule::Census, "placed twice", |c| {
        c.place(NodeIx(0), &[PodIx(0)])
    });
    case.broken_by(Rule::Census, "placed twice on a node", |c| {
        c.plan.placements[0].pods.push(PodIx(1));
    });
    case.broken_by(Rule::Census, "left over twice", |c| c.leave(PodIx(3)));
    case.broken_by(Rule::Census, "no reason", |c| {
        c.plan.unplaced[0].refusals.clear()
    });
    case.broken_by(Rule::Census, "bound pod placed", |c| {
        c.place(NodeIx(0), &[PodIx(2)])
    });
    case.broken_by(Rule::Census, "bound pod left over", |c| c.leave(PodIx(2)));
    case.broken_by(Rule::Census, "pod set aside is placed", |c| {
        c.place(NodeIx(0), &[PodIx(4)])
    });
    case.legal_with(|c| c.leave(PodIx(4)));
}

#[test]
fn placed_and_left_over() {
    let mut case = case();
    case.leave(PodIx(0));
    let found = check(&case.problem, &case.plan);
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(text[0], "pod web/pod-0 is both placed and left over");
}

#[test]
fn unknown_things_are_told_not_followed() {
    let case = case();
    case.broken_by(Rule::Reference, "pod in a launch", |c| {
        c.plan.launches[0].pods.push(PodIx(5))
    });
    case.broken_by(Rule::Reference, "pod on a node", |c| {
        c.place(NodeIx(0), &[PodIx(5)])
    });
    case.broken_by(Rule::Reference, "pod left over", |c| c.leave(PodIx(5)));
    case.broken_by(Rule::Reference, "node", |c| c.place(NodeIx(99), &[]));
    case.broken_by(Rule::Reference, "type", |c| {
        c.plan.launches[0].types.push(TypeIx(99))
    });
    case.broken_by(Rule::Reference, "pool", |c| {
        c.plan.launches[0].pool = PoolIx(99);
        c.plan.cost = Default::default();
    });
}

#[test]
fn reports_are_bounded_and_repeatable() {
    let mut case = Case::new();
    case.pods(200, &shape("web"));
    let found = check(&case.problem, &case.plan);
    assert_eq!(found.len(), VIOLATIONS_MAX);
    assert_eq!(found, check(&case.problem, &case.plan));
}

#[test]
fn price_is_recomputed() {
    let case = case();
    assert_eq!(price_of(&case.problem, &case.plan), case.plan.cost.price);
    case.broken_by(Rule::Price, "total", |c| {
        c.plan.cost.price = joiner_model::NanoDollars::new(99_999_999);
    });
    case.broken_by(Rule::Bound, "bound above price", |c| {
        c.plan.cost.bound = joiner_model::NanoDollars::new(100_000_001);
    });
    case.legal_with(|c| c.plan.cost.bound = joiner_model::NanoDollars::ZERO);
}
