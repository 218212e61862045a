//! Which sets of nodes to ask about.
//!
//! There are far too many sets to try, so the search goes where money is: sets that could be emptied
//! by size alone, then growing prefixes of the candidates in upstream's order (price over disruption
//! cost), then the best of them with members added, dropped and exchanged, then single nodes by their
//! bound, with others of their kind.
//! The number of questions is limited; nodes that were not reached have their turn in the next pass.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{Name, NanoDollars};

use super::bounds::Rooms;
use super::{Judgement, Offer, Refused, balanced, better, pin, propose, rank};
use crate::budget::Allowances;
use crate::command::{Command, Method, Reason};
use crate::cost;
use crate::fleet::Fleet;
use crate::memory::Memory;
use crate::moves::Moves;
use crate::whatif::{Effort, WhatIf};
use crate::why::Why;

/// How often a set is tried again without the members that were in its way.
const REPAIRS_MAX: usize = 4;
/// Variations of the best set are about so many pods at most: they are for the last percent.
const VARIED_PODS_MAX: usize = 5_000;

/// What one pass of consolidation works with.
pub(crate) struct Pass<'s, 'f> {
    /// The fleet.
    pub(crate) fleet: &'f Fleet<'f>,
    /// What budgets leave.
    pub(crate) allowances: &'s Allowances,
    /// Rooms and prices.
    pub(crate) rooms: &'s Rooms,
    /// Bounds on savings, by member.
    pub(crate) bounds: &'s [NanoDollars],
    /// Why members stay, as far as known.
    pub(crate) stays: &'s mut [Option<Why>],
    /// What is told of the search.
    pub(crate) report: &'s RefCell<Report>,
}

/// What is told of a search, beside its outcome.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What ran out of questions.
    pub(crate) cut_short: Vec<Method>,
    /// What cautious pools turned down.
    pub(crate) turned_down: Vec<Judgement>,
}

/// The best consolidation that this pass finds.
pub(crate) fn decide<'f>(
    pass: Pass<'_, 'f>,
    memory: &mut Memory,
    what_if: &mut WhatIf<'f>,
) -> Option<Command> {
    let fleet = pass.fleet;
    if memory.is_idle(fleet) {
        return None;
    }
    let stays = &*pass.stays;
    let mut all: Vec<usize> = (0..fleet.members.len())
        .filter(|m| stays[*m].is_none() && !fleet.members[*m].is_empty())
        .collect();
    all.sort_by(|a, b| by_ratio(fleet, *a, *b));
    let moves = Moves::new(fleet);
    for m in &all {
        pass.stays[*m] = held_back(fleet, pass.allowances, &moves, *m);
    }
    let is_free = |m: &usize| pass.stays[*m].is_none();
    let free: Vec<usize> = all.iter().copied().filter(is_free).collect();
    let mut search = Search {
        pass: &pass,
        // What drift has asked before is not taken off: nodes that cannot go may stay for long.
        questions_max: what_if.n_asked + fleet.settings.what_ifs_max,
        what_if,
        moves_left: fleet.settings.moves_max,
        best: None,
        asked: BTreeSet::new(),
        refused: BTreeMap::new(),
        spent: false,
    };
    if !memory.searched() {
        search.sets(&free);
        if search.spent {
            pass.report.borrow_mut().cut_short.push(Method::Multi);
        }
        if let Some(offer) = search.settle() {
            return Some(offer.command(fleet, pass.rooms));
        }
        // A node that is spoken for will be free again without anything else changing.
        if !spoken_for(fleet) {
            memory.note_searched();
        }
    }
    search.spent = false;
    let single = search.singles(&free, memory);
    if search.spent {
        pass.report.borrow_mut().cut_short.push(Method::Single);
    }
    if let Some(offer) = single {
        return Some(offer.command(fleet, pass.rooms));
    }
    // Whoever was held back by its pool's budget only may go as soon as it is not. The patience of
    // workloads comes back slowly; whoever waits for that is looked at again in time.
    let held = (all.iter()).any(|m| matches!(pass.stays[*m], Some(Why::Budget(..))));
    let done = !held && (free.iter()).all(|m| memory.tried(&fleet.members[*m].leaver()));
    if done && !spoken_for(fleet) {
        memory.note_idle(fleet.changed);
    }
    None
}

