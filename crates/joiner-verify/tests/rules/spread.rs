use joiner_model::{Effect, NodeIx, Operator, PodIx, PodShape};
use joiner_verify::Rule;

use crate::support::*;

fn spread(key: &str) -> PodShape {
    let mut web = shape("web");
    web.spreads = vec![over(key, "web")];
    web
}

/// One pod in each of zones a, b and c, and a second one in a.
fn case() -> Case {
    let mut case = Case::new();
    let pods = case.pods(4, &spread(ZONE));
    for (zone, pod) in ["a", "b", "c", "a"].into_iter().zip(pods) {
        case.in_zone(zone, &[pod]);
    }
    case.legal()
}

fn move_to(case: &mut Case, launch: usize, zone: &str) {
    case.plan.launches[launch].requirements = vec![is(ZONE, zone)];
    case.settle();
}

#[test]
fn skew_over_zones() {
    let case = case();
    let text = case.broken_by(Rule::Spread, "3 in a, none in c", |c| move_to(c, 2, "a"));
    assert_eq!(
        text,
        "pod web/pod-0: 2 too many pods in a for its spread over topology.kubernetes.io/zone with \
         a skew of 1, in any order"
    );
    case.legal_with(|c| {
        move_to(c, 2, "a");
        c.shape_of(PodIx(0)).spreads[0].max_skew = 3;
    });
    case.legal_with(|c| {
        move_to(c, 2, "a");
        c.shape_of(PodIx(0)).spreads[0].hard = false;
    });
    // Pods on one node count one by one.
    case.broken_by(Rule::Spread, "two more on the node", |c| {
        let more = c.pods(1, &spread(ZONE));
        c.plan.launches[0].pods.extend(more);
        c.settle();
    });
}

#[test]
fn the_key_is_fixed() {
    let case = case();
    case.broken_by(Rule::Spread, "open", |c| {
        c.plan.launches[3].requirements.clear()
    });
    case.broken_by(Rule::Spread, "two left", |c| {
        c.plan.launches[3].requirements = vec![rule(ZONE, Operator::In, &["a", "b"])];
    });
    case.legal_with(|c| {
        c.plan.launches[3].requirements.clear();
        for ty in &mut c.problem.types {
            ty.offerings[1].available = false;
            ty.offerings[2].available = false;
        }
        c.plan.launches.remove(2);
        c.plan.launches.remove(1);
        c.plan.launches[0].pods.extend([PodIx(1)]);
        c.plan.launches[1].pods.extend([PodIx(2)]);
        c.settle();
    });
    let mut absent = Case::new();
    let pod = absent.pod(&spread("rack"));
    absent.launch(&[SMALL], &[], &[pod]);
    absent.breaks(Rule::Spread, "no such label");
}

#[test]
fn pods_that_run_already() {
    let mut case = Case::new();
    let node = case.node("old", "a");
    case.bound(node, &shape("web"));
    let pods = case.pods(2, &spread(ZONE));
    case.in_zone("b", &pods[..1]);
    case.in_zone("c", &pods[1..]);
    let case = case.legal();
    let again = |c: &mut Case| move_to(c, 1, "a");
    case.broken_by(Rule::Spread, "a has one", again);
    let uncounted: [fn(&mut Case); 4] = [
        |c| c.problem.pods[0].terminating = true,
        |c| c.shape_of(PodIx(0)).namespace = "other".into(),
        |c| c.shape_of(PodIx(0)).labels = labels(&[("app", "other")]),
        |c| {
            c.problem.nodes[0].labels.remove(ZONE);
        },
    ];
    for change in uncounted {
        case.legal_with(|c| {
            again(c);
            change(c);
        });
    }
    // What was wrong before is not the plan's fault.
    case.legal_with(|c| {
        for _ in 0..3 {
            c.bound(NodeIx(0), &spread(ZONE));
        }
        let mut other = shape("other");
        other.spreads = vec![over(ZONE, "web")];
        c.bound(NodeIx(0), &other);
        let pod = c.pod(&other);
        c.in_zone("b", &[pod]);
        let rackless = c.node("elsewhere", "a");
        c.problem[rackless].labels.remove(ZONE);
        c.bound(rackless, &spread(ZONE));
    });
    // A second one there may still be put below the others.
    case.legal_with(|c| {
        let third = c.pod(&spread(ZONE));
        c.place(NodeIx(0), &[third]);
    });
}

