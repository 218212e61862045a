//! Other homes: trying other domains for classes under topology rules.
//!
//! Admission takes one domain after another and never looks back. Where that left pods over, or
//! where the problem is small enough to afford it, other choices are tried one at a time: a class
//! that fills some domain first, or is admitted before the others. What helps is kept.

use std::collections::BTreeMap;

use joiner_model::{Name, PodIx};
use joiner_pack::Aim;

use crate::cells::Hints;
use crate::classes::{Class, Classes};
use crate::effort::Effort;
use crate::ground::Ground;
use crate::memo::Memo;
use crate::rounds::Attempt;
use crate::select::Choices;
use crate::stock::Stock;

/// Pods times offerings over all tries that look for room.
const SEAT_WORK_MAX: u64 = 60_000_000;
/// Most tries that look for room.
const SEAT_TRIES_MAX: u64 = 80;
/// Pods times offerings over all tries that look for a lower price.
const SAVE_WORK_MAX: u64 = 500_000;
/// Most tries that look for a lower price.
const SAVE_TRIES_MAX: u64 = 60;
/// Most attempts in a row to learn what fits into domains.
const LESSONS_MAX: usize = 6;
/// A plain packing may be dearer than that of the best attempt by one part in so many, and still be
/// packed for price.
const PROMISING: u64 = 25;
/// Steps to settle the items of an attempt: at least, and for each kind.
const ATTEMPT_STEPS: u64 = 100_000;
const ATTEMPT_KIND_STEPS: u64 = 50;
/// Values of one key that are tried for a class.
const VALUES_MAX: usize = 8;

/// How many tries are left.
pub(crate) struct Tries {
    seat: u64,
    save: u64,
}

impl Tries {
    /// Fewer tries for larger problems.
    pub(crate) fn new(ground: &Ground<'_>, classes: &Classes) -> Self {
        let n_pods: u64 = classes.all.iter().map(|c| u64::from(c.count())).sum();
        let work = (n_pods * ground.kinds.len() as u64).max(1);
        Self {
            seat: (SEAT_WORK_MAX / work).min(SEAT_TRIES_MAX),
            save: (SAVE_WORK_MAX / work).min(SAVE_TRIES_MAX),
        }
    }

    /// True when a lower price may be looked for.
    pub(crate) fn may_save(&self) -> bool {
        self.save > 0
    }
}

/// One change to the hints.
#[derive(Clone, Debug)]
enum Move {
    /// A class fills a domain first.
    Lean((u32, u16), Name, Name),
    /// A class is admitted before others.
    Early((u32, u16)),
    /// Both.
    EarlyLean((u32, u16), Name, Name),
    /// All these fill the same domain first.
    Home(Vec<(u32, u16)>, Name, Name),
    /// A class comes after those under spreads that count it.
    Last((u32, u16)),
    /// A class stays out, so that others need not.
    Without((u32, u16)),
}

impl Move {
    fn apply(&self, hints: &mut Hints) {
        match self {
            Self::Lean(class, key, value) => {
                hints.leans.insert(*class, (key.clone(), value.clone()));
            }
            Self::Early(class) => {
                hints.early.retain(|c| c != class);
                hints.early.push(*class);
            }
            Self::EarlyLean(class, key, value) => {
                Self::Early(*class).apply(hints);
                Self::Lean(*class, key.clone(), value.clone()).apply(hints);
            }
            Self::Home(classes, key, value) => {
                for class in classes {
                    Self::Lean(*class, key.clone(), value.clone()).apply(hints);
                }
            }
            Self::Last(class) => {
                hints.last.insert(*class);
            }
            Self::Without(class) => {
                hints.without.insert(*class);
            }
        }
    }
}

/// Everything an attempt needs.
pub(crate) struct Trial<'a, 'p> {
    pub(crate) ground: &'a Ground<'p>,
    pub(crate) choices: &'a mut Choices,
    /// Pods by shape and level.
    pub(crate) groups: BTreeMap<(u32, u16), Vec<PodIx>>,
    pub(crate) hints: Hints,
    pub(crate) effort: Effort,
    pub(crate) stock: Stock,
    pub(crate) memo: Memo,
}

impl Trial<'_, '_> {
    /// An attempt with the hints there are.
    pub(crate) fn attempt(&mut self) -> Attempt {
        let (groups, hints) = (&self.groups, &self.hints);
        let mut attempt = Attempt::new(self.ground, self.choices, groups, hints);
        let kinds = self.ground.kinds.len() as u64;
        self.effort
            .spend(ATTEMPT_STEPS + kinds * ATTEMPT_KIND_STEPS);
        attempt.pack(self);
        attempt
    }

    /// The same attempt, packed as cheaply as the steps allow.
    pub(crate) fn priced(&mut self, mut attempt: Attempt) -> Attempt {
        self.effort.aim = Aim::Price;
        attempt.pack_again(self);
        self.effort.aim = Aim::Fit;
        attempt
    }

