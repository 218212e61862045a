use joiner_model::{Operator, PodIx, PodShape, Selector, SelectorExpr, SelectorOp};
use joiner_verify::Rule;

use crate::support::*;

fn hermit(key: &str, app: &str, target: &str) -> PodShape {
    let mut shape = shape(app);
    shape.anti_affinity = vec![near(key, target)];
    shape
}

fn move_to(case: &mut Case, launch: usize, zone: &str) {
    case.plan.launches[launch].requirements = vec![is(ZONE, zone)];
    case.settle();
}

#[test]
fn apart_in_both_directions() {
    for owner in [0, 1] {
        let mut case = Case::new();
        let mut shapes = [shape("x"), shape("y")];
        shapes[owner].anti_affinity = vec![near(ZONE, ["y", "x"][owner])];
        let pods = shapes.map(|shape| case.pod(&shape));
        case.in_zone("a", &pods[..1]);
        case.in_zone("b", &pods[1..]);
        let case = case.legal();
        let text = case.broken_by(Rule::AntiAffinity, "same zone", |c| move_to(c, 1, "a"));
        let (one, two) = (owner, 1 - owner);
        assert_eq!(
            text,
            format!(
                "pod web/pod-{one} must be apart from pod web/pod-{two} over \
                 topology.kubernetes.io/zone, but both may be in a"
            )
        );
        case.broken_by(
            Rule::AntiAffinity,
            "a zone left open may be the same",
            |c| {
                c.plan.launches[1].requirements.clear();
            },
        );
        case.legal_with(|c| {
            c.plan.launches[1].requirements = vec![rule(ZONE, Operator::NotIn, &["a"])];
        });
        case.broken_by(Rule::AntiAffinity, "same node", |c| {
            c.plan.launches.pop();
            c.plan.launches[0].pods = pods.to_vec();
            c.settle();
        });
        case.legal_with(|c| {
            move_to(c, 1, "a");
            c.shape_of(pods[owner]).anti_affinity[0].namespaces = vec!["other".into()];
        });
        case.legal_with(|c| {
            move_to(c, 1, "a");
            let term = c.shape_of(pods[owner]).anti_affinity.remove(0);
            let wish = joiner_model::Preference { weight: 1, term };
            c.shape_of(pods[owner]).preferred_anti_affinity = vec![wish];
        });
        case.legal_with(|c| {
            // Nodes without the label are in no domain.
            move_to(c, 1, "a");
            c.shape_of(pods[owner]).anti_affinity[0].key = "rack".into();
        });
    }
}

#[test]
fn apart_from_its_own_kind() {
    let mut case = Case::new();
    let pods = case.pods(2, &hermit(HOST, "web", "web"));
    case.launch(&[SMALL, LARGE], &[], &pods[..1]);
    case.launch(&[SMALL, LARGE], &[], &pods[1..]);
    let case = case.legal();
    case.broken_by(Rule::AntiAffinity, "two on one node", |c| {
        c.plan.launches.pop();
        c.plan.launches[0].pods = pods.clone();
        c.settle();
    });
    case.broken_by(
        Rule::AntiAffinity,
        "another kind with the same label",
        |c| {
            let other = c.pod(&shape("web"));
            c.plan.launches[0].pods.push(other);
            c.settle();
        },
    );
    case.legal_with(|c| {
        let other = c.pod(&shape("other"));
        c.plan.launches[0].pods.push(other);
        c.settle();
    });
}

#[test]
fn apart_from_pods_that_run() {
    for owner_runs in [false, true] {
        let mut case = Case::new();
        let node = case.node("old", "a");
        let (running, new) = match owner_runs {
            true => (hermit(ZONE, "x", "y"), shape("y")),
            false => (shape("x"), hermit(ZONE, "y", "x")),
        };
        let running = case.bound(node, &running);
        let pod = case.pod(&new);
        case.in_zone("b", &[pod]);
        let case = case.legal();
        case.broken_by(Rule::AntiAffinity, "same zone", |c| move_to(c, 0, "a"));
        case.broken_by(Rule::AntiAffinity, "same node", |c| {
            c.plan.launches.clear();
            c.place(node, &[pod]);
            c.settle();
        });
        case.legal_with(|c| {
            move_to(c, 0, "a");
            c.problem[running].terminating = true;
        });
        // Without a selector: no pod of the batch, every bound one.
        let unselective = |c: &mut Case| {
            move_to(c, 0, "a");
            let owner = if owner_runs { running } else { pod };
            c.shape_of(owner).anti_affinity[0].selector = None;
        };
        if owner_runs {
            case.legal_with(unselective);
        } else {
            case.broken_by(Rule::AntiAffinity, "no selector", unselective);
        }
    }
}

#[test]
fn what_was_wrong_before_is_not_the_plans_fault() {
    let mut case = Case::new();
    let node = case.node("old", "a");
    case.bound(node, &hermit(ZONE, "x", "x"));
    case.bound(node, &hermit(ZONE, "x", "x"));
    let pod = case.pod(&shape("y"));
    case.in_zone("a", &[pod]);
    case.legal().broken_by(Rule::AntiAffinity, "one more", |c| {
        c.shape_of(PodIx(2)).labels = labels(&[("app", "x")]);
    });
}

#[test]
fn selectors_of_every_kind() {
    use SelectorOp::{DoesNotExist, Exists, In, NotIn};
    let table: [(SelectorOp, &str, &[&str], bool); 8] = [
        (In, "app", &["z", "y"], true),
        (In, "app", &["z"], false),
        (NotIn, "app", &["z"], true),
        (NotIn, "app", &["y"], false),
        (Exists, "app", &[], true),
        (Exists, "tier", &[], false),
        (DoesNotExist, "tier", &[], true),
        (DoesNotExist, "app", &[], false),
    ];
    for (op, key, values, matches) in table {
        let mut case = Case::new();
        let mut hermit = hermit(ZONE, "x", "y");
        hermit.labels = labels(&[("name", "hermit")]);
        let values = values.iter().map(|v| (*v).into()).collect();
        let expr = SelectorExpr {
            key: key.into(),
            op,
            values,
        };
        let not_itself = SelectorExpr {
            key: "name".into(),
            op: NotIn,
            values: ["hermit".into()].into(),
        };
        hermit.anti_affinity[0].selector = Some(Selector::new(vec![expr, not_itself]));
        let pods = [case.pod(&hermit), case.pod(&shape("y"))];
        case.in_zone("a", &pods);
        if matches {
            case.breaks(Rule::AntiAffinity, &format!("{op:?} {key}"));
        } else {
            case.legal();
        }
    }
}
