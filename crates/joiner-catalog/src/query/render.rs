//! Print a selection: as a table for people, or as the catalog file that `joiner plan` reads.

use std::collections::BTreeMap;
use std::io::{self, Write};

use joiner_model::{
    InstanceType, NanoDollars, Offering, ResourceName, Resources, keys, render_amount,
};
use serde::Serialize;

use super::{Selection, label, memory_mib, vcpus};
use crate::labels;

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// A catalog file: a JSON array, one type a line.
    Json,
    /// The same as YAML.
    Yaml,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Table, Self::Json, Self::Yaml];

    /// How users write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

/// What a table says besides the types.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look<'a> {
    /// What prices are in.
    pub currency: &'a str,
    /// Where they are from, if that is worth telling: follows the words "an hour".
    pub prices: &'a str,
    /// Columns that the table must fit.
    pub columns: Option<usize>,
}

/// Prints a selection. JSON and YAML are in the format of catalog files, with `allocatable` (what
/// pods can use) added; labels that may have several values are left out there, because the
/// format has no place for them. A table is as wide as it is, or fits so many columns.
///
/// # Errors
/// The output cannot be written.
pub fn render(
    selection: &Selection,
    format: Format,
    look: Look<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => table(selection, look, out),
        Format::Json => json(&selection.types, out),
        Format::Yaml => {
            let views: Vec<TypeView<'_>> = selection.types.iter().map(TypeView::new).collect();
            let text = serde_saphyr::to_string(&views).map_err(io::Error::other)?;
            out.write_all(text.as_bytes())
        }
    }
}

fn json(types: &[InstanceType], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"[")?;
    for (i, instance_type) in types.iter().enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        // Whole lines, so that an output without a buffer does not suffer.
        out.write_all(&serde_json::to_vec(&TypeView::new(instance_type))?)?;
    }
    out.write_all(if types.is_empty() { b"]\n" } else { b"\n]\n" })
}

/// One type in the format of catalog files.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TypeView<'a> {
    name: &'a str,
    architecture: &'a str,
    operating_systems: Vec<&'a str>,
    resources: BTreeMap<&'a str, String>,
    overhead: BTreeMap<&'a str, String>,
    allocatable: BTreeMap<String, String>,
    labels: BTreeMap<&'a str, &'a str>,
    offerings: Vec<OfferingView<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct OfferingView<'a> {
    price: f64,
    available: bool,
    requirements: Vec<RequirementView<'a>>,
}

#[derive(Serialize)]
struct RequirementView<'a> {
    key: &'a str,
    operator: &'static str,
    values: [&'a str; 1],
}

impl<'a> TypeView<'a> {
    fn new(it: &'a InstanceType) -> Self {
        let systems = it.labels.get(keys::OS);
        let single = it
            .labels
            .iter()
            .filter_map(|(key, values)| match &**values {
                [value] => Some((&**key, &**value)),
                _ => None,
            });
        Self {
            name: &it.name,
            architecture: label(it, keys::ARCH).unwrap_or(""),
            operating_systems: systems.into_iter().flatten().map(|os| &**os).collect(),
            resources: it.capacity.rendered().collect(),
            overhead: it.overhead.rendered().collect(),
            allocatable: (usable(it).rendered())
                .map(|(name, amount)| (name.to_owned(), amount))
                .collect(),
            labels: single.collect(),
            offerings: it.offerings.iter().map(OfferingView::new).collect(),
        }
    }
}

impl<'a> OfferingView<'a> {
    fn new(offering: &'a Offering) -> Self {
        let requirements = offering.labels.iter().map(|(key, value)| RequirementView {
            key,
            operator: "In",
            values: [value],
        });
        Self {
            // The nearest float prints as the same decimal again.
            price: offering.price.to_string().parse().unwrap_or(f64::INFINITY),
            available: offering.available,
            requirements: requirements.collect(),
        }
    }
}

fn usable(it: &InstanceType) -> Resources {
    it.capacity.minus_saturating(&it.overhead)
}

/// Column titles in full and in short, and whether the column holds numbers, which end at the same
/// place.
const COLUMNS: [(&str, &str, bool); 10] = [
    ("TYPE", "TYPE", false),
    ("ARCH", "ARCH", false),
    ("VCPU", "VCPU", true),
    ("MEMORY", "MEM", true),
    ("POD-CPU", "P-CPU", true),
    ("POD-MEMORY", "P-MEM", true),
    ("PODS", "PODS", true),
    ("GPU", "GPU", false),
    ("ON-DEMAND", "OD", true),
    ("SPOT-MODEL", "SPOT", true),
];
/// The column that is left out of a narrow table when it says nothing, and cut otherwise.
const GPU: usize = 7;

