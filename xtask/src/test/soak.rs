//! What takes too long for every change: the stories on the real control plane that `cargo xtask test`
//! leaves out, kills of real processes, long days, and everything seeded with fresh seeds.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::executables::{self, Case};
use super::step::{Steps, Verdict, cargo};
use super::{RunSettings, control_plane, helm, results, run_cases, runner};
use crate::{deny, say};

/// The variable that gives tests another seed.
const SEED: &str = "JOINER_SEED";
/// The same for property tests.
const PROPERTY_SEED: &str = "PROPTEST_RNG_SEED";
/// A test of the soak may take this long.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// What to soak.
#[derive(Subcommand)]
pub(crate) enum Soak {
    /// `cargo deny check`, every test that `cargo xtask test` leaves out, then the others with fresh seeds.
    ///
    /// It goes on after a failure and ends with a table. For example
    /// `cargo xtask soak stories --minutes 60 --filter drift`.
    Stories(Stories),
}

/// How long, with which seed, and which tests.
#[derive(Args)]
pub(crate) struct Stories {
    /// No test begins after so many minutes; without it everything runs once, and with it tests with
    /// fresh seeds repeat until then.
    #[arg(long, value_name = "M")]
    minutes: Option<u64>,
    /// The first seed; by default the time. It is printed: the same one gives the same tests.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Only tests whose full name (package, executable, test) contains this.
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
}

/// Runs the soak.
pub(crate) fn run(root: &Path, soak: &Soak) -> anyhow::Result<()> {
    let Soak::Stories(stories) = soak;
    let seed = stories.seed.unwrap_or_else(seconds);
    say(&format!("== seed {seed}"))?;
    let (verdict, programs) = control_plane(root);
    if let Verdict::Failed(why) | Verdict::LeftOut(why) = verdict {
        bail!("there is no real control plane: {why}");
    }
    let mut steps = Steps::default();
    steps.take("cargo deny", || deny::cargo_deny(root))?;
    helm(root);
    check_benches(root)?;
    let built = executables::build(root)?;
    let mut cases = executables::cases(&built.executables)?;
    if let Some(part) = &stories.filter {
        cases.retain(|case| case.full_name().contains(part.as_str()));
    }
    anyhow::ensure!(!cases.is_empty(), "no test has such a name");
    let (left_out, others): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| case.is_ignored);
    let seeded: Vec<Case> = others.into_iter().filter(|case| !case.is_real()).collect();
    let until = stories
        .minutes
        .map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let mut outcomes = Vec::new();
    let mut play = |cases: &[Case], seed: u64| -> anyhow::Result<()> {
        let settings = RunSettings {
            variables: [SEED, PROPERTY_SEED]
                .map(|name| (name, seed.to_string().into()))
                .to_vec(),
            limit: LIMIT,
            until,
            ..RunSettings::new(root)
        };
        let cases = cases.to_vec();
        let mut came: Vec<runner::Outcome> = run_cases(cases, programs.as_ref(), settings)?;
        for outcome in &mut came {
            outcome.name = format!("{} (seed {seed})", outcome.name);
        }
        outcomes.append(&mut came);
        Ok(())
    };
    play(&left_out, seed)?;
    let mut round = seed;
    loop {
        round += 1;
        play(&seeded, round)?;
        if seeded.is_empty() || until.is_none_or(|until| Instant::now() >= until) {
            break;
        }
    }
    steps.take("tests", || results::tell(&outcomes).map(Verdict::Tested))?;
    let ended = steps.sum_up(false);
    ended.with_context(|| format!("the first seed was {seed}"))
}

/// Makes sure that benches, which tests leave out, still build.
fn check_benches(root: &Path) -> anyhow::Result<()> {
    let mut command = cargo(root);
    command.args([
        "check",
        "--quiet",
        "--package",
        executables::BENCHES,
        "--benches",
    ]);
    let status = command.status().context("cannot run cargo")?;
    anyhow::ensure!(status.success(), "the benches do not build");
    Ok(())
}

/// The time as a number.
#[expect(
    clippy::disallowed_methods,
    reason = "a fresh seed is wanted, and it is printed"
)]
fn seconds() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}
