//! Required pod affinity, replayed pod by pod.
//!
//! A pod comes in when each of its terms has a match in its domain that came in before. The first
//! pod of a group that selects itself needs none, as long as no match was in a domain that it could
//! use: such a group opens one domain, and a second one only for pods that cannot use the first.
//! Where that depends on the order in which pods of several groups come, the benefit of the doubt is
//! given: a later check looks for the order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joiner_model::{PodTerm, keys};

use crate::classes::Market;
use crate::ground::Ground;
use crate::topology::{Domain, Spot, Topology};
use crate::violation::{Report, Rule};
use crate::worlds::NEW_HOST;

/// One distinct term.
struct Group<'p> {
    term: &'p PodTerm,
    matches: usize,
    /// Domains with a match that came in.
    ready: BTreeSet<Domain>,
    /// Domains with a match from before the plan.
    bound: BTreeSet<Domain>,
    /// Domains that a pod may open, with the shapes that can be the first there.
    opened: BTreeMap<Domain, BTreeSet<usize>>,
}

/// Pods of one shape on one place that wait to come in.
struct Waiting {
    entry: usize,
    needs: Vec<Need>,
}

struct Need {
    group: usize,
    domain: Option<Domain>,
    /// The pod is what its own term asks for.
    selects_itself: bool,
}

/// Checks every required affinity term of every placed pod.
pub(crate) fn check<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &mut Topology<'p>,
    report: &mut Report,
) {
    let (mut groups, mut waiting) = read(ground, market, topology);
    fixed(ground, topology, &waiting, report);
    if waiting.is_empty() {
        return;
    }
    let mut feeds: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (id, group) in groups.iter_mut().enumerate() {
        let matches = topology.matches(group.matches);
        for shape in &matches.shapes {
            if matches.batch {
                feeds.entry(*shape).or_default().push(id);
            }
            let is_free = ground.problem.shapes[*shape].affinity.is_empty();
            for (_, entry) in topology.of_shape(*shape) {
                let domain = topology.domain(&group.term.key, entry.place);
                if entry.n_old > 0 {
                    group.bound.extend(domain);
                    group.ready.extend(domain);
                }
                if is_free && matches.n_new(entry) > 0 {
                    group.ready.extend(domain);
                }
            }
        }
    }
    loop {
        admit(topology, &mut groups, &feeds, &mut waiting);
        if waiting.is_empty() || !open(ground, topology, &mut groups, &waiting) {
            break;
        }
    }
    tell(ground, topology, &groups, &waiting, report);
}

/// The distinct terms of placed pods, and the pods that have them.
fn read<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &mut Topology<'p>,
) -> (Vec<Group<'p>>, Vec<Waiting>) {
    let mut ids: HashMap<&PodTerm, usize> = HashMap::new();
    let mut groups: Vec<Group<'p>> = Vec::new();
    let mut waiting = Vec::new();
    for shape_ix in topology.new_shapes() {
        let shape = &ground.problem.shapes[shape_ix];
        for term in &shape.affinity {
            topology.learn(ground, market, &term.key);
            let matches = topology.matching_term(ground, term);
            ids.entry(term).or_insert_with(|| {
                groups.push(Group {
                    term,
                    matches,
                    ready: BTreeSet::new(),
                    bound: BTreeSet::new(),
                    opened: BTreeMap::new(),
                });
                groups.len() - 1
            });
        }
        if shape.affinity.is_empty() {
            continue;
        }
        for (entry, at) in topology.of_shape(shape_ix).filter(|(_, e)| e.n_new > 0) {
            let needs = shape.affinity.iter().map(|term| {
                let matches = topology.matches(groups[ids[term]].matches);
                Need {
                    group: ids[term],
                    domain: topology.domain(&term.key, at.place),
                    selects_itself: matches.batch
                        && matches.shapes.binary_search(&shape_ix).is_ok(),
                }
            });
            waiting.push(Waiting {
                entry,
                needs: needs.collect(),
            });
        }
    }
    (groups, waiting)
}

/// The key has one value on every node with a pod under the term.
fn fixed(ground: &Ground<'_>, topology: &Topology<'_>, waiting: &[Waiting], report: &mut Report) {
    for pod in waiting {
        let entry = &topology.entries[pod.entry];
        let terms = &ground.problem.shapes[entry.shape].affinity;
        let open = |term: &&PodTerm| matches!(topology.spot(&term.key, entry.place), Spot::Open(_));
        if let Some(term) = terms.iter().find(open) {
            let (name, node) = (
                ground.pod_name(entry.pod),
                topology.place_name(ground, entry.place),
            );
            let key = &term.key;
            report.say(
                Rule::Affinity,
                format_args!(
                    "pod {name} has affinity over {key}, which its node {node} leaves open"
                ),
            );
        }
    }
}

