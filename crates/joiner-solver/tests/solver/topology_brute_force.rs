//! Tiny clusters in which every order and every place can be tried: the plan places as many pods as
//! the best of them, on as few new nodes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use joiner_testkit::{
    HOSTNAME, Outcome, PodBuilder, Random, World, ZONE, instance_type, node, pod, pool,
};
use serde_json::json;

const APPS: [&str; 3] = ["red", "green", "blue"];
const CASES: u64 = 400;
/// One in a hundred.
const CASES_WASTEFUL: usize = 4;
/// A new node has room for so many pods.
const ROOM: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Zone,
    Host,
}

impl Key {
    fn label(self) -> &'static str {
        match self {
            Self::Zone => ZONE,
            Self::Host => HOSTNAME,
        }
    }
}

/// A rule about the pods of an app in the domains of a key.
#[derive(Clone, Copy, Debug)]
struct About {
    key: Key,
    app: usize,
}

#[derive(Clone, Debug, Default)]
struct TinyPod {
    app: usize,
    zone: Option<usize>,
    port: bool,
    spread: Option<(About, usize)>,
    affinity: Option<About>,
    anti_affinity: Option<About>,
}

#[derive(Clone, Debug)]
struct TinyNode {
    zone: usize,
    room: usize,
    /// Pods that run there.
    bound: Vec<TinyPod>,
}

#[derive(Clone, Debug)]
struct Tiny {
    /// Zones that the pool buys in: the first so many letters.
    n_zones: usize,
    nodes: Vec<TinyNode>,
    pods: Vec<TinyPod>,
}

fn letter(zone: usize) -> &'static str {
    ["a", "b", "c"][zone]
}

fn index(random: &mut Random, limit: usize) -> usize {
    usize::try_from(random.below(limit as u64)).expect("a small number")
}

fn about(random: &mut Random) -> About {
    let key = random.pick(&[Key::Zone, Key::Zone, Key::Host]);
    About {
        key,
        app: index(random, 2),
    }
}

fn tiny_pod(random: &mut Random, n_zones: usize) -> TinyPod {
    let mut pod = TinyPod {
        app: index(random, 2),
        ..TinyPod::default()
    };
    pod.zone = random.percent(20).then(|| index(random, n_zones));
    pod.port = random.percent(15);
    if random.percent(40) {
        let own = About {
            app: pod.app,
            ..about(random)
        };
        let about = if random.percent(75) {
            own
        } else {
            about(random)
        };
        pod.spread = Some((about, 1 + index(random, 2)));
    }
    pod.affinity = random.percent(25).then(|| about(random));
    pod.anti_affinity = random.percent(25).then(|| about(random));
    pod
}

fn tiny(seed: u64) -> Tiny {
    let mut random = Random::new(&format!("tiny {seed}"));
    let random = &mut random;
    let n_zones = 2 + index(random, 2);
    let n_nodes = index(random, 3);
    let nodes = (0..n_nodes).map(|_| {
        let n_bound = index(random, 3);
        let mut bound: Vec<TinyPod> = (0..n_bound).map(|_| tiny_pod(random, n_zones)).collect();
        for pod in &mut bound {
            pod.port = false;
        }
        TinyNode {
            zone: index(random, 3),
            room: index(random, 3),
            bound,
        }
    });
    let nodes = nodes.collect();
    let n_kinds = 1 + index(random, 3);
    let kinds: Vec<TinyPod> = (0..n_kinds).map(|_| tiny_pod(random, n_zones)).collect();
    let n_pods = 2 + index(random, 4);
    let pods = (0..n_pods)
        .map(|_| kinds[index(random, n_kinds)].clone())
        .collect();
    Tiny {
        n_zones,
        nodes,
        pods,
    }
}

