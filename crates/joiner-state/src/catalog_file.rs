//! A catalog of instance types from a file.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{
    InstanceType, Labels, Name, NanoDollars, Offering, ResourceName, Resources, keys,
};
use serde::Deserialize;

use crate::error::{Place, ReadError};
use crate::requests;
use crate::wire::{Amounts, Expression, Text, TextMap, text};

const PODS_DEFAULT: u64 = 110;
/// A price beyond this is a mistake.
const PRICE_MAX: f64 = 1e9;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct WireType<'a> {
    name: Option<Text<'a>>,
    architecture: Option<Text<'a>>,
    operating_systems: Option<Vec<Text<'a>>>,
    resources: Option<Amounts<'a>>,
    overhead: Option<Amounts<'a>>,
    labels: Option<TextMap<'a>>,
    offerings: Option<Vec<WireOffering<'a>>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
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

/// Reads a catalog file: a JSON array of instance types. `name` is what messages call it.
///
/// # Errors
/// What is wrong with the file, and where.
pub fn parse_instance_types(name: &str, text: &str) -> Result<Vec<InstanceType>, ReadError> {
    let text = text.trim_start_matches('\u{feff}');
    let wire: Vec<WireType<'_>> =
        serde_json::from_str(text).map_err(|error| explain(name, text, &error))?;
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
            let title = match self::text(&wire.name) {
                "" => format!("instance type number {}", ix + 1),
                name => format!("instance type {name}"),
            };
            ReadError {
                place: Some(Place {
                    source: name.into(),
                    line: 1,
                    column: None,
                }),
                ..error.of(title)
            }
        })?);
    }
    Ok(types)
}

/// The error with the path of the field, which is searched for only now.
fn explain(name: &str, text: &str, error: &serde_json::Error) -> ReadError {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = serde_path_to_error::deserialize::<_, Vec<WireType<'_>>>(&mut deserializer).err();
    let path = found.map(|found| found.path().to_string());
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let explained = ReadError::new(message).at(Place {
        source: name.into(),
        line: error.line().max(1),
        column: Some(error.column().max(1)),
    });
    match path {
        Some(path) if path != "." => explained.field(path),
        _ => explained,
    }
}

fn instance_type(wire: &WireType<'_>) -> Result<InstanceType, ReadError> {
    let name: Name = text(&wire.name).into();
    if name.is_empty() {
        return Err(ReadError::new("there is no name").field("name"));
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
        architecture => labels.insert(keys::ARCH.into(), vec![architecture.into()]),
    };
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
            offering(&name, wire).map_err(|mut error| {
                let field = error.field.unwrap_or_default();
                error.field = Some(format!("offerings[{ix}].{field}"));
                error
            })
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
