//! The program that is measured, as a process: memory and CPU as the system counts them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::test::cargo;

/// Ticks a second of the CPU times that the system tells.
const TICKS: f64 = 100.0;

/// A running `joiner`; it ends with this.
pub(super) struct Program {
    child: Child,
}

/// What a process used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Memory now.
    pub(super) rss_kib: u64,
    /// The most memory it ever had.
    pub(super) peak_kib: u64,
    /// CPU seconds.
    pub(super) cpu_secs: f64,
}

/// The `joiner` that is measured.
pub(super) struct Joiner {
    path: PathBuf,
}

impl Joiner {
    /// One that somebody has built.
    pub(super) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Builds it as users get it, but for link-time optimization.
    pub(super) fn build(root: &Path) -> anyhow::Result<Self> {
        let mut command = cargo(root);
        command.args(["build", "--quiet", "--release", "--package", "joiner"]);
        let status = command.status().context("cannot run cargo")?;
        anyhow::ensure!(status.success(), "cargo build: {status}");
        Ok(Self::at(&root.join("target/release/joiner")))
    }

    /// A call of it.
    pub(super) fn call(&self) -> Command {
        Command::new(&self.path)
    }
}

impl Program {
    /// Starts a call, with its output in a file.
    pub(super) fn start(command: &mut Command, log: &Path) -> anyhow::Result<Self> {
        let failed = || format!("cannot write {}", log.display());
        let file = File::create(log).with_context(failed)?;
        let errors = file.try_clone().with_context(failed)?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(errors);
        let child = child.spawn().context("cannot run joiner")?;
        Ok(Self { child })
    }

    /// What it has used so far.
    pub(super) fn usage(&mut self) -> anyhow::Result<Usage> {
        if let Some(status) = self.child.try_wait()? {
            anyhow::bail!("joiner has ended: {status}");
        }
        let id = self.child.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))
            .context("only Linux tells what a process uses")?;
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        Ok(Usage {
            rss_kib: kib(&status, "VmRSS:"),
            peak_kib: kib(&status, "VmHWM:"),
            cpu_secs: cpu_secs(&stat),
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kib(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.trim().strip_suffix("kB"));
    number
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

/// The times in user mode and in the kernel: fields 14 and 15, counted behind the name.
fn cpu_secs(stat: &str) -> f64 {
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: f64 = ticks.filter_map(|text| text.parse::<f64>().ok()).sum();
    ticks / TICKS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found() {
        assert_eq!(
            kib("VmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n", "VmRSS:"),
            1024
        );
        let stat = "7 (a) b) S 1 7 7 0 -1 4 1 0 0 0 250 50 0 0 20 0 1";
        assert!((cpu_secs(stat) - 3.0).abs() < 1e-9);
    }
}
