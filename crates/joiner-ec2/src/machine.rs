//! Machines: how they are found, and what a claim is told of the one it got.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use joiner_api::labels::aws::{
    CAPACITY_RESERVATION_ID, CAPACITY_RESERVATION_INTERRUPTIBLE, CAPACITY_RESERVATION_TYPE,
    EC2_NODE_CLASS, EC2_NODE_CLASS_HASH, EC2_NODE_CLASS_HASH_VERSION, INSTANCE_PROFILE_NAME,
    INSTANCE_TENANCY, PLACEMENT_GROUP_ID, PLACEMENT_GROUP_PARTITION, ZONE_ID,
};
use joiner_api::labels::{CAPACITY_TYPE, NODE_POOL, ZONE};
use joiner_api::types::{CapacityReservation, Ec2NodeClassStatus, ReservationType};
use joiner_catalog::PlacementStrategy;
use joiner_model::{InstanceType, Labels, Name, ResourceName, Resources};

use crate::answer::Instance;
use crate::drift;
use crate::launch::{CapacityType, Tenancy};
use crate::request::{Filter, Query};
use crate::tags::{self, Tag};

/// States of machines that are still there.
const PRESENT: [&str; 5] = ["pending", "running", "stopping", "stopped", "shutting-down"];
/// Machines a page.
const PAGE: i32 = 1000;
const RESERVATIONS_ONLY: &str = "capacity-reservations-only";

/// The name of a machine in `spec.providerID`: `aws:///ZONE/ID`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId {
    /// Zone.
    pub zone: String,
    /// Id of the machine.
    pub instance_id: String,
}

/// The text names no machine of EC2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no machine of EC2; provider ids look like aws:///us-east-1a/i-0123456789abcdef0"
)]
pub struct NoProviderId(pub String);

impl ProviderId {
    /// Reads it.
    ///
    /// # Errors
    /// It is not of this form.
    pub fn parse(text: &str) -> Result<Self, NoProviderId> {
        let parsed = text.split_once(":///").and_then(|(scheme, rest)| {
            let (zone, id) = rest.rsplit_once('/')?;
            let is_id = !scheme.is_empty() && !zone.is_empty() && !id.is_empty();
            is_id.then(|| Self {
                zone: zone.to_owned(),
                instance_id: id.to_owned(),
            })
        });
        parsed.ok_or_else(|| NoProviderId(text.to_owned()))
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aws:///{}/{}", self.zone, self.instance_id)
    }
}

/// Machines by their ids.
#[must_use]
pub fn by_ids(ids: &[String]) -> Query {
    Query {
        filters: vec![present()],
        instance_ids: ids.to_vec(),
        ..Query::default()
    }
}

/// All machines of a cluster.
#[must_use]
pub fn of_cluster(cluster: &str) -> Query {
    Query {
        filters: vec![
            Filter::new("tag-key", [NODE_POOL]),
            Filter::new("tag-key", [EC2_NODE_CLASS]),
            Filter::tag(tags::CLUSTER_NAME, cluster),
            present(),
        ],
        max_results: Some(PAGE),
        ..Query::default()
    }
}

fn present() -> Filter {
    Filter::new("instance-state-name", PRESENT)
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub id: ProviderId,
    /// Its type.
    pub instance_type: Name,
    /// Image that it booted.
    pub image_id: Name,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// On whose hardware it is.
    pub tenancy: Tenancy,
    /// Reservation that it runs in.
    pub reservation: Option<Name>,
    /// Placement group that it is in.
    pub placement_group: Option<Name>,
    /// Partition of that group.
    pub partition: Option<i32>,
    /// It has Elastic Fabric Adapters.
    pub has_efa: bool,
    /// The claim that it says it is for.
    pub claim: Option<Name>,
    /// Its pool.
    pub pool: Option<Name>,
    /// Its class.
    pub class: Option<Name>,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// When it was launched.
    pub launched: Option<Timestamp>,
    /// Where it is in its life.
    pub life: Life,
    /// What drift looks at.
    pub drift: drift::Machine,
}

/// Where a machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Starts or runs.
    Runs,
    /// Stops or has stopped; its node is no good, and it can still be ended.
    Stopped,
    /// Is being ended.
    Ending,
    /// Is gone.
    Gone,
}

impl Life {
    fn parse(state: &str) -> Self {
        match state {
            "stopping" | "stopped" => Self::Stopped,
            "shutting-down" => Self::Ending,
            "terminated" => Self::Gone,
            _ => Self::Runs,
        }
    }
}

