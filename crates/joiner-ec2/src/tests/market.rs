//! Instance types, offerings, prices, shortages.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_api::types::Ec2NodeClassStatus;
use joiner_catalog::{
    ClassSettings, Figures, PlacementGroup, PlacementStrategy, ec2, ec2_figures, ec2_figures_of,
};
use joiner_model::{InstanceType, Name, NanoDollars, ResourceName};
use serde_json::{Value, json};

use crate::answer::{InstanceTypeInfo, SpotPrice};
use crate::launch::CapacityType;
use crate::launch::outcome::SoldOut;
use crate::market::{
    DiscoveredMemory, Market, Offered, Prices, SHORTAGE_LASTS, Shortages, figures, offered,
    on_demand_prices, pricing_queries, pricing_region, spot_price_query, types_query,
};
use crate::reservations::Left;

fn read(info: Value) -> Figures {
    figures(&serde_json::from_value::<InstanceTypeInfo>(info).unwrap())
}

fn m5_large() -> Value {
    json!({
        "InstanceType": "m5.large", "BareMetal": false, "Hypervisor": "nitro",
        "SupportedUsageClasses": ["on-demand", "spot"],
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "SustainedClockSpeedInGhz": 3.1, "Manufacturer": "Intel"},
        "VCpuInfo": {"DefaultVCpus": 2, "DefaultCores": 1}, "MemoryInfo": {"SizeInMiB": 8192},
        "InstanceStorageSupported": false,
        "EbsInfo": {"EbsOptimizedSupport": "default", "EbsOptimizedInfo": {"MaximumBandwidthInMbps": 4750}},
        "NetworkInfo": {"MaximumNetworkInterfaces": 3, "MaximumNetworkCards": 1, "DefaultNetworkCardIndex": 0,
            "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3}],
            "Ipv4AddressesPerInterface": 10, "EnaSupport": "required", "EfaSupported": false,
            "EncryptionInTransitSupported": false},
        "PlacementGroupInfo": {"SupportedStrategies": ["cluster", "partition", "spread"]},
        "NitroEnclavesSupport": "unsupported",
    })
}

#[test]
fn what_ec2_describes_is_what_the_table_has() {
    let known = ec2_figures_of("m5.large").unwrap();
    assert_eq!(&read(m5_large()), known);
    let mut gpus = m5_large();
    for (key, value) in [
        ("InstanceType", json!("g4dn.metal")),
        ("Hypervisor", Value::Null),
        ("VCpuInfo", json!({"DefaultVCpus": 96})),
        ("MemoryInfo", json!({"SizeInMiB": 393_216})),
        (
            "ProcessorInfo",
            json!({"SupportedArchitectures": ["x86_64"], "SustainedClockSpeedInGhz": 2.5,
            "Manufacturer": "Intel"}),
        ),
        (
            "GpuInfo",
            json!({"Gpus": [{"Name": "T4", "Manufacturer": "NVIDIA", "Count": 8,
            "MemoryInfo": {"SizeInMiB": 16384}}]}),
        ),
        (
            "InstanceStorageInfo",
            json!({"TotalSizeInGB": 1800, "NvmeSupport": "required"}),
        ),
        (
            "EbsInfo",
            json!({"EbsOptimizedSupport": "default",
            "EbsOptimizedInfo": {"MaximumBandwidthInMbps": 19000}}),
        ),
        (
            "NetworkInfo",
            json!({"MaximumNetworkInterfaces": 15, "Ipv4AddressesPerInterface": 50,
            "EnaSupport": "required", "EfaSupported": true, "EfaInfo": {"MaximumEfaInterfaces": 1},
            "EncryptionInTransitSupported": true}),
        ),
    ] {
        gpus[key] = value;
    }
    let (figures, known) = (read(gpus), ec2_figures_of("g4dn.metal").unwrap());
    assert_eq!(figures.gpu, known.gpu);
    assert_eq!(
        (figures.nvme, figures.local_disk_gb, figures.efa),
        (known.nvme, known.local_disk_gb, known.efa)
    );
    assert_eq!(
        (&figures.hypervisor, &figures.enis),
        (&known.hypervisor, &known.enis)
    );
    assert_eq!(figures.network_mbps, known.network_mbps);
}

