//! A catalog of instance types from a file.

use std::collections::{BTreeMap, BTreeSet};

use joiner_api::names::{key_error, label_value_error};
use joiner_model::{
    InstanceType, Labels, Name, NanoDollars, Offering, ResourceName, Resources, keys,
};
use serde::Deserialize;
use serde_path_to_error::Segment;

use crate::error::{Place, ReadError};
use crate::requests;
use crate::unique::UniqueKeys;
use crate::wire::strict::object_only;
use crate::wire::{Amounts, Expression, Text, TextMap, text};
use crate::wording::{self, shown};

const PODS_DEFAULT: u64 = 110;
/// A price beyond this is a mistake.
const PRICE_MAX: f64 = 1e9;

#[derive(Deserialize)]
#[serde(
    remote = "Self",
    rename_all = "camelCase",
    bound(deserialize = "'de: 'a"),
    expecting = "an instance type"
)]
struct WireType<'a> {
    name: Option<Text<'a>>,
    architecture: Option<Text<'a>>,
    operating_systems: Option<Vec<Text<'a>>>,
    resources: Option<Amounts<'a>>,
    overhead: Option<Amounts<'a>>,
    labels: Option<TextMap<'a>>,
    offerings: Option<Vec<WireOffering<'a>>>,
}

object_only!(WireType<'a>);

#[derive(Deserialize)]
#[serde(
    remote = "Self",
    bound(deserialize = "'de: 'a"),
    expecting = "an offering"
)]
struct WireOffering<'a> {
    #[serde(rename = "Price", alias = "price")]
    price: Option<f64>,
    #[serde(rename = "Available", alias = "available")]
    available: Option<bool>,
    #[serde(rename = "Requirements", alias = "requirements")]
    requirements: Option<Vec<Expression<'a>>>,
    #[serde(rename = "ReservationCapacity", alias = "reservationCapacity")]
    reservation_capacity: Option<i64>,
}

