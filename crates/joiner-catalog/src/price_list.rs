//! Prices that users bring: a line for each, in place of those of the catalog.
//!
//! A line is `type,zone,capacity type,dollars an hour`; without a zone it is for all zones that have
//! no line of their own. A first line of titles, empty lines and those that begin with `#` are skipped.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{InstanceType, NanoDollars, Offering, keys, nearest};

use crate::query::price;

/// The first cell of a line of titles, in lower case.
const TITLES: [&str; 5] = [
    "type",
    "instance type",
    "instance_type",
    "instance-type",
    "instancetype",
];
/// Cells of a line.
const N_CELLS: usize = 4;
/// The most an hour may cost.
const PRICE_MAX: NanoDollars = NanoDollars::new(1_000_000_000_000_000);
/// Names that may have been meant.
const NEAR_MAX: usize = 3;

/// A line that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {problem}")]
pub struct BadPriceLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

/// Prices by type, capacity type and zone.
#[derive(Clone, Debug, Default)]
pub struct PriceList {
    /// An empty zone stands for all others.
    prices: BTreeMap<(String, String), BTreeMap<String, NanoDollars>>,
    /// Type, zone, capacity type, and the number of the line.
    lines: Vec<([String; 3], usize)>,
}

impl PriceList {
    /// Reads a list.
    ///
    /// # Errors
    /// The first line that is not one, or that says again what an earlier one has said.
    pub fn parse(text: &str) -> Result<Self, BadPriceLine> {
        let mut list = Self::default();
        let mut is_first = true;
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let cells: Vec<&str> = line.split(',').map(cell).collect();
            let is_title = TITLES.contains(&cells[0].to_lowercase().as_str());
            if std::mem::take(&mut is_first) && is_title {
                continue;
            }
            let bad = |problem: String| BadPriceLine {
                line: number,
                problem,
            };
            list.add(number, &cells).map_err(bad)?;
        }
        Ok(list)
    }

    fn add(&mut self, number: usize, cells: &[&str]) -> Result<(), String> {
        let [name, zone, capacity_type, dollars] = cells else {
            return Err(format!(
                "there are {} cells and not {N_CELLS}: write type,zone,capacity type,dollars an \
                 hour, and leave the zone empty for all zones",
                cells.len()
            ));
        };
        if name.is_empty() || capacity_type.is_empty() {
            return Err("type and capacity type must not be empty".to_owned());
        }
        let price = price(dollars).map_err(|error| error.to_string())?;
        if price > PRICE_MAX {
            return Err(format!("{dollars} dollars an hour is no price"));
        }
        let key = ((*name).to_owned(), (*capacity_type).to_owned());
        let zones = self.prices.entry(key).or_default();
        if zones.insert((*zone).to_owned(), price).is_some() {
            return Err(format!(
                "{name} as {capacity_type} {} has a price in an earlier line",
                in_zone(zone)
            ));
        }
        let names = [*name, *zone, *capacity_type].map(str::to_owned);
        self.lines.push((names, number));
        Ok(())
    }

    /// Checks that all that the list has a price for is for sale.
    ///
    /// # Errors
    /// The first line with a type, zone or capacity type that the catalog does not have.
    pub fn check<'t>(
        &self,
        types: impl Iterator<Item = &'t InstanceType>,
    ) -> Result<(), BadPriceLine> {
        let mut names = BTreeSet::new();
        let (mut zones, mut capacity_types) = (BTreeSet::new(), BTreeSet::new());
        let mut sold = BTreeSet::new();
        for own in types {
            names.insert(&*own.name);
            for offering in &own.offerings {
                let (zone, capacity_type) = labels(offering);
                zones.insert(zone);
                capacity_types.insert(capacity_type);
                sold.insert((&*own.name, zone, capacity_type));
                sold.insert((&*own.name, "", capacity_type));
            }
        }
        for ([name, zone, capacity_type], line) in &self.lines {
            let known = [
                ("instance type", name, &names),
                ("zone", zone, &zones),
                ("capacity type", capacity_type, &capacity_types),
            ];
            let all_zones = |what: &str, text: &str| what == "zone" && text.is_empty();
            let mut unknown = known.into_iter().filter(|(what, text, known)| {
                !known.contains(text.as_str()) && !all_zones(what, text)
            });
            let problem = match unknown.next() {
                Some((what, text, known)) => {
                    format!(
                        "there is no {what} {text:?} in the catalog{}",
                        meant(text, known)
                    )
                }
                None if sold.contains(&(name.as_str(), zone.as_str(), capacity_type.as_str())) => {
                    continue;
                }
                None => format!(
                    "the catalog does not sell {name} as {capacity_type} {}",
                    in_zone(zone)
                ),
            };
            return Err(BadPriceLine {
                line: *line,
                problem,
            });
        }
        Ok(())
    }

    /// Replaces prices. Returns how many offerings the list has no price for; these keep theirs.
    pub fn apply(&self, types: &mut [InstanceType]) -> usize {
        let mut n_kept = 0;
        for own in types {
            for offering in &mut own.offerings {
                let (zone, capacity_type) = labels(offering);
                let key = (own.name.to_string(), capacity_type.to_owned());
                let prices = self.prices.get(&key);
                match prices.and_then(|zones| zones.get(zone).or_else(|| zones.get(""))) {
                    Some(price) => offering.price = *price,
                    None => n_kept += 1,
                }
            }
        }
        n_kept
    }
}