#[test]
fn domains_are_those_the_pod_could_meet() {
    // Zones a and b are all that the pod selects.
    let mut case = Case::new();
    let mut web = spread(ZONE);
    web.node_selector = vec![rule(ZONE, Operator::In, &["a", "b"])];
    let pods = case.pods(4, &web);
    for (zone, two) in ["a", "b"].into_iter().zip(pods.chunks(2)) {
        case.in_zone(zone, two);
    }
    let case = case.legal();
    case.broken_by(Rule::Spread, "c counts when it can be met", |c| {
        c.shape_of(PodIx(0)).node_selector.clear();
    });
    case.broken_by(Rule::Spread, "c counts when selection does not", |c| {
        c.shape_of(PodIx(0)).spreads[0].honor_affinity = false;
    });
    // Volumes never change the domains.
    case.broken_by(Rule::Spread, "volumes", |c| {
        let selector = std::mem::take(&mut c.shape_of(PodIx(0)).node_selector);
        c.shape_of(PodIx(0)).volume_terms = vec![selector];
    });
    // Sold out everywhere, zone c is no domain; with a node there it is.
    let sold_out = |c: &mut Case| {
        c.shape_of(PodIx(0)).node_selector.clear();
        c.problem
            .types
            .iter_mut()
            .for_each(|t| t.offerings[2].available = false);
    };
    case.legal_with(sold_out);
    case.broken_by(Rule::Spread, "a node is in c", |c| {
        sold_out(c);
        c.node("old", "c");
    });
    case.broken_by(Rule::Spread, "a closed node is in c", |c| {
        sold_out(c);
        c.node("old", "c");
        c.problem.nodes[0].closed = true;
    });
    case.legal_with(|c| {
        sold_out(c);
        c.problem.pools.push(pool("closed", &[SMALL]));
        c.problem.types[1].offerings[2].available = true;
        c.problem.pools[1].types = vec![LARGE];
        c.problem.pools[0].types = vec![SMALL];
        c.problem.pools[1].closed = Some("not ready".into());
        c.plan
            .launches
            .iter_mut()
            .for_each(|l| l.types = vec![SMALL]);
        c.settle();
    });
}

#[test]
fn tainted_domains() {
    // Zone c exists only on a tainted pool.
    let mut case = case();
    case.problem.types.push(instance_type("far", 2000, 4, 1));
    case.problem.types[2].offerings = vec![offering("d", "on-demand", 1)];
    case.problem
        .pools
        .push(pool("far", &[joiner_model::TypeIx(2)]));
    case.problem.pools[1].taints = vec![taint("far", Effect::NoSchedule)];
    case.breaks(
        Rule::Spread,
        "untolerated domains count unless taints are honored",
    );
    case.shape_of(PodIx(0)).spreads[0].honor_taints = true;
    let case = case.legal();
    case.broken_by(Rule::Spread, "tolerated, it counts", |c| {
        c.shape_of(PodIx(0)).tolerations = vec![tolerating("far")];
    });
    // Of two nodes alike, the one without the taint makes a domain; so does the one not excluded.
    let two_in_e = |c: &mut Case| {
        c.node("first", "e");
        c.node("second", "e");
        c.problem.nodes[0].taints = vec![taint("far", Effect::NoSchedule)];
    };
    case.broken_by(Rule::Spread, "the second node", two_in_e);
    case.legal_with(|c| {
        two_in_e(c);
        c.problem.nodes[1].taints = c.problem.nodes[0].taints.clone();
    });
    case.broken_by(Rule::Spread, "the second by name", |c| {
        two_in_e(c);
        c.shape_of(PodIx(0)).spreads[0].honor_taints = false;
        c.problem.pools.pop();
        c.shape_of(PodIx(0)).node_selector = vec![rule(HOST, Operator::NotIn, &["first"])];
    });
    case.legal_with(|c| {
        two_in_e(c);
        c.shape_of(PodIx(0)).spreads[0].honor_taints = false;
        c.problem.pools.pop();
        let both = rule(HOST, Operator::NotIn, &["first", "second"]);
        c.shape_of(PodIx(0)).node_selector = vec![both];
    });
    // Pods on tainted nodes do not count either.
    let tainted = |c: &mut Case| {
        let node = c.node("old", "c");
        c.bound(node, &shape("web"));
        c.bound(node, &shape("web"));
        c.problem.nodes[0].taints = vec![taint("far", Effect::NoSchedule)];
        let pod = c.pod(&spread(ZONE));
        c.problem[pod].shape = c.problem.pods[0].shape;
        c.in_zone("c", &[pod]);
    };
    case.legal_with(tainted);
    case.broken_by(Rule::Spread, "without the taint they do", |c| {
        tainted(c);
        c.problem.nodes[0].taints.clear();
    });
}

