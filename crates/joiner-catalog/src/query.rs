//! Filter, sort and print a catalog.
//!
//! *Flow*: a [`Query`] says what is wanted, [`Query::select`] applies it, [`render`] prints the
//! result. Filters on zone, capacity type and price select offerings; a type stays while it has an
//! offering left. Offerings that cannot be launched are never selected.

mod pattern;
mod render;
mod span;

use std::cmp::Ordering;
use std::str::FromStr;

use joiner_model::{InstanceType, NanoDollars, ResourceName, keys};

use crate::labels;
use crate::table::parse_price;
pub use render::{Format, Look, render};
pub use span::{BadRange, Span};

/// What to list. An empty filter lets everything through.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Names of types: patterns with `*` and `?`, or else prefixes.
    pub names: Vec<String>,
    /// Families, exactly: `m5`.
    pub families: Vec<String>,
    /// Categories, exactly: `m`.
    pub categories: Vec<String>,
    /// Number of vCPUs.
    pub vcpus: Option<Span>,
    /// Advertised memory in MiB.
    pub memory_mib: Option<Span>,
    /// Architectures: `amd64`, `arm64`.
    pub archs: Vec<String>,
    /// GPUs and machine-learning chips.
    pub gpu: Option<GpuFilter>,
    /// Names of zones.
    pub zones: Vec<String>,
    /// `on-demand`, `spot`.
    pub capacity_types: Vec<String>,
    /// The most an hour may cost.
    pub max_price: Option<NanoDollars>,
    /// In which order.
    pub sort: Sort,
    /// In the opposite order.
    pub descending: bool,
    /// At most so many types.
    pub limit: Option<usize>,
}

/// What a query found.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The types, in the order asked for, each with the offerings asked for.
    pub types: Vec<InstanceType>,
    /// How many matched before the limit.
    pub n_matched: usize,
}

/// No offering of the catalog is in this zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown zone \"{zone}\"; the region has {}", known.join(", "))]
pub struct UnknownZone {
    /// What was asked for.
    pub zone: String,
    /// The zones there are.
    pub known: Vec<String>,
}

impl Query {
    /// The types of a catalog that match.
    ///
    /// # Errors
    /// A zone that the catalog does not have.
    pub fn select(&self, types: Vec<InstanceType>) -> Result<Selection, UnknownZone> {
        self.check_zones(&types)?;
        let mut types: Vec<InstanceType> = types
            .into_iter()
            .filter(|instance_type| self.wants_type(instance_type))
            .filter_map(|mut instance_type| {
                instance_type
                    .offerings
                    .retain(|offering| self.wants_offering(offering));
                (!instance_type.offerings.is_empty()).then_some(instance_type)
            })
            .collect();
        types.sort_by(|a, b| self.order(a, b));
        let n_matched = types.len();
        types.truncate(self.limit.unwrap_or(n_matched));
        Ok(Selection { types, n_matched })
    }

    fn check_zones(&self, types: &[InstanceType]) -> Result<(), UnknownZone> {
        if self.zones.is_empty() {
            return Ok(());
        }
        let mut known: Vec<String> = (types.iter())
            .flat_map(|instance_type| &instance_type.offerings)
            .filter_map(|offering| offering.labels.get(keys::ZONE))
            .map(ToString::to_string)
            .collect();
        known.sort_unstable();
        known.dedup();
        match self.zones.iter().find(|zone| !known.contains(zone)) {
            Some(zone) => Err(UnknownZone {
                zone: zone.clone(),
                known,
            }),
            None => Ok(()),
        }
    }

    fn wants_type(&self, it: &InstanceType) -> bool {
        let is_in = |wanted: &[String], key| {
            let value = label(it, key).unwrap_or("");
            wanted.is_empty() || wanted.iter().any(|one| one == value)
        };
        let in_span =
            |span: Option<Span>, value| span.is_none_or(|span: Span| span.contains(value));
        let named = self.names.is_empty()
            || (self.names.iter()).any(|name| pattern::matches_name(name, &it.name));
        named
            && is_in(&self.families, labels::FAMILY)
            && is_in(&self.categories, labels::CATEGORY)
            && is_in(&self.archs, keys::ARCH)
            && in_span(self.vcpus, vcpus(it))
            && in_span(self.memory_mib, memory_mib(it))
            && self.gpu.as_ref().is_none_or(|gpu| gpu.matches(it))
    }

    fn wants_offering(&self, offering: &joiner_model::Offering) -> bool {
        let is_in = |wanted: &[String], key| {
            let value = offering.labels.get(key).map_or("", |value| &**value);
            wanted.is_empty() || wanted.iter().any(|one| one == value)
        };
        offering.available
            && is_in(&self.zones, keys::ZONE)
            && is_in(&self.capacity_types, keys::CAPACITY_TYPE)
            && self.max_price.is_none_or(|most| offering.price <= most)
    }