impl Tiny {
    fn world(&self) -> World {
        let zones: Vec<&str> = (0..self.n_zones).map(letter).collect();
        let machine = instance_type("machine").cpu(&ROOM.to_string()).price(0.1);
        let mut world = World::new()
            .add(machine)
            .add(pool("default").zones(&zones.join(" ")));
        for (node_ix, tiny) in self.nodes.iter().enumerate() {
            let name = format!("node-{node_ix}");
            world = world.add(
                node(&name)
                    .zone(letter(tiny.zone))
                    .cpu(&tiny.room.to_string()),
            );
            for (ix, bound) in tiny.bound.iter().enumerate() {
                let bound = bound.builder(&format!("bound-{node_ix}-{ix}"));
                world = world.add(bound.cpu("0").on(&name));
            }
        }
        let pods = self.pods.iter().enumerate();
        pods.fold(world, |world, (ix, pod)| {
            world.add(pod.builder(&format!("pod-{ix}")))
        })
    }
}

impl TinyPod {
    fn builder(&self, name: &str) -> PodBuilder {
        let mut pod = pod(name).cpu("1").label("app", APPS[self.app]);
        if let Some(zone) = self.zone {
            pod = pod.zone(letter(zone));
        }
        if self.port {
            pod = pod.host_port(8080);
        }
        if let Some((about, skew)) = self.spread {
            let selector = json!({"matchLabels": {"app": APPS[about.app]}});
            let skew = u32::try_from(skew).expect("a small number");
            pod = pod.spread_with(about.key.label(), skew, json!({"labelSelector": selector}));
        }
        if let Some(about) = self.affinity {
            pod = pod.affinity_to(about.key.label(), APPS[about.app]);
        }
        if let Some(about) = self.anti_affinity {
            pod = pod.anti_affinity_to(about.key.label(), APPS[about.app]);
        }
        pod
    }

    fn may_use(&self, zone: usize) -> bool {
        self.zone.is_none_or(|own| own == zone)
    }
}

/// A place in the search: the nodes there are, then new ones, so many for each zone.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Spot {
    host: usize,
    zone: usize,
}

impl Spot {
    fn domain(self, key: Key) -> usize {
        match key {
            Key::Zone => self.zone,
            Key::Host => self.host,
        }
    }
}

/// Which pods are where; pods that wait have none.
type Places = Vec<Option<usize>>;

struct Search<'t> {
    tiny: &'t Tiny,
    spots: Vec<Spot>,
    seen: BTreeSet<Places>,
    /// Most pods placed, and the fewest new nodes that do it.
    best: (usize, usize),
}

impl<'t> Search<'t> {
    fn run(tiny: &'t Tiny) -> (usize, usize) {
        let there = tiny.nodes.iter().map(|node| node.zone);
        let new = (0..tiny.n_zones).flat_map(|zone| std::iter::repeat_n(zone, tiny.pods.len()));
        let spots = there
            .chain(new)
            .enumerate()
            .map(|(host, zone)| Spot { host, zone });
        let mut search = Search {
            tiny,
            spots: spots.collect(),
            seen: BTreeSet::new(),
            best: (0, 0),
        };
        search.visit(&vec![None; tiny.pods.len()]);
        search.best
    }

    fn visit(&mut self, places: &Places) {
        if !self.seen.insert(places.clone()) {
            return;
        }
        let used: BTreeSet<usize> = places.iter().flatten().copied().collect();
        let n_new = used
            .iter()
            .filter(|host| **host >= self.tiny.nodes.len())
            .count();
        let placed = places.iter().flatten().count();
        if placed > self.best.0 || (placed == self.best.0 && n_new < self.best.1) {
            self.best = (placed, n_new);
        }
        for pod_ix in 0..places.len() {
            if places[pod_ix].is_some() {
                continue;
            }
            let mut opened: BTreeSet<usize> = BTreeSet::new();
            for spot in self.spots.clone() {
                let empty = spot.host >= self.tiny.nodes.len() && !used.contains(&spot.host);
                // One empty node of a zone is like the other.
                if empty && !opened.insert(spot.zone) {
                    continue;
                }
                if self.admits(places, &self.tiny.pods[pod_ix], spot) {
                    let mut next = places.clone();
                    next[pod_ix] = Some(spot.host);
                    self.visit(&next);
                }
            }
        }
    }

