//! A price that no legal packing of everything can undercut.
//!
//! For item values `u`, let `ρ >= 1` be such that no filling of any kind is worth more than `ρ`
//! times its price. Then a packing that places everything costs at least the value of all items
//! less the most that the bins can absorb, divided by `ρ`: sum over its nodes. Values come from
//! dual prices or from column generation and may be anything; `ρ` is proven in integers, by
//! resource prices where they suffice and by branch and bound where only whole fillings will do.
//! Budgets, fillers and tokens are ignored, which can only lower the bound.

use crate::branch::{Fixed, Knapsack, search};
use crate::columns::Columns;
use crate::crew;
use crate::dual::{Duals, duals};
use crate::fill::Steps;
use crate::knapsack::{Suited, relax};
use crate::model::Model;
use crate::problem::{Problem, Settings};
use crate::solve::{effort, repeats};

/// A true lower bound, in nano-dollars per hour, on the price of any legal packing that places
/// all items of all rows that fit somewhere.
///
/// `values_hint` is worth giving where a packing was made before: its
/// [`values`](crate::Packing::values) save most of the work. Any values are safe.
#[must_use]
pub fn bound(problem: &Problem, values_hint: Option<&[f64]>, settings: &Settings) -> u64 {
    let model = Model::new(problem);
    if model.n_kinds == 0 {
        return 0;
    }
    let mut steps = Steps::new(effort(&model, settings));
    let whole_fillings = repeats(&model, settings);
    let hint = values_hint.filter(|hint| whole_fillings && hint.len() == problem.rows.len());
    let mut best = 0;
    if let Some(hint) = hint {
        let values = model
            .rows
            .iter()
            .map(|rows| hint[rows[0].0 as usize])
            .collect();
        let (low, sound) = by_fillings(&model, values, &mut steps);
        if sound {
            return low;
        }
        best = low;
    }
    let plain: Vec<f64> = model.price[..model.n_kinds]
        .iter()
        .map(|&p| p as f64)
        .collect();
    let n_items: u64 = model.count.iter().fold(0, |sum, &n| sum.saturating_add(n));
    let n_rounds = dual_rounds(&model, n_items);
    let by_duals = |steps: &mut Steps| {
        let duals = duals(&model, &plain, n_rounds, true);
        certified(&model, &duals.values, Some(&duals), steps).0
    };
    let by_true_values = |steps: &mut Steps| match true_values(&model, steps) {
        (values, true) => by_fillings(&model, values, steps).0,
        (_, false) => 0,
    };
    if whole_fillings && !model.shared_caps.is_empty() && n_items > MANY_FOR_FILLINGS {
        // Both are short then: no use in waiting for one to see whether the other is needed.
        let rest = steps.clone();
        let (low, other) = crew::both(
            || by_duals(&mut rest.clone()),
            || by_true_values(&mut steps),
        );
        return best.max(low).max(other);
    }
    let by_duals = by_duals(&mut steps);
    // Close to the price there is no need for the proof by whole fillings.
    let close = if model.shared_caps.is_empty() {
        1_005
    } else {
        1_030
    };
    let enough = u128::from(by_duals) * close >= u128::from(settings.enough) * 1_000;
    if settings.enough > 0 && enough {
        return best.max(by_duals);
    }
    // A hint that is worth less than plain dual prices was a bad one.
    if whole_fillings && best <= by_duals {
        if !model.shared_caps.is_empty() && n_items <= MANY_FOR_FILLINGS {
            steps = Steps::new(settings.steps_max.min(FILLINGS_EFFORT / n_items.max(1)));
        }
        best = by_true_values(&mut steps);
    }
    best.max(by_duals)
}

/// How many rounds of dual prices to make. Caps need more, where there is time for them.
fn dual_rounds(model: &Model, n_items: u64) -> usize {
    match model.n_classes * model.n_kinds {
        _ if model.shared_caps.is_empty() => 10,
        0..40_000 if n_items > 15_000 => 20,
        0..40_000 if n_items > 4_000 => 40,
        0..10_000 => 200,
        10_000..40_000 => 160,
        40_000..400_000 => 24,
        _ => 14,
    }
}

/// The bound that these values prove once they are lowered to what whole fillings allow, and whether
/// they were sound to begin with.
fn by_fillings(model: &Model, mut values: Vec<f64>, steps: &mut Steps) -> (u64, bool) {
    let n_items: u64 = model.count.iter().fold(0, |sum, &n| sum.saturating_add(n));
    let scaled = n_items.saturating_mul(100_000).saturating_add(5_000_000);
    let mut share = steps.share(scaled.min(REPAIR_STEPS));
    let before = worth(model, &values);
    repair(model, &mut values, &mut share);
    steps.back(share);
    let intact = worth(model, &values) > before * 0.998;
    let (low, ratio) = certified(model, &values, None, steps);
    (low, intact && ratio <= 1_003_000)
}

