use joiner_model::{
    Name, PodIx, PodShape, PodTerm, Selector, SelectorExpr, SelectorOp, Spread, TypeIx, keys,
};
use joiner_verify::{Rule, check};

use crate::support::*;

fn skew(key: &str, app: &str, max_skew: u32) -> Spread {
    Spread {
        max_skew,
        ..over(key, app)
    }
}

/// A pod of an app under some spreads.
fn under(app: &str, spreads: &[Spread]) -> PodShape {
    let mut shape = shape(app);
    shape.spreads = spreads.to_vec();
    shape
}

/// Adds two pods under a spread over zones and one under a spread over hosts, all on one node.
fn at_odds(case: &mut Case, app: &str, zone: &str) {
    let mut pods = case.pods(2, &under(app, &[skew(ZONE, app, 2)]));
    pods.extend(case.pods(1, &under(app, &[skew(HOST, app, 1)])));
    case.launch(&[LARGE], &[is(ZONE, zone)], &pods);
}

#[test]
fn whoever_is_last_breaks_its_rule() {
    let mut case = Case::new();
    at_odds(&mut case, "web", "a");
    let text = case.breaks(Rule::Spread, "each rule has an order, both have none");
    assert_eq!(
        text,
        "pod web/pod-0 on node new-0: no order of placing keeps both its spread over \
         topology.kubernetes.io/zone with a skew of 2 and the rules of the pods around it"
    );
    let fine: [fn(&mut Case); 6] = [
        |c| c.shape_of(PodIx(0)).spreads[0].max_skew = 3,
        |c| c.shape_of(PodIx(2)).spreads[0].max_skew = 3,
        |c| c.shape_of(PodIx(2)).labels = labels(&[("app", "other")]),
        |c| c.shape_of(PodIx(2)).spreads[0].hard = false,
        |c| {
            c.plan.launches[0].pods.pop();
            c.in_zone("a", &[PodIx(2)]);
        },
        |c| {
            // With the other zones filled first, the last one may come last.
            for zone in ["b", "c"] {
                let pod = c.pod(&shape("web"));
                c.in_zone(zone, &[pod]);
            }
        },
    ];
    fine.into_iter().for_each(|change| case.legal_with(change));
    case.broken_by(Rule::Spread, "one zone stays empty", |c| {
        let pod = c.pod(&shape("web"));
        c.in_zone("b", &[pod]);
    });
    case.broken_by(Rule::Spread, "bound pods come first", |c| {
        let node = c.node("old", "a");
        c.bound(node, &shape("web"));
        c.shape_of(PodIx(0)).spreads[0].max_skew = 3;
    });
}

#[test]
fn every_tangle_is_reported_once() {
    let mut case = Case::new();
    at_odds(&mut case, "web", "a");
    at_odds(&mut case, "api", "b");
    let found = check(&case.problem, &case.plan);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found, check(&case.problem, &case.plan));
    // A rule that is broken by itself is reported instead.
    let text = case.broken_by(Rule::Spread, "too many of one app", |c| {
        let more = c.pods(2, &under("db", &[skew(HOST, "db", 1)]));
        c.launch(&[LARGE], &[], &more);
    });
    assert!(text.ends_with("in any order"), "{text}");
}

#[test]
fn zones_fill_in_turn_and_on_each_node_one_pod_is_first() {
    let zonal = skew(ZONE, "web", 1);
    let both = under("web", &[zonal.clone(), skew(HOST, "web", 1)]);
    let mut case = Case::new();
    for zone in ["a", "b", "c", "a", "b", "c"] {
        let mut pods = case.pods(2, &under("web", std::slice::from_ref(&zonal)));
        pods.extend(case.pods(1, &both));
        case.launch(&[LARGE], &[is(ZONE, zone)], &pods);
    }
    let case = case.legal();
    case.legal_with(|c| {
        let more = c.pods(1, &both);
        c.in_zone("a", &more);
    });
}

#[test]
fn pods_elsewhere_come_in_between() {
    // One first on the node, then one in each other zone, one more on the node, and so on.
    let case = |n: usize| {
        let mut case = Case::new();
        let mut pods = case.pods(2, &under("web", &[skew(ZONE, "web", 1)]));
        pods.extend(case.pods(1, &under("web", &[skew(HOST, "web", 1)])));
        case.launch(&[LARGE], &[is(ZONE, "a")], &pods);
        for zone in ["b", "c"] {
            let free = case.pods(n, &shape("web"));
            case.in_zone(zone, &free);
        }
        case
    };
    case(2).legal();
    case(1).breaks(Rule::Spread, "the last one in a finds one in b and c");
}

fn role(role: &str) -> PodTerm {
    let role = SelectorExpr {
        key: "role".into(),
        op: SelectorOp::In,
        values: [Name::from(role)].into(),
    };
    PodTerm {
        selector: Some(Selector::new(vec![role])),
        ..near(HOST, "")
    }
}

#[test]
fn affinity_wants_after_what_a_spread_wants_before() {
    // The guard comes while one x is there; it follows its friend.
    let mut case = Case::new();
    let node = case.node("old", "a");
    case.bound(node, &shape("x"));
    let mut late = shape("x");
    late.labels = labels(&[("app", "x"), ("role", "late")]);
    let mut friend = shape("friend");
    friend.labels = labels(&[("app", "friend"), ("role", "friend")]);
    let mut guard = under("guard", &[skew(HOST, "x", 1)]);
    guard.affinity = vec![role("friend")];
    let pods = [case.pod(&late), case.pod(&friend), case.pod(&guard)];
    case.place(node, &pods);
    let case = case.legal();
    let text = case.broken_by(Rule::Spread, "the friend follows the late one", |c| {
        c.shape_of(pods[1]).affinity = vec![role("late")];
    });
    assert!(text.contains("web/pod-3 on node old"), "{text}");
    case.legal_with(|c| {
        c.shape_of(pods[1]).affinity = vec![role("late")];
        c.shape_of(pods[2]).spreads[0].max_skew = 2;
    });
}

#[test]
fn a_pod_that_may_not_count_has_the_benefit_of_the_doubt() {
    // Two pods in zone a follow a third one, which must not count if they are to come after it.
    let mut case = Case::new();
    let mut arm = instance_type("arm", 8000, 16, 400_000_000);
    arm.labels.insert(keys::ARCH.into(), vec!["arm64".into()]);
    case.problem.types.push(arm);
    let arm = TypeIx(2);
    case.problem.pools[0].types.push(arm);
    let mut web = under("web", &[skew(ZONE, "web", 2)]);
    web.node_selector = vec![is(keys::ARCH, "amd64")];
    web.affinity = vec![PodTerm {
        key: ZONE.into(),
        ..role("first")
    }];
    let mut first = shape("web");
    first.labels = labels(&[("app", "web"), ("role", "first")]);
    let pods = [case.pod(&web), case.pod(&web), case.pod(&first)];
    case.launch(&[LARGE], &[is(ZONE, "a")], &pods[..2]);
    case.launch(&[LARGE, arm], &[is(ZONE, "a")], &pods[2..]);
    let case = case.legal();
    case.broken_by(Rule::Spread, "it counts for sure", |c| {
        c.plan.launches[1].types = vec![LARGE];
        c.settle();
    });
    case.legal_with(|c| {
        c.plan.launches[1].types = vec![arm];
        c.settle();
    });
}
