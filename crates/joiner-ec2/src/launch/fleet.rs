//! The fleet: one request that buys the machine, of whichever of its types there is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use joiner_api::labels::ZONE;
use joiner_api::structural;
use joiner_api::types::Subnet;
use joiner_model::{InstanceType, Name, NanoDollars, Offering};

use super::offer::label;
use super::{Ask, CapacityType, Reservation, ReservationKind};
use crate::request::{
    AllocationOptions, CreateFleet, FleetLaunchTemplateConfig, FleetLaunchTemplateOverrides,
    LaunchTemplateSpecification, ReservedCapacityOptions, TargetCapacity,
};
use crate::tags::{Tag, TagSpecification};

/// What fleets tag.
const TAGGED: [&str; 3] = ["instance", "volume", "fleet"];

/// A template that exists, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its name.
    pub name: String,
    /// Its image.
    pub ami: String,
    /// Its reservation.
    pub reservation: Option<Reservation>,
    /// Types that it is for.
    pub types: Vec<Name>,
}

/// How a fleet is to be made.
#[derive(Clone, Copy, Debug)]
pub struct FleetAsk<'a> {
    /// What the claim asks for.
    pub ask: Ask<'a>,
    /// How machines are paid for.
    pub capacity_type: CapacityType,
    /// The subnet of each zone.
    pub subnets: &'a BTreeMap<String, Subnet>,
    /// Tags of all that is made.
    pub tags: &'a [Tag],
    /// Context of the class.
    pub context: Option<&'a str>,
    /// The claim's requirements were relaxed below its `minValues`: the context is left out then.
    pub min_values_relaxed: bool,
    /// A NodeOverlay changed a price, so that EC2's own prices must not decide.
    pub price_overlay: bool,
}

/// There is nothing to put into the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "none of the offerings of {n_types} instance types is in a zone that has a subnet of the class; select subnets \
     of other zones in spec.subnetSelectorTerms"
)]
pub struct NoOverrides {
    /// How many types there were.
    pub n_types: usize,
}

/// The request for one machine. Requests that are equal may be put together, see [`together`].
///
/// # Errors
/// No offering is in a zone with a subnet.
pub fn fleet(
    wanted: &FleetAsk<'_>,
    types: &[InstanceType],
    templates: &[Made],
) -> Result<CreateFleet, NoOverrides> {
    let configs = templates.iter().map(|made| FleetLaunchTemplateConfig {
        launch_template_specification: LaunchTemplateSpecification::latest(&made.name),
        overrides: overrides(wanted, types, made),
    });
    let configs: Vec<_> = configs
        .filter(|config| !config.overrides.is_empty())
        .collect();
    if configs.is_empty() {
        return Err(NoOverrides {
            n_types: types.len(),
        });
    }
    let kind = templates
        .iter()
        .find_map(|made| Some(made.reservation.as_ref()?.kind));
    let strategy = |plain: &str, by_priority: &str| {
        let strategy = if wanted.price_overlay {
            by_priority
        } else {
            plain
        };
        Some(AllocationOptions {
            allocation_strategy: strategy.to_owned(),
        })
    };
    let (target, mut request) = match (wanted.capacity_type, kind) {
        (CapacityType::Spot, _) => (
            "spot",
            CreateFleet {
                spot_options: strategy(
                    "price-capacity-optimized",
                    "capacity-optimized-prioritized",
                ),
                ..CreateFleet::default()
            },
        ),
        (CapacityType::Reserved, Some(ReservationKind::CapacityBlock)) => {
            ("capacity-block", CreateFleet::default())
        }
        (CapacityType::Reserved, Some(ReservationKind::Interruptible)) => (
            "reserved-capacity",
            CreateFleet {
                reserved_capacity_options: Some(ReservedCapacityOptions {
                    reservation_types: vec!["interruptible-capacity-reservation".to_owned()],
                }),
                ..CreateFleet::default()
            },
        ),
        (CapacityType::OnDemand | CapacityType::Reserved, _) => (
            "on-demand",
            CreateFleet {
                on_demand_options: strategy("lowest-price", "prioritized"),
                ..CreateFleet::default()
            },
        ),
    };
    request.context = (wanted.context.filter(|_| !wanted.min_values_relaxed)).map(str::to_owned);
    request.launch_template_configs = configs;
    request.tag_specifications = TagSpecification::for_each(&TAGGED, wanted.tags);
    request.target_capacity_specification = TargetCapacity {
        default_target_capacity_type: target.to_owned(),
        total_target_capacity: 1,
    };
    request.r#type = "instant".to_owned();
    Ok(request)
}

/// What may be made from a template: a type in a zone, once each.
fn overrides(
    wanted: &FleetAsk<'_>,
    types: &[InstanceType],
    made: &Made,
) -> Vec<FleetLaunchTemplateOverrides> {
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut overrides = Vec::new();
    for ty in types.iter().filter(|ty| made.types.contains(&ty.name)) {
        for offering in wanted.ask.offers(ty) {
            let zone = label(offering, ZONE).unwrap_or_default();
            let Some(subnet) = wanted
                .subnets
                .get(zone)
                .filter(|_| is_for(wanted, made, offering))
            else {
                continue;
            };
            // Offerings may differ in their partition only.
            if seen.insert((&ty.name, zone)) {
                overrides.push(FleetLaunchTemplateOverrides {
                    availability_zone: Some(zone.to_owned()),
                    image_id: Some(made.ami.clone()),
                    instance_type: ty.name.to_string(),
                    priority: Some(dollars(offering.price)),
                    subnet_id: subnet.id.clone(),
                });
            }
        }
    }
    overrides
}

fn is_for(wanted: &FleetAsk<'_>, made: &Made, offering: &Offering) -> bool {
    wanted.capacity_type.is_of(offering)
        && match wanted.capacity_type {
            CapacityType::Reserved => Reservation::of(offering) == made.reservation,
            CapacityType::Spot | CapacityType::OnDemand => true,
        }
}

/// A price for the wire, where it is a floating point number.
#[expect(
    clippy::cast_precision_loss,
    reason = "prices are far below 2^53 nano-dollars"
)]
fn dollars(price: NanoDollars) -> f64 {
    price.get() as f64 / 1e9
}

/// The same request for several machines.
#[must_use]
pub fn together(request: &CreateFleet, count: i32) -> CreateFleet {
    let mut request = request.clone();
    request.target_capacity_specification.total_target_capacity = count;
    request
}

/// The token that keeps EC2 from making a fleet twice when an answer got lost: the same for the same request on
/// behalf of the same claims in the same attempt. An attempt is over once it was answered, whatever the answer;
/// then `attempt` must change, or the old answer comes again.
#[must_use]
pub fn client_token(request: &CreateFleet, claim_uids: &[&str], attempt: &str) -> String {
    let mut uids = claim_uids.to_vec();
    uids.sort_unstable();
    let content = serde_json::to_string(request).unwrap_or_default();
    let mut token = String::with_capacity(48);
    for salt in ["a", "b", "c"] {
        let text = format!("{salt}\n{attempt}\n{}\n{content}", uids.join(","));
        // Writing to a string does not fail.
        let _ = write!(token, "{:016x}", structural::string(&text));
    }
    token
}
