//! From a problem to a packing: try several ways, keep the cheapest.

use crate::budget;
use crate::columns::Columns;
use crate::dual::{Duals, duals};
use crate::ffd::first_fit;
use crate::fill::{Guide, Steps};
use crate::greedy::Greedy;
use crate::model::Model;
use crate::plan::Plan;
use crate::problem::{Packing, Problem, Settings};
use crate::round::{dive, floor};
use crate::search::improve;

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
    let (mut plan, values) = best_plan(&model, &plain, settings, &mut steps);
    if !budget::within(&model, &plan.nodes) {
        plan = budget::constrained(&model, &plan, settings, &mut steps);
    }
    let mut packing = plan.into_packing(problem, &model);
    for (class, rows) in model.rows.iter().enumerate() {
        for &(row, _) in rows {
            packing.values[row as usize] = values[class];
        }
    }
    packing
}

/// The best plan for these costs per kind, without the fee, and the values of the classes.
/// Budgets are ignored.
pub(crate) fn best_plan(
    model: &Model,
    plain: &[f64],
    settings: &Settings,
    steps: &mut Steps,
) -> (Plan, Vec<f64>) {
    let cost: Vec<f64> = plain.iter().map(|p| p + settings.node_fee as f64).collect();
    let sorted = plain.is_sorted();
    let search_duals = duals(model, &cost, 10);
    let by_duals = Guide { cost_follows_price: sorted, ..guide(model, &search_duals, &cost) };
    let better = |a: Plan, b: Plan| if is_better(&cost, &b, &a) { b } else { a };
    let mut best = dual_greedy(by_duals, steps);
    if let Some(plan) = plain_first_fit(by_duals, steps) {
        best = better(best, plan);
    }
    if model.n_classes + model.n_bins > settings.columns_rows_max {
        improve(by_duals, &mut best, 600, steps);
        return (best, duals(model, plain, 10).values);
    }
    let mut columns = Columns::new(model, plain, &model.count, &vec![false; model.n_bins]);
    for node in &best.nodes {
        columns.add(node.slot, &node.items);
    }
    columns.run(60, steps);
    let values = columns.values();
    columns.set_cost(&cost);
    columns.run(20, steps);
    let search_values = columns.values();
    let by_columns = Guide { values: &search_values, ..by_duals };
    best = better(best, floor(by_columns, &columns, steps));
    best = better(best, dive(by_columns, &columns, steps));
    improve(by_columns, &mut best, 600, steps);
    (best, values)
}

/// A guide by dual prices.
pub(crate) fn guide<'a>(model: &'a Model, duals: &'a Duals, cost: &'a [f64]) -> Guide<'a> {
    Guide {
        model,
        values: &duals.values,
        weights: &duals.weights,
        cap_weights: &duals.cap_weights,
        cost,
        cost_follows_price: true,
    }
}

fn dual_greedy(guide: Guide<'_>, steps: &mut Steps) -> Plan {
    let mut counts = guide.model.count.clone();
    let mut greedy = Greedy::new(guide);
    let mut taken = vec![false; guide.model.n_bins];
    let mut nodes = greedy.fill_bins(&mut counts, &mut taken, steps);
    nodes.extend(greedy.buy(&mut counts, steps));
    Plan { nodes, unplaced: counts }
}

fn plain_first_fit(guide: Guide<'_>, steps: &mut Steps) -> Option<Plan> {
    let mut counts = guide.model.count.clone();
    let mut taken = vec![false; guide.model.n_bins];
    let mut nodes = Greedy::new(guide).fill_bins(&mut counts, &mut taken, steps);
    let mut share = steps.share(20_000_000);
    let bought = first_fit(&guide, &mut counts, &mut share);
    steps.back(share);
    nodes.extend(bought?);
    Some(Plan { nodes, unplaced: counts })
}

/// Whether the first plan places more, or as much for a lower cost.
fn is_better(cost: &[f64], a: &Plan, b: &Plan) -> bool {
    let sum = |plan: &Plan| -> f64 {
        let each = |slot: u32| cost.get(slot as usize).copied().unwrap_or(0.0);
        plan.nodes.iter().map(|node| each(node.slot) * f64::from(node.times)).sum()
    };
    (a.n_unplaced(), sum(a)) < (b.n_unplaced(), sum(b))
}
