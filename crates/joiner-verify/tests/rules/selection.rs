use joiner_model::{Operator, PodIx, TypeIx, keys};
use joiner_verify::Rule;

use crate::support::*;

/// A pod under a selection on a node that the launch narrows down for it.
fn case(
    change: impl FnOnce(&mut joiner_model::PodShape),
    narrowed: &[joiner_model::Requirement],
) -> Case {
    let mut case = Case::new();
    let mut web = shape("web");
    change(&mut web);
    let pod = case.pod(&web);
    case.launch(&[SMALL, LARGE], narrowed, &[pod]);
    case
}

#[test]
fn every_offering_left_is_selected() {
    let narrow = [rule(ZONE, Operator::In, &["a", "b"])];
    let case = case(
        |s| s.node_selector = vec![rule(ZONE, Operator::NotIn, &["c"])],
        &narrow,
    )
    .legal();
    let text = case.broken_by(Rule::Selection, "zone c is left", |c| {
        c.plan.launches[0].requirements.clear();
    });
    assert_eq!(
        text,
        "node new-0: pod web/pod-0 does not select small in c (on-demand)"
    );
    // A sold out offering is not one that is left.
    case.legal_with(|c| {
        c.plan.launches[0].requirements.clear();
        c.problem
            .types
            .iter_mut()
            .for_each(|t| t.offerings[2].available = false);
    });
}

#[test]
fn one_of_the_required_terms_holds_everywhere() {
    let terms = vec![
        vec![is(ZONE, "a")],
        vec![is(ZONE, "b"), is(keys::ARCH, "amd64")],
    ];
    let narrow = [rule(ZONE, Operator::NotIn, &["c"])];
    let case = case(|s| s.node_terms = terms, &narrow).legal();
    case.broken_by(Rule::Selection, "second term fails", |c| {
        c.problem.types[1]
            .labels
            .insert(keys::ARCH.into(), vec!["arm64".into()]);
    });
    case.broken_by(Rule::Selection, "no term for c", |c| {
        c.plan.launches[0].requirements.clear()
    });
    case.broken_by(Rule::Selection, "an empty term selects nothing", |c| {
        c.shape_of(PodIx(0)).node_terms = vec![Vec::new()];
    });
}

#[test]
fn volumes_are_reached_everywhere() {
    let terms = vec![vec![is(ZONE, "a")], vec![is(ZONE, "b")]];
    let narrow = [rule(ZONE, Operator::In, &["a", "b"])];
    let case = case(|s| s.volume_terms = terms, &narrow).legal();
    case.broken_by(Rule::Volumes, "zone c", |c| {
        c.plan.launches[0].requirements.clear()
    });
    case.legal_with(|c| c.shape_of(PodIx(0)).volume_terms = vec![Vec::new()]);
}

#[test]
fn labels_of_types() {
    let narrow = [rule(keys::INSTANCE_TYPE, Operator::Exists, &[])];
    let case = case(|s| s.node_selector = vec![is(keys::ARCH, "amd64")], &narrow).legal();
    case.broken_by(Rule::Selection, "another value", |c| {
        c.problem.types[1]
            .labels
            .insert(keys::ARCH.into(), vec!["arm64".into()]);
    });
    case.broken_by(Rule::Selection, "one of several values", |c| {
        let both = vec!["amd64".into(), "arm64".into()];
        c.problem.types[1].labels.insert(keys::ARCH.into(), both);
    });
    case.broken_by(Rule::Selection, "no such label", |c| {
        c.problem.types[1].labels.remove(keys::ARCH);
    });
    case.legal_with(|c| {
        let both = vec!["amd64".into(), "arm64".into()];
        c.problem.types[1].labels.insert(keys::ARCH.into(), both);
        c.plan.launches[0].requirements = vec![is(keys::ARCH, "amd64")];
    });
}

