//! Packing in rounds: pools by weight and limit.
//!
//! Items that can only be in limited pools come first, then everybody, then those that the limits
//! shut out of their heaviest pool. When more than one round bought something, all that found a
//! place is packed once more together, and the cheaper of the two is kept.

use std::collections::BTreeMap;

use joiner_pack as pack;

use crate::cells::Part;
use crate::ground::Ground;
use crate::rows::{Opened, RowMaker, Todo};

/// Where items went.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    /// Nodes to buy.
    pub(crate) opened: Vec<Opened>,
    /// Items on existing nodes: host, part, count.
    pub(crate) on_hosts: Vec<(u32, u32, u32)>,
    /// Items that found no room: part and count.
    pub(crate) shut_out: Vec<(u32, u32)>,
    /// What an item of each part is worth at the margin, in nano-dollars: a hint for the bound.
    pub(crate) values: BTreeMap<u32, f64>,
    /// What found room, with the pools that were open to it.
    placed: Vec<Todo>,
    n_rounds: usize,
}

impl Ledger {
    /// Packs all parts.
    pub(crate) fn pack(maker: &mut RowMaker<'_, '_>, parts: &[Part]) -> Self {
        let limited = maker.limited_pools();
        let closed = |stage: u32, pool: usize| limited[..stage as usize].contains(&pool);
        let mut todo: Vec<Todo> = (0u32..)
            .zip(parts)
            .map(|(part, x)| Todo {
                part,
                count: x.count,
                stage: 0,
            })
            .collect();
        let mut ledger = Self::default();
        let stages = u32::try_from(limited.len()).unwrap_or(u32::MAX);
        if !limited.is_empty() {
            let all_limited = |_: u32, pool: usize| limited.contains(&pool);
            let bound_to_limits = maker.rows(&todo, &all_limited, &[]).hopeless;
            todo.retain(|t| bound_to_limits.iter().all(|b| b.part != t.part));
            let left = ledger.settle_in_stages(maker, bound_to_limits, &closed, stages);
            ledger
                .shut_out
                .extend(left.iter().map(|t| (t.part, t.count)));
        }
        let todo = ledger.settle_in_stages(maker, todo, &closed, stages);
        ledger
            .shut_out
            .extend(todo.iter().map(|t| (t.part, t.count)));
        if ledger.n_rounds > 1
            && maker.effort.aim == pack::Aim::Price
            && let Some(together) = ledger.together(maker)
        {
            ledger = together;
        }
        ledger.prefer_finished(maker);
        ledger
    }

    /// True when more than one round bought something.
    pub(crate) fn has_rounds(&self) -> bool {
        self.n_rounds > 1
    }

    /// What the nodes to buy cost.
    pub(crate) fn price(&self, ground: &Ground<'_>) -> u64 {
        self.opened
            .iter()
            .map(|node| ground.kinds[node.kind as usize].price)
            .sum()
    }

    /// Takes nodes apart that `fine` refuses and buys nodes for each part of them alone.
    pub(crate) fn separate(
        &mut self,
        maker: &mut RowMaker<'_, '_>,
        mut fine: impl FnMut(&Opened) -> bool,
    ) {
        let (kept, refused): (Vec<Opened>, Vec<Opened>) = std::mem::take(&mut self.opened)
            .into_iter()
            .partition(|node| fine(node));
        self.opened = kept;
        for (part, count) in refused.into_iter().flat_map(|node| node.parts) {
            let mut alone = Self {
                on_hosts: self.on_hosts.clone(),
                ..Self::default()
            };
            maker.set_elsewhere(&self.opened);
            let left = alone.settle(
                maker,
                &[Todo {
                    part,
                    count,
                    stage: 0,
                }],
                &|_, _| false,
            );
            self.shut_out.extend(left.iter().map(|t| (t.part, t.count)));
            self.on_hosts = alone.on_hosts;
            for node in alone.opened {
                if fine(&node) {
                    self.opened.push(node);
                } else {
                    self.shut_out.extend(node.parts);
                }
            }
        }
        maker.set_elsewhere(&[]);
    }

