//! From a problem to a packing: try several ways, keep the cheapest.

use crate::budget;
use crate::columns::Columns;
use crate::dual::{Duals, duals};
use crate::ffd::first_fit;
use crate::fill::{Guide, Steps};
use crate::greedy::Greedy;
use crate::model::Model;
use crate::plan::Plan;
use crate::problem::{Aim, Packing, Problem, Settings};
use crate::retarget::retarget;
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
    let plain: Vec<f64> = model.price[..model.n_kinds]
        .iter()
        .map(|&p| p as f64)
        .collect();
    let (mut plan, values) = best_plan(&model, &plain, settings, &mut steps);
    if !budget::within(&model, &plan.nodes) {
        plan = budget::constrained(&model, &plan, settings, &mut steps);
    }
    let mut packing = plan.into_packing(problem, &model);
    retarget(problem, &mut packing, settings);
    if problem.rows.iter().all(|row| row.count == 0) {
        return packing;
    }
    packing.steps = settings.steps_max - steps.left() + fixed_steps(&model, problem);
    for (class, rows) in model.rows.iter().enumerate() {
        for &(row, _) in rows {
            packing.values[row as usize] = values[class];
        }
    }
    packing
}

/// Rounds of dual prices before a search.
const ROUNDS: usize = 10;
/// The same to know what fits, with more classes times kinds than this.
const ROUNDS_FIT: usize = 3;
const FIT_PAIRS: usize = 2_000;

/// Roughly what a packing takes before any search: the model, its dual prices and one greedy plan.
fn fixed_steps(model: &Model, problem: &Problem) -> u64 {
    let pairs = (model.n_classes * model.n_kinds * model.n_dims.max(1)) as u64;
    FIXED_STEPS + problem.kinds.len() as u64 * KIND_STEPS + pairs * PAIR_STEPS
}

const FIXED_STEPS: u64 = 100_000;
const KIND_STEPS: u64 = 150;
const PAIR_STEPS: u64 = 30;

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
    let n_rounds = match settings.aim {
        Aim::Fit if model.n_classes * model.n_kinds > FIT_PAIRS => ROUNDS_FIT,
        Aim::Fit | Aim::Price => ROUNDS,
    };
    let search_duals = duals(
        model,
        &cost,
        n_rounds,
        !model.shared_caps.is_empty() && !is_heavy(model),
    );
    let by_duals = Guide {
        cost_follows_price: sorted,
        ..guide(model, &search_duals, &cost)
    };
    let better = |a: Plan, b: Plan| if is_better(&cost, &b, &a) { b } else { a };
    let mut best = dual_greedy(by_duals, steps);
    if best.n_unplaced() > 0
        && let Some(values) = bins_first(model, &search_duals.values)
    {
        let guide = Guide {
            values: &values,
            ..by_duals
        };
        best = better(best, dual_greedy(guide, steps));
    }
    let classic = plain_first_fit(by_duals, steps);
    if let Some(plan) = &classic {
        best = better(best, plan.clone());
    }
    // Whatever the fee says, nothing is dearer than first-fit.
    let left_over = |plan: &Plan| {
        plan.unplaced
            .iter()
            .fold(0, |sum: u64, &n| sum.saturating_add(n))
    };
    let no_dearer = |best: Plan| match classic {
        Some(plan)
            if left_over(&plan) <= left_over(&best)
                && total_cost(plain, &plan) < total_cost(plain, &best) =>
        {
            plan
        }
        _ => best,
    };
    if settings.aim == Aim::Fit {
        return (no_dearer(best), search_duals.values);
    }
    let n_items: u64 = model.count.iter().fold(0, |sum, &n| sum.saturating_add(n));
    let whole = effort(model, settings);
    let scaled = |base: u64, each: u64| base.saturating_add(n_items.saturating_mul(each));
    let most = if is_heavy(model) {
        whole / 20
    } else {
        whole / 2
    };
    let search_steps = most.min(scaled(20_000_000, 400_000));
    let tries = TRIES_MAX.min(scaled(400, 40)) as usize;
    let capped = !model.shared_caps.is_empty();
    let columns_pay = repeats(model, settings) && !(capped && n_items > MANY_CAPPED);
    if !columns_pay || capped {
        let mut share = steps.share(search_steps);
        improve(by_duals, &mut best, tries, &mut share);
        steps.back(share);
    }
    if !columns_pay {
        return (no_dearer(best), search_duals.values);
    }
    let mut columns = Columns::new(model, plain, &model.count, &vec![false; model.n_bins]);
    for node in &best.nodes {
        columns.add(node.slot, &node.items);
    }
    let mut share = steps.share((whole / 2).min(scaled(10_000_000, 300_000)));
    columns.focus(&search_duals.values, &mut share);
    columns.run(60, &mut share);
    let mut part = steps.share((whole / 5).min(scaled(8_000_000, 100_000)));
    let (values, _) = columns.clone().settled_values(&mut part);
    steps.back(part);
    columns.set_cost(&cost);
    columns.run(20, &mut share);
    let search_values = columns.values();
    let by_columns = Guide {
        values: &search_values,
        ..by_duals
    };
    best = better(best, floor(by_columns, &columns, steps));
    steps.back(share);
    // What costs as little as the fractions cannot be improved.
    if total_cost(&cost, &best) > columns.objective() * (1.0 + 1e-4) {
        let mut share = steps.share((whole / 5).min(scaled(15_000_000, 60_000)));
        best = better(best, dive(by_columns, &columns, &mut share));
        steps.back(share);
        let mut share = steps.share(search_steps);
        improve(by_columns, &mut best, tries, &mut share);
        steps.back(share);
    }
    (no_dearer(best), values)
}