    /// Every pod that is somewhere.
    fn present<'s>(&'s self, places: &'s Places) -> impl Iterator<Item = (&'s TinyPod, Spot)> {
        let bound = self.tiny.nodes.iter().zip(&self.spots);
        let bound = bound.flat_map(|(node, spot)| node.bound.iter().map(move |pod| (pod, *spot)));
        let placed = self.tiny.pods.iter().zip(places);
        bound.chain(placed.filter_map(|(pod, host)| Some((pod, self.spots[(*host)?]))))
    }

    fn admits(&self, places: &Places, pod: &TinyPod, spot: Spot) -> bool {
        let room = self
            .tiny
            .nodes
            .get(spot.host)
            .map_or(ROOM, |node| node.room);
        let here = self
            .tiny
            .pods
            .iter()
            .zip(places)
            .filter(|(_, host)| **host == Some(spot.host));
        let here: Vec<&TinyPod> = here.map(|(pod, _)| pod).collect();
        let near = |about: About| {
            let mut present = self.present(places);
            present
                .any(|(p, s)| p.app == about.app && s.domain(about.key) == spot.domain(about.key))
        };
        let excluded = self.present(places).any(|(other, at)| {
            let term = other.anti_affinity.filter(|about| about.app == pod.app);
            term.is_some_and(|about| at.domain(about.key) == spot.domain(about.key))
        });
        pod.may_use(spot.zone)
            && here.len() < room
            && !(pod.port && here.iter().any(|other| other.port))
            && !excluded
            && !pod.anti_affinity.is_some_and(near)
            && pod
                .affinity
                .is_none_or(|about| near(about) || self.first(places, pod, about))
            && pod
                .spread
                .is_none_or(|spread| self.even(places, pod, spot, spread))
    }

    /// The pod is what it asks for, and there is none yet: as the scheduler has it.
    fn first(&self, places: &Places, pod: &TinyPod, about: About) -> bool {
        let mut present = self.present(places);
        about.app == pod.app && !present.any(|(p, _)| p.app == about.app)
    }

    fn even(&self, places: &Places, pod: &TinyPod, spot: Spot, spread: (About, usize)) -> bool {
        let (about, skew) = spread;
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        if about.key == Key::Zone {
            let there = self.spots.iter().filter(|spot| pod.may_use(spot.zone));
            counts.extend(there.map(|spot| (spot.zone, 0)));
        }
        for (other, at) in self.present(places) {
            if other.app == about.app && pod.may_use(at.zone) {
                *counts.entry(at.domain(about.key)).or_default() += 1;
            }
        }
        let lowest = match about.key {
            Key::Zone => counts.values().min().copied().unwrap_or(0),
            Key::Host => 0,
        };
        let count = counts.get(&spot.domain(about.key)).copied().unwrap_or(0);
        let own = usize::from(about.app == pod.app);
        count + own <= lowest + skew
    }
}

/// What can be wrong with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The verifier refuses it, or there is none.
    Broken,
    /// A pod is left over that could be placed.
    LeftOver,
    /// More nodes are bought than it takes.
    Wasteful,
    /// No order of placing the pods one by one leads there.
    Unreachable,
}

/// What is wrong with the plan for a case, if anything is.
fn fault(tiny: &Tiny) -> Option<(Fault, String)> {
    let problem = tiny.world().problem();
    let solved = std::panic::catch_unwind(move || Outcome::of(problem));
    let outcome = match solved {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            return Some((Fault::Broken, text.unwrap_or_default()));
        }
    };
    let n_placed = tiny.pods.len() - outcome.plan.unplaced.len();
    let n_new = outcome.plan.launches.len();
    let (most, fewest) = Search::run(tiny);
    let fault = match (n_placed.cmp(&most), n_new.cmp(&fewest)) {
        (Ordering::Less, _) => Fault::LeftOver,
        (Ordering::Equal, Ordering::Equal) => return None,
        (Ordering::Equal, Ordering::Greater) => Fault::Wasteful,
        (Ordering::Equal, Ordering::Less) | (Ordering::Greater, _) => Fault::Unreachable,
    };
    let text =
        format!("{n_placed} pods and {n_new} new nodes instead of {most} and {fewest}\n{outcome}");
    Some((fault, text))
}

