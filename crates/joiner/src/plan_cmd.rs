//! `joiner plan`: manifests in, nodes and prices out.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use joiner_model::{MinValuesPolicy, Plan, PreferencePolicy, Problem};
use joiner_state::{Input, Objects, SpreadDefaults};

use crate::Outcome;
use crate::cost::{self, Figures, PricesOf};
use crate::explain::Explained;
use crate::plan_catalog::Market;
use crate::plan_json::Timings;
use crate::sources::{InputArgs, Reader};
use crate::{plan_catalog, plan_json, plan_table, scheduler_config, sources, terminal};

const EXAMPLES: &str = "\
Examples:
  # Nodes for everything pending in a folder of manifests
  joiner plan -f examples/web

  # What the cluster of the current context would get
  kubectl get nodepools,ec2nodeclasses,nodeclaims,nodes,pods,daemonsets,namespaces,\\
    pv,pvc,storageclasses,csinodes,priorityclasses -A -o json | joiner plan -f -

  # With a catalog of your own, for a script
  joiner plan -f objects.json --instance-types types.json -o json

  # With the prices you pay: lines such as m5.large,us-east-1a,spot,0.0331
  joiner plan -f examples/web --prices prices.csv

  # How offerings are ruled out for one pod; -o json for a script
  joiner plan -f examples/left-over --explain too-large

Exit codes: 0 all pods have a place, 2 some are left over, 1 bad input or failure.";

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// The same, as YAML.
    Yaml,
}

/// Say which nodes to buy for pending pods, where each pod goes, and what it costs.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// Manifests: files, folders, or - for standard input.
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    /// Take instance types from this JSON file instead of the built-in EC2 catalog.
    #[arg(long, alias = "instance-types-file-path", value_name = "FILE")]
    instance_types: Option<PathBuf>,
    /// Take prices from this CSV file, where it has some: type,zone,capacity type,dollars an hour;
    /// without a zone for all zones.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Region of the built-in EC2 catalog.
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "table")]
    output: Output,
    /// Print how offerings are ruled out for this pod, instead of the plan.
    #[arg(long, value_name = "POD")]
    explain: Option<String>,
    /// What to do with wishes that are not rules.
    #[arg(
        long,
        env = "PREFERENCE_POLICY",
        value_enum,
        default_value = "Respect",
        ignore_case = true
    )]
    preference_policy: Preferences,
    /// What to do when minValues cannot be met.
    #[arg(
        long,
        env = "MIN_VALUES_POLICY",
        value_enum,
        default_value = "Strict",
        ignore_case = true
    )]
    min_values_policy: MinValues,
    /// Spread constraints for pods that declare none, as the cluster's scheduler has them: YAML or
    /// JSON with podTopologySpread.defaultConstraints, or the path of a file with that.
    #[arg(
        long,
        env = "SCHEDULER_CONFIG",
        default_value = "",
        value_name = "FILE",
        hide_default_value = true
    )]
    scheduler_config: String,
}

/// What to do with wishes that are not rules.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Preferences {
    /// Preferences count until a pod cannot be placed otherwise.
    Respect,
    /// Preferences are not looked at.
    Ignore,
}

/// What to do when minValues cannot be met.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum MinValues {
    /// Such a node cannot be.
    Strict,
    /// The number is lowered to what there is.
    BestEffort,
}

