//! `joiner catalog`: flags to a query, and the query's answer to the output.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use joiner_catalog::query::{Format, GpuFilter, Look, Query, Sort, Span, price, render};
use joiner_catalog::{AmiFamily, ClassSettings, ec2};
use joiner_model::NanoDollars;

use crate::cost::PricesOf;
use crate::plan_catalog::Prices;
use crate::sources::InputArgs;
use crate::{region, terminal};

const EXAMPLES: &str = "\
Examples:
  # The ten cheapest types with 4 to 16 vCPUs and at least 32 GiB, in Frankfurt
  joiner catalog --region eu-central-1 --vcpu 4..16 --memory 32.. --sort price --limit 10

  # All sizes of two families
  joiner catalog --family m7g,c7g

  # Names by pattern; a name without a pattern is a prefix
  joiner catalog --name '*.metal*' --name m5.

  # What eight NVIDIA H100 cost, and everything with any GPU
  joiner catalog --gpu h100
  joiner catalog --gpu 1.. --sort price-per-vcpu

  # A catalog of your own for a plan: ARM only, two zones
  joiner catalog --arch arm64 --zone us-east-1a,us-east-1b -o json > types.json
  joiner plan -f manifests/ --instance-types types.json

Ranges include both ends: 4, 4..16, 4.., ..16. Filters on zone, capacity type and price choose among
the offerings of a type; a type is listed while it has one left. On-demand prices are AWS list
prices; spot prices come from a model and are not market data.";

/// List and filter instance types, with prices and what pods can really use.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", region::listed()))]
pub(crate) struct CatalogArgs {
    /// Region to list; all of them are named below.
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// Take prices from this CSV file, where it has some: type,zone,capacity type,dollars an hour;
    /// without a zone for all zones.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    /// Names of types: patterns with * and ?, or prefixes.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    name: Vec<String>,
    /// Families, such as m5.
    #[arg(long, value_delimiter = ',')]
    family: Vec<String>,
    /// Categories, such as c, m, r or g.
    #[arg(long, value_delimiter = ',')]
    category: Vec<String>,
    /// Number of vCPUs.
    #[arg(long, value_name = "N or RANGE", value_parser = Span::counts)]
    vcpu: Option<Span>,
    /// Advertised memory in GiB.
    #[arg(long, value_name = "GIB or RANGE", value_parser = Span::gib)]
    memory: Option<Span>,
    /// Architectures.
    #[arg(long, value_delimiter = ',', value_parser = ["amd64", "arm64"])]
    arch: Vec<String>,
    /// GPUs or machine-learning chips: how many (0 for none), or which kind or maker.
    #[arg(long, value_name = "N, RANGE or NAME")]
    gpu: Option<GpuFilter>,
    /// Availability zones.
    #[arg(long, value_delimiter = ',')]
    zone: Vec<String>,
    /// Ways to pay.
    #[arg(long, value_delimiter = ',', value_parser = ["on-demand", "spot"])]
    capacity_type: Vec<String>,
    /// The most an hour may cost.
    #[arg(long, value_name = "PRICE", value_parser = price)]
    max_price: Option<NanoDollars>,
    /// Image family, on which the pods' share of a node depends.
    #[arg(long, default_value = "AL2023", value_parser = choice(AmiFamily::ALL, AmiFamily::as_str))]
    ami_family: AmiFamily,
    /// Order of the list; prices are those of the cheapest offering.
    #[arg(long, default_value = "family", value_parser = choice(Sort::ALL, Sort::as_str))]
    sort: Sort,
    /// Reverse the order.
    #[arg(long)]
    reverse: bool,
    /// List at most so many types.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How to print; json is a catalog file for `joiner plan --instance-types`, yaml the same to read.
    #[arg(short, long, default_value = "table", value_parser = choice(Format::ALL, Format::as_str))]
    output: Format,
}

/// Prints the instance types that match to `out`, and warnings about their prices to stderr.
///
/// # Errors
/// An unknown region or zone, or an output that cannot be written.
pub(crate) fn run(args: &CatalogArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let settings = ClassSettings {
        ami_family: args.ami_family,
        ..ClassSettings::default()
    };
    let mut catalog = ec2(&args.region, &settings).map_err(region::unknown)?;
    let mut prices = PricesOf {
        region: Some(catalog.prices_of.to_owned()),
        ..PricesOf::default()
    };
    if let Some(path) = &args.prices {
        let list = Prices::read(path, &mut args.input.reader())?;
        list.replace(&mut catalog.types, &mut prices)?;
        if prices.file_has_all {
            catalog.warnings.clear();
        }
    }
    let selection = query(args).select(catalog.types)?;
    for warning in &catalog.warnings {
        terminal::warn(warning)?;
    }
    let source = match (&prices.file, prices.names()) {
        (Some(_), Some(names)) => format!(", those of {names}"),
        (None, _) | (_, None) => String::new(),
    };
    let look = |columns| Look {
        currency: catalog.currency,
        prices: &source,
        columns,
    };
    match args.output {
        Format::Table => {
            let columns = terminal::size().map(|own| own.columns);
            terminal::print(out, columns, |out| {
                Ok(render(&selection, args.output, look(columns), out)?)
            })
        }
        Format::Json | Format::Yaml => Ok(render(&selection, args.output, look(None), out)?),
    }
}

fn query(args: &CatalogArgs) -> Query {
    Query {
        names: args.name.clone(),
        families: args.family.clone(),
        categories: args.category.clone(),
        vcpus: args.vcpu,
        memory_mib: args.memory,
        archs: args.arch.clone(),
        gpu: args.gpu.clone(),
        zones: args.zone.clone(),
        capacity_types: args.capacity_type.clone(),
        max_price: args.max_price,
        sort: args.sort,
        descending: args.reverse,
        limit: args.limit,
    }
}

/// A flag that takes one of these values, which help and errors list.
fn choice<T, const N: usize>(
    all: [T; N],
    name: impl Fn(T) -> &'static str + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names: Vec<&'static str> = all.iter().map(|value| name(*value)).collect();
    PossibleValuesParser::new(names).try_map(move |text| {
        let found = all.iter().find(|value| name(**value) == text);
        found.copied().ok_or("not one of the values")
    })
}
