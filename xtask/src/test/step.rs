//! One step of the tests: a command or a check, with a limit on its time and a verdict.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::results::{Tally, tests};
use crate::say;

/// How often a running command is looked at.
const POLL: Duration = Duration::from_millis(100);

/// How a step ended.
#[derive(Debug)]
pub(crate) enum Verdict {
    Passed(String),
    Failed(String),
    LeftOut(String),
    /// What tests came to, which may be all three.
    Tested(Tally),
}

impl Verdict {
    /// What came of something that has nothing to tell when it is well.
    pub(crate) fn of(result: anyhow::Result<()>) -> Self {
        match result {
            Ok(()) => Self::Passed(String::new()),
            Err(error) => Self::Failed(format!("{error:#}")),
        }
    }
}

impl Verdict {
    fn is_failed(&self) -> bool {
        match self {
            Self::Failed(_) => true,
            Self::Tested(tally) => tally.n_failed > 0,
            Self::Passed(_) | Self::LeftOut(_) => false,
        }
    }

    /// What did not happen, for want of what.
    pub(crate) fn left_out(&self) -> Vec<String> {
        match self {
            Self::LeftOut(why) => vec![why.clone()],
            Self::Tested(tally) => {
                let lacked = tally.lacked.iter();
                lacked
                    .map(|(why, n)| format!("{}: {why}", tests(*n)))
                    .collect()
            }
            Self::Passed(_) | Self::Failed(_) => Vec::new(),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Passed(more) if more.is_empty() => "passed".to_owned(),
            Self::Passed(more) => format!("passed: {more}"),
            Self::LeftOut(why) => format!("LEFT OUT: {why}"),
            Self::Failed(why) => format!("FAILED: {why}"),
            Self::Tested(tally) => {
                let (n_failed, n_left_out) = (tally.n_failed, tally.n_left_out());
                let mut words = match n_failed {
                    0 => format!("passed: {}", tests(tally.n_passed)),
                    n => format!("FAILED: {} of {}", n, tests(tally.n_passed + n)),
                };
                if n_left_out > 0 {
                    words += &format!("; LEFT OUT: {}", tests(n_left_out));
                }
                words
            }
        }
    }
}