#[test]
fn min_domains() {
    let mut case = Case::new();
    let pods = case.pods(3, &spread(ZONE));
    for (zone, pod) in ["a", "b", "c"].into_iter().zip(pods) {
        case.in_zone(zone, &[pod]);
    }
    let case = case.legal();
    case.legal_with(|c| c.shape_of(PodIx(0)).spreads[0].min_domains = Some(4));
    let fourth = |c: &mut Case, min| {
        c.shape_of(PodIx(0)).spreads[0].min_domains = min;
        let shape = c.problem.shapes[0].clone();
        let pod = c.pod(&shape);
        c.in_zone("a", &[pod]);
    };
    case.legal_with(|c| fourth(c, Some(3)));
    case.broken_by(
        Rule::Spread,
        "with too few domains the lowest is empty",
        |c| fourth(c, Some(4)),
    );
}

#[test]
fn hosts_are_never_short() {
    let mut case = Case::new();
    let node = case.node("old", "a");
    let pods = case.pods(2, &spread(HOST));
    case.place(node, &pods[..1]);
    case.launch(&[SMALL, LARGE], &[], &pods[1..]);
    let case = case.legal();
    case.broken_by(Rule::Spread, "two on a new node", |c| {
        c.plan.placements.clear();
        c.plan.launches[0].pods = vec![PodIx(0), PodIx(1)];
        c.settle();
    });
    case.broken_by(Rule::Spread, "two on an old node", |c| {
        c.plan.launches.clear();
        c.place(node, &[PodIx(1)]);
        c.settle();
    });
    case.broken_by(Rule::Spread, "one runs there", |c| {
        c.bound(node, &shape("web"));
    });
}

#[test]
fn order_of_admission_is_free() {
    // Pods of the same app without the rule may come first, or last.
    let mut case = Case::new();
    let bound_by_it = case.pods(2, &spread(ZONE));
    let free = case.pods(3, &shape("web"));
    case.in_zone("a", &bound_by_it);
    case.in_zone("b", &free[..1]);
    case.in_zone("c", &free[1..]);
    let case = case.legal();
    case.broken_by(Rule::Spread, "nobody in b can come first", |c| {
        move_to(c, 1, "a")
    });
    case.broken_by(
        Rule::Spread,
        "on nodes that do not count, they do not help",
        |c| {
            c.shape_of(bound_by_it[0]).node_selector = vec![is("team", "red")];
            c.problem.pools.push(pool("red", &[SMALL]));
            c.problem.pools[1]
                .labels
                .insert("team".into(), "red".into());
            c.plan.launches[0].pool = joiner_model::PoolIx(1);
            c.plan.launches[0].types = vec![SMALL];
            c.settle();
        },
    );
}

#[test]
fn helpers_on_tainted_nodes() {
    let mut case = Case::new();
    let mut web = spread(ZONE);
    web.spreads[0].honor_taints = true;
    let bound_by_it = case.pods(2, &web);
    let mut free = shape("web");
    free.tolerations = vec![tolerating("far")];
    let free = case.pods(2, &free);
    case.problem.pools.push(pool("far", &[SMALL, LARGE]));
    case.in_zone("a", &bound_by_it);
    for (zone, pod) in ["b", "c"].into_iter().zip(free) {
        let far = joiner_model::PoolIx(1);
        case.launch_from(far, &[SMALL], &[is(ZONE, zone)], &[pod]);
    }
    let case = case.legal();
    case.broken_by(Rule::Spread, "they do not count", |c| {
        c.problem.pools[1].taints = vec![taint("far", Effect::NoSchedule)];
    });
    case.legal_with(|c| {
        c.problem.pools[1].taints = vec![taint("far", Effect::NoSchedule)];
        c.shape_of(bound_by_it[0]).tolerations = vec![tolerating("far")];
    });
}

