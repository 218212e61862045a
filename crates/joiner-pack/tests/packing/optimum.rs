//! On tiny problems: the bound is never above the best packing there is, and the packing close.

use crate::check;
use crate::random;
use crate::random::Style;
use joiner_pack::{Place, Problem, Settings, bound, pack};

/// The cheapest way to place all items, by trying everything: each item goes onto an open node
/// of any kind, onto a bin, or onto a new node.
fn cheapest(problem: &Problem) -> Option<u64> {
    let mut items: Vec<u32> = Vec::new();
    for (row, r) in problem.rows.iter().enumerate() {
        items.extend(std::iter::repeat_n(row as u32, r.count as usize));
    }
    let mut best = None;
    let mut nodes: Vec<(Place, Vec<(u32, u32)>)> = Vec::new();
    place(problem, &items, &mut nodes, 0, &mut best);
    best
}

fn place(
    problem: &Problem,
    items: &[u32],
    nodes: &mut Vec<(Place, Vec<(u32, u32)>)>,
    price: u64,
    best: &mut Option<u64>,
) {
    if best.is_some_and(|best| price >= best) {
        return;
    }
    let Some((&row, rest)) = items.split_first() else {
        // A node may wait for the item that justifies it until the end.
        if nodes.iter().all(|(place, items)| {
            items.is_empty() || check::node_violations(problem, *place, items).is_empty()
        }) {
            *best = Some(price);
        }
        return;
    };
    for at in 0..nodes.len() {
        let before = nodes[at].1.clone();
        match nodes[at].1.iter_mut().find(|(r, _)| *r == row) {
            Some((_, n)) => *n += 1,
            None => nodes[at].1.push((row, 1)),
        }
        if possible(problem, &nodes[at]) {
            place(problem, rest, nodes, price, best);
        }
        nodes[at].1 = before;
    }
    for bin in 0..problem.bins.len() as u32 {
        if nodes.iter().any(|(place, _)| *place == Place::Bin(bin)) {
            continue;
        }
        nodes.push((Place::Bin(bin), vec![(row, 1)]));
        if possible(problem, &nodes[nodes.len() - 1]) {
            place(problem, rest, nodes, price, best);
        }
        nodes.pop();
    }
    for kind in 0..problem.kinds.len() as u32 {
        nodes.push((Place::Kind(kind), vec![(row, 1)]));
        if possible(problem, &nodes[nodes.len() - 1]) {
            place(
                problem,
                rest,
                nodes,
                price + problem.kinds[kind as usize].price,
                best,
            );
        }
        nodes.pop();
    }
}

/// Legal except that it may lack the item that justifies it.
fn possible(problem: &Problem, node: &(Place, Vec<(u32, u32)>)) -> bool {
    let found = check::node_violations(problem, node.0, &node.1);
    found.iter().all(|what| what.contains("only fillers"))
}

#[test]
fn bound_best_and_packing_are_in_order() {
    let (mut cases, mut over) = (0_u32, 0.0);
    for seed in 0..120 {
        let on = |bit: u64| seed >> bit & 1 == 1;
        let style = Style {
            n_rows: 1 + seed % 4,
            count_max: 2,
            n_kinds: 1 + seed % 3,
            n_bins: u64::from(on(0)),
            selective: on(1),
            fillers: on(2),
            caps: on(3),
            tokens: on(4),
            budgets: false,
        };
        let mut problem = random::problem(seed, style);
        let packing = pack(&problem, &Settings::default());
        for &(row, n) in &packing.unplaced {
            problem.rows[row as usize].count -= n;
        }
        let Some(best) = cheapest(&problem) else {
            continue;
        };
        let packing = pack(&problem, &Settings::default());
        for hint in [Some(&packing.values[..]), None] {
            let low = bound(&problem, hint, &Settings::default());
            assert!(
                low <= best,
                "seed {seed} {style:?}: bound {low} over the best {best}"
            );
        }
        assert!(
            packing.price >= best,
            "seed {seed}: {} under the best {best}",
            packing.price
        );
        assert!(
            packing.price as f64 <= best as f64 * 1.35 + 1.0,
            "seed {seed} {style:?}: {} and best {best}",
            packing.price
        );
        if best > 0 {
            cases += 1;
            over += packing.price as f64 / best as f64 - 1.0;
        }
    }
    assert!(cases > 60, "only {cases} cases");
    let mean = over / f64::from(cases);
    assert!(mean < 0.01, "on average {mean} over the best");
}
