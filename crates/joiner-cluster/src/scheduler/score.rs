//! Which of the nodes that will do is best? Upstream's scores, in whole numbers.

use std::slice::from_ref;
use std::sync::Arc;

use super::cluster::{Cluster, Topology};
use super::pod::{PodInfo, Spread};
use super::trial::{Trial, is_counted};
use crate::names::Digest;

const SCORE_MAX: i64 = 100;
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Weights of the default profile.
const TAINTS: i64 = 3;
const NODE_WISHES: i64 = 2;
const SPREAD: i64 = 2;
const POD_WISHES: i64 = 2;

/// One in fixed point.
const UNIT: i64 = 1024;

/// The best of the nodes; `defaults` are soft constraints for pods that bring none. Ties go by a
/// hash of the seed and the pod's uid.
pub(crate) fn best(
    cluster: &mut Cluster,
    pod: &PodInfo,
    trial: &Trial<'_>,
    feasible: &[usize],
    defaults: &[Spread],
    seed: u64,
) -> Option<usize> {
    if let [] | [_] = feasible {
        return feasible.first().copied();
    }
    let mut scores: Vec<i64> = feasible
        .iter()
        .map(|node| least_allocated(cluster, pod, *node))
        .collect();
    if !pod.preferred.is_empty() || cluster.has_soft_taints() {
        let verdicts: Vec<_> = feasible
            .iter()
            .map(|node| trial.verdict(cluster, *node))
            .collect();
        let wishes: Vec<i64> = verdicts.iter().map(|verdict| verdict.wishes).collect();
        let taints: Vec<i64> = verdicts.iter().map(|verdict| verdict.soft_taints).collect();
        add(&mut scores, NODE_WISHES, &share_of_most(&wishes));
        let taints: Vec<i64> = share_of_most(&taints)
            .iter()
            .map(|part| SCORE_MAX - part)
            .collect();
        add(&mut scores, TAINTS, &taints);
    }
    if let Some(spread) = soft_spread(cluster, pod, trial, feasible, defaults) {
        add(&mut scores, SPREAD, &spread);
    }
    if let Some(wishes) = pod_wishes(cluster, pod, feasible) {
        add(&mut scores, POD_WISHES, &wishes);
    }
    let most = scores.iter().max()?;
    let tied: Vec<usize> = (0..feasible.len())
        .filter(|ix| scores[*ix] == *most)
        .map(|ix| feasible[ix])
        .collect();
    let draw = Digest::default().number(seed).text(&pod.uid).finish();
    let ix = draw % u64::try_from(tied.len()).unwrap_or(1).max(1);
    tied.get(usize::try_from(ix).unwrap_or(0)).copied()
}

fn add(scores: &mut [i64], weight: i64, parts: &[i64]) {
    for (score, part) in scores.iter_mut().zip(parts) {
        *score += weight * part;
    }
}

/// From nothing to the most, as parts of a hundred.
fn share_of_most(figures: &[i64]) -> Vec<i64> {
    let most = figures.iter().max().copied().unwrap_or(0);
    let share = |figure: &i64| {
        if most > 0 {
            SCORE_MAX * figure / most
        } else {
            0
        }
    };
    figures.iter().map(share).collect()
}

fn least_allocated(cluster: &Cluster, pod: &PodInfo, node: usize) -> i64 {
    let room = &cluster.rooms[node];
    let free = |used: i64, most: i64| {
        let free = i128::from(most.saturating_sub(used).max(0)) * i128::from(SCORE_MAX);
        i64::try_from(free / i128::from(most.max(1))).unwrap_or(0)
    };
    let most = &room.info.allocatable;
    let cpu = free(room.weight.0 + pod.weight.0, most.cpu);
    let memory = free(room.weight.1 + pod.weight.1, most.memory);
    match (most.cpu > 0, most.memory > 0) {
        (true, true) => (cpu + memory) / 2,
        (true, false) => cpu,
        (false, true) => memory,
        (false, false) => 0,
    }
}

