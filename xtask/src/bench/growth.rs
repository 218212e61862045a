//! How time grows with pods, types and nodes: runs the solver's criterion bench, makes tables of it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use joiner_testkit::{Family, Growth};
use serde::Deserialize;

use super::case::Measured;
use super::table::{dollars, gap, machine, mebibytes, thousands, time};
use super::{Problem, make, measure};
use crate::say;
use crate::test::cargo;

/// The family and seed of the problems that grow by pods, for price and memory.
const FAMILY: Family = Family::Bench;
const SEED: u64 = 1;

/// The time of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Timed {
    size: usize,
    mean_ms: f64,
    /// Half of the interval that the mean is in, 95 times out of 100.
    spread_ms: f64,
}

/// What criterion writes about a benchmark.
#[derive(Deserialize)]
struct Estimates {
    mean: Estimate,
}

/// A figure, in nanoseconds.
#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
    confidence_interval: Interval,
}

#[derive(Deserialize)]
struct Interval {
    lower_bound: f64,
    upper_bound: f64,
}

/// What was found out.
pub(super) struct Report {
    /// The section of the page.
    pub(super) section: String,
    /// Rules that plans break.
    pub(super) violations: Vec<String>,
}

/// Runs the benches.
pub(super) fn run(root: &Path, quick: bool) -> anyhow::Result<Report> {
    let results = root.join("target/bench-growth");
    sample(root, &results, quick)?;
    let priced = priced(root, Growth::Pods)?;
    let mut tables = Vec::new();
    for growth in Growth::ALL {
        let times = read(&results, growth)?;
        tables.push(match growth {
            Growth::Pods => pods_table(&times, &priced),
            Growth::Types | Growth::Nodes => plain_table(growth, &times),
        });
    }
    let tables = tables.join("\n\n");
    say(&tables)?;
    let samples = if quick { "A few runs" } else { "Ten runs" };
    let section = format!(
        "Measured on {}. {samples} each, in one process; ± is the 95 % interval of the mean. *Grows \
         as* compares with the line above: n^1 is twice the time for twice the size.\n\n{tables}",
        machine()
    );
    let violations = priced.into_iter().flat_map(|measured| measured.violations);
    Ok(Report {
        section,
        violations: violations.collect(),
    })
}

/// Has criterion write its estimates to a folder.
fn sample(root: &Path, results: &Path, quick: bool) -> anyhow::Result<()> {
    if results.is_dir() {
        // Criterion would compare with what was there, and so might we.
        std::fs::remove_dir_all(results)
            .with_context(|| format!("cannot remove {}", results.display()))?;
    }
    let mut command = cargo(root);
    command.args(["bench", "--quiet", "--package", "joiner-bench"]);
    command.args(["--bench", "growth", "--"]);
    if quick {
        command.arg("--quick");
    }
    command.env("CRITERION_HOME", results);
    let status = command.status().context("cannot run cargo bench")?;
    anyhow::ensure!(status.success(), "cargo bench: {status}");
    Ok(())
}

fn read(results: &Path, growth: Growth) -> anyhow::Result<Vec<Timed>> {
    let file = |size: usize| -> PathBuf {
        let folder = results.join(growth.as_str()).join(size.to_string());
        folder.join("new/estimates.json")
    };
    let timed = |size: &usize| {
        let path = file(*size);
        let failed = || format!("cannot read {}", path.display());
        let text = std::fs::read_to_string(&path).with_context(failed)?;
        Timed::parse(*size, &text).with_context(failed)
    };
    growth.sizes().iter().map(timed).collect()
}

/// Prices and memory of the problems, each from a process of its own.
fn priced(root: &Path, growth: Growth) -> anyhow::Result<Vec<Measured>> {
    let one = |size: &usize| {
        let name = format!("{FAMILY}-{SEED}-{size}");
        let problem = Problem {
            family: FAMILY,
            size: *size,
            seed: SEED,
            folder: root.join("target/bench-cases").join(name),
        };
        make(&problem)?;
        measure(&problem, 1).with_context(|| format!("cannot measure {}", problem.name()))
    };
    growth.sizes().iter().map(one).collect()
}

impl Timed {
    fn parse(size: usize, text: &str) -> anyhow::Result<Self> {
        let Estimates { mean } = serde_json::from_str(text)?;
        let interval = mean.confidence_interval;
        Ok(Self {
            size,
            mean_ms: mean.point_estimate / 1e6,
            spread_ms: (interval.upper_bound - interval.lower_bound) / 2e6,
        })
    }

    /// The columns that every table has.
    fn cells(&self, before: Option<&Self>) -> String {
        let grows = before.and_then(|before| exponent(before, self));
        let grows = grows.map_or_else(|| "-".to_owned(), |power| format!("n^{power:.2}"));
        let spread = time(self.spread_ms);
        format!("{} | {spread} | {grows}", time(self.mean_ms))
    }
}

