//! What counts as a rule for a pod now, and what is given up next.
//!
//! Preferences are rules until a pod cannot be placed. They fall one at a time: preferred pod
//! affinity, preferred pod anti-affinity, preferred node affinity (heaviest first each), soft
//! spreads, and last the wish to stay off nodes with a `PreferNoSchedule` taint.

use joiner_model::{
    Effect, PodShape, PodTerm, Preference, PreferencePolicy, Problem, Spread, Terms,
};

/// What a pod asks for at one level of giving up.
#[derive(Debug)]
pub(crate) struct Wish<'s> {
    /// The preferred node term that counts.
    pub(crate) node: Option<&'s Terms>,
    /// Pod affinity that counts.
    pub(crate) affinity: Vec<&'s PodTerm>,
    /// Pod anti-affinity that counts, and whether the other side must keep away too.
    pub(crate) anti_affinity: Vec<(&'s PodTerm, bool)>,
    /// Spreads that count.
    pub(crate) spreads: Vec<&'s Spread>,
    /// Nodes with a `PreferNoSchedule` taint will do.
    pub(crate) tolerate_prefer: bool,
}

/// How many things a pod of this shape can give up.
pub(crate) fn levels(problem: &Problem, shape: &PodShape) -> u16 {
    let n = n_soft(shape) + usize::from(has_prefer_taint(problem));
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// The level a pod starts at.
pub(crate) fn first_level(problem: &Problem, shape: &PodShape) -> u16 {
    match problem.policy.preferences {
        PreferencePolicy::Respect => 0,
        PreferencePolicy::Ignore => u16::try_from(n_soft(shape)).unwrap_or(u16::MAX),
    }
}

/// What counts after giving up `level` things.
pub(crate) fn wish(shape: &PodShape, level: u16) -> Wish<'_> {
    let mut left = usize::from(level);
    let mut drop_some = |n: usize| {
        let dropped = left.min(n);
        left -= dropped;
        dropped
    };
    let affinity = kept(
        &shape.preferred_affinity,
        drop_some(shape.preferred_affinity.len()),
    );
    let anti = kept(
        &shape.preferred_anti_affinity,
        drop_some(shape.preferred_anti_affinity.len()),
    );
    let node = kept(
        &shape.preferred_node_terms,
        drop_some(shape.preferred_node_terms.len()),
    );
    let soft: Vec<&Spread> = shape.spreads.iter().filter(|s| !s.hard).collect();
    let n_soft_dropped = drop_some(soft.len());
    Wish {
        node: node.into_iter().next(),
        affinity: shape.affinity.iter().chain(affinity).collect(),
        anti_affinity: shape
            .anti_affinity
            .iter()
            .map(|t| (t, true))
            .chain(anti.into_iter().map(|t| (t, false)))
            .collect(),
        spreads: shape
            .spreads
            .iter()
            .filter(|s| s.hard)
            .chain(soft.into_iter().skip(n_soft_dropped))
            .collect(),
        tolerate_prefer: left > 0,
    }
}

/// The terms that are left after the heaviest `n_dropped` are given up, heaviest first.
fn kept<T>(preferences: &[Preference<T>], n_dropped: usize) -> Vec<&T> {
    let mut by_weight: Vec<&Preference<T>> = preferences.iter().collect();
    by_weight.sort_by_key(|p| std::cmp::Reverse(p.weight));
    by_weight
        .into_iter()
        .skip(n_dropped)
        .map(|p| &p.term)
        .collect()
}

fn n_soft(shape: &PodShape) -> usize {
    shape.preferred_affinity.len()
        + shape.preferred_anti_affinity.len()
        + shape.preferred_node_terms.len()
        + shape.spreads.iter().filter(|s| !s.hard).count()
}

fn has_prefer_taint(problem: &Problem) -> bool {
    let pools = problem.pools.iter().flat_map(|p| &p.taints);
    let nodes = problem.nodes.iter().flat_map(|n| &n.taints);
    pools
        .chain(nodes)
        .any(|t| t.effect == Effect::PreferNoSchedule)
}
