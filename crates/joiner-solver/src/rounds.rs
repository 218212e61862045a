//! The whole way from a problem to a plan: attempts, rounds within an attempt, and writing it down.
//!
//! An *attempt* settles on a level of giving up for every pod and packs. Pods that stay out give up
//! one more wish, and the next attempt starts. A *round* packs some of the pods into some of the
//! pools: first those that can only be in limited pools, then all others, then those that the limits
//! shut out of their heaviest pool.

use std::collections::BTreeMap;

use joiner_model::{
    Cost, Name, NanoDollars, NodeIx, Placement, Plan, PodIx, Problem, Refusal, Resources, Unplaced,
};
use joiner_pack as pack;

use crate::bundles::bundle;
use crate::cells::{CellCaps, Part, admit};
use crate::classes::Classes;
use crate::finish::Finisher;
use crate::floor;
use crate::ground::Ground;
use crate::refuse::Refuser;
use crate::rows::{Opened, RowMaker};
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
    let mut caps = CellCaps::new();
    let mut attempt = Attempt::make(&ground, &mut choices, &groups, &caps);
    for _ in 1..ATTEMPTS_MAX {
        if !attempt.give_up_something(problem, &mut groups, &mut caps) {
            break;
        }
        attempt = Attempt::make(&ground, &mut choices, &groups, &caps);
    }
    attempt.plan(&ground, &mut choices)
}

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
struct Attempt {
    classes: Classes,
    parts: Vec<Part>,
    /// Where items went.
    ledger: Ledger,
    /// Pods that no domain can take.
    refused: Vec<(u32, u32)>,
}

/// Where items went.
#[derive(Default)]
struct Ledger {
    /// Nodes to buy.
    opened: Vec<Opened>,
    /// Items on existing nodes: host, part, count.
    on_hosts: Vec<(u32, u32, u32)>,
    /// Items that found no room.
    shut_out: Vec<(u32, u32)>,
}

impl Attempt {
    fn make(
        ground: &Ground<'_>,
        choices: &mut Choices,
        groups: &BTreeMap<(u32, u16), Vec<PodIx>>,
        caps: &CellCaps,
    ) -> Self {
        let classes = Classes::new(ground, choices, groups);
        let bundles = bundle(ground, choices, &classes);
        let admission = admit(ground, choices, &classes, bundles.items, caps);
        let parts: Vec<Part> = admission
            .parts
            .into_iter()
            .filter(|p| p.count > 0)
            .collect();
        let mut refused = bundles.refused;
        refused.extend(admission.refused);
        let mut ledger = Ledger::default();
        let mut maker = RowMaker::new(ground, choices, &classes, &parts);
        ledger.pack(ground, &mut maker, &parts);
        Self {
            classes,
            parts,
            ledger,
            refused,
        }
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
            let Some((c, _)) = part.item.members.first() else {
                continue;
            };
            let class = &self.classes.all[*c as usize];
            if !part.limits.is_empty() {
                // The domain is full: others of the rule must not count on it.
                let most = part.count - n;
                let key = (class.shape, class.level, part.limits.clone());
                changed |= caps.insert(key, most).is_none_or(|before| before > most);
            }
        }
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

    /// Writes the plan: names pods, ranks alternatives, bounds the price, gives reasons.
    fn plan(&self, ground: &Ground<'_>, choices: &mut Choices) -> Plan {
        let problem = ground.problem;
        let mut pods = PodDealer::new(&self.classes);
        let mut finisher = Finisher::new(ground, choices, &self.classes, &self.parts);
        let mut launches = Vec::new();
        let mut placed: Vec<PodIx> = Vec::new();
        let mut lost: Vec<u32> = Vec::new();
        for node in &self.ledger.opened {
            let Some(shaped) = finisher.shape(node) else {
                lost.extend(node.parts.iter().map(|(p, _)| *p));
                continue;
            };
            let mut own = pods.deal(&self.parts, &node.parts);
            sort_by_name(problem, &mut own);
            let mut requests = Resources::new();
            own.iter()
                .for_each(|p| requests.add(&problem.shape(*p).requests));
            placed.extend(&own);
            launches.push(shaped.launch(Name::from(""), own, requests));
        }
        let mut by_host: BTreeMap<u32, Vec<PodIx>> = BTreeMap::new();
        for (host, p, n) in &self.ledger.on_hosts {
            by_host
                .entry(*host)
                .or_default()
                .extend(pods.deal(&self.parts, &[(*p, *n)]));
        }
        let placements = by_host
            .into_iter()
            .map(|(host, mut own)| {
                sort_by_name(problem, &mut own);
                placed.extend(&own);
                Placement {
                    node: NodeIx(host),
                    pods: own,
                }
            })
            .collect();
        name_launches(problem, &mut launches);
        let price: NanoDollars = launches.iter().map(|l| l.price).sum();
        let unplaced = self.unplaced(ground, choices, pods.rest());
        let bound = floor::bound(ground, choices, &placed).min(price);
        Plan {
            launches,
            placements,
            unplaced,
            cost: Cost { price, bound },
        }
    }

    /// Pods left over, with reasons; equal pods share them.
    fn unplaced(
        &self,
        ground: &Ground<'_>,
        choices: &mut Choices,
        mut rest: Vec<PodIx>,
    ) -> Vec<Unplaced> {
        let problem = ground.problem;
        let mut refuser = Refuser::new(ground, choices, &self.classes);
        sort_by_name(problem, &mut rest);
        let mut all: Vec<Unplaced> = rest
            .into_iter()
            .map(|pod| Unplaced {
                pod,
                refusals: refuser.refusals(pod),
            })
            .collect();
        for (p, pod) in (0u32..).zip(&problem.pods) {
            if let (None, Some(why)) = (pod.node, &pod.ignored) {
                all.push(Unplaced {
                    pod: PodIx(p),
                    refusals: vec![Refusal::Ignored(why.clone())],
                });
            }
        }
        all
    }
}

