//! Types with their offerings, under a node class.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_api::labels::aws::{
    CAPACITY_RESERVATION_ID, CAPACITY_RESERVATION_INTERRUPTIBLE, CAPACITY_RESERVATION_TYPE,
    PLACEMENT_GROUP_PARTITION, ZONE_ID,
};
use joiner_api::labels::{CAPACITY_TYPE, ZONE};
use joiner_api::types::{
    CapacityReservation, Ec2NodeClassStatus, ReservationState, ReservationType,
};
use joiner_catalog::{ClassSettings, Figures, PlacementStrategy, TypeBuilder};
use joiner_model::{InstanceType, Labels, Name, NanoDollars, Offering, Resources};

use super::{Offered, Prices, Shortages};
use crate::launch::CapacityType;
use crate::reservations::Left;

/// Reserved capacity is paid for already: it costs next to nothing, in the order of what it would cost.
const RESERVED_SHARE: u64 = 10_000_000;

/// What there is to buy, whatever the class.
#[derive(Clone, Copy, Debug)]
pub struct Market<'a> {
    /// Region.
    pub region: &'a str,
    /// Every type that EC2 describes.
    pub figures: &'a [Figures],
    /// Memory that nodes of a type were seen with, under the images of the class.
    pub discovered_memory: &'a BTreeMap<Name, u64>,
    /// Which zones sell which types.
    pub offered: &'a Offered,
    /// What things cost.
    pub prices: &'a Prices,
    /// Prices that overlays give to types without one.
    pub overlay_prices: &'a BTreeMap<Name, NanoDollars>,
    /// What cannot be had now.
    pub shortages: &'a Shortages,
    /// Ids of zones that traffic is moved away from.
    pub shifted: &'a BTreeSet<String>,
    /// How much is left of reservations.
    pub left: &'a Left,
    /// The feature gate `ReservedCapacity`.
    pub reserving: bool,
}

/// A zone, as a class sees it.
struct Zone<'a> {
    name: Name,
    /// None where the class has no subnet.
    id: Option<&'a str>,
    subnets: Vec<&'a str>,
    is_shifted: bool,
}