/// Steps and how they ended.
#[derive(Debug, Default)]
pub(super) struct Steps(Vec<(&'static str, Verdict, Duration)>);

impl Steps {
    /// Takes a step, and goes on whatever comes of it.
    pub(super) fn take(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> anyhow::Result<Verdict>,
    ) -> anyhow::Result<()> {
        say(&format!("== {name}"))?;
        let started = Instant::now();
        let verdict = step().unwrap_or_else(|error| Verdict::Failed(format!("{error:#}")));
        self.0.push((name, verdict, started.elapsed()));
        Ok(())
    }

    /// Prints a table and what was left out; fails when a step failed, and in CI also when something was
    /// left out.
    pub(super) fn sum_up(self, is_ci: bool) -> anyhow::Result<()> {
        say("== summary")?;
        let mut total = Duration::ZERO;
        for (name, verdict, took) in &self.0 {
            total += *took;
            let words = verdict.words();
            say(&format!("{name:>13}  {:>5} s  {words}", took.as_secs()))?;
        }
        say(&format!("{:>13}  {:>5} s", "all", total.as_secs()))?;
        for line in self.left_out() {
            say(&line)?;
        }
        let bad = self.bad(is_ci);
        anyhow::ensure!(bad.is_empty(), "failed: {}", bad.join(", "));
        Ok(())
    }

    /// The steps for which all of it fails.
    fn bad(&self, is_ci: bool) -> Vec<String> {
        let bad = self.0.iter().filter_map(|(name, verdict, _)| {
            let is_left_out = !verdict.left_out().is_empty();
            match (verdict.is_failed(), is_left_out && is_ci) {
                (true, _) => Some((*name).to_owned()),
                (false, true) => Some(format!("{name} (left out)")),
                (false, false) => None,
            }
        });
        bad.collect()
    }

    /// How much was left out, and for want of what.
    fn left_out(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let (mut n_steps, mut n_tests) = (0, 0);
        for (name, verdict, _) in &self.0 {
            match verdict {
                Verdict::Tested(tally) => n_tests += tally.n_left_out(),
                Verdict::LeftOut(_) => n_steps += 1,
                Verdict::Passed(_) | Verdict::Failed(_) => {}
            }
            let reasons = verdict.left_out().into_iter();
            lines.extend(reasons.map(|why| format!("   {name}: {why}")));
        }
        let first = match (n_steps, n_tests) {
            (0, 0) => "left out: nothing".to_owned(),
            (0, _) => format!("left out: {}", tests(n_tests)),
            (1, _) => format!("left out: {} and 1 step", tests(n_tests)),
            (_, _) => format!("left out: {} and {n_steps} steps", tests(n_tests)),
        };
        lines.insert(0, first);
        lines
    }
}

/// A call of cargo.
pub(super) struct CargoStep {
    pub(super) arguments: &'static [&'static str],
    /// The component of the toolchain that it needs.
    pub(super) component: Option<&'static str>,
    pub(super) minutes_max: u64,
}

impl CargoStep {
    pub(super) fn run(&self, root: &Path) -> anyhow::Result<Verdict> {
        if let Some(component) = self.component
            && !available(root, self.arguments[0])
            && !install(root, component)?
        {
            let why = format!("{component} is not installed, and rustup cannot install it");
            return Ok(Verdict::LeftOut(why));
        }
        let mut command = cargo(root);
        command.args(self.arguments);
        let limit = Duration::from_secs(self.minutes_max * 60);
        Ok(match run_for(&mut command, limit)? {
            None => Verdict::Failed(format!("not done after {} minutes", self.minutes_max)),
            Some(status) if status.success() => Verdict::Passed(String::new()),
            Some(status) => Verdict::Failed(status.to_string()),
        })
    }
}

/// Cargo, the one that runs us.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

/// True when this subcommand of cargo runs at all.
fn available(root: &Path, subcommand: &str) -> bool {
    let mut command = cargo(root);
    command.args([subcommand, "--version"]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn install(root: &Path, component: &str) -> anyhow::Result<bool> {
    say(&format!(
        "{component} is missing: rustup component add {component}"
    ))?;
    let mut command = Command::new("rustup");
    command.current_dir(root);
    command.args(["component", "add", component]);
    Ok(command.status().is_ok_and(|status| status.success()))
}

/// Runs a command to its end, or ends it when time is up.
pub(crate) fn run_for(
    command: &mut Command,
    limit: Duration,
) -> anyhow::Result<Option<ExitStatus>> {
    let started = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::park_timeout(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_by_themselves_or_on_time() {
        let mut quick = Command::new("true");
        let status = run_for(&mut quick, Duration::from_secs(60)).unwrap();
        assert!(status.is_some_and(|status| status.success()));
        let mut slow = Command::new("sleep");
        let ended = run_for(slow.arg("60"), Duration::from_millis(200)).unwrap();
        assert!(ended.is_none());
        assert!(run_for(&mut Command::new("no-such-program"), POLL).is_err());
    }

    /// Steps that ended like this.
    fn ended(verdicts: impl IntoIterator<Item = Verdict>) -> Steps {
        let mut steps = Steps::default();
        for verdict in verdicts {
            steps.take("a step", || Ok(verdict)).unwrap();
        }
        steps
    }

    fn tally(n_failed: usize, lacked: &[(&str, usize)]) -> Verdict {
        let lacked = lacked.iter().map(|(why, n)| ((*why).to_owned(), *n));
        Verdict::Tested(Tally {
            n_passed: 7,
            n_failed,
            lacked: lacked.collect(),
        })
    }

    #[test]
    fn what_is_left_out_fails_in_ci_only() {
        let no_tool = || Verdict::LeftOut("there is no such tool".to_owned());
        for is_ci in [false, true] {
            assert_eq!(ended([no_tool()]).sum_up(is_ci).is_err(), is_ci);
            let one = tally(0, &[("there is no helm", 1)]);
            assert_eq!(ended([one]).sum_up(is_ci).is_err(), is_ci);
            assert!(ended([tally(0, &[])]).sum_up(is_ci).is_ok());
            assert!(ended([tally(1, &[])]).sum_up(is_ci).is_err());
        }
    }

    #[test]
    fn the_summary_counts_what_is_left_out_beside_failures_too() {
        let lacked = [("there is no control plane", 2), ("there is no helm", 1)];
        let steps = ended([
            Verdict::LeftOut("there is no helm to test with".to_owned()),
            tally(1, &lacked),
            Verdict::Passed(String::new()),
        ]);
        assert_eq!(
            steps.left_out(),
            [
                "left out: 3 tests and 1 step",
                "   a step: there is no helm to test with",
                "   a step: 2 tests: there is no control plane",
                "   a step: 1 test: there is no helm",
            ]
        );
        assert_eq!(
            tally(1, &lacked).words(),
            "FAILED: 1 of 8 tests; LEFT OUT: 3 tests"
        );
        assert_eq!(ended([tally(0, &[])]).left_out(), ["left out: nothing"]);
    }

    #[test]
    fn ci_says_that_it_is_ci() {
        let run = crate::root().unwrap().join(".ci/run");
        let text = std::fs::read_to_string(run).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let says = lines.iter().position(|line| *line == "export CI=true");
        let tests = lines.iter().position(|line| *line == "cargo xtask test");
        assert!(says.is_some() && says < tests, "{text}");
    }
}