/// Without spaces and quotes around it.
fn cell(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(text).trim()
}

fn labels(offering: &Offering) -> (&str, &str) {
    let label = |key: &str| offering.labels.get(key).map_or("", |value| &**value);
    (label(keys::ZONE), label(keys::CAPACITY_TYPE))
}

fn in_zone(zone: &str) -> String {
    match zone {
        "" => "in any zone".to_owned(),
        zone => format!("in {zone}"),
    }
}

/// Names that may have been meant.
fn meant(text: &str, known: &BTreeSet<&str>) -> String {
    let near: Vec<&str> = nearest(text, known.iter().copied())
        .take(NEAR_MAX)
        .collect();
    match near.is_empty() {
        true => String::new(),
        false => format!("; did you mean {}?", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClassSettings, ec2};

    fn types() -> Vec<InstanceType> {
        ec2("us-east-1", &ClassSettings::default()).unwrap().types
    }

    fn price_of(types: &[InstanceType], name: &str, zone: &str, capacity_type: &str) -> String {
        let own = types.iter().find(|own| &*own.name == name).unwrap();
        let mut offerings = own.offerings.iter();
        let own = offerings.find(|own| labels(own) == (zone, capacity_type));
        own.unwrap().price.to_string()
    }

    #[test]
    fn prices_are_replaced_for_a_zone_or_for_all() {
        let text = "\u{feff}Instance Type,Zone,Capacity,Price\r\n\r\n# ours\r\n\
                    m5.large,,on-demand,0.05\r\n\
                    \"m5.large\", us-east-1b ,on-demand,$0.04\r\n";
        let list = PriceList::parse(text).unwrap();
        let mut types = types();
        assert_eq!(list.check(types.iter()), Ok(()));
        let spot = price_of(&types, "m5.large", "us-east-1a", "spot");
        let n_offerings: usize = types.iter().map(|own| own.offerings.len()).sum();
        assert_eq!(list.apply(&mut types), n_offerings - 6);
        let on_demand = |zone| price_of(&types, "m5.large", zone, "on-demand");
        assert_eq!(on_demand("us-east-1a"), "0.05");
        assert_eq!(on_demand("us-east-1b"), "0.04");
        assert_eq!(price_of(&types, "m5.large", "us-east-1a", "spot"), spot);
    }

    #[test]
    fn bad_lines_are_told_with_their_number() {
        for (text, said) in [
            ("m5.large,,spot", "1: there are 3 cells and not 4"),
            (
                "type,zone,capacity,price\nm5.large,,spot,free",
                "2: \"free\" is not a price",
            ),
            ("m5.large,,spot,-1", "1: \"-1\" is not a price"),
            (
                "m5.large,,spot,99999999",
                "1: 99999999 dollars an hour is no price",
            ),
            (",,spot,1", "1: type and capacity type must not be empty"),
            (
                "m5.large,,spot,1\nm5.large,,spot,2",
                "2: m5.large as spot in any zone has a price in an earlier line",
            ),
            (
                "m5.large,,spot,1\ntype,zone,capacity,price",
                "2: \"price\" is not a price",
            ),
        ] {
            let error = PriceList::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn what_is_not_for_sale_is_told_with_what_may_have_been_meant() {
        let types = types();
        for (text, said) in [
            (
                "m5.large,,spot,1\nm5.larg,,spot,1",
                "2: there is no instance type \"m5.larg\" in the catalog; did you mean m5.large?",
            ),
            (
                "m5.large,us-est-1a,spot,1",
                "1: there is no zone \"us-est-1a\" in the catalog; did you mean us-east-1a?",
            ),
            (
                "m5.large,,sport,1",
                "1: there is no capacity type \"sport\" in the catalog; did you mean spot?",
            ),
            (
                "moon.1,,spot,1",
                "1: there is no instance type \"moon.1\" in the catalog",
            ),
        ] {
            let list = PriceList::parse(text).unwrap();
            assert_eq!(list.check(types.iter()).unwrap_err().to_string(), said);
        }
    }
}
