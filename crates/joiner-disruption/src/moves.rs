//! How often the pods of a workload may be moved for money.
//!
//! A workload puts up with so many moves a day. A command uses what is left for each of its pods; it
//! may use all of it, and no more.

use std::collections::BTreeMap;

use joiner_model::Name;

use crate::fleet::Fleet;

/// What is left of the moves that workloads put up with.
pub(crate) struct Moves<'f> {
    left: BTreeMap<&'f Name, u32>,
}

impl<'f> Moves<'f> {
    /// What is left before anything is decided.
    pub(crate) fn new(fleet: &'f Fleet<'_>) -> Self {
        let left = fleet.moves_left.iter().map(|(owner, n)| (owner, *n));
        Self {
            left: left.collect(),
        }
    }

    /// Counts the pods of a member, or counts nothing and says whose patience is at an end.
    pub(crate) fn take(&mut self, fleet: &'f Fleet<'_>, m: usize) -> Result<(), Name> {
        for (owner, n) in self.wanted(fleet, m)? {
            if let Some(left) = self.left.get_mut(owner) {
                *left = left.saturating_sub(n);
            }
        }
        Ok(())
    }

    /// Whose patience would be at an end if a member went, if anybody's.
    pub(crate) fn refused(&self, fleet: &'f Fleet<'_>, m: usize) -> Option<Name> {
        self.wanted(fleet, m).err()
    }

    /// How many pods of whom a member has, of those who mind.
    fn wanted(&self, fleet: &'f Fleet<'_>, m: usize) -> Result<BTreeMap<&'f Name, u32>, Name> {
        let mut wanted: BTreeMap<&'f Name, u32> = BTreeMap::new();
        if self.left.is_empty() {
            return Ok(wanted);
        }
        let owners = fleet.members[m].pods.iter();
        for owner in owners.filter_map(|moved| moved.owner.as_ref()) {
            *wanted.entry(owner).or_default() += 1;
        }
        wanted.retain(|owner, _| self.left.contains_key(owner));
        let is_too_much = |(owner, n): &(&&Name, &u32)| self.left[**owner] < **n;
        match wanted.iter().find(is_too_much) {
            Some((owner, _)) => Err((*owner).clone()),
            None => Ok(wanted),
        }
    }
}
