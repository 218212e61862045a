//! Time zones by the names that a Go program takes.

use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A name that no time zone has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no time zone; use a name such as UTC, Europe/Berlin or Asia/Tokyo, letters as they are there"
)]
pub struct UnknownZone(pub String);

/// The zone of this name. Small and capital letters matter; `Local` is UTC, so that an answer does not
/// depend on the machine.
///
/// # Errors
/// When there is none.
pub fn zone(name: &str, zones: &TimeZoneDatabase) -> Result<TimeZone, UnknownZone> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(TimeZone::UTC);
    }
    let found = zones.get(name).ok();
    let found = found.filter(|zone| zone.iana_name() == Some(name));
    found.ok_or_else(|| UnknownZone(name.to_owned()))
}
