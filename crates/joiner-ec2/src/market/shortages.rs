//! What cannot be had for a while: EC2 refused it, or took it back.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::launch::CapacityType;
use crate::launch::outcome::SoldOut;

/// For how long a shortage is remembered after it was last seen.
pub const SHORTAGE_LASTS: SignedDuration = SignedDuration::from_mins(3);

/// Shortages that are remembered, each until when. One that was met in a placement group counts for that group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortages {
    until: BTreeMap<(SoldOut, Option<String>), Timestamp>,
    version: u64,
}

impl Shortages {
    /// Something could not be had, in a placement group or outside of any.
    pub fn mark(&mut self, sold_out: SoldOut, group: Option<&str>, now: Timestamp) {
        let key = (sold_out, group.map(str::to_owned));
        self.until.insert(key, now + SHORTAGE_LASTS);
        self.version += 1;
    }

    /// Forgets what is over.
    pub fn sweep(&mut self, now: Timestamp) {
        let before = self.until.len();
        self.until.retain(|_, until| *until > now);
        if self.until.len() < before {
            self.version += 1;
        }
    }

    /// Changes with every change of what is remembered.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Whether a type cannot be had in a zone like this, for a class that has these subnets there.
    #[must_use]
    pub fn has(
        &self,
        (capacity_type, instance_type, zone): (CapacityType, &str, &str),
        subnets: &[&str],
        group: Option<&str>,
        now: Timestamp,
    ) -> bool {
        let of = |sold_out: SoldOut, group: Option<&str>| {
            let until = self.until.get(&(sold_out, group.map(str::to_owned)));
            until.is_some_and(|until| *until > now)
        };
        let in_any = |sold_out: SoldOut| {
            of(sold_out.clone(), None) || (group.is_some() && of(sold_out, group))
        };
        let offering = SoldOut::Offering {
            capacity_type,
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
        };
        let group_is_full = SoldOut::GroupInZone {
            zone: zone.to_owned(),
        };
        let is_exhausted = |id: &&str| in_any(SoldOut::Subnet((*id).to_owned()));
        in_any(offering)
            || in_any(SoldOut::CapacityType(capacity_type))
            || (group.is_some() && of(group_is_full, group))
            || (!subnets.is_empty() && subnets.iter().all(is_exhausted))
    }

    /// What is remembered now, without what is over.
    pub fn iter(&self, now: Timestamp) -> impl Iterator<Item = &SoldOut> {
        let current = self.until.iter().filter(move |(_, until)| **until > now);
        current.map(|((sold_out, _), _)| sold_out)
    }
}