#[test]
fn the_pool_chooses_among_the_values_of_a_type() {
    let mut case = case(|_| (), &[]);
    for ty in &mut case.problem.types {
        ty.labels
            .insert(keys::OS.into(), vec!["linux".into(), "windows".into()]);
    }
    case.problem.pools[0]
        .requirements
        .add(is(keys::OS, "windows"));
    let case = case.legal();
    case.broken_by(Rule::Selection, "the other one", |c| {
        c.shape_of(PodIx(0)).node_selector = vec![is(keys::OS, "linux")];
    });
}

#[test]
fn a_new_host_has_a_name_that_nobody_knows() {
    let case = case(
        |s| s.node_selector = vec![rule(HOST, Operator::NotIn, &["x"])],
        &[],
    )
    .legal();
    case.legal_with(|c| {
        c.shape_of(PodIx(0)).node_selector = vec![rule(HOST, Operator::Exists, &[])];
    });
    case.broken_by(Rule::Selection, "its own name", |c| {
        c.shape_of(PodIx(0)).node_selector = vec![is(HOST, "new-0")];
    });
    case.legal_with(|c| c.plan.launches[0].requirements.push(is(HOST, "new-0")));
}

/// The pool makes a label of its own.
fn custom(pool: joiner_model::Requirement, pod: joiner_model::Requirement) -> Case {
    let mut case = case(|s| s.node_selector = vec![pod], &[is("team", "red")]);
    case.problem.pools[0].requirements.add(pool);
    case.problem.pools[0]
        .requirements
        .add(is("nobody.cares/about", "this"));
    case
}

#[test]
fn labels_of_the_pools_own_making() {
    let listed = rule("team", Operator::In, &["red", "blue"]);
    let case = custom(listed, is("team", "red")).legal();
    case.broken_by(Rule::Selection, "blue is left", |c| {
        c.plan.launches[0].requirements.clear()
    });
    case.broken_by(Rule::Types, "no value is left", |c| {
        c.plan.launches[0].requirements = vec![is("team", "green")];
        c.plan.cost = Default::default();
    });
    case.broken_by(Rule::Types, "the pool does not define it", |c| {
        c.problem.pools[0].requirements = Default::default();
        c.plan.cost = Default::default();
    });
    let any = custom(
        rule("team", Operator::Exists, &[]),
        rule("team", Operator::NotIn, &["red"]),
    );
    any.broken_by(Rule::Selection, "red", |_| ());
    any.broken_by(Rule::Selection, "red is among any", |c| {
        c.plan.launches[0].requirements.clear()
    });
    any.legal_with(|c| {
        c.plan.launches[0].requirements = vec![rule("team", Operator::NotIn, &["red"])];
    });
    let numbers = custom(
        rule("team", Operator::Gt, &["5"]),
        rule("team", Operator::Lt, &["9"]),
    );
    numbers.broken_by(Rule::Selection, "nine is left", |c| {
        c.plan.launches[0].requirements.clear();
    });
    numbers.legal_with(|c| {
        c.plan.launches[0].requirements = vec![rule("team", Operator::Lt, &["9"])];
    });
}

#[test]
fn a_label_that_nothing_calls_for_is_absent() {
    let none = rule("team", Operator::DoesNotExist, &[]);
    let mut case = custom(rule("team", Operator::NotIn, &["red"]), none);
    case.plan.launches[0].requirements.clear();
    case.problem.pools[0]
        .requirements
        .add(rule(ZONE, Operator::Exists, &[]));
    let case = case.legal();
    case.broken_by(Rule::Selection, "the launch gives it one", |c| {
        c.plan.launches[0].requirements = vec![is("team", "blue")];
    });
}

