use joiner_model::{
    Effect, NanoDollars, OfferingIx, Operator, PodIx, ResourceName, Resources, TypeIx, keys,
};
use joiner_verify::Rule;

use crate::support::*;

fn case() -> Case {
    let mut case = Case::new();
    let pods = case.pods(2, &shape("web"));
    case.launch(&[SMALL, LARGE], &[], &pods[..1]);
    case.launch(&[LARGE], &[is(ZONE, "b")], &pods[1..]);
    case.legal()
}

#[test]
fn pool_is_in_use() {
    case().broken_by(Rule::ClosedPool, "closed", |c| {
        c.problem.pools[0].closed = Some("its class is not ready".into());
    });
}

#[test]
fn names_and_pods() {
    let case = case();
    case.broken_by(Rule::Launch, "same name", |c| {
        c.plan.launches[1].name = "new-0".into()
    });
    case.broken_by(Rule::Launch, "no pods", |c| {
        c.launch(&[SMALL], &[], &[]);
    });
}

#[test]
fn listed_types() {
    let case = case();
    case.broken_by(Rule::Types, "none", |c| {
        c.plan.launches[0].types.clear();
        c.plan.cost.price = c.plan.launches[1].price;
        c.plan.cost.bound = NanoDollars::ZERO;
    });
    case.broken_by(Rule::Types, "twice", |c| {
        c.plan.launches[0].types = vec![SMALL, SMALL]
    });
    case.broken_by(Rule::Types, "not of the pool", |c| {
        c.problem
            .types
            .push(instance_type("other", 2000, 4, 100_000_000));
        c.plan.launches[0].types.push(TypeIx(2));
    });
    case.broken_by(Rule::Types, "sold out", |c| {
        let in_b = &mut c.problem.types[1].offerings[1];
        in_b.available = false;
        c.plan.cost.price = c.plan.launches[0].price;
        c.plan.cost.bound = NanoDollars::ZERO;
    });
    case.broken_by(Rule::Types, "excluded by a requirement", |c| {
        c.plan.launches[0]
            .requirements
            .push(is(keys::INSTANCE_TYPE, "small"));
    });
    case.broken_by(Rule::Types, "excluded by the pool", |c| {
        c.problem.pools[0]
            .requirements
            .add(rule(keys::INSTANCE_TYPE, Operator::NotIn, &["small"]));
        c.plan.launches[0].types = vec![LARGE, SMALL];
        c.settle();
        c.plan.launches[0].offering = (LARGE, OfferingIx(0));
        c.plan.launches[0].price = NanoDollars::new(400_000_000);
        c.plan.cost.price = NanoDollars::new(800_000_000);
    });
    case.broken_by(Rule::Types, "contradicts a label of the pool", |c| {
        c.problem.pools[0].labels.insert(ZONE.into(), "a".into());
        c.plan.cost.price = c.plan.launches[0].price;
        c.plan.cost.bound = NanoDollars::ZERO;
    });
}

#[test]
fn six_hundred_types_at_most() {
    let mut case = Case::new();
    let pod = case.pod(&shape("web"));
    for n in 2..601 {
        case.problem
            .types
            .push(instance_type(&format!("t{n}"), 2000, 4, 500_000_000));
        case.problem.pools[0].types.push(TypeIx(n));
    }
    let types: Vec<TypeIx> = (0..600).map(TypeIx).collect();
    case.launch(&types, &[], &[pod]);
    let case = case.legal();
    case.broken_by(Rule::Types, "601", |c| {
        c.plan.launches[0].types.push(TypeIx(600))
    });
}

#[test]
fn cheapest_first() {
    let case = case();
    case.broken_by(Rule::Order, "dearest first", |c| {
        c.plan.launches[0].types.reverse()
    });
    // What counts is the cheapest offering left, not the cheapest there is.
    case.broken_by(Rule::Order, "small is dear where it is left", |c| {
        c.problem.types[0].offerings[2].price = NanoDollars::new(500_000_000);
        c.plan.launches[0].requirements = vec![is(ZONE, "c")];
        c.settle();
    });
}

#[test]
fn recorded_offering_is_the_cheapest_left() {
    let case = case();
    case.broken_by(Rule::Price, "wrong price", |c| {
        c.plan.launches[0].price = NanoDollars::new(1)
    });
    case.broken_by(Rule::Price, "dearer type", |c| {
        c.plan.launches[0].offering = (LARGE, OfferingIx(0));
        c.plan.launches[0].price = NanoDollars::new(400_000_000);
    });
    case.broken_by(Rule::Price, "not left", |c| {
        c.plan.launches[1].offering.1 = OfferingIx(0)
    });
    case.broken_by(Rule::Price, "not listed", |c| {
        c.plan.launches[1].offering.0 = SMALL
    });
    case.broken_by(Rule::Price, "not there", |c| {
        c.plan.launches[1].offering.1 = OfferingIx(9)
    });
    case.broken_by(Rule::Price, "sold out", |c| {
        c.problem.types[0].offerings[0].available = false;
    });
    case.broken_by(Rule::Price, "cheaper one left", |c| {
        c.problem.types[1]
            .offerings
            .push(offering("b", "spot", 50_000_000));
        c.plan.cost.price = NanoDollars::new(100_000_000);
        c.plan.launches[0].types = vec![LARGE, SMALL];
        c.plan.launches[0].offering = (LARGE, OfferingIx(3));
        c.plan.launches[0].price = NanoDollars::new(50_000_000);
        c.plan.cost.bound = NanoDollars::ZERO;
    });
}

#[test]
fn recorded_requests_are_those_of_the_pods() {
    let case = case();
    let gpu = ResourceName::parse("example.com/gpu");
    case.broken_by(Rule::Requests, "too little", |c| {
        c.plan.launches[0].requests = resources(900, 1, 1);
    });
    case.broken_by(Rule::Requests, "something else", |c| {
        c.plan.launches[0].requests.set(gpu.clone(), 1);
    });
    case.legal_with(|c| c.plan.launches[0].requests.set(gpu.clone(), 0));
    case.broken_by(Rule::Requests, "nothing", |c| {
        c.plan.launches[0].requests = Resources::new()
    });
}

#[test]
fn taints_of_the_pool() {
    let case = case();
    let tainted = |c: &mut Case, effect| {
        c.problem.pools[0].taints.push(taint("dedicated", effect));
    };
    for effect in [Effect::NoSchedule, Effect::NoExecute] {
        case.broken_by(Rule::Taint, "not tolerated", |c| tainted(c, effect));
        case.legal_with(|c| {
            tainted(c, effect);
            c.shape_of(PodIx(0))
                .tolerations
                .push(tolerating("dedicated"));
        });
    }
    case.legal_with(|c| tainted(c, Effect::PreferNoSchedule));
    case.legal_with(|c| {
        c.problem.pools[0]
            .startup_taints
            .push(taint("boot", Effect::NoSchedule));
    });
}
