//! Which pods are alike, and which topology rules bind or count them.
//!
//! A class is a shape at one level of giving up. A rule is a spread, affinity or anti-affinity
//! term; equal terms of different pods are one rule. A class *owns* the rules it is under and is
//! *counted* by the rules whose selector it matches.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;
use joiner_model::{Name, PodIx, PodShape, PodTerm, Problem, Selector, SelectorOp, Spread, keys};
use rustc_hash::FxHashMap;

use crate::ground::{Ground, Level};
use crate::select::{Asks, Choices};
use crate::wish::{Wish, wish};

/// Pods that are alike in everything that matters.
#[derive(Debug)]
pub(crate) struct Class {
    /// Index of the shape.
    pub(crate) shape: u32,
    /// How much has been given up.
    pub(crate) level: u16,
    /// The pods, in name order.
    pub(crate) pods: Vec<PodIx>,
    /// Requests, in the order of the dimensions.
    pub(crate) need: Vec<u64>,
    /// Number of its choice of nodes.
    pub(crate) choice: u32,
    /// Rules it is under.
    pub(crate) owned: Vec<u32>,
    /// Rules that count it.
    pub(crate) counted: Vec<u32>,
    /// Scheduling priority.
    pub(crate) priority: i32,
    /// Its pods come after those under spreads that count it, also where it is under a spread over
    /// nodes that counts those.
    pub(crate) comes_last: bool,
    /// Its pods are few enough, with all that spreads count along with them, to mind that one order
    /// of placing them suits all rules.
    pub(crate) in_order: bool,
}

impl Class {
    /// True when rule `r` counts its pods.
    pub(crate) fn is_counted(&self, r: u32) -> bool {
        self.counted.binary_search(&r).is_ok()
    }

    /// How many pods.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.pods.len()).unwrap_or(u32::MAX)
    }
}

/// What a rule demands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Demand {
    /// Keep domains even.
    Spread {
        /// Largest difference to the emptiest domain.
        max_skew: u32,
        /// With fewer domains than this the emptiest counts as empty.
        min_domains: u32,
        /// Choice whose strict part says which nodes count.
        filter: u32,
        /// Count only nodes that the pod's own selection allows.
        honor_affinity: bool,
        /// Count only nodes whose taints are tolerated.
        honor_taints: bool,
    },
    /// Be where one of the counted pods is.
    Affinity,
    /// Be where none of the counted pods is; `both` when they must keep away as well.
    Anti {
        /// The counted pods keep away from the owners too.
        both: bool,
    },
}

/// A topology rule, shared by all pods that state it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Rule {
    /// Topology key.
    pub(crate) key: Name,
    /// What it demands.
    pub(crate) demand: Demand,
    namespaces: Vec<Name>,
    selector: Option<Selector>,
}

impl Rule {
    /// True when every node is a domain of its own.
    pub(crate) fn is_host(&self) -> bool {
        self.key.as_ref() == keys::HOSTNAME
    }

    /// True when it counts pods of the batch with this shape.
    fn counts(&self, shape: &PodShape) -> bool {
        self.namespaces.binary_search(&shape.namespace).is_ok()
            && self
                .selector
                .as_ref()
                .is_some_and(|s| s.matches(&shape.labels))
    }

    /// True when it counts bound pods with this shape; no selector counts all of them.
    fn counts_bound(&self, shape: &PodShape) -> bool {
        self.namespaces.binary_search(&shape.namespace).is_ok()
            && self
                .selector
                .as_ref()
                .is_none_or(|s| s.matches(&shape.labels))
    }
}

/// What bound pods mean for one rule.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    /// Counted pods by domain value.
    pub(crate) counts: BTreeMap<Name, u32>,
    /// Counted pods by node.
    pub(crate) on_host: BTreeMap<u32, u32>,
    /// Domain values with a pod that owns the rule (anti-affinity).
    pub(crate) owners: BTreeMap<Name, u32>,
    /// Nodes with a pod that owns the rule.
    pub(crate) owner_hosts: BTreeMap<u32, u32>,
}