/// Fewer matching pods in the domain is better; rare domains weigh less than many small ones.
fn soft_spread(
    cluster: &mut Cluster,
    pod: &PodInfo,
    trial: &Trial<'_>,
    feasible: &[usize],
    defaults: &[Spread],
) -> Option<Vec<i64>> {
    let own: Vec<&Spread> = match &pod.spread[..] {
        [] => defaults.iter().collect(),
        own => own.iter().filter(|one| !one.hard).collect(),
    };
    if own.is_empty() {
        return None;
    }
    // A node without one of the pod's own labels is left out; the defaults are not so strict.
    let strict = !pod.spread.is_empty();
    let topologies: Vec<Arc<Topology>> = own
        .iter()
        .map(|one| cluster.topology(&one.topology))
        .collect();
    let has_all = |node: usize| topologies.iter().all(|one| one.domain[node].is_some());
    let scored = |node: &usize| !strict || has_all(*node);
    let mut scores = vec![0; feasible.len()];
    for (constraint, topology) in own.iter().zip(&topologies) {
        let by_node = cluster.count(from_ref(&constraint.matcher)).to_vec();
        let counted = |node: usize| {
            (!strict || has_all(node)) && is_counted(constraint, trial.verdict(cluster, node))
        };
        let alone = &*constraint.topology == HOSTNAME;
        let sums = if alone {
            Vec::new()
        } else {
            let figures = by_node.iter().enumerate();
            let figures = figures.map(|(node, count)| if counted(node) { *count } else { 0 });
            topology.sum(&figures.collect::<Vec<_>>())
        };
        let weight = spread_weight(topology, feasible.iter().copied().filter(scored), alone);
        for (score, node) in scores.iter_mut().zip(feasible) {
            if let Some(domain) = topology.domain[*node] {
                let count = if alone { by_node[*node] } else { sums[domain] };
                *score += count * weight + (constraint.max_skew - 1) * UNIT;
            }
        }
    }
    let scored: Vec<bool> = feasible.iter().map(scored).collect();
    Some(inverted(&scores, &scored))
}

/// The logarithm of the number of domains, in fixed point.
fn spread_weight(topology: &Topology, nodes: impl Iterator<Item = usize>, alone: bool) -> i64 {
    let mut domains: Vec<Option<usize>> = nodes.map(|node| topology.domain[node]).collect();
    if !alone {
        domains.sort_unstable();
        domains.dedup();
    }
    logarithm(
        u64::try_from(domains.len())
            .unwrap_or(u64::MAX)
            .saturating_add(2),
    )
}

/// The natural logarithm in fixed point, without floats: they may differ between machines.
fn logarithm(number: u64) -> i64 {
    let whole = number.max(1).ilog2();
    // The rest lies between one and two, with 30 bits behind the point; squaring it shifts its
    // logarithm by one bit.
    let mut rest = (u128::from(number.max(1)) << 30) >> whole;
    let mut twos = i64::from(whole);
    for _ in 0..10 {
        rest = (rest * rest) >> 30;
        twos *= 2;
        if rest >= 2 << 30 {
            rest >>= 1;
            twos += 1;
        }
    }
    twos * 710 / UNIT
}

/// The least becomes the best; nodes that are left out get nothing.
fn inverted(scores: &[i64], scored: &[bool]) -> Vec<i64> {
    let rounded: Vec<i64> = scores
        .iter()
        .map(|score| (score + UNIT / 2) / UNIT)
        .collect();
    let among = || {
        rounded
            .iter()
            .zip(scored)
            .filter(|(_, scored)| **scored)
            .map(|(one, _)| *one)
    };
    let (least, most) = (among().min().unwrap_or(0), among().max().unwrap_or(0));
    let invert = |(score, scored): (&i64, &bool)| match (scored, most) {
        (false, _) => 0,
        (true, 0) => SCORE_MAX,
        (true, _) => SCORE_MAX * (most + least - score) / most,
    };
    rounded.iter().zip(scored).map(invert).collect()
}

/// Wishes of the pod about others, and of others about the pod.
fn pod_wishes(cluster: &mut Cluster, pod: &PodInfo, feasible: &[usize]) -> Option<Vec<i64>> {
    let mut pulls = cluster.pulled(pod);
    for (weight, term) in &pod.terms.wishes {
        let by_node = cluster.count(from_ref(&term.matcher));
        let weighted = by_node.iter().map(|count| count * weight).collect();
        pulls.push((term.topology.clone(), weighted));
    }
    if pulls.is_empty() {
        return None;
    }
    let mut scores = vec![0; feasible.len()];
    for (key, by_node) in &pulls {
        let topology = cluster.topology(key);
        let sums = topology.sum(by_node);
        for (score, node) in scores.iter_mut().zip(feasible) {
            *score += topology.domain[*node].map_or(0, |domain| sums[domain]);
        }
    }
    let (least, most) = (*scores.iter().min()?, *scores.iter().max()?);
    let range = most - least;
    let share = |score: &i64| {
        if range > 0 {
            SCORE_MAX * (score - least) / range
        } else {
            0
        }
    };
    Some(scores.iter().map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms() {
        for (number, expected) in [(1, 0), (2, 709), (3, 1124), (10, 2357), (5002, 8720)] {
            let got = logarithm(number);
            assert!(
                (got - expected).abs() < 12,
                "ln {number}: {got}, not {expected}"
            );
        }
    }

    #[test]
    fn fewer_is_better() {
        assert_eq!(
            inverted(&[0, 1024, 2048], &[true, true, true]),
            [100, 50, 0]
        );
        assert_eq!(inverted(&[0, 0], &[true, false]), [100, 0]);
    }
}
