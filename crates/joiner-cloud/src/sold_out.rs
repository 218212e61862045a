//! What a cloud has lately refused to sell, until it may be tried again.
//!
//! *Flow*: a refused launch [marks](SoldOut::mark) what the refusal was about, from one offering to a
//! whole capacity type; catalogs ask for each offering whether it [is sold out](SoldOut::is_sold_out),
//! and compare [sequence numbers](SoldOut::sequence) to see whether they have to ask again.
//!
//! *Guarantees*: equal sequence numbers mean equal answers in between. A mark that is made anew lasts
//! anew.
//!
//! *Assumptions*: losing all marks in a crash costs no more than a refused launch. Time comes as an
//! argument and does not run backwards; where it does, marks that had ended stay ended.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use joiner_model::{Labels, Name, keys};

/// Marks that are kept at most: several times the offerings of a region.
const MARKS_MAX: usize = 100_000;
/// Instance types with a sequence number of their own.
const TYPES_MAX: usize = 10_000;

/// Names one way to buy machines of a type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferingKey {
    /// Capacity type: `spot`, `on-demand`, `reserved`.
    pub capacity_type: Name,
    /// Instance type.
    pub instance_type: Name,
    /// Zone.
    pub zone: Name,
}

impl OfferingKey {
    /// The key of an offering that has these labels; a label that is missing counts as empty.
    #[must_use]
    pub fn of(instance_type: &Name, labels: &Labels) -> Self {
        let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
        Self {
            capacity_type: label(keys::CAPACITY_TYPE),
            instance_type: instance_type.clone(),
            zone: label(keys::ZONE),
        }
    }
}

/// How much of what a cloud sells a refusal was about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SoldOutScope {
    /// One offering.
    Offering(OfferingKey),
    /// One offering, for machines that go into this placement group.
    InGroup(OfferingKey, Name),
    /// Every type of a capacity type in a zone.
    Zone {
        /// Capacity type.
        capacity_type: Name,
        /// Zone.
        zone: Name,
    },
    /// Every type of a capacity type, everywhere.
    CapacityType(Name),
    /// A subnet, of which a zone may have several: it covers no offering by itself.
    Subnet(Name),
}

impl SoldOutScope {
    /// The only instance type that it is about, if there is one.
    fn instance_type(&self) -> Option<&Name> {
        match self {
            Self::Offering(key) | Self::InGroup(key, _) => Some(&key.instance_type),
            Self::Zone { .. } | Self::CapacityType(_) | Self::Subnet(_) => None,
        }
    }
}

/// What is known to be sold out.
#[derive(Clone, Debug)]
pub struct SoldOut {
    lasts: Duration,
    /// Each mark with the time when it ends.
    marks: BTreeMap<SoldOutScope, Timestamp>,
    /// No mark ends before this.
    none_ends_before: Timestamp,
    n_changes: u64,
    /// The last change that may concern any type.
    changed: u64,
    /// The last change that concerns this type alone.
    changed_by_type: BTreeMap<Name, u64>,
}

impl SoldOut {
    /// Knows nothing yet; every mark will last that long.
    #[must_use]
    pub fn new(lasts: Duration) -> Self {
        Self {
            lasts,
            marks: BTreeMap::new(),
            none_ends_before: Timestamp::MAX,
            n_changes: 0,
            changed: 0,
            changed_by_type: BTreeMap::new(),
        }
    }

    /// Remembers a refusal. When there are too many, the mark that would end first makes room.
    pub fn mark(&mut self, scope: SoldOutScope, now: Timestamp) {
        self.sweep(now);
        let until = now.checked_add(self.lasts).unwrap_or(Timestamp::MAX);
        self.none_ends_before = self.none_ends_before.min(until);
        if let Some(known) = self.marks.get_mut(&scope) {
            *known = until;
            return;
        }
        if self.marks.len() >= MARKS_MAX {
            let first = self.marks.iter().min_by_key(|(_, until)| **until);
            if let Some(scope) = first.map(|(scope, _)| scope.clone()) {
                self.marks.remove(&scope);
                self.note_change(&scope);
            }
        }
        self.note_change(&scope);
        self.marks.insert(scope, until);
    }

    /// True while exactly this is marked.
    #[must_use]
    pub fn is_marked(&self, scope: &SoldOutScope, now: Timestamp) -> bool {
        self.marks.get(scope).is_some_and(|until| now < *until)
    }

    /// True while some mark covers an offering, for machines that go into this placement group, if
    /// into any.
    #[must_use]
    pub fn is_sold_out(&self, key: &OfferingKey, group: Option<&Name>, now: Timestamp) -> bool {
        if self.marks.is_empty() {
            return false;
        }
        let zone = SoldOutScope::Zone {
            capacity_type: key.capacity_type.clone(),
            zone: key.zone.clone(),
        };
        let in_group = group.map(|group| SoldOutScope::InGroup(key.clone(), group.clone()));
        [
            SoldOutScope::Offering(key.clone()),
            zone,
            SoldOutScope::CapacityType(key.capacity_type.clone()),
        ]
        .iter()
        .chain(&in_group)
        .any(|scope| self.is_marked(scope, now))
    }

    /// True while nothing is marked.
    pub fn is_empty(&mut self, now: Timestamp) -> bool {
        self.sweep(now);
        self.marks.is_empty()
    }

    /// A number that changes whenever an answer may have changed.
    pub fn sequence(&mut self, now: Timestamp) -> u64 {
        self.sweep(now);
        self.n_changes
    }

    /// A number that changes whenever an answer about this type may have changed.
    pub fn sequence_of(&mut self, instance_type: &str, now: Timestamp) -> u64 {
        self.sweep(now);
        let of_type = self.changed_by_type.get(instance_type);
        of_type.map_or(self.changed, |of_type| self.changed.max(*of_type))
    }

    /// Forgets what has ended.
    fn sweep(&mut self, now: Timestamp) {
        if now < self.none_ends_before {
            return;
        }
        let ended: Vec<SoldOutScope> = (self.marks.iter())
            .filter(|(_, until)| **until <= now)
            .map(|(scope, _)| scope.clone())
            .collect();
        for scope in ended {
            self.marks.remove(&scope);
            self.note_change(&scope);
        }
        let first = self.marks.values().min();
        self.none_ends_before = first.copied().unwrap_or(Timestamp::MAX);
    }

    fn note_change(&mut self, scope: &SoldOutScope) {
        self.n_changes += 1;
        let Some(instance_type) = scope.instance_type() else {
            self.changed = self.n_changes;
            return;
        };
        let is_new = !self.changed_by_type.contains_key(instance_type);
        if is_new && self.changed_by_type.len() >= TYPES_MAX {
            // Every type counts as changed: that is never wrong, and it is rare.
            self.changed_by_type.clear();
            self.changed = self.n_changes;
        }
        self.changed_by_type
            .insert(instance_type.clone(), self.n_changes);
    }
}

#[cfg(test)]
#[path = "sold_out_tests.rs"]
mod tests;
