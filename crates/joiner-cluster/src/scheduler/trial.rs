//! May this pod run on that node? The filters of upstream's default profile, in its order.

use std::slice::from_ref;
use std::sync::Arc;

use super::claims::VolumeRules;
use super::cluster::{Cluster, Room, Topology, Verdict, judge};
use super::pod::{PodInfo, PodTerm, Spread};
use super::reasons::Reason;

/// No domain at all: any count is below it.
const NO_DOMAIN: i64 = i32::MAX as i64;

/// A count by domain.
pub(crate) struct Domains {
    topology: Arc<Topology>,
    counts: Vec<i64>,
}

impl Domains {
    fn at(&self, node: usize) -> Option<i64> {
        let domain = self.topology.domain[node]?;
        Some(self.counts[domain])
    }
}

/// A hard spread constraint with all that it is compared to.
struct SpreadCheck {
    domains: Domains,
    least: i64,
    own: i64,
    max_skew: i64,
}

/// One pod about to be placed: what does not depend on the node is worked out once.
pub(crate) struct Trial<'p> {
    pod: &'p PodInfo,
    verdicts: Option<Arc<Vec<Verdict>>>,
    volumes: VolumeRules,
    spread: Vec<SpreadCheck>,
    with: Vec<Domains>,
    /// Nobody to be with exists, and the pod would do itself.
    first: bool,
    without: Vec<Domains>,
    kept_away: Vec<Domains>,
}

impl<'p> Trial<'p> {
    /// Prepares; `volumes` are the rules of its claims.
    pub(crate) fn new(cluster: &mut Cluster, pod: &'p PodInfo, volumes: VolumeRules) -> Self {
        // Pods that name their node would only fill the table of verdicts.
        let verdicts = pod.rule.only().is_none().then(|| cluster.verdicts(pod));
        let mut trial = Self {
            pod,
            verdicts,
            volumes,
            spread: Vec::new(),
            with: Vec::new(),
            first: false,
            without: Vec::new(),
            kept_away: Vec::new(),
        };
        trial.prepare_spread(cluster);
        trial.prepare_terms(cluster);
        trial
    }

    /// Looks again at where other pods are.
    pub(crate) fn renew(&mut self, cluster: &mut Cluster) {
        self.spread.clear();
        self.with.clear();
        self.without.clear();
        self.kept_away.clear();
        self.first = false;
        self.prepare_spread(cluster);
        self.prepare_terms(cluster);
    }

    /// What labels and taints of a node mean for the pod.
    pub(crate) fn verdict(&self, cluster: &Cluster, node: usize) -> Verdict {
        match &self.verdicts {
            Some(verdicts) => verdicts[node],
            None => judge(&cluster.rooms[node].info, self.pod),
        }
    }

    /// All that the first failing filter has against a node; nothing when the pod fits.
    pub(crate) fn against(&self, cluster: &Cluster, node: usize) -> Vec<Reason> {
        let verdict = self.verdict(cluster, node);
        let room = &cluster.rooms[node];
        let one = |reason| vec![reason];
        if verdict.cordoned {
            return one(Reason::Unschedulable);
        }
        if verdict.tainted {
            return one(Reason::Taint);
        }
        if verdict.unfit {
            return one(Reason::NodeAffinity);
        }
        let clash = |port| room.ports.iter().any(|taken| taken.clashes(port));
        if self.pod.ports.iter().any(clash) {
            return one(Reason::Ports);
        }
        let missing = missing(room, self.pod);
        if !missing.is_empty() {
            return missing;
        }
        let last = self.volumes.against(&room.info, node);
        let last = last.or_else(|| self.against_spread(node));
        let last = last.or_else(|| self.against_terms(node));
        last.into_iter().collect()
    }

    /// True when nothing is against a node: the quick way to ask.
    pub(crate) fn fits(&self, cluster: &Cluster, node: usize) -> bool {
        let verdict = self.verdict(cluster, node);
        let (room, asked) = (&cluster.rooms[node], &self.pod.requests);
        let (used, most) = (&room.used, &room.info.allocatable);
        !(verdict.cordoned || verdict.tainted || verdict.unfit)
            && (asked.cpu == 0 || asked.cpu <= most.cpu.saturating_sub(used.cpu))
            && self.against(cluster, node).is_empty()
    }