/// Steps times items for the proof by whole fillings where caps make it hard, and up to how many.
const FILLINGS_EFFORT: u64 = 2_500_000_000_000;
const MANY_FOR_FILLINGS: u64 = 8_000;

/// The value of all items together.
fn worth(model: &Model, values: &[f64]) -> f64 {
    values
        .iter()
        .zip(&model.count)
        .map(|(value, &n)| value * n as f64)
        .sum()
}

/// Values per class from column generation, and whether they can be proven.
fn true_values(model: &Model, steps: &mut Steps) -> (Vec<f64>, bool) {
    let plain: Vec<f64> = model.price[..model.n_kinds]
        .iter()
        .map(|&p| p as f64)
        .collect();
    let mut columns = Columns::new(model, &plain, &model.count, &vec![false; model.n_bins]);
    columns.run(60, steps);
    columns.settled_values(steps)
}

/// Lowers values until no filling that is easily found is worth more than its price, at the
/// least loss: a class with many items is lowered last.
fn repair(model: &Model, values: &mut Vec<f64>, steps: &mut Steps) {
    *values = clamped(model, values);
    for kind in 0..model.n_kinds {
        let suited = Suited::new(model, kind, &model.count, |class| values[class] > 0.0);
        let classes = &suited.classes;
        let price = model.price[kind] as f64;
        for _ in 0..REPAIRS_A_KIND {
            let relaxed = relax(model, kind, &suited, values);
            steps.spend(classes.len() * model.n_dims * 40);
            if relaxed.upper <= price * (1.0 + 1e-6) || steps.over() {
                break;
            }
            let fixed = Fixed::new(model, values);
            let knapsack = fixed.knapsack(kind, classes, &relaxed.prices, &model.limit);
            let mut nodes = BRANCHES_A_REPAIR;
            let outcome = search(&knapsack, fixed.price(kind), &mut nodes);
            steps.spend((BRANCHES_A_REPAIR - nodes) as usize * BRANCH_STEPS);
            let (items, goal): (Vec<(u32, f64)>, f64) = match outcome.best {
                Some(items) => (
                    items.iter().map(|&(c, n)| (c, f64::from(n))).collect(),
                    price,
                ),
                // Nothing found and nothing proven: be content with the relaxation.
                None if outcome.upper > fixed.price(kind)
                    && relaxed.upper > price * RELAXED_IS_FINE =>
                {
                    let amounts = classes.iter().copied().zip(relaxed.amounts.iter().copied());
                    (
                        amounts.filter(|a| a.1 > 0.0).collect(),
                        price * RELAXED_IS_FINE,
                    )
                }
                None => break,
            };
            lower(model, values, items, goal);
        }
    }
}

/// Lowers values so that these items are worth no more than the goal.
fn lower(model: &Model, values: &mut [f64], mut items: Vec<(u32, f64)>, goal: f64) {
    let worth: f64 = items
        .iter()
        .map(|&(class, n)| values[class as usize] * n)
        .sum();
    let mut excess = worth - goal;
    items.sort_by(|a, b| {
        let share = |item: &(u32, f64)| item.1 / model.count[item.0 as usize] as f64;
        share(b).total_cmp(&share(a)).then(a.0.cmp(&b.0))
    });
    for (class, n) in items {
        let value = &mut values[class as usize];
        let cut = (excess / n).clamp(0.0, *value);
        *value -= cut;
        excess -= cut * n;
    }
}

const RELAXED_IS_FINE: f64 = 1.002;
const REPAIRS_A_KIND: usize = 60;
const BRANCHES_A_REPAIR: u64 = 10_000;
/// Steps that repairs may take in all.
const REPAIR_STEPS: u64 = 40_000_000;
const BRANCH_STEPS: usize = 60;
/// Steps that proofs by branching may take in all.
const BRANCHING_MAX: u64 = 20_000_000;

/// Millionths: the denominator of `ρ`.
const ONE: u128 = 1_000_000;
const BRANCHES_A_TRY: u64 = 40_000;
/// How `ρ` is raised while branch and bound cannot prove it.
const RATIOS: [u128; 14] = [
    1_000_002, 1_000_200, 1_000_500, 1_001_000, 1_002_000, 1_004_000, 1_006_000, 1_008_000,
    1_012_000, 1_016_000, 1_024_000, 1_032_000, 1_050_000, 1_080_000,
];

