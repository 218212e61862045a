//! Local search: take a few nodes apart, pack their items again, keep what is no dearer.
//!
//! This is what repairs the rounding of small problems: it merges, splits, swaps and downsizes
//! nodes without knowing these words. Chance comes from a fixed seed.

use crate::fill::{Guide, Steps, Taste, fill, value};
use crate::greedy::cheapest;
use crate::load::Load;
use crate::model::NO;
use crate::plan::{Node, Plan};

/// A small generator of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// Always the same sequence.
    pub(crate) fn new() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// A number below `n`, which must not be zero.
    fn below(&mut self, n: usize) -> usize {
        (((self.next() >> 32) * n as u64) >> 32) as usize
    }

    /// A number from zero to one.
    fn share(&mut self) -> f64 {
        (self.next() >> 40) as f64 / (1_u64 << 24) as f64
    }
}

struct Search<'a> {
    guide: Guide<'a>,
    load: Load,
    chance: Chance,
    /// Per label the kinds that gave most value for their cost.
    hot: Vec<Vec<u32>>,
    /// Items to place; zero outside of a try.
    counts: Vec<u64>,
    noisy: Vec<f64>,
}

/// A slot and what to put there.
type Fresh = (usize, Vec<(u32, u32)>);

const HOT_MAX: usize = 24;
const KINDS_A_NODE: usize = 8;

/// Improves a plan until steps run out or nothing happens for long.
pub(crate) fn improve(guide: Guide<'_>, plan: &mut Plan, tries_max: usize, steps: &mut Steps) {
    if plan.nodes.is_empty() {
        return;
    }
    let model = guide.model;
    let mut search = Search {
        guide,
        load: Load::new(model),
        chance: Chance::new(),
        hot: Vec::new(),
        counts: vec![0; model.n_classes],
        noisy: guide.values.to_vec(),
    };
    search.find_hot(steps);
    let mut idle = 0;
    while idle < tries_max && !steps.over() {
        idle += 1;
        let picked = search.pick(&plan.nodes);
        if let Some((new, gain)) = search.again(&plan.nodes, &picked, steps) {
            replace(&mut plan.nodes, &picked, new);
            if gain > 0.0 {
                idle = 0;
            }
        }
    }
}

/// Takes one copy of each picked node out and puts the new ones in.
fn replace(nodes: &mut Vec<Node>, picked: &[usize], new: Vec<Node>) {
    for &at in picked {
        nodes[at].times -= 1;
    }
    for node in new {
        // Reuse the place of a node that is gone, to keep places stable.
        match picked.iter().find(|&&at| nodes[at].times == 0) {
            Some(&at) => nodes[at] = node,
            None => nodes.push(node),
        }
    }
    nodes.retain(|node| node.times > 0);
}

