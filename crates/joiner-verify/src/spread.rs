//! Hard topology spread constraints: legal when some order of admission is.
//!
//! A pod may enter a domain when, counting it, the domain has at most `maxSkew` more than the
//! emptiest one. Pods under one constraint are admitted whenever they may; pods that it counts but
//! does not bind come in when they help.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joiner_model::{Spread, keys};

use crate::classes::Market;
use crate::demands::Demand;
use crate::domains::{Filter, Filters};
use crate::ground::Ground;
use crate::topology::{Domain, Spot, Topology};
use crate::violation::{Report, Rule};

/// The pods under one constraint that count the same nodes.
struct Group<'p> {
    spread: &'p Spread,
    filter: Filter,
    shapes: Vec<usize>,
}

/// Pods that a constraint counts in one domain.
#[derive(Clone, Copy, Default)]
struct Count {
    /// There before.
    base: u64,
    /// New and under the constraint.
    mine: u64,
    /// New and under another one, or none.
    free: u64,
}

type Counts = BTreeMap<Domain, Count>;

/// Checks every hard spread of every placed pod.
pub(crate) fn check<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &mut Topology<'p>,
    report: &mut Report,
) {
    let groups = groups(ground, topology);
    if groups.is_empty() {
        return;
    }
    let mut filters = Filters::new(ground);
    for group in groups {
        if report.is_full() {
            return;
        }
        topology.learn(ground, market, &group.spread.key);
        fixed(ground, topology, &group, report);
        let counts = count(ground, market, topology, &mut filters, &group);
        let key: &str = &group.spread.key;
        let domains = match key {
            keys::HOSTNAME => BTreeSet::new(),
            _ => filters
                .reachable(ground, market, topology, key, group.filter)
                .clone(),
        };
        let few = group
            .spread
            .min_domains
            .is_some_and(|min| domains.len() < min as usize);
        let floor_is_zero = key == keys::HOSTNAME || few;
        let stuck = stuck(&counts, &domains, group.spread.max_skew, floor_is_zero);
        bound_pods(ground, topology, &group, &stuck, report);
        counting_pods(
            ground,
            topology,
            &group,
            (&counts, &domains, floor_is_zero),
            report,
        );
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
    topology: &mut Topology<'p>,
    filters: &mut Filters<'p>,
    group: &Group<'p>,
) -> Counts {
    let Some(first) = group.shapes.first() else {
        return Counts::new();
    };
    let namespace = std::slice::from_ref(&ground.problem.shapes[*first].namespace);
    let matches = topology.matching(ground, namespace, group.spread.selector.as_ref());
    let matches = topology.matches(matches);
    let mut counts = Counts::new();
    for shape in &matches.shapes {
        let bound_by_it = group.shapes.binary_search(shape).is_ok();
        for (_, entry) in topology.of_shape(*shape) {
            let Spot::Fixed(domain) = topology.spot(&group.spread.key, entry.place) else {
                continue;
            };
            let mut counted = || match topology.split(entry.place) {
                Ok(launch) => filters.launch(ground, market, group.filter, launch),
                Err(node) => filters.node(ground, group.filter, node),
            };
            let (n_new, n_old) = (matches.n_new(entry), entry.n_old);
            let count = counts.entry(*domain).or_default();
            if bound_by_it {
                count.mine += u64::from(n_new);
                if n_old > 0 && counted() {
                    count.base += u64::from(n_old);
                }
            } else if n_new + n_old > 0 && counted() {
                count.free += u64::from(n_new);
                count.base += u64::from(n_old);
            }
        }
    }
    counts
}

/// Admits pods one by one in the best order; what remains cannot come in. Domain, pods that remain.
fn stuck(
    counts: &Counts,
    domains: &BTreeSet<Domain>,
    max_skew: u32,
    floor_is_zero: bool,
) -> BTreeMap<Domain, u64> {
    let mut now: BTreeMap<Domain, Count> = counts.clone();
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
    group: &Group<'_>,
    stuck: &BTreeMap<Domain, u64>,
    report: &mut Report,
) {
    let Spread { key, max_skew, .. } = group.spread;
    for (domain, n_stuck) in stuck {
        let entries = group
            .shapes
            .iter()
            .flat_map(|shape| topology.of_shape(*shape));
        let mut here = entries.filter(|(_, entry)| {
            entry.n_new > 0 && topology.domain(key, entry.place) == Some(*domain)
        });
        let pod = here
            .next()
            .map_or("?", |(_, entry)| ground.pod_name(entry.pod));
        let domain = topology.render(ground, *domain);
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
    group: &Group<'_>,
    (counts, domains, floor_is_zero): (&Counts, &BTreeSet<Domain>, bool),
    report: &mut Report,
) {
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
            let low = if floor_is_zero {
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
