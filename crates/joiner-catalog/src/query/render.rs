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

/// Prints a selection. JSON and YAML are in the format of catalog files, with `allocatable` (what
/// pods can use) added; labels that may have several values are left out there, because the
/// format has no place for them.
///
/// # Errors
/// The output cannot be written.
pub fn render(
    selection: &Selection,
    format: Format,
    currency: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => table(selection, currency, out),
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

/// Column titles, and whether the column holds numbers, which end at the same place.
const COLUMNS: [(&str, bool); 10] = [
    ("TYPE", false),
    ("ARCH", false),
    ("VCPU", true),
    ("MEMORY", true),
    ("POD-CPU", true),
    ("POD-MEMORY", true),
    ("PODS", true),
    ("GPU", false),
    ("ON-DEMAND", true),
    ("SPOT-MODEL", true),
];

fn table(selection: &Selection, currency: &str, out: &mut dyn Write) -> io::Result<()> {
    let types = &selection.types;
    if types.is_empty() {
        return writeln!(out, "No instance type matches.");
    }
    let rows: Vec<[String; 10]> = types.iter().map(cells).collect();
    let mut widths = COLUMNS.map(|(title, _)| title.len());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    let titles = COLUMNS.map(|(title, _)| title.to_owned());
    for row in std::iter::once(&titles).chain(&rows) {
        let mut line = String::new();
        for ((cell, width), (_, right)) in row.iter().zip(widths).zip(COLUMNS) {
            if right {
                line.push_str(&format!("{cell:>width$}  "));
            } else {
                line.push_str(&format!("{cell:<width$}  "));
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    let (n_shown, n_matched) = (types.len(), selection.n_matched);
    let shown = match n_matched.saturating_sub(n_shown) {
        0 if n_shown == 1 => "1 type".to_owned(),
        0 => format!("{n_shown} types"),
        hidden => format!("{n_shown} types, {hidden} more match"),
    };
    writeln!(
        out,
        "\n{shown}. POD columns: what pods can use. Prices in {currency} an hour; \
         spot is the cheapest zone in our model, not market data."
    )
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
