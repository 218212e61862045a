//! All checks, in the order in which their findings are reported.

use joiner_model::{NanoDollars, Plan, Problem};

use crate::classes::Market;
use crate::ground::Ground;
use crate::topology::Topology;
use crate::violation::{Report, Rule, Violation};
use crate::{affinity, apart, census, existing, launches, limits, order, spread, weights};

/// Every rule that `plan` breaks, at most [`VIOLATIONS_MAX`](crate::VIOLATIONS_MAX) of them; none
/// when it is a legal answer to `problem`.
///
/// *Guarantees*: the same input gives the same list; nothing in a plan can make it panic.
/// *Assumptions*: the problem is consistent, every index in it points at something.
#[must_use]
pub fn check(problem: &Problem, plan: &Plan) -> Vec<Violation> {
    let ground = Ground::new(problem, plan);
    let mut report = Report::default();
    let seats = census::check(&ground, &mut report);
    let mut market = Market::new(&ground);
    launches::check(&ground, &mut market, &seats, &mut report);
    existing::check(&ground, &seats, &mut report);
    limits::check(&ground, &market, &mut report);
    let mut topology = Topology::new(&ground, &seats);
    let tallies = spread::check(&ground, &mut market, &mut topology, &mut report);
    affinity::check(&ground, &mut market, &mut topology, &mut report);
    order::check(&ground, &mut market, &mut topology, tallies, &mut report);
    apart::check(&ground, &mut market, &mut topology, &mut report);
    weights::check(&ground, &mut market, &mut topology, &seats, &mut report);
    cost(plan, price(&market), &mut report);
    report.into_violations()
}

/// What the new nodes of a plan cost an hour, each at its cheapest offering left. A launch that
/// leaves no offering costs nothing here; [`check`] reports it.
#[must_use]
pub fn price_of(problem: &Problem, plan: &Plan) -> NanoDollars {
    price(&Market::new(&Ground::new(problem, plan)))
}

fn price(market: &Market<'_>) -> NanoDollars {
    let classes = market.of_launch.iter().flatten();
    classes
        .filter_map(|class| market.classes[*class].cheapest)
        .sum()
}

fn cost(plan: &Plan, price: NanoDollars, report: &mut Report) {
    let said = plan.cost.price;
    if said != price {
        let text = format_args!("the plan says it costs {said} an hour, its nodes cost {price}");
        report.say(Rule::Price, text);
    }
    let bound = plan.cost.bound;
    if bound > price {
        let text = format_args!("the lower bound {bound} is above the price {price}");
        report.say(Rule::Bound, text);
    }
}