/// All rules of a problem.
#[derive(Default)]
pub(crate) struct RuleBook {
    numbers: FxHashMap<Rule, u32>,
    /// The rules by number.
    pub(crate) rules: Vec<Rule>,
    /// Bound pods by rule.
    pub(crate) bound: Vec<Bound>,
    /// For spreads: the values of the key that count as domains, sorted.
    pub(crate) domains: Vec<Vec<Name>>,
    /// Pods of the batch that own the rule and are counted by it.
    pub(crate) n_mine: Vec<u64>,
    /// Pods of the batch that are counted by the rule.
    pub(crate) n_counted: Vec<u64>,
}

impl RuleBook {
    fn intern(&mut self, rule: Rule) -> u32 {
        if let Some(number) = self.numbers.get(&rule) {
            return *number;
        }
        let number = u32::try_from(self.rules.len()).unwrap_or(u32::MAX);
        self.rules.push(rule.clone());
        self.numbers.insert(rule, number);
        number
    }

    fn pod_term(&mut self, term: &PodTerm, demand: Demand) -> u32 {
        self.intern(Rule {
            key: term.key.clone(),
            demand,
            namespaces: term.namespaces.clone(),
            selector: term.selector.clone(),
        })
    }

    fn spread(&mut self, namespace: &Name, spread: &Spread, filter: u32) -> u32 {
        self.intern(Rule {
            key: spread.key.clone(),
            demand: Demand::Spread {
                max_skew: spread.max_skew.max(1),
                min_domains: spread.min_domains.unwrap_or(0),
                filter,
                honor_affinity: spread.honor_affinity,
                honor_taints: spread.honor_taints,
            },
            namespaces: vec![namespace.clone()],
            selector: spread.selector.clone(),
        })
    }

    /// The rules a wish states.
    fn owned(
        &mut self,
        ground: &Ground<'_>,
        choices: &mut Choices,
        shape: &PodShape,
        wish: &Wish<'_>,
    ) -> Vec<u32> {
        let mut owned = Vec::new();
        for spread in &wish.spreads {
            let mut plain = shape.clone();
            plain.volume_terms.clear();
            if !spread.honor_taints {
                plain.tolerations.clear();
            }
            let filter = choices.of(ground, Asks::new(&plain, None, true));
            owned.push(self.spread(&shape.namespace, spread, filter));
        }
        for term in &wish.affinity {
            owned.push(self.pod_term(term, Demand::Affinity));
        }
        for (term, both) in &wish.anti_affinity {
            owned.push(self.pod_term(term, Demand::Anti { both: *both }));
        }
        owned.sort_unstable();
        owned.dedup();
        owned
    }

