//! Hard topology spread constraints, each by itself: legal when some order of admission is.
//!
//! A pod may enter a domain when, counting it, the domain has at most `maxSkew` more than the
//! emptiest one. Pods under one constraint are admitted whenever they may; pods that it counts but
//! does not bind come in when they help. Constraints that not every order keeps are handed on, to be
//! looked at together with the others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joiner_model::{Spread, keys};

use crate::classes::Market;
use crate::demands::Demand;
use crate::domains::{Counted, Filter, Filters};
use crate::ground::Ground;
use crate::topology::{Domain, Spot, Topology};
use crate::violation::{Report, Rule};

/// The pods under one constraint that count the same nodes.
pub(crate) struct Group<'p> {
    pub(crate) spread: &'p Spread,
    pub(crate) filter: Filter,
    /// Shapes with a pod to place, ascending.
    pub(crate) shapes: Vec<usize>,
}

/// Pods that a constraint counts in one domain.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    /// There before.
    pub(crate) base: u64,
    /// New and under the constraint.
    mine: u64,
    /// New and under another one, or none.
    free: u64,
    /// Those of the free ones that do not count in every world.
    perhaps: u64,
    /// Some new pod here is under the constraint, counted or not.
    bound: bool,
}

impl Count {
    /// All that may count in the end.
    pub(crate) fn most(&self) -> u64 {
        self.base + self.mine + self.free
    }

    /// All that count in the end in every world.
    fn least(&self) -> u64 {
        self.most() - self.perhaps
    }
}

type Counts = BTreeMap<Domain, Count>;

/// A constraint with all that it counts.
pub(crate) struct Tally<'p> {
    pub(crate) group: Group<'p>,
    pub(crate) counts: Counts,
    /// The domains that the emptiest one is looked for in.
    pub(crate) domains: BTreeSet<Domain>,
    /// The pods that count, for [`Topology::matches`].
    pub(crate) matches: usize,
    floor_is_zero: bool,
}

impl Tally<'_> {
    /// The count of the emptiest domain before the plan.
    pub(crate) fn floor_before(&self) -> u64 {
        self.floor(|count| count.base)
    }

    /// The same when the plan is carried out.
    pub(crate) fn floor_after(&self) -> u64 {
        self.floor(Count::most)
    }

    fn floor(&self, count_of: impl Fn(&Count) -> u64) -> u64 {
        let each = self.domains.iter();
        let each = each.map(|domain| self.counts.get(domain).map_or(0, &count_of));
        let lowest = each.min().unwrap_or(0);
        if self.floor_is_zero { 0 } else { lowest }
    }

    /// The domains with pods under the constraint that cannot come in at just any time.
    pub(crate) fn binding(&self) -> impl Iterator<Item = Domain> {
        let room = self.floor_before() + u64::from(self.group.spread.max_skew);
        let each = self.counts.iter();
        let binding = each.filter(move |(_, count)| count.bound && count.least() > room);
        binding.map(|(domain, _)| *domain)
    }
}

/// Checks every hard spread of every placed pod; returns those that depend on the order.
pub(crate) fn check<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &mut Topology<'p>,
    report: &mut Report,
) -> Vec<Tally<'p>> {
    let groups = groups(ground, topology);
    let mut binding = Vec::new();
    if groups.is_empty() {
        return binding;
    }
    let mut filters = Filters::new(ground);
    for group in groups {
        if report.is_full() {
            break;
        }
        topology.learn(ground, market, &group.spread.key);
        fixed(ground, topology, &group, report);
        let tally = tally(ground, market, topology, &mut filters, group);
        bound_pods(ground, topology, &tally, report);
        counting_pods(ground, topology, &tally, report);
        if tally.binding().next().is_some() {
            binding.push(tally);
        }
    }
    binding
}

fn tally<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &mut Topology<'p>,
    filters: &mut Filters<'p>,
    group: Group<'p>,
) -> Tally<'p> {
    let key: &'p str = &group.spread.key;
    let namespace = match group.shapes.first() {
        Some(first) => std::slice::from_ref(&ground.problem.shapes[*first].namespace),
        None => &[],
    };
    let matches = topology.matching(ground, namespace, group.spread.selector.as_ref());
    let counts = count(ground, market, topology, filters, (&group, matches));
    let domains = match key {
        keys::HOSTNAME => BTreeSet::new(),
        _ => filters
            .reachable(ground, market, topology, key, group.filter)
            .clone(),
    };
    let min_domains = group.spread.min_domains;
    let few = min_domains.is_some_and(|min| domains.len() < min as usize);
    Tally {
        floor_is_zero: key == keys::HOSTNAME || few,
        group,
        counts,
        domains,
        matches,
    }
}

