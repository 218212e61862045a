//! The regions, their zones and whose prices they use.

use std::fmt;

use joiner_model::{NanoDollars, edits};
use rustc_hash::FxHashMap;

use crate::table;

static ZONES: &str = include_str!("../data/zones.tsv");

/// The region whose prices stand in for those of regions without a table.
const FALLBACK: &str = "us-east-1";
/// The region whose prices are not in dollars.
const CHINA: &str = "cn-north-1";

/// An availability zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Name, `us-east-1a`.
    pub name: String,
    /// Id, `use1-az6`. Which id a name stands for differs between accounts: this is one account.
    pub id: &'static str,
}

/// The region is not in the built-in table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownRegion {
    /// What was asked for.
    pub region: String,
    /// Regions with a similar name, or all if none is similar.
    pub near: Vec<&'static str>,
}

impl fmt::Display for UnknownRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown region \"{}\"; did you mean one of {}?",
            self.region,
            self.near.join(", ")
        )
    }
}

/// The regions of the table, by name.
pub fn regions() -> impl Iterator<Item = &'static str> {
    lines().map(|(region, _)| region)
}

/// The zones of a region, by name.
///
/// # Errors
/// The region is not in the table.
pub fn zones(region: &str) -> Result<Vec<Zone>, UnknownRegion> {
    let (name, cells) = lines()
        .find(|(name, _)| *name == region)
        .ok_or_else(|| unknown(region))?;
    let zones = cells.split('\t').filter_map(|cell| cell.split_once('='));
    Ok(zones
        .map(|(suffix, id)| Zone {
            name: format!("{name}{suffix}"),
            id,
        })
        .collect())
}

/// On-demand prices of a region, with what a user should know about them.
pub(crate) struct Prices {
    /// The region's own name, from the table.
    pub(crate) region: &'static str,
    pub(crate) currency: &'static str,
    /// The region that the prices are of.
    pub(crate) source: &'static str,
    pub(crate) warnings: Vec<String>,
    by_type: FxHashMap<(&'static str, &'static str), NanoDollars>,
}

impl Prices {
    /// The prices that hold in a region.
    pub(crate) fn of(region: &str) -> Result<Self, UnknownRegion> {
        let region = regions()
            .find(|name| *name == region)
            .ok_or_else(|| unknown(region))?;
        let mut warnings = Vec::new();
        let own = table::priced_regions().any(|name| name == region);
        if !own {
            warnings.push(format!(
                "no price table for {region}: using the prices of {FALLBACK} in US dollars"
            ));
        }
        let currency = if region == CHINA { "CNY" } else { "USD" };
        if region == CHINA {
            warnings.push(format!("prices in {CHINA} are in yuan (CNY), not dollars"));
        }
        let source: &'static str = if own { region } else { FALLBACK };
        let by_type = table::prices(source).into_iter().flatten().collect();
        Ok(Self {
            region,
            currency,
            source,
            warnings,
            by_type,
        })
    }

    /// The on-demand price of a type, if it is sold.
    pub(crate) fn get(&self, name: &str) -> Option<NanoDollars> {
        self.by_type.get(&name.split_once('.')?).copied()
    }
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    ZONES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
}

fn unknown(region: &str) -> UnknownRegion {
    // Two edits reach a mistyped digit and a swapped pair of letters.
    const EDITS_MAX: usize = 2;
    let mut near: Vec<_> = regions()
        .map(|name| (edits(region, name), name))
        .filter(|(edits, _)| *edits <= EDITS_MAX)
        .collect();
    near.sort_unstable();
    let mut near: Vec<_> = near.into_iter().map(|(_, name)| name).collect();
    if near.is_empty() {
        near = regions()
            .filter(|name| !region.is_empty() && name.starts_with(region))
            .collect();
    }
    if near.is_empty() {
        near = regions().collect();
    }
    UnknownRegion {
        region: region.to_owned(),
        near,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_region_names_its_neighbors() {
        let error = zones("us-east-3").unwrap_err();
        assert_eq!(error.near[..2], ["us-east-1", "us-east-2"]);
        assert!(
            error
                .to_string()
                .starts_with("unknown region \"us-east-3\"; did you mean one of us-east-1, ")
        );
        assert_eq!(zones("eu").unwrap_err().near.len(), 8);
        assert_eq!(zones("").unwrap_err().near.len(), 38);
        assert_eq!(zones("us_west_2").unwrap_err().near, ["us-west-2"]);
    }

    #[test]
    fn every_region_has_zones_with_ids() {
        assert_eq!(regions().count(), 38);
        for region in regions() {
            let zones = zones(region).unwrap();
            assert!(zones.len() >= 2, "{region}");
            assert!(zones.iter().all(|zone| zone.id.contains("-az")));
        }
    }
}