#[test]
fn aws_101_accelerators_are_read() {
    let mut info = m5_large();
    info["InstanceType"] = json!("inf2.48xlarge");
    info["NeuronInfo"] =
        json!({"NeuronDevices": [{"Name": "Inferentia2", "Count": 12, "CoreInfo": {"Count": 2}}]});
    info["InferenceAcceleratorInfo"] = json!({"Accelerators": [{"Name": "Inferentia2", "Manufacturer": "AWS",
        "Count": 12}]});
    assert_eq!(
        read(info.clone()).accelerator,
        ec2_figures_of("inf2.48xlarge").unwrap().accelerator
    );
    info.as_object_mut().unwrap().remove("NeuronInfo");
    info["InferenceAcceleratorInfo"] = json!({"Accelerators": [{"Name": "Gaudi HL-205", "Manufacturer": "Habana",
        "Count": 8}]});
    let chips = read(info).accelerator.unwrap();
    assert_eq!(
        (&*chips.maker, &*chips.name, chips.neuron_cores),
        ("habana", "gaudi-hl-205", 0)
    );
}

#[test]
fn aws_089_the_default_card_comes_first() {
    let mut info = m5_large();
    info["NetworkInfo"]["DefaultNetworkCardIndex"] = json!(1);
    info["NetworkInfo"]["NetworkCards"] = json!([
        {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 7},
        {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 8}]);
    assert_eq!(read(info).enis, [8, 7]);
}

#[test]
fn odd_types_are_read_too() {
    let figures = read(json!({"InstanceType": "odd"}));
    assert_eq!(
        (&*figures.family, &*figures.size, figures.vcpus),
        ("odd", "", 0)
    );
    let mut info = m5_large();
    info["ProcessorInfo"]["SupportedArchitectures"] = json!(["i386", "x86_64"]);
    info["GpuInfo"] = json!({"Gpus": [{"Name": "A"}, {"Name": "B"}]});
    let figures = read(info);
    assert_eq!((&*figures.arch, figures.gpu), ("amd64", None));
}

struct World {
    figures: Vec<Figures>,
    memory: BTreeMap<Name, u64>,
    offered: Offered,
    prices: Prices,
    overlays: BTreeMap<Name, NanoDollars>,
    shortages: Shortages,
    shifted: BTreeSet<String>,
    left: Left,
    settings: ClassSettings,
    status: Value,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        let names = ["m5.large", "m5.xlarge", "m6g.large"];
        let zones = ["us-east-1a", "us-east-1b"].map(Name::from);
        let all = names.map(|name| (Name::from(name), BTreeSet::from(zones.clone())));
        Self {
            figures: names
                .iter()
                .map(|name| ec2_figures_of(name).unwrap().clone())
                .collect(),
            memory: BTreeMap::new(),
            offered: all.into_iter().collect(),
            prices: Prices::built_in("us-east-1"),
            overlays: BTreeMap::new(),
            shortages: Shortages::default(),
            shifted: BTreeSet::new(),
            left: Left::default(),
            settings: ClassSettings::default(),
            status: json!({"subnets": [{"id": "subnet-1", "zone": "us-east-1a", "zoneID": "use1-az1"},
                {"id": "subnet-2", "zone": "us-east-1b", "zoneID": "use1-az2"}]}),
            now: "2026-11-18T12:00:00Z".parse().unwrap(),
        }
    }

    fn types(&self) -> Vec<InstanceType> {
        let market = Market {
            region: "us-east-1",
            figures: &self.figures,
            discovered_memory: &self.memory,
            offered: &self.offered,
            prices: &self.prices,
            overlay_prices: &self.overlays,
            shortages: &self.shortages,
            shifted: &self.shifted,
            left: &self.left,
            reserving: true,
        };
        let status: Ec2NodeClassStatus = serde_json::from_value(self.status.clone()).unwrap();
        market.types(&self.settings, &status, self.now)
    }

    /// Zones and capacity types that a type can be had in.
    fn available(&self, name: &str) -> String {
        let types = self.types();
        let ty = types.iter().find(|ty| &*ty.name == name).unwrap();
        let text = |key: &str, offering: &joiner_model::Offering| offering.labels[key].to_string();
        let all = ty
            .offerings
            .iter()
            .filter(|offering| offering.available)
            .map(|offering| {
                let zone = text("topology.kubernetes.io/zone", offering);
                format!(
                    "{}/{}",
                    &zone[zone.len() - 1..],
                    text("karpenter.sh/capacity-type", offering)
                )
            });
        all.collect::<Vec<_>>().join(" ")
    }
}

const ALL: &str = "a/on-demand a/spot b/on-demand b/spot";

