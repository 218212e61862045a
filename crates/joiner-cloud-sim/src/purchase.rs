//! From an order to the record of a machine.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use joiner_api::types::parse_go_duration;
use joiner_cloud::{LaunchError, NodeClass, Order};
use joiner_cluster::Digest;
use joiner_model::{InstanceType, Name, ResourceName, keys};

use crate::class_status;
use crate::delays::share;
use crate::faults::Faults;
use crate::ids;
use crate::offers::{Offer, offers};
use crate::record::{KWOK_CLASS, Record, State, plain, rendered};
use crate::settings::Settings;

/// What a machine is bought under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// Settings of the cloud.
    pub(crate) settings: &'a Settings,
    /// What goes wrong.
    pub(crate) faults: &'a Faults,
    /// The time.
    pub(crate) now: Timestamp,
}

/// Every way to fill an order, cheapest first.
///
/// # Errors
/// The claim names no types, or types that do not exist, and its class does not forgive that.
pub(crate) fn offers_for<'t>(
    types: &'t [InstanceType],
    known: &BTreeSet<Name>,
    order: &Order,
    class: &NodeClass,
) -> Result<Vec<Offer<'t>>, LaunchError> {
    let required = order.requirements.get(keys::INSTANCE_TYPE);
    let members = required.and_then(|requirement| requirement.members());
    let named: Option<BTreeSet<&str>> = match members {
        Some(members) => Some(members.iter().map(|name| &**name).collect()),
        None if order.types.is_empty() => None,
        None => Some(order.types.iter().map(|name| &**name).collect()),
    };
    if &*class.kind == KWOK_CLASS {
        let Some(named) = &named else {
            let message = "the claim does not say which instance types will do; a KWOKNodeClass \
                needs a requirement node.kubernetes.io/instance-type In [..]";
            return Err(LaunchError::Other(message.to_owned()));
        };
        let sold = |name: &&&str| !types.iter().any(|ty| &*ty.name == **name);
        if let Some(unknown) = named.iter().find(sold) {
            return Err(LaunchError::Other(format!(
                "instance type {unknown} not found in the catalog"
            )));
        }
    }
    let wanted = types
        .iter()
        .filter(|ty| named.as_ref().is_none_or(|named| named.contains(&*ty.name)));
    Ok(offers(wanted, known, order))
}

/// Virtual processors, rounded up.
pub(crate) fn vcpus(offer: &Offer<'_>) -> u64 {
    offer.ty.capacity.get(&ResourceName::Cpu).div_ceil(1000)
}

impl Terms<'_> {
    /// The machine that an order gets with an offer.
    pub(crate) fn record(&self, order: &Order, class: &NodeClass, offer: &Offer<'_>) -> Record {
        let uid = &*order.claim_uid;
        let labels = offer.labels(order);
        let zone = labels.get(keys::ZONE).map_or("nowhere", |zone| zone);
        let (node_name, address, provider_id) = if &*class.kind == KWOK_CLASS {
            let name = ids::kwok_node_name(&order.claim, uid);
            let id = ids::kwok_provider_id(&name);
            (name, None, id)
        } else {
            let (address, name) = ids::ec2_address(uid, 0, &self.settings.region);
            (name, Some(address), ids::ec2_provider_id(zone, uid))
        };
        let reservation = offer.offering.reservation.as_ref();
        Record {
            claim: order.claim.to_string(),
            claim_uid: uid.to_owned(),
            pool: order.pool.as_ref().map(ToString::to_string),
            class_kind: class.kind.to_string(),
            class_name: class.name.to_string(),
            provider_id,
            node_name,
            address,
            attempt: 0,
            vcpus: vcpus(offer),
            reservation: reservation.map(|(id, _)| id.to_string()),
            image: class_status::image(class, |key| labels.get(key).map(AsRef::as_ref)),
            labels: plain(&labels),
            claim_labels: plain(&order.labels),
            capacity: rendered(&offer.capacity()),
            allocatable: rendered(&offer.allocatable()),
            state: State::Pending,
            launched: self.now,
            joins_at: self.joins_at(uid, class),
            gone_at: None,
            interruption: None,
        }
    }

    fn joins_at(&self, uid: &str, class: &NodeClass) -> Option<Timestamp> {
        let seed = self.settings.seed;
        let draw = Digest::default().number(seed).text(uid).text("never joins");
        if share(draw.finish()) * 100.0 < self.faults.never_join_percent {
            return None;
        }
        let delays = &self.settings.delays;
        let wait = delays
            .launch
            .draw(seed, uid, "launch")
            .saturating_add(delays.boot.draw(seed, uid, "boot"))
            .saturating_add(registration_delay(class));
        Some(self.now.checked_add(wait).unwrap_or(Timestamp::MAX))
    }
}

/// `spec.nodeRegistrationDelay` of a KWOKNodeClass; the schema lets only durations in.
fn registration_delay(class: &NodeClass) -> Duration {
    let text = class.object["spec"]["nodeRegistrationDelay"].as_str();
    let delay = text.and_then(|text| parse_go_duration(text).ok());
    delay.unwrap_or_default()
}
