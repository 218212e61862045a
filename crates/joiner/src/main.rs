//! The binary: flags, settings, wiring, exit codes.

mod catalog_cmd;
mod cost;
mod crds_cmd;
mod demo_cmd;
mod embedded;
mod explain;
mod kubeconfig;
mod plan_catalog;
mod plan_cmd;
mod plan_json;
mod plan_table;
mod plugin;
mod region;
mod run_cmd;
mod sandbox_cmd;
mod scheduler_config;
mod shell_cmd;
mod signals;
mod sources;
mod table;
mod terminal;
mod why_cmd;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of output that are written at a time.
const OUTPUT_BUFFER: usize = 1 << 16;

/// A Kubernetes autoscaler: the right nodes just in time, with a price and a proof on every plan.
#[derive(Parser)]
#[command(name = "joiner", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// See it work: a cluster in this process, a simulated EC2, and a story in under a minute.
    Demo(demo_cmd::DemoArgs),
    /// Run the autoscaler on a cluster.
    Run(Box<run_cmd::RunArgs>),
    /// Say which nodes to buy for pending pods, where each pod goes, and what it costs.
    Plan(plan_cmd::PlanArgs),
    /// Say why a pod is pending or where it was planned; why a node is kept, bought or gone.
    Why(why_cmd::WhyArgs),
    /// List and filter instance types, with prices and what pods can really use.
    Catalog(Box<catalog_cmd::CatalogArgs>),
    /// Print the CRDs to apply: NodePool, NodeClaim, NodeOverlay, CapacityBuffer and node classes.
    Crds(crds_cmd::CrdsArgs),
    /// Start a simulated cluster on this machine, for kubectl and for trying things out.
    Sandbox(sandbox_cmd::SandboxArgs),
    /// Print a script that completes commands and flags in a shell.
    Completions(shell_cmd::CompletionsArgs),
    /// Write manual pages to a folder.
    Man(shell_cmd::ManArgs),
}

/// What a command came to; scripts read it as the exit code.
enum Outcome {
    /// Done.
    Done,
    /// Done, but some pods found no place.
    PodsLeftOver,
}

fn main() -> ExitCode {
    let cli = match parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => {
            let failed = error.use_stderr();
            let _ = error.print();
            return if failed {
                ExitCode::from(1)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match run(&cli) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::PodsLeftOver) => ExitCode::from(2),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let mut stderr = terminal::Printable(std::io::stderr().lock());
            let _ = writeln!(stderr, "joiner: {}", terminal::said_once(&error));
            ExitCode::from(1)
        }
    }
}

/// The command line, as typed to us or to kubectl.
fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    if !plugin::is_plugin(arguments.first()) {
        return Cli::try_parse_from(arguments);
    }
    let command = plugin::command(Cli::command());
    let matches = command.try_get_matches_from(plugin::arguments(arguments))?;
    Cli::from_arg_matches(&matches)
}

fn run(cli: &Cli) -> anyhow::Result<Outcome> {
    // Not locked: commands that run on log to standard output from other threads meanwhile.
    let mut out = std::io::BufWriter::with_capacity(OUTPUT_BUFFER, std::io::stdout());
    let outcome = match &cli.command {
        Command::Demo(args) => {
            demo_cmd::run(args, &mut out)?;
            Outcome::Done
        }
        Command::Run(args) => {
            run_cmd::run(args, &mut out)?;
            Outcome::Done
        }
        Command::Plan(args) => plan_cmd::run(args, &mut out)?,
        Command::Why(args) => {
            why_cmd::run(args, &mut out)?;
            Outcome::Done
        }
        Command::Catalog(args) => {
            catalog_cmd::run(args, &mut out)?;
            Outcome::Done
        }
        Command::Crds(args) => {
            crds_cmd::run(args, &mut out)?;
            Outcome::Done
        }
        Command::Sandbox(args) => {
            sandbox_cmd::run(args, &mut out)?;
            Outcome::Done
        }
        Command::Completions(args) => {
            shell_cmd::completions(args, Cli::command(), &mut out)?;
            Outcome::Done
        }
        Command::Man(args) => {
            shell_cmd::man(args, Cli::command(), &mut out)?;
            Outcome::Done
        }
    };
    out.flush().context("cannot write the output")?;
    Ok(outcome)
}

/// What this program is, for metrics.
fn build() -> joiner_runtime::Build {
    joiner_runtime::Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("JOINER_BUILT_FROM").to_owned(),
    }
}

/// True when whoever read our output has had enough of it.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let of_io = cause
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        let of_json = cause
            .downcast_ref::<serde_json::Error>()
            .and_then(serde_json::Error::io_error_kind);
        of_io.or(of_json) == Some(std::io::ErrorKind::BrokenPipe)
    })
}
