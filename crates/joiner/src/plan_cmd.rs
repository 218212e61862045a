//! `joiner plan`: manifests in, nodes and prices out.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, ValueEnum};
use joiner_catalog::{ClassSettings, ec2};
use joiner_state::{Catalog, Input, Objects, parse_instance_types};

use crate::Outcome;
use crate::plan_json::{PlanView, Timings};
use crate::sources;

const EXAMPLES: &str = "\
Examples:
  # Nodes for everything pending in a folder of manifests
  joiner plan -f examples/web

  # What the cluster of the current context would get
  kubectl get pods,nodes,nodepools,daemonsets -A -o json | joiner plan -f -

  # With a catalog of your own, for a script
  joiner plan -f objects.json --instance-types types.json -o json

Exit codes: 0 all pods have a place, 2 some are left over, 1 bad input or failure.";

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// Say which nodes to buy for pending pods, where each pod goes, and what it costs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// Manifests: files, folders, or - for standard input.
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true)]
    files: Vec<PathBuf>,
    /// Take instance types from this JSON file instead of the built-in EC2 catalog.
    #[arg(long, alias = "instance-types-file-path", value_name = "FILE")]
    instance_types: Option<PathBuf>,
    /// Region of the built-in EC2 catalog.
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "table")]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &PlanArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    let input = read(args)?;
    let parsed = Instant::now();
    for warning in &input.warnings {
        writeln!(std::io::stderr(), "joiner: warning: {warning}")?;
    }
    let solving = Instant::now();
    let plan = joiner_solver::solve(&input.problem);
    let solved = Instant::now();
    let ms = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e3;
    let timings = Timings {
        parse_ms: ms(started, parsed),
        solve_ms: ms(solving, solved),
        verify_ms: ms(solved, Instant::now()),
    };
    match args.output {
        Output::Json | Output::Table => {
            let view = PlanView::new(&input.problem, &plan, timings);
            serde_json::to_writer(&mut *out, &view).context("cannot write the plan")?;
            writeln!(out)?;
        }
    }
    Ok(if plan.unplaced.is_empty() {
        Outcome::Done
    } else {
        Outcome::PodsLeftOver
    })
}

fn read(args: &PlanArgs) -> anyhow::Result<Input> {
    let objects = Objects::read(sources::read(&args.files)?)?;
    let types = match &args.instance_types {
        Some(path) => {
            let source = sources::read_file(path)?;
            parse_instance_types(&source.name, &source.text)?
        }
        None => ec2(&args.region, &ClassSettings::default())?.types,
    };
    Ok(objects.problem(Catalog::shared(types))?)
}
