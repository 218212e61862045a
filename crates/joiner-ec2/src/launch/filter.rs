//! Which types and offerings a fleet may be made of.
//!
//! Each filter takes what is left and gives what stays; when nothing stays, there is no capacity for the claim.

use std::collections::{BTreeMap, BTreeSet};

use joiner_api::labels::ZONE;
use joiner_model::{InstanceType, MinValuesPolicy, Name, NanoDollars, Offering, ResourceName};

use super::offer::label;
use super::{Ask, CapacityType, Reservation, ReservationKind};

/// The most types in one fleet request.
pub const TYPES_MAX: usize = 60;

/// Resources that only types bought for them should be bought for.
const EXOTIC: [&str; 4] = [
    "nvidia.com/gpu",
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    "habana.ai/gaudi",
];

/// Why no type is left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTypes {
    /// None is what the claim asks for, or all of them are sold out.
    #[error(
        "no instance type satisfies the claim and is available, of {n_types} that the class can launch"
    )]
    Unavailable {
        /// How many there are.
        n_types: usize,
    },
    /// Those that are left have too few different values of a label.
    #[error(
        "minValues of {key} asks for {wanted} different values, and the {TYPES_MAX} cheapest types have {found}"
    )]
    MinValues {
        /// The label.
        key: Name,
        /// How many different values it must have.
        wanted: u32,
        /// How many it has.
        found: usize,
    },
}

/// The types that may be launched for a claim, cheapest first, each with the offerings that may be used.
///
/// # Errors
/// None is left.
pub fn filter(
    types: &[InstanceType],
    ask: &Ask<'_>,
    policy: MinValuesPolicy,
) -> Result<Vec<InstanceType>, NoTypes> {
    let mut left: Vec<InstanceType> = types.iter().filter_map(|ty| available(ty, ask)).collect();
    if ask.may_be_reserved() {
        one_kind_of_reservation(&mut left);
        one_capacity_block(&mut left);
        reserved_first(&mut left);
    }
    if !ask.has_min_values() {
        without_exotic(&mut left);
        without_dear_spot(&mut left, ask);
    }
    if left.is_empty() {
        return Err(NoTypes::Unavailable {
            n_types: types.len(),
        });
    }
    left.sort_by_key(cheapest);
    left.truncate(TYPES_MAX);
    match policy {
        MinValuesPolicy::Strict => min_values(&left, ask)?,
        MinValuesPolicy::BestEffort => {}
    }
    Ok(left)
}

/// The type with the offerings that answer the claim; none without any.
fn available(ty: &InstanceType, ask: &Ask<'_>) -> Option<InstanceType> {
    let offerings: Vec<Offering> = ask.offers(ty).cloned().collect();
    (!offerings.is_empty()).then(|| InstanceType {
        offerings,
        ..ty.clone()
    })
}

/// Fleets take reservations of one kind: that with the cheapest offering.
fn one_kind_of_reservation(types: &mut Vec<InstanceType>) {
    let kinds = types
        .iter()
        .flat_map(|ty| &ty.offerings)
        .filter_map(|offering| {
            let Reservation { kind, .. } = Reservation::of(offering)?;
            Some((offering.price, kind))
        });
    let Some((_, kept)) = kinds.min() else {
        return;
    };
    keep(types, |_, offering| {
        Reservation::of(offering).is_none_or(|reservation| reservation.kind == kept)
    });
    // What is not reserved is dropped by the last filter of the three.
}

/// A request takes one block at most: that with the cheapest offering.
fn one_capacity_block(types: &mut Vec<InstanceType>) {
    let blocks = types.iter().flat_map(|ty| {
        let blocks = ty.offerings.iter().filter_map(|offering| {
            let reservation = Reservation::of(offering)?;
            (reservation.kind == ReservationKind::CapacityBlock)
                .then_some((offering.price, reservation.id))
        });
        blocks.map(|(price, id)| (price, ty.name.clone(), id))
    });
    let Some((_, _, kept)) = blocks.min() else {
        return;
    };
    keep(types, |_, offering| {
        Reservation::of(offering).is_none_or(|reservation| reservation.id == kept)
    });
}

