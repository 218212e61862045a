//! What the answer to CreateFleet means: who got a machine, what is sold out, and what to tell the others.

use std::collections::BTreeSet;

use crate::answer::{CreateFleetResult, FleetError};
use crate::fault::{TEMPLATE_NOT_FOUND, launch_reason};

use super::CapacityType;

/// Codes that say that there is no capacity of this kind now.
const UNFULFILLABLE: [&str; 8] = [
    "InsufficientInstanceCapacity",
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
    "UnfulfillableCapacity",
    "Unsupported",
    "InsufficientFreeAddressesInSubnet",
    "MaxFleetCountExceeded",
    "ReservationCapacityExceeded",
];
/// The account has no role for spot, and we may not make it.
const NO_SPOT_ROLE: &str = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";
/// The subnet has no free addresses.
const NO_ADDRESSES: &str = "InsufficientFreeAddressesInSubnet";
/// Part of the message that says that a spread group is full in a zone.
const SPREAD_GROUP: &str = "spread placement group";

/// Something that cannot be had for a while.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SoldOut {
    /// A type in a zone.
    Offering {
        /// How it is paid for.
        capacity_type: CapacityType,
        /// Type.
        instance_type: String,
        /// Zone.
        zone: String,
    },
    /// Everything that is paid for like this.
    CapacityType(CapacityType),
    /// A subnet: it has no free addresses.
    Subnet(String),
    /// A placement group in a zone: it takes no more machines there.
    GroupInZone {
        /// Zone.
        zone: String,
    },
    /// A reservation: nothing is left of it.
    Reservation(String),
}

/// One offering that could not be had, for the metric of launch failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Zone.
    pub zone: String,
    /// How it was to be paid for.
    pub capacity_type: CapacityType,
    /// Why, in one word.
    pub reason: String,
}

/// A machine that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bought {
    /// Its id.
    pub instance_id: String,
    /// Its type.
    pub instance_type: String,
    /// Its zone, if the answer says it.
    pub zone: Option<String>,
    /// Its subnet.
    pub subnet: String,
    /// Its image, if the answer says it.
    pub image_id: Option<String>,
    /// Its template.
    pub template: String,
}

/// What to tell a claim that got no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoMachine {
    /// Nothing of what it asks for can be had: decide anew, without what is sold out.
    InsufficientCapacity(String),
    /// Another reason, one word and a sentence.
    Refused {
        /// One word for the condition.
        reason: &'static str,
        /// In a sentence.
        message: String,
    },
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetOutcome {
    /// Machines, one for each caller in turn.
    pub bought: Vec<Bought>,
    /// What is remembered as sold out.
    pub sold_out: BTreeSet<SoldOut>,
    /// Each offering that could not be had.
    pub failures: Vec<Failure>,
    /// Templates that are gone, by name: make them again and repeat once.
    pub templates_gone: BTreeSet<String>,
    /// The role for spot is missing: tell the claim by an event.
    pub no_spot_role: bool,
    /// What callers without a machine are told.
    pub no_machine: Option<NoMachine>,
}

/// Reads the answer to a fleet for `n_callers` machines. `reservations` names those of the launch, if it was for
/// reserved capacity.
#[must_use]
pub fn outcome(
    result: &CreateFleetResult,
    capacity_type: CapacityType,
    reservations: &[String],
    n_callers: usize,
) -> FleetOutcome {
    let mut sold_out = BTreeSet::new();
    let mut templates_gone = BTreeSet::new();
    for error in &result.errors {
        sold_out.extend(marks(error, capacity_type, reservations));
        if TEMPLATE_NOT_FOUND.contains(&error.error_code.as_str()) {
            let made = &error
                .launch_template_and_overrides
                .launch_template_specification;
            templates_gone.insert(made.launch_template_name.clone());
        }
    }
    let failures = result.errors.iter().map(|error| Failure {
        zone: zone(error),
        capacity_type,
        reason: error.error_code.clone(),
    });
    let bought = bought(result);
    let no_machine = (bought.len() < n_callers).then(|| no_machine(&result.errors));
    FleetOutcome {
        sold_out,
        failures: failures.collect(),
        templates_gone,
        no_spot_role: result
            .errors
            .iter()
            .any(|error| error.error_code == NO_SPOT_ROLE),
        no_machine,
        bought,
    }
}

fn zone(error: &FleetError) -> String {
    let overrides = &error.launch_template_and_overrides.overrides;
    overrides.availability_zone.clone().unwrap_or_default()
}

fn marks(error: &FleetError, capacity_type: CapacityType, reservations: &[String]) -> Vec<SoldOut> {
    let code = error.error_code.as_str();
    let overrides = &error.launch_template_and_overrides.overrides;
    if error.error_message.to_lowercase().contains(SPREAD_GROUP) {
        return vec![SoldOut::GroupInZone { zone: zone(error) }];
    }
    if code == NO_SPOT_ROLE {
        return vec![SoldOut::CapacityType(CapacityType::Spot)];
    }
    if !UNFULFILLABLE.contains(&code) {
        return Vec::new();
    }
    let mut marks = Vec::new();
    if code == NO_ADDRESSES {
        marks.push(SoldOut::Subnet(overrides.subnet_id.clone()));
    }
    match capacity_type {
        CapacityType::Reserved => {
            marks.extend(reservations.iter().cloned().map(SoldOut::Reservation));
        }
        CapacityType::Spot | CapacityType::OnDemand => marks.push(SoldOut::Offering {
            capacity_type,
            instance_type: overrides.instance_type.clone(),
            zone: zone(error),
        }),
    }
    marks
}

fn bought(result: &CreateFleetResult) -> Vec<Bought> {
    let of = |made: &crate::answer::FleetInstance| {
        let from = made.launch_template_and_overrides.clone();
        let instance_type = made.instance_type.clone();
        let machine = move |instance_id: &String| Bought {
            instance_id: instance_id.clone(),
            instance_type: instance_type.clone(),
            zone: from.overrides.availability_zone.clone(),
            subnet: from.overrides.subnet_id.clone(),
            image_id: from.overrides.image_id.clone(),
            template: from
                .launch_template_specification
                .launch_template_name
                .clone(),
        };
        made.instance_ids.iter().map(machine).collect::<Vec<_>>()
    };
    result.instances.iter().flat_map(of).collect()
}

/// What the errors of an answer come to, for someone who got no machine.
fn no_machine(errors: &[FleetError]) -> NoMachine {
    let no_capacity = |error: &FleetError| {
        let code = error.error_code.as_str();
        UNFULFILLABLE.contains(&code) || code == NO_SPOT_ROLE
    };
    let message = joined(errors);
    if errors.is_empty() {
        return NoMachine::InsufficientCapacity(
            "the fleet has fewer machines than asked for".to_owned(),
        );
    }
    match errors.iter().find(|error| !no_capacity(error)) {
        None => NoMachine::InsufficientCapacity(message),
        Some(error) => NoMachine::Refused {
            reason: launch_reason(&error.error_code, &error.error_message),
            message,
        },
    }
}

/// Each error once, in order.
fn joined(errors: &[FleetError]) -> String {
    let mut seen = BTreeSet::new();
    let texts = errors
        .iter()
        .map(|error| format!("{}: {}", error.error_code, error.error_message));
    let texts: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
    texts.join("; ")
}
