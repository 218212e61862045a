//! Every packing is legal and leaves nothing over that fits, whatever the problem.

use crate::check;
use crate::random;
use crate::random::{Random, Style};
use joiner_pack::{Packing, Place, Problem, Settings, bound, pack};

fn settings() -> Settings {
    Settings {
        steps_max: 3_000_000,
        ..Settings::default()
    }
}

/// Whether a place could hold one item of the row by itself.
fn holds_alone(problem: &Problem, place: Place, row: u32) -> bool {
    check::node_violations(problem, place, &[(row, 1)]).is_empty()
}

fn assert_legal(problem: &Problem, packing: &Packing, what: &str) {
    let found = check::violations(problem, packing);
    assert!(found.is_empty(), "{what}: {found:?}");
    if !problem.budgets.is_empty() {
        return;
    }
    for &(row, _) in &packing.unplaced {
        for kind in 0..problem.kinds.len() as u32 {
            assert!(
                !holds_alone(problem, Place::Kind(kind), row),
                "{what}: row {row} left over"
            );
        }
    }
}

#[test]
fn packings_are_legal_and_complete_and_bounds_hold() {
    for seed in 0..6 {
        for style in random::styles() {
            let problem = random::problem(seed, style);
            let packing = pack(&problem, &settings());
            let what = format!("seed {seed} {style:?}");
            assert_legal(&problem, &packing, &what);
            if packing.unplaced.is_empty() {
                let low = bound(&problem, Some(&packing.values), &settings());
                assert!(low <= packing.price, "{what}: {low} over {}", packing.price);
                let low = bound(&problem, None, &settings());
                assert!(
                    low <= packing.price,
                    "{what}: {low} over {} unhinted",
                    packing.price
                );
            }
        }
    }
}

#[test]
fn any_hint_gives_a_true_bound() {
    let style = Style {
        n_rows: 9,
        count_max: 9,
        n_kinds: 9,
        n_bins: 3,
        ..Style::default()
    };
    for seed in 0..40 {
        let problem = random::problem(seed, style);
        let packing = pack(&problem, &settings());
        let mut random = Random::new(seed);
        for scale in [0.0, 1.0, 1e9, 1e30] {
            let hint: Vec<f64> = packing
                .values
                .iter()
                .map(|_| random.within(0, 100) as f64 * scale)
                .collect();
            let low = bound(&problem, Some(&hint), &settings());
            assert!(
                !packing.unplaced.is_empty() || low <= packing.price,
                "seed {seed} {scale}"
            );
        }
        let odd = vec![f64::NAN; problem.rows.len()];
        assert!(bound(&problem, Some(&odd), &settings()) <= packing.price);
    }
}

#[test]
fn many_different_items_are_packed_legally() {
    let style = Style {
        n_rows: 900,
        count_max: 1,
        n_kinds: 40,
        n_bins: 30,
        ..Style::default()
    };
    for (seed, selective) in [(1, false), (2, true)] {
        let style = Style {
            selective,
            fillers: selective,
            caps: true,
            tokens: true,
            ..style
        };
        let problem = random::problem(seed, style);
        let packing = pack(&problem, &settings());
        assert_legal(&problem, &packing, "many");
        let low = bound(&problem, Some(&packing.values), &settings());
        assert!(!packing.unplaced.is_empty() || low <= packing.price);
    }
}

/// The same problem with rows, kinds and bins in another order.
fn shuffled(problem: &Problem, random: &mut Random) -> Problem {
    let kinds = random.order(problem.kinds.len());
    let bins = random.order(problem.bins.len());
    let rows = random.order(problem.rows.len());
    let mut other = problem.clone();
    other.kinds = kinds.iter().map(|&k| problem.kinds[k].clone()).collect();
    other.bins = bins.iter().map(|&b| problem.bins[b].clone()).collect();
    other.rows = rows.iter().map(|&r| problem.rows[r].clone()).collect();
    for group in &mut other.groups {
        let moved = |order: &[usize], set: &fixedbitset::FixedBitSet| {
            order
                .iter()
                .enumerate()
                .filter(|(_, old)| set.contains(**old))
                .map(|(new, _)| new)
                .collect()
        };
        group.kinds = moved(&kinds, &group.kinds);
        group.bins = moved(&bins, &group.bins);
    }
    other
}

#[test]
fn the_order_of_the_input_does_not_matter() {
    for (seed, style) in random::styles().into_iter().enumerate() {
        let problem = random::problem(seed as u64, style);
        let packing = pack(&problem, &settings());
        assert_eq!(
            packing,
            pack(&problem, &settings()),
            "{style:?}: two runs differ"
        );
        let other = shuffled(&problem, &mut Random::new(seed as u64 + 99));
        let again = pack(&other, &settings());
        assert_eq!(packing.price, again.price, "seed {seed} {style:?}");
        assert_eq!(
            packing.nodes.len(),
            again.nodes.len(),
            "seed {seed} {style:?}"
        );
        let low = bound(&problem, None, &settings());
        assert_eq!(
            low,
            bound(&other, None, &settings()),
            "seed {seed} {style:?}"
        );
    }
}