impl Ledger {
    /// Packs all parts, round by round.
    fn pack(&mut self, ground: &Ground<'_>, maker: &mut RowMaker<'_, '_>, parts: &[Part]) {
        let mut todo: Vec<(u32, u32)> = (0u32..).zip(parts).map(|(p, x)| (p, x.count)).collect();
        let limited: Vec<bool> = ground
            .problem
            .pools
            .iter()
            .map(|p| p.limits.is_some())
            .collect();
        let mut out: Vec<bool> = vec![false; ground.problem.pools.len()];
        if limited.contains(&true) {
            // Those that can only be in limited pools come first.
            let free = maker.rows(&todo, &|_, pool| limited[pool], &[]);
            let bound_to_limits = free.hopeless;
            todo.retain(|(p, _)| bound_to_limits.iter().all(|(q, _)| q != p));
            let left = self.settle(maker, &bound_to_limits, &|_, _| false);
            self.shut_out.extend(left);
        }
        // Then everybody; whoever the limits of the heaviest pool shut out tries the next.
        todo = self.settle(maker, &todo, &|_, _| false);
        let mut by_weight: Vec<usize> = (0..limited.len()).filter(|p| limited[*p]).collect();
        by_weight.sort_by_key(|p| {
            let pool = &ground.problem.pools[*p];
            (std::cmp::Reverse(pool.weight), pool.name.clone())
        });
        for pool in by_weight {
            if todo.is_empty() {
                break;
            }
            out[pool] = true;
            todo = self.settle(maker, &todo, &|_, p| out[p]);
        }
        self.shut_out.extend(todo);
    }

    /// Packs `todo`, and once more with every cap in force what slack caps kept out.
    fn settle(
        &mut self,
        maker: &mut RowMaker<'_, '_>,
        todo: &[(u32, u32)],
        closed: &dyn Fn(u32, usize) -> bool,
    ) -> Vec<(u32, u32)> {
        let left = self.round(maker, todo, closed);
        if left.is_empty() || !maker.has_slack() {
            return left;
        }
        maker.be_strict(true);
        let left = self.round(maker, &left, closed);
        maker.be_strict(false);
        left
    }

    /// Packs `todo` and returns what found no room.
    fn round(
        &mut self,
        maker: &mut RowMaker<'_, '_>,
        todo: &[(u32, u32)],
        closed: &dyn Fn(u32, usize) -> bool,
    ) -> Vec<(u32, u32)> {
        if todo.is_empty() {
            return Vec::new();
        }
        let rows = maker.rows(todo, closed, &self.opened);
        let settings = pack::Settings::default();
        let packing = pack::pack(&rows.problem, &settings);
        let mut left = rows.hopeless;
        let mut sources = rows.sources;
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
                    self.on_hosts
                        .extend(items.into_iter().map(|(p, n)| (b, p, n)));
                }
                pack::Place::Bin(b) => self.opened[b as usize - n_hosts].parts.extend(items),
            }
        }
        self.opened.extend(bought);
        left.extend(sources.into_iter().flatten().filter(|(_, n)| *n > 0));
        left.sort_unstable();
        left
    }
}

/// Hands out the pods of each class in name order.
struct PodDealer<'c> {
    classes: &'c Classes,
    dealt: Vec<usize>,
}

impl<'c> PodDealer<'c> {
    fn new(classes: &'c Classes) -> Self {
        Self {
            classes,
            dealt: vec![0; classes.all.len()],
        }
    }

    fn deal(&mut self, parts: &[Part], items: &[(u32, u32)]) -> Vec<PodIx> {
        let mut own = Vec::new();
        for (p, n) in items {
            for (c, m) in &parts[*p as usize].item.members {
                let from = self.dealt[*c as usize];
                let to = from + (*n as usize) * (*m as usize);
                own.extend(&self.classes.all[*c as usize].pods[from..to]);
                self.dealt[*c as usize] = to;
            }
        }
        own
    }

    fn rest(&self) -> Vec<PodIx> {
        let rest = self
            .classes
            .all
            .iter()
            .zip(&self.dealt)
            .flat_map(|(c, n)| &c.pods[*n..]);
        rest.copied().collect()
    }
}

fn sort_by_name(problem: &Problem, pods: &mut [PodIx]) {
    pods.sort_by(|a, b| {
        problem.pods[a.0 as usize]
            .name
            .cmp(&problem.pods[b.0 as usize].name)
    });
}

/// Orders nodes by pool and size, and names them `pool-1`, `pool-2`, …
fn name_launches(problem: &Problem, launches: &mut [joiner_model::Launch]) {
    let pool = |l: &joiner_model::Launch| &problem.pools[l.pool.0 as usize].name;
    let first = |l: &joiner_model::Launch| {
        l.pods
            .first()
            .map(|p| problem.pods[p.0 as usize].name.clone())
    };
    launches.sort_by(|a, b| {
        pool(a)
            .cmp(pool(b))
            .then(b.price.cmp(&a.price))
            .then_with(|| first(a).cmp(&first(b)))
    });
    let mut numbers: BTreeMap<Name, u32> = BTreeMap::new();
    for launch in launches {
        let pool = pool(launch).clone();
        let number = numbers.entry(pool.clone()).or_default();
        *number += 1;
        launch.name = format!("{pool}-{number}").into();
    }
}