    /// The same items packed all at once, if that is cheaper and the pools' weights allow it.
    pub(crate) fn together(&self, maker: &mut RowMaker<'_, '_>) -> Option<Self> {
        let limited = maker.limited_pools();
        let closed = |stage: u32, pool: usize| limited[..stage as usize].contains(&pool);
        let mut together = Self::default();
        let left = together.settle(maker, &self.placed, &closed);
        let ground = maker.ground;
        let cheaper = together.price(ground) < self.price(ground);
        let fine = left.is_empty() && cheaper && maker.respects_weights(&together.opened);
        together.shut_out.clone_from(&self.shut_out);
        fine.then_some(together)
    }

    /// Packs `todo`; whoever the limits of the heaviest pool shut out tries the next.
    fn settle_in_stages(
        &mut self,
        maker: &mut RowMaker<'_, '_>,
        mut todo: Vec<Todo>,
        closed: &dyn Fn(u32, usize) -> bool,
        stages: u32,
    ) -> Vec<Todo> {
        for stage in 0..=stages {
            if todo.is_empty() {
                break;
            }
            todo.iter_mut().for_each(|t| t.stage = stage);
            todo = self.settle(maker, &todo, closed);
        }
        todo
    }

    /// Packs `todo`, and once more with every cap in force what slack caps kept out.
    fn settle(
        &mut self,
        maker: &mut RowMaker<'_, '_>,
        todo: &[Todo],
        closed: &dyn Fn(u32, usize) -> bool,
    ) -> Vec<Todo> {
        let mut left = self.round(maker, todo, closed);
        if !left.is_empty() && maker.has_slack() {
            maker.be_strict(true);
            left = self.round(maker, &left, closed);
            maker.be_strict(false);
        }
        let n_before = self.placed.len();
        for t in todo {
            let out = left
                .iter()
                .find(|l| (l.part, l.stage) == (t.part, t.stage))
                .map_or(0, |l| l.count);
            if t.count > out {
                self.placed.push(Todo {
                    count: t.count - out,
                    ..*t
                });
            }
        }
        self.n_rounds += usize::from(self.placed.len() > n_before);
        left
    }

    /// Packs `todo` and returns what found no room.
    fn round(
        &mut self,
        maker: &mut RowMaker<'_, '_>,
        todo: &[Todo],
        closed: &dyn Fn(u32, usize) -> bool,
    ) -> Vec<Todo> {
        if todo.is_empty() {
            return Vec::new();
        }
        maker.set_on_hosts(&self.on_hosts);
        let rows = maker.rows(todo, closed, &self.opened);
        let packing = pack::pack(&rows.problem, &maker.effort.settings());
        maker.effort.spend(packing.steps);
        let mut left = rows.hopeless;
        let mut sources = rows.sources;
        for (source, value) in sources.iter().zip(&packing.values) {
            self.values
                .extend(source.iter().map(|todo| (todo.part, *value)));
        }
        let n_hosts = rows.problem.bins.len() - self.opened.len();
        let mut bought = Vec::new();
        for node in &packing.nodes {
            let mut items: Vec<(u32, u32)> = Vec::new();
            let mut used = BTreeMap::new();
            for (row, n) in &node.items {
                maker.draw(&mut sources[*row as usize], *n, &mut used, &mut items);
            }
            match node.place {
                pack::Place::Kind(kind) => bought.push(Opened { kind, parts: items }),
                pack::Place::Bin(b) if (b as usize) < n_hosts => {
                    let host = maker.host_at(b);
                    self.on_hosts
                        .extend(items.into_iter().map(|(p, n)| (host, p, n)));
                }
                pack::Place::Bin(b) => self.opened[b as usize - n_hosts].parts.extend(items),
            }
        }
        self.opened
            .extend(bought.into_iter().filter(|node| !node.parts.is_empty()));
        left.extend(sources.into_iter().flatten().filter(|t| t.count > 0));
        left.sort_unstable();
        merge(left)
    }
}

/// One entry per part and stage.
fn merge(todo: Vec<Todo>) -> Vec<Todo> {
    let mut all: Vec<Todo> = Vec::new();
    for t in todo {
        match all.last_mut() {
            Some(last) if last.part == t.part && last.stage == t.stage => last.count += t.count,
            _ => all.push(t),
        }
    }
    all
}
