//! From fractions to whole nodes: take the whole part, then decide about the rest.

use crate::columns::{Columns, Filling};
use crate::fill::{Guide, Steps};
use crate::greedy::{Greedy, subtract};
use crate::model::Model;
use crate::plan::{Node, Plan};

/// Takes whole copies of fillings off the counts, as many as fractions say and items allow.
fn take_whole(
    model: &Model,
    solution: &[(Filling, f64)],
    counts: &mut [u64],
    taken: &mut [bool],
) -> Vec<Node> {
    let mut nodes = Vec::new();
    for ((slot, items), x) in solution {
        let mut times = (x + 1e-4) as u64;
        for &(class, n) in items {
            times = times.min(counts[class as usize] / u64::from(n));
        }
        if *slot as usize >= model.n_kinds {
            times = times.min(1);
        }
        if times == 0 {
            continue;
        }
        if let Some(bin) = (*slot as usize).checked_sub(model.n_kinds) {
            if taken[bin] {
                continue;
            }
            taken[bin] = true;
        }
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        subtract(counts, items, times);
        nodes.push(Node {
            slot: *slot,
            items: items.clone(),
            times,
        });
    }
    nodes
}

fn owned(columns: &Columns<'_>) -> Vec<(Filling, f64)> {
    columns
        .solution()
        .into_iter()
        .map(|(filling, x)| (filling.clone(), x))
        .collect()
}

/// The whole part of a fractional solution, the rest packed greedily.
pub(crate) fn floor(guide: Guide<'_>, columns: &Columns<'_>, steps: &mut Steps) -> Plan {
    let model = guide.model;
    let mut counts = model.count.clone();
    let mut taken = vec![false; model.n_bins];
    let nodes = take_whole(model, &owned(columns), &mut counts, &mut taken);
    finish(guide, nodes, counts, taken, steps)
}

fn finish(
    guide: Guide<'_>,
    mut nodes: Vec<Node>,
    mut counts: Vec<u64>,
    mut taken: Vec<bool>,
    steps: &mut Steps,
) -> Plan {
    let mut greedy = Greedy::new(guide);
    nodes.extend(greedy.fill_bins(&mut counts, &mut taken, steps));
    nodes.extend(greedy.buy(&mut counts, steps));
    Plan {
        nodes,
        unplaced: counts,
    }
}

/// Fixes whole parts, or else the largest fraction, and generates columns again for the rest,
/// until nothing is left.
pub(crate) fn dive(guide: Guide<'_>, columns: &Columns<'_>, steps: &mut Steps) -> Plan {
    let model = guide.model;
    let mut counts = model.count.clone();
    let mut taken = vec![false; model.n_bins];
    let mut solution = owned(columns);
    let mut nodes = Vec::new();
    let mut pool: Vec<Filling> = columns.fillings().cloned().collect();
    loop {
        let mut fixed = take_whole(model, &solution, &mut counts, &mut taken);
        if fixed.is_empty() {
            solution.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            for ((slot, items), x) in &solution {
                let filling = (*slot, clipped(items, &counts));
                if *x < 0.02 {
                    break;
                }
                if filling.1.is_empty() || !model.justified(*slot as usize, &filling.1) {
                    continue;
                }
                fixed = take_whole(model, &[(filling, 1.0)], &mut counts, &mut taken);
                if !fixed.is_empty() {
                    break;
                }
            }
        }
        let stuck = fixed.is_empty();
        nodes.extend(fixed);
        if stuck || steps.over() || counts.iter().all(|&n| n == 0) {
            break;
        }
        let mut again = Columns::new(model, guide.cost, &counts, &taken);
        for (slot, items) in &pool {
            let items = clipped(items, &counts);
            if !items.is_empty() && model.justified(*slot as usize, &items) {
                again.add(*slot, &items);
            }
        }
        again.run(12, steps);
        solution = owned(&again);
        pool.extend(again.fillings().cloned());
        pool.sort_unstable();
        pool.dedup();
    }
    finish(guide, nodes, counts, taken, steps)
}

/// A filling without what is not there any more.
fn clipped(items: &[(u32, u32)], counts: &[u64]) -> Vec<(u32, u32)> {
    items
        .iter()
        .map(|&(class, n)| (class, u64::from(n).min(counts[class as usize]) as u32))
        .filter(|&(_, n)| n > 0)
        .collect()
}
