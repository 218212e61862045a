//! When budgets do not allow everything: place as many items as possible, high priorities first
//! and small items before large ones, then look for the cheapest way to place just those.

use std::cmp::Reverse;

use crate::dual::duals;
use crate::fill::{Guide, Steps};
use crate::greedy::{Greedy, subtract};
use crate::load::Load;
use crate::model::{HOME, Model};
use crate::plan::{Node, Plan};
use crate::problem::{Aim, Settings};
use crate::solve::{best_plan, guide};

/// Whether the plan stays within every budget.
pub(crate) fn within(model: &Model, nodes: &[Node]) -> bool {
    let spent = spent(model, nodes);
    spent
        .iter()
        .zip(&model.budgets)
        .all(|(spent, &budget)| *spent <= u128::from(budget))
}

fn spent(model: &Model, nodes: &[Node]) -> Vec<u128> {
    let mut spent = vec![0_u128; model.budgets.len()];
    for node in nodes {
        for &(budget, spend) in &model.spend[node.slot as usize] {
            spent[budget as usize] += u128::from(spend) * u128::from(node.times);
        }
    }
    spent
}

/// A plan within budgets that places as much as possible. `over` is the plan that ignores them.
pub(crate) fn constrained(
    model: &Model,
    over: &Plan,
    settings: &Settings,
    steps: &mut Steps,
) -> Plan {
    let shares = budget_shares(model);
    let order = order(model, &shares);
    let mut plan = most_items(model, &order, &shares, settings, steps);
    extend(model, &order, &shares, &mut plan);
    let mut part = model.clone();
    for (count, left) in part.count.iter_mut().zip(&plan.unplaced) {
        *count -= left;
    }
    for (limit, &count) in part.limit.iter_mut().zip(&part.count) {
        *limit = (*limit).min(count);
    }
    let mut best = plan;
    if let Some(nodes) = paying(&part, &shares, settings, steps)
        && (Plan {
            nodes: nodes.clone(),
            unplaced: Vec::new(),
        })
        .price(model)
            < best.price(model)
    {
        best.nodes = nodes;
    }
    let strengths: &[f64] = match settings.aim {
        Aim::Fit => &[],
        Aim::Price => &[0.1, 0.3, 1.0, 3.0, 10.0],
    };
    for &strength in strengths {
        let plain = penalized(model, over, strength);
        let mut share = steps.share(settings.steps_max / 8);
        let (plan, _) = best_plan(&part, &plain, settings, &mut share);
        steps.back(share);
        if plan.n_unplaced() == 0 && within(model, &plan.nodes) {
            if plan.price(model) < best.price(model) {
                best = Plan {
                    nodes: plan.nodes,
                    unplaced: best.unplaced,
                };
            }
            break;
        }
    }
    best
}

/// Packs everything by price while budgets last, first what cannot do without them; `None` if
/// something is left over.
fn paying(
    part: &Model,
    shares: &[f64],
    settings: &Settings,
    steps: &mut Steps,
) -> Option<Vec<Node>> {
    let cost: Vec<f64> = part.price[..part.n_kinds]
        .iter()
        .map(|&price| price as f64 + settings.node_fee as f64)
        .collect();
    let duals = duals(part, &cost, 8, false);
    let mut greedy = Greedy::new(guide(part, &duals, &cost));
    greedy.budget_left = Some(part.budgets.clone());
    let mut counts = part.count.clone();
    let mut taken = vec![false; part.n_bins];
    let mut nodes = greedy.fill_bins(&mut counts, &mut taken, steps);
    let mut others = vec![0; part.n_classes];
    for class in 0..part.n_classes {
        let free = |kind: usize| shares[kind] == 0.0 && part.may(kind, class) == HOME;
        if (0..part.n_kinds).any(|kind| free(kind) && part.fits(kind, class)) {
            others[class] = std::mem::take(&mut counts[class]);
        }
    }
    nodes.extend(greedy.buy(&mut counts, steps));
    for (count, other) in counts.iter_mut().zip(others) {
        *count += other;
    }
    nodes.extend(greedy.buy(&mut counts, steps));
    counts.iter().all(|&n| n == 0).then_some(nodes)
}