/// Runs the command.
pub(crate) fn run(args: &PlanArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    let (mut input, prices) = read(args)?;
    input.problem.policy.preferences = match args.preference_policy {
        Preferences::Respect => PreferencePolicy::Respect,
        Preferences::Ignore => PreferencePolicy::Ignore,
    };
    input.problem.policy.min_values = match args.min_values_policy {
        MinValues::Strict => MinValuesPolicy::Strict,
        MinValues::BestEffort => MinValuesPolicy::BestEffort,
    };
    let parsed = Instant::now();
    for warning in &input.warnings {
        terminal::warn(warning)?;
    }
    let solving = Instant::now();
    let plan = joiner_solver::solve(&input.problem);
    let solved = Instant::now();
    verify(&input.problem, &plan)?;
    let ms = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e3;
    let timings = Timings {
        parse_ms: ms(started, parsed),
        solve_ms: ms(solving, solved),
        verify_ms: ms(solved, Instant::now()),
    };
    if let Some(pod) = &args.explain {
        let explained = Explained::new(&input.problem, &plan, pod)?;
        explain(&explained, args.output, out)?;
        return Ok(explained.outcome());
    }
    let problem = &input.problem;
    let figures = Figures {
        timings,
        preferences: cost::preferences_cost(problem, &plan),
        prices,
    };
    match args.output {
        Output::Table => {
            let columns = terminal::size().map(|own| own.columns);
            terminal::print(out, columns, |out| {
                Ok(plan_table::render(problem, &plan, &figures, columns, out)?)
            })?;
        }
        Output::Json => plan_json::write_json(problem, &plan, &figures, out)?,
        Output::Yaml => plan_json::write_yaml(problem, &plan, &figures, out)?,
    }
    Ok(if plan.unplaced.is_empty() {
        Outcome::Done
    } else {
        Outcome::PodsLeftOver
    })
}

/// Prints what became of one pod.
fn explain(explained: &Explained<'_>, output: Output, out: &mut dyn Write) -> anyhow::Result<()> {
    match output {
        Output::Table => {
            let columns = terminal::size().map(|own| own.columns);
            terminal::print(out, columns, |out| explained.render(columns, out))?;
        }
        Output::Json => {
            serde_json::to_writer(&mut *out, &explained.view()).context("cannot write JSON")?;
            writeln!(out)?;
        }
        Output::Yaml => {
            let text = serde_saphyr::to_string(&explained.view()).context("cannot write YAML")?;
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(())
}

/// Reads catalog and manifests. The catalog comes first: a mistake in a flag is told at once, not
/// after standard input has been read.
fn read(args: &PlanArgs) -> anyhow::Result<(Input, PricesOf)> {
    let mut reader = args.input.reader();
    let defaults = scheduler_config::spread_defaults(&args.scheduler_config, &mut reader)?;
    let defaults = defaults.unwrap_or_default();
    let market = Market::read(
        &args.region,
        args.instance_types.as_deref(),
        args.prices.as_deref(),
        &mut reader,
    )?;
    let objects = read_objects(args, defaults, &mut reader)?;
    let mut sold = market.catalog(&objects)?;
    let mut input = objects.problem(sold.catalog)?;
    sold.warnings.extend(plan_catalog::absent(&input.problem));
    input.warnings.splice(0..0, sold.warnings);
    Ok((input, sold.prices))
}

/// The manifests, of which there must be some: a plan for nothing is a mistake in the command line
/// or in what feeds it.
fn read_objects(
    args: &PlanArgs,
    defaults: SpreadDefaults,
    reader: &mut Reader,
) -> anyhow::Result<Objects> {
    let mut objects = Objects::with_spread_defaults(defaults);
    for source in reader.read(&args.files)? {
        objects.add(&source)?;
    }
    if objects.is_empty() {
        let names: Vec<String> = args.files.iter().map(|path| sources::title(path)).collect();
        bail!(
            "there is no Kubernetes object in {}; give manifests, or what kubectl get -o json \
             prints",
            names.join(", ")
        );
    }
    Ok(objects)
}

/// Checks the plan with the verifier, which shares nothing with the solver.
fn verify(problem: &Problem, plan: &Plan) -> anyhow::Result<()> {
    let violations = joiner_verify::check(problem, plan);
    if violations.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = violations
        .iter()
        .take(20)
        .map(|v| format!("  - {v}"))
        .collect();
    bail!(
        "the plan breaks rules and is not shown; this is a defect of joiner, please report it with \
         the input:\n{}",
        shown.join("\n")
    )
}
