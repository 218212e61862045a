//! The best filling of one node, exactly: branch and bound in integers.
//!
//! Values are fixed-point integers. With resource prices `π` no filling is worth more than
//! `π·room + sum(most * max(0, value - π·need))`; every decision that departs from this ideal
//! loses some of it, and a branch ends when nothing above the goal is left. What is proven here
//! holds without any floating-point argument; tokens and caps beyond the shared ones are
//! ignored, which can only raise the upper bound.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::Model;

/// Values as integers: `value * 2^bits`, rounded down.
pub(crate) struct Fixed<'a> {
    model: &'a Model,
    bits: u32,
    values: Vec<u64>,
    /// Amounts are shifted right by this, needs rounded down and rooms up.
    shift: Vec<u32>,
}

/// One class in a knapsack.
struct Item {
    class: u32,
    value: u64,
    /// What one takes at the resource prices.
    takes: u64,
    most: u64,
    /// Whether the item before this one needs the same and is worth no less: then this one is
    /// of use only when that one is used up.
    second: bool,
}

/// A node to fill.
pub(crate) struct Knapsack {
    n_rows: usize,
    items: Vec<Item>,
    /// Needs per item and row.
    needs: Vec<u64>,
    rooms: Vec<u64>,
    /// What the rest of the items could add at most, beyond what they take.
    rest: Vec<u64>,
    ideal: u128,
    room_worth: u64,
}

/// What a search found out.
pub(crate) struct Outcome {
    /// The best filling above the goal that was found.
    pub(crate) best: Option<Vec<(u32, u32)>>,
    /// No filling is worth more than this.
    pub(crate) upper: u128,
}

/// How long to look on when a filling was found.
const MORE_NODES: u64 = 3_000;
/// Sums in the search stay below this.
const WORTH_MAX: u128 = 1 << 62;

impl<'a> Fixed<'a> {
    /// Values rounded down to fixed point.
    pub(crate) fn new(model: &'a Model, values: &[f64]) -> Self {
        let dearest = model.price[..model.n_kinds]
            .iter()
            .copied()
            .max()
            .unwrap_or(0)
            .max(1);
        let bits = dearest.leading_zeros().saturating_sub(5).min(40);
        let unit = (1_u64 << bits) as f64;
        // A value far above every price is of no use and would only risk an overflow.
        let most = dearest as f64 * 4.0;
        let values = values
            .iter()
            .map(|v| (v.clamp(0.0, most) * unit) as u64)
            .collect();
        let nd = model.n_dims;
        let mut shift = vec![0; nd];
        for (ix, &room) in model.room.iter().enumerate() {
            shift[ix % nd] = shift[ix % nd].max(20_u32.saturating_sub(room.leading_zeros()));
        }
        Self {
            model,
            bits,
            values,
            shift,
        }
    }

    /// An amount of money in fixed point, rounded down.
    pub(crate) fn of(&self, amount: f64) -> u128 {
        (amount.max(0.0) * (1_u64 << self.bits) as f64) as u128
    }

    /// A price in fixed point, exactly.
    pub(crate) fn price(&self, slot: usize) -> u128 {
        u128::from(self.model.price[slot]) << self.bits
    }

    /// The value of one item in fixed point.
    pub(crate) fn value(&self, class: usize) -> u64 {
        self.values[class]
    }

    /// Whole nano-dollars, rounded down.
    pub(crate) fn whole(&self, amount: u128) -> u64 {
        u64::try_from(amount >> self.bits).unwrap_or(u64::MAX)
    }

    /// The knapsack of a slot. Any resource prices are valid; good ones make it tight.
    pub(crate) fn knapsack(
        &self,
        slot: usize,
        classes: &[u32],
        prices: &[f64],
        most: &[u64],
    ) -> Knapsack {
        let (rooms, prices, worth) = self.rows(slot, prices);
        if worth >= WORTH_MAX {
            // Prices this high are no use; without prices the bound is weak but safe.
            return self.assemble((classes, most), rooms, &vec![0; prices.len()], 0);
        }
        self.assemble((classes, most), rooms, &prices, worth as u64)
    }

    /// Rooms and integer prices per row, and what the whole room is worth.
    fn rows(&self, slot: usize, prices: &[f64]) -> (Vec<u64>, Vec<u64>, u128) {
        let model = self.model;
        let nd = model.n_dims;
        let mut rooms: Vec<u64> = model
            .room(slot)
            .iter()
            .zip(&self.shift)
            .map(|(&room, &shift)| (room >> shift) + u64::from(room & ((1 << shift) - 1) > 0))
            .collect();
        for (at, &cap) in model.shared_caps.iter().enumerate() {
            debug_assert_eq!(rooms.len(), nd + at, "caps follow the dimensions");
            let used = model
                .caps_used(slot)
                .iter()
                .find(|u| u.0 == cap)
                .map_or(0, |u| u.1);
            rooms.push(u64::from(model.cap_size[cap as usize].saturating_sub(used)));
        }
        let unit = (1_u64 << self.bits) as f64;
        let prices: Vec<u64> = (0..rooms.len())
            .map(|row| {
                let mut price = prices.get(row).copied().unwrap_or(0.0) * unit;
                if row < nd {
                    price *= (1_u64 << self.shift[row]) as f64 / model.scale[row];
                }
                price as u64
            })
            .collect();
        let worth: u128 = rooms
            .iter()
            .zip(&prices)
            .map(|(&r, &p)| u128::from(r) * u128::from(p))
            .sum();
        (rooms, prices, worth)
    }

