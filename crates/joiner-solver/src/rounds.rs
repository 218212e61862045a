//! The whole way from a problem to a plan: attempts, rounds within an attempt, and writing it down.
//!
//! An *attempt* settles on a level of giving up for every pod and packs. Pods that stay out give up
//! one more wish, and the next attempt starts. A *round* packs some of the pods into some of the
//! pools: first those that can only be in limited pools, then all others, then those that the limits
//! shut out of their heaviest pool.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{Plan, PodIx, Pool, Problem};
use joiner_pack::Aim;

use crate::bundles::bundle;
use crate::cells::{CellCaps, Hints, Part, admit};
use crate::classes::Classes;
use crate::effort::Effort;
use crate::finish::Finisher;
use crate::ground::Ground;
use crate::homes::{Trial, Tries};
use crate::ledger::Ledger;
use crate::memo::Memo;
use crate::rows::RowMaker;
use crate::select::{Asks, Choices};
use crate::stock::Stock;
use crate::wish;

/// Most attempts; each one gives up something for some pods or learns a limit.
const ATTEMPTS_MAX: usize = 24;
/// Other homes are tried for a plan that is farther from the bound than this part of it.
const NEAR: u64 = 200;

/// Answers a problem.
///
/// *Guarantees*: the same problem gives the same plan, whatever the order of its pods, nodes,
/// pools and types. *Assumes* that indexes in the problem are valid.
#[must_use]
pub fn solve(problem: &Problem) -> Plan {
    solved(problem).0
}

/// The plan, and what it took.
pub(crate) fn solved(problem: &Problem) -> (Plan, Effort) {
    let ground = Ground::new(problem);
    let mut choices = Choices::default();
    let groups = first_groups(&ground, &mut choices);
    let mut trial = Trial {
        ground: &ground,
        choices: &mut choices,
        groups,
        hints: Hints::default(),
        effort: Effort::new(problem),
        stock: Stock::new(&ground, false),
        memo: Memo::default(),
    };
    let mut attempt = trial.attempt();
    trial.effort.aim = Aim::Fit;
    let mut tries = Tries::new(&ground, &attempt.classes);
    for _ in 1..ATTEMPTS_MAX {
        if attempt.n_out() == 0 {
            break;
        }
        if !attempt.learn(&mut trial.hints) {
            attempt = trial.seat_more(attempt, &mut tries);
            if attempt.n_out() == 0 || !attempt.give_up_something(problem, &mut trial.groups) {
                break;
            }
        }
        attempt = trial.attempt();
    }
    if attempt.aim == Aim::Fit {
        attempt = trial.priced(attempt);
    }
    // What is near the bound already is not worth more tries, and they would cost most of the time.
    let worth_a_try = tries.may_save() && attempt.n_out() == 0 && !attempt.ledger.opened.is_empty();
    let floor = worth_a_try.then(|| {
        let placed: Vec<PodIx> = problem.pending().collect();
        attempt.floor(&ground, &placed)
    });
    let price = attempt.ledger.price(&ground);
    if floor.is_none_or(|floor| price > floor.get().saturating_add(floor.get() / NEAR)) {
        attempt = trial.save(attempt, &mut tries);
    }
    let effort = trial.effort;
    (attempt.plan(&ground, &mut choices, floor), effort)
}

/// Pods to place by shape and level; wishes that no node at all can meet are given up at once.
fn first_groups(ground: &Ground<'_>, choices: &mut Choices) -> BTreeMap<(u32, u16), Vec<PodIx>> {
    let problem = ground.problem;
    let mut by_shape: BTreeMap<u32, Vec<PodIx>> = BTreeMap::new();
    for pod in problem.pending() {
        by_shape.entry(problem[pod].shape.0).or_default().push(pod);
    }
    let mut groups = BTreeMap::new();
    for (s, mut pods) in by_shape {
        pods.sort_by(|a, b| problem[*a].name.cmp(&problem[*b].name));
        let shape = &problem.shapes[s as usize];
        let last = wish::levels(problem, shape);
        let mut level = wish::first_level(problem, shape);
        while level < last && !possible(ground, choices, s, level) {
            level += 1;
        }
        groups.insert((s, level), pods);
    }
    groups
}