/// The power of the size that time has grown with.
fn exponent(from: &Timed, to: &Timed) -> Option<f64> {
    let ratio = ratio(from.size, to.size)?;
    Some((to.mean_ms / from.mean_ms).ln() / ratio.ln())
}

/// How many times as large the second is.
fn ratio(from: usize, to: usize) -> Option<f64> {
    let (from, to) = (u32::try_from(from).ok()?, u32::try_from(to).ok()?);
    (from > 0).then(|| f64::from(to) / f64::from(from))
}

/// Every line with the one above.
fn pairs(times: &[Timed]) -> impl Iterator<Item = (Option<&Timed>, &Timed)> {
    let before = std::iter::once(None).chain(times.iter().map(Some));
    before.zip(times)
}

fn pods_table(times: &[Timed], priced: &[Measured]) -> String {
    let mut lines = vec![
        "| pods | $/h | nodes | over bound | left over | solve ms | ± | grows as | verify ms | peak \
         MiB |"
            .to_owned(),
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|".to_owned(),
    ];
    for ((before, timed), measured) in pairs(times).zip(priced) {
        lines.push(format!(
            "| {} | {:.4} | {} | {} | {} | {} | {} | {} |",
            thousands(timed.size),
            dollars(measured.price),
            thousands(measured.nodes),
            gap(measured.price, measured.bound),
            thousands(measured.pods - measured.placed),
            timed.cells(before),
            time(measured.verify_ms),
            mebibytes(measured.peak_kib),
        ));
    }
    lines.extend(sum_up(Growth::Pods, times));
    lines.join("\n")
}

fn plain_table(growth: Growth, times: &[Timed]) -> String {
    let mut lines = vec![
        format!("| {} | solve ms | ± | grows as |", growth.as_str()),
        "|--:|--:|--:|--:|".to_owned(),
    ];
    for (before, timed) in pairs(times) {
        let (size, cells) = (thousands(timed.size), timed.cells(before));
        lines.push(format!("| {size} | {cells} |"));
    }
    lines.extend(sum_up(growth, times));
    lines.join("\n")
}

/// The table in one sentence, after an empty line.
fn sum_up(growth: Growth, times: &[Timed]) -> Vec<String> {
    let some = times.iter().find(|timed| timed.size > 0);
    let (Some(first), Some(last)) = (some, times.last()) else {
        return Vec::new();
    };
    let Some(ratio) = ratio(first.size, last.size) else {
        return Vec::new();
    };
    let sentence = format!(
        "From {} to {} {}, {ratio:.0} times as many, it takes {:.1} times as long.",
        thousands(first.size),
        thousands(last.size),
        growth.as_str(),
        last.mean_ms / first.mean_ms,
    );
    vec![String::new(), sentence]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(size: usize, mean_ms: f64) -> Timed {
        Timed {
            size,
            mean_ms,
            spread_ms: 1.5,
        }
    }

    #[test]
    fn estimates_are_read() {
        let text = r#"{"mean": {"point_estimate": 2500000.0, "standard_error": 1.0,
            "confidence_interval": {"confidence_level": 0.95, "lower_bound": 2000000.0,
            "upper_bound": 3000000.0}}, "median": null}"#;
        let read = Timed::parse(7, text).unwrap();
        assert_eq!((read.size, read.mean_ms, read.spread_ms), (7, 2.5, 0.5));
        assert!(Timed::parse(7, "{}").is_err());
    }

    #[test]
    fn growth_is_told_line_by_line_and_in_all() {
        let times = [timed(0, 5.0), timed(100, 10.0), timed(1000, 100.0)];
        assert_eq!(
            plain_table(Growth::Nodes, &times),
            "| nodes | solve ms | ± | grows as |\n\
             |--:|--:|--:|--:|\n\
             | 0 | 5.00 | 1.50 | - |\n\
             | 100 | 10 | 1.50 | - |\n\
             | 1,000 | 100 | 1.50 | n^1.00 |\n\
             \n\
             From 100 to 1,000 nodes, 10 times as many, it takes 10.0 times as long."
        );
    }

    #[test]
    fn pods_have_a_price() {
        let measured = Measured {
            pods: 50,
            placed: 49,
            nodes: 3,
            price: 1_100_000_000,
            bound: 1_000_000_000,
            verify_ms: 2.0,
            peak_kib: Some(2048),
            ..Measured::default()
        };
        let table = pods_table(&[timed(50, 40.0)], &[measured]);
        let line = "| 50 | 1.1000 | 3 | 10.00 % | 1 | 40 | 1.50 | - | 2.00 | 2 |";
        assert_eq!(table.lines().nth(2), Some(line));
    }
}