impl Machine {
    /// Reads a machine. `reserving` is the feature gate `ReservedCapacity`.
    #[must_use]
    pub fn read(instance: &Instance, reserving: bool) -> Self {
        let tag = |key: &str| {
            let tag = instance.tags.iter().find(|tag| tag.key == key);
            tag.map(|tag| Name::from(tag.value.as_str()))
        };
        let placement = &instance.placement;
        let capacity_type = capacity_type(instance, reserving);
        let reservation = instance.capacity_reservation_id.as_deref();
        let reservation = reservation.filter(|id| !id.is_empty());
        let groups: BTreeSet<String> = (instance.security_groups.iter())
            .map(|group| group.group_id.clone())
            .collect();
        let is_efa = |kind: &str| kind.starts_with("efa");
        let mut interfaces = instance.network_interfaces.iter();
        Self {
            id: ProviderId {
                zone: placement.availability_zone.clone(),
                instance_id: instance.instance_id.clone(),
            },
            instance_type: instance.instance_type.as_str().into(),
            image_id: instance.image_id.as_str().into(),
            capacity_type,
            tenancy: match placement.tenancy.as_deref() {
                Some("dedicated") => Tenancy::Dedicated,
                _ => Tenancy::Default,
            },
            reservation: reservation.map(Name::from),
            placement_group: placement.group_id.as_deref().map(Name::from),
            partition: placement.partition_number.filter(|number| *number > 0),
            has_efa: interfaces
                .any(|interface| interface.interface_type.as_deref().is_some_and(is_efa)),
            claim: tag(tags::NODE_CLAIM),
            pool: tag(NODE_POOL),
            class: tag(EC2_NODE_CLASS),
            tags: instance.tags.clone(),
            launched: instance.launch_time.parse().ok(),
            life: Life::parse(&instance.state.name),
            drift: drift::Machine {
                security_groups: groups,
                subnet: instance.subnet_id.clone().unwrap_or_default(),
                reservation: (reservation.filter(|_| capacity_type == CapacityType::Reserved))
                    .map(str::to_owned),
            },
        }
    }

    /// The labels that its claim gets: all that its type has one value for, and those that came true.
    #[must_use]
    pub fn labels(&self, ty: &InstanceType, class: &Ec2NodeClassStatus) -> Labels {
        let single = ty
            .labels
            .iter()
            .filter(|(key, _)| !RESERVATION_LABELS.contains(&&***key));
        let single = single.filter_map(|(key, values)| match values.as_slice() {
            [value] => Some((key.clone(), value.clone())),
            _ => None,
        });
        let mut labels: Labels = single.collect();
        let mut set = |key: &str, value: &str| {
            labels.insert(key.into(), value.into());
        };
        set(ZONE, &self.id.zone);
        let mut subnets = class.subnets.iter().flatten();
        let subnet = subnets.find(|subnet| subnet.zone == self.id.zone);
        if let Some(id) = subnet.and_then(|subnet| subnet.zone_id.as_deref()) {
            set(ZONE_ID, id);
        }
        set(CAPACITY_TYPE, self.capacity_type.as_str());
        set(INSTANCE_TENANCY, self.tenancy.as_str());
        if let Some(id) = self.reservation.as_deref().filter(|_| self.is_reserved()) {
            set(CAPACITY_RESERVATION_ID, id);
            let mut all = class.capacity_reservations.iter().flatten();
            if let Some(reservation) = all.find(|reservation| reservation.id == id) {
                let kind = reservation
                    .reservation_type
                    .unwrap_or(ReservationType::Default);
                set(CAPACITY_RESERVATION_TYPE, kind.as_str());
                let may_go = reservation.interruptible.unwrap_or_default();
                set(
                    CAPACITY_RESERVATION_INTERRUPTIBLE,
                    if may_go { "true" } else { "false" },
                );
            }
        }
        if let Some(group) = &self.placement_group {
            set(PLACEMENT_GROUP_ID, group);
            if let Some(partition) = self.partition {
                set(PLACEMENT_GROUP_PARTITION, &partition.to_string());
            }
        }
        labels
    }

    /// What it has, of what its type has: adapters only if it got some, and nothing of which there is none.
    #[must_use]
    pub fn resources(&self, of_type: &Resources) -> Resources {
        let efa = ResourceName::Other("vpc.amazonaws.com/efa".into());
        let has = |name: &ResourceName| *name != efa || self.has_efa;
        let kept = of_type
            .iter()
            .filter(|(name, amount)| *amount > 0 && has(name));
        kept.map(|(name, amount)| (name.clone(), amount)).collect()
    }