/// True when some node could hold a pod of this shape by itself.
fn possible(ground: &Ground<'_>, choices: &mut Choices, s: u32, level: u16) -> bool {
    let shape = &ground.problem.shapes[s as usize];
    let wanted = wish::wish(shape, level);
    let choice = choices.of(
        ground,
        Asks::new(shape, wanted.node, wanted.tolerate_prefer),
    );
    let choice = &choices.all[choice as usize];
    let need = ground.amounts(&shape.requests);
    let fits = |room: &[u64]| need.iter().zip(room).all(|(q, r)| q <= r);
    ground
        .kinds
        .iter()
        .any(|k| fits(ground.room_of(k)) && choice.alternatives.iter().any(|sel| sel.has(k)))
        || choice.hosts.ones().any(|n| fits(&ground.hosts[n].room))
}

/// One try at placing everything.
pub(crate) struct Attempt {
    /// Classes of this attempt.
    pub(crate) classes: Classes,
    /// Items by fate.
    pub(crate) parts: Vec<Part>,
    /// Where items went.
    pub(crate) ledger: Ledger,
    /// Pods that no domain can take.
    refused: Vec<(u32, u32)>,
    /// Classes of which pods join such as run already.
    confined: BTreeSet<u32>,
    /// What it was packed for.
    aim: Aim,
    /// The price of the first packing.
    pub(crate) fit_price: u64,
}

impl Attempt {
    /// An attempt whose items are settled and not packed yet.
    pub(crate) fn new(
        ground: &Ground<'_>,
        choices: &mut Choices,
        groups: &BTreeMap<(u32, u16), Vec<PodIx>>,
        hints: &Hints,
    ) -> Self {
        let mut classes = Classes::new(ground, choices, groups);
        for class in &mut classes.all {
            class.comes_last = hints.last.contains(&(class.shape, class.level));
        }
        let bundles = bundle(ground, choices, &classes, hints);
        let admission = admit(ground, choices, &classes, bundles.items, hints);
        let parts: Vec<Part> = admission
            .parts
            .into_iter()
            .filter(|p| p.count > 0)
            .collect();
        let mut refused = bundles.refused;
        refused.extend(admission.refused);
        Self {
            classes,
            parts,
            ledger: Ledger::default(),
            refused,
            confined: bundles.confined,
            aim: Aim::Fit,
            fit_price: 0,
        }
    }

    /// Packs the items for the first time.
    pub(crate) fn pack(&mut self, trial: &mut Trial<'_, '_>) {
        self.ledger = self.packed(trial);
        self.aim = trial.effort.aim;
        self.fit_price = self.ledger.price(trial.ground);
    }

    /// Packs the same items once more, and keeps the packing that leaves fewer over, or is cheaper.
    pub(crate) fn pack_again(&mut self, trial: &mut Trial<'_, '_>) {
        // The plain packing knows which pool takes what: all that it placed can be packed at once.
        let has_rounds = self.ledger.has_rounds();
        let together = has_rounds.then(|| self.together(trial)).flatten();
        let is_enough = together.is_some() && self.ledger.shut_out.is_empty();
        self.keep(together, trial);
        if !is_enough {
            let other = self.packed(trial);
            self.keep(Some(other), trial);
        }
        self.aim = trial.effort.aim;
    }

    fn keep(&mut self, other: Option<Ledger>, trial: &Trial<'_, '_>) {
        let score = |ledger: &Ledger| (self.n_shut_out(ledger), ledger.price(trial.ground));
        if let Some(other) = other.filter(|other| score(other) <= score(&self.ledger)) {
            self.ledger = other;
        }
    }

    /// What a packing placed, packed all at once.
    fn together(&self, trial: &mut Trial<'_, '_>) -> Option<Ledger> {
        self.with_maker(trial, |maker| {
            let mut ledger = self.ledger.together(maker)?;
            ledger.prefer_finished(maker);
            Some(ledger)
        })
    }

    fn packed(&self, trial: &mut Trial<'_, '_>) -> Ledger {
        let aim = trial.effort.aim;
        let (classes, parts) = (&self.classes.all, &self.parts);
        if let Some(known) = trial.memo.get(aim, classes, parts) {
            return known.clone();
        }
        let ledger = self.with_maker(trial, |maker| Some(Ledger::pack(maker, parts)));
        let ledger = ledger.unwrap_or_default();
        trial.memo.keep(aim, classes, parts, &ledger);
        ledger
    }

