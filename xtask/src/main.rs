//! Chores of this repository: `cargo xtask --help`.

mod bench;
mod compat;
mod control_plane;
mod deny;
mod deps;
mod docs;
mod generate;
mod helm;
mod keys;
mod test;
mod tidy;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

/// The allocator of the product, so that figures are those of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Chores of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything that CI runs, in CI's order: format, lints, tests, tidy, deps, deny, generated files,
    /// outputs in the docs.
    Test,
    /// Everything that takes too long for CI.
    #[command(subcommand)]
    Soak(test::soak::Soak),
    /// Checks sizes, doc lines and words of all files, and counts names that say little and modules in
    /// cycles, of which no crate may have more than xtask/tidy.toml says.
    Tidy {
        /// Writes the numbers that have fallen to the table first; none of them rises.
        #[arg(long)]
        write: bool,
    },
    /// Checks which crate depends on which.
    Deps,
    /// Checks licenses, versions and sources of all crates against deny.toml.
    Deny,
    /// Records the outputs that README and docs show, from runs of the commands that they show.
    Docs(docs::DocsArgs),
    /// Measures price and speed on seeded problems; prints a table.
    Bench(bench::BenchArgs),
    /// Builds and runs a real Kubernetes control plane to test on.
    #[command(subcommand)]
    ControlPlane(control_plane::Task),
    /// Builds the helm program that tests of the chart use, unless it is there; prints its path.
    Helm,
    /// Writes the CRDs to deploy/crds and to the chart of CRDs, and docs/compat.md.
    Gen {
        /// Writes nothing; fails when a file is not what it would be.
        #[arg(long)]
        check: bool,
    },
    /// Measures one problem in this process; for `bench`.
    #[command(hide = true)]
    BenchCase(bench::CaseArgs),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(std::io::stderr(), "xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: &Chore) -> anyhow::Result<()> {
    let root = root()?;
    match chore {
        Chore::Test => test::run(&root),
        Chore::Soak(soak) => test::soak::run(&root, soak),
        Chore::Tidy { write } => {
            if *write {
                tidy::write(&root)?;
            }
            report(tidy::problems(&root)?)
        }
        Chore::Deps => report(deps::problems(&root)?),
        Chore::Deny => report(deny::problems(&root)?),
        Chore::Docs(args) => docs::run(&root, args),
        Chore::Bench(args) => bench::run(&root, args),
        Chore::ControlPlane(task) => control_plane::run(&root, task),
        Chore::Helm => helm::run(&root),
        Chore::Gen { check: true } => report(generate::stale(&root)?),
        Chore::Gen { check: false } => generate::write(&root),
        Chore::BenchCase(args) => bench::run_case(args),
    }
}

/// The folder of the workspace.
fn root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = here.context("xtask has no parent folder")?;
    anyhow::ensure!(root.is_dir(), "{} is gone; build again", root.display());
    Ok(root.to_owned())
}

/// Tells the problems found, if any, and fails then.
fn report(problems: Vec<String>) -> anyhow::Result<()> {
    for problem in &problems {
        say(&format!("  {problem}"))?;
    }
    match problems.len() {
        0 => Ok(()),
        1 => anyhow::bail!("1 problem"),
        n => anyhow::bail!("{n} problems"),
    }
}

/// Prints a line.
fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot write to standard output")
}
