//! What a price is worth: how far it is from the bound, what preferences cost, and whose prices it is
//! made of.

use std::collections::BTreeSet;

use joiner_model::{NanoDollars, Plan, PodIx, PodShape, PreferencePolicy, Problem};

use crate::plan_json::{Timings, dollars};

/// A gap above this, as a share of the bound, is looked at: preferences may be the reason.
const GAP_LARGE: f64 = 0.2;

/// What is told of a plan besides the plan.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) timings: Timings,
    /// What preferences cost an hour, if that was looked at.
    pub(crate) preferences: Option<NanoDollars>,
    pub(crate) prices: PricesOf,
}

/// Whose prices a plan is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct PricesOf {
    /// The region of the built-in table; nothing for a catalog of the user's own.
    pub(crate) region: Option<String>,
    /// The region that was asked for, if it has no table of its own.
    pub(crate) not_of: Option<String>,
    /// The user's own prices, which come before all others.
    pub(crate) file: Option<String>,
    /// The file has a price for everything.
    pub(crate) file_has_all: bool,
}

impl PricesOf {
    /// The sources, as one text: a file, a region, or both.
    pub(crate) fn names(&self) -> Option<String> {
        let region = self.region.as_deref().filter(|_| !self.file_has_all);
        match (self.file.as_deref(), region) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one.to_owned()),
            (Some(file), Some(region)) => Some(format!("{file} and {region}")),
        }
    }

    /// The region that was asked for, if some prices are another one's.
    pub(crate) fn foreign_to(&self) -> Option<&str> {
        self.not_of.as_deref().filter(|_| !self.file_has_all)
    }

    /// What follows the price, where that is worth telling.
    pub(crate) fn aside(&self) -> String {
        let names = self.names().unwrap_or_default();
        match (self.foreign_to(), &self.file) {
            (Some(asked), _) => {
                format!(" Prices are those of {names}; those of {asked} differ.")
            }
            (None, Some(_)) => format!(" Prices are those of {names}."),
            (None, None) => String::new(),
        }
    }
}

/// The bound on the price of a plan, where one is known that says something: one below half the price
/// says how weak the proof is, not how good the plan is.
pub(crate) fn bound(plan: &Plan) -> Option<NanoDollars> {
    let says_nothing = plan.cost.bound.get().saturating_mul(2) < plan.cost.price.get();
    (!says_nothing).then_some(plan.cost.bound)
}

/// How far a price is above its bound: 0.01 is one percent of the bound.
pub(crate) fn gap(price: NanoDollars, bound: NanoDollars) -> f64 {
    match bound {
        NanoDollars::ZERO => 0.0,
        bound => dollars(price) / dollars(bound) - 1.0,
    }
}

/// The most that any other plan could save: 0.01 is one percent of the price.
pub(crate) fn savings_at_most(price: NanoDollars, bound: NanoDollars) -> f64 {
    match price {
        NanoDollars::ZERO => 0.0,
        price => (1.0 - dollars(bound) / dollars(price)).max(0.0),
    }
}

/// `at most 7.5 % to gain`, never less than it is.
pub(crate) fn gain(price: NanoDollars, bound: NanoDollars) -> String {
    let percent = savings_at_most(price, bound) * 100.0;
    match percent {
        p if p <= 0.0 => "nothing to gain".to_owned(),
        p if p < 0.1 => "less than 0.1 % to gain".to_owned(),
        // A whole number of tenths stays one.
        p => format!("at most {:.1} % to gain", (p * 10.0 - 1e-6).ceil() / 10.0),
    }
}

/// What preferences cost: the difference to a plan for the same pods without them. Nothing where that
/// is not worth looking at, or where the two cannot be compared.
pub(crate) fn preferences_cost(problem: &Problem, plan: &Plan) -> Option<NanoDollars> {
    let price = plan.cost.price;
    let is_large = bound(plan).is_none_or(|bound| gap(price, bound) > GAP_LARGE);
    let respected = problem.policy.preferences == PreferencePolicy::Respect;
    if !respected || price == NanoDollars::ZERO || !is_large || !has_preferences(problem, plan) {
        return None;
    }
    let mut without = problem.clone();
    without.policy.preferences = PreferencePolicy::Ignore;
    let other = joiner_solver::solve(&without);
    let left =
        |plan: &Plan| -> BTreeSet<PodIx> { plan.unplaced.iter().map(|own| own.pod).collect() };
    let same = left(plan) == left(&other) && joiner_verify::check(&without, &other).is_empty();
    let saved = price.get().saturating_sub(other.cost.price.get());
    same.then_some(NanoDollars::new(saved))
}

/// True when a pod on a new node has a preference.
fn has_preferences(problem: &Problem, plan: &Plan) -> bool {
    let pods = plan.launches.iter().flat_map(|launch| &launch.pods);
    let shapes: BTreeSet<u32> = pods
        .map(|pod| problem.pods[pod.0 as usize].shape.0)
        .collect();
    let mut shapes = shapes.into_iter().map(|s| &problem.shapes[s as usize]);
    shapes.any(prefers)
}

/// True when a pod like this wants something that is not a rule.
pub(crate) fn prefers(shape: &PodShape) -> bool {
    !shape.preferred_node_terms.is_empty()
        || !shape.preferred_affinity.is_empty()
        || !shape.preferred_anti_affinity.is_empty()
        || shape.spreads.iter().any(|spread| !spread.hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cents(n: u64) -> NanoDollars {
        NanoDollars::new(n * 10_000_000)
    }

    #[test]
    fn shares_are_of_the_bill_and_never_too_small() {
        assert!((gap(cents(200), cents(100)) - 1.0).abs() < 1e-9);
        assert!((savings_at_most(cents(200), cents(100)) - 0.5).abs() < 1e-9);
        assert!(savings_at_most(cents(0), cents(0)).abs() < 1e-9);
        for (price, bound, said) in [
            (200, 100, "at most 50.0 % to gain"),
            (1000, 930, "at most 7.0 % to gain"),
            (3000, 2999, "less than 0.1 % to gain"),
            (1500, 1499, "less than 0.1 % to gain"),
            (900, 899, "at most 0.2 % to gain"),
            (5, 5, "nothing to gain"),
            (0, 0, "nothing to gain"),
        ] {
            assert_eq!(gain(cents(price), cents(bound)), said, "{price} {bound}");
        }
    }

    #[test]
    fn a_bound_of_nothing_for_a_price_says_nothing() {
        let mut plan = Plan::default();
        assert_eq!(bound(&plan), Some(NanoDollars::ZERO));
        plan.cost.price = cents(5);
        assert_eq!(bound(&plan), None);
    }

    #[test]
    fn prices_are_called_by_their_source() {
        let mut prices = PricesOf {
            region: Some("us-east-1".to_owned()),
            ..PricesOf::default()
        };
        assert_eq!(prices.aside(), "");
        prices.not_of = Some("eu-west-1".to_owned());
        let aside = " Prices are those of us-east-1; those of eu-west-1 differ.";
        assert_eq!(prices.aside(), aside);
        prices.file = Some("p.csv".to_owned());
        let aside = " Prices are those of p.csv and us-east-1; those of eu-west-1 differ.";
        assert_eq!(prices.aside(), aside);
        prices.file_has_all = true;
        assert_eq!(prices.aside(), " Prices are those of p.csv.");
        assert_eq!(prices.foreign_to(), None);
    }
}