/// If anything is reserved, nothing else is bought; of several reservations of a type in a zone, the one with
/// the most left is used.
fn reserved_first(types: &mut Vec<InstanceType>) {
    let mut best: BTreeMap<(Name, String), (u32, Name)> = BTreeMap::new();
    for ty in types.iter() {
        for offering in &ty.offerings {
            let Some((id, left)) = &offering.reservation else {
                continue;
            };
            let zone = label(offering, ZONE).unwrap_or_default().to_owned();
            let slot = best
                .entry((ty.name.clone(), zone))
                .or_insert((*left, id.clone()));
            if (*left, &*slot.1) > (slot.0, &**id) {
                *slot = (*left, id.clone());
            }
        }
    }
    if best.is_empty() {
        return;
    }
    keep(types, |ty, offering| {
        let zone = label(offering, ZONE).unwrap_or_default().to_owned();
        let best = best.get(&(ty.clone(), zone));
        (offering.reservation.as_ref())
            .is_some_and(|(id, _)| best.is_some_and(|(_, best_id)| best_id == id))
    });
}

/// Metal and accelerated machines are for those who ask for them, unless there is nothing else.
fn without_exotic(types: &mut Vec<InstanceType>) {
    if types.iter().all(is_exotic) {
        return;
    }
    types.retain(|ty| !is_exotic(ty));
}

fn is_exotic(ty: &InstanceType) -> bool {
    let size = ty.name.split_once('.').map_or("", |(_, size)| size);
    let has = |name: &&str| ty.capacity.get(&ResourceName::Other((*name).into())) > 0;
    size.contains("metal") || EXOTIC.iter().any(has)
}

/// Spot that costs more than the cheapest on-demand machine is not worth its risk.
fn without_dear_spot(types: &mut Vec<InstanceType>, ask: &Ask<'_>) {
    let both = [CapacityType::Spot, CapacityType::OnDemand];
    let key = joiner_api::labels::CAPACITY_TYPE;
    if !both
        .iter()
        .all(|capacity_type| ask.may_be(key, capacity_type.as_str()))
    {
        return;
    }
    let prices = |capacity_type: CapacityType| {
        let offerings = types.iter().flat_map(|ty| &ty.offerings);
        offerings
            .filter(move |offering| capacity_type.is_of(offering))
            .map(|offering| offering.price)
    };
    let has_spot = prices(CapacityType::Spot).next().is_some();
    let Some(limit) = prices(CapacityType::OnDemand).min().filter(|_| has_spot) else {
        return;
    };
    keep(types, |_, offering| {
        !CapacityType::Spot.is_of(offering) || offering.price <= limit
    });
}

/// Keeps offerings, and types that have some left.
fn keep(types: &mut Vec<InstanceType>, fits: impl Fn(&Name, &Offering) -> bool) {
    for ty in types.iter_mut() {
        let name = ty.name.clone();
        ty.offerings.retain(|offering| fits(&name, offering));
    }
    types.retain(|ty| !ty.offerings.is_empty());
}

fn cheapest(ty: &InstanceType) -> Option<NanoDollars> {
    ty.offerings.iter().map(|offering| offering.price).min()
}

fn min_values(types: &[InstanceType], ask: &Ask<'_>) -> Result<(), NoTypes> {
    for requirement in ask.requirements.iter() {
        let Some(wanted) = requirement.min_values() else {
            continue;
        };
        let key = requirement.key();
        let of_types = types.iter().filter_map(|ty| ty.labels.get(key)).flatten();
        let offerings = types.iter().flat_map(|ty| &ty.offerings);
        let of_offerings = offerings.filter_map(|offering| offering.labels.get(key));
        let values: BTreeSet<&Name> = of_types.chain(of_offerings).collect();
        let found = values.iter().filter(|value| requirement.has(value)).count();
        if found < wanted as usize {
            return Err(NoTypes::MinValues {
                key: key.clone(),
                wanted,
                found,
            });
        }
    }
    Ok(())
}
