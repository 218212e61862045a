//! Limits: those of a namespace, and how a container's limit follows its request.

use std::collections::BTreeMap;

use serde_json::Value;

use super::amounts::{Resource, Resources};
use super::spec::quantities;
use crate::part::{FieldError, Part};
use crate::quantity::Quantity;

/// What the LimitRanges of a namespace say together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitRanges {
    /// About each container.
    pub container: Bounds,
    /// About all containers of a pod together.
    pub pod: Bounds,
}

/// What may be requested, and how much may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// At least.
    pub min: Resources<Quantity>,
    /// At most.
    pub max: Resources<Quantity>,
    /// The limit where there is none.
    pub default: Resources<Quantity>,
}

impl LimitRanges {
    /// Reads LimitRange objects: the lowest maximum, the highest minimum and the last default count.
    ///
    /// # Errors
    /// The field that cannot be read.
    pub fn read<'v>(objects: impl IntoIterator<Item = &'v Value>) -> Result<Self, FieldError> {
        let mut ranges = Self::default();
        for object in objects {
            let top = Part::top(object);
            for limit in top.field("spec").field("limits").items()? {
                let bounds = match limit.field("type").text()? {
                    Some("Container") => &mut ranges.container,
                    Some("Pod") => &mut ranges.pod,
                    Some(_) | None => continue,
                };
                for (resource, amount) in quantities(&limit.field("max"))? {
                    let entry = bounds.max.entry(resource).or_insert(amount);
                    *entry = amount.min(*entry);
                }
                for (resource, amount) in quantities(&limit.field("min"))? {
                    let entry = bounds.min.entry(resource).or_insert(amount);
                    *entry = amount.max(*entry);
                }
                bounds.default.extend(quantities(&limit.field("default"))?);
            }
        }
        Ok(ranges)
    }
}

/// Amounts of any resources by name.
pub(super) type Named = BTreeMap<String, Quantity>;

/// An amount that is there and not nothing.
pub(super) fn set(amounts: &Named, resource: Resource) -> Option<Quantity> {
    let amount = amounts.get(resource.as_str()).copied();
    amount.filter(|amount| amount.units() != 0)
}

/// Which way a fraction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Down,
    Up,
}

/// `amount` times `numerator` by `denominator`, in whole thousandths of CPU or bytes of memory; and
/// whether that was too much to count.
pub(super) fn proportion(
    resource: Resource,
    amount: Quantity,
    (numerator, denominator): (Quantity, Quantity),
    rounding: Rounding,
) -> (Quantity, bool) {
    let count = |quantity: Quantity| match resource {
        Resource::Cpu => i128::from(quantity.millis()),
        Resource::Memory => i128::from(quantity.units()),
    };
    let (product, by) = (count(amount) * count(numerator), count(denominator).max(1));
    let up = i128::from(rounding == Rounding::Up && product.rem_euclid(by) != 0);
    let scaled = i64::try_from(product.div_euclid(by) + up);
    let (whole, overflows) = (scaled.unwrap_or(i64::MAX), scaled.is_err());
    let suffixes = amount.suffixes();
    let quantity = match resource {
        Resource::Memory if !overflows => Quantity::of_units(whole, suffixes),
        Resource::Cpu | Resource::Memory => Quantity::of_millis(whole, suffixes),
    };
    (quantity, overflows)
}

/// The limit that goes with a new request, in the proportion that limit and request had; and whether that
/// was too much to count. `None` where no limit is set.
pub(super) fn proportional_limit(
    resource: Resource,
    (limits, requests): (&Named, &Named),
    request: Quantity,
    default: Option<Quantity>,
) -> Option<(Quantity, bool)> {
    let limit = set(limits, resource)
        .or(default)
        .filter(|limit| limit.units() != 0)?;
    if request.units() == 0 {
        return None;
    }
    match set(requests, resource) {
        // Without a request the limit counts as one, and with one that is equal they stay so.
        None => Some((request, false)),
        Some(old) if old.millis() == limit.millis() => Some((request, false)),
        Some(old) => Some(proportion(resource, limit, (request, old), Rounding::Down)),
    }
}
