//! Filters, subnets and fleets.

use std::collections::BTreeMap;

use joiner_api::types::Subnet;
use joiner_catalog::{ClassSettings, ec2};
use joiner_model::{
    InstanceType, Labels, MinValuesPolicy, Name, NanoDollars, Offering, Operator, Requirement,
    Requirements, ResourceName, Resources,
};
use serde_json::json;

use crate::launch::filter::{NoTypes, TYPES_MAX, filter};
use crate::launch::fleet::{FleetAsk, Made, client_token, fleet, together};
use crate::launch::subnets::{Addresses, choose};
use crate::launch::{Ask, CapacityType, Reservation, ReservationKind, Tenancy};
use crate::request::CreateFleet;
use crate::tags::Tag;

const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
const FAMILY: &str = "karpenter.k8s.aws/instance-family";
const TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";

fn types() -> Vec<InstanceType> {
    ec2("us-east-1", &ClassSettings::default()).unwrap().types
}

fn one_of(key: &str, values: &[&str]) -> Requirement {
    Requirement::one_of(key, values.iter().map(|value| Name::from(*value)))
}

fn requirements(all: &[(&str, &[&str])]) -> Requirements {
    let terms = all.iter().map(|(key, values)| one_of(key, values));
    terms.collect()
}

fn room(cpu: u64) -> Resources {
    Resources::new()
        .with(ResourceName::Cpu, cpu)
        .with(ResourceName::Pods, 5)
}

const EITHER: (&str, &[&str]) = (CAPACITY_TYPE, &["spot", "on-demand"]);
const AMD64: (&str, &[&str]) = ("kubernetes.io/arch", &["amd64"]);

/// An offering like the type's first one, but reserved.
fn reserved(ty: &InstanceType, id: &str, kind: &str, left: u32, price: u64) -> Offering {
    let mut offering = ty.offerings[0].clone();
    let mut set = |key: &str, value: &str| {
        offering.labels.insert(key.into(), value.into());
    };
    set(CAPACITY_TYPE, "reserved");
    set("karpenter.k8s.aws/capacity-reservation-id", id);
    let (name, may_go) = match kind {
        "interruptible" => ("default", "true"),
        other => (other, "false"),
    };
    set("karpenter.k8s.aws/capacity-reservation-type", name);
    set(
        "karpenter.k8s.aws/capacity-reservation-interruptible",
        may_go,
    );
    offering.reservation = Some((id.into(), left));
    offering.price = NanoDollars::new(price);
    offering
}

fn with_offerings(name: &str, more: impl Fn(&InstanceType) -> Vec<Offering>) -> InstanceType {
    let mut ty = types().into_iter().find(|ty| &*ty.name == name).unwrap();
    ty.offerings.extend(more(&ty));
    ty
}

fn filtered(
    types: &[InstanceType],
    requirements: &Requirements,
) -> Result<Vec<InstanceType>, NoTypes> {
    let requests = room(1000);
    let ask = Ask {
        requirements,
        requests: &requests,
    };
    filter(types, &ask, MinValuesPolicy::Strict)
}

fn names(types: &[InstanceType]) -> Vec<&str> {
    types.iter().map(|ty| &*ty.name).collect()
}

#[test]
fn aws_120_the_cheapest_sixty() {
    let wanted = requirements(&[(CAPACITY_TYPE, &["on-demand"]), AMD64]);
    let left = filtered(&types(), &wanted).unwrap();
    assert_eq!(left.len(), TYPES_MAX);
    let price = |ty: &InstanceType| ty.offerings.iter().map(|offering| offering.price).min();
    assert!(left.windows(2).all(|two| price(&two[0]) <= price(&two[1])));
    let dearest = left.iter().map(price).max();
    let all = types();
    let requests = room(1000);
    let ask = Ask {
        requirements: &wanted,
        requests: &requests,
    };
    let cheaper = all.iter().filter(|ty| {
        ask.cheapest(ty)
            .is_some_and(|price| Some(price) < dearest.flatten())
    });
    let metal = |ty: &&InstanceType| !ty.name.contains("metal");
    assert!(
        cheaper
            .filter(metal)
            .all(|ty| names(&left).contains(&&*ty.name))
    );
}