/// Some node waits for a pod that was told to expect a place there.
fn spoken_for(fleet: &Fleet<'_>) -> bool {
    fleet.members.iter().any(|member| member.nominated)
}

/// Upstream's order: price over disruption cost, highest first; then by name.
fn by_ratio(fleet: &Fleet<'_>, a: usize, b: usize) -> std::cmp::Ordering {
    let (a, b) = (&fleet.members[a], &fleet.members[b]);
    let price = |m: &crate::fleet::Member| u128::from(m.price.unwrap_or_default().get());
    let (left, right) = (
        price(a) * u128::from(cost::disruption(b)),
        price(b) * u128::from(cost::disruption(a)),
    );
    right.cmp(&left).then_with(|| a.name.cmp(&b.name))
}

/// The budget that keeps a member, of its pool or of a workload on it.
fn held_back<'f>(
    fleet: &'f Fleet<'f>,
    allowances: &Allowances,
    moves: &Moves<'f>,
    m: usize,
) -> Option<Why> {
    let member = &fleet.members[m];
    if allowances.left(member.pool, Reason::Underutilized) == 0 {
        return Some(allowances.why(fleet, member, Reason::Underutilized));
    }
    moves.refused(fleet, m).map(Why::MovedEnough)
}

/// A search under way.
struct Search<'s, 'p, 'f> {
    pass: &'s Pass<'p, 'f>,
    what_if: &'s mut WhatIf<'f>,
    /// Most questions, of all that were asked.
    questions_max: u32,
    /// Pods that questions may still be about.
    moves_left: usize,
    best: Option<Offer>,
    /// Sets that were asked about.
    asked: BTreeSet<Vec<usize>>,
    /// Members that were asked about alone, and why they stay.
    refused: BTreeMap<usize, Why>,
    /// There were no questions left.
    spent: bool,
}

