use joiner_model::{Operator, PodIx, PodShape};
use joiner_verify::Rule;

use crate::support::*;

fn follower(key: &str, app: &str, target: &str) -> PodShape {
    let mut shape = shape(app);
    shape.affinity = vec![near(key, target)];
    shape
}

fn move_to(case: &mut Case, launch: usize, zone: &str) {
    case.plan.launches[launch].requirements = vec![is(ZONE, zone)];
    case.settle();
}

#[test]
fn near_a_pod_of_the_batch() {
    let mut case = Case::new();
    let pods = [
        case.pod(&shape("web")),
        case.pod(&follower(ZONE, "cache", "web")),
    ];
    case.in_zone("a", &pods[..1]);
    case.in_zone("a", &pods[1..]);
    let case = case.legal();
    let text = case.broken_by(Rule::Affinity, "another zone", |c| move_to(c, 1, "b"));
    assert_eq!(
        text,
        "pod web/pod-1 on node new-1: no pod that it must be near over topology.kubernetes.io/zone"
    );
    case.broken_by(Rule::Affinity, "target's zone is open", |c| {
        c.plan.launches[0].requirements.clear();
    });
    case.broken_by(Rule::Affinity, "other namespace", |c| {
        c.shape_of(PodIx(1)).affinity[0].namespaces = vec!["other".into()];
    });
    case.broken_by(Rule::Affinity, "no selector is no pod of the batch", |c| {
        c.shape_of(PodIx(1)).affinity[0].selector = None;
    });
    case.broken_by(Rule::Affinity, "no such label", |c| {
        c.shape_of(PodIx(1)).affinity[0].key = "rack".into();
    });
    case.broken_by(Rule::Affinity, "one of two terms", |c| {
        c.shape_of(PodIx(1)).affinity.push(near(ZONE, "nobody"));
    });
    let wish = |c: &mut Case| {
        let term = c.shape_of(PodIx(1)).affinity.remove(0);
        let wish = joiner_model::Preference { weight: 1, term };
        c.shape_of(PodIx(1)).preferred_affinity = vec![wish];
    };
    case.legal_with(|c| {
        move_to(c, 1, "b");
        wish(c);
    });
}

#[test]
fn near_a_pod_that_runs() {
    let mut case = Case::new();
    let node = case.node("old", "a");
    case.bound(node, &shape("web"));
    let pod = case.pod(&follower(ZONE, "cache", "web"));
    case.in_zone("a", &[pod]);
    let case = case.legal();
    case.broken_by(Rule::Affinity, "another zone", |c| move_to(c, 0, "b"));
    case.broken_by(Rule::Affinity, "on its way out", |c| {
        c.problem.pods[0].terminating = true
    });
    case.legal_with(|c| c.shape_of(pod).affinity[0].selector = None);
    case.broken_by(Rule::Affinity, "another node", |c| {
        c.shape_of(pod).affinity[0].key = HOST.into();
    });
    case.legal_with(|c| {
        c.shape_of(pod).affinity[0].key = HOST.into();
        c.plan.launches.clear();
        c.place(node, &[pod]);
        c.settle();
    });
}

#[test]
fn the_key_is_fixed() {
    let mut case = Case::new();
    let pods = case.pods(2, &follower(ZONE, "web", "web"));
    case.in_zone("a", &pods);
    let case = case.legal();
    let text = case.broken_by(Rule::Affinity, "open", |c| {
        c.plan.launches[0].requirements.clear()
    });
    assert!(text.ends_with("leaves open"), "{text}");
}

#[test]
fn a_group_of_its_own_opens_one_domain() {
    for key in [ZONE, HOST] {
        let mut case = Case::new();
        let pods = case.pods(2, &follower(key, "web", "web"));
        case.in_zone("a", &pods);
        let case = case.legal();
        case.broken_by(Rule::Affinity, "two domains", |c| {
            c.plan.launches[0].pods.truncate(1);
            c.in_zone("b", &pods[1..]);
        });
        case.broken_by(Rule::Affinity, "a match runs elsewhere", |c| {
            let node = c.node("old", "c");
            c.bound(node, &shape("web"));
        });
        case.legal_with(|c| {
            let node = c.node("old", "c");
            let leaving = c.bound(node, &shape("web"));
            c.problem[leaving].terminating = true;
        });
    }
}

#[test]
fn a_match_out_of_reach_binds_nobody() {
    let mut case = Case::new();
    let mut web = follower(ZONE, "web", "web");
    web.node_selector = vec![rule(ZONE, Operator::In, &["a", "b"])];
    let pods = case.pods(2, &web);
    case.in_zone("a", &pods);
    let node = case.node("old", "c");
    case.bound(node, &shape("web"));
    let case = case.legal();
    case.broken_by(Rule::Affinity, "within reach", |c| {
        c.problem.nodes[0].labels.insert(ZONE.into(), "b".into());
    });
    let by_terms = |c: &mut Case, terms: &[&[&str]]| {
        c.shape_of(PodIx(0)).node_selector.clear();
        let terms = terms
            .iter()
            .map(|zones| vec![rule(ZONE, Operator::In, zones)]);
        c.shape_of(PodIx(0)).node_terms = terms.collect();
    };
    case.legal_with(|c| by_terms(c, &[&["b"], &["a"]]));
    case.broken_by(Rule::Affinity, "within reach of one term", |c| {
        by_terms(c, &[&["c"], &["a"]])
    });
    case.broken_by(Rule::Affinity, "no term on the key", |c| {
        by_terms(c, &[]);
        let term = vec![is(joiner_model::keys::ARCH, "amd64")];
        c.shape_of(PodIx(0)).node_terms = vec![term];
    });
    case.legal_with(|c| {
        // An empty term reaches nothing.
        by_terms(c, &[&["a"]]);
        c.shape_of(PodIx(0)).node_terms.push(Vec::new());
    });
}

