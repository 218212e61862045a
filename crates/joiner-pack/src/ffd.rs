//! First fit, decreasing: the plain way, kept as a floor under the quality of everything else.
//!
//! Items are sorted by the first dimension, then the second; each goes onto the first open node
//! where some kind that the node may still become can hold everything; a node is priced at the
//! cheapest such kind at the end.

use crate::fill::{Guide, Steps};
use crate::greedy::{cheapest, subtract};
use crate::load::{Load, holds};
use crate::model::{HOME, Model};
use crate::plan::Node;

struct Open {
    /// Kinds the node may still become.
    kinds: Vec<u32>,
    items: Vec<(u32, u32)>,
    used: Vec<u64>,
}

/// Packs everything in `counts` that some kind can hold onto new nodes, or gives up when steps
/// run out.
pub(crate) fn first_fit(
    guide: &Guide<'_>,
    counts: &mut [u64],
    steps: &mut Steps,
) -> Option<Vec<Node>> {
    let model = guide.model;
    let mut order: Vec<usize> = (0..model.n_classes).filter(|&c| counts[c] > 0).collect();
    order.sort_by(|&a, &b| {
        model
            .need(b)
            .iter()
            .take(2)
            .cmp(model.need(a).iter().take(2))
    });
    let mut open: Vec<Open> = Vec::new();
    let mut load = Load::new(model);
    for class in order {
        let home: Vec<u32> = (0..model.n_kinds)
            .filter(|&k| model.may(k, class) == HOME && model.fits(k, class))
            .map(|k| k as u32)
            .collect();
        let mut left = counts[class];
        for node in &mut open {
            while left > 0 && node.put(model, &mut load, class, steps) {
                left -= 1;
            }
            if steps.over() {
                return None;
            }
        }
        while left > 0 && !home.is_empty() {
            let mut node = Open {
                kinds: home.clone(),
                items: Vec::new(),
                used: vec![0; model.n_dims],
            };
            while left > 0 && node.put(model, &mut load, class, steps) {
                left -= 1;
            }
            if node.items.is_empty() || steps.over() {
                return None;
            }
            open.push(node);
        }
    }
    let nodes: Vec<Node> = open
        .into_iter()
        .map(|node| {
            let slot = cheapest(guide, &mut load, node.kinds[0] as usize, &node.items) as u32;
            Node {
                slot,
                items: node.items,
                times: 1,
            }
        })
        .collect();
    for node in &nodes {
        subtract(counts, &node.items, 1);
    }
    Some(nodes)
}

impl Open {
    /// Adds one item if some kind can still hold everything.
    fn put(&mut self, model: &Model, load: &mut Load, class: usize, steps: &mut Steps) -> bool {
        let fits = |room: &[u64], used: &[u64]| {
            room.iter()
                .zip(used)
                .zip(model.need(class))
                .all(|((r, u), n)| u.checked_add(*n).is_some_and(|sum| sum <= *r))
        };
        steps.spend(self.kinds.len() * 8);
        let mut kinds: Vec<u32> = self
            .kinds
            .iter()
            .copied()
            .filter(|&k| model.may(k as usize, class) > 0)
            .filter(|&k| fits(model.room(k as usize), &self.used))
            .collect();
        if kinds.is_empty() {
            return false;
        }
        let mut items = self.items.clone();
        match items.iter_mut().find(|(c, _)| *c as usize == class) {
            Some((_, n)) => *n += 1,
            None => {
                items.push((class as u32, 1));
                items.sort_unstable();
            }
        }
        steps.spend(items.len());
        if model.caps[class].is_empty()
            && model.emits[class].is_empty()
            && model.repels[class].is_empty()
        {
            // Room is all that matters, and it was checked for every kind.
        } else if !holds(model, load, kinds[0] as usize, &items) {
            return false;
        }
        std::mem::swap(&mut self.kinds, &mut kinds);
        self.items = items;
        for (used, need) in self.used.iter_mut().zip(model.need(class)) {
            *used += need;
        }
        true
    }
}