object_only!(WireOffering<'a>);

/// Reads a catalog file: a JSON array of instance types. `name` is what messages call it.
///
/// # Errors
/// What is wrong with the file, and where.
pub fn parse_instance_types(name: &str, text: &str) -> Result<Vec<InstanceType>, ReadError> {
    let text = text.trim_start_matches('\u{feff}');
    if !text.trim_start().starts_with('[') {
        let problem =
            "must be a JSON list of instance types, such as joiner catalog -o json prints";
        return Err(ReadError::new(problem).at(Place {
            source: name.into(),
            line: 1,
            column: None,
        }));
    }
    serde_json::from_str::<UniqueKeys>(text).map_err(|e| explain::<UniqueKeys>(name, text, &e))?;
    let wire: Vec<WireType<'_>> =
        serde_json::from_str(text).map_err(|e| explain::<Vec<WireType<'_>>>(name, text, &e))?;
    let mut seen = BTreeSet::new();
    let mut types = Vec::with_capacity(wire.len());
    for (ix, wire) in wire.iter().enumerate() {
        let converted = instance_type(wire).and_then(|converted| {
            if seen.insert(converted.name.clone()) {
                return Ok(converted);
            }
            Err(ReadError::new("is there twice; remove one of them"))
        });
        types.push(converted.map_err(|error| {
            let place = Place {
                source: name.into(),
                line: 1,
                column: None,
            };
            error.of(title(ix, self::text(&wire.name))).at(place)
        })?);
    }
    Ok(types)
}

fn title(ix: usize, name: &str) -> String {
    match name {
        "" => format!("instance type number {}", ix + 1),
        name => format!("instance type {name}"),
    }
}

/// The error with the path of the field, which is searched for only now.
fn explain<'a, T: Deserialize<'a>>(
    name: &str,
    text: &'a str,
    error: &serde_json::Error,
) -> ReadError {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = serde_path_to_error::deserialize::<_, T>(&mut deserializer).err();
    let path = found.map(|found| found.path().clone());
    let explained = ReadError::new(wording::problem(error)).at(Place {
        source: name.into(),
        line: error.line().max(1),
        column: Some(error.column().max(1)),
    });
    let mut segments = path.iter().flatten();
    let Some(Segment::Seq { index }) = segments.next() else {
        return explained;
    };
    let types: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let known = types[*index]["name"].as_str().unwrap_or_default();
    let explained = explained.of(title(*index, known));
    match wording::path(segments) {
        path if path.is_empty() => explained,
        path => explained.field(path),
    }
}

fn instance_type(wire: &WireType<'_>) -> Result<InstanceType, ReadError> {
    let name: Name = text(&wire.name).into();
    if name.is_empty() {
        return Err(ReadError::new("there is no name").field("name"));
    }
    check_label(keys::INSTANCE_TYPE, &name).map_err(|e| e.field("name"))?;
    for (key, value) in wire.labels.iter().flatten() {
        check_label(key, value).map_err(|e| e.field("labels"))?;
    }
    let mut labels: BTreeMap<Name, Vec<Name>> = wire
        .labels
        .iter()
        .flatten()
        .map(|(key, value)| (keys::canonical(key).into(), vec![Name::from(&**value)]))
        .collect();
    labels.insert(keys::INSTANCE_TYPE.into(), vec![name.clone()]);
    match text(&wire.architecture) {
        "" => return Err(ReadError::new("there is no architecture").field("architecture")),
        architecture => {
            check_label(keys::ARCH, architecture).map_err(|e| e.field("architecture"))?;
            labels.insert(keys::ARCH.into(), vec![architecture.into()]);
        }
    }
    let systems = wire.operating_systems.as_deref().unwrap_or_default();
    let mut systems: Vec<Name> = systems.iter().map(|os| Name::from(&**os)).collect();
    if systems.is_empty() {
        systems.push("linux".into());
    }
    labels.insert(keys::OS.into(), systems);
    let mut capacity = requests::available(wire.resources.as_ref());
    if capacity.named(&ResourceName::Pods).is_none() {
        capacity.set(ResourceName::Pods, PODS_DEFAULT);
    }
    let offerings = wire.offerings.iter().flatten().enumerate();
    let offerings = offerings
        .map(|(ix, wire)| {
            offering(&name, wire).map_err(|error| error.below(&format!("offerings[{ix}]")))
        })
        .collect::<Result<_, _>>()?;
    Ok(InstanceType {
        name,
        labels,
        capacity,
        overhead: wire
            .overhead
            .as_ref()
            .map(requests::overhead)
            .unwrap_or_default(),
        offerings,
    })
}

fn offering(type_name: &str, wire: &WireOffering<'_>) -> Result<Offering, ReadError> {
    let mut labels = Labels::new();
    for (ix, requirement) in wire.requirements.iter().flatten().enumerate() {
        let key = keys::canonical(text(&requirement.key));
        match (text(&requirement.operator), requirement.values.as_deref()) {
            ("In", Some([value])) if !key.is_empty() => {
                let field = format!("Requirements[{ix}]");
                check_label(key, value).map_err(|e| e.field(field))?;
                labels.insert(key.into(), Name::from(&**value));
            }
            (operator, values) => {
                let problem = format!(
                    "an offering has exactly one value of each label; {key:?} {operator} with {} \
                     values is not that",
                    values.map_or(0, <[_]>::len)
                );
                return Err(ReadError::new(problem).field(format!("Requirements[{ix}]")));
            }
        }
    }
    let reservation = match wire.reservation_capacity {
        None => None,
        Some(count) => {
            let count = u32::try_from(count).map_err(|_| {
                ReadError::new(format!("{count} is not a number of instances"))
                    .field("ReservationCapacity")
            })?;
            reservation_id(type_name, &labels).map(|id| (id, count))
        }
    };
    Ok(Offering {
        labels,
        price: price(wire.price)?,
        available: wire.available.unwrap_or(true),
        reservation,
        extra_capacity: Resources::new(),
    })
}

/// Refuses what no node can have as a label.
fn check_label(key: &str, value: &str) -> Result<(), ReadError> {
    match key_error(key).or_else(|| label_value_error(value)) {
        Some(why) => {
            let label = format!("{}={}", shown(key), shown(value));
            Err(ReadError::new(format!(
                "{label:?} is not a label: it {why}"
            )))
        }
        None => Ok(()),
    }
}

/// What a reserved offering's reservation is called: by its label, or else by type and zone.
fn reservation_id(type_name: &str, labels: &Labels) -> Option<Name> {
    if labels
        .get(keys::CAPACITY_TYPE)
        .is_none_or(|t| &**t != "reserved")
    {
        return None;
    }
    let label = labels
        .iter()
        .find(|(key, _)| key.ends_with("reservation-id"));
    let zone = labels.get(keys::ZONE).map_or("", |zone| zone);
    Some(match label {
        Some((_, id)) => id.clone(),
        None => format!("{type_name}/{zone}").into(),
    })
}

fn price(given: Option<f64>) -> Result<NanoDollars, ReadError> {
    let wrong = |problem: String| ReadError::new(problem).field("Price");
    let dollars = given.ok_or_else(|| wrong("there is no price".to_owned()))?;
    nano_dollars(dollars).ok_or_else(|| wrong(format!("{dollars} is not a price")))
}

/// Dollars as the model counts them, rounded to the nearest; `None` for what is not a price.
pub(crate) fn nano_dollars(dollars: f64) -> Option<NanoDollars> {
    if !(0.0..=PRICE_MAX).contains(&dollars) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked above"
    )]
    let nanos = (dollars * 1e9).round() as u64;
    Some(NanoDollars::new(nanos))
}
