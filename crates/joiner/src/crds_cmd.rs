//! `joiner crds`: the CustomResourceDefinitions to apply.

use std::io::Write;

use anyhow::Context;
use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  # Install or update all of them
  joiner crds | kubectl apply --server-side -f -

  # Only the NodePool's, as JSON
  joiner crds --kind NodePool -o json";

/// How to print.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// YAML documents, ready for kubectl.
    Yaml,
    /// A JSON List.
    Json,
}

/// Print the CRDs to apply.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CrdsArgs {
    /// Only these kinds.
    #[arg(long, value_delimiter = ',')]
    kind: Vec<String>,
    /// How to print.
    #[arg(short = 'o', long, value_enum, default_value = "yaml")]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: &CrdsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let all = joiner_api::crds();
    let kind = |crd: &serde_json::Value| crd["spec"]["names"]["kind"].as_str().map(str::to_owned);
    let known: Vec<String> = all.iter().filter_map(kind).collect();
    for wanted in &args.kind {
        if !known.iter().any(|k| k.eq_ignore_ascii_case(wanted)) {
            anyhow::bail!(
                "there is no kind {wanted:?}; there are {}",
                known.join(", ")
            );
        }
    }
    let chosen = all.into_iter().filter(|crd| {
        let kind = kind(crd).unwrap_or_default();
        args.kind.is_empty() || args.kind.iter().any(|k| k.eq_ignore_ascii_case(&kind))
    });
    match args.output {
        Output::Yaml => {
            for crd in chosen {
                let text = serde_saphyr::to_string(&crd).context("cannot write YAML")?;
                write!(out, "---\n{text}")?;
            }
        }
        Output::Json => {
            let items: Vec<_> = chosen.collect();
            let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items});
            serde_json::to_writer_pretty(&mut *out, &list).context("cannot write JSON")?;
            writeln!(out)?;
        }
    }
    Ok(())
}
