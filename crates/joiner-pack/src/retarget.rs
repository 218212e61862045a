//! The last choice: among kinds of nearly the same price, the one with more launch options.

use crate::problem::{Packed, Packing, Place, Problem, Settings};

/// Moves new nodes to kinds with more launch options where that costs at most a hair more.
/// Leaves everything alone where there are budgets, which another kind might overspend.
pub(crate) fn retarget(problem: &Problem, packing: &mut Packing, settings: &Settings) {
    if !problem.budgets.is_empty() {
        return;
    }
    let kinds = &problem.kinds;
    let chosen = packing.nodes.iter().filter_map(|node| match node.place {
        Place::Kind(kind) => Some(&kinds[kind as usize]),
        Place::Bin(_) => None,
    });
    let (mut fewest, mut dearest) = (u32::MAX, 0);
    for kind in chosen {
        fewest = fewest.min(kind.options);
        dearest = dearest.max(kind.price);
    }
    let dearest = nearly(dearest, settings);
    let mut others: Vec<u32> = (0..kinds.len() as u32)
        .filter(|&k| kinds[k as usize].options > fewest && kinds[k as usize].price <= dearest)
        .collect();
    others.sort_by_key(|&k| (kinds[k as usize].price, k));
    let mut last: Option<(Packed, u32)> = None;
    for node in &mut packing.nodes {
        let Place::Kind(kind) = node.place else {
            continue;
        };
        // Equal nodes follow each other: decide once.
        let better = match &last {
            Some((same, better)) if same == node => *better,
            Some(_) | None => better(problem, &others, node, kind, settings),
        };
        last = Some((node.clone(), better));
        packing.price = packing
            .price
            .saturating_sub(kinds[kind as usize].price)
            .saturating_add(kinds[better as usize].price);
        node.place = Place::Kind(better);
    }
}

fn nearly(price: u64, settings: &Settings) -> u64 {
    let extra = u128::from(price) * u128::from(settings.near_tie_ppm) / 1_000_000;
    price.saturating_add(u64::try_from(extra).unwrap_or(u64::MAX))
}

fn better(problem: &Problem, others: &[u32], node: &Packed, kind: u32, settings: &Settings) -> u32 {
    let price = |k: u32| problem.kinds[k as usize].price;
    let now = price(kind);
    let most = nearly(now, settings);
    // Cheaper kinds were not possible, or not better in all; look from the present price on.
    let from = others.partition_point(|&k| price(k) < now);
    let mut best = kind;
    for &other in others[from..].iter().take_while(|&&k| price(k) <= most) {
        let options = |k: u32| problem.kinds[k as usize].options;
        if options(other) > options(best) && holds(problem, other, node) {
            best = other;
        }
    }
    best
}

fn holds(problem: &Problem, kind: u32, node: &Packed) -> bool {
    let within = |group: u32| {
        problem
            .groups
            .get(group as usize)
            .is_some_and(|g| g.kinds[kind as usize])
    };
    let mut home = false;
    for &(row, _) in &node.items {
        let row = &problem.rows[row as usize];
        let here = within(row.home);
        home |= here;
        if !here && !row.also.is_some_and(within) {
            return false;
        }
    }
    let room = &problem.kinds[kind as usize].room;
    home && (0..problem.n_dims).all(|dim| {
        let need = |row: u32| {
            problem.rows[row as usize]
                .need
                .get(dim)
                .copied()
                .unwrap_or(0)
        };
        let used: u128 = node
            .items
            .iter()
            .map(|&(row, n)| u128::from(need(row)) * u128::from(n))
            .sum();
        used <= u128::from(room.get(dim).copied().unwrap_or(0))
    })
}
