//! The catalog of an EC2 region under a node class.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{InstanceType, Labels, Name, NanoDollars, Offering, Resources, keys};

use crate::capacity::{DeviceNames, capacity};
use crate::class_fit::fits_class;
use crate::figures::Figures;
use crate::labels::{PLACEMENT_GROUP_PARTITION, ZONE_ID, ec2_well_known, labels};
use crate::names::Names;
use crate::overhead::overhead;
use crate::region::{Prices, UnknownRegion, zones};
use crate::settings::{ClassSettings, PlacementStrategy};
use crate::spot_model;
use crate::table;

/// What can be bought in a region.
#[derive(Clone, Debug)]
pub struct Ec2Catalog {
    /// Every type that has a price, by name. Zone, zone id and capacity type are labels of the
    /// offerings, all others of the types.
    pub types: Vec<InstanceType>,
    /// What a user should know about these prices.
    pub warnings: Vec<String>,
    /// Label keys that pools need not define.
    pub well_known: BTreeSet<Name>,
    /// `USD`, or `CNY` where prices are in yuan.
    pub currency: &'static str,
    /// The region that the prices are of: another one where there is no table of this one's.
    pub prices_of: &'static str,
}

/// The catalog of a region under a node class: every zone that it covers, on-demand and spot.
///
/// Guarantees: types are in the order of their names; each is for sale in the region, though maybe in
/// no zone that the class has a subnet in, and then without offerings; a type that the class cannot
/// launch keeps its offerings, marked as not available. Windows classes see no ARM types, for which
/// there is no image.
///
/// # Errors
/// The region is not in the built-in table.
pub fn ec2(region: &str, settings: &ClassSettings) -> Result<Ec2Catalog, UnknownRegion> {
    let prices = Prices::of(region)?;
    let mut builder = Builder::new(prices.region, settings)?;
    let sold = table::figures().iter().filter_map(|figures| {
        let price = prices.get(&figures.name)?;
        let no_image = settings.ami_family.is_windows() && &*figures.arch == "arm64";
        (!no_image).then(|| builder.instance_type(figures, Some(price)))
    });
    let mut types: Vec<InstanceType> = sold
        .filter(|instance_type| !instance_type.offerings.is_empty())
        .collect();
    if let Some(covered) = &settings.zones {
        for instance_type in &mut types {
            let zone = |offer: &Offering| offer.labels.get(keys::ZONE).cloned();
            (instance_type.offerings)
                .retain(|offer| zone(offer).is_some_and(|z| covered.contains(&z)));
        }
    }
    Ok(Ec2Catalog {
        types,
        warnings: prices.warnings,
        well_known: ec2_well_known(),
        currency: prices.currency,
        prices_of: prices.source,
    })
}

/// One type of the built-in table, sold in the region or not; none if the table does not have it.
/// For nodes that exist: their type may be no longer sold.
///
/// # Errors
/// The region is not in the built-in table.
pub fn ec2_type(
    name: &str,
    region: &str,
    settings: &ClassSettings,
) -> Result<Option<InstanceType>, UnknownRegion> {
    let prices = Prices::of(region)?;
    let mut builder = Builder::new(prices.region, settings)?;
    Ok(table::find(name).map(|figures| {
        let price = prices.get(&figures.name);
        builder.instance_type(figures, price)
    }))
}

/// Types of a region under a node class, without offerings: what a machine has, and what the system keeps of it.
pub struct TypeBuilder<'a> {
    region: Name,
    settings: &'a ClassSettings,
    names: Names,
    devices: DeviceNames,
}

impl<'a> TypeBuilder<'a> {
    /// A builder for a region and a class. The region need not be in the built-in table.
    #[must_use]
    pub fn new(region: &str, settings: &'a ClassSettings) -> Self {
        Self {
            region: region.into(),
            settings,
            names: Names::default(),
            devices: DeviceNames::new(),
        }
    }

    /// The type with these figures. It is not sold anywhere yet.
    pub fn instance_type(&mut self, figures: &Figures) -> InstanceType {
        let capacity = capacity(figures, self.settings, &self.devices);
        InstanceType {
            name: figures.name.clone(),
            labels: labels(figures, self.settings, &self.region, &mut self.names),
            overhead: overhead(figures, self.settings, &capacity).total(),
            capacity,
            offerings: Vec::new(),
        }
    }

    /// Whether the class can launch the type. One that it cannot stays in the catalog, with offerings that are not
    /// available.
    #[must_use]
    pub fn can_launch(&self, figures: &Figures) -> bool {
        fits_class(figures, self.settings)
    }
}

/// The rows of the built-in table, by name.
#[must_use]
pub fn ec2_figures() -> &'static [Figures] {
    table::figures()
}

/// One row of the built-in table.
#[must_use]
pub fn ec2_figures_of(name: &str) -> Option<&'static Figures> {
    table::find(name)
}

/// The built-in on-demand prices that hold in a region, by type.
///
/// # Errors
/// The region is not in the built-in table.
pub fn ec2_prices(region: &str) -> Result<BTreeMap<Name, NanoDollars>, UnknownRegion> {
    let prices = Prices::of(region)?;
    let priced = table::figures()
        .iter()
        .filter_map(|figures| Some((figures.name.clone(), prices.get(&figures.name)?)));
    Ok(priced.collect())
}