    /// Whether it is paid for by a reservation.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.capacity_type == CapacityType::Reserved
    }
}

const RESERVATION_LABELS: [&str; 3] = [
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
];

/// How a machine is paid for. One that landed in an open reservation by itself counts as on-demand.
fn capacity_type(instance: &Instance, reserving: bool) -> CapacityType {
    let is_some = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let specification = instance.capacity_reservation_specification.as_ref();
    let preference = specification
        .and_then(|specification| specification.capacity_reservation_preference.as_deref());
    if is_some(&instance.spot_instance_request_id) {
        CapacityType::Spot
    } else if reserving
        && is_some(&instance.capacity_reservation_id)
        && preference == Some(RESERVATIONS_ONLY)
    {
        CapacityType::Reserved
    } else {
        CapacityType::OnDemand
    }
}

/// The annotations that a launched claim gets.
#[must_use]
pub fn annotations(hash: &str, version: &str, profile: &str) -> Labels {
    let pairs = [
        (EC2_NODE_CLASS_HASH, hash),
        (EC2_NODE_CLASS_HASH_VERSION, version),
        (INSTANCE_PROFILE_NAME, profile),
    ];
    pairs
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

/// What is to be done to end a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing: there is no such machine.
    Gone,
    /// Nothing: it is on its way out.
    Waits,
    /// TerminateInstances.
    Terminate,
}

/// How to end a machine, given what a fresh read found.
#[must_use]
pub fn end(found: Option<&Machine>) -> End {
    match found.map(|machine| machine.life) {
        None | Some(Life::Gone) => End::Gone,
        Some(Life::Ending) => End::Waits,
        Some(Life::Runs | Life::Stopped) => End::Terminate,
    }
}

/// What a claim or node that says it is reserved must be told once its machine is paid for on demand: the new
/// capacity type, and the labels that go. `None` if it is what it says.
#[must_use]
pub fn demoted(said: &Labels, machine: &Machine) -> Option<(&'static str, [&'static str; 2])> {
    let says_reserved = said
        .get(CAPACITY_TYPE)
        .is_some_and(|value| &**value == CapacityType::Reserved.as_str());
    let is_on_demand = machine.capacity_type == CapacityType::OnDemand;
    (says_reserved && is_on_demand).then_some((
        CapacityType::OnDemand.as_str(),
        [CAPACITY_RESERVATION_ID, CAPACITY_RESERVATION_TYPE],
    ))
}

/// How a claim's registration stands where its class has a placement group: nodes in partitions are open for pods
/// once it is known which partition they are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionHook {
    /// Nothing is left to do.
    Passes,
    /// The machine is not known yet.
    Waits,
    /// The partition is known: it becomes a label.
    Label(i32),
}

/// How far registration is. `found` is a fresh read of the machine that the claim names.
///
/// # Errors
/// The claim names a machine that is gone.
pub fn partition_hook(
    strategy: Option<PlacementStrategy>,
    labels: &BTreeMap<String, String>,
    provider_id: Option<&str>,
    found: Option<&Machine>,
) -> Result<PartitionHook, MachineGone> {
    let is_set = |text: &String| !text.is_empty();
    match (strategy, provider_id, found) {
        (None | Some(PlacementStrategy::Cluster | PlacementStrategy::Spread), _, _) => {
            Ok(PartitionHook::Passes)
        }
        _ if labels.get(PLACEMENT_GROUP_PARTITION).is_some_and(is_set) => Ok(PartitionHook::Passes),
        (_, None, _) => Ok(PartitionHook::Waits),
        (_, Some(id), None) => Err(MachineGone(id.to_owned())),
        (_, Some(_), Some(machine)) => Ok(machine
            .partition
            .map_or(PartitionHook::Waits, PartitionHook::Label)),
    }
}

/// There is no machine of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("machine {0} is gone, and its partition cannot be told")]
pub struct MachineGone(pub String);

/// Whether a class still has the reservation of this id, and it is about to end.
#[must_use]
pub fn is_expiring(reservations: &[CapacityReservation], id: &str) -> bool {
    let mut all = reservations.iter();
    let reservation = all.find(|reservation| reservation.id == id);
    reservation.and_then(|reservation| reservation.state)
        == Some(joiner_api::types::ReservationState::Expiring)
}