#[test]
fn the_catalog_of_the_cloud_is_the_built_in_one() {
    let mut world = World::new();
    world.figures = ec2_figures().to_vec();
    let zones: BTreeSet<Name> = ["a", "b", "c", "d", "e", "f"]
        .map(|letter| format!("us-east-1{letter}").into())
        .into();
    world.offered = world
        .figures
        .iter()
        .map(|figures| (figures.name.clone(), zones.clone()))
        .collect();
    let cloud = world.types();
    let built_in = ec2("us-east-1", &ClassSettings::default()).unwrap().types;
    for expected in &built_in {
        let at = cloud
            .binary_search_by(|ty| ty.name.cmp(&expected.name))
            .unwrap();
        let ty = &cloud[at];
        assert_eq!(
            (&ty.labels, &ty.capacity, &ty.overhead),
            (&expected.labels, &expected.capacity, &expected.overhead)
        );
        assert_eq!(
            ty.offerings.len(),
            expected.offerings.len(),
            "{}",
            expected.name
        );
    }
}

#[test]
fn aws_126_what_is_sold_out_stays_in_the_list() {
    let mut world = World::new();
    assert_eq!(world.available("m5.large"), ALL);
    let offering = |capacity_type, zone: &str| SoldOut::Offering {
        capacity_type,
        instance_type: "m5.large".to_owned(),
        zone: zone.to_owned(),
    };
    let before = world.shortages.version();
    let now = world.now;
    world
        .shortages
        .mark(offering(CapacityType::Spot, "us-east-1a"), None, now);
    assert_ne!(world.shortages.version(), before);
    assert_eq!(
        world.available("m5.large"),
        "a/on-demand b/on-demand b/spot"
    );
    assert_eq!(world.available("m5.xlarge"), ALL);
    world
        .shortages
        .mark(SoldOut::CapacityType(CapacityType::Spot), None, now);
    assert_eq!(world.available("m5.xlarge"), "a/on-demand b/on-demand");
    assert_eq!(world.types().len(), 3);
    world.now = now + SHORTAGE_LASTS;
    assert_eq!(world.available("m5.large"), ALL);
    let version = world.shortages.version();
    world.shortages.sweep(world.now);
    assert_eq!(world.shortages.iter(now).count(), 0);
    assert_ne!(world.shortages.version(), version);
}

#[test]
fn aws_132_a_zone_goes_with_its_last_subnet() {
    let mut world = World::new();
    let subnets = world.status["subnets"].as_array_mut().unwrap();
    subnets.push(json!({"id": "subnet-3", "zone": "us-east-1a", "zoneID": "use1-az1"}));
    let now = world.now;
    world
        .shortages
        .mark(SoldOut::Subnet("subnet-1".to_owned()), None, now);
    assert_eq!(world.available("m5.large"), ALL);
    world
        .shortages
        .mark(SoldOut::Subnet("subnet-3".to_owned()), None, now);
    assert_eq!(world.available("m5.large"), "b/on-demand b/spot");
}

#[test]
fn shortages_of_a_placement_group_are_its_own() {
    let mut world = World::new();
    let now = world.now;
    let zone = "us-east-1a".to_owned();
    world
        .shortages
        .mark(SoldOut::GroupInZone { zone }, Some("pg-1"), now);
    assert_eq!(world.available("m5.large"), ALL);
    let group = |strategy| PlacementGroup {
        id: "pg-1".into(),
        strategy,
    };
    world.settings.placement_group = Some(group(PlacementStrategy::Spread));
    assert_eq!(world.available("m5.large"), "b/on-demand b/spot");
    world.settings.placement_group = Some(group(PlacementStrategy::Partition(2)));
    assert_eq!(world.types()[0].offerings.len(), 8);
}

#[test]
fn aws_107_a_zone_needs_an_offer_and_a_subnet() {
    let mut world = World::new();
    world
        .offered
        .get_mut("m5.large")
        .unwrap()
        .remove("us-east-1b");
    world.status["subnets"].as_array_mut().unwrap().remove(0);
    assert_eq!(world.available("m5.large"), "");
    assert_eq!(world.available("m5.xlarge"), "b/on-demand b/spot");
    let types = world.types();
    let zone_ids = types[0]
        .offerings
        .iter()
        .filter(|offering| offering.labels.contains_key("topology.k8s.aws/zone-id"));
    assert_eq!(zone_ids.count(), 2);
}

#[test]
fn aws_119_a_zone_that_is_shifted_away_from() {
    let mut world = World::new();
    world.shifted.insert("use1-az1".to_owned());
    assert_eq!(world.available("m5.large"), "b/on-demand b/spot");
}