    /// Which rules count which shapes, found by label rather than by trying all pairs.
    fn counted_by(&self, shapes: &[&PodShape], bound: bool) -> Vec<Vec<u32>> {
        let mut by_label: FxHashMap<(Name, Name), Vec<u32>> = FxHashMap::default();
        let mut general: Vec<u32> = Vec::new();
        for (r, rule) in (0u32..).zip(&self.rules) {
            let exprs = rule.selector.as_ref().map_or(&[][..], Selector::exprs);
            let narrowest = exprs
                .iter()
                .filter(|e| e.op == SelectorOp::In)
                .min_by_key(|e| e.values.len());
            match narrowest {
                Some(e) => {
                    for value in &e.values {
                        by_label
                            .entry((e.key.clone(), value.clone()))
                            .or_default()
                            .push(r);
                    }
                }
                None => general.push(r),
            }
        }
        let find = |shape: &&PodShape| {
            let by_label = shape
                .labels
                .iter()
                .filter_map(|(k, v)| by_label.get(&(k.clone(), v.clone())))
                .flatten();
            let mut found: Vec<u32> = by_label
                .chain(&general)
                .copied()
                .filter(|r| {
                    let rule = &self.rules[*r as usize];
                    if bound {
                        rule.counts_bound(shape)
                    } else {
                        rule.counts(shape)
                    }
                })
                .collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        shapes.iter().map(find).collect()
    }
}

/// Classes and rules of one attempt.
pub(crate) struct Classes {
    /// The classes, in an order that does not depend on the order of the input.
    pub(crate) all: Vec<Class>,
    /// The rules.
    pub(crate) book: RuleBook,
}

impl Classes {
    /// Groups pods, given as lists of pods by shape and level.
    pub(crate) fn new(
        ground: &Ground<'_>,
        choices: &mut Choices,
        groups: &BTreeMap<(u32, u16), Vec<PodIx>>,
    ) -> Self {
        let problem = ground.problem;
        let mut book = RuleBook::default();
        let mut all: Vec<Class> = groups
            .iter()
            .filter(|(_, pods)| !pods.is_empty())
            .map(|((s, level), pods)| {
                let shape = &problem.shapes[*s as usize];
                let wish = wish(shape, *level);
                Class {
                    shape: *s,
                    level: *level,
                    pods: pods.clone(),
                    need: ground.amounts(&shape.requests),
                    choice: choices.of(ground, Asks::new(shape, wish.node, wish.tolerate_prefer)),
                    owned: book.owned(ground, choices, shape, &wish),
                    counted: Vec::new(),
                    priority: shape.priority,
                    comes_last: false,
                    in_order: false,
                }
            })
            .collect();
        all.sort_by(|a, b| {
            let name = |c: &Class| problem.pods[c.pods[0].0 as usize].name.clone();
            b.need.cmp(&a.need).then_with(|| name(a).cmp(&name(b)))
        });
        let inverse = bound_owners(problem, &mut book);
        let shapes: Vec<&PodShape> = all
            .iter()
            .map(|c| &problem.shapes[c.shape as usize])
            .collect();
        for (class, counted) in all.iter_mut().zip(book.counted_by(&shapes, false)) {
            class.counted = counted;
        }
        book.n_mine = vec![0; book.rules.len()];
        book.n_counted = vec![0; book.rules.len()];
        for class in &all {
            for r in &class.counted {
                book.n_counted[*r as usize] += u64::from(class.count());
            }
        }
        for class in &all {
            for r in class.owned.iter().filter(|r| class.is_counted(**r)) {
                book.n_mine[*r as usize] += u64::from(class.count());
            }
        }
        let mut known: FxHashMap<(Name, Demand), Vec<Name>> = FxHashMap::default();
        for rule in &book.rules {
            let values = known
                .entry((rule.key.clone(), rule.demand.clone()))
                .or_insert_with(|| domains(ground, choices, rule));
            book.domains.push(values.clone());
        }
        count_bound(ground, choices, &mut book, &inverse);
        let mut classes = Self { all, book };
        classes.find_small_tangles();
        classes
    }

