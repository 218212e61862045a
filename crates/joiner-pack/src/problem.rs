//! The vocabulary of a packing problem and of its answer: plain data, no behavior.

use std::sync::Arc;

use fixedbitset::FixedBitSet;

/// A packing problem. All amounts are integers in whatever unit the caller chose per dimension.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// How many amounts every `need` and `room` has.
    pub n_dims: usize,
    /// What must be placed: identical items with a count.
    pub rows: Vec<Row>,
    /// What can be bought, any number of each (subject to budgets).
    pub kinds: Arc<[Kind]>,
    /// Nodes that exist: free of charge, each once, with the room that is left on them.
    pub bins: Vec<Bin>,
    /// Sets of kinds and bins, referred to by rows.
    pub groups: Vec<Group>,
    /// At most `caps[g]` items of the rows that list `g` on any one node, bought or existing.
    pub caps: Vec<u32>,
    /// The total spend of all bought nodes must stay within each budget.
    pub budgets: Vec<u64>,
}

/// Identical items.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// What one item takes, per dimension.
    pub need: Box<[u64]>,
    /// How many items there are.
    pub count: u32,
    /// The group of kinds and bins where such an item may be and may justify a node's existence.
    pub home: u32,
    /// A further group where it may only be a filler: a bought node of kind `k` needs at least one
    /// item whose `home` contains `k`. In bins, `home` and `also` are the same.
    pub also: Option<u32>,
    /// Cap groups it is a member of; an item consumes one of each.
    pub caps: Vec<u32>,
    /// Tokens: no node may hold an item that emits a token together with another that repels it.
    pub emits: Vec<u32>,
    /// Tokens whose emitters these items do not tolerate on their node.
    pub repels: Vec<u32>,
    /// When budgets leave room for only some items, higher priorities go first.
    pub priority: i32,
}

/// Something that can be bought.
#[derive(Clone, Debug, Default)]
pub struct Kind {
    /// What a fresh node offers, per dimension.
    pub room: Box<[u64]>,
    /// Nano-dollars per hour.
    pub price: u64,
    /// What one node takes of which budget.
    pub spend: Vec<(u32, u64)>,
    /// Number of launch alternatives; at equal price more is better.
    pub options: u32,
}

/// A node that exists.
#[derive(Clone, Debug, Default)]
pub struct Bin {
    /// What is left on it, per dimension.
    pub room: Box<[u64]>,
    /// How many items of which cap group it holds already.
    pub caps_used: Vec<(u32, u32)>,
    /// Tokens emitted by what it holds already.
    pub emits: Vec<u32>,
    /// Tokens repelled by what it holds already.
    pub repels: Vec<u32>,
}

/// A set of kinds and bins, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Indexes into [`Problem::kinds`].
    pub kinds: FixedBitSet,
    /// Indexes into [`Problem::bins`].
    pub bins: FixedBitSet,
}

/// What a packing is wanted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aim {
    /// To know what fits: the first good packing will do.
    Fit,
    /// To buy it: as cheap as the steps allow.
    #[default]
    Price,
}

/// How hard to try.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the packing is wanted for.
    pub aim: Aim,
    /// Elementary operations that [`pack`](crate::pack) may spend on improving a first packing,
    /// and [`bound`](crate::bound) on tightening a first bound. A step is about a nanosecond.
    pub steps_max: u64,
    /// A fee per new node that exists only in the search, in nano-dollars per hour: among nearly
    /// equal packings it prefers the one with fewer nodes.
    pub node_fee: u64,
    /// Column generation is used up to this many distinct rows.
    pub columns_rows_max: usize,
    /// A node may cost this many millionths more if that gives it more launch options.
    pub near_tie_ppm: u64,
    /// A price to bound from below: a bound that is close to it is good enough. Zero for none.
    pub enough: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            aim: Aim::Price,
            steps_max: 500_000_000,
            node_fee: 3_000_000,
            columns_rows_max: 400,
            near_tie_ppm: 500,
            enough: 0,
        }
    }
}

/// Where items were put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A new node of this kind.
    Kind(u32),
    /// An existing node.
    Bin(u32),
}

/// One node and what was put on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The node.
    pub place: Place,
    /// Row indexes with item counts, by row, no zero counts.
    pub items: Vec<(u32, u32)>,
}

/// An answer to a [`Problem`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packing {
    /// New nodes, and bins that received items.
    pub nodes: Vec<Packed>,
    /// Row indexes with the count of items that found no place.
    pub unplaced: Vec<(u32, u32)>,
    /// The price of all new nodes, in nano-dollars per hour.
    pub price: u64,
    /// What one more item of each row is worth in nano-dollars: a hint for
    /// [`bound`](crate::bound).
    pub values: Vec<f64>,
    /// How many steps it took.
    pub steps: u64,
}