#[test]
fn aws_118_123_174_without_a_price_there_is_nothing_to_buy() {
    let mut world = World::new();
    let price = |zone: &str, price: &str| SpotPrice {
        availability_zone: zone.to_owned(),
        instance_type: "m5.large".to_owned(),
        spot_price: price.to_owned(),
        timestamp: "2026-11-18T12:00:00Z".to_owned(),
    };
    assert!(!world.prices.learn_spot(&[]));
    assert_eq!(world.available("m5.large"), ALL);
    assert!(world.prices.learn_spot(&[price("us-east-1a", "0.031")]));
    assert_eq!(
        world.available("m5.large"),
        "a/on-demand a/spot b/on-demand"
    );
    assert!(world.prices.learn_spot(&[price("us-east-1b", "0.032")]));
    assert_eq!(world.available("m5.large"), ALL);
    assert_eq!(world.available("m5.xlarge"), "a/on-demand b/on-demand");
    world
        .overlays
        .insert("m5.xlarge".into(), NanoDollars::new(5));
    assert_eq!(world.available("m5.xlarge"), ALL);
}

#[test]
fn aws_152_reserved_offerings() {
    let mut world = World::new();
    let reservation = |id: &str, more: Value| {
        let mut reservation = json!({"id": id, "availabilityZone": "us-east-1a", "instanceType": "m5.large",
            "instanceMatchCriteria": "open", "ownerID": "1", "reservationType": "default", "interruptible": true});
        for (key, value) in more.as_object().unwrap() {
            reservation[key] = value.clone();
        }
        reservation
    };
    world.status["capacityReservations"] = json!([
        reservation("cr-1", json!({})),
        reservation("cr-2", json!({"state": "expiring"})),
        reservation("cr-3", json!({"availabilityZone": "us-east-1z"})),
        reservation("cr-4", json!({"instanceType": "m5.xlarge"})),
        reservation("cr-5", json!({})),
    ]);
    let free = [("cr-1", 3), ("cr-2", 3), ("cr-5", 0)].map(|(id, count)| (id.to_owned(), count));
    world.left.learn(&free.into());
    let types = world.types();
    let reserved: Vec<_> = types[0]
        .offerings
        .iter()
        .filter(|offering| offering.reservation.is_some())
        .collect();
    let ids: Vec<(&str, bool)> = (reserved.iter())
        .map(|offering| {
            (
                &*offering.labels["karpenter.k8s.aws/capacity-reservation-id"],
                offering.available,
            )
        })
        .collect();
    assert_eq!(ids, [("cr-1", true), ("cr-2", false), ("cr-5", false)]);
    assert_eq!(reserved[0].reservation, Some(("cr-1".into(), 3)));
    assert_eq!(reserved[0].price, NanoDollars::new(9));
    assert_eq!(
        &*reserved[0].labels["karpenter.k8s.aws/capacity-reservation-interruptible"],
        "true"
    );
}

#[test]
fn aws_109_memory_that_was_seen_replaces_the_estimate() {
    let mut world = World::new();
    let memory = |world: &World| world.types()[0].capacity.get(&ResourceName::Memory);
    let estimate = memory(&world);
    world.memory.insert("m5.large".into(), estimate + 4096);
    assert_eq!(memory(&world), estimate + 4096);
}

#[test]
fn aws_109_which_memory_was_seen() {
    let status = |ids: &[&str]| {
        let amis: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        serde_json::from_value::<Ec2NodeClassStatus>(json!({"amis": amis})).unwrap()
    };
    let both = status(&["ami-1", "ami-2"]);
    let name = Name::from("m5.large");
    let mut known = DiscoveredMemory::default();
    let get = |known: &DiscoveredMemory, status: &Ec2NodeClassStatus| {
        known.of(status).get("m5.large").copied()
    };
    known.learn(&both, &name, ("ami-0", Some("ami-2")), 100);
    assert_eq!(get(&known, &both), None);
    known.learn(&both, &name, ("ami-2", Some("ami-2")), 100);
    known.learn(&both, &name, ("ami-2", Some("ami-2")), 120);
    assert_eq!(get(&known, &both), Some(100));
    known.learn(&both, &name, ("ami-2", Some("ami-2")), 90);
    assert_eq!(get(&known, &status(&["ami-2", "ami-1"])), Some(90));
    assert_eq!(get(&known, &status(&["ami-3"])), None);
}

#[test]
fn windows_has_no_arm() {
    let mut world = World::new();
    world.settings.ami_family = joiner_catalog::AmiFamily::Windows2022;
    assert_eq!(world.types().len(), 2);
}