/// Everything with a little less in it.
fn smaller(tiny: &Tiny) -> Vec<Tiny> {
    let mut all: Vec<Tiny> = Vec::new();
    let mut less = |change: &dyn Fn(&mut Tiny)| {
        let mut less = tiny.clone();
        change(&mut less);
        all.push(less);
    };
    for ix in 0..tiny.pods.len() {
        less(&|t| {
            t.pods.remove(ix);
        });
    }
    for (ix, node) in tiny.nodes.iter().enumerate() {
        less(&|t| {
            t.nodes.remove(ix);
        });
        for bound in 0..node.bound.len() {
            less(&|t| {
                t.nodes[ix].bound.remove(bound);
            });
        }
    }
    let rules: [fn(&mut TinyPod) -> bool; 5] = [
        |pod| pod.zone.take().is_some(),
        |pod| std::mem::take(&mut pod.port),
        |pod| pod.spread.take().is_some(),
        |pod| pod.affinity.take().is_some(),
        |pod| pod.anti_affinity.take().is_some(),
    ];
    for rule in rules {
        for ix in 0..tiny.pods.len() {
            if rule(&mut tiny.pods[ix].clone()) {
                less(&|t| {
                    rule(&mut t.pods[ix]);
                });
            }
        }
    }
    all
}

/// The same fault with as little as possible around it.
fn shrunk(tiny: &Tiny, kind: Fault) -> Tiny {
    let same = |less: &&Tiny| fault(less).is_some_and(|(found, _)| found == kind);
    match smaller(tiny).iter().find(same) {
        Some(less) => shrunk(less, kind),
        None => tiny.clone(),
    }
}

/// Leaves one kind of rule, and only what apps say about themselves.
fn plain(mut tiny: Tiny, kind: u64) -> Tiny {
    let bound = tiny.nodes.iter_mut().flat_map(|node| &mut node.bound);
    for pod in tiny.pods.iter_mut().chain(bound) {
        let own = |about: About| About {
            app: pod.app,
            ..about
        };
        pod.spread = pod.spread.filter(|_| kind == 0);
        pod.spread = pod.spread.map(|(about, _)| (own(about), 1));
        pod.affinity = pod.affinity.filter(|_| kind == 1).map(own);
        pod.anti_affinity = pod.anti_affinity.filter(|_| kind == 2).map(own);
    }
    tiny
}

/// No case has this fault.
fn assert_none(kinds: &[Fault], case: fn(u64) -> Tiny) {
    assert_at_most(0, kinds, case);
}

/// Only so many cases have this fault.
fn assert_at_most(n_max: usize, kinds: &[Fault], case: fn(u64) -> Tiny) {
    let mut texts: Vec<String> = Vec::new();
    for seed in 0..CASES {
        let case = case(seed);
        let found = fault(&case).map(|(kind, _)| kind);
        if let Some(kind) = found.filter(|kind| kinds.contains(kind)) {
            let case = shrunk(&case, kind);
            let (_, text) = fault(&case).expect("shrinking keeps the fault");
            texts.push(format!("seed {seed} is {kind:?}: {text}\n{case:?}"));
        }
    }
    let n_faults = texts.len();
    assert!(
        n_faults <= n_max,
        "{n_faults} of {CASES}\n{}",
        texts.join("\n\n")
    );
}

#[test]
fn plans_with_spreads_alone_place_all_that_can_be_placed() {
    let kinds = [Fault::Broken, Fault::LeftOver];
    assert_none(&kinds, |seed| plain(tiny(seed), 0));
}

#[test]
fn plans_with_affinity_or_anti_affinity_alone_place_all_that_can_be_placed() {
    let kinds = [Fault::Broken, Fault::LeftOver];
    assert_none(&kinds, |seed| plain(tiny(seed), 1 + seed % 2));
}

#[test]
fn tiny_plans_are_accepted() {
    assert_none(&[Fault::Broken], tiny);
}

#[test]
fn tiny_plans_place_all_that_can_be_placed() {
    assert_none(&[Fault::LeftOver], tiny);
}

#[test]
fn tiny_plans_buy_no_more_than_it_takes() {
    // Domains are chosen class by class; where three choices must change at once, a node is wasted.
    assert_at_most(CASES_WASTEFUL, &[Fault::Wasteful], tiny);
}

#[test]
fn tiny_plans_can_be_reached_pod_by_pod() {
    assert_none(&[Fault::Unreachable], tiny);
}
