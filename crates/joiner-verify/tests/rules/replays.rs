//! Small plans at random, each compared with a replay of all its orders, pod by pod.

use std::collections::BTreeSet;

use joiner_model::{Labels, NodeIx, Operator, PodIx, PodShape, PodTerm, Selector, Spread};
use joiner_verify::{Rule, check};

use crate::support::*;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }
}

/// A seat for pods: a node to buy, or one that exists.
#[derive(Clone)]
struct Seat {
    zone: &'static str,
    host: String,
    node: Option<NodeIx>,
}

impl Seat {
    fn label(&self, key: &str) -> &str {
        if key == ZONE { self.zone } else { &self.host }
    }

    fn suits(&self, shape: &PodShape) -> bool {
        let mut rules = shape.node_selector.iter();
        rules.all(|rule| rule.has(self.label(rule.key())))
    }
}

/// A problem, seats, and the pods on them; the last ones are to be placed.
struct Scene {
    case: Case,
    zones: Vec<&'static str>,
    seats: Vec<Seat>,
    /// Shape and seat of every pod.
    pods: Vec<(PodShape, usize)>,
    n_bound: usize,
}

fn some_shape(dice: &mut Dice) -> PodShape {
    let mut shape = shape(dice.pick(&["x", "x", "y"]));
    for _ in 0..dice.below(3) {
        let mut spread = over(dice.pick(&[ZONE, HOST]), dice.pick(&["x", "x", "y"]));
        spread.max_skew = 1 + dice.below(3) as u32;
        if dice.one_in(20) {
            spread.selector = None;
        }
        if spread.key.as_ref() == ZONE && dice.one_in(8) {
            spread.min_domains = Some(1 + dice.below(4) as u32);
        }
        spread.hard = !dice.one_in(10);
        spread.honor_affinity = !dice.one_in(6);
        shape.spreads.push(spread);
    }
    while dice.one_in(3) {
        let term = near(dice.pick(&[ZONE, HOST]), dice.pick(&["x", "x", "y"]));
        shape.affinity.push(term);
    }
    if dice.one_in(5) {
        let zones = [["a", "b"], ["b", "c"], ["a", "a"]][dice.below(3)];
        shape.node_selector = vec![rule(ZONE, Operator::In, &zones)];
    }
    if dice.one_in(12) {
        let how = [Operator::In, Operator::NotIn][dice.below(2)];
        shape.node_selector.push(rule(HOST, how, &["old-0"]));
    }
    shape
}

impl Scene {
    fn new(dice: &mut Dice, size: usize) -> Self {
        let mut case = Case::new();
        let mut zones = vec!["a", "b", "c"];
        if dice.one_in(2) {
            zones.pop();
            for ty in &mut case.problem.types {
                ty.offerings.pop();
            }
        }
        let mut seats = Vec::new();
        for n in 0..dice.below(3 * size) {
            let (host, zone) = (format!("old-{n}"), zones[dice.below(zones.len())]);
            let node = Some(case.node(&host, zone));
            seats.push(Seat { zone, host, node });
        }
        let n_old = seats.len();
        for n in 0..1 + dice.below(4 * size) {
            let (host, zone) = (format!("new-{n}"), zones[dice.below(zones.len())]);
            let node = None;
            seats.push(Seat { zone, host, node });
        }
        let shapes: Vec<PodShape> = (0..2 + dice.below(3)).map(|_| some_shape(dice)).collect();
        let mut pods = Vec::new();
        for _ in 0..if n_old == 0 { 0 } else { dice.below(4 * size) } {
            let shape = &shapes[dice.below(shapes.len())];
            pods.push((shape.clone(), dice.below(n_old)));
        }
        let mut scene = Self {
            case,
            zones,
            seats,
            n_bound: pods.len(),
            pods,
        };
        for _ in 0..3 * size + dice.below(7 * size) {
            let shape = shapes[dice.below(shapes.len())].clone();
            let legally = size > 1 || !dice.one_in(4);
            scene.seat(dice, shape, legally);
        }
        scene
    }

