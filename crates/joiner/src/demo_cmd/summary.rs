//! The figures, from what the objects said.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::scene::Picture;
use super::story::Told;

/// Prints a line for every chapter, and what it comes to.
pub(super) fn print(told: &[Told], last: &Picture, out: &mut dyn Write) -> io::Result<()> {
    let width = told
        .iter()
        .map(|own| own.what.chars().count())
        .max()
        .unwrap_or(0);
    writeln!(out)?;
    writeln!(
        out,
        "{:<width$}  {:>6}  {:>17}  nodes",
        "what happened", "took", "price an hour",
    )?;
    for own in told {
        writeln!(
            out,
            "{:<width$}  {:>6}  {:>17}  {}",
            own.what,
            format!("{} s", own.took.as_secs()),
            prices(own),
            own.picture.types(),
        )?;
    }
    let nodes = told.iter().map(|own| own.picture.nodes.len());
    let most = nodes.max().unwrap_or(0);
    // A pod that is seen in several chapters waited once.
    let waits: BTreeMap<&str, f64> = told
        .iter()
        .flat_map(|own| own.picture.waits.iter())
        .map(|(pod, secs)| (pod.as_str(), *secs))
        .collect();
    let longest = waits.values().copied().fold(0.0, f64::max);
    writeln!(out)?;
    writeln!(
        out,
        "{} pods ran on at most {most} nodes; the longest that one waited for its node was \
         {longest:.0} s.",
        waits.len(),
    )?;
    writeln!(
        out,
        "Now there are {} pods and {} nodes for ${:.3} an hour.",
        last.n_running + last.n_waiting,
        last.nodes.len(),
        last.price(),
    )?;
    out.flush()
}

/// `$0.192 → $0.096`.
pub(super) fn prices(own: &Told) -> String {
    format!("${:.3} → ${:.3}", own.price_before, own.picture.price())
}
