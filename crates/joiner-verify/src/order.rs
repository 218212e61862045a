//! One order of placing that keeps all hard spreads and required affinities at once.
//!
//! Rules that each have an order of their own may still be at odds: one wants a pod to come before
//! the others, another wants it to come after them. Rules are looked at together when there is a pod
//! that each of them binds or counts. Most of them drop out before: every order keeps them, or no
//! pod ties them to another rule.
//!
//! A plan is rejected only when it is certain that there is no order. Where the search for one takes
//! more than [`STEPS_MAX`] steps, or all searches more than [`ALL_STEPS_MAX`], it is given up, and the
//! plan passes. Rules that more than [`PODS_MAX`] new pods share are not looked at together at all: a
//! scheduler places so many pods in an order of its own, whatever order a plan had in mind.

use std::collections::{BTreeSet, HashMap};

use joiner_model::PodTerm;

use crate::classes::Market;
use crate::crowd::Knot;
use crate::domains::Filters;
use crate::ground::Ground;
use crate::knots::knots;
use crate::search::{Steps, Verdict, search};
use crate::spread::Tally;
use crate::topology::{Domain, Topology};
use crate::violation::{Report, Rule};

/// The most steps that one knot may take.
const STEPS_MAX: usize = 400_000;
/// The most steps that all of them may take together.
const ALL_STEPS_MAX: usize = 1_200_000;
/// The steps for each pod that a knot may take in any case: enough for all but the search.
const POD_STEPS: usize = 8;

/// The most new pods that rules may share to be looked at together.
const PODS_MAX: u64 = 100;

/// A rule that not every order keeps.
pub(crate) struct Bond<'p> {
    pub(crate) kind: Kind<'p>,
    /// Shapes under the rule with a pod to place, ascending.
    pub(crate) owners: Vec<usize>,
    /// The pods that it counts, for [`Topology::matches`].
    pub(crate) matches: usize,
}

/// What a rule asks.
pub(crate) enum Kind<'p> {
    Spread(Tally<'p>),
    Affinity {
        term: &'p PodTerm,
        /// Domains with a match from before the plan.
        bound: BTreeSet<Domain>,
    },
}

/// Checks that rules which are kept one by one are kept together. Says nothing when one of them is
/// not even kept by itself.
pub(crate) fn check<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &mut Topology<'p>,
    tallies: Vec<Tally<'p>>,
    report: &mut Report,
) {
    if report.is_full() || report.has(Rule::Spread) || report.has(Rule::Affinity) {
        return;
    }
    let mut bonds = affinities(ground, topology);
    bonds.extend(tallies.into_iter().map(|tally| Bond {
        owners: tally.group.shapes.clone(),
        matches: tally.matches,
        kind: Kind::Spread(tally),
    }));
    let groups = linked(topology, &bonds);
    if groups.is_empty() {
        return;
    }
    let mut filters = Filters::new(ground);
    let mut steps = ALL_STEPS_MAX;
    for group in groups {
        let group: Vec<&Bond<'p>> = group.into_iter().map(|bond| &bonds[bond]).collect();
        if n_new(topology, &group) > PODS_MAX {
            continue;
        }
        for (knot, laws) in knots(ground, market, topology, &mut filters, &group) {
            let n_steps = steps.min(STEPS_MAX).max(POD_STEPS * knot.n_pods());
            let mut own = Steps(n_steps);
            let verdict = search(&knot, &mut own);
            steps = steps.saturating_sub(n_steps - own.0);
            if let Verdict::NoOrder { unit, law } = verdict {
                let bond = group[laws[law]];
                tell(ground, topology, (&knot, unit, bond), report);
            }
        }
    }
}

/// How many new pods own or count for some of these rules.
fn n_new(topology: &Topology<'_>, group: &[&Bond<'_>]) -> u64 {
    let mut shapes: BTreeSet<usize> = BTreeSet::new();
    for bond in group {
        shapes.extend(&bond.owners);
        shapes.extend(&topology.matches(bond.matches).shapes);
    }
    let entries = shapes.iter().flat_map(|shape| topology.of_shape(*shape));
    entries.map(|(_, entry)| u64::from(entry.n_new)).sum()
}