impl Search<'_, '_, '_> {
    /// Looks at sets of nodes.
    fn sets(&mut self, free: &[usize]) {
        let pass = self.pass;
        let most = pass.fleet.settings.nodes_max;
        let fitting = self.within_budgets(free);
        let emptied = pass.rooms.emptied(pass.fleet, &fitting, most);
        self.try_set(emptied.clone());
        let prefix = &fitting[..fitting.len().min(most)];
        let mut n = 1;
        while n < prefix.len() {
            self.try_set(prefix[..n].to_vec());
            n *= 2;
        }
        self.try_set(prefix.to_vec());
        self.refine(prefix, &emptied);
        self.widen(free);
        if self.best.is_some() && !self.spent {
            self.vary(prefix);
            // Nothing is cut short where variations are.
            self.spent = false;
        }
    }

    /// Members in order, as many as budgets allow together.
    fn within_budgets(&self, order: &[usize]) -> Vec<usize> {
        let fleet = self.pass.fleet;
        let mut left = self.pass.allowances.clone();
        let mut moves = Moves::new(fleet);
        let may_go = |m: &usize| {
            let pool = fleet.members[*m].pool;
            left.left(pool, Reason::Underutilized) > 0
                && moves.take(fleet, *m).is_ok()
                && left.take(pool, Reason::Underutilized)
        };
        order.iter().copied().filter(may_go).collect()
    }

    /// Asks about a set, and again without those who are in its way.
    fn try_set(&mut self, mut members: Vec<usize>) {
        for _ in 0..REPAIRS_MAX {
            members.sort_unstable();
            let drop = match self.ask(&members) {
                None => return,
                Some(Ok(offer)) => {
                    let drop = offer.swaps.clone();
                    let better = |best: &Offer| rank(&offer) > rank(best);
                    if self.best.as_ref().is_none_or(better) {
                        self.best = Some(offer);
                    }
                    drop
                }
                Some(Err(refused)) => {
                    self.note_refused(&members, &refused);
                    refused.because_of
                }
            };
            if drop.is_empty() || drop.len() == members.len() {
                return;
            }
            members.retain(|m| !drop.contains(m));
        }
    }

    /// One question, if it is new and there are questions left; the last one is for the best set.
    fn ask(&mut self, members: &[usize]) -> Option<Result<Offer, Refused>> {
        let n_pods = self.what_if.n_pods(members);
        let spent = self.what_if.n_asked + 1 >= self.questions_max || n_pods > self.moves_left;
        if members.is_empty() || self.asked.contains(members) {
            return None;
        }
        if spent {
            self.spent = true;
            return None;
        }
        self.asked.insert(members.to_vec());
        self.moves_left -= n_pods;
        Some(propose(
            self.pass.fleet,
            self.what_if,
            members,
            Effort::Explore,
        ))
    }

    /// Tries the best set with others added, and between the prefixes that were tried.
    fn refine(&mut self, prefix: &[usize], emptied: &[usize]) {
        let n_best = |this: &Self| this.best.as_ref().map_or(0, |best| best.members.len());
        self.try_more(emptied);
        let n = n_best(self);
        self.try_more(&prefix[..prefix.len().min(n + n.div_ceil(2))]);
        let n = n_best(self);
        self.try_set(prefix[..prefix.len().min(n * 3 / 4)].to_vec());
    }

    /// Tries the best set with these added, as many as budgets allow.
    fn try_more(&mut self, more: &[usize]) {
        let Some(best) = &self.best else { return };
        let own = &best.members;
        let more = more.iter().filter(|m| !own.contains(m));
        let set: Vec<usize> = own.iter().chain(more).copied().collect();
        let most = self.pass.fleet.settings.nodes_max;
        let set = self.within_budgets(&set);
        self.try_set(set.into_iter().take(most).collect());
    }

    /// Tries the best set with one of those who stay, and then with it in the stead of one of its kind:
    /// of many alike, which ones stay decides how well the others' pods fit.
    fn vary(&mut self, prefix: &[usize]) {
        let members = &self.pass.fleet.members;
        let enough = self.moves_left.saturating_sub(VARIED_PODS_MAX);
        let most = self.pass.fleet.settings.variations_max;
        self.questions_max = self.what_if.n_asked + most + 1;
        for n in 0..most as usize / 2 {
            for exchange in [false, true] {
                let Some(best) = &self.best else { return };
                let (mut set, own) = (best.members.clone(), &best.members);
                let mut others = prefix.iter().filter(|m| !own.contains(m)).cycle();
                let Some(more) = others.nth(n) else { return };
                if exchange {
                    let kind = &members[*more].type_name;
                    let alike = own.iter().filter(|m| members[**m].type_name == *kind);
                    let Some(less) = alike.cycle().nth(n) else {
                        continue;
                    };
                    set.retain(|m| m != less);
                }
                set.push(*more);
                let set = self.within_budgets(&set);
                if self.moves_left < enough + self.what_if.n_pods(&set) {
                    return;
                }
                self.try_set(set);
            }
        }
    }

    /// The best set, asked about once more with all effort.
    fn settle(&mut self) -> Option<Offer> {
        let best = self.best.take()?;
        let fleet = self.pass.fleet;
        let full = propose(fleet, self.what_if, &best.members, Effort::Full);
        better(full, Ok(best)).ok()
    }

    fn note_refused(&mut self, members: &[usize], refused: &Refused) {
        if let [m] = members {
            self.refused.insert(*m, refused.why.clone());
        }
    }

    /// Looks at nodes one by one, those first that could save most.
    fn singles(&mut self, free: &[usize], memory: &mut Memory) -> Option<Offer> {
        let (fleet, bounds) = (self.pass.fleet, self.pass.bounds);
        let leaver = |m: usize| fleet.members[m].leaver();
        if free.iter().all(|m| memory.seen(&leaver(*m))) {
            memory.start_round();
        }
        let mut order: Vec<usize> = free.to_vec();
        order.retain(|m| !memory.tried(&leaver(*m)));
        order.sort_by_key(|m| (memory.seen(&leaver(*m)), Reverse(bounds[*m])));
        for m in order {
            if let Some(why) = self.hopeless(m) {
                self.tell(m, &why);
                memory.note_kept(&leaver(m), why);
                continue;
            }
            match self.ask(&[m]) {
                Some(Ok(offer)) => {
                    self.best = Some(offer);
                    self.widen(free);
                    if let Some(offer) = self.settle() {
                        return Some(offer);
                    }
                }
                Some(Err(refused)) => self.note_refused(&[m], &refused),
                // Asked about among the sets.
                None if self.asked.contains(&vec![m]) => (),
                // Out of questions.
                None => break,
            }
            if let Some(why) = self.refused.remove(&m) {
                self.tell(m, &why);
                memory.note_kept(&leaver(m), self.with_hole(m, why));
            }
        }
        None
    }

    /// Tries the best set with all of its kinds that could save as much: what is found for one of many
    /// need not be found again for each.
    fn widen(&mut self, free: &[usize]) {
        let (fleet, bounds) = (self.pass.fleet, self.pass.bounds);
        let several = fleet.settings.launches_max() > 1;
        let Some(best) = self.best.as_ref().filter(|_| several) else {
            return;
        };
        let mut least: BTreeMap<&Name, NanoDollars> = BTreeMap::new();
        for m in &best.members {
            let least = least.entry(&fleet.members[*m].type_name);
            let least = least.or_insert(bounds[*m]);
            *least = bounds[*m].min(*least);
        }
        let is_alike = |m: &usize| {
            let least = least.get(&fleet.members[*m].type_name);
            least.is_some_and(|least| bounds[*m] >= *least)
        };
        let alike: Vec<usize> = free.iter().copied().filter(is_alike).collect();
        self.try_more(&alike);
    }

    /// Tells of a member that its pool does not give for so little.
    fn tell(&self, m: usize, why: &Why) {
        let Why::Unbalanced { score_milli, .. } = why else {
            return;
        };
        let fleet = self.pass.fleet;
        let judged = balanced::judged(fleet, &[m], self.pass.bounds[m]);
        let judged = judged.into_iter().map(|(_, judgement)| Judgement {
            score_milli: Some(*score_milli),
            ..judgement
        });
        let mut report = self.pass.report.borrow_mut();
        report.turned_down.extend(judged);
    }

    /// Why no question about a member alone could end well.
    fn hopeless(&self, m: usize) -> Option<Why> {
        let fleet = self.pass.fleet;
        let member = &fleet.members[m];
        let (savings, before) = (self.pass.bounds[m], member.price.unwrap_or_default());
        if savings == NanoDollars::ZERO {
            return Some(Why::NotCheaper {
                before,
                after: before,
            });
        }
        let move_cost = cost::of_move(fleet, &[m], 0);
        if cost::over_horizon(&fleet.settings, savings) <= move_cost {
            return Some(Why::NotWorthIt { savings, move_cost });
        }
        balanced::check(fleet, &[m], savings).err()
    }

    /// Says of a pod without a place how large a hole it would need.
    fn with_hole(&self, m: usize, why: Why) -> Why {
        let Why::Pinned(mut found) = why else {
            return why;
        };
        let fleet = self.pass.fleet;
        let pods = fleet.members[m].pods.iter();
        let mut same = pods.filter(|moved| fleet.problem[moved.pod].name == found.pod);
        if let Some(moved) = same.next() {
            let one = [(moved.pod, String::new())];
            let pinned = pin(fleet, &one, Some(self.pass.rooms));
            found.largest_hole = pinned.and_then(|pinned| pinned.largest_hole);
        }
        Why::Pinned(found)
    }
}