#[test]
fn a_key_of_one_type_is_absent_on_the_others() {
    let mut case = case(
        |s| s.node_selector = vec![is("tier", "gold")],
        &[is("tier", "gold")],
    );
    case.problem.types[0]
        .labels
        .insert("tier".into(), vec!["gold".into()]);
    case.plan.launches[0].types = vec![SMALL];
    case.settle();
    let case = case.legal();
    case.broken_by(Rule::Types, "large has no tier", |c| {
        c.plan.launches[0].types = vec![SMALL, LARGE];
    });
    case.legal_with(|c| {
        c.plan.launches[0].types = vec![LARGE];
        c.plan.launches[0].requirements.clear();
        c.shape_of(PodIx(0)).node_selector = vec![rule("tier", Operator::DoesNotExist, &[])];
        c.settle();
    });
    case.broken_by(Rule::Selection, "small has a tier", |c| {
        c.plan.launches[0].requirements.clear();
        c.shape_of(PodIx(0)).node_selector = vec![rule("tier", Operator::DoesNotExist, &[])];
    });
    case.broken_by(Rule::Types, "not even if the pool asks", |c| {
        c.problem.pools[0]
            .requirements
            .add(rule("tier", Operator::Exists, &[]));
        c.plan.launches[0].types = vec![SMALL, LARGE];
    });
}

#[test]
fn the_name_of_a_type_is_its_label() {
    let mut case = case(
        |s| s.node_selector = vec![is(keys::INSTANCE_TYPE, "small")],
        &[],
    );
    case.plan.launches[0].types = vec![SMALL];
    case.problem.types[0].labels.remove(keys::INSTANCE_TYPE);
    let case = case.legal();
    let labeled = |name: &'static str| {
        move |c: &mut Case| {
            let labels = &mut c.problem.pools[0].labels;
            labels.insert(keys::INSTANCE_TYPE.into(), name.into());
        }
    };
    case.legal_with(labeled("small"));
    case.broken_by(Rule::Types, "the pool says otherwise", |c| {
        labeled("large")(c);
        c.plan.cost = Default::default();
    });
}

#[test]
fn identical_nodes_are_told_apart_by_their_pods() {
    let mut case = Case::new();
    let mut picky = shape("picky");
    picky.node_selector = vec![is(keys::INSTANCE_TYPE, "small")];
    let plain = case.pods(2, &shape("web"));
    let picky = case.pod(&picky);
    case.launch(&[SMALL, LARGE], &[], &plain[..1]);
    case.launch(&[SMALL, LARGE], &[], &plain[1..]);
    let mut legal = case.clone();
    legal.launch(&[TypeIx(0)], &[], &[picky]);
    let legal = legal.legal();
    legal.broken_by(Rule::Selection, "large is listed", |c| {
        c.plan.launches[2].types.push(LARGE);
    });
}

#[test]
fn more_open_labels_than_can_be_looked_at() {
    let keys = ["x", "y", "z"];
    let mut case = case(
        |s| s.node_selector = keys.map(|k| rule(k, Operator::Exists, &[])).to_vec(),
        &[],
    );
    for key in keys {
        let values = (0..10).map(|n| n.to_string().into()).collect();
        case.problem.types[1].labels.insert(key.into(), values);
        case.problem.types[0]
            .labels
            .insert(key.into(), vec!["0".into()]);
    }
    let case = case.legal();
    let text = case.broken_by(Rule::Types, "8000 combinations", |c| {
        for key in keys {
            let values = (0..20).map(|n| n.to_string().into()).collect();
            c.problem.types[0].labels.insert(key.into(), values);
        }
        c.plan.launches[0].types = vec![LARGE];
        c.settle();
    });
    assert_eq!(
        text,
        "node new-0: leaves more label values open than can be checked"
    );
}

#[test]
fn a_host_without_a_label_is_known_by_its_name() {
    let mut case = Case::new();
    let node = case.node("old", "a");
    case.problem.nodes[0].labels.remove(HOST);
    let mut web = shape("web");
    web.node_selector = vec![is(HOST, "old")];
    let pod = case.pod(&web);
    case.place(node, &[pod]);
    case.legal()
        .broken_by(Rule::Selection, "another name", |c| {
            c.shape_of(pod).node_selector = vec![is(HOST, "older")];
        });
}