#[test]
fn pods_that_cannot_meet_open_two_domains() {
    let mut case = Case::new();
    for zone in ["a", "b"] {
        let mut web = follower(ZONE, "web", "web");
        web.node_selector = vec![is(ZONE, zone)];
        let pods = case.pods(2, &web);
        case.in_zone(zone, &pods);
    }
    let case = case.legal();
    // One side is free to choose: it opens last only if it cannot use the other.
    case.legal_with(|c| c.shape_of(PodIx(0)).node_selector.clear());
    case.broken_by(Rule::Affinity, "both are free to choose", |c| {
        c.shape_of(PodIx(0)).node_selector.clear();
        c.shape_of(PodIx(2)).node_selector.clear();
    });
}

#[test]
fn the_order_of_opening() {
    // Whoever cannot use the other domain opens its own last, and the rest follow.
    let mut case = Case::new();
    let free = follower(ZONE, "web", "web");
    let mut pinned = free.clone();
    pinned.node_selector = vec![is(ZONE, "a")];
    let pods = [case.pod(&free), case.pod(&pinned), case.pod(&free)];
    case.in_zone("a", &pods[..2]);
    case.in_zone("b", &pods[2..]);
    case.legal();
    // Each of three can use one of the others: whoever is last should have joined it.
    let mut circle = Case::new();
    for zones in [["a", "b"], ["b", "c"], ["c", "a"]] {
        let mut web = free.clone();
        web.node_selector = vec![rule(ZONE, Operator::In, &zones)];
        let pod = circle.pod(&web);
        circle.in_zone(zones[0], &[pod]);
    }
    circle.breaks(Rule::Affinity, "one too many");
    circle.shape_of(PodIx(2)).node_selector = vec![is(ZONE, "c")];
    circle.legal();
}

#[test]
fn chains() {
    let mut case = Case::new();
    let a = case.pod(&shape("a"));
    let b = case.pod(&follower(ZONE, "b", "a"));
    let c = case.pod(&follower(HOST, "c", "b"));
    case.in_zone("a", &[c, b]);
    case.in_zone("a", &[a]);
    let case = case.legal();
    case.broken_by(Rule::Affinity, "the chain hangs in the air", |case| {
        case.shape_of(a).labels = labels(&[("app", "other")]);
    });
    let mut circle = Case::new();
    let pods = [
        circle.pod(&follower(ZONE, "x", "y")),
        circle.pod(&follower(ZONE, "y", "x")),
    ];
    circle.in_zone("a", &pods);
    circle.breaks(Rule::Affinity, "a circle has no first");
    // A group of its own with a hanger-on that it would also match.
    let mut group = Case::new();
    let mut hanger = follower(ZONE, "web", "web");
    hanger.affinity.push(near(HOST, "web"));
    let pods = [group.pod(&follower(ZONE, "web", "web")), group.pod(&hanger)];
    group.in_zone("a", &pods);
    group.legal();
}

#[test]
fn free_matches_do_not_stop_a_group_from_opening() {
    // The group may come first and the others later.
    let mut case = Case::new();
    let pods = case.pods(1, &follower(ZONE, "web", "web"));
    let free = case.pods(1, &shape("web"));
    case.in_zone("a", &pods);
    case.in_zone("b", &free);
    case.legal();
}

#[test]
fn a_new_host_is_out_of_reach_for_a_pod_that_names_another() {
    let mut case = Case::new();
    let node = case.node("old", "a");
    let mut named = follower(HOST, "web", "web");
    named.node_selector = vec![is(HOST, "old")];
    let pods = [case.pod(&named), case.pod(&follower(HOST, "web", "web"))];
    case.place(node, &pods[..1]);
    case.in_zone("a", &pods[1..]);
    let case = case.legal();
    case.broken_by(Rule::Affinity, "it may be anywhere", |c| {
        c.shape_of(pods[0]).node_selector.clear();
    });
}

#[test]
fn a_stranger_opens_a_second_domain() {
    // The group opens the second node. That brings a pod to the first, and one of its own labels
    // after it, so that the group can follow there.
    let mut case = Case::new();
    let group = follower(HOST, "web", "web");
    let pods = [
        case.pod(&group),
        case.pod(&follower(ZONE, "bridge", "web")),
        case.pod(&follower(HOST, "web", "bridge")),
        case.pod(&group),
    ];
    case.launch(&[LARGE], &[is(ZONE, "a")], &pods[..3]);
    case.in_zone("a", &pods[3..]);
    let case = case.legal();
    case.broken_by(Rule::Affinity, "the stranger is no match", |c| {
        c.shape_of(pods[2]).labels = labels(&[("app", "other")]);
    });
    case.broken_by(Rule::Affinity, "the stranger waits for the group", |c| {
        c.shape_of(pods[1]).affinity = vec![near(HOST, "web")];
    });
}
