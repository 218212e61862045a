//! A new size in the middle of a rollout, or while paused: every set gets its share.

use std::cmp::Reverse;

use serde_json::json;

use super::{REPLICA_SETS, Rollout};
use crate::fields;

impl Rollout<'_, '_> {
    /// Gives the only active set the whole size; shares it out when there are more.
    pub(super) fn scale(&mut self) {
        if let Some(only) = self.only_active() {
            self.resize(only, self.replicas);
            return;
        }
        if self.sets.all.is_empty() {
            return;
        }
        if self.is_saturated() {
            for at in self.sets.old().collect::<Vec<_>>() {
                self.resize(at, 0);
            }
        } else if self.is_rolling {
            self.share_out();
        }
    }

    /// The one set with replicas; if none has any, the new one or the youngest.
    fn only_active(&self) -> Option<usize> {
        let mut active = (0..self.sets.all.len()).filter(|at| self.sets.all[*at].replicas > 0);
        match (active.next(), active.next()) {
            (Some(only), None) => Some(only),
            (Some(_), Some(_)) => None,
            (None, _) => self.sets.new.or_else(|| self.sets.all.len().checked_sub(1)),
        }
    }

    /// True when the new set has all replicas, knows so, and all are available.
    fn is_saturated(&self) -> bool {
        self.sets
            .new
            .map(|new| &self.sets.all[new])
            .is_some_and(|new| {
                new.replicas == self.replicas
                    && new.desired() == Some(self.replicas)
                    && new.available == self.replicas
            })
    }

    /// Spreads what is added or taken over the active sets by their size; the largest gets what
    /// rounding leaves over.
    fn share_out(&mut self) {
        let sets = &self.sets.all;
        let mut active: Vec<usize> = (0..sets.len())
            .filter(|at| sets[*at].replicas > 0)
            .collect();
        let allowed = match self.replicas {
            0 => 0,
            replicas => replicas + self.surge,
        };
        let change = allowed - self.sets.total();
        // Sets are in order of age: of two of a size the younger grows first, the older shrinks.
        match change > 0 {
            true => active.sort_by_key(|at| (Reverse(sets[*at].replicas), Reverse(*at))),
            false => active.sort_by_key(|at| (Reverse(sets[*at].replicas), *at)),
        }
        let mut left = change;
        let mut sizes: Vec<i64> = Vec::with_capacity(active.len());
        for at in &active {
            let share = match left {
                0 => 0,
                1.. => self.share(*at).min(left),
                _ => self.share(*at).max(left),
            };
            left -= share;
            sizes.push(sets[*at].replicas + share);
        }
        if let Some(largest) = sizes.first_mut() {
            *largest = (*largest + left).max(0);
        }
        for (at, size) in active.into_iter().zip(sizes) {
            if !self.resize(at, size) {
                self.remind(at);
            }
        }
    }

    /// What a set gains or loses when it keeps its proportion of the whole.
    fn share(&self, at: usize) -> i64 {
        let set = &self.sets.all[at];
        if self.replicas == 0 {
            return -set.replicas;
        }
        let before = match set.maximum() {
            Some(maximum) if maximum > 0 => maximum,
            Some(_) | None => fields::count(&self.deployment["status"]["replicas"], 0),
        };
        if before == 0 {
            return 0;
        }
        // Rounded to the nearest, halves up.
        let whole = set.replicas * (self.replicas + self.surge);
        (2 * whole + before) / (2 * before) - set.replicas
    }

    /// Tells a set that keeps its size of the deployment's, or scaling would never end.
    fn remind(&mut self, at: usize) {
        let set = &self.sets.all[at];
        let knows = set.desired() == Some(self.replicas)
            && set.maximum() == Some(self.replicas + self.surge);
        let Some(object) = set.object.filter(|_| !knows) else {
            return;
        };
        let patch = json!({"metadata": {"annotations": self.size_annotations()}});
        self.actions
            .push(fields::patch(REPLICA_SETS, object, patch));
    }
}
