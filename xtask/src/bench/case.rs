//! One problem, measured in this process.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use joiner_testkit::Case;
use serde::{Deserialize, Serialize};

/// Kubernetes objects of a problem.
pub(super) const OBJECTS: &str = "objects.json";
/// Its catalog.
pub(super) const TYPES: &str = "instance-types.json";
/// A problem is not solved again once this much time has gone into it.
const TOTAL_MAX: Duration = Duration::from_secs(60);

/// Measures one problem in this process.
#[derive(Args)]
pub(crate) struct CaseArgs {
    /// Folder of the problem.
    folder: PathBuf,
    /// Solves it so often, and takes the best time.
    #[arg(long, default_value_t = 3)]
    runs: u32,
}

/// What was found out about a problem.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Pods to place.
    pub(super) pods: usize,
    /// Pods placed.
    pub(super) placed: usize,
    /// Nodes to buy.
    pub(super) nodes: usize,
    /// Nano-dollars an hour.
    pub(super) price: u64,
    /// Lower bound of the price.
    pub(super) bound: u64,
    /// What the verifier found.
    pub(super) violations: Vec<String>,
    /// From text to problem.
    pub(super) parse_ms: f64,
    /// Best time to solve.
    pub(super) solve_ms: f64,
    /// Time to verify.
    pub(super) verify_ms: f64,
    /// Most memory the process had, once it had read, solved and verified.
    pub(super) peak_kib: Option<u64>,
}

/// Measures and prints the figures as JSON.
pub(crate) fn run_case(args: &CaseArgs) -> anyhow::Result<()> {
    let measured = measure(args)?;
    let mut out = std::io::stdout();
    serde_json::to_writer(&mut out, &measured).context("cannot write the figures")?;
    writeln!(out).context("cannot write the figures")
}

fn measure(args: &CaseArgs) -> anyhow::Result<Measured> {
    let read = |name: &str| {
        let path = args.folder.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let case = Case {
        objects_json: read(OBJECTS)?,
        instance_types_json: read(TYPES)?,
    };
    let started = Instant::now();
    let problem = case.read()?;
    let parse_ms = ms(started);
    drop(case);

    let begun = Instant::now();
    let plan = joiner_solver::solve(&problem);
    let mut solve_ms = ms(begun);
    let started = Instant::now();
    let violations = joiner_verify::check(&problem, &plan);
    let verify_ms = ms(started);
    let peak_kib = peak_kib();
    for _ in 1..args.runs {
        if begun.elapsed() > TOTAL_MAX {
            break;
        }
        let started = Instant::now();
        let again = joiner_solver::solve(&problem);
        solve_ms = solve_ms.min(ms(started));
        let same = again.cost == plan.cost;
        anyhow::ensure!(
            same,
            "two runs give two prices, {:?} and {:?}",
            plan.cost,
            again.cost
        );
    }
    let pods = problem.pending().count();
    Ok(Measured {
        pods,
        placed: pods - plan.unplaced.len().min(pods),
        nodes: plan.launches.len(),
        price: plan.cost.price.get(),
        bound: plan.cost.bound.get(),
        violations: violations.iter().map(ToString::to_string).collect(),
        parse_ms,
        solve_ms,
        verify_ms,
        peak_kib,
    })
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// The high-water mark of this process's memory, where the system tells.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
