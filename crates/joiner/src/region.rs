//! Names of regions that do not exist: what was probably meant, and where to look.

use joiner_catalog::{ClassSettings, UnknownRegion, ec2, regions};

/// The most regions that a message suggests.
const SUGGESTIONS_MAX: usize = 4;
const REGIONS_A_LINE: usize = 6;

/// The message for a region that is not there.
pub(crate) fn unknown(error: UnknownRegion) -> anyhow::Error {
    let n_regions = regions().count();
    let hint = match error.near.as_slice() {
        near if near.is_empty() || near.len() >= n_regions => {
            "write it like us-east-1 or eu-central-1".to_owned()
        }
        [one] => format!("did you mean {one}?"),
        near => {
            let near = &near[..near.len().min(SUGGESTIONS_MAX)];
            format!("did you mean one of {}?", near.join(", "))
        }
    };
    anyhow::anyhow!(
        "unknown region {:?}; {hint} (joiner catalog --help lists all {n_regions})",
        error.region
    )
}

/// Makes sure that a region is there; what should be known about its prices.
pub(crate) fn known(region: &str) -> anyhow::Result<Vec<String>> {
    let catalog = ec2(region, &ClassSettings::default()).map_err(unknown)?;
    Ok(catalog.warnings)
}

/// All regions, for the end of a help text.
pub(crate) fn listed() -> String {
    let all: Vec<&str> = regions().collect();
    let lines: Vec<String> = all.chunks(REGIONS_A_LINE).map(|l| l.join(" ")).collect();
    format!("Regions:\n  {}", lines.join("\n  "))
}