struct Builder<'a> {
    types: TypeBuilder<'a>,
    zones: Vec<ZoneLabels>,
    /// Partitions to choose from; one entry without a label when there are none.
    partitions: Vec<Option<Name>>,
}

/// The labels that come with a zone, as an on-demand and as a spot offering.
struct ZoneLabels {
    name: Name,
    on_demand: Labels,
    spot: Labels,
}

impl<'a> Builder<'a> {
    fn new(region: &'static str, settings: &'a ClassSettings) -> Result<Self, UnknownRegion> {
        let mut types = TypeBuilder::new(region, settings);
        let names = &mut types.names;
        let zones = zones(region)?.into_iter().map(|zone| {
            let name = Name::from(zone.name);
            let mut with = |capacity_type| {
                Labels::from([
                    (names.text(keys::ZONE), name.clone()),
                    (names.text(ZONE_ID), names.text(zone.id)),
                    (names.text(keys::CAPACITY_TYPE), names.text(capacity_type)),
                ])
            };
            let (on_demand, spot) = (with("on-demand"), with("spot"));
            ZoneLabels {
                name,
                on_demand,
                spot,
            }
        });
        let zones = zones.collect();
        let group = settings.placement_group.as_ref();
        let partitions = match group.map(|group| group.strategy) {
            Some(PlacementStrategy::Partition(count)) => (1..=u64::from(count))
                .map(|number| Some(names.number(number)))
                .collect(),
            Some(PlacementStrategy::Cluster | PlacementStrategy::Spread) | None => vec![None],
        };
        Ok(Self {
            types,
            zones,
            partitions,
        })
    }

    fn instance_type(&mut self, figures: &Figures, price: Option<NanoDollars>) -> InstanceType {
        InstanceType {
            offerings: price.map_or_else(Vec::new, |price| self.offerings(figures, price)),
            ..self.types.instance_type(figures)
        }
    }

    fn offerings(&mut self, figures: &Figures, on_demand: NanoDollars) -> Vec<Offering> {
        let available = self.types.can_launch(figures);
        let mut offerings = Vec::with_capacity(2 * self.zones.len() * self.partitions.len());
        for zone in &self.zones {
            for partition in &self.partitions {
                let mut offer = |labels: &Labels, price| {
                    let mut labels = labels.clone();
                    if let Some(partition) = partition {
                        let key = self.types.names.text(PLACEMENT_GROUP_PARTITION);
                        labels.insert(key, partition.clone());
                    }
                    offerings.push(Offering {
                        labels,
                        price,
                        available,
                        reservation: None,
                        extra_capacity: Resources::new(),
                    });
                };
                if figures.on_demand {
                    offer(&zone.on_demand, on_demand);
                }
                if figures.spot {
                    let price = spot_model::price(on_demand, &figures.name, &zone.name);
                    offer(&zone.spot, price);
                }
            }
        }
        offerings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_region_loads() {
        for region in crate::regions() {
            let catalog = ec2(region, &ClassSettings::default()).unwrap();
            assert!(catalog.types.len() > 300, "{region}");
            assert!(
                catalog
                    .types
                    .windows(2)
                    .all(|two| two[0].name < two[1].name)
            );
            let n_zones = zones(region).unwrap().len();
            for instance_type in &catalog.types {
                let n_offerings = instance_type.offerings.len();
                assert!(n_offerings == n_zones || n_offerings == 2 * n_zones);
            }
        }
    }

    #[test]
    fn prices_of_another_region_come_with_a_warning() {
        let warnings = |region| ec2(region, &ClassSettings::default()).unwrap().warnings;
        let prices_of = |region| ec2(region, &ClassSettings::default()).unwrap().prices_of;
        assert_eq!(prices_of("us-gov-west-1"), "us-gov-west-1");
        assert_eq!(prices_of("eu-west-1"), "us-east-1");
        assert!(warnings("us-east-1").is_empty());
        assert!(warnings("us-gov-west-1").is_empty());
        assert_eq!(
            warnings("eu-west-1"),
            ["no price table for eu-west-1: using the prices of us-east-1 in US dollars"]
        );
        assert_eq!(
            warnings("cn-north-1"),
            ["prices in cn-north-1 are in yuan (CNY), not dollars"]
        );
    }

    #[test]
    fn a_type_without_a_price_is_known_but_not_sold() {
        let settings = ClassSettings::default();
        let known = ec2_type("p5e.48xlarge", "us-east-1", &settings).unwrap();
        assert!(known.unwrap().offerings.is_empty());
        let catalog = ec2("us-east-1", &settings).unwrap();
        assert!(
            catalog
                .types
                .iter()
                .all(|sold| &*sold.name != "p5e.48xlarge")
        );
        assert!(
            ec2_type("m5.huge", "us-east-1", &settings)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn every_label_of_a_type_or_offering_is_well_known() {
        let catalog = ec2("us-east-1", &ClassSettings::default()).unwrap();
        for instance_type in &catalog.types {
            let offered = (instance_type.offerings.iter()).flat_map(|offer| offer.labels.keys());
            for key in instance_type.labels.keys().chain(offered) {
                assert!(catalog.well_known.contains(key), "{key}");
            }
        }
    }
}