    /// Seats a pod at random: often where it may come now, so that many plans are legal.
    fn seat(&mut self, dice: &mut Dice, shape: PodShape, legally: bool) {
        let all = (1u128 << (self.pods.len() - self.n_bound)) - 1;
        for _ in 0..12 {
            let seat = dice.below(self.seats.len());
            if !self.seats[seat].suits(&shape) {
                continue;
            }
            self.pods.push((shape.clone(), seat));
            if !legally || self.may_come(self.pods.len() - 1, all) {
                return;
            }
            self.pods.pop();
        }
    }

    /// The plan for all that.
    fn case(&self) -> Case {
        let mut case = self.case.clone();
        let mut by_seat: Vec<Vec<PodIx>> = vec![Vec::new(); self.seats.len()];
        for (ix, (shape, seat)) in self.pods.iter().enumerate() {
            match self.seats[*seat].node {
                Some(node) if ix < self.n_bound => {
                    case.bound(node, shape);
                }
                _ => by_seat[*seat].push(case.pod(shape)),
            }
        }
        for (seat, pods) in self.seats.iter().zip(by_seat) {
            match seat.node {
                Some(node) => case.place(node, &pods),
                None => {
                    case.in_zone(seat.zone, &pods);
                }
            }
        }
        case
    }

    /// Pods that are there: the bound ones, and new ones by bit.
    fn there(&self, placed: u128) -> impl Iterator<Item = &(PodShape, usize)> {
        let each = self.pods.iter().enumerate();
        let there = move |ix: usize| ix < self.n_bound || placed >> (ix - self.n_bound) & 1 == 1;
        each.filter(move |(ix, _)| there(*ix)).map(|(_, pod)| pod)
    }

    fn may_come(&self, pod: usize, placed: u128) -> bool {
        let (shape, seat) = &self.pods[pod];
        let mut spreads = shape.spreads.iter().filter(|s| s.hard);
        let mut terms = shape.affinity.iter();
        spreads.all(|s| self.spread_holds(shape, *seat, s, placed))
            && terms.all(|t| self.affinity_holds(shape, *seat, t, placed))
    }

    fn spread_holds(&self, own: &PodShape, seat: usize, spread: &Spread, placed: u128) -> bool {
        let here = self.seats[seat].label(&spread.key);
        let count = |domain: &str| {
            let each = self.there(placed).enumerate();
            let counted = each.filter(|(ix, (shape, at))| {
                let seat = &self.seats[*at];
                let is_bound = *ix < self.n_bound;
                seat.label(&spread.key) == domain
                    && (!spread.honor_affinity || seat.suits(own))
                    && matches(spread.selector.as_ref(), &shape.labels, is_bound)
            });
            counted.count() as u32
        };
        let mut floor = 0;
        if spread.key.as_ref() == ZONE {
            let mut zones = self.zones.clone();
            zones.retain(|zone| !spread.honor_affinity || self.reaches(own, zone));
            let enough = spread
                .min_domains
                .is_none_or(|min| zones.len() >= min as usize);
            let lowest = zones.iter().map(|zone| count(zone)).min();
            floor = lowest.filter(|_| enough).unwrap_or(0);
        }
        let itself = u32::from(matches(spread.selector.as_ref(), &own.labels, false));
        count(here) + itself <= floor + spread.max_skew
    }

    /// True when a pod could be in a zone, on a node that exists or a new one.
    fn reaches(&self, shape: &PodShape, zone: &'static str) -> bool {
        let new = Seat {
            zone,
            host: "brand-new".to_owned(),
            node: None,
        };
        let nodes = self.seats.iter().filter(|seat| seat.node.is_some());
        let mut seats = nodes.chain([&new]).filter(|seat| seat.zone == zone);
        seats.any(|seat| seat.suits(shape))
    }

    fn affinity_holds(&self, own: &PodShape, seat: usize, term: &PodTerm, placed: u128) -> bool {
        let here = self.seats[seat].label(&term.key);
        let each = self.there(placed).enumerate();
        let near: BTreeSet<&str> = each
            .filter(|(ix, (shape, _))| {
                matches(term.selector.as_ref(), &shape.labels, *ix < self.n_bound)
            })
            .map(|(_, (_, at))| self.seats[*at].label(&term.key))
            .collect();
        let usable = |domain: &&str| {
            let mut on_key = own.node_selector.iter().filter(|r| r.key() == &term.key);
            on_key.all(|r| r.has(domain))
        };
        let itself = matches(term.selector.as_ref(), &own.labels, false);
        near.contains(here) || (itself && !near.iter().any(usable))
    }