/// How many steps a problem gets. Large problems are forgiving: there less work per item does.
pub(crate) fn effort(model: &Model, settings: &Settings) -> u64 {
    let n_items: u64 = model.count.iter().fold(0, |sum, &n| sum.saturating_add(n));
    let capped = !model.shared_caps.is_empty() && n_items <= MANY;
    let effort = if capped { EFFORT_CAPPED } else { EFFORT };
    settings
        .steps_max
        .min((effort / n_items.max(1)).max(EFFORT_MIN))
}

/// Steps times items: the more items, the fewer steps in all.
const EFFORT: u64 = 450_000_000_000;
/// The same where caps make packing hard, up to so many items.
const EFFORT_CAPPED: u64 = 1_400_000_000_000;
const MANY: u64 = 4_000;
/// With caps and more items than this, columns cost more time than they save money.
const MANY_CAPPED: u64 = 4_000;
/// What is never undercut.
const EFFORT_MIN: u64 = 40_000_000;

/// How many tries without success end the local search.
const TRIES_MAX: u64 = 20_000;

/// How often items must repeat where caps tie classes together.
const CAPPED_REPEATS: u64 = 2;

/// Whether there are few enough rows, and items repeat enough, for column generation.
pub(crate) fn repeats(model: &Model, settings: &Settings) -> bool {
    let n_items: u64 = model.count.iter().fold(0, |sum, &n| sum.saturating_add(n));
    // Where caps tie classes together columns pay off only if items repeat a lot.
    let each = if model.shared_caps.is_empty() {
        1
    } else {
        CAPPED_REPEATS
    };
    let repeat = n_items / 3 * 2 >= model.n_classes as u64 * each || model.n_classes <= FEW_CLASSES;
    repeat && model.n_classes + model.n_bins <= settings.columns_rows_max && !is_heavy(model)
}

/// Whether pricing all kinds once is already a lot of work.
fn is_heavy(model: &Model) -> bool {
    let n_sigs = model.allowed.len() / model.n_labels.max(1);
    let mut of_label = vec![0_usize; model.n_labels];
    for &label in &model.label {
        of_label[label as usize] += 1;
    }
    let classes = |sig: usize| -> usize {
        let may = &model.allowed[sig * model.n_labels..][..model.n_labels];
        may.iter()
            .zip(&of_label)
            .filter(|(may, _)| **may > 0)
            .map(|(_, n)| n)
            .sum()
    };
    let of_sig: Vec<usize> = (0..n_sigs).map(classes).collect();
    let pairs: usize = model.sig[..model.n_kinds]
        .iter()
        .map(|&sig| of_sig[sig as usize])
        .sum();
    pairs * (model.n_dims + model.shared_caps.len()) > HEAVY
}

const HEAVY: usize = 800_000;

const FEW_CLASSES: usize = 24;
/// Items times kinds up to which first fit is tried.
const FIRST_FIT_MAX: u64 = 3_000_000;

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
    Plan {
        nodes,
        unplaced: counts,
    }
}

/// Values by which what only bins can hold goes into them before all else; `None` if there is no such
/// class.
fn bins_first(model: &Model, values: &[f64]) -> Option<Vec<f64>> {
    let sold = |class: usize| (0..model.n_kinds).any(|kind| model.fits(kind, class));
    let dearest = values.iter().copied().fold(1.0, f64::max);
    let mut some = false;
    let raised = values.iter().enumerate().map(|(class, &value)| {
        if sold(class) {
            return value;
        }
        some = true;
        value + dearest * BINS_FIRST
    });
    let raised: Vec<f64> = raised.collect();
    some.then_some(raised)
}

const BINS_FIRST: f64 = 1_000.0;

fn plain_first_fit(guide: Guide<'_>, steps: &mut Steps) -> Option<Plan> {
    let mut counts = guide.model.count.clone();
    let n_items: u64 = counts.iter().fold(0, |sum, &n| sum.saturating_add(n));
    if n_items.saturating_mul(guide.model.n_kinds as u64) > FIRST_FIT_MAX {
        return None;
    }
    let mut taken = vec![false; guide.model.n_bins];
    let mut nodes = Greedy::new(guide).fill_bins(&mut counts, &mut taken, steps);
    let mut share = steps.share(30_000_000);
    let bought = first_fit(&guide, &mut counts, &mut share);
    steps.back(share);
    nodes.extend(bought?);
    Some(Plan {
        nodes,
        unplaced: counts,
    })
}

/// Whether the first plan places more, or as much for a lower cost.
fn is_better(cost: &[f64], a: &Plan, b: &Plan) -> bool {
    (a.n_unplaced(), total_cost(cost, a)) < (b.n_unplaced(), total_cost(cost, b))
}

fn total_cost(cost: &[f64], plan: &Plan) -> f64 {
    let each = |slot: u32| cost.get(slot as usize).copied().unwrap_or(0.0);
    plan.nodes
        .iter()
        .map(|node| each(node.slot) * f64::from(node.times))
        .sum()
}
