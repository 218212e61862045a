//! Behaviors of the upstream AWS provider that are about labels, prices and which types a class
//! can launch, each named by its number in the compatibility table.

use joiner_catalog::{
    AmiFamily, ClassSettings, InterfaceKind, NetworkInterface, PlacementGroup, PlacementStrategy,
    ec2, ec2_type,
};
use joiner_model::{InstanceType, keys};

const REGION: &str = "us-east-1";

fn family(ami_family: AmiFamily) -> ClassSettings {
    ClassSettings {
        ami_family,
        ..ClassSettings::default()
    }
}

fn get(name: &str, settings: &ClassSettings) -> InstanceType {
    let found = ec2_type(name, REGION, settings).expect("a known region");
    found.expect("a type of the table")
}

fn available(name: &str, settings: &ClassSettings) -> bool {
    let offerings = get(name, settings).offerings;
    assert!(!offerings.is_empty(), "{name} is sold");
    offerings.iter().all(|offering| offering.available)
}

fn label(name: &str, key: &str) -> Option<String> {
    let labels = get(name, &ClassSettings::default()).labels;
    let values = labels.get(key)?;
    Some(values.join("|"))
}

fn interfaces(list: &[(u32, u32, InterfaceKind)]) -> ClassSettings {
    let interfaces =
        list.iter()
            .map(|&(card, device, kind)| NetworkInterface { card, device, kind });
    ClassSettings {
        network_interfaces: interfaces.collect(),
        ..ClassSettings::default()
    }
}

#[test]
fn aws_105_flex_is_a_label() {
    let key = "karpenter.k8s.aws/instance-capability-flex";
    assert_eq!(label("c7i-flex.large", key).as_deref(), Some("true"));
    assert_eq!(label("c7i.large", key).as_deref(), Some("false"));
}

#[test]
fn aws_108_nitro_sandbox_is_a_label() {
    let key = "karpenter.k8s.aws/nitro-sandbox";
    assert_eq!(label("m5.xlarge", key).as_deref(), Some("true"));
    assert_eq!(label("t3.large", key).as_deref(), Some("false"));
}

#[test]
fn aws_113_a1_has_no_al2023_image() {
    assert!(!available("a1.large", &family(AmiFamily::Al2023)));
    assert!(available("a1.large", &family(AmiFamily::Bottlerocket)));
    assert!(available("m6g.large", &family(AmiFamily::Al2023)));
}

#[test]
fn aws_114_interfaces_beyond_the_type() {
    use InterfaceKind::{EfaOnly, Interface};
    let first = (0, 0, Interface);
    assert!(available("m5.large", &interfaces(&[first])));
    assert!(!available(
        "m5.large",
        &interfaces(&[first, (0, 3, Interface)])
    ));
    assert!(!available(
        "m5.large",
        &interfaces(&[first, (1, 0, Interface)])
    ));
    assert!(!available(
        "m5.large",
        &interfaces(&[first, (0, 1, EfaOnly)])
    ));
    assert!(available(
        "p5.48xlarge",
        &interfaces(&[first, (31, 1, EfaOnly)])
    ));
    assert!(!available(
        "p5.48xlarge",
        &interfaces(&[first, (32, 1, EfaOnly)])
    ));
    // No ENA.
    assert!(!available("m3.large", &interfaces(&[first])));
}

#[test]
fn aws_115_placement_strategies() {
    let group = |strategy| ClassSettings {
        placement_group: Some(PlacementGroup {
            id: "pg-1".into(),
            strategy,
        }),
        ..ClassSettings::default()
    };
    assert!(!available("t3.large", &group(PlacementStrategy::Cluster)));
    assert!(available("t3.large", &group(PlacementStrategy::Spread)));
    assert!(available("m5.large", &group(PlacementStrategy::Cluster)));
    let partitions = get("m5.large", &group(PlacementStrategy::Partition(3)));
    assert_eq!(partitions.offerings.len(), 6 * 2 * 3);
    let id = &partitions.labels["karpenter.k8s.aws/placement-group-id"];
    assert_eq!(&*id[0], "pg-1");
    let key = "karpenter.k8s.aws/placement-group-partition";
    let numbers: Vec<_> = (partitions.offerings.iter())
        .map(|offering| &*offering.labels[key])
        .collect();
    for number in ["1", "2", "3"] {
        assert_eq!(numbers.iter().filter(|n| **n == number).count(), 12);
    }
}