#[test]
fn pods_that_count_others_only() {
    let mut case = Case::new();
    let node = case.node("old", "a");
    case.bound(node, &shape("web"));
    case.bound(node, &shape("web"));
    let mut other = shape("other");
    other.spreads = vec![over(ZONE, "web")];
    let pod = case.pod(&other);
    case.in_zone("b", &[pod]);
    let case = case.legal();
    case.broken_by(Rule::Spread, "a is too full for it", |c| move_to(c, 0, "a"));
    case.legal_with(|c| {
        move_to(c, 0, "a");
        for zone in ["b", "c"] {
            let web = c.pod(&shape("web"));
            c.in_zone(zone, &[web]);
        }
    });
    // Without a selector every bound pod of the namespace counts.
    case.broken_by(Rule::Spread, "no selector", |c| {
        move_to(c, 0, "a");
        c.shape_of(pod).spreads[0].selector = None;
        for zone in ["b", "c"] {
            let web = c.pod(&shape("web"));
            c.in_zone(zone, &[web]);
        }
    });
    case.legal_with(|c| c.shape_of(pod).spreads[0].selector = None);
}

#[test]
fn labels_of_the_pools_own_making_are_domains() {
    let mut case = Case::new();
    case.problem.pools[0]
        .requirements
        .add(rule("ring", Operator::In, &["1", "2"]));
    let pods = case.pods(3, &spread("ring"));
    for (ring, pod) in ["1", "2", "1"].into_iter().zip(pods) {
        case.launch(&[SMALL], &[is("ring", ring)], &[pod]);
    }
    let case = case.legal();
    case.broken_by(Rule::Spread, "nobody in 2", |c| {
        c.plan.launches[1].requirements = vec![is("ring", "1")];
    });
    case.broken_by(Rule::Spread, "open", |c| {
        c.plan.launches[1].requirements.clear()
    });
}

#[test]
fn several_rules_hold_at_once() {
    let mut both = spread(ZONE);
    both.spreads.push(over(HOST, "web"));
    let mut case = Case::new();
    let pods = case.pods(3, &both);
    for (zone, pod) in ["a", "b", "c"].into_iter().zip(&pods) {
        case.in_zone(zone, &[*pod]);
    }
    let case = case.legal();
    case.broken_by(Rule::Spread, "zones", |c| move_to(c, 2, "a"));
    case.broken_by(Rule::Spread, "hosts", |c| {
        let more = c.pods(1, &both);
        c.plan.launches[0].pods.extend(more);
        c.settle();
    });
    case.legal_with(|c| {
        let more = c.pods(1, &both);
        c.in_zone("a", &more);
    });
}

#[test]
fn bound_pods_count_only_on_nodes_that_the_pod_selects() {
    let mut case = Case::new();
    let node = case.node("old", "a");
    case.bound(node, &shape("web"));
    let mut web = spread(ZONE);
    web.node_selector = vec![is(joiner_model::keys::ARCH, "amd64")];
    let pod = case.pod(&web);
    case.bound(node, &web);
    case.in_zone("a", &[pod]);
    let case = case.legal();
    case.broken_by(Rule::Spread, "selected", |c| {
        c.problem.nodes[0]
            .labels
            .insert(joiner_model::keys::ARCH.into(), "amd64".into());
    });
    case.broken_by(Rule::Spread, "selection does not count", |c| {
        c.shape_of(pod).spreads[0].honor_affinity = false;
    });
    // The same by the name of the host.
    case.legal_with(|c| {
        c.shape_of(pod).node_selector = vec![rule(HOST, Operator::NotIn, &["old"])];
    });
    case.broken_by(Rule::Spread, "selected by name", |c| {
        c.shape_of(pod).node_selector = vec![rule(HOST, Operator::NotIn, &["older"])];
    });
}

#[test]
fn revisions_are_spread_apart() {
    // Two constraints that differ count differently.
    let mut case = case();
    let mut next = spread(ZONE);
    next.labels.insert("revision".into(), "2".into());
    next.spreads[0].selector = Some(joiner_model::Selector::new(vec![
        joiner_model::SelectorExpr {
            key: "revision".into(),
            op: joiner_model::SelectorOp::In,
            values: ["2".into()].into(),
        },
    ]));
    let pods = case.pods(2, &next);
    case.in_zone("b", &pods[..1]);
    case.in_zone("c", &pods[1..]);
    case.legal()
        .broken_by(Rule::Spread, "both in b", |c| move_to(c, 5, "b"));
}
