//! Zonal shift: zones that traffic is moved away from, where nothing is to be bought.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What is known of a resource of ours: the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedResource {
    /// Shifts that AWS made by itself.
    pub autoshifts: Vec<Autoshift>,
    /// Shifts that people made.
    pub zonal_shifts: Vec<ZonalShift>,
}

/// A shift that AWS made by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Autoshift {
    /// `APPLIED` or `NOT_APPLIED`.
    pub applied_status: String,
    /// Zone by id.
    pub away_from: String,
}

/// A shift that people made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZonalShift {
    /// `APPLIED` or `NOT_APPLIED`.
    pub applied_status: String,
    /// Zone by id.
    pub away_from: String,
    /// When it ends, RFC 3339.
    pub expiry_time: Option<String>,
}

const APPLIED: &str = "APPLIED";

/// Ids of the zones that are shifted away from now.
#[must_use]
pub fn shifted(resource: &ManagedResource, now: Timestamp) -> BTreeSet<String> {
    let is_on = |shift: &&ZonalShift| {
        let end = shift
            .expiry_time
            .as_deref()
            .and_then(|expiry| expiry.parse::<Timestamp>().ok());
        shift.applied_status == APPLIED && end.is_none_or(|end| end > now)
    };
    let shifts = resource
        .zonal_shifts
        .iter()
        .filter(is_on)
        .map(|shift| &shift.away_from);
    let auto = resource
        .autoshifts
        .iter()
        .filter(|autoshift| autoshift.applied_status == APPLIED);
    shifts
        .chain(auto.map(|autoshift| &autoshift.away_from))
        .cloned()
        .collect()
}

/// A change of shifts, for events on pools that can reach the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShiftChange {
    /// Traffic is moved away from this zone now.
    Active(String),
    /// It is no longer.
    Cleared(String),
}

impl ShiftChange {
    /// Type and reason of the event.
    #[must_use]
    pub const fn event(&self) -> (&'static str, &'static str) {
        match self {
            Self::Active(_) => ("Warning", "ZonalShiftActive"),
            Self::Cleared(_) => ("Normal", "ZonalShiftCleared"),
        }
    }
}

/// What changed between two looks.
#[must_use]
pub fn changes(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<ShiftChange> {
    let active = after.difference(before).cloned().map(ShiftChange::Active);
    let cleared = before.difference(after).cloned().map(ShiftChange::Cleared);
    active.chain(cleared).collect()
}
