//! Required pod anti-affinity, in both directions: whoever has the term, bound or new, and whoever
//! it is about must not share a domain. A node that leaves the key open is in every domain it may
//! come to be in.

use std::collections::{BTreeMap, HashMap};

use joiner_model::{PodIx, PodTerm};

use crate::classes::Market;
use crate::ground::Ground;
use crate::topology::{Domain, Entry, Spot, Topology};
use crate::violation::{Report, Rule};

/// Pods of one side in one domain.
#[derive(Clone, Copy, Default)]
struct Side {
    n_new: u64,
    n_old: u64,
    pod: Option<PodIx>,
    /// Another one, to name a pair.
    other: Option<PodIx>,
}

impl Side {
    fn add(&mut self, entry: &Entry, n_new: u32) {
        if n_new == 0 && entry.n_old == 0 {
            return;
        }
        self.n_new += u64::from(n_new);
        self.n_old += u64::from(entry.n_old);
        if self.pod.is_none() {
            self.pod = Some(entry.pod);
        } else if self.other.is_none() {
            self.other = Some(entry.pod);
        }
    }
}

/// Those with the term, those it is about, and those who are both.
#[derive(Clone, Copy, Default)]
struct Meeting {
    owners: Side,
    targets: Side,
    n_both_new: u64,
}

/// Checks every required anti-affinity term of every pod.
pub(crate) fn check<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &mut Topology<'p>,
    report: &mut Report,
) {
    for (term, owners) in terms(ground, topology) {
        if report.is_full() {
            return;
        }
        topology.learn(ground, market, &term.key);
        let matches = topology.matching_term(ground, term);
        let matches = topology.matches(matches);
        let mut meetings: BTreeMap<Domain, Meeting> = BTreeMap::new();
        for shape in &owners {
            let is_target = matches.batch && matches.shapes.binary_search(shape).is_ok();
            for (_, entry) in topology.of_shape(*shape) {
                for domain in possible(topology, &term.key, entry.place) {
                    let meeting = meetings.entry(*domain).or_default();
                    meeting.owners.add(entry, entry.n_new);
                    meeting.n_both_new += if is_target { u64::from(entry.n_new) } else { 0 };
                }
            }
        }
        for shape in &matches.shapes {
            for (_, entry) in topology.of_shape(*shape) {
                for domain in possible(topology, &term.key, entry.place) {
                    if let Some(meeting) = meetings.get_mut(domain) {
                        meeting.targets.add(entry, matches.n_new(entry));
                    }
                }
            }
        }
        for (domain, meeting) in &meetings {
            judge(ground, topology, term, (*domain, meeting), report);
        }
    }
}

/// The distinct terms, each with the shapes that have it, in order.
fn terms<'p>(ground: &Ground<'p>, topology: &Topology<'p>) -> Vec<(&'p PodTerm, Vec<usize>)> {
    let mut ids: HashMap<&PodTerm, usize> = HashMap::new();
    let mut terms: Vec<(&PodTerm, Vec<usize>)> = Vec::new();
    for (shape_ix, shape) in ground.problem.shapes.iter().enumerate() {
        if topology.of_shape(shape_ix).next().is_none() {
            continue;
        }
        for term in &shape.anti_affinity {
            let id = *ids.entry(term).or_insert_with(|| {
                terms.push((term, Vec::new()));
                terms.len() - 1
            });
            if terms[id].1.last() != Some(&shape_ix) {
                terms[id].1.push(shape_ix);
            }
        }
    }
    terms
}

/// Every domain that a place may come to be in.
fn possible<'t>(topology: &'t Topology<'_>, key: &str, place: usize) -> &'t [Domain] {
    match topology.spot(key, place) {
        Spot::Absent => &[],
        Spot::Fixed(domain) => std::slice::from_ref(domain),
        Spot::Open(domains) => domains,
    }
}

/// Two different pods that the term keeps apart, at least one of them new, must not meet.
fn judge(
    ground: &Ground<'_>,
    topology: &Topology<'_>,
    term: &PodTerm,
    (domain, meeting): (Domain, &Meeting),
    report: &mut Report,
) {
    let Meeting {
        owners,
        targets,
        n_both_new,
    } = meeting;
    let pairs = owners.n_new * (targets.n_new + targets.n_old) + owners.n_old * targets.n_new;
    if pairs <= *n_both_new {
        return;
    }
    let Some(owner) = owners.pod else {
        return;
    };
    let named = [targets.pod, targets.other].into_iter().flatten();
    let target = named
        .filter(|pod| *pod != owner)
        .map(|pod| ground.pod_name(pod))
        .next();
    let domain = topology.render(ground, domain);
    let key = &term.key;
    report.say(
        Rule::AntiAffinity,
        format_args!(
            "pod {} must be apart from pod {} over {key}, but both may be in {domain}",
            ground.pod_name(owner),
            target.unwrap_or("of its own kind"),
        ),
    );
}