    /// An attempt that counts on no more pods in a domain than find room there.
    fn sound_attempt(&mut self) -> Attempt {
        let mut attempt = self.attempt();
        for _ in 0..LESSONS_MAX {
            if self.effort.is_over() || attempt.n_out() == 0 || !attempt.learn(&mut self.hints) {
                break;
            }
            attempt = self.attempt();
        }
        attempt
    }

    /// Looks for an attempt that leaves fewer pods over.
    pub(crate) fn seat_more(&mut self, attempt: Attempt, tries: &mut Tries) -> Attempt {
        let out = attempt.out();
        let under_rules = |c: &u32| {
            let class = &attempt.classes.all[*c as usize];
            !class.owned.is_empty() || !class.counted.is_empty()
        };
        if !out.keys().any(under_rules) {
            return attempt;
        }
        let fewer = |_: &mut Self, best: &Attempt, other: Attempt| {
            (other.n_out() < best.n_out()).then_some(other)
        };
        self.climb(attempt, &mut tries.seat, &fewer, &|a| a.n_out() == 0)
    }

    /// Looks for an attempt that leaves no more pods over and is cheaper.
    pub(crate) fn save(&mut self, attempt: Attempt, tries: &mut Tries) -> Attempt {
        self.effort.keep_nothing();
        let ground = self.ground;
        let score = |a: &Attempt| (a.n_out(), a.ledger.price(ground));
        let cheaper = |trial: &mut Self, best: &Attempt, other: Attempt| {
            // A plain packing that is much dearer does not become the cheapest.
            let promising = best.fit_price.saturating_add(best.fit_price / PROMISING);
            if other.n_out() > best.n_out() || other.fit_price > promising {
                return None;
            }
            let other = trial.priced(other);
            (score(&other) < score(best)).then_some(other)
        };
        self.climb(attempt, &mut tries.save, &cheaper, &|a| {
            a.ledger.opened.is_empty()
        })
    }

    fn climb(
        &mut self,
        mut best: Attempt,
        tries: &mut u64,
        better: &dyn Fn(&mut Self, &Attempt, Attempt) -> Option<Attempt>,
        done: &dyn Fn(&Attempt) -> bool,
    ) -> Attempt {
        if *tries == 0 || done(&best) {
            return best;
        }
        let moves = self.moves(&best);
        let mut since = 0;
        for turn in moves.iter().cycle() {
            let is_over = *tries == 0 || self.effort.is_over();
            if done(&best) || is_over || since >= moves.len() {
                break;
            }
            *tries -= 1;
            since += 1;
            let before = self.hints.clone();
            turn.apply(&mut self.hints);
            let other = self.sound_attempt();
            if let Some(other) = better(self, &best, other) {
                best = other;
                since = 0;
            } else {
                self.hints = before;
            }
        }
        best
    }

    /// The first few values of a key.
    fn values(&self, key: &Name) -> Vec<Name> {
        let mut values = self.ground.values(key, |_| true);
        let there = self.ground.problem.nodes.iter();
        values.extend(there.filter_map(|node| node.labels.get(key).cloned()));
        values.sort();
        values.dedup();
        values.truncate(VALUES_MAX);
        values
    }

    /// Changes worth trying, those about pods left over first.
    fn moves(&self, attempt: &Attempt) -> Vec<Move> {
        let out = attempt.out();
        let all_classes = &attempt.classes.all;
        let related = |c: u32, class: &Class| {
            let mut rules = class.owned.iter().chain(&class.counted);
            out.contains_key(&c)
                || rules.any(|r| {
                    let mut others = out.keys().map(|o| &all_classes[*o as usize]);
                    others.any(|o| o.is_counted(*r) || o.owned.contains(r))
                })
        };
        let mut all: Vec<(u8, Move)> = Vec::new();
        let mut by_key: BTreeMap<Name, Vec<(u32, u16)>> = BTreeMap::new();
        for (c, class) in (0u32..).zip(all_classes) {
            let name = (class.shape, class.level);
            let rank = u8::from(!related(c, class));
            if out.contains_key(&c) {
                all.push((3, Move::Without(name)));
            }
            for key in domain_keys(&attempt.classes, class) {
                by_key.entry(key.clone()).or_default().push(name);
                for value in self.values(&key) {
                    let (k, v) = (key.clone(), value);
                    all.push((rank, Move::Lean(name, k.clone(), v.clone())));
                    all.push((2 + rank, Move::EarlyLean(name, k, v)));
                }
            }
            all.push((rank, Move::Early(name)));
            if !class.owned.is_empty() {
                all.push((2 + rank, Move::Last(name)));
            }
        }
        for (key, classes) in by_key {
            let homes = self.values(&key).into_iter();
            all.extend(homes.map(|v| (1, Move::Home(classes.clone(), key.clone(), v))));
        }
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, turn)| turn).collect()
    }
}

/// Keys, other than the host name, of rules that bind or count a class.
fn domain_keys(classes: &Classes, class: &Class) -> Vec<Name> {
    let mut keys: Vec<Name> = class
        .owned
        .iter()
        .chain(&class.counted)
        .map(|r| &classes.book.rules[*r as usize])
        .filter(|rule| !rule.is_host())
        .map(|rule| rule.key.clone())
        .collect();
    keys.sort();
    keys.dedup();
    keys
}