#[test]
fn aws_106_metal_and_devices_are_for_those_who_ask() {
    let wanted = requirements(&[(CAPACITY_TYPE, &["on-demand"]), (FAMILY, &["m5", "g4dn"])]);
    let left = filtered(&types(), &wanted).unwrap();
    assert!(
        names(&left)
            .iter()
            .all(|name| name.starts_with("m5.") && !name.contains("metal"))
    );
    let only = |families: &[&str], size: &[&str]| {
        let size = ("karpenter.k8s.aws/instance-size", size);
        let wanted = requirements(&[(CAPACITY_TYPE, &["on-demand"]), (FAMILY, families), size]);
        filtered(&types(), &wanted).map(|left| left.len())
    };
    assert_eq!(only(&["m5"], &["metal"]), Ok(1));
    assert_eq!(only(&["g4dn"], &["xlarge"]), Ok(1));
    let mut wanted = requirements(&[(CAPACITY_TYPE, &["on-demand"])]);
    wanted.add(one_of(FAMILY, &["m5", "g4dn"]).with_min_values(Some(2)));
    let left = filtered(&types(), &wanted).unwrap();
    assert!(names(&left).contains(&"m5.metal"));
    assert!(names(&left).contains(&"g4dn.xlarge"));
}

#[test]
fn aws_121_156_spot_that_is_dearer_than_on_demand() {
    let all: Vec<InstanceType> = (types().into_iter())
        .filter(|ty| ["m5.large", "m5.4xlarge"].contains(&&*ty.name))
        .collect();
    let spot = |requirements: &Requirements| {
        let left = filtered(&all, requirements).unwrap();
        let offerings = left.into_iter().flat_map(|ty| ty.offerings);
        let spot = offerings.filter(|offering| CapacityType::Spot.is_of(offering));
        spot.map(|offering| offering.price.get())
            .collect::<Vec<u64>>()
    };
    let both = requirements(&[EITHER]);
    // 0.096 dollars is the price of m5.large, and m5.4xlarge is far above it even as spot.
    assert_eq!(spot(&both).len(), 6);
    assert!(spot(&both).iter().all(|price| *price <= 96_000_000));
    assert_eq!(spot(&requirements(&[(CAPACITY_TYPE, &["spot"])])).len(), 12);
    let mut wanted = both.clone();
    wanted.add(one_of(TYPE, &["m5.large", "m5.4xlarge"]).with_min_values(Some(2)));
    assert_eq!(spot(&wanted).len(), 12);
}

#[test]
fn aws_122_which_capacity_type() {
    let choose = |requirements: &Requirements, types: &[InstanceType]| {
        let requests = room(1000);
        let ask = Ask {
            requirements,
            requests: &requests,
        };
        CapacityType::choose(&ask, types.iter())
    };
    let all = vec![with_offerings("m5.large", |ty| {
        vec![reserved(ty, "cr-1", "default", 1, 1)]
    })];
    let plain = vec![with_offerings("m5.large", |_| Vec::new())];
    let every = requirements(&[(CAPACITY_TYPE, &["spot", "on-demand", "reserved"])]);
    assert_eq!(choose(&every, &all), CapacityType::Reserved);
    assert_eq!(choose(&every, &plain), CapacityType::Spot);
    assert_eq!(choose(&requirements(&[EITHER]), &all), CapacityType::Spot);
    assert_eq!(
        choose(&requirements(&[(CAPACITY_TYPE, &["on-demand"])]), &all),
        CapacityType::OnDemand
    );
    let mut sold_out = plain;
    for offering in &mut sold_out[0].offerings {
        offering.available = false;
    }
    assert_eq!(
        choose(&requirements(&[EITHER]), &sold_out),
        CapacityType::OnDemand
    );
}

#[test]
fn aws_124_135_what_is_sold_out_is_no_type() {
    let mut all = types();
    for ty in &mut all {
        for offering in &mut ty.offerings {
            offering.available = CapacityType::OnDemand.is_of(offering);
        }
    }
    let error = filtered(&all, &requirements(&[(CAPACITY_TYPE, &["spot"])])).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("no instance type satisfies the claim and is available, of ")
    );
    let left = filtered(&all, &requirements(&[EITHER])).unwrap();
    let sold = left.iter().flat_map(|ty| &ty.offerings);
    assert!(
        sold.into_iter()
            .all(|offering| CapacityType::OnDemand.is_of(offering))
    );
    assert!(filtered(&[], &requirements(&[EITHER])).is_err());
}