/// The bound that these values prove, and `ρ` in millionths.
fn certified(
    model: &Model,
    values: &[f64],
    duals: Option<&Duals>,
    steps: &mut Steps,
) -> (u64, u128) {
    let values = clamped(model, values);
    let fixed = Fixed::new(model, &values);
    let mut ratio = ONE;
    let mut absorbed = 0_u128;
    let mut hard = Vec::new();
    for slot in 0..model.n_slots() {
        let suited = Suited::new(model, slot, &model.count, |class| fixed.value(class) > 0);
        let classes = &suited.classes;
        let price = if slot < model.n_kinds {
            fixed.price(slot)
        } else {
            0
        };
        steps.spend(classes.len() * (model.n_dims + 1));
        let mut ideal = u128::MAX;
        if let Some(duals) = duals {
            let prices = prices(model, duals, slot);
            ideal = fixed.ideal(slot, classes, &prices);
        }
        let nearly = price + price / 1_000_000;
        if ideal > nearly {
            let relaxed = relax(model, slot, &suited, &values);
            steps.spend(classes.len() * model.n_dims * 40);
            let knapsack = fixed.knapsack(slot, classes, &relaxed.prices, &model.limit);
            ideal = ideal.min(knapsack.ideal());
            if slot < model.n_kinds && ideal > nearly {
                hard.push((ideal * ONE / price.max(1), slot, knapsack));
                continue;
            }
        }
        if slot < model.n_kinds {
            ratio = ratio.max(needed_ratio(ideal, price));
        } else {
            absorbed += ideal;
        }
    }
    hard.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let node_steps = BRANCH_STEPS + model.n_classes * 4;
    let branches = (steps.left() / 8).min(BRANCHING_MAX) / node_steps as u64;
    let mut nodes = branches;
    for (_, slot, knapsack) in &hard {
        ratio = proven_ratio(&fixed, *slot, (knapsack, ratio), &mut nodes);
    }
    steps.spend((branches - nodes) as usize * node_steps);
    let total: u128 = (0..model.n_classes)
        .map(|class| u128::from(fixed.value(class)) * u128::from(model.count[class]))
        .sum();
    let low = total.saturating_sub(absorbed).saturating_mul(ONE) / ratio;
    (fixed.whole(low), ratio)
}

/// The least `ρ` from the list, not below `ratio`, for which no filling is worth more than `ρ`
/// times the price.
fn proven_ratio(
    fixed: &Fixed<'_>,
    slot: usize,
    (knapsack, ratio): (&Knapsack, u128),
    nodes: &mut u64,
) -> u128 {
    let price = fixed.price(slot);
    let safe = needed_ratio(knapsack.ideal(), price).max(ratio);
    for &try_ratio in std::iter::once(&ratio).chain(RATIOS.iter().filter(|&&r| r > ratio)) {
        if try_ratio >= safe {
            break;
        }
        let share = BRANCHES_A_TRY.min(*nodes);
        let mut left = share;
        let outcome = search(knapsack, price * try_ratio / ONE, &mut left);
        *nodes -= share - left;
        if outcome.upper <= price * try_ratio / ONE {
            return try_ratio;
        }
    }
    safe
}

/// The least `ρ` in millionths with `worth <= ρ * price`.
fn needed_ratio(worth: u128, price: u128) -> u128 {
    if worth <= price {
        ONE
    } else {
        worth.saturating_mul(ONE).div_ceil(price.max(1))
    }
}

/// No item is worth more than the cheapest node that can hold it.
fn clamped(model: &Model, values: &[f64]) -> Vec<f64> {
    (0..model.n_classes)
        .map(|class| {
            let first = (0..model.n_kinds).find(|&kind| model.fits(kind, class));
            // Where only bins can hold it, it cannot raise the price.
            first.map_or(0.0, |kind| {
                values[class].clamp(0.0, model.price[kind] as f64)
            })
        })
        .collect()
}

/// Resource prices of a slot: dimensions, then shared caps.
fn prices(model: &Model, duals: &Duals, slot: usize) -> Vec<f64> {
    let (nd, n_caps) = (model.n_dims, model.cap_size.len());
    let mut prices: Vec<f64> = (0..nd)
        .map(|dim| {
            let room = model.room_f(slot)[dim];
            if room > 0.0 {
                duals.price[slot] * duals.weights[slot * nd + dim] / room
            } else {
                0.0
            }
        })
        .collect();
    for &cap in &model.shared_caps {
        prices.push(if duals.cap_weights.is_empty() {
            0.0
        } else {
            let size = f64::from(model.cap_size[cap as usize]);
            duals.price[slot] * duals.cap_weights[slot * n_caps + cap as usize] / size
        });
    }
    prices
}