#[test]
fn aws_116_nested_virtualization() {
    let nested = ClassSettings {
        nested_virtualization: true,
        ..ClassSettings::default()
    };
    assert!(!available("m5.large", &nested));
    assert!(available("m8i.large", &nested));
    assert!(available("m5.large", &ClassSettings::default()));
}

#[test]
fn aws_117_connection_tracking_needs_nitro() {
    let tracking = ClassSettings {
        connection_tracking: true,
        ..ClassSettings::default()
    };
    assert!(!available("m4.large", &tracking));
    assert!(!available("m5.metal", &tracking));
    assert!(available("m5.large", &tracking));
}

#[test]
fn a_class_buys_where_it_has_subnets_and_knows_every_type() {
    let within = |zones: &[&str]| {
        let settings = ClassSettings {
            zones: Some(zones.iter().map(|zone| (*zone).into()).collect()),
            ..ClassSettings::default()
        };
        ec2(REGION, &settings).unwrap().types
    };
    let everywhere = ec2(REGION, &ClassSettings::default()).unwrap().types;
    for (zones, n_offerings) in [(&["us-east-1a", "us-east-1b"][..], 4), (&["eu-west-1a"], 0)] {
        let types = within(zones);
        assert_eq!(types.len(), everywhere.len(), "{zones:?}");
        let m5 = types.iter().find(|sold| &*sold.name == "m5.large").unwrap();
        assert_eq!(m5.offerings.len(), n_offerings, "{zones:?}");
        assert!((m5.offerings.iter()).all(|offer| zones.contains(&&*offer.labels[keys::ZONE])));
    }
}

#[test]
fn aws_175_a_region_with_a_table_has_exactly_its_prices() {
    let catalog = ec2("us-gov-west-1", &ClassSettings::default()).unwrap();
    // The table has 770 rows; two are of types without figures.
    assert_eq!(catalog.types.len(), 768);
    let price = |region: &str, name: &str| {
        let catalog = ec2(region, &ClassSettings::default()).unwrap();
        let found = catalog.types.into_iter().find(|sold| *sold.name == *name);
        found.unwrap().offerings[0].price.to_string()
    };
    assert_eq!(price("us-east-1", "u7in-32tb.224xlarge"), "360.98695");
    assert_eq!(price("us-east-1", "t4g.nano"), "0.0042");
    assert_eq!(price("us-east-1", "m5.xlarge"), "0.192");
    assert_eq!(price("us-gov-west-1", "c1.medium"), "0.157");
    assert_eq!(price("cn-north-1", "c3.2xlarge"), "4.217");
    assert_eq!(price("eu-west-1", "m5.xlarge"), "0.192");
}

#[test]
fn windows_classes_see_windows_labels_and_no_arm() {
    let catalog = ec2(REGION, &family(AmiFamily::Windows2022)).unwrap();
    for instance_type in &catalog.types {
        assert_eq!(&*instance_type.labels["kubernetes.io/os"][0], "windows");
        assert_eq!(&*instance_type.labels["kubernetes.io/arch"][0], "amd64");
        let build = &instance_type.labels["node.kubernetes.io/windows-build"];
        assert_eq!(&*build[0], "10.0.20348");
    }
}

#[test]
fn spot_costs_between_the_two_ends_of_the_model() {
    let catalog = ec2(REGION, &ClassSettings::default()).unwrap();
    let again = ec2(REGION, &ClassSettings::default()).unwrap();
    let (mut least, mut most) = (u64::MAX, 0);
    for (instance_type, same) in catalog.types.iter().zip(&again.types) {
        let mut on_demand = 0;
        for (offering, same) in instance_type.offerings.iter().zip(&same.offerings) {
            assert_eq!(offering.price, same.price);
            let price = offering.price.get();
            if &*offering.labels["karpenter.sh/capacity-type"] == "on-demand" {
                on_demand = price;
                continue;
            }
            // Half a step of rounding either way.
            assert!((price + 5000) * 10_000 >= on_demand * 2800);
            assert!(price.saturating_sub(5000) * 10_000 <= on_demand * 5500);
            least = least.min(price * 10_000 / on_demand);
            most = most.max(price * 10_000 / on_demand);
        }
    }
    assert!(least < 2850 && most > 5450, "{least} {most}");
}