    /// Packs, and takes nodes apart that would leave too few values to choose from.
    fn with_maker(
        &self,
        trial: &mut Trial<'_, '_>,
        pack: impl FnOnce(&mut RowMaker<'_, '_>) -> Option<Ledger>,
    ) -> Option<Ledger> {
        let (ground, choices) = (trial.ground, &*trial.choices);
        let (classes, parts) = (&self.classes, &self.parts);
        let mut maker = RowMaker::new((ground, &mut trial.stock), choices, classes, parts);
        maker.effort = trial.effort;
        let mut ledger = pack(&mut maker);
        let asks_for_values =
            |pool: &Pool| pool.requirements.iter().any(|r| r.min_values().is_some());
        if let Some(ledger) = &mut ledger
            && ground.problem.pools.iter().any(asks_for_values)
        {
            let mut finisher = Finisher::new(ground, choices, classes, parts, &ledger.opened);
            ledger.separate(&mut maker, |node| finisher.shape(node).is_some());
        }
        trial.effort = maker.effort;
        ledger
    }

    /// How many pods are left over.
    pub(crate) fn n_out(&self) -> u64 {
        let refused: u64 = self.refused.iter().map(|(_, n)| u64::from(*n)).sum();
        refused + self.n_shut_out(&self.ledger)
    }

    /// How many pods found no room in a packing of the items.
    fn n_shut_out(&self, ledger: &Ledger) -> u64 {
        let pods = |(p, n): &(u32, u32)| {
            let members = self.parts[*p as usize].item.members.iter();
            u64::from(*n) * members.map(|(_, m)| u64::from(*m)).sum::<u64>()
        };
        ledger.shut_out.iter().map(pods).sum()
    }

    /// Pods left over, by class.
    pub(crate) fn out(&self) -> BTreeMap<u32, u32> {
        let mut out: BTreeMap<u32, u32> = BTreeMap::new();
        for (c, n) in &self.refused {
            *out.entry(*c).or_default() += n;
        }
        for (p, n) in &self.ledger.shut_out {
            for (c, m) in &self.parts[*p as usize].item.members {
                *out.entry(*c).or_default() += n * m;
            }
        }
        out
    }

    /// Learns from pods that found no room. True when there is news.
    pub(crate) fn learn(&self, hints: &mut Hints) -> bool {
        let mut news = self.learn_caps(&mut hints.caps);
        for (c, n) in self.out() {
            let class = &self.classes.all[c as usize];
            let name = (class.shape, class.level);
            if self.confined.contains(&c) && !hints.afresh.contains_key(&name) {
                hints.afresh.insert(name, n);
                news = true;
            }
        }
        news
    }

    /// Learns how many items fit the domains in which some found no room: others of the rule must
    /// not count on more. True when that is news.
    fn learn_caps(&self, caps: &mut CellCaps) -> bool {
        let domain = |part: &Part| {
            let (c, _) = part.item.members.first()?;
            let class = &self.classes.all[*c as usize];
            (!part.limits.is_empty()).then(|| (class.shape, class.level, part.limits.clone()))
        };
        let mut fitting: CellCaps = CellCaps::new();
        for (p, n) in &self.ledger.shut_out {
            if let Some(key) = domain(&self.parts[*p as usize]) {
                let alike = self
                    .parts
                    .iter()
                    .filter(|other| domain(other).as_ref() == Some(&key));
                let total: u32 = alike.map(|other| other.count).sum();
                let most = fitting.entry(key).or_insert(total);
                *most = most.saturating_sub(*n);
            }
        }
        let mut news = false;
        for (key, most) in fitting {
            news |= caps.insert(key, most).is_none_or(|before| before > most);
        }
        news
    }

    /// Lowers the wishes of pods that stayed out. False when there is nothing left to give up.
    fn give_up_something(
        &self,
        problem: &Problem,
        groups: &mut BTreeMap<(u32, u16), Vec<PodIx>>,
    ) -> bool {
        let mut changed = false;
        for (c, n) in self.out() {
            let class = &self.classes.all[c as usize];
            if class.level >= wish::levels(problem, &problem.shapes[class.shape as usize]) {
                continue;
            }
            let Some(pods) = groups.get_mut(&(class.shape, class.level)) else {
                continue;
            };
            let kept = pods.len().saturating_sub(n as usize);
            let moved = pods.split_off(kept);
            groups
                .entry((class.shape, class.level + 1))
                .or_default()
                .extend(moved);
            changed = true;
        }
        changed
    }
}