fn table(selection: &Selection, look: Look<'_>, out: &mut dyn Write) -> io::Result<()> {
    let columns = look.columns;
    let types = &selection.types;
    if types.is_empty() {
        return writeln!(out, "No instance type matches.");
    }
    let mut rows: Vec<[String; 10]> = types.iter().map(cells).collect();
    let fits = |line: &String| columns.is_none_or(|columns| line.chars().count() <= columns);
    let mut lines = aligned(&rows, &COLUMNS.map(|(title, _, _)| title), 2);
    let is_short = !lines.iter().all(fits);
    if is_short {
        let columns = columns.unwrap_or(usize::MAX);
        let titles = COLUMNS.map(|(_, title, _)| title);
        lines = aligned(&rows, &titles, 1);
        let width = lines.iter().map(|line| line.chars().count()).max();
        let gpu = rows.iter().map(|row| row[GPU].len()).max().unwrap_or(0);
        let gpu = gpu.saturating_sub(width.unwrap_or(0).saturating_sub(columns));
        for row in &mut rows {
            row[GPU] = cut(&row[GPU], gpu.max(titles[GPU].len()));
        }
        lines = aligned(&rows, &titles, 1);
    }
    for line in lines {
        writeln!(out, "{line}")?;
    }
    let (n_shown, n_matched) = (types.len(), selection.n_matched);
    let shown = match n_matched.saturating_sub(n_shown) {
        0 if n_shown == 1 => "1 type".to_owned(),
        0 => format!("{n_shown} types"),
        hidden => format!("{n_shown} types, {hidden} more match"),
    };
    let of_pods = match is_short {
        true => "P-CPU and P-MEM",
        false => "POD columns",
    };
    let (currency, source) = (look.currency, look.prices);
    writeln!(
        out,
        "\n{shown}. {of_pods}: what pods can use. Prices in {currency} an hour{source}; \
         spot is the cheapest zone in our model, not market data."
    )
}

/// Titles and rows in columns. Without a GPU in any row a narrow table has no column for them.
fn aligned(rows: &[[String; 10]], titles: &[&str; 10], gap: usize) -> Vec<String> {
    let has_gpus = gap > 1 || rows.iter().any(|row| row[GPU] != "-");
    let titles = titles.map(str::to_owned);
    let mut widths = [0; 10];
    for row in std::iter::once(&titles).chain(rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; 10]| {
        let mut line = String::new();
        for (c, ((cell, width), (_, _, right))) in row.iter().zip(widths).zip(COLUMNS).enumerate() {
            match right {
                _ if c == GPU && !has_gpus => continue,
                true => line.push_str(&format!("{cell:>width$}")),
                false => line.push_str(&format!("{cell:<width$}")),
            }
            line.push_str(&" ".repeat(gap));
        }
        line.trim_end().to_owned()
    };
    std::iter::once(&titles).chain(rows).map(line).collect()
}

/// The beginning of a cell that is longer than it may be.
fn cut(cell: &str, most: usize) -> String {
    if cell.chars().count() <= most {
        return cell.to_owned();
    }
    let kept: String = cell.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

fn cells(it: &InstanceType) -> [String; 10] {
    let usable = usable(it);
    let amount = |name: ResourceName| render_amount(&name, usable.get(&name));
    [
        it.name.to_string(),
        label(it, keys::ARCH).unwrap_or("-").to_owned(),
        vcpus(it).to_string(),
        render_amount(&ResourceName::Memory, memory_mib(it) << 20),
        amount(ResourceName::Cpu),
        amount(ResourceName::Memory),
        amount(ResourceName::Pods),
        gpu(it),
        price(it, "on-demand"),
        price(it, "spot"),
    ]
}

/// `8 x a100`, or a dash.
fn gpu(it: &InstanceType) -> String {
    let kinds = [
        (labels::GPU_COUNT, labels::GPU_NAME),
        (labels::ACCELERATOR_COUNT, labels::ACCELERATOR_NAME),
    ];
    let found = kinds.into_iter().find_map(|(count, name)| {
        let (count, name) = (label(it, count)?, label(it, name)?);
        Some(match count {
            "0" => format!("part of {name}"),
            count => format!("{count} x {name}"),
        })
    });
    found.unwrap_or_else(|| "-".to_owned())
}

fn price(it: &InstanceType, capacity_type: &str) -> String {
    let cheapest: Option<NanoDollars> = (it.offerings.iter())
        .filter(|offering| {
            let value = offering.labels.get(keys::CAPACITY_TYPE);
            value.is_some_and(|value| **value == *capacity_type)
        })
        .map(|offering| offering.price)
        .min();
    cheapest.map_or_else(|| "-".to_owned(), |price| price.to_string())
}
