//! Everything that CI runs, in CI's order.
//!
//! All steps run even if one fails, each with a limit on its time. Missing components of Rust are
//! installed where rustup is there to do it, and left out, loudly, where it is not. Likewise the
//! control plane and the helm that some tests run on are built where Go is there to do it; under
//! `CI=true` it is a failure where it is not.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use joiner_testkit::control_plane::{FOLDER_VARIABLE, is_ci};

use crate::control_plane::{self, Found};
use crate::{deps, generate, helm, report, say, tidy};

/// How often a running command is looked at.
const POLL: Duration = Duration::from_millis(100);

/// A call of cargo.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    /// The component of the toolchain that it needs.
    component: Option<&'static str>,
    minutes_max: u64,
}

/// Needs nothing but the sources.
const CHECKS: [Step; 2] = [
    Step {
        name: "format",
        arguments: &["fmt", "--all", "--check"],
        component: Some("rustfmt"),
        minutes_max: 5,
    },
    Step {
        name: "lints",
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        component: Some("clippy"),
        minutes_max: 30,
    },
];

/// Doc tests included.
const TESTS: Step = Step {
    name: "tests",
    arguments: &["test", "--workspace", "--no-fail-fast"],
    component: None,
    minutes_max: 60,
};

/// How a step ended.
enum Verdict {
    Passed,
    Failed(String),
    LeftOut(String),
}

/// Runs all steps and says how each ended.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut verdicts = Vec::new();
    for step in &CHECKS {
        let started = Instant::now();
        let verdict = step.run(root, None)?;
        verdicts.push((step.name, verdict, started.elapsed()));
    }
    say("== cargo xtask control-plane build")?;
    let started = Instant::now();
    let (verdict, programs) = control_plane(root);
    verdicts.push(("control plane", verdict, started.elapsed()));
    say("== cargo xtask helm")?;
    let started = Instant::now();
    verdicts.push(("helm", helm(root), started.elapsed()));
    let started = Instant::now();
    let verdict = TESTS.run(root, programs.as_deref())?;
    verdicts.push((TESTS.name, verdict, started.elapsed()));
    type Check = fn(&Path) -> anyhow::Result<Vec<String>>;
    let checks: [(&'static str, Check); 3] = [
        ("tidy", tidy::problems),
        ("deps", deps::problems),
        ("gen --check", generate::stale),
    ];
    for (name, check) in checks {
        say(&format!("== cargo xtask {name}"))?;
        let started = Instant::now();
        let verdict = match check(root).and_then(report) {
            Ok(()) => Verdict::Passed,
            Err(error) => Verdict::Failed(format!("{error:#}")),
        };
        verdicts.push((name, verdict, started.elapsed()));
    }
    say("== summary")?;
    let mut failed = Vec::new();
    for (name, verdict, took) in verdicts {
        let words = match verdict {
            Verdict::Passed => "passed".to_owned(),
            Verdict::LeftOut(why) => format!("LEFT OUT: {why}"),
            Verdict::Failed(why) => {
                failed.push(name);
                format!("FAILED: {why}")
            }
        };
        say(&format!("{name:>13}  {:>5} s  {words}", took.as_secs()))?;
    }
    anyhow::ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// The folder of the control plane's programs, if there is one or one can be built.
fn control_plane(root: &Path) -> (Verdict, Option<PathBuf>) {
    match control_plane::find_or_build(root) {
        Ok(Found::Programs(programs)) => (Verdict::Passed, Some(programs.folder().to_owned())),
        Ok(Found::Nothing(why)) => (Verdict::LeftOut(why), None),
        Err(error) if is_ci() => (Verdict::Failed(format!("{error:#}")), None),
        Err(error) => (Verdict::LeftOut(format!("{error:#}")), None),
    }
}

/// The helm program, which tests find by themselves once it is there.
fn helm(root: &Path) -> Verdict {
    match helm::find_or_build(root) {
        Ok(Some(_)) => Verdict::Passed,
        Ok(None) => Verdict::LeftOut("there is no helm to test the chart with".to_owned()),
        Err(error) if is_ci() => Verdict::Failed(format!("{error:#}")),
        Err(error) => Verdict::LeftOut(format!("{error:#}")),
    }
}

impl Step {
    /// Runs it, with the folder of the control plane's programs in its environment.
    fn run(&self, root: &Path, programs: Option<&Path>) -> anyhow::Result<Verdict> {
        say(&format!("== cargo {}", self.arguments.join(" ")))?;
        if let Some(component) = self.component
            && !available(root, self.arguments[0])
            && !install(root, component)?
        {
            let why = format!("{component} is not installed, and rustup cannot install it");
            return Ok(Verdict::LeftOut(why));
        }
        let mut command = cargo(root);
        command.args(self.arguments);
        if let Some(programs) = programs {
            command.env(FOLDER_VARIABLE, programs);
        }
        let limit = Duration::from_secs(self.minutes_max * 60);
        Ok(match run_for(&mut command, limit)? {
            None => Verdict::Failed(format!("not done after {} minutes", self.minutes_max)),
            Some(status) if status.success() => Verdict::Passed,
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
}