    /// One line for each pod.
    fn render(&self) -> String {
        let app = |selector: &Option<Selector>| {
            let expr = selector.as_ref().and_then(|s| s.exprs().first());
            expr.map_or("-".to_owned(), |expr| format!("{:?}", expr.values))
        };
        let mut text = format!("zones {:?}\n", self.zones);
        for (ix, (shape, seat)) in self.pods.iter().enumerate() {
            let seat = &self.seats[*seat];
            let when = if ix < self.n_bound { "bound" } else { "new" };
            text += &format!("{when} {:?} on {}/{}", shape.labels, seat.zone, seat.host);
            for s in &shape.spreads {
                let (of, min) = (app(&s.selector), s.min_domains);
                text += &format!("; spread {} {} of {of} min {min:?}", s.key, s.max_skew);
            }
            for term in &shape.affinity {
                text += &format!("; near {} {}", term.key, app(&term.selector));
            }
            text += &format!("; in {:?}\n", shape.node_selector);
        }
        text
    }

    /// True when some order lets every pod come: each set of pods that can be there is looked at.
    fn has_order(&self) -> bool {
        let n = self.pods.len() - self.n_bound;
        let mut possible = vec![false; 1 << n];
        possible[0] = true;
        for placed in 0..(1u128 << n) {
            for pod in (0..n).filter(|pod| placed >> pod & 1 == 0) {
                if possible[placed as usize] && self.may_come(self.n_bound + pod, placed) {
                    possible[(placed | 1 << pod) as usize] = true;
                }
            }
        }
        possible[(1 << n) - 1]
    }
}

fn matches(selector: Option<&Selector>, labels: &Labels, is_bound: bool) -> bool {
    selector.map_or(is_bound, |selector| selector.matches(labels))
}

/// What is wrong with rules about many nodes.
fn complaints(case: &Case) -> Vec<String> {
    let found = check(&case.problem, &case.plan);
    let found = found
        .iter()
        .filter(|v| matches!(v.rule, Rule::Spread | Rule::Affinity));
    found.map(ToString::to_string).collect()
}

#[test]
fn plans_are_legal_just_when_an_order_exists() {
    let (mut n_legal, mut n_illegal, mut n_at_odds) = (0, 0, 0);
    for seed in 0..3000 {
        let scene = Scene::new(&mut Dice(seed), 1);
        let case = scene.case();
        let found = complaints(&case);
        assert_eq!(
            found.is_empty(),
            scene.has_order(),
            "seed {seed}: {found:#?}\n{}",
            scene.render()
        );
        n_legal += usize::from(found.is_empty());
        n_illegal += usize::from(!found.is_empty());
        n_at_odds += usize::from(
            found
                .iter()
                .any(|text| text.contains("no order of placing")),
        );
    }
    let tried = format!("{n_legal} legal, {n_illegal} not, {n_at_odds} by order alone");
    assert!(
        n_legal > 2000 && n_illegal > 500 && n_at_odds > 20,
        "{tried}"
    );
}

#[test]
fn plans_made_pod_by_pod_are_legal() {
    for seed in 0..300 {
        let scene = Scene::new(&mut Dice(seed), 2 + seed as usize % 10);
        let found = complaints(&scene.case());
        assert!(
            found.is_empty(),
            "seed {seed}: {found:#?}\n{}",
            scene.render()
        );
    }
}

#[test]
fn the_order_of_the_input_does_not_matter() {
    for seed in 0..300 {
        let mut scene = Scene::new(&mut Dice(seed), 1 + seed as usize % 3);
        let case = scene.case();
        let found = complaints(&case);
        assert_eq!(found, complaints(&case), "seed {seed}");
        scene.pods[scene.n_bound..].reverse();
        let backward = complaints(&scene.case());
        assert_eq!(found.is_empty(), backward.is_empty(), "seed {seed}");
    }
}
