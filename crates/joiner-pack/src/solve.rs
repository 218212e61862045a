//! From a problem to a packing: try several ways, keep the cheapest.

use crate::columns::Columns;
use crate::dual::{Duals, duals};
use crate::ffd::first_fit;
use crate::fill::{Guide, Steps};
use crate::greedy::Greedy;
use crate::model::Model;
use crate::plan::Plan;
use crate::problem::{Packing, Problem, Settings};
use crate::round::{dive, floor};

/// Packs everything that fits somewhere, cheaply.
///
/// *Guarantees.* The packing is legal. Without budgets, everything is placed that some kind or
/// bin can hold. The answer does not depend on the order of rows, kinds and bins beyond the
/// choice among equals.
#[must_use]
pub fn pack(problem: &Problem, settings: &Settings) -> Packing {
    let model = Model::new(problem);
    let mut steps = Steps::new(settings.steps_max);
    let plain: Vec<f64> = model.price[..model.n_kinds].iter().map(|&p| p as f64).collect();
    let cost: Vec<f64> = plain.iter().map(|p| p + settings.node_fee as f64).collect();
    let true_duals = duals(&model, &plain, 10);
    let search_duals = duals(&model, &cost, 10);
    let mut best = dual_greedy(&model, &search_duals, &cost, &mut steps);
    if let Some(plan) = plain_first_fit(&model, &search_duals, &cost, &mut steps) {
        best = better(&model, settings, best, plan);
    }
    let mut values = true_duals.values.clone();
    if model.n_classes + model.n_bins <= settings.columns_rows_max {
        let mut columns = Columns::new(&model, &plain, &model.count, &vec![false; model.n_bins]);
        for node in &best.nodes {
            columns.add(node.slot, &node.items);
        }
        columns.run(60, &mut steps);
        values = columns.values();
        columns.set_cost(&cost);
        columns.run(20, &mut steps);
        let search_values = columns.values();
        let guide = Guide { values: &search_values, ..guide(&model, &search_duals, &cost) };
        best = better(&model, settings, best, floor(guide, &columns, &mut steps));
        best = better(&model, settings, best, dive(guide, &columns, &mut steps));
    }
    let mut packing = best.into_packing(problem, &model);
    for (class, rows) in model.rows.iter().enumerate() {
        for &(row, _) in rows {
            packing.values[row as usize] = values[class];
        }
    }
    packing
}

fn guide<'a>(model: &'a Model, duals: &'a Duals, cost: &'a [f64]) -> Guide<'a> {
    Guide {
        model,
        values: &duals.values,
        weights: &duals.weights,
        cap_weights: &duals.cap_weights,
        cost,
    }
}

fn dual_greedy(model: &Model, duals: &Duals, cost: &[f64], steps: &mut Steps) -> Plan {
    let mut counts = model.count.clone();
    let mut greedy = Greedy::new(guide(model, duals, cost));
    let mut taken = vec![false; model.n_bins];
    let mut nodes = greedy.fill_bins(&mut counts, &mut taken, steps);
    nodes.extend(greedy.buy(&mut counts, steps));
    Plan { nodes, unplaced: counts }
}

fn plain_first_fit(
    model: &Model,
    duals: &Duals,
    cost: &[f64],
    steps: &mut Steps,
) -> Option<Plan> {
    let mut counts = model.count.clone();
    let guide = guide(model, duals, cost);
    let mut taken = vec![false; model.n_bins];
    let mut nodes = Greedy::new(guide).fill_bins(&mut counts, &mut taken, steps);
    let mut share = steps.share(20_000_000);
    let bought = first_fit(&guide, &mut counts, &mut share);
    steps.back(share);
    nodes.extend(bought?);
    Some(Plan { nodes, unplaced: counts })
}

/// The cheaper of two packings that place equally much, with a small fee per node.
pub(crate) fn better(model: &Model, settings: &Settings, a: Plan, b: Plan) -> Plan {
    let key = |plan: &Plan| {
        let fee = u128::from(plan.n_new(model)) * u128::from(settings.node_fee);
        let options = std::cmp::Reverse(plan.options(model));
        (plan.n_unplaced(), plan.price(model) + fee, plan.n_new(model), options)
    };
    if key(&b) < key(&a) { b } else { a }
}