    /// Marks classes whose spreads, and the pods that these count, hang together in small groups.
    fn find_small_tangles(&mut self) {
        let mut root: Vec<usize> = (0..self.all.len()).collect();
        let mut first: Vec<Option<usize>> = vec![None; self.book.rules.len()];
        for (c, class) in self.all.iter().enumerate() {
            for r in class.owned.iter().chain(&class.counted) {
                let rule = &self.book.rules[*r as usize];
                if !matches!(rule.demand, Demand::Spread { .. } | Demand::Affinity) {
                    continue;
                }
                let with = *first[*r as usize].get_or_insert(c);
                let (a, b) = (find(&mut root, c), find(&mut root, with));
                root[a.max(b)] = a.min(b);
            }
        }
        let mut n_pods = vec![0u64; self.all.len()];
        for (c, class) in self.all.iter().enumerate() {
            n_pods[find(&mut root, c)] += u64::from(class.count());
        }
        for (c, class) in self.all.iter_mut().enumerate() {
            class.in_order = n_pods[find(&mut root, c)] <= TANGLE_PODS_MAX;
        }
    }
}

/// With more pods in a tangle of rules, one order for all of them is too dear to insist on: a
/// scheduler will take its own anyway.
const TANGLE_PODS_MAX: u64 = 120;

/// The class that stands for the group of `c`.
fn find(root: &mut [usize], mut c: usize) -> usize {
    while root[c] != c {
        root[c] = root[root[c]];
        c = root[c];
    }
    c
}

/// Required anti-affinity of bound pods: which rules, on which nodes.
fn bound_owners(problem: &Problem, book: &mut RuleBook) -> Vec<(u32, u32)> {
    let mut of_shape: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut owners = Vec::new();
    for pod in &problem.pods {
        let (Some(node), false) = (pod.node, pod.terminating) else {
            continue;
        };
        let shape = &problem[pod.shape];
        if shape.anti_affinity.is_empty() {
            continue;
        }
        let rules = of_shape.entry(pod.shape.0).or_insert_with(|| {
            shape
                .anti_affinity
                .iter()
                .map(|t| book.pod_term(t, Demand::Anti { both: true }))
                .collect()
        });
        owners.extend(rules.iter().map(|r| (*r, node.0)));
    }
    owners
}

/// Counts bound pods for every rule.
fn count_bound(ground: &Ground<'_>, choices: &Choices, book: &mut RuleBook, owners: &[(u32, u32)]) {
    let problem = ground.problem;
    book.bound = book.rules.iter().map(|_| Bound::default()).collect();
    if book.rules.is_empty() {
        return;
    }
    let mut bound_shapes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pod in &problem.pods {
        if let (Some(node), false) = (pod.node, pod.terminating) {
            bound_shapes.entry(pod.shape.0).or_default().push(node.0);
        }
    }
    let shapes: Vec<&PodShape> = bound_shapes
        .keys()
        .map(|s| &problem.shapes[*s as usize])
        .collect();
    let counted = book.counted_by(&shapes, true);
    for (nodes, rules) in bound_shapes.values().zip(counted) {
        for r in rules {
            let rule = &book.rules[r as usize];
            let bound = &mut book.bound[r as usize];
            for node in nodes.iter().filter(|n| counts_node(choices, rule, **n)) {
                let labels = &problem.nodes[*node as usize].labels;
                let Some(value) = labels.get(&rule.key) else {
                    continue;
                };
                *bound.counts.entry(value.clone()).or_default() += 1;
                *bound.on_host.entry(*node).or_default() += 1;
            }
        }
    }
    for (r, node) in owners {
        let bound = &mut book.bound[*r as usize];
        if let Some(value) = problem.nodes[*node as usize]
            .labels
            .get(&book.rules[*r as usize].key)
        {
            *bound.owners.entry(value.clone()).or_default() += 1;
            *bound.owner_hosts.entry(*node).or_default() += 1;
        }
    }
}

/// True when pods on this node count for the rule.
fn counts_node(choices: &Choices, rule: &Rule, node: u32) -> bool {
    match &rule.demand {
        Demand::Spread {
            filter,
            honor_affinity,
            honor_taints,
            ..
        } => {
            let filter = &choices.all[*filter as usize];
            (!honor_affinity || filter.strict_hosts.contains(node as usize))
                && (!honor_taints || filter.tolerated_hosts.contains(node as usize))
        }
        Demand::Affinity | Demand::Anti { .. } => true,
    }
}

/// The domains of a spread: values that the pod could meet on a new or an existing node.
fn domains(ground: &Ground<'_>, choices: &Choices, rule: &Rule) -> Vec<Name> {
    let Demand::Spread {
        filter,
        honor_affinity,
        honor_taints,
        ..
    } = &rule.demand
    else {
        return Vec::new();
    };
    if ground.level(&rule.key) == Level::Host {
        return Vec::new();
    }
    let filter = &choices.all[*filter as usize];
    let mut variants = FixedBitSet::with_capacity(ground.variants.len());
    variants.insert_range(..);
    if *honor_taints {
        variants.intersect_with(&filter.tolerated);
    }
    let mut values = ground.values(&rule.key, |kind| {
        variants.contains(kind.variant as usize)
            && (!honor_affinity || filter.strict.iter().any(|sel| sel.has(kind)))
    });
    values.extend((0u32..).zip(&ground.problem.nodes).filter_map(|(n, node)| {
        counts_node(choices, rule, n)
            .then(|| node.labels.get(&rule.key).cloned())
            .flatten()
    }));
    values.sort();
    values.dedup();
    values
}
