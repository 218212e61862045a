//! One step of the tests: a command or a check, with a limit on its time and a verdict.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::say;

/// How often a running command is looked at.
const POLL: Duration = Duration::from_millis(100);

/// How a step ended.
#[derive(Debug)]
pub(super) enum Verdict {
    Passed(String),
    Failed(String),
    LeftOut(String),
}

impl Verdict {
    /// What came of something that has nothing to tell when it is well.
    pub(super) fn of(result: anyhow::Result<()>) -> Self {
        match result {
            Ok(()) => Self::Passed(String::new()),
            Err(error) => Self::Failed(format!("{error:#}")),
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

    /// Prints a table; fails when a step failed, and in CI also when something was left out.
    pub(super) fn sum_up(self, is_ci: bool) -> anyhow::Result<()> {
        say("== summary")?;
        let (mut bad, mut total) = (Vec::new(), Duration::ZERO);
        for (name, verdict, took) in self.0 {
            total += took;
            let words = match verdict {
                Verdict::Passed(more) if more.is_empty() => "passed".to_owned(),
                Verdict::Passed(more) => format!("passed: {more}"),
                Verdict::LeftOut(why) => {
                    if is_ci {
                        bad.push(format!("{name} (left out)"));
                    }
                    format!("LEFT OUT: {why}")
                }
                Verdict::Failed(why) => {
                    bad.push(name.to_owned());
                    format!("FAILED: {why}")
                }
            };
            say(&format!("{name:>13}  {:>5} s  {words}", took.as_secs()))?;
        }
        say(&format!("{:>13}  {:>5} s", "all", total.as_secs()))?;
        anyhow::ensure!(bad.is_empty(), "failed: {}", bad.join(", "));
        Ok(())
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

    #[test]
    fn what_is_left_out_fails_in_ci_only() {
        for is_ci in [false, true] {
            let mut steps = Steps::default();
            let step = || Ok(Verdict::LeftOut("there is no such tool".to_owned()));
            steps.take("tool", step).unwrap();
            assert_eq!(steps.sum_up(is_ci).is_err(), is_ci);
        }
    }
}