    /// What no filling of the slot can exceed at these resource prices.
    pub(crate) fn ideal(&self, slot: usize, classes: &[u32], prices: &[f64]) -> u128 {
        let (rooms, prices, worth) = self.rows(slot, prices);
        let model = self.model;
        let mut sum = worth;
        for &class in classes {
            let class = class as usize;
            let need = model.need(class).iter().zip(&self.shift).zip(&prices);
            let mut takes: u128 = need
                .map(|((&n, &s), &p)| u128::from(n >> s) * u128::from(p))
                .sum();
            for &cap in &model.shared_of[class] {
                takes += u128::from(prices[model.n_dims + cap as usize]);
            }
            let gain = u128::from(self.values[class]).saturating_sub(takes);
            if gain > 0 {
                let mut most = model.limit[class];
                for ((&n, &s), &room) in model.need(class).iter().zip(&self.shift).zip(&rooms) {
                    most = room.checked_div(n >> s).map_or(most, |fit| most.min(fit));
                }
                sum = sum.saturating_add(gain.saturating_mul(u128::from(most)));
            }
        }
        sum
    }

    /// Items that need the same, most valuable first; those that matter most before the others.
    fn alike(
        &self,
        (classes, most): (&[u32], &[u64]),
        rooms: &[u64],
        prices: &[u64],
    ) -> Vec<(Vec<u64>, Vec<Item>)> {
        let model = self.model;
        let (nd, n_rows) = (model.n_dims, rooms.len());
        let need_of = |class: usize, out: &mut Vec<u64>| {
            let at = out.len();
            out.extend(
                model
                    .need(class)
                    .iter()
                    .zip(&self.shift)
                    .map(|(&n, &s)| n >> s),
            );
            out.resize(at + n_rows, 0);
            for &cap in &model.shared_of[class] {
                out[at + nd + cap as usize] = 1;
            }
        };
        // Items that need the same stay together, the most valuable first.
        let mut alike: BTreeMap<Vec<u64>, Vec<Item>> = BTreeMap::new();
        for &class in classes.iter().filter(|&&c| self.values[c as usize] > 0) {
            let mut need = Vec::with_capacity(n_rows);
            need_of(class as usize, &mut need);
            let mut most = most[class as usize];
            for (&n, &room) in need.iter().zip(rooms) {
                most = room.checked_div(n).map_or(most, |fit| most.min(fit));
            }
            if most > 0 {
                // The item fits at least once, so this cannot exceed the room's worth.
                let takes = need.iter().zip(prices).map(|(n, p)| n * p).sum();
                let value = self.values[class as usize];
                let item = Item {
                    class,
                    value,
                    takes,
                    most,
                    second: false,
                };
                alike.entry(need).or_default().push(item);
            }
        }
        let mut alike: Vec<(Vec<u64>, Vec<Item>)> = alike.into_iter().collect();
        for (_, items) in &mut alike {
            items.sort_unstable_by_key(|item| (Reverse(item.value), item.class));
            for item in items.iter_mut().skip(1) {
                item.second = true;
            }
        }
        // Decide first what matters most: what leaves the ideal at the highest loss.
        alike.sort_by_key(|(_, items)| Reverse(items[0].value.abs_diff(items[0].takes)));
        alike
    }

    fn assemble(
        &self,
        (classes, most): (&[u32], &[u64]),
        rooms: Vec<u64>,
        prices: &[u64],
        room_worth: u64,
    ) -> Knapsack {
        let n_rows = rooms.len();
        let alike = self.alike((classes, most), &rooms, prices);
        let (mut items, mut needs) = (Vec::with_capacity(classes.len()), Vec::new());
        for (need, some) in alike {
            for item in some {
                items.push(item);
                needs.extend_from_slice(&need);
            }
        }
        let mut rest = vec![0_u128; items.len() + 1];
        for (at, item) in items.iter().enumerate().rev() {
            let gain = u128::from(item.value.saturating_sub(item.takes));
            rest[at] = rest[at + 1] + gain * u128::from(item.most);
        }
        let ideal = rest[0] + u128::from(room_worth);
        let rest = rest
            .into_iter()
            .map(|r| u64::try_from(r).unwrap_or(u64::MAX))
            .collect();
        Knapsack {
            n_rows,
            items,
            needs,
            rooms,
            rest,
            ideal,
            room_worth,
        }
    }
}

impl Knapsack {
    /// No filling is worth more.
    pub(crate) fn ideal(&self) -> u128 {
        self.ideal
    }
}