    fn prepare_spread(&mut self, cluster: &mut Cluster) {
        let hard: Vec<&Spread> = self.pod.spread.iter().filter(|one| one.hard).collect();
        let topologies: Vec<Arc<Topology>> = hard
            .iter()
            .map(|one| cluster.topology(&one.topology))
            .collect();
        for (constraint, topology) in hard.iter().zip(&topologies) {
            let own = i64::from(cluster.is_meant(&constraint.matcher, self.pod));
            let by_node = cluster.count(from_ref(&constraint.matcher)).to_vec();
            let mut counts = vec![0; topology.domains];
            let mut seen = vec![false; topology.domains];
            for (node, count) in by_node.iter().enumerate() {
                let everywhere = topologies.iter().all(|other| other.domain[node].is_some());
                let verdict = self.verdict(cluster, node);
                if !everywhere || !is_counted(constraint, verdict) {
                    continue;
                }
                if let Some(domain) = topology.domain[node] {
                    counts[domain] += count;
                    seen[domain] = true;
                }
            }
            let domains = seen.iter().filter(|seen| **seen).count();
            let counted = counts.iter().zip(&seen).filter(|(_, seen)| **seen);
            let least = counted.map(|(count, _)| *count).min().unwrap_or(NO_DOMAIN);
            self.spread.push(SpreadCheck {
                domains: Domains {
                    topology: Arc::clone(topology),
                    counts,
                },
                least: if domains < constraint.min_domains {
                    0
                } else {
                    least
                },
                own,
                max_skew: constraint.max_skew,
            });
        }
    }

    fn prepare_terms(&mut self, cluster: &mut Cluster) {
        let terms = &self.pod.terms;
        let sum = |cluster: &mut Cluster, key: &str, by_node: &[i64]| {
            let topology = cluster.topology(key);
            let counts = topology.sum(by_node);
            Domains { topology, counts }
        };
        if !terms.with.is_empty() {
            // Only pods that meet all terms count for any.
            let all: Vec<_> = terms.with.iter().map(|term| term.matcher.clone()).collect();
            let by_node = cluster.count(&all).to_vec();
            for term in &terms.with {
                self.with.push(sum(cluster, &term.topology, &by_node));
            }
            let nobody = |domains: &Domains| domains.counts.iter().all(|count| *count == 0);
            let own = |term: &PodTerm| cluster.is_meant(&term.matcher, self.pod);
            self.first = self.with.iter().all(nobody) && terms.with.iter().all(own);
        }
        for term in &terms.without {
            let by_node = cluster.count(from_ref(&term.matcher)).to_vec();
            self.without.push(sum(cluster, &term.topology, &by_node));
        }
        for (key, by_node) in cluster.kept_away(self.pod) {
            self.kept_away.push(sum(cluster, &key, &by_node));
        }
    }

    fn against_spread(&self, node: usize) -> Option<Reason> {
        self.spread
            .iter()
            .find_map(|check| match check.domains.at(node) {
                None => Some(Reason::SpreadLabel),
                Some(count) => {
                    (count + check.own - check.least > check.max_skew).then_some(Reason::Spread)
                }
            })
    }

    fn against_terms(&self, node: usize) -> Option<Reason> {
        let together = |domains: &Domains| match domains.at(node) {
            None => false,
            Some(count) => count > 0 || self.first,
        };
        let apart = |domains: &Domains| domains.at(node).is_none_or(|count| count == 0);
        if !self.with.iter().all(together) {
            return Some(Reason::Affinity);
        }
        if !self.without.iter().all(apart) {
            return Some(Reason::AntiAffinity);
        }
        (!self.kept_away.iter().all(apart)).then_some(Reason::ExistingAntiAffinity)
    }
}

/// True when the pods of a node count for a constraint.
pub(crate) fn is_counted(constraint: &Spread, verdict: Verdict) -> bool {
    !(constraint.honor_affinity && verdict.unfit || constraint.honor_taints && verdict.tainted)
}

/// What a node has too little of.
fn missing(room: &Room, pod: &PodInfo) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if room.pods + 1 > room.info.pods_max {
        reasons.push(Reason::TooManyPods);
    }
    if pod.requests.is_zero() {
        return reasons;
    }
    let mut check = |name: &str, asked: i64, used: i64, most: i64| {
        if asked > 0 && asked > most.saturating_sub(used) {
            reasons.push(Reason::Insufficient(name.into(), asked > most));
        }
    };
    let (asked, used, most) = (&pod.requests, &room.used, &room.info.allocatable);
    check("cpu", asked.cpu, used.cpu, most.cpu);
    check("memory", asked.memory, used.memory, most.memory);
    check(
        "ephemeral-storage",
        asked.ephemeral,
        used.ephemeral,
        most.ephemeral,
    );
    for (name, amount) in &asked.others {
        check(name, *amount, used.get(name), most.get(name));
    }
    reasons
}