/// Per kind the largest share of a budget that one node takes.
fn budget_shares(model: &Model) -> Vec<f64> {
    (0..model.n_kinds)
        .map(|kind| {
            let share = |&(b, spend): &(u32, u64)| spend as f64 / model.budgets[b as usize] as f64;
            model.spend[kind].iter().map(share).fold(0.0, f64::max)
        })
        .collect()
}

/// Classes by priority, then by the least share of a budget that an item needs.
fn order(model: &Model, shares: &[f64]) -> Vec<usize> {
    let mut keyed: Vec<(Reverse<i32>, f64, f64, usize)> = (0..model.n_classes)
        .map(|class| {
            let part = |slot: usize| {
                let need = model.need_f(class).iter().zip(model.room_f(slot));
                need.map(|(n, r)| if *r > 0.0 { n / r } else { 0.0 })
                    .fold(0.0, f64::max)
            };
            let least = (0..model.n_kinds)
                .filter(|&kind| model.fits(kind, class))
                .map(|kind| shares[kind] * part(kind))
                .fold(f64::INFINITY, f64::min);
            let size: f64 = model.need_f(class).iter().sum();
            (Reverse(model.priority[class]), least, size, class)
        })
        .collect();
    keyed.sort_by(|a, b| {
        a.0.cmp(&b.0)
            .then(a.1.total_cmp(&b.1))
            .then(a.2.total_cmp(&b.2))
            .then(a.3.cmp(&b.3))
    });
    keyed.into_iter().map(|(.., class)| class).collect()
}

/// The longest beginning of the order that a greedy packing fits into the budgets.
fn most_items(
    model: &Model,
    order: &[usize],
    shares: &[f64],
    settings: &Settings,
    steps: &mut Steps,
) -> Plan {
    let dearest = model.price[..model.n_kinds]
        .iter()
        .copied()
        .max()
        .unwrap_or(0) as f64;
    let cost: Vec<f64> = (0..model.n_kinds)
        .map(|kind| {
            let price = model.price[kind] as f64 + settings.node_fee as f64;
            shares[kind] * (dearest + 1.0) * 1e4 + price
        })
        .collect();
    let duals = duals(model, &cost, 8, false);
    let guide = Guide {
        cost_follows_price: false,
        ..guide(model, &duals, &cost)
    };
    let total: u64 = model.count.iter().sum();
    let mut attempt = |n: u64| {
        let mut counts = vec![0; model.n_classes];
        let mut left = n;
        for &class in order {
            counts[class] = model.count[class].min(left);
            left -= counts[class];
        }
        let mut greedy = Greedy::new(guide);
        let mut taken = vec![false; model.n_bins];
        let mut nodes = greedy.fill_bins(&mut counts, &mut taken, steps);
        nodes.extend(greedy.buy(&mut counts, steps));
        within(model, &nodes).then_some(nodes)
    };
    let (mut low, mut high) = (0, total + 1);
    let mut best = Vec::new();
    while low + 1 < high {
        let middle = if high > total {
            total
        } else {
            low + (high - low) / 2
        };
        match attempt(middle) {
            Some(nodes) => {
                low = middle;
                best = nodes;
            }
            None => high = middle,
        }
    }
    let mut unplaced = model.count.clone();
    for node in &best {
        subtract(&mut unplaced, &node.items, node.times);
    }
    Plan {
        nodes: best,
        unplaced,
    }
}

