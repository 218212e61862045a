//! Odd corners: empty, huge, free, and the single rules one by one.

use crate::check;
use fixedbitset::FixedBitSet;
use joiner_pack::{Bin, Group, Kind, Packing, Place, Problem, Row, Settings, bound, pack};

fn kind(price: u64, room: &[u64]) -> Kind {
    Kind {
        room: room.into(),
        price,
        options: 1,
        ..Kind::default()
    }
}

fn row(count: u32, need: &[u64]) -> Row {
    Row {
        need: need.into(),
        count,
        ..Row::default()
    }
}

fn all(n: usize) -> FixedBitSet {
    (0..n).collect()
}

/// A problem where every row may be everywhere.
fn open(kinds: Vec<Kind>, bins: Vec<Bin>, rows: Vec<Row>) -> Problem {
    let groups = vec![Group {
        kinds: all(kinds.len()),
        bins: all(bins.len()),
    }];
    let n_dims = rows.first().map_or(1, |row| row.need.len());
    Problem {
        n_dims,
        rows,
        kinds: kinds.into(),
        bins,
        groups,
        ..Problem::default()
    }
}

/// Prices are tiny here, so the search must not charge its usual fee.
fn settings() -> Settings {
    Settings {
        node_fee: 0,
        ..Settings::default()
    }
}

fn packed(problem: &Problem) -> Packing {
    let packing = pack(problem, &settings());
    let found = check::violations(problem, &packing);
    assert!(found.is_empty(), "{found:?}");
    if packing.unplaced.is_empty() {
        let low = bound(problem, Some(&packing.values), &settings());
        assert!(low <= packing.price, "bound {low} over {}", packing.price);
        assert!(bound(problem, None, &settings()) <= packing.price);
    }
    packing
}

#[test]
fn nothing_to_do_is_done() {
    assert_eq!(packed(&Problem::default()), Packing::default());
    let packing = packed(&open(vec![kind(5, &[4])], vec![], vec![row(0, &[1])]));
    assert!(packing.nodes.is_empty() && packing.unplaced.is_empty());
}

#[test]
fn without_kinds_items_stay_or_go_to_bins() {
    assert_eq!(
        packed(&open(vec![], vec![], vec![row(3, &[1])])).unplaced,
        [(0, 3)]
    );
    let bin = Bin {
        room: [2].into(),
        ..Bin::default()
    };
    let packing = packed(&open(vec![], vec![bin], vec![row(3, &[1])]));
    assert_eq!(packing.unplaced, [(0, 1)]);
    assert_eq!(packing.price, 0);
}

#[test]
fn what_fits_nowhere_does_not_disturb() {
    let problem = open(
        vec![kind(5, &[4])],
        vec![],
        vec![row(2, &[9]), row(2, &[2])],
    );
    let packing = packed(&problem);
    assert_eq!(packing.unplaced, [(0, 2)]);
    assert_eq!(packing.price, 5);
    assert!(bound(&problem, None, &settings()) <= 5);
}

#[test]
fn zero_needs_and_zero_prices_work() {
    let packing = packed(&open(
        vec![kind(7, &[4])],
        vec![],
        vec![row(1_000_000, &[0])],
    ));
    assert_eq!((packing.nodes.len(), packing.price), (1, 7));
    let packing = packed(&open(
        vec![kind(0, &[4]), kind(7, &[9])],
        vec![],
        vec![row(9, &[1])],
    ));
    assert_eq!(packing.price, 0);
    let packing = packed(&open(vec![kind(3, &[])], vec![], vec![row(5, &[])]));
    assert_eq!(packing.price, 3);
}

#[test]
fn huge_amounts_do_not_overflow() {
    let most = u64::MAX;
    let problem = open(
        vec![
            kind(most / 8, &[most, most]),
            kind(most / 9, &[most / 2, most]),
        ],
        vec![],
        vec![
            row(3, &[most / 2, 1]),
            row(2, &[most / 3, most / 2]),
            row(4, &[1, most]),
        ],
    );
    assert!(packed(&problem).unplaced.is_empty());
}

#[test]
fn a_million_items_are_packed_by_patterns() {
    let kinds = vec![kind(100, &[16, 64]), kind(60, &[8, 32]), kind(30, &[4, 8])];
    let rows = vec![
        row(1_000_000, &[1, 4]),
        row(1_000_000, &[2, 3]),
        row(777_777, &[3, 1]),
    ];
    let problem = open(kinds, vec![], rows);
    let packing = packed(&problem);
    assert!(packing.unplaced.is_empty());
    let low = bound(&problem, Some(&packing.values), &settings());
    assert!(
        packing.price as f64 <= low as f64 * 1.001,
        "{} over {low}",
        packing.price
    );
}

