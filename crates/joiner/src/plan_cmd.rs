//! `joiner plan`: manifests in, nodes and prices out.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use joiner_catalog::{ClassSettings, ec2, kwok_generic};
use joiner_model::{InstanceType, MinValuesPolicy, Plan, PreferencePolicy, Problem};
use joiner_state::{Catalog, Input, Objects, SpreadDefaults, ec2_types, parse_instance_types};

use crate::Outcome;
use crate::explain::Explained;
use crate::plan_json::Timings;
use crate::terminal::Printable;
use crate::{plan_json, plan_table, region, scheduler_config, sources, terminal};

const EXAMPLES: &str = "\
Examples:
  # Nodes for everything pending in a folder of manifests
  joiner plan -f examples/web

  # What the cluster of the current context would get
  kubectl get nodepools,ec2nodeclasses,nodeclaims,nodes,pods,daemonsets,namespaces,\\
    pv,pvc,storageclasses,csinodes,priorityclasses -A -o json | joiner plan -f -

  # With a catalog of your own, for a script
  joiner plan -f objects.json --instance-types types.json -o json

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
    /// Take instance types from this JSON file instead of the built-in EC2 catalog.
    #[arg(long, alias = "instance-types-file-path", value_name = "FILE")]
    instance_types: Option<PathBuf>,
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
    let mut input = read(args)?;
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
    match args.output {
        Output::Table => plan_table::render(problem, &plan, timings, &mut Printable(out))?,
        Output::Json => plan_json::write_json(problem, &plan, timings, out)?,
        Output::Yaml => plan_json::write_yaml(problem, &plan, timings, out)?,
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
        Output::Table => explained.render(&mut Printable(out))?,
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
fn read(args: &PlanArgs) -> anyhow::Result<Input> {
    let defaults = scheduler_config::spread_defaults(&args.scheduler_config)?.unwrap_or_default();
    if let Some(path) = &args.instance_types {
        let source = sources::read_file(path)?;
        let types = parse_instance_types(&source.name, &source.text)?;
        return Ok(read_objects(args, defaults)?.problem(Catalog::shared(types))?);
    }
    let standard = ec2(&args.region, &ClassSettings::default()).map_err(region::unknown)?;
    let objects = read_objects(args, defaults)?;
    let mut warnings = standard.warnings;
    let catalog = class_catalogs(args, &objects, standard.types, &mut warnings)?;
    let mut input = objects.problem(catalog)?;
    input.warnings.splice(0..0, warnings);
    Ok(input)
}

/// The manifests, of which there must be some: a plan for nothing is a mistake in the command line
/// or in what feeds it.
fn read_objects(args: &PlanArgs, defaults: SpreadDefaults) -> anyhow::Result<Objects> {
    let mut objects = Objects::with_spread_defaults(defaults);
    for source in sources::read(&args.files)? {
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

/// The catalog for these objects; EC2NodeClasses get one each, with their own settings.
fn class_catalogs(
    args: &PlanArgs,
    objects: &Objects,
    standard: Vec<InstanceType>,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Catalog> {
    let mut catalog = Catalog::shared(standard);
    for class in objects.node_classes() {
        let types = match class.figures()? {
            Some(figures) => {
                let class = (&*class.reference.name, &class.object);
                ec2_types(class, &figures, &args.region, warnings)?
            }
            None if class.reference.kind.as_ref() == "KWOKNodeClass" => kwok_generic(),
            None => continue,
        };
        catalog = catalog.with_class(class.reference.clone(), types);
    }
    for class in objects.class_refs() {
        if !matches!(class.kind.as_ref(), "EC2NodeClass" | "KWOKNodeClass") {
            warnings.push(format!(
                "node class {} {}: its instance types are not known here, the EC2 catalog is used; \
                 give your own with --instance-types",
                class.kind, class.name
            ));
        }
    }
    Ok(catalog)
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
