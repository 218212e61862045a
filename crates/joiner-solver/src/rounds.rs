//! The whole way from a problem to a plan: attempts, rounds within an attempt, and writing it down.
//!
//! An *attempt* settles on a level of giving up for every pod and packs. Pods that stay out give up
//! one more wish, and the next attempt starts. A *round* packs some of the pods into some of the
//! pools: first those that can only be in limited pools, then all others, then those that the limits
//! shut out of their heaviest pool.

use std::collections::BTreeMap;

use joiner_model::{Name, Plan, PodIx, Pool, Problem};

use crate::bundles::bundle;
use crate::cells::{CellCaps, Hints, Part, admit};
use crate::classes::{Classes, Demand};
use crate::finish::Finisher;
use crate::ground::Ground;
use crate::ledger::Ledger;
use crate::rows::RowMaker;
use crate::select::{Asks, Choices};
use crate::wish;

/// Most attempts; each one gives up something for some pods or learns a limit.
const ATTEMPTS_MAX: usize = 24;

/// Answers a problem.
///
/// *Guarantees*: the same problem gives the same plan, whatever the order of its pods, nodes,
/// pools and types. *Assumes* that indexes in the problem are valid.
#[must_use]
pub fn solve(problem: &Problem) -> Plan {
    let ground = Ground::new(problem);
    let mut choices = Choices::default();
    let mut groups = first_groups(&ground, &mut choices);
    let mut hints = Hints::default();
    let mut attempt = Attempt::make(&ground, &mut choices, &groups, &hints);
    for _ in 1..ATTEMPTS_MAX {
        if !attempt.give_up_something(problem, &mut groups, &mut hints.caps) {
            break;
        }
        attempt = Attempt::make(&ground, &mut choices, &groups, &hints);
    }
    for value in attempt.other_homes(&ground) {
        hints.home = Some(value);
        let other = Attempt::make(&ground, &mut choices, &groups, &hints);
        if other.score(&ground) < attempt.score(&ground) {
            attempt = other;
        }
    }
    attempt.plan(&ground, &mut choices)
}

/// With more pods than this only one home is tried for groups that are drawn together.
const HOMES_PODS_MAX: usize = 150;

/// Pods to place by shape and level; wishes that no node at all can meet are given up at once.
fn first_groups(ground: &Ground<'_>, choices: &mut Choices) -> BTreeMap<(u32, u16), Vec<PodIx>> {
    let problem = ground.problem;
    let mut by_shape: BTreeMap<u32, Vec<PodIx>> = BTreeMap::new();
    for pod in problem.pending() {
        by_shape
            .entry(problem.pods[pod.0 as usize].shape.0)
            .or_default()
            .push(pod);
    }
    let mut groups = BTreeMap::new();
    for (s, mut pods) in by_shape {
        pods.sort_by(|a, b| {
            problem.pods[a.0 as usize]
                .name
                .cmp(&problem.pods[b.0 as usize].name)
        });
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
}

impl Attempt {
    fn make(
        ground: &Ground<'_>,
        choices: &mut Choices,
        groups: &BTreeMap<(u32, u16), Vec<PodIx>>,
        hints: &Hints,
    ) -> Self {
        let classes = Classes::new(ground, choices, groups);
        let bundles = bundle(ground, choices, &classes);
        let admission = admit(ground, choices, &classes, bundles.items, hints);
        let parts: Vec<Part> = admission
            .parts
            .into_iter()
            .filter(|p| p.count > 0)
            .collect();
        let mut refused = bundles.refused;
        refused.extend(admission.refused);
        let mut maker = RowMaker::new(ground, choices, &classes, &parts);
        let mut ledger = Ledger::pack(ground, &mut maker, &parts);
        let asks_for_values =
            |pool: &Pool| pool.requirements.iter().any(|r| r.min_values().is_some());
        if ground.problem.pools.iter().any(asks_for_values) {
            let mut finisher = Finisher::new(ground, choices, &classes, &parts, &ledger.opened);
            ledger.separate(&mut maker, |node| finisher.shape(node).is_some());
        }
        Self {
            classes,
            parts,
            ledger,
            refused,
        }
    }

    /// Fewer pods left over, then cheaper.
    fn score(&self, ground: &Ground<'_>) -> (u64, u64) {
        let mut n_out: u64 = self.refused.iter().map(|(_, n)| u64::from(*n)).sum();
        for (p, n) in &self.ledger.shut_out {
            let members = self.parts[*p as usize].item.members.iter();
            n_out += u64::from(*n) * members.map(|(_, m)| u64::from(*m)).sum::<u64>();
        }
        (n_out, self.ledger.price(ground))
    }

    /// Domains in which groups that are drawn together could be tried, in a problem that is small
    /// enough to try them all.
    fn other_homes(&self, ground: &Ground<'_>) -> Vec<Name> {
        let n_pods: usize = self.classes.all.iter().map(|c| c.pods.len()).sum();
        let drawn: Vec<&Name> = self
            .classes
            .book
            .rules
            .iter()
            .filter(|rule| rule.demand == Demand::Affinity && !rule.is_host())
            .map(|rule| &rule.key)
            .collect();
        if n_pods > HOMES_PODS_MAX || drawn.is_empty() {
            return Vec::new();
        }
        let mut homes: Vec<Name> = drawn
            .iter()
            .flat_map(|key| ground.values(key, |_| true))
            .collect();
        homes.sort();
        homes.dedup();
        homes.truncate(8);
        homes
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

    /// Lowers the wishes of pods that stayed out, or learns how many a cell can take. False when
    /// there is nothing left to try.
    fn give_up_something(
        &self,
        problem: &Problem,
        groups: &mut BTreeMap<(u32, u16), Vec<PodIx>>,
        caps: &mut CellCaps,
    ) -> bool {
        let mut changed = false;
        let mut out: BTreeMap<u32, u32> = BTreeMap::new();
        for (c, n) in &self.refused {
            *out.entry(*c).or_default() += n;
        }
        for (p, n) in &self.ledger.shut_out {
            let part = &self.parts[*p as usize];
            for (c, m) in &part.item.members {
                *out.entry(*c).or_default() += n * m;
            }
        }
        changed |= self.learn_caps(caps);
        for (c, n) in out {
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
