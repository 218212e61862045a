//! One node while it is being filled: what is left of its room, caps and tokens.
//!
//! This is the only place that decides whether an item fits on a node, so every packing made
//! through it is legal. It refuses to know about prices.

use crate::fill::Lineup;
use crate::model::{HOME, Model};

/// The state of one node under construction. Reused from node to node to save allocations.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    slot: usize,
    /// Room left per dimension.
    pub(crate) left: Vec<u64>,
    cap_left: Vec<u32>,
    caps_touched: Vec<u32>,
    emitted: Vec<u32>,
    repelled: Vec<u32>,
    held: Vec<u32>,
    /// Classes on the node, in order of arrival; a class may have come and gone.
    order: Vec<u32>,
    n_home: u64,
    /// Scratch of the filling.
    pub(crate) lineup: Lineup,
}

impl Load {
    /// An unusable state; call [`Load::open`] first.
    pub(crate) fn new(model: &Model) -> Self {
        Self {
            slot: 0,
            left: vec![0; model.n_dims],
            cap_left: model.cap_size.clone(),
            caps_touched: Vec::new(),
            emitted: vec![0; model.n_tokens],
            repelled: vec![0; model.n_tokens],
            held: vec![0; model.n_classes],
            order: Vec::new(),
            n_home: 0,
            lineup: Lineup::default(),
        }
    }

    /// Starts over with an empty node of this slot.
    pub(crate) fn open(&mut self, model: &Model, slot: usize) {
        for &class in &self.order {
            self.held[class as usize] = 0;
            for &token in &model.emits[class as usize] {
                self.emitted[token as usize] = 0;
            }
            for &token in &model.repels[class as usize] {
                self.repelled[token as usize] = 0;
            }
        }
        self.order.clear();
        for &cap in &self.caps_touched {
            self.cap_left[cap as usize] = model.cap_size[cap as usize];
        }
        self.caps_touched.clear();
        self.n_home = 0;
        self.slot = slot;
        self.left.copy_from_slice(model.room(slot));
        for &(cap, used) in model.caps_used(slot) {
            let left = &mut self.cap_left[cap as usize];
            *left = left.saturating_sub(used);
            self.caps_touched.push(cap);
        }
    }

    /// The slot this node is of.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// How many more items of this class fit, ignoring how many there are.
    pub(crate) fn fit(&self, model: &Model, class: usize) -> u32 {
        if model.may(self.slot, class) == 0 {
            return 0;
        }
        self.fit_allowed(model, class)
    }

    /// Like [`Load::fit`] for a class that is known to be allowed on the slot.
    pub(crate) fn fit_allowed(&self, model: &Model, class: usize) -> u32 {
        let mut fit = u64::from(u32::MAX - self.held[class]);
        for (&need, &left) in model.need(class).iter().zip(&self.left) {
            if need > left {
                return 0;
            }
            if fit.checked_mul(need).is_none_or(|all| all > left) {
                fit = left / need;
            }
        }
        for &cap in &model.caps[class] {
            fit = fit.min(u64::from(self.cap_left[cap as usize]));
        }
        if model.emits[class].is_empty() && model.repels[class].is_empty() {
            return u32::try_from(fit).unwrap_or(u32::MAX);
        }
        if !self.tolerates(model, class) {
            return 0;
        }
        if model.repels_itself[class] {
            fit = fit.min(1);
        }
        u32::try_from(fit).unwrap_or(u32::MAX)
    }

    /// Whether one more item fits of a class that is known to be allowed on the slot: the answer
    /// of [`Load::fit_allowed`] without the divisions.
    pub(crate) fn admits(&self, model: &Model, class: usize) -> bool {
        let need = model.need(class).iter().zip(&self.left);
        let mut fits = true;
        for (need, left) in need {
            fits &= need <= left;
        }
        fits && model.caps[class]
            .iter()
            .all(|&cap| self.cap_left[cap as usize] > 0)
            && self.tolerates(model, class)
    }

    /// Whether tokens let an item of the class onto the node.
    fn tolerates(&self, model: &Model, class: usize) -> bool {
        let absent = |tokens: &[u32], here: &[u32]| tokens.iter().all(|&t| here[t as usize] == 0);
        absent(&model.emits[class], &self.repelled) && absent(&model.repels[class], &self.emitted)
    }

    /// Adds `n` items that are known to fit.
    pub(crate) fn add(&mut self, model: &Model, class: usize, n: u32) {
        if n == 0 {
            return;
        }
        debug_assert!(
            n <= self.fit(model, class),
            "items were added that do not fit"
        );
        if self.held[class] == 0 {
            self.order.push(class as u32);
        }
        self.held[class] += n;
        for (&need, left) in model.need(class).iter().zip(&mut self.left) {
            *left -= need * u64::from(n);
        }
        for &cap in &model.caps[class] {
            self.cap_left[cap as usize] -= n;
            self.caps_touched.push(cap);
        }
        for &token in &model.emits[class] {
            self.emitted[token as usize] += n;
        }
        for &token in &model.repels[class] {
            self.repelled[token as usize] += n;
        }
        if model.may(self.slot, class) == HOME {
            self.n_home += u64::from(n);
        }
    }

    /// Takes `n` items away that are known to be there.
    pub(crate) fn remove(&mut self, model: &Model, class: usize, n: u32) {
        debug_assert!(
            n <= self.held[class],
            "items were removed that are not there"
        );
        self.held[class] -= n;
        for (&need, left) in model.need(class).iter().zip(&mut self.left) {
            *left += need * u64::from(n);
        }
        for &cap in &model.caps[class] {
            self.cap_left[cap as usize] += n;
        }
        for &token in &model.emits[class] {
            self.emitted[token as usize] -= n;
        }
        for &token in &model.repels[class] {
            self.repelled[token as usize] -= n;
        }
        if model.may(self.slot, class) == HOME {
            self.n_home -= u64::from(n);
        }
    }

    /// How many items of this class are on the node.
    pub(crate) fn held(&self, class: usize) -> u32 {
        self.held[class]
    }

    /// Whether something on the node justifies its existence; always so for an existing node.
    pub(crate) fn justified(&self, model: &Model) -> bool {
        self.slot >= model.n_kinds || self.n_home > 0
    }

    /// The classes on the node with their counts, by class.
    pub(crate) fn items(&self) -> Vec<(u32, u32)> {
        let mut items: Vec<(u32, u32)> = self
            .order
            .iter()
            .map(|&class| (class, self.held[class as usize]))
            .filter(|&(_, n)| n > 0)
            .collect();
        items.sort_unstable();
        items.dedup();
        items
    }

    /// The classes on the node, possibly with repetitions and with classes that left again.
    pub(crate) fn classes(&self) -> &[u32] {
        &self.order
    }
}

/// Whether a node of this slot can hold all these items.
pub(crate) fn holds(model: &Model, load: &mut Load, slot: usize, items: &[(u32, u32)]) -> bool {
    load.open(model, slot);
    for &(class, n) in items {
        if load.fit(model, class as usize) < n {
            return false;
        }
        load.add(model, class as usize, n);
    }
    load.justified(model)
}