impl Market<'_> {
    /// Every type, in the order of names, with its offerings in every zone of the region. An offering that the
    /// class cannot use, or that is sold out, is there and not available. Without a price there is no offering.
    #[must_use]
    pub fn types(
        &self,
        settings: &ClassSettings,
        status: &Ec2NodeClassStatus,
        now: Timestamp,
    ) -> Vec<InstanceType> {
        let zones = self.zones(status);
        let mut builder = TypeBuilder::new(self.region, settings);
        // There are no Windows images for ARM.
        let has_image =
            |figures: &&Figures| !settings.ami_family.is_windows() || &*figures.arch != "arm64";
        let mut types: Vec<InstanceType> = (self.figures.iter().filter(has_image))
            .map(|figures| {
                let figures = Figures {
                    discovered_memory: self.discovered_memory.get(&figures.name).copied(),
                    ..figures.clone()
                };
                let class = OfClass {
                    settings,
                    can_launch: builder.can_launch(&figures),
                    now,
                };
                let mut offerings = self.ordinary(&figures, &zones, &class);
                offerings.extend(self.reserved(&figures, &zones, &class, status));
                InstanceType {
                    offerings: partitioned(offerings, settings),
                    ..builder.instance_type(&figures)
                }
            })
            .collect();
        types.sort_by(|one, other| one.name.cmp(&other.name));
        types
    }

    fn zones<'s>(&self, status: &'s Ec2NodeClassStatus) -> Vec<Zone<'s>> {
        let subnets = status.subnets.as_deref().unwrap_or_default();
        let names: BTreeSet<&Name> = self.offered.values().flatten().collect();
        let zone = |name: &Name| {
            let here = || subnets.iter().filter(|subnet| *subnet.zone == **name);
            let id = here().find_map(|subnet| subnet.zone_id.as_deref());
            Zone {
                name: name.clone(),
                id,
                subnets: here().map(|subnet| subnet.id.as_str()).collect(),
                is_shifted: id.is_some_and(|id| self.shifted.contains(id)),
            }
        };
        names.into_iter().map(zone).collect()
    }

    fn ordinary(
        &self,
        figures: &Figures,
        zones: &[Zone<'_>],
        class: &OfClass<'_>,
    ) -> Vec<Offering> {
        let name = &figures.name;
        let overlay = self.overlay_prices.get(name).copied();
        let mut offerings = Vec::with_capacity(2 * zones.len());
        for zone in zones {
            let ways = [
                (
                    CapacityType::OnDemand,
                    figures.on_demand,
                    self.prices.on_demand(name),
                ),
                (
                    CapacityType::Spot,
                    figures.spot,
                    self.prices.spot(name, &zone.name),
                ),
            ];
            for (capacity_type, is_sold, price) in ways {
                let Some(price) = price.or(overlay).filter(|_| is_sold) else {
                    continue;
                };
                let group = class
                    .settings
                    .placement_group
                    .as_ref()
                    .map(|group| &*group.id);
                let way = (capacity_type, &**name, &*zone.name);
                let is_short = self.shortages.has(way, &zone.subnets, group, class.now);
                offerings.push(Offering {
                    labels: labels(zone, capacity_type),
                    price,
                    available: self.is_usable(figures, zone, class) && !is_short,
                    reservation: None,
                    extra_capacity: Resources::new(),
                });
            }
        }
        offerings
    }

    /// Whether the class can have the type in the zone, if it is not sold out.
    fn is_usable(&self, figures: &Figures, zone: &Zone<'_>, class: &OfClass<'_>) -> bool {
        let offered = self.offered.get(&figures.name);
        let is_offered = offered.is_some_and(|zones| zones.contains(&zone.name));
        class.can_launch && is_offered && !zone.subnets.is_empty() && !zone.is_shifted
    }

    fn reserved(
        &self,
        figures: &Figures,
        zones: &[Zone<'_>],
        class: &OfClass<'_>,
        status: &Ec2NodeClassStatus,
    ) -> Vec<Offering> {
        let all = status.capacity_reservations.as_deref().unwrap_or_default();
        let of_type = |reservation: &&CapacityReservation| {
            self.reserving && *reservation.instance_type == *figures.name
        };
        let price = self.prices.on_demand(&figures.name).unwrap_or_default();
        let offering = |reservation: &CapacityReservation| {
            let zone = zones
                .iter()
                .find(|zone| *zone.name == *reservation.availability_zone)?;
            let left = self.left.of(&reservation.id);
            let mut labels = labels(zone, CapacityType::Reserved);
            let kind = reservation
                .reservation_type
                .unwrap_or(ReservationType::Default);
            let may_go = reservation.interruptible.unwrap_or_default();
            for (key, value) in [
                (CAPACITY_RESERVATION_ID, reservation.id.as_str()),
                (CAPACITY_RESERVATION_TYPE, kind.as_str()),
                (
                    CAPACITY_RESERVATION_INTERRUPTIBLE,
                    if may_go { "true" } else { "false" },
                ),
            ] {
                labels.insert(key.into(), value.into());
            }
            let is_expiring = reservation.state == Some(ReservationState::Expiring);
            let usable = self.is_usable(figures, zone, class);
            Some(Offering {
                labels,
                price: NanoDollars::new(price.get() / RESERVED_SHARE),
                available: usable && left > 0 && !is_expiring,
                reservation: Some((reservation.id.as_str().into(), left)),
                extra_capacity: Resources::new(),
            })
        };
        all.iter().filter(of_type).filter_map(offering).collect()
    }
}

/// What a class says of a type.
struct OfClass<'a> {
    settings: &'a ClassSettings,
    can_launch: bool,
    now: Timestamp,
}

fn labels(zone: &Zone<'_>, capacity_type: CapacityType) -> Labels {
    let mut labels = Labels::from([
        (ZONE.into(), zone.name.clone()),
        (CAPACITY_TYPE.into(), capacity_type.as_str().into()),
    ]);
    if let Some(id) = zone.id {
        labels.insert(ZONE_ID.into(), id.into());
    }
    labels
}

/// Each offering once for each partition of the class's placement group, if it has partitions.
fn partitioned(offerings: Vec<Offering>, settings: &ClassSettings) -> Vec<Offering> {
    let group = settings.placement_group.as_ref();
    let Some(PlacementStrategy::Partition(count)) = group.map(|group| group.strategy) else {
        return offerings;
    };
    let in_partition = |offering: &Offering, number: u32| {
        let mut offering = offering.clone();
        let key = PLACEMENT_GROUP_PARTITION.into();
        offering.labels.insert(key, number.to_string().into());
        offering
    };
    let repeated = offerings
        .iter()
        .flat_map(|offering| (1..=count).map(move |number| in_partition(offering, number)));
    repeated.collect()
}