/// Puts leftover items where there is room, then onto new nodes that the budgets still allow.
fn extend(model: &Model, order: &[usize], shares: &[f64], plan: &mut Plan) {
    const NODES_MAX: u64 = 20_000;
    let n_nodes: u64 = plan.nodes.iter().map(|node| u64::from(node.times)).sum();
    if plan.n_unplaced() == 0 || n_nodes > NODES_MAX {
        return;
    }
    let mut nodes = Vec::new();
    for node in &plan.nodes {
        nodes.extend((0..node.times).map(|_| Node {
            times: 1,
            ..node.clone()
        }));
    }
    let mut load = Load::new(model);
    for node in &mut nodes {
        load.open(model, node.slot as usize);
        for &(class, n) in &node.items {
            load.add(model, class as usize, n);
        }
        top_up(model, order, &mut load, &mut plan.unplaced);
        node.items = load.items();
    }
    let mut spent = spent(model, &nodes);
    for &class in order {
        while plan.unplaced[class] > 0 {
            let best = affordable(
                model,
                shares,
                &spent,
                class,
                plan.unplaced[class],
                &mut load,
            );
            let Some(kind) = best else { break };
            load.open(model, kind);
            let n = u64::from(load.fit(model, class)).min(plan.unplaced[class]);
            load.add(model, class, n as u32);
            plan.unplaced[class] -= n;
            top_up(model, order, &mut load, &mut plan.unplaced);
            for &(budget, spend) in &model.spend[kind] {
                spent[budget as usize] += u128::from(spend);
            }
            nodes.push(Node {
                slot: kind as u32,
                items: load.items(),
                times: 1,
            });
        }
    }
    plan.nodes = nodes;
}

fn top_up(model: &Model, order: &[usize], load: &mut Load, unplaced: &mut [u64]) {
    for &class in order {
        if unplaced[class] > 0 {
            let n = u64::from(load.fit(model, class)).min(unplaced[class]);
            load.add(model, class, n as u32);
            unplaced[class] -= n;
        }
    }
}

/// The kind that takes least of the budgets per item among those that can still be afforded.
fn affordable(
    model: &Model,
    shares: &[f64],
    spent: &[u128],
    class: usize,
    count: u64,
    load: &mut Load,
) -> Option<usize> {
    let mut best: Option<(f64, f64, usize)> = None;
    for (kind, share) in shares.iter().enumerate() {
        let afford = |&(b, spend): &(u32, u64)| {
            spent[b as usize] + u128::from(spend) <= u128::from(model.budgets[b as usize])
        };
        if model.may(kind, class) != HOME
            || !model.fits(kind, class)
            || !model.spend[kind].iter().all(afford)
        {
            continue;
        }
        load.open(model, kind);
        let n = u64::from(load.fit(model, class)).min(count) as f64;
        if n < 1.0 {
            continue;
        }
        let key = (share / n, model.price[kind] as f64 / n, kind);
        if best.is_none_or(|best| (key.0, key.1) < (best.0, best.1)) {
            best = Some(key);
        }
    }
    best.map(|(.., kind)| kind)
}

/// Prices plus a penalty on the budgets that were overspent.
fn penalized(model: &Model, over: &Plan, strength: f64) -> Vec<f64> {
    let spent = spent(model, &over.nodes);
    let mut rates = vec![0.0; model.budgets.len()];
    for (budget, rate) in rates.iter_mut().enumerate() {
        if spent[budget] <= u128::from(model.budgets[budget]) {
            continue;
        }
        let (mut price, mut spend) = (0.0, 0.0);
        for kind in 0..model.n_kinds {
            if let Some(&(_, s)) = model.spend[kind].iter().find(|s| s.0 as usize == budget) {
                price += model.price[kind] as f64;
                spend += s as f64;
            }
        }
        *rate = strength * (price + 1.0) / f64::max(spend, 1.0);
    }
    (0..model.n_kinds)
        .map(|kind| {
            let penalty = |&(b, s): &(u32, u64)| rates[b as usize] * s as f64;
            model.price[kind] as f64 + model.spend[kind].iter().map(penalty).sum::<f64>()
        })
        .collect()
}
