//! An independent reading of the rules: shares no code with the packer.
#![allow(dead_code, reason = "each test uses a part of it")]

use joiner_pack::{Packing, Place, Problem};

/// Every rule that the packing breaks, in words; empty if it is legal.
pub(crate) fn violations(problem: &Problem, packing: &Packing) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = vec![0_u64; problem.rows.len()];
    let mut bins_seen = vec![false; problem.bins.len()];
    let mut price = 0_u128;
    let mut spent = vec![0_u128; problem.budgets.len()];
    for (ix, node) in packing.nodes.iter().enumerate() {
        if node.items.is_empty() || node.items.iter().any(|&(_, n)| n == 0) {
            found.push(format!("node {ix} is empty or holds none of something"));
        }
        for &(row, n) in &node.items {
            seen[row as usize] += u64::from(n);
        }
        match node.place {
            Place::Kind(k) => {
                let kind = &problem.kinds[k as usize];
                price += u128::from(kind.price);
                for &(budget, spend) in &kind.spend {
                    spent[budget as usize] += u128::from(spend);
                }
            }
            Place::Bin(b) => {
                if std::mem::replace(&mut bins_seen[b as usize], true) {
                    found.push(format!("bin {b} is there twice"));
                }
            }
        }
        found.extend(node_violations(problem, node.place, &node.items));
    }
    for &(row, n) in &packing.unplaced {
        seen[row as usize] += u64::from(n);
    }
    for (row, &n) in seen.iter().enumerate() {
        if n != u64::from(problem.rows[row].count) {
            found.push(format!(
                "row {row}: {n} of {} items",
                problem.rows[row].count
            ));
        }
    }
    if u128::from(packing.price) != price {
        found.push(format!("price {} is really {price}", packing.price));
    }
    for (budget, &spent) in spent.iter().enumerate() {
        if spent > u128::from(problem.budgets[budget]) {
            found.push(format!("budget {budget} is overspent"));
        }
    }
    if packing.values.len() != problem.rows.len() {
        found.push("one value per row is missing".into());
    }
    found
}

/// Every rule that these items break on a node of this place.
pub(crate) fn node_violations(
    problem: &Problem,
    place: Place,
    items: &[(u32, u32)],
) -> Vec<String> {
    let mut found = Vec::new();
    let rows = || {
        items
            .iter()
            .map(|&(row, n)| (&problem.rows[row as usize], n))
    };
    let room = match place {
        Place::Kind(k) => &problem.kinds[k as usize].room,
        Place::Bin(b) => &problem.bins[b as usize].room,
    };
    for dim in 0..problem.n_dims {
        let used: u128 = rows()
            .map(|(row, n)| u128::from(row.need[dim]) * u128::from(n))
            .sum();
        if used > u128::from(room[dim]) {
            found.push(format!("{place:?}: dimension {dim} is overfull"));
        }
    }
    let within = |group: u32| match place {
        Place::Kind(k) => problem.groups[group as usize].kinds.contains(k as usize),
        Place::Bin(b) => problem.groups[group as usize].bins.contains(b as usize),
    };
    if rows().any(|(row, _)| !within(row.home) && !row.also.is_some_and(within)) {
        found.push(format!("{place:?}: an item may not be there"));
    }
    if matches!(place, Place::Kind(_)) && !rows().any(|(row, _)| within(row.home)) {
        found.push(format!("{place:?}: only fillers"));
    }
    let held = match place {
        Place::Kind(_) => None,
        Place::Bin(b) => Some(&problem.bins[b as usize]),
    };
    for (cap, &most) in problem.caps.iter().enumerate() {
        let here = |caps: &[u32]| caps.contains(&(cap as u32));
        let mut used: u64 = rows()
            .filter(|(r, _)| here(&r.caps))
            .map(|(_, n)| u64::from(n))
            .sum();
        if used == 0 {
            continue;
        }
        for &(c, n) in held.iter().flat_map(|bin| &bin.caps_used) {
            used += if c as usize == cap { u64::from(n) } else { 0 };
        }
        if used > u64::from(most) {
            found.push(format!("{place:?}: cap {cap} is exceeded"));
        }
    }
    for (a, (emitter, n)) in rows().enumerate() {
        for token in &emitter.emits {
            let other = rows()
                .enumerate()
                .any(|(b, (row, _))| row.repels.contains(token) && (a != b || n > 1));
            if other || held.is_some_and(|bin| bin.repels.contains(token)) {
                found.push(format!("{place:?}: token {token} meets who repels it"));
            }
        }
        if held.is_some_and(|bin| emitter.repels.iter().any(|t| bin.emits.contains(t))) {
            found.push(format!("{place:?}: an item meets a token it repels"));
        }
    }
    found
}
