//! Replaces pods of an older template, within `maxUnavailable` or `maxSurge`.

use std::collections::BTreeSet;

use super::super::owned::Child;
use super::{DaemonSet, Fit, node_of};
use crate::fields::{self, Rounding};

/// The pods of one node: at most one of each, or the node is still being tidied.
struct Pair<'a> {
    node: &'a str,
    new: Option<&'a Child>,
    old: Option<&'a Child>,
}

impl<'s> DaemonSet<'_, 's> {
    /// True when a new pod may run beside the old one.
    pub(super) fn surges(&self) -> bool {
        self.is_rolling() && self.limit("maxSurge", 0) > 0
    }

    /// Chooses old pods to delete, and nodes to put a new pod beside the old one.
    pub(super) fn update(&mut self) {
        if !self.is_rolling() {
            return;
        }
        match self.limit("maxSurge", 0) {
            0 => self.replace(),
            surge => self.surge(surge),
        }
    }

    fn is_rolling(&self) -> bool {
        self.object["spec"]["updateStrategy"]["type"] != "OnDelete"
    }

    /// A number of the update strategy, or a percentage of the nodes, rounded up.
    fn limit(&self, field: &str, absent: i64) -> i64 {
        let desired = self.fits.values().filter(|fit| **fit == Fit::Runs).count();
        let value = &self.object["spec"]["updateStrategy"]["rollingUpdate"][field];
        fields::scaled(value, desired as i64, Rounding::Up).unwrap_or(absent)
    }

    /// Deletes old pods; new ones follow once they are gone.
    fn replace(&mut self) {
        let limit = self.limit("maxUnavailable", 1).max(1);
        let (mut sick, mut healthy) = (Vec::new(), Vec::new());
        let mut down = (self.create.len() + self.delete.len()) as i64;
        for pair in self.pairs() {
            match (pair.new, pair.old) {
                (None, Some(old)) if self.is_available(old) => healthy.push(old),
                (None, Some(old)) => {
                    sick.push(old);
                    down += 1;
                }
                (Some(new), None) => down += i64::from(!self.is_available(new)),
                (None, None) | (Some(_), Some(_)) => down += 1,
            }
        }
        let free = usize::try_from(limit - down).unwrap_or(0);
        self.delete.extend(sick);
        self.delete.extend(healthy.into_iter().take(free));
    }

    /// Creates new pods beside old ones; [`DaemonSet::prune`] deletes the old when the new are up.
    fn surge(&mut self, limit: i64) {
        let (mut surging, mut nodes) = (0, Vec::new());
        for pair in self.pairs() {
            match (pair.new, pair.old) {
                (None, Some(old)) if self.is_available(old) => nodes.push(pair.node),
                (None, Some(_)) => surge_on(self, pair.node),
                (Some(new), Some(_)) => surging += i64::from(!self.is_available(new)),
                (Some(_) | None, None) => {}
            }
        }
        let free = usize::try_from(limit - surging).unwrap_or(0);
        for node in nodes.into_iter().take(free) {
            surge_on(self, node);
        }
    }

    /// Old and new pod of every node where the set runs and that this step leaves alone so far.
    fn pairs(&self) -> Vec<Pair<'s>> {
        let leaving: BTreeSet<&str> = self.delete.iter().map(|pod| node_of(&pod.object)).collect();
        let runs = |node: &str| self.fits.get(node) == Some(&Fit::Runs) && !leaving.contains(node);
        let nodes = self.pods.iter().filter(|(node, _)| runs(node));
        let pair = |(node, pods): (&&'s str, &Vec<&'s Child>)| {
            let alive = || pods.iter().copied().filter(|pod| !pod.facts.is_deleting);
            Pair {
                node,
                new: alive().find(|pod| self.is_updated(pod)),
                old: alive().find(|pod| !self.is_updated(pod)),
            }
        };
        nodes.map(pair).collect()
    }
}

/// Marks a node for one more pod.
fn surge_on(set: &mut DaemonSet<'_, '_>, node: &str) {
    if let Some((node, _)) = set.fits.get_key_value(node) {
        set.create.insert(*node);
    }
}
