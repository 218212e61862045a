//! Nodes that headroom counts on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use joiner_model::Name;

/// Nodes that the last plan counts on for headroom; clones share what they know.
///
/// It is memory on purpose: each plan makes it anew, and until the first one no node is kept for it.
#[derive(Clone, Debug, Default)]
pub struct Headroom {
    nodes: Arc<Mutex<BTreeSet<Name>>>,
}

impl Headroom {
    /// Headroom counts on these nodes now, and on no others.
    pub fn set(&self, nodes: BTreeSet<Name>) {
        *self.lock() = nodes;
    }

    /// True when headroom counts on the node.
    #[must_use]
    pub fn has(&self, node: &str) -> bool {
        self.lock().contains(node)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Name>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_plan_counts_and_clones_know_of_it() {
        let headroom = Headroom::default();
        let other = headroom.clone();
        assert!(!headroom.has("a"));
        headroom.set(["a".into()].into_iter().collect());
        assert!(other.has("a"));
        other.set(["b".into()].into_iter().collect());
        assert!(!headroom.has("a") && headroom.has("b"));
    }
}