    fn order(&self, a: &InstanceType, b: &InstanceType) -> Ordering {
        let family = |it| label(it, labels::FAMILY).unwrap_or("").to_owned();
        let order = match self.sort {
            Sort::Family => (family(a).cmp(&family(b)))
                .then_with(|| vcpus(a).cmp(&vcpus(b)))
                .then_with(|| memory_mib(a).cmp(&memory_mib(b))),
            Sort::Name => Ordering::Equal,
            Sort::Price => cheapest(a).cmp(&cheapest(b)),
            Sort::Vcpu => vcpus(a).cmp(&vcpus(b)),
            Sort::Memory => memory_mib(a).cmp(&memory_mib(b)),
            Sort::PricePerVcpu => per(a, vcpus, b),
            Sort::PricePerGib => per(a, memory_mib, b),
        };
        let order = order.then_with(|| a.name.cmp(&b.name));
        if self.descending {
            order.reverse()
        } else {
            order
        }
    }
}

/// Orders to list types in; types that are equal in it are ordered by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By family, then from small to large.
    #[default]
    Family,
    /// By name, letter by letter.
    Name,
    /// By the price of the cheapest offering.
    Price,
    /// By vCPUs.
    Vcpu,
    /// By advertised memory.
    Memory,
    /// By the price of the cheapest offering, per vCPU.
    PricePerVcpu,
    /// By the price of the cheapest offering, per GiB of advertised memory.
    PricePerGib,
}

impl Sort {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Family,
        Self::Name,
        Self::Price,
        Self::Vcpu,
        Self::Memory,
        Self::PricePerVcpu,
        Self::PricePerGib,
    ];

    /// How users write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Family => "family",
            Self::Name => "name",
            Self::Price => "price",
            Self::Vcpu => "vcpu",
            Self::Memory => "memory",
            Self::PricePerVcpu => "price-per-vcpu",
            Self::PricePerGib => "price-per-gib",
        }
    }
}

/// Which GPUs or machine-learning chips a type must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuFilter {
    /// So many of them; zero means none.
    Count(Span),
    /// Of this kind or maker; `*` and `?` match anything.
    Kind(String),
}

impl FromStr for GpuFilter {
    type Err = BadRange;

    /// A number or range is a count, anything else that starts with a letter or pattern a kind.
    fn from_str(text: &str) -> Result<Self, BadRange> {
        if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*' || c == '?') {
            return Ok(Self::Kind(text.to_ascii_lowercase()));
        }
        Span::counts(text).map(Self::Count)
    }
}

impl GpuFilter {
    fn matches(&self, it: &InstanceType) -> bool {
        match self {
            Self::Count(span) => {
                let count = |key| label_number(it, key).unwrap_or(0);
                span.contains(count(labels::GPU_COUNT) + count(labels::ACCELERATOR_COUNT))
            }
            Self::Kind(kind) => [
                labels::GPU_NAME,
                labels::GPU_MAKER,
                labels::ACCELERATOR_NAME,
                labels::ACCELERATOR_MAKER,
            ]
            .into_iter()
            .filter_map(|key| label(it, key))
            .any(|value| pattern::matches(kind, value)),
        }
    }
}

/// The text is not a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a price such as 0.5 (an hour, at most nine decimals)")]
pub struct BadPrice(pub String);

/// A price an hour as users write it, with or without a dollar sign.
///
/// # Errors
/// The text is not a plain decimal.
pub fn price(text: &str) -> Result<NanoDollars, BadPrice> {
    let number = text.strip_prefix('$').unwrap_or(text);
    parse_price(number).ok_or_else(|| BadPrice(text.to_owned()))
}

fn label<'a>(it: &'a InstanceType, key: &str) -> Option<&'a str> {
    it.labels.get(key)?.first().map(|value| &**value)
}

fn label_number(it: &InstanceType, key: &str) -> Option<u64> {
    label(it, key)?.parse().ok()
}

fn vcpus(it: &InstanceType) -> u64 {
    it.capacity.get(&ResourceName::Cpu) / 1000
}

/// As advertised, or else what nodes have.
fn memory_mib(it: &InstanceType) -> u64 {
    let mib = || it.capacity.get(&ResourceName::Memory) >> 20;
    label_number(it, labels::MEMORY).unwrap_or_else(mib)
}

fn cheapest(it: &InstanceType) -> Option<NanoDollars> {
    it.offerings.iter().map(|offering| offering.price).min()
}

/// Compares prices per unit without dividing.
fn per(a: &InstanceType, units: impl Fn(&InstanceType) -> u64, b: &InstanceType) -> Ordering {
    let price = |it| u128::from(cheapest(it).map_or(u64::MAX, NanoDollars::get));
    let left = price(a) * u128::from(units(b));
    left.cmp(&(price(b) * u128::from(units(a))))
}