/// The constraints in force, in the order of the shapes that have them.
fn groups<'p>(ground: &Ground<'p>, topology: &Topology<'p>) -> Vec<Group<'p>> {
    let mut ids: HashMap<(&str, &Spread, usize, Option<usize>), usize> = HashMap::new();
    let mut groups: Vec<Group<'p>> = Vec::new();
    for shape_ix in topology.new_shapes() {
        let shape = &ground.problem.shapes[shape_ix];
        let own = ground.demands.shapes[shape_ix];
        for spread in shape.spreads.iter().filter(|s| s.hard) {
            let tolerations = spread.honor_taints.then_some(own.tolerations);
            let key = (shape.namespace.as_ref(), spread, own.selection, tolerations);
            let id = *ids.entry(key).or_insert_with(|| {
                groups.push(Group {
                    spread,
                    filter: Filter {
                        // Only what the filter looks at, so that equal filters are equal.
                        demand: Demand {
                            selection: own.selection,
                            tolerations: tolerations.unwrap_or(0),
                            volumes: 0,
                            ports: 0,
                            amounts: 0,
                        },
                        honor_affinity: spread.honor_affinity,
                        honor_taints: spread.honor_taints,
                    },
                    shapes: Vec::new(),
                });
                groups.len() - 1
            });
            if groups[id].shapes.last() != Some(&shape_ix) {
                groups[id].shapes.push(shape_ix);
            }
        }
    }
    groups
}

/// The key has one value on every node with a pod under the constraint.
fn fixed(ground: &Ground<'_>, topology: &Topology<'_>, group: &Group<'_>, report: &mut Report) {
    let key = &group.spread.key;
    for shape in &group.shapes {
        for (_, entry) in topology.of_shape(*shape).filter(|(_, e)| e.n_new > 0) {
            let what = match topology.spot(key, entry.place) {
                Spot::Fixed(_) => continue,
                Spot::Absent => "does not have",
                Spot::Open(_) => "leaves open",
            };
            let (pod, node) = (
                ground.pod_name(entry.pod),
                topology.place_name(ground, entry.place),
            );
            report.say(
                Rule::Spread,
                format_args!("pod {pod} is spread over {key}, which its node {node} {what}"),
            );
        }
    }
}

fn count<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &Topology<'p>,
    filters: &mut Filters<'p>,
    (group, matches): (&Group<'p>, usize),
) -> Counts {
    let matches = topology.matches(matches);
    let mut counts = Counts::new();
    for shape in &matches.shapes {
        let bound_by_it = group.shapes.binary_search(shape).is_ok();
        for (_, entry) in topology.of_shape(*shape) {
            let Spot::Fixed(domain) = topology.spot(&group.spread.key, entry.place) else {
                continue;
            };
            let place = topology.split(entry.place);
            let mut counted = || filters.place(ground, market, group.filter, place);
            let (n_new, n_old) = (matches.n_new(entry), entry.n_old);
            let count = counts.entry(*domain).or_default();
            if bound_by_it {
                count.mine += u64::from(n_new);
                count.bound |= entry.n_new > 0;
                if n_old > 0 && counted() != Counted::No {
                    count.base += u64::from(n_old);
                }
            } else if n_new + n_old > 0 {
                let counted = counted();
                if counted != Counted::No {
                    count.free += u64::from(n_new);
                    count.base += u64::from(n_old);
                }
                if counted == Counted::Perhaps {
                    count.perhaps += u64::from(n_new);
                }
            }
        }
    }
    for shape in &group.shapes {
        if matches.shapes.binary_search(shape).is_ok() {
            continue;
        }
        for (_, entry) in topology.of_shape(*shape).filter(|(_, e)| e.n_new > 0) {
            if let Spot::Fixed(domain) = topology.spot(&group.spread.key, entry.place) {
                counts.entry(*domain).or_default().bound = true;
            }
        }
    }
    counts
}

