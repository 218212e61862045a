//! Random small clusters: how much CPU time each takes to plan, and the ten slowest.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use joiner_testkit::small;
use rustix::time::{ClockId, clock_gettime};

use super::table::machine;
use crate::say;

/// How many clusters are planned when no number is given.
pub(super) const COUNT: &str = "2000";
/// How many of the slowest are shown.
const SHOWN: usize = 10;

/// One cluster, planned.
struct Planned {
    seed: u64,
    pods: usize,
    placed: usize,
    price: u64,
    bound: u64,
    solve: Duration,
    verify: Duration,
}

/// Plans the clusters with seeds from 1; returns a section of the page. With `out`, one line for each
/// cluster goes there: two versions of the planner are compared by these files.
pub(super) fn run(count: u64, out: Option<&PathBuf>) -> anyhow::Result<String> {
    let mut all = Vec::new();
    let mut lines = String::from("seed,pods,placed,price,bound,solve_ms,verify_ms\n");
    let mut violations = Vec::new();
    for seed in 1..=count {
        let problem = small(seed).problem();
        let started = cpu();
        let plan = joiner_solver::solve(&problem);
        let solve = cpu().saturating_sub(started);
        let started = cpu();
        let found = joiner_verify::check(&problem, &plan);
        let verify = cpu().saturating_sub(started);
        violations.extend(found.iter().map(|v| format!("seed {seed}: {v}")));
        let pods = problem.pending().count();
        let planned = Planned {
            seed,
            pods,
            placed: pods - plan.unplaced.len().min(pods),
            price: plan.cost.price.get(),
            bound: plan.cost.bound.get(),
            solve,
            verify,
        };
        writeln!(lines, "{}", planned.csv())?;
        all.push(planned);
    }
    if let Some(path) = out {
        std::fs::write(path, lines).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = section(&mut all);
    say(&text)?;
    if let Some(first) = violations.first() {
        let count = violations.len();
        anyhow::bail!("the verifier found {count} violations, the first one: {first}");
    }
    Ok(text)
}

impl Planned {
    fn csv(&self) -> String {
        format!(
            "{},{},{},{},{},{:.2},{:.2}",
            self.seed,
            self.pods,
            self.placed,
            self.price,
            self.bound,
            ms(self.solve),
            ms(self.verify)
        )
    }
}

/// CPU time that this process has used, of all its threads.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn section(all: &mut [Planned]) -> String {
    let n = all.len();
    all.sort_by_key(|planned| planned.solve);
    let at = |percent: usize| all.get((n * percent / 100).min(n.saturating_sub(1)));
    let cpu_at = |percent: usize| ms(at(percent).map_or(Duration::ZERO, |p| p.solve));
    let mut text = format!(
        "## Small clusters\n\n\
         CPU time to plan {n} random clusters of 5 to 100 pods in up to eight Deployments with limits, \
         preferences, host ports, spreads, weights, overlays and nodes that are there: median {:.1} ms, \
         90 % within {:.1} ms, 99 % within {:.1} ms. The ten slowest, on {}, with \
         `cargo xtask bench --small`:\n\n\
         | seed | pods | placed | price over bound | solve, CPU ms | verify, CPU ms |\n\
         |--:|--:|--:|--:|--:|--:|\n",
        cpu_at(50),
        cpu_at(90),
        cpu_at(99),
        machine(),
    );
    for planned in all.iter().rev().take(SHOWN) {
        let gap = match planned.bound {
            0 => "-".to_owned(),
            #[expect(clippy::cast_precision_loss, reason = "a ratio to three digits")]
            bound => format!("{:.3}", planned.price as f64 / bound as f64),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {gap} | {:.1} | {:.1} |",
            planned.seed,
            planned.pods,
            planned.placed,
            ms(planned.solve),
            ms(planned.verify)
        );
    }
    text.trim_end().to_owned()
}