impl Search<'_> {
    /// Ranks kinds by what they are worth when filled from everything.
    fn find_hot(&mut self, steps: &mut Steps) {
        let model = self.guide.model;
        let mut ratios = Vec::with_capacity(model.n_kinds);
        for kind in 0..model.n_kinds {
            let classes: Vec<u32> = (0..model.n_classes as u32)
                .filter(|&c| model.fits(kind, c as usize))
                .collect();
            let most: Vec<u32> = classes.iter().copied().take(400).collect();
            self.load.open(model, kind);
            fill(
                model,
                &self.guide.taste(kind),
                &mut self.load,
                &model.count,
                &most,
                steps,
            );
            let worth = value(self.guide.values, &self.load.items());
            ratios.push((worth / self.guide.cost[kind].max(1.0), kind as u32));
        }
        ratios.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.hot = (0..model.n_labels)
            .map(|label| {
                let allowed = |kind: u32| {
                    let sig = model.sig[kind as usize] as usize;
                    model.allowed[sig * model.n_labels + label] != NO
                };
                let kinds = ratios
                    .iter()
                    .map(|&(_, kind)| kind)
                    .filter(|&kind| allowed(kind));
                kinds.take(HOT_MAX).collect()
            })
            .collect();
    }

    fn cost(&self, node: &Node) -> f64 {
        self.guide
            .cost
            .get(node.slot as usize)
            .copied()
            .unwrap_or(0.0)
    }

    /// A few places of nodes, mostly wasteful ones.
    fn pick(&mut self, nodes: &[Node]) -> Vec<usize> {
        const SIZES: [usize; 10] = [1, 2, 2, 2, 3, 3, 3, 4, 4, 5];
        let n = SIZES[self.chance.below(SIZES.len())].min(nodes.len());
        let mut picked = Vec::with_capacity(n);
        for _ in 0..n {
            let mut best: Option<(f64, usize)> = None;
            for _ in 0..1 + self.chance.below(3) {
                let at = self.chance.below(nodes.len());
                if picked.contains(&at) {
                    continue;
                }
                let waste = self.cost(&nodes[at]) - value(self.guide.values, &nodes[at].items);
                if best.is_none_or(|(most, _)| waste > most) {
                    best = Some((waste, at));
                }
            }
            picked.extend(best.map(|(_, at)| at));
        }
        picked
    }

    /// Packs the items of the picked nodes again; `None` if that is dearer.
    fn again(
        &mut self,
        nodes: &[Node],
        picked: &[usize],
        steps: &mut Steps,
    ) -> Option<(Vec<Node>, f64)> {
        let model = self.guide.model;
        let mut classes: Vec<u32> = Vec::new();
        let mut old = 0.0;
        for &at in picked {
            old += self.cost(&nodes[at]);
            for &(class, n) in &nodes[at].items {
                if self.counts[class as usize] == 0 {
                    classes.push(class);
                }
                self.counts[class as usize] += u64::from(n);
            }
        }
        classes.sort_unstable();
        let noise = [0.0, 0.02, 0.06, 0.15][self.chance.below(4)];
        for &class in &classes {
            let factor = 1.0 + noise * (self.chance.share() - 0.5);
            self.noisy[class as usize] = self.guide.values[class as usize] * factor;
        }
        let mut new = Vec::new();
        for &at in picked {
            let slot = nodes[at].slot as usize;
            if slot >= model.n_kinds {
                let items = self.filled(slot, &classes, steps);
                if !items.is_empty() {
                    self.commit(&mut new, slot, items);
                }
            }
        }
        // Now and then any kind will do for the next node: the best one first is not always best.
        let bold = self.chance.below(4) == 0;
        let mut cost = 0.0;
        while classes.iter().any(|&class| self.counts[class as usize] > 0) {
            let Some((slot, items)) = self.best_node(nodes, picked, (&classes, bold), steps) else {
                break;
            };
            cost += self.guide.cost[slot];
            if cost > old {
                break;
            }
            self.commit(&mut new, slot, items);
        }
        let mut left = false;
        for &class in &classes {
            left |= std::mem::take(&mut self.counts[class as usize]) > 0;
            self.noisy[class as usize] = self.guide.values[class as usize];
        }
        (!left && cost <= old).then_some((new, old - cost))
    }

    fn commit(&mut self, new: &mut Vec<Node>, slot: usize, items: Vec<(u32, u32)>) {
        for &(class, n) in &items {
            self.counts[class as usize] -= u64::from(n);
        }
        new.push(Node {
            slot: slot as u32,
            items,
            times: 1,
        });
    }

    fn filled(&mut self, slot: usize, classes: &[u32], steps: &mut Steps) -> Vec<(u32, u32)> {
        let model = self.guide.model;
        let some: Vec<u32> = classes
            .iter()
            .copied()
            .filter(|&c| self.counts[c as usize] > 0 && model.fits(slot, c as usize))
            .collect();
        if some.is_empty() {
            return Vec::new();
        }
        self.load.open(model, slot);
        let taste = Taste {
            values: &self.noisy,
            ..self.guide.taste(slot)
        };
        fill(model, &taste, &mut self.load, &self.counts, &some, steps);
        if self.load.justified(model) {
            self.load.items()
        } else {
            Vec::new()
        }
    }

    /// The best of a few kinds for what is to be placed.
    fn best_node(
        &mut self,
        nodes: &[Node],
        picked: &[usize],
        (classes, bold): (&[u32], bool),
        steps: &mut Steps,
    ) -> Option<Fresh> {
        let model = self.guide.model;
        if model.n_kinds == 0 {
            return None;
        }
        let mut kinds: Vec<u32> = picked
            .iter()
            .map(|&at| nodes[at].slot)
            .filter(|&slot| (slot as usize) < model.n_kinds)
            .collect();
        let open: Vec<u32> = classes
            .iter()
            .copied()
            .filter(|&c| self.counts[c as usize] > 0)
            .collect();
        for _ in 0..KINDS_A_NODE {
            let class = open[self.chance.below(open.len())] as usize;
            let hot = &self.hot[model.label[class] as usize];
            if !hot.is_empty() {
                kinds.push(hot[self.chance.below(hot.len())]);
            }
            // Any kind at all, now and then: the rest may need a small one.
            if self.chance.below(4) == 0 {
                kinds.push(self.chance.below(model.n_kinds) as u32);
            }
        }
        kinds.sort_unstable();
        kinds.dedup();
        if bold && !kinds.is_empty() {
            kinds = vec![kinds[self.chance.below(kinds.len())]];
        }
        let mut best: Option<(f64, Fresh)> = None;
        for kind in kinds {
            let items = self.filled(kind as usize, classes, steps);
            if items.is_empty() {
                continue;
            }
            let worth = value(&self.noisy, &items);
            steps.spend(model.n_kinds * 3 + items.len() * 40 + 300);
            let slot = cheapest(&self.guide, &mut self.load, kind as usize, &items);
            let ratio = worth / self.guide.cost[slot].max(1e-9);
            if best.as_ref().is_none_or(|(most, ..)| ratio > *most) {
                best = Some((ratio, (slot, items)));
            }
        }
        best.map(|(_, node)| node)
    }
}