fn product(name: &str, currency: &str, price: &str) -> String {
    json!({"product": {"attributes": {"instanceType": name}}, "terms": {"OnDemand": {"A.B": {"priceDimensions":
        {"A.B.C": {"unit": "Hrs", "pricePerUnit": {currency: price}}}}}}})
    .to_string()
}

#[test]
fn aws_172_prices_of_the_service() {
    let products = [
        product("m5.large", "USD", "0.0960000000"),
        product("m5.xlarge", "USD", "0.0000000000"),
        product("m5.2xlarge", "CNY", "1.5"),
        product("m5.4xlarge", "USD", "0.00000000056"),
        "no json".to_owned(),
        "{}".to_owned(),
    ];
    let told = |region: &str| {
        let prices = on_demand_prices(&products, region);
        let text = |(name, price): (&Name, &NanoDollars)| format!("{name} {price}");
        prices.iter().map(text).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(told("us-east-1"), "m5.4xlarge 0.000000001, m5.large 0.096");
    assert_eq!(told("cn-north-1"), "m5.2xlarge 1.50");
    let mut prices = Prices::built_in("us-east-1");
    let old = prices.on_demand("m5.xlarge");
    let new = || on_demand_prices(&products, "us-east-1");
    assert!(!prices.learn_on_demand([new(), BTreeMap::new()]));
    assert_eq!(prices.on_demand("m5.4xlarge").unwrap().to_string(), "0.768");
    assert!(prices.learn_on_demand([new(), new()]));
    assert_eq!(
        prices.on_demand("m5.4xlarge").unwrap().to_string(),
        "0.000000001"
    );
    assert_eq!(prices.on_demand("m5.xlarge"), old);
}

#[test]
fn aws_172_what_is_asked_about_prices() {
    let [shared, metal] =
        pricing_queries("us-east-1").map(|query| serde_json::to_value(query).unwrap());
    let last = |query: &Value| {
        (
            query["Filters"][6]["Value"].clone(),
            query["Filters"][7]["Value"].clone(),
        )
    };
    assert_eq!(last(&shared), (json!("Shared"), json!("Compute Instance")));
    assert_eq!(
        last(&metal),
        (json!("Dedicated"), json!("Compute Instance (bare metal)"))
    );
    assert_eq!(
        shared["Filters"][0],
        json!({"Field": "regionCode", "Type": "TERM_MATCH", "Value": "us-east-1"})
    );
    assert_eq!(
        (shared["MaxResults"].clone(), shared["ServiceCode"].clone()),
        (json!(100), json!("AmazonEC2"))
    );
    let now: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
    assert_eq!(
        serde_json::to_value(spot_price_query(now)).unwrap(),
        json!({"MaxResults": 2000, "ProductDescriptions": ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"],
            "StartTime": "2026-11-18T12:00:00Z"})
    );
    assert_eq!(types_query().max_results, Some(100));
}

#[test]
fn aws_173_where_prices_are_asked() {
    for (region, expected) in [
        ("ap-northeast-1", Some("ap-south-1")),
        ("cn-north-1", Some("cn-northwest-1")),
        ("eu-west-1", Some("eu-central-1")),
        ("sa-east-1", Some("us-east-1")),
        ("us-gov-west-1", None),
    ] {
        assert_eq!(pricing_region(region), expected, "{region}");
    }
    let unknown = Prices::built_in("xx-nowhere-1");
    assert_eq!(unknown, Prices::built_in("us-east-1"));
}

#[test]
fn zones_of_types() {
    let answers = json!([
        {"InstanceType": "m5.large", "Location": "a", "LocationType": "availability-zone"},
        {"InstanceType": "m5.large", "Location": "b", "LocationType": "availability-zone"}]);
    let found = offered(&serde_json::from_value::<Vec<_>>(answers).unwrap());
    assert_eq!(found["m5.large"].len(), 2);
}

#[test]
fn of_several_prices_the_newest_counts() {
    let mut prices = Prices::built_in("us-east-1");
    let price = |price: &str, time: &str| SpotPrice {
        availability_zone: "a".to_owned(),
        instance_type: "m5.large".to_owned(),
        spot_price: price.to_owned(),
        timestamp: time.to_owned(),
    };
    assert!(prices.learn_spot(&[
        price("0.2", "2026-11-18T12:00:00Z"),
        price("0.1", "2026-11-18T11:00:00Z")
    ]));
    assert_eq!(
        prices
            .spot(&"m5.large".into(), &"a".into())
            .unwrap()
            .to_string(),
        "0.20"
    );
}
