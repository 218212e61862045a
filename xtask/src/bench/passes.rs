//! How long one look for nodes to give back takes: runs its bench, makes a table of it.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::table::{machine, thousands};
use crate::say;
use crate::test::cargo;

/// The fleets of the bench.
const KINDS: [&str; 2] = ["packed", "wasteful"];
/// And their sizes.
const SIZES: [usize; 4] = [100, 500, 2_000, 5_000];
/// Pods on a node.
const PODS: usize = 30;

/// Runs the bench; returns a section of the page.
pub(super) fn run(root: &Path) -> anyhow::Result<String> {
    let mut command = cargo(root);
    command.args(["bench", "--package", "joiner-bench", "--bench", "pass"]);
    let status = command.status().context("cannot run cargo bench")?;
    anyhow::ensure!(status.success(), "the bench failed: {status}");
    let mut lines = Vec::new();
    for size in SIZES {
        let mut cells = vec![thousands(size), thousands(size * PODS)];
        for kind in KINDS {
            let path = format!("target/criterion/{kind}/{size}/new/estimates.json");
            cells.push(format!("{:.3}", median_secs(&root.join(path))?));
        }
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    let text = format!(
        "## A look for nodes to give back\n\n\
         One pass of `decide` over a fleet on the EC2 catalog, seconds, median. *Packed* is a fleet \
         in which nothing better is for sale, so that a pass asks all that it may; in *wasteful* two \
         thirds of the pods are gone. A tenth of the pods are of Deployments that are spread over \
         zones. Measured on {} with `cargo xtask bench --passes`.\n\n\
         | nodes | pods at first | packed | wasteful |\n|--:|--:|--:|--:|\n{}",
        machine(),
        lines.join("\n")
    );
    say(&text)?;
    Ok(text)
}

/// The median that the bench has measured, in seconds.
fn median_secs(path: &Path) -> anyhow::Result<f64> {
    let context = || format!("cannot read {}", path.display());
    let text = std::fs::read_to_string(path).with_context(context)?;
    let estimates: Value = serde_json::from_str(&text).with_context(context)?;
    let nanos = estimates["median"]["point_estimate"].as_f64();
    Ok(nanos.with_context(context)? / 1e9)
}