#[test]
fn caps_force_nodes_and_the_bound_knows() {
    let mut problem = open(vec![kind(10_000, &[100])], vec![], vec![row(50, &[1])]);
    problem.caps = vec![2];
    problem.rows[0].caps = vec![0];
    assert_eq!(packed(&problem).price, 250_000);
    let low = bound(&problem, None, &settings());
    assert!(low > 249_000, "{low}");
}

#[test]
fn caps_shared_by_rows_force_nodes_too() {
    let rows = vec![row(20, &[1]), row(20, &[2])];
    let mut problem = open(vec![kind(10_000, &[100])], vec![], rows);
    problem.caps = vec![1];
    problem.rows[0].caps = vec![0];
    problem.rows[1].caps = vec![0];
    assert_eq!(packed(&problem).nodes.len(), 40);
    let low = bound(&problem, None, &settings());
    assert!(low > 390_000, "{low}");
}

#[test]
fn who_emits_and_repels_is_alone_among_its_like() {
    let mut problem = open(
        vec![kind(10_000, &[100])],
        vec![],
        vec![row(9, &[1]), row(30, &[1])],
    );
    problem.rows[0].emits = vec![7];
    problem.rows[0].repels = vec![7];
    let packing = packed(&problem);
    assert_eq!(packing.nodes.len(), 9);
    assert!(bound(&problem, None, &settings()) > 89_000);
}

#[test]
fn fillers_fill_but_do_not_justify() {
    let mut problem = open(
        vec![kind(10, &[8]), kind(1, &[8])],
        vec![],
        vec![row(1, &[2]), row(9, &[1])],
    );
    let only = |k: usize| Group {
        kinds: [k].into_iter().collect(),
        bins: all(0),
    };
    problem.groups = vec![only(0), only(1)];
    // The filler's home is the dear kind; one home item opens the cheap kind to six fillers.
    problem.rows[0].home = 1;
    problem.rows[1].also = Some(1);
    let packing = packed(&problem);
    assert!(packing.unplaced.is_empty());
    assert_eq!(packing.price, 11);
}

#[test]
fn bins_come_first_and_keep_their_rules() {
    let bin = |used: u32| Bin {
        room: [10].into(),
        caps_used: vec![(0, used)],
        ..Bin::default()
    };
    let mut problem = open(
        vec![kind(10, &[8])],
        vec![bin(0), bin(2)],
        vec![row(4, &[1])],
    );
    problem.caps = vec![2];
    problem.rows[0].caps = vec![0];
    let packing = packed(&problem);
    assert_eq!(packing.price, 10);
    assert_eq!(
        packing
            .nodes
            .iter()
            .filter(|n| matches!(n.place, Place::Bin(_)))
            .count(),
        1
    );
}

#[test]
fn budgets_place_high_priorities_and_then_most_items() {
    let mut problem = open(
        vec![Kind {
            spend: vec![(0, 4)],
            ..kind(10, &[4])
        }],
        vec![],
        vec![row(2, &[4]), row(8, &[1]), row(1, &[3])],
    );
    problem.budgets = vec![11];
    let packing = packed(&problem);
    // Two nodes: eight small items beat two large ones.
    assert_eq!(packing.unplaced, [(0, 2), (2, 1)]);
    problem.rows[0].priority = 1;
    assert_eq!(packed(&problem).unplaced, [(1, 8), (2, 1)]);
}

#[test]
fn a_budget_sends_items_elsewhere_before_leaving_them_over() {
    let mut problem = open(
        vec![
            Kind {
                spend: vec![(0, 8)],
                ..kind(10, &[8])
            },
            kind(25, &[8]),
        ],
        vec![],
        vec![row(8, &[4])],
    );
    problem.budgets = vec![16];
    let packing = packed(&problem);
    assert!(packing.unplaced.is_empty());
    assert_eq!(packing.price, 2 * 10 + 2 * 25);
}

#[test]
fn more_options_win_a_tie() {
    let few = kind(10, &[8]);
    let many = Kind {
        options: 9,
        ..kind(10, &[8])
    };
    let packing = packed(&open(vec![few, many], vec![], vec![row(8, &[1])]));
    assert_eq!(packing.nodes[0].place, Place::Kind(1));
    let nearly = Kind {
        options: 9,
        ..kind(1_000_400, &[8])
    };
    let packing = packed(&open(
        vec![kind(1_000_000, &[8]), nearly],
        vec![],
        vec![row(8, &[1])],
    ));
    assert_eq!(packing.nodes[0].place, Place::Kind(1));
}
