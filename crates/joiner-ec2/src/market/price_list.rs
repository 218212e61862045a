//! Price lists: what to ask the pricing service and EC2, and how to read their answers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_model::{Name, NanoDollars};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::SpotPrice;

/// Products a page.
const PRODUCTS_PAGE: i32 = 100;
/// Spot prices a page.
const SPOT_PAGE: i32 = 2000;
/// Regions whose on-demand prices the service does not know.
const GOVERNMENT: &str = "us-gov-";

/// A question to the pricing service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct GetProducts {
    /// What products have in common.
    pub filters: Vec<ProductFilter>,
    /// Products a page.
    pub max_results: i32,
    /// `AmazonEC2`.
    pub service_code: String,
}

/// A property of products.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ProductFilter {
    /// Which.
    pub field: String,
    /// `TERM_MATCH`.
    pub r#type: String,
    /// Its value.
    pub value: String,
}

/// A question about spot prices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SpotPriceHistory {
    /// Prices a page.
    pub max_results: i32,
    /// Operating systems.
    pub product_descriptions: Vec<String>,
    /// From when on; now gives the price that holds now.
    pub start_time: Option<Timestamp>,
}

/// The region that answers for the prices of another one; none where prices are not known.
#[must_use]
pub fn pricing_region(region: &str) -> Option<&'static str> {
    if region.starts_with(GOVERNMENT) {
        return None;
    }
    Some(match region.split('-').next() {
        Some("ap") => "ap-south-1",
        Some("cn") => "cn-northwest-1",
        Some("eu") => "eu-central-1",
        _ => "us-east-1",
    })
}

/// The questions about on-demand prices: of ordinary machines, and of bare metal.
#[must_use]
pub fn pricing_queries(region: &str) -> [GetProducts; 2] {
    let query = |tenancy: &str, family: &str| {
        let pairs = [
            ("regionCode", region),
            ("serviceCode", "AmazonEC2"),
            ("preInstalledSw", "NA"),
            ("operatingSystem", "Linux"),
            ("capacitystatus", "Used"),
            ("marketoption", "OnDemand"),
            ("tenancy", tenancy),
            ("productFamily", family),
        ];
        let filter = |(field, value): (&str, &str)| ProductFilter {
            field: field.to_owned(),
            r#type: "TERM_MATCH".to_owned(),
            value: value.to_owned(),
        };
        GetProducts {
            filters: pairs.into_iter().map(filter).collect(),
            max_results: PRODUCTS_PAGE,
            service_code: "AmazonEC2".to_owned(),
        }
    };
    [
        query("Shared", "Compute Instance"),
        query("Dedicated", "Compute Instance (bare metal)"),
    ]
}

/// The question about spot prices.
#[must_use]
pub fn spot_price_query(now: Timestamp) -> SpotPriceHistory {
    SpotPriceHistory {
        max_results: SPOT_PAGE,
        product_descriptions: ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]
            .map(str::to_owned)
            .into(),
        start_time: Some(now),
    }
}

/// Prices by type out of products of the pricing service, each a JSON text. A product without a price, or with a
/// price of zero, has none.
#[must_use]
pub fn on_demand_prices(products: &[String], region: &str) -> BTreeMap<Name, NanoDollars> {
    let currency = if region.starts_with("cn-") {
        "CNY"
    } else {
        "USD"
    };
    let priced = products.iter().filter_map(|text| {
        let product: Value = serde_json::from_str(text).ok()?;
        let name = product["product"]["attributes"]["instanceType"].as_str()?;
        let terms = product["terms"]["OnDemand"].as_object()?;
        let dimensions = terms
            .values()
            .filter_map(|term| term["priceDimensions"].as_object());
        let prices = dimensions.flat_map(|dimensions| dimensions.values());
        let prices =
            prices.filter_map(|dimension| dollars(dimension["pricePerUnit"][currency].as_str()?));
        let price = prices.filter(|price| *price > NanoDollars::ZERO).max()?;
        Some((Name::from(name), price))
    });
    priced.collect()
}

/// Prices by type and zone out of the history: of several, the newest.
pub(super) fn spot_prices(history: &[SpotPrice]) -> BTreeMap<(Name, Name), NanoDollars> {
    let mut newest: BTreeMap<(Name, Name), (&str, NanoDollars)> = BTreeMap::new();
    for spot in history {
        let Some(price) = dollars(&spot.spot_price).filter(|price| *price > NanoDollars::ZERO)
        else {
            continue;
        };
        let key = (
            spot.instance_type.as_str().into(),
            spot.availability_zone.as_str().into(),
        );
        let slot = newest.entry(key).or_insert((&spot.timestamp, price));
        if *slot.0 < *spot.timestamp {
            *slot = (&spot.timestamp, price);
        }
    }
    newest
        .into_iter()
        .map(|(key, (_, price))| (key, price))
        .collect()
}

/// A decimal number of dollars, rounded to the nearest nano-dollar.
fn dollars(text: &str) -> Option<NanoDollars> {
    const PLACES: usize = 9;
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(decimals) {
        return None;
    }
    let (kept, rest) = decimals.split_at(decimals.len().min(PLACES));
    let nanos: u64 = format!("{kept:0<PLACES$}").parse().ok()?;
    let up = u64::from(rest.bytes().next().is_some_and(|digit| digit >= b'5'));
    let whole: u64 = whole.parse().ok()?;
    let total = whole
        .checked_mul(1_000_000_000)?
        .checked_add(nanos)?
        .checked_add(up)?;
    Some(NanoDollars::new(total))
}