/// The distinct terms of required affinity that are not met by pods from before.
fn affinities<'p>(ground: &Ground<'p>, topology: &mut Topology<'p>) -> Vec<Bond<'p>> {
    let mut ids: HashMap<&PodTerm, usize> = HashMap::new();
    let mut terms: Vec<(&PodTerm, Vec<usize>)> = Vec::new();
    for shape in topology.new_shapes() {
        for term in &ground.problem.shapes[shape].affinity {
            let id = *ids.entry(term).or_insert_with(|| {
                terms.push((term, Vec::new()));
                terms.len() - 1
            });
            if terms[id].1.last() != Some(&shape) {
                terms[id].1.push(shape);
            }
        }
    }
    let mut bonds = Vec::new();
    for (term, owners) in terms {
        let matches = topology.matching_term(ground, term);
        let shapes = topology.matches(matches).shapes.iter();
        let old = shapes.flat_map(|shape| topology.of_shape(*shape));
        let old = old.filter(|(_, entry)| entry.n_old > 0);
        let bound: BTreeSet<Domain> = old
            .filter_map(|(_, entry)| topology.domain(&term.key, entry.place))
            .collect();
        let mut entries = owners.iter().flat_map(|shape| topology.of_shape(*shape));
        let is_met = entries.all(|(_, entry)| {
            let domain = topology.domain(&term.key, entry.place);
            entry.n_new == 0 || domain.is_some_and(|domain| bound.contains(&domain))
        });
        if !is_met {
            bonds.push(Bond {
                kind: Kind::Affinity { term, bound },
                owners,
                matches,
            });
        }
    }
    bonds
}

/// Groups of rules with pods in common, but for rules that are alone and settled by themselves.
fn linked(topology: &Topology<'_>, bonds: &[Bond<'_>]) -> Vec<Vec<usize>> {
    let mut sets = Sets::new(bonds.len());
    let new_shapes = topology.new_shapes();
    let mut last_of_shape: HashMap<usize, usize> = HashMap::new();
    for (bond_ix, bond) in bonds.iter().enumerate() {
        let matches = topology.matches(bond.matches);
        let counted: &[usize] = if matches.batch { &matches.shapes } else { &[] };
        let counted = counted
            .iter()
            .filter(|s| new_shapes.binary_search(s).is_ok());
        for shape in bond.owners.iter().chain(counted) {
            if let Some(last) = last_of_shape.insert(*shape, bond_ix) {
                sets.join(last, bond_ix);
            }
        }
    }
    let mut groups = sets.groups();
    groups.retain(|group| match group[..] {
        [bond] => !is_settled(topology, &bonds[bond]),
        _ => true,
    });
    groups
}

/// True when the check of the rule by itself left nothing open. That of a spread does not see how
/// pods that it binds but does not count get along with the others.
fn is_settled(topology: &Topology<'_>, bond: &Bond<'_>) -> bool {
    let counted = &topology.matches(bond.matches).shapes;
    let is_counted = |shape: &usize| counted.binary_search(shape).is_ok();
    match bond.kind {
        Kind::Spread(_) => bond.owners.iter().all(is_counted),
        Kind::Affinity { .. } => true,
    }
}

fn tell(
    ground: &Ground<'_>,
    topology: &Topology<'_>,
    (knot, unit, bond): (&Knot, usize, &Bond<'_>),
    report: &mut Report,
) {
    let entry = &topology.entries[knot.units[unit].entry];
    let (pod, node) = (
        ground.pod_name(entry.pod),
        topology.place_name(ground, entry.place),
    );
    let (rule, what) = match &bond.kind {
        Kind::Affinity { term, .. } => {
            let text = format!("its affinity over {}", term.key);
            (Rule::Affinity, text)
        }
        Kind::Spread(Tally { group, .. }) => {
            let (key, skew) = (&group.spread.key, group.spread.max_skew);
            let text = format!("its spread over {key} with a skew of {skew}");
            (Rule::Spread, text)
        }
    };
    report.say(
        rule,
        format_args!(
            "pod {pod} on node {node}: no order of placing keeps both {what} and the rules of the \
             pods around it"
        ),
    );
}

/// Disjoint sets of small numbers, to be joined.
pub(crate) struct Sets(Vec<usize>);

impl Sets {
    /// Every number below `n` by itself.
    pub(crate) fn new(n: usize) -> Self {
        Self((0..n).collect())
    }

    fn root(&mut self, mut i: usize) -> usize {
        while self.0[i] != i {
            self.0[i] = self.0[self.0[i]];
            i = self.0[i];
        }
        i
    }

    /// Makes one set of two; its root is the lower one.
    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }

    /// The sets, each ascending, by their first numbers.
    pub(crate) fn groups(mut self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut of_root = vec![0; self.0.len()];
        for i in 0..self.0.len() {
            let root = self.root(i);
            if root == i {
                of_root[i] = groups.len();
                groups.push(Vec::new());
            }
            groups[of_root[root]].push(i);
        }
        groups
    }
}