struct Branch<'a> {
    knapsack: &'a Knapsack,
    goal: u64,
    nodes: &'a mut u64,
    left: Vec<u64>,
    chosen: Vec<u32>,
    best: Option<Vec<(u32, u32)>>,
    cut_short: bool,
}

/// Looks for a filling worth more than `goal`, visiting at most `nodes` nodes.
pub(crate) fn search(knapsack: &Knapsack, goal: u128, nodes: &mut u64) -> Outcome {
    if knapsack.ideal <= goal {
        return Outcome {
            best: None,
            upper: knapsack.ideal,
        };
    }
    if knapsack.ideal >= WORTH_MAX {
        return Outcome {
            best: None,
            upper: knapsack.ideal,
        };
    }
    let goal = goal as u64;
    let mut branch = Branch {
        knapsack,
        goal,
        nodes,
        left: knapsack.rooms.clone(),
        chosen: vec![0; knapsack.items.len()],
        best: None,
        cut_short: false,
    };
    branch.descend(0, 0, knapsack.room_worth);
    let upper = if branch.cut_short {
        knapsack.ideal
    } else {
        u128::from(branch.goal)
    };
    Outcome {
        best: branch.best,
        upper,
    }
}

impl Branch<'_> {
    /// Decides item `at` and all after it; `true` to stop.
    fn descend(&mut self, at: usize, value: u64, slack: u64) -> bool {
        if value > self.goal {
            let chosen = self.chosen.iter().zip(&self.knapsack.items);
            let mut items: Vec<(u32, u32)> = chosen
                .filter(|(n, _)| **n > 0)
                .map(|(&n, item)| (item.class, n))
                .collect();
            items.sort_unstable();
            self.best = Some(items);
            // Go on for a better one, but not for long.
            self.goal = value;
            *self.nodes = (*self.nodes).min(MORE_NODES);
        }
        let Some((at, most)) = self.first_that_matters(at, value + slack) else {
            return false;
        };
        if *self.nodes == 0 {
            self.cut_short = true;
            return true;
        }
        *self.nodes -= 1;
        let item = &self.knapsack.items[at];
        let rest = self.knapsack.rest[at + 1];
        if item.value < item.takes {
            // Best is to take none, and each one loses more.
            let spare = (value + slack)
                .saturating_add(rest)
                .saturating_sub(self.goal + 1);
            let most = most.min(spare / (item.takes - item.value));
            if (value + slack).saturating_add(rest) <= self.goal {
                return false;
            }
            return (0..=most).any(|n| self.choose(at, n, value, slack));
        }
        for n in (0..=most).rev() {
            let gained = n * (item.value - item.takes);
            if (value + slack).saturating_add(gained).saturating_add(rest) <= self.goal {
                // Taking even fewer only loses more.
                return false;
            }
            if self.choose(at, n, value, slack) {
                return true;
            }
        }
        false
    }

    /// How many of an item fit into what is left.
    fn fit(&self, at: usize) -> u64 {
        let knapsack = self.knapsack;
        let needs = &knapsack.needs[at * knapsack.n_rows..][..knapsack.n_rows];
        let item = &knapsack.items[at];
        if item.second && u64::from(self.chosen[at - 1]) < knapsack.items[at - 1].most {
            return 0;
        }
        let mut most = item.most.min(u64::from(u32::MAX));
        for (&need, &left) in needs.iter().zip(&self.left) {
            if need > left {
                return 0;
            }
            if most.checked_mul(need).is_none_or(|all| all > left) {
                most = left / need;
            }
        }
        most
    }

    /// The first undecided item that still fits, with how many of it fit; `None` if those that
    /// still fit cannot lift the sum of value and slack above the goal.
    fn first_that_matters(&self, at: usize, sum: u64) -> Option<(usize, u64)> {
        let mut first = None;
        let mut sum = sum;
        for (at, item) in self.knapsack.items.iter().enumerate().skip(at) {
            if first.is_some() && item.value <= item.takes {
                if sum > self.goal {
                    return first;
                }
                continue;
            }
            let fit = self.fit(at);
            if fit > 0 {
                sum = sum.saturating_add(fit * item.value.saturating_sub(item.takes));
                first = first.or(Some((at, fit)));
                if sum > self.goal {
                    return first;
                }
            }
        }
        None
    }

    /// Takes `n` of item `at` and goes on.
    fn choose(&mut self, at: usize, n: u64, value: u64, slack: u64) -> bool {
        let knapsack = self.knapsack;
        let item = &knapsack.items[at];
        let needs = &knapsack.needs[at * knapsack.n_rows..][..knapsack.n_rows];
        for (left, need) in self.left.iter_mut().zip(needs) {
            *left -= n * need;
        }
        self.chosen[at] = n as u32;
        let stop = self.descend(at + 1, value + n * item.value, slack - n * item.takes);
        self.chosen[at] = 0;
        for (left, need) in self.left.iter_mut().zip(needs) {
            *left += n * need;
        }
        stop
    }
}