#[test]
fn aws_130_min_values_above_what_there_is() {
    let mut wanted = requirements(&[(CAPACITY_TYPE, &["on-demand"])]);
    wanted.add(one_of(TYPE, &["m5.large", "m5.xlarge"]).with_min_values(Some(3)));
    let error = filtered(&types(), &wanted).unwrap_err();
    assert_eq!(
        error.to_string(),
        "minValues of node.kubernetes.io/instance-type asks for 3 different values, and the 60 cheapest types have 2"
    );
    let exists = Requirement::new(FAMILY, Operator::Exists, []).unwrap();
    let mut wanted = requirements(&[(CAPACITY_TYPE, &["on-demand"])]);
    wanted.add(exists.with_min_values(Some(5)));
    assert!(filtered(&types(), &wanted).is_ok());
    let requests = room(1000);
    let mut wanted = requirements(&[(CAPACITY_TYPE, &["on-demand"])]);
    wanted.add(one_of(TYPE, &["m5.large"]).with_min_values(Some(2)));
    let ask = Ask {
        requirements: &wanted,
        requests: &requests,
    };
    assert_eq!(
        filter(&types(), &ask, MinValuesPolicy::BestEffort)
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn aws_153_one_kind_of_reservation() {
    let kept = |prices: [u64; 3]| {
        let [default, block, interruptible] = prices;
        let all = [
            with_offerings("m5.large", |ty| {
                vec![reserved(ty, "cr-1", "default", 1, default)]
            }),
            with_offerings("m5.xlarge", |ty| {
                vec![reserved(ty, "cr-2", "capacity-block", 1, block)]
            }),
            with_offerings("m5.2xlarge", |ty| {
                vec![reserved(ty, "cr-3", "interruptible", 1, interruptible)]
            }),
        ];
        let wanted = requirements(&[(CAPACITY_TYPE, &["on-demand", "reserved"])]);
        names(&filtered(&all, &wanted).unwrap()).join(" ")
    };
    assert_eq!(kept([1, 2, 3]), "m5.large");
    assert_eq!(kept([3, 2, 3]), "m5.xlarge");
    assert_eq!(kept([3, 2, 1]), "m5.2xlarge");
    assert_eq!(kept([1, 1, 1]), "m5.large");
    assert_eq!(kept([2, 1, 1]), "m5.xlarge");
    let all = [with_offerings("m5.large", |ty| {
        vec![reserved(ty, "cr-1", "default", 1, 1)]
    })];
    let left = filtered(&all, &requirements(&[(CAPACITY_TYPE, &["on-demand"])])).unwrap();
    assert_eq!(left[0].offerings.len(), 6);
}

#[test]
fn aws_154_one_capacity_block() {
    let all = [
        with_offerings("m5.large", |ty| {
            vec![reserved(ty, "cr-1", "capacity-block", 9, 2)]
        }),
        with_offerings("m5.xlarge", |ty| {
            vec![reserved(ty, "cr-2", "capacity-block", 1, 1)]
        }),
    ];
    let wanted = requirements(&[(CAPACITY_TYPE, &["on-demand", "reserved"])]);
    let left = filtered(&all, &wanted).unwrap();
    assert_eq!(names(&left), ["m5.xlarge"]);
    assert_eq!(left[0].offerings.len(), 1);
}

#[test]
fn aws_155_a_group_of_offerings_with_more_room() {
    let mut ty = with_offerings("m5.large", |_| Vec::new());
    let device = ResourceName::parse("example.com/device");
    ty.offerings[0].extra_capacity.set(device.clone(), 1);
    let wanted = requirements(&[]);
    let requests = room(1000).with(device, 1);
    let ask = Ask {
        requirements: &wanted,
        requests: &requests,
    };
    assert_eq!(ask.offers(&ty).count(), 1);
    ty.offerings[0].available = false;
    assert_eq!(ask.offers(&ty).count(), 0);
}

#[test]
fn aws_149_tenancy() {
    let tenancy = |requirements: &Requirements| {
        let requests = room(1);
        Tenancy::choose(&Ask {
            requirements,
            requests: &requests,
        })
    };
    let key = "karpenter.k8s.aws/instance-tenancy";
    assert_eq!(tenancy(&requirements(&[])), Tenancy::Default);
    assert_eq!(
        tenancy(&requirements(&[(key, &["default", "dedicated"])])),
        Tenancy::Default
    );
    assert_eq!(
        tenancy(&requirements(&[(key, &["dedicated"])])),
        Tenancy::Dedicated
    );
}

fn subnet(id: &str, zone: &str) -> Subnet {
    Subnet {
        id: id.to_owned(),
        zone: zone.to_owned(),
        zone_id: None,
    }
}

#[test]
fn aws_132_addresses_decide_the_subnet() {
    let subnets = [
        subnet("subnet-1", "us-east-1a"),
        subnet("subnet-2", "us-east-1a"),
        subnet("subnet-3", "us-east-1b"),
    ];
    let mut addresses = Addresses::default();
    let free = [("subnet-1", 100), ("subnet-2", 90), ("subnet-3", 5)];
    let free = || free.map(|(id, count)| (id.to_owned(), count));
    addresses.learn(free());
    let chosen = |addresses: &Addresses| {
        let chosen = choose(&subnets, addresses);
        let ids: Vec<String> = chosen.into_values().map(|subnet| subnet.id).collect();
        ids.join(" ")
    };
    assert_eq!(chosen(&addresses), "subnet-1 subnet-3");
    let all = [
        with_offerings("m5.large", |_| Vec::new()),
        with_offerings("m5.xlarge", |_| Vec::new()),
    ];
    let taken = addresses.take(&choose(&subnets, &addresses), &all, CapacityType::Spot);
    // The fewest pods of the two types are 29; the second subnet has less than that.
    assert_eq!(
        (addresses.left("subnet-1"), addresses.left("subnet-3")),
        (71, 0)
    );
    assert_eq!(chosen(&addresses), "subnet-2 subnet-3");
    let mut used = addresses.clone();
    used.give_back(&taken, Some("subnet-1"));
    assert_eq!((used.left("subnet-1"), used.left("subnet-3")), (71, 5));
    let mut failed = addresses.clone();
    failed.give_back(&taken, None);
    assert_eq!((failed.left("subnet-1"), failed.left("subnet-3")), (100, 5));
    addresses.learn(free());
    addresses.exhausted("subnet-1");
    addresses.give_back(&taken, None);
    assert_eq!(
        (addresses.left("subnet-1"), addresses.left("subnet-3")),
        (0, 5)
    );
    assert_eq!(chosen(&addresses), "subnet-2 subnet-3");
}

struct Fleets {
    types: Vec<InstanceType>,
    requirements: Requirements,
    capacity_type: CapacityType,
    relaxed: bool,
    overlay: bool,
    templates: Vec<Made>,
}

impl Fleets {
    fn of(names: &[&str], capacity_type: CapacityType) -> Self {
        let made = Made {
            name: "t".to_owned(),
            ami: "ami-1".to_owned(),
            reservation: None,
            types: names.iter().map(|name| Name::from(*name)).collect(),
        };
        Self {
            types: names
                .iter()
                .map(|name| with_offerings(name, |_| Vec::new()))
                .collect(),
            requirements: requirements(&[(CAPACITY_TYPE, &[capacity_type.as_str()])]),
            capacity_type,
            relaxed: false,
            overlay: false,
            templates: vec![made],
        }
    }

    fn request(&self) -> CreateFleet {
        let requests = room(1000);
        let subnets = BTreeMap::from([
            ("us-east-1a".to_owned(), subnet("subnet-1", "us-east-1a")),
            ("us-east-1b".to_owned(), subnet("subnet-2", "us-east-1b")),
        ]);
        let asked = FleetAsk {
            ask: Ask {
                requirements: &self.requirements,
                requests: &requests,
            },
            capacity_type: self.capacity_type,
            subnets: &subnets,
            tags: &[Tag::new("a", "b")],
            context: Some("my-context"),
            min_values_relaxed: self.relaxed,
            price_overlay: self.overlay,
        };
        fleet(&asked, &self.types, &self.templates).unwrap()
    }
}

#[test]
fn aws_141_what_a_fleet_asks_for() {
    let request = Fleets::of(&["m5.large", "c5.large"], CapacityType::OnDemand).request();
    let value = serde_json::to_value(request).unwrap();
    let overrides = |name: &str, price: f64| {
        [("us-east-1a", "subnet-1"), ("us-east-1b", "subnet-2")].map(|(zone, subnet)| {
            json!({"AvailabilityZone": zone, "ImageId": "ami-1", "InstanceType": name, "Priority": price,
                "SubnetId": subnet})
        })
    };
    let [a, b] = overrides("m5.large", 0.096);
    let [c, d] = overrides("c5.large", 0.085);
    let tags = json!([{"Key": "a", "Value": "b"}]);
    assert_eq!(
        value,
        json!({
            "Context": "my-context",
            "LaunchTemplateConfigs": [{
                "LaunchTemplateSpecification": {"LaunchTemplateName": "t", "Version": "$Latest"},
                "Overrides": [a, b, c, d],
            }],
            "OnDemandOptions": {"AllocationStrategy": "lowest-price"},
            "TagSpecifications": [
                {"ResourceType": "instance", "Tags": tags},
                {"ResourceType": "volume", "Tags": tags},
                {"ResourceType": "fleet", "Tags": tags},
            ],
            "TargetCapacitySpecification": {"DefaultTargetCapacityType": "on-demand", "TotalTargetCapacity": 1},
            "Type": "instant",
        })
    );
}

#[test]
fn aws_131_the_context_is_passed_unless_min_values_were_relaxed() {
    let mut fleets = Fleets::of(&["m5.large"], CapacityType::Spot);
    assert_eq!(fleets.request().context.as_deref(), Some("my-context"));
    fleets.relaxed = true;
    assert_eq!(fleets.request().context, None);
}

#[test]
fn aws_133_strategies() {
    let strategies = |capacity_type, overlay| {
        let mut fleets = Fleets::of(&["m5.large"], capacity_type);
        fleets.overlay = overlay;
        let request = fleets.request();
        let strategy = |options: Option<crate::request::AllocationOptions>| {
            options.map(|options| options.allocation_strategy)
        };
        (
            strategy(request.spot_options),
            strategy(request.on_demand_options),
        )
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        strategies(CapacityType::Spot, false),
        (text("price-capacity-optimized"), None)
    );
    assert_eq!(
        strategies(CapacityType::Spot, true),
        (text("capacity-optimized-prioritized"), None)
    );
    assert_eq!(
        strategies(CapacityType::OnDemand, false),
        (None, text("lowest-price"))
    );
    assert_eq!(
        strategies(CapacityType::OnDemand, true),
        (None, text("prioritized"))
    );
}

#[test]
fn aws_150_151_fleets_of_reservations() {
    let of = |kind: &str, parsed: ReservationKind| {
        let mut fleets = Fleets::of(&["m5.large"], CapacityType::Reserved);
        fleets.types = vec![with_offerings("m5.large", |ty| {
            vec![
                reserved(ty, "cr-1", kind, 3, 1),
                reserved(ty, "cr-2", kind, 5, 1),
            ]
        })];
        let requests = room(1000);
        let ask = Ask {
            requirements: &fleets.requirements,
            requests: &requests,
        };
        fleets.types = filter(&fleets.types, &ask, MinValuesPolicy::Strict).unwrap();
        // The fuller of the two.
        let ids: Vec<_> = fleets.types[0]
            .offerings
            .iter()
            .filter_map(Reservation::of)
            .collect();
        let id = if parsed == ReservationKind::CapacityBlock {
            "cr-1"
        } else {
            "cr-2"
        };
        assert_eq!(
            ids,
            [Reservation {
                id: id.into(),
                kind: parsed
            }]
        );
        fleets.templates[0].reservation = ids.into_iter().next();
        let request = fleets.request();
        assert_eq!(request.launch_template_configs[0].overrides.len(), 1);
        let target = request
            .target_capacity_specification
            .default_target_capacity_type;
        let options = (
            request.on_demand_options.is_some(),
            request.reserved_capacity_options,
        );
        (
            target,
            options.0,
            options.1.map(|options| options.reservation_types.join(" ")),
        )
    };
    let plain = of("default", ReservationKind::Default);
    assert_eq!(plain, ("on-demand".to_owned(), true, None));
    let block = of("capacity-block", ReservationKind::CapacityBlock);
    assert_eq!(block, ("capacity-block".to_owned(), false, None));
    let (target, on_demand, types) = of("interruptible", ReservationKind::Interruptible);
    assert_eq!((target.as_str(), on_demand), ("reserved-capacity", false));
    assert_eq!(types.as_deref(), Some("interruptible-capacity-reservation"));
}

#[test]
fn aws_123_125_offerings_elsewhere_are_left_out() {
    let mut fleets = Fleets::of(&["m5.large"], CapacityType::Spot);
    fleets
        .requirements
        .add(one_of(ZONE, &["us-east-1b", "us-east-1c"]));
    let zones = |request: &CreateFleet| {
        let overrides = request
            .launch_template_configs
            .iter()
            .flat_map(|config| &config.overrides);
        overrides
            .filter_map(|template| template.availability_zone.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(zones(&fleets.request()), ["us-east-1b"]);
    fleets.requirements = requirements(&[(CAPACITY_TYPE, &["spot"])]);
    for offering in &mut fleets.types[0].offerings {
        let is_in = |zone: &str| {
            offering
                .labels
                .get(ZONE)
                .is_some_and(|name| &**name == zone)
        };
        offering.available = !is_in("us-east-1b");
    }
    assert_eq!(zones(&fleets.request()), ["us-east-1a"]);
}

#[test]
fn partitions_are_one_override() {
    let mut fleets = Fleets::of(&["m5.large"], CapacityType::OnDemand);
    let twice: Vec<Offering> = (fleets.types[0].offerings.iter())
        .flat_map(|offering| {
            ["1", "2"].map(|number| {
                let mut offering = offering.clone();
                let key = "karpenter.k8s.aws/placement-group-partition";
                offering.labels.insert(key.into(), number.into());
                offering
            })
        })
        .collect();
    fleets.types[0].offerings = twice;
    assert_eq!(
        fleets.request().launch_template_configs[0].overrides.len(),
        2
    );
}

#[test]
fn aws_169_equal_requests_are_put_together() {
    let fleets = Fleets::of(&["m5.large"], CapacityType::Spot);
    assert_eq!(fleets.request(), fleets.request());
    let five = together(&fleets.request(), 5);
    assert_eq!(five.target_capacity_specification.total_target_capacity, 5);
    let other = Fleets::of(&["m5.xlarge"], CapacityType::Spot);
    assert_ne!(fleets.request(), other.request());
}

#[test]
fn a_lost_answer_has_the_same_token() {
    let request = Fleets::of(&["m5.large"], CapacityType::Spot).request();
    let token = client_token(&request, &["a", "b"], "1");
    assert_eq!(client_token(&request, &["b", "a"], "1"), token);
    assert!(token.len() <= 64 && token.is_ascii());
    let other = Fleets::of(&["m5.large"], CapacityType::OnDemand).request();
    for changed in [
        client_token(&request, &["a", "c"], "1"),
        client_token(&request, &["a", "b"], "2"),
        client_token(&other, &["a", "b"], "1"),
    ] {
        assert_ne!(changed, token);
    }
}

#[test]
fn labels_that_the_claim_brings_are_no_matter_of_types() {
    let wanted = requirements(&[("team", &["a"]), ("karpenter.sh/nodepool", &["default"])]);
    let requests = room(1000);
    let ask = Ask {
        requirements: &wanted,
        requests: &requests,
    };
    let ty = with_offerings("m5.large", |_| Vec::new());
    assert!(ask.fits(&ty));
    // A type without GPUs is known not to have the label.
    let wanted = requirements(&[("karpenter.k8s.aws/instance-gpu-name", &["t4"])]);
    let ask = Ask {
        requirements: &wanted,
        requests: &requests,
    };
    assert!(!ask.fits(&ty));
    assert!(Labels::new().is_empty());
}