/// Lets pods in until nobody moves.
fn admit(
    topology: &Topology<'_>,
    groups: &mut [Group<'_>],
    feeds: &BTreeMap<usize, Vec<usize>>,
    waiting: &mut Vec<Waiting>,
) {
    loop {
        let before = waiting.len();
        waiting.retain(|pod| {
            let served = pod.needs.iter().all(|need| {
                let group = &groups[need.group];
                let first =
                    |domain: &Domain| need.selects_itself && group.opened.contains_key(domain);
                need.domain
                    .is_some_and(|d| group.ready.contains(&d) || first(&d))
            });
            if served {
                let entry = &topology.entries[pod.entry];
                for id in feeds.get(&entry.shape).into_iter().flatten() {
                    let domain = topology.domain(&groups[*id].term.key, entry.place);
                    groups[*id].ready.extend(domain);
                }
            }
            !served
        });
        if waiting.len() == before {
            return;
        }
    }
}

/// Lets groups that select themselves open domains; true when one did.
fn open(
    ground: &Ground<'_>,
    topology: &Topology<'_>,
    groups: &mut [Group<'_>],
    waiting: &[Waiting],
) -> bool {
    let mut wanted: Vec<Openings> = Vec::new();
    wanted.resize_with(groups.len(), BTreeMap::new);
    for pod in waiting {
        for need in pod.needs.iter().filter(|need| need.selects_itself) {
            let Some(domain) = need.domain else {
                continue;
            };
            let group = &groups[need.group];
            let shape = topology.entries[pod.entry].shape;
            let could_follow =
                |bound: &Domain| may_use(ground, topology, group.term, shape, *bound);
            if !group.ready.contains(&domain) && !group.bound.iter().any(could_follow) {
                wanted[need.group].entry(domain).or_default().insert(shape);
            }
        }
    }
    let mut opened = false;
    let mut disputed: Option<(usize, Openings)> = None;
    for (id, wanted) in wanted.into_iter().enumerate() {
        let group = &mut groups[id];
        let mut all = group.opened.clone();
        for (domain, shapes) in wanted {
            all.entry(domain).or_default().extend(shapes);
        }
        let (agreed, rest) = agree(ground, topology, group.term, all.clone());
        if rest.is_empty() && agreed.len() > group.opened.len() {
            group.opened = agreed;
            opened = true;
        } else if disputed.is_none() && !rest.is_empty() {
            let settled = settle(ground, topology, group, all);
            disputed = (settled.len() > group.opened.len()).then_some((id, settled));
        }
    }
    if let (false, Some((id, settled))) = (opened, disputed) {
        groups[id].opened = settled;
        return true;
    }
    opened
}

type Openings = BTreeMap<Domain, BTreeSet<usize>>;

/// The domains to open when not all rivals can be first. A pod that matches and is not in the group
/// may come to a domain before the group does, so that nobody has to open it. Of other rivals only
/// one can be first; the rest will be reported.
fn settle(
    ground: &Ground<'_>,
    topology: &Topology<'_>,
    group: &Group<'_>,
    rivals: Openings,
) -> Openings {
    let matches = topology.matches(group.matches);
    let strangers = matches.shapes.iter().filter(|shape| {
        let terms = &ground.problem.shapes[**shape].affinity;
        !terms.contains(group.term)
    });
    let entries = strangers.flat_map(|shape| topology.of_shape(*shape));
    let entries = entries.filter(|(_, entry)| matches.n_new(entry) > 0);
    let helped: BTreeSet<Domain> = entries
        .filter_map(|(_, entry)| topology.domain(&group.term.key, entry.place))
        .collect();
    let (doubtful, rivals): (Openings, Openings) = rivals
        .into_iter()
        .partition(|(domain, _)| helped.contains(domain));
    let (agreed, rest) = agree(ground, topology, group.term, rivals);
    let mut settled = group.opened.clone();
    let first = rest.into_iter().next();
    let first = first.filter(|_| group.opened.is_empty());
    settled.extend(doubtful.into_iter().chain(agreed).chain(first));
    settled
}

/// Finds an order in which domains can be opened. A domain can be opened last when some first pod
/// there can use none of the others. Returns those with an order, and rivals without one.
fn agree(
    ground: &Ground<'_>,
    topology: &Topology<'_>,
    term: &PodTerm,
    mut rivals: Openings,
) -> (Openings, Openings) {
    let mut agreed = Openings::new();
    while rivals.len() > 1 {
        let last = rivals.iter().find_map(|(domain, shapes)| {
            let alone = |shape: &&usize| {
                let mut others = rivals.keys().filter(|other| *other != domain);
                others.all(|other| !may_use(ground, topology, term, **shape, *other))
            };
            shapes.iter().any(|shape| alone(&shape)).then_some(*domain)
        });
        let Some((domain, shapes)) = last.and_then(|domain| rivals.remove_entry(&domain)) else {
            return (agreed, rivals);
        };
        agreed.insert(domain, shapes);
    }
    agreed.extend(rivals);
    (agreed, Openings::new())
}

/// True when a pod's own requirements on the topology key leave it a domain.
pub(crate) fn may_use(
    ground: &Ground<'_>,
    topology: &Topology<'_>,
    term: &PodTerm,
    shape: usize,
    domain: Domain,
) -> bool {
    let selection = ground.demands.shapes[shape].selection;
    let selection = ground.demands.selection(selection);
    match domain {
        Domain::Own(_) if term.key.as_ref() == keys::HOSTNAME => {
            selection.allows(&term.key, NEW_HOST)
        }
        Domain::Own(_) => true,
        Domain::Value(_) => selection.allows(&term.key, &topology.render(ground, domain)),
    }
}

fn tell(
    ground: &Ground<'_>,
    topology: &Topology<'_>,
    groups: &[Group<'_>],
    waiting: &[Waiting],
    report: &mut Report,
) {
    for pod in waiting {
        let entry = &topology.entries[pod.entry];
        let unmet = pod.needs.iter().find(|need| {
            let group = &groups[need.group];
            need.domain
                .is_none_or(|domain| !group.ready.contains(&domain))
        });
        let Some(need) = unmet else {
            continue;
        };
        let (name, node) = (
            ground.pod_name(entry.pod),
            topology.place_name(ground, entry.place),
        );
        let key = &groups[need.group].term.key;
        report.say(
            Rule::Affinity,
            format_args!("pod {name} on node {node}: no pod that it must be near over {key}"),
        );
    }
}
