//! `joiner why`: the receipt of a pod or a node.

mod controller;
mod name;
mod node;
mod pod;
mod words;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use joiner_receipts::why::{self, NoAnswer};
use joiner_receipts::{Decision, DecisionQuery};
use joiner_runtime::read_decisions;
use serde::Serialize;

pub(crate) use self::pod::changes as render_changes;
pub(crate) use self::words::funnel as render_funnel;
use crate::sources::InputArgs;
use crate::terminal;

const EXAMPLES: &str = "\
Examples:
  # Why is this pod pending, and what is the cheapest change that would help?
  joiner why pod web-7d4b9c-x2x8n -n shop

  # Why is this node kept, or why did it go? Node or NodeClaim
  joiner why node general-4f7d2

  # Of a controller in a cluster
  kubectl -n kube-system port-forward deploy/joiner 8080 &
  joiner why node general-4f7d2

  # From what `joiner run --decision-log` wrote, also when nobody runs any more
  joiner why node general-4f7d2 --decision-log decisions.jsonl

The controller is asked at --controller. By default that is where the kubeconfig says, as those of
`joiner sandbox` and `joiner demo --keep` do, or http://127.0.0.1:8080, the metrics port of `joiner run`.";

/// Flags of `joiner why`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct WhyArgs {
    #[command(subcommand)]
    about: About,
}

/// What is asked about.
#[derive(Subcommand, Clone, Debug)]
enum About {
    /// Why a pod is pending, or where it was planned: every offering ruled out, and what would help.
    #[command(after_help = EXAMPLES, visible_alias = "pods")]
    Pod(PodArgs),
    /// Why a node is kept, bought or gone: what pins it, prices, and where its pods went.
    #[command(after_help = EXAMPLES, visible_alias = "nodes")]
    Node(NodeArgs),
}

#[derive(Args, Clone, Debug)]
struct PodArgs {
    /// The pod: its name, or namespace/name
    #[arg(value_name = "NAME")]
    name: String,
    /// Its namespace; by default any in which there is one pod of that name
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    whom: Whom,
}

#[derive(Args, Clone, Debug)]
struct NodeArgs {
    /// The node, by its name or that of its NodeClaim
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    whom: Whom,
}

/// Who is asked, and how the answer is printed.
#[derive(Args, Clone, Debug)]
struct Whom {
    /// Where the controller answers: its metrics port
    #[arg(long, value_name = "URL", env = "JOINER_CONTROLLER")]
    controller: Option<String>,
    /// Read this decision log instead
    #[arg(long, value_name = "FILE", conflicts_with = "controller")]
    decision_log: Option<PathBuf>,
    /// Kubeconfig that may say where the controller answers; by default KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; by default its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    input: InputArgs,
    /// How to print
    #[arg(short = 'o', long, value_enum, default_value = "text")]
    output: Output,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// The same, as YAML.
    Yaml,
}

/// Runs the command.
pub(crate) fn run(args: &WhyArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let columns = terminal::size().map(|own| own.columns);
    match &args.about {
        About::Pod(args) => {
            let name = name::of_pod(&args.name, args.namespace.as_deref())?;
            let answer = match &args.whom.decision_log {
                Some(file) => from_file(file, &args.whom, |find| why::pod(&name, None, find))?,
                None => controller::ask(&args.whom, &format!("pod/{name}"))?,
            };
            print(args.whom.output, &answer, out, |out| {
                pod::render(&answer, columns, out)
            })
        }
        About::Node(args) => {
            let name = name::of_node(&args.name)?;
            let answer = match &args.whom.decision_log {
                Some(file) => {
                    from_file(file, &args.whom, |find| why::node(name, None, None, find))?
                }
                None => controller::ask(&args.whom, &format!("node/{name}"))?,
            };
            print(args.whom.output, &answer, out, |out| {
                node::render(&answer, columns, out)
            })
        }
    }
}

/// An answer from what is written in a decision log.
fn from_file<T>(
    file: &Path,
    whom: &Whom,
    ask: impl FnOnce(why::Find<'_>) -> Result<T, NoAnswer>,
) -> anyhow::Result<T> {
    let shown = file.display();
    let unreadable = || {
        format!("cannot read the decision log {shown}: name the file of joiner run --decision-log")
    };
    // It is read more than once.
    if file.exists() {
        whom.input.reader().check("the decision log", file)?;
    }
    // What cannot be read at all is told before anybody is said to be unknown.
    let none = DecisionQuery {
        limit: Some(0),
        ..DecisionQuery::default()
    };
    read_decisions(file, &none).with_context(unreadable)?;
    let find = |query: &DecisionQuery| -> Vec<Decision> {
        read_decisions(file, query).unwrap_or_default()
    };
    ask(&find).with_context(|| format!("in {shown}"))
}

fn print<T: Serialize>(
    output: Output,
    answer: &T,
    out: &mut dyn Write,
    render: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    match output {
        Output::Text => {
            let columns = terminal::size().map(|own| own.columns);
            terminal::print(out, columns, |out| Ok(render(out)?))?;
        }
        Output::Json => {
            serde_json::to_writer(&mut *out, answer).context("cannot write JSON")?;
            writeln!(out)?;
        }
        Output::Yaml => {
            let text = serde_saphyr::to_string(answer).context("cannot write YAML")?;
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(())
}
