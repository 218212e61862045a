//! The sandbox under load: runs its bench, makes a table of it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

use super::table::machine;
use crate::say;
use crate::test::cargo;

/// What the bench calls a figure, what the table says, and how many digits follow the point.
const LINES: &[(&str, &str, usize)] = &[
    (
        "creates_per_second_raw",
        "creations per second, plain requests in process",
        0,
    ),
    (
        "creates_per_second_kube",
        "creations per second, kube client in process",
        0,
    ),
    (
        "watch_median_ms",
        "from a creation to each of 10 kube watches, median, ms",
        3,
    ),
    ("watch_p99_ms", "the same, 99th percentile, ms", 3),
    (
        "list_raw_ms",
        "list of 10,000 pods, plain request in process, ms",
        0,
    ),
    (
        "list_kube_ms",
        "list of 10,000 pods, kube client in process, ms",
        0,
    ),
    ("list_mib", "size of that list, MiB", 1),
    (
        "kib_per_pod_created",
        "resident memory per pod, 10,000 pods just created, KiB",
        1,
    ),
    (
        "kib_per_pod_running",
        "resident memory per pod, 10,000 pods running on 100 nodes, KiB",
        1,
    ),
    (
        "bring_up_s",
        "a Deployment of 10,000 pods until they run, seconds",
        1,
    ),
    ("bring_up_running", "pods that run then", 0),
    (
        "day_s",
        "24 hours of virtual time, 10 nodes and 50 pods with 2 kube watches, seconds",
        1,
    ),
];

/// Runs the bench; returns the section of the page.
pub(super) fn run(root: &Path) -> anyhow::Result<String> {
    let mut command = cargo(root);
    command.args([
        "bench",
        "--quiet",
        "--package",
        "joiner-bench",
        "--bench",
        "load",
    ]);
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run cargo bench")?;
    anyhow::ensure!(
        output.status.success(),
        "the bench of the sandbox: {}",
        output.status
    );
    let text = String::from_utf8(output.stdout).context("cannot read the figures")?;
    let table = table(text.lines().last().unwrap_or(""))?;
    say(&table)?;
    Ok(format!(
        "The sandbox under load, measured on {} with `cargo xtask bench --sandbox`, one run.\n\n{table}",
        machine()
    ))
}

fn table(line: &str) -> anyhow::Result<String> {
    let figures: BTreeMap<String, f64> =
        serde_json::from_str(line).context("cannot read the figures")?;
    let mut rows = vec!["| figure | value |".to_owned(), "|---|--:|".to_owned()];
    for (name, words, digits) in LINES {
        let figure = figures
            .get(*name)
            .with_context(|| format!("there is no figure {name}"))?;
        rows.push(format!("| {words} | {figure:.digits$} |"));
    }
    Ok(rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_line() {
        let figures: BTreeMap<&str, f64> = LINES.iter().map(|line| (line.0, 1.25)).collect();
        let table = table(&serde_json::to_string(&figures).unwrap()).unwrap();
        assert_eq!(table.lines().count(), LINES.len() + 2);
        assert!(table.contains("median, ms | 1.250 |"), "{table}");
        assert!(super::table("{}").is_err());
    }
}