/// Admits pods one by one in the best order; what remains cannot come in. Domain, pods that remain.
fn stuck(tally: &Tally<'_>) -> BTreeMap<Domain, u64> {
    let Tally {
        domains,
        floor_is_zero,
        ..
    } = tally;
    let (floor_is_zero, max_skew) = (*floor_is_zero, tally.group.spread.max_skew);
    let mut now: BTreeMap<Domain, Count> = tally.counts.clone();
    for domain in domains {
        now.entry(*domain).or_default();
    }
    loop {
        let in_domains = now.iter().filter(|(domain, _)| domains.contains(domain));
        let lowest = in_domains.map(|(_, count)| count.base).min();
        let low = if floor_is_zero {
            0
        } else {
            lowest.unwrap_or(0)
        };
        let mut moved = false;
        for count in now.values_mut() {
            let room = (low + u64::from(max_skew)).saturating_sub(count.base);
            let n = room.min(count.mine);
            count.base += n;
            count.mine -= n;
            moved |= n > 0;
        }
        if moved {
            continue;
        }
        let waiting = now.values().any(|count| count.mine > 0);
        let helper = now.iter_mut().find(|(domain, count)| {
            !floor_is_zero && count.base == low && count.free > 0 && domains.contains(domain)
        });
        match helper {
            Some((_, count)) if waiting => {
                count.base += 1;
                count.free -= 1;
            }
            _ => break,
        }
    }
    let left = now.into_iter().map(|(domain, count)| (domain, count.mine));
    left.filter(|(_, mine)| *mine > 0).collect()
}

fn bound_pods(
    ground: &Ground<'_>,
    topology: &Topology<'_>,
    tally: &Tally<'_>,
    report: &mut Report,
) {
    let group = &tally.group;
    let Spread { key, max_skew, .. } = group.spread;
    for (domain, n_stuck) in stuck(tally) {
        let entries = group
            .shapes
            .iter()
            .flat_map(|shape| topology.of_shape(*shape));
        let mut here = entries.filter(|(_, entry)| {
            entry.n_new > 0 && topology.domain(key, entry.place) == Some(domain)
        });
        let pod = here
            .next()
            .map_or("?", |(_, entry)| ground.pod_name(entry.pod));
        let domain = topology.render(ground, domain);
        report.say(
            Rule::Spread,
            format_args!(
                "pod {pod}: {n_stuck} too many pods in {domain} for its spread over {key} with a \
                 skew of {max_skew}, in any order"
            ),
        );
    }
}

/// Pods that count others and not themselves: their domain must not have been too full before
/// the plan, even with every other domain filled first.
fn counting_pods(
    ground: &Ground<'_>,
    topology: &Topology<'_>,
    tally: &Tally<'_>,
    report: &mut Report,
) {
    let Tally {
        group,
        counts,
        domains,
        floor_is_zero,
        ..
    } = tally;
    let Spread {
        key,
        max_skew,
        selector,
        ..
    } = group.spread;
    for shape_ix in &group.shapes {
        let labels = &ground.problem.shapes[*shape_ix].labels;
        if selector.as_ref().is_some_and(|s| s.matches(labels)) {
            continue;
        }
        for (_, entry) in topology.of_shape(*shape_ix).filter(|(_, e)| e.n_new > 0) {
            let Spot::Fixed(here) = topology.spot(key, entry.place) else {
                continue;
            };
            let count = |domain: &Domain| counts.get(domain).copied().unwrap_or_default();
            let base = count(here).base;
            let others = domains.iter().map(|domain| {
                let there = count(domain);
                let more = if domain == here {
                    0
                } else {
                    there.mine + there.free
                };
                there.base + more
            });
            let low = if *floor_is_zero {
                0
            } else {
                others.min().unwrap_or(0)
            };
            if base > low + u64::from(*max_skew) {
                let (pod, domain) = (ground.pod_name(entry.pod), topology.render(ground, *here));
                report.say(
                    Rule::Spread,
                    format_args!(
                        "pod {pod}: {domain} has {base} pods and another {key} only {low}, more \
                         than its skew of {max_skew} allows"
                    ),
                );
            }
        }
    }
}
