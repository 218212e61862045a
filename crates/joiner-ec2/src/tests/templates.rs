//! Launch templates.

use std::collections::BTreeMap;

use joiner_api::types::{Ec2NodeClassSpec, Ec2NodeClassStatus};
use joiner_catalog::{ClassSettings, PlacementGroup, PlacementStrategy, ec2};
use joiner_model::{InstanceType, Name, Requirement, Requirements, ResourceName, Resources};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::launch::needs::{Need, by_need};
use crate::launch::template::{Common, PlacedIn, Template, template};
use crate::launch::{Ask, CapacityType, Reservation, ReservationKind, Tenancy};
use crate::user_data::{node_labels, node_taints};

struct Case {
    class: &'static str,
    spec: Value,
    cluster: Cluster,
    capacity_type: CapacityType,
    tenancy: Tenancy,
    placed_in: Option<PlacedIn>,
    enclaves: bool,
    reserving: bool,
    labels: &'static [(&'static str, &'static str)],
    need: Need,
}

impl Case {
    fn new(spec: Value) -> Self {
        Self {
            class: "default",
            spec,
            cluster: Cluster {
                name: "demo".to_owned(),
                region: "us-east-1".to_owned(),
                endpoint: "https://demo.example.com".to_owned(),
                ca_bundle: Some("Y2EK".to_owned()),
                dns_ip: Some("10.100.0.10".to_owned()),
                cidr: Some("10.100.0.0/16".to_owned()),
            },
            capacity_type: CapacityType::OnDemand,
            tenancy: Tenancy::Default,
            placed_in: None,
            enclaves: false,
            reserving: true,
            labels: &[("karpenter.sh/nodepool", "general")],
            need: Need {
                ami: "ami-1".to_owned(),
                max_pods: 58,
                efa: 0,
                reservation: None,
            },
        }
    }

    fn make(&self) -> Template {
        let spec: Ec2NodeClassSpec = serde_json::from_value(self.spec.clone()).unwrap();
        let status = json!({"securityGroups": [{"id": "sg-1"}, {"id": "sg-2"}],
            "instanceProfile": "demo_1"});
        let status: Ec2NodeClassStatus = serde_json::from_value(status).unwrap();
        let labels = self.labels.iter().copied();
        let labels = node_labels(
            labels,
            self.capacity_type.as_str(),
            crate::family::of(&spec),
        );
        template(
            &Common {
                cluster: &self.cluster,
                class: self.class,
                spec: &spec,
                status: &status,
                pool: "general",
                labels: &labels,
                taints: &node_taints(&[], &[]),
                capacity_type: self.capacity_type,
                tenancy: self.tenancy,
                placed_in: self.placed_in.as_ref(),
                enclaves: self.enclaves,
                reserving: self.reserving,
            },
            &self.need,
        )
        .unwrap()
    }

    fn data(&self) -> Value {
        serde_json::to_value(self.make().request.launch_template_data).unwrap()
    }

    fn name(&self) -> String {
        self.make().request.launch_template_name
    }
}

fn al2023(more: Value) -> Case {
    let mut spec = json!({"amiSelectorTerms": [{"alias": "al2023@latest"}]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    Case::new(spec)
}

#[test]
fn aws_141_143_144_a_plain_template() {
    let case =
        al2023(json!({"tags": {"team": "a", "Name": "mine", "karpenter.sh/nodepool": "forged"}}));
    let tags = json!([
        {"Key": "Name", "Value": "mine"},
        {"Key": "eks:eks-cluster-name", "Value": "demo"},
        {"Key": "karpenter.k8s.aws/ec2nodeclass", "Value": "default"},
        {"Key": "karpenter.sh/nodepool", "Value": "general"},
        {"Key": "kubernetes.io/cluster/demo", "Value": "owned"},
        {"Key": "team", "Value": "a"},
    ]);
    let made = case.make();
    assert_eq!(
        serde_json::to_value(&made.request).unwrap(),
        json!({
            "LaunchTemplateName": made.request.launch_template_name,
            "LaunchTemplateData": {
                "BlockDeviceMappings": [{"DeviceName": "/dev/xvda",
                    "Ebs": {"Encrypted": true, "VolumeSize": 20, "VolumeType": "gp3"}}],
                "CapacityReservationSpecification": {"CapacityReservationPreference": "none"},
                "EnclaveOptions": {"Enabled": false},
                "IamInstanceProfile": {"Name": "demo_1"},
                "ImageId": "ami-1",
                "MetadataOptions": {"HttpEndpoint": "enabled", "HttpProtocolIpv6": "disabled",
                    "HttpPutResponseHopLimit": 1, "HttpTokens": "required", "InstanceMetadataTags": "disabled"},
                "Monitoring": {"Enabled": false},
                "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-1", "sg-2"]}],
                "Placement": {"Tenancy": "default"},
                "TagSpecifications": [{"ResourceType": "network-interface", "Tags": tags}],
                "UserData": made.user_data.encoded(),
            },
            "TagSpecifications": [{"ResourceType": "launch-template", "Tags": tags}],
        })
    );
    let mut spot = al2023(json!({}));
    spot.capacity_type = CapacityType::Spot;
    let kinds = spot.data()["TagSpecifications"].clone();
    let kinds: Vec<&str> = kinds
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|kind| kind["ResourceType"].as_str())
        .collect();
    assert_eq!(kinds, ["network-interface", "spot-instances-request"]);
}

#[test]
fn aws_138_140_names_follow_content() {
    let base = || al2023(json!({}));
    let name = base().name();
    assert_eq!(base().name(), name);
    let number = name.strip_prefix("karpenter.k8s.aws/").unwrap();
    assert!(number.parse::<u64>().is_ok());
    let changed = |change: &dyn Fn(&mut Case)| {
        let mut case = base();
        change(&mut case);
        case.name()
    };
    for other in [
        changed(&|case| case.class = "other"),
        changed(&|case| case.spec["amiSelectorTerms"] = json!([{"alias": "al2@latest"}])),
        changed(&|case| case.spec["kubelet"] = json!({"podsPerCore": 3})),
        changed(&|case| case.spec["kubelet"] = json!({"registryPullQPS": 3})),
        changed(&|case| case.spec["detailedMonitoring"] = json!(true)),
        changed(&|case| case.need.max_pods = 3),
        changed(&|case| case.need.ami = "ami-2".to_owned()),
    ] {
        assert_ne!(other, name);
    }
}

#[test]
fn aws_142_volumes() {
    let volumes = |spec: Value| Case::new(spec).data().get("BlockDeviceMappings").cloned();
    let family = |family: &str| volumes(json!({"amiFamily": family}));
    let default = |device: &str, gib: i32| json!({"DeviceName": device, "Ebs": {"Encrypted": true, "VolumeSize": gib, "VolumeType": "gp3"}});
    assert_eq!(family("AL2"), Some(json!([default("/dev/xvda", 20)])));
    assert_eq!(
        family("Bottlerocket"),
        Some(json!([default("/dev/xvda", 4), default("/dev/xvdb", 20)]))
    );
    assert_eq!(
        family("Windows2022"),
        Some(json!([default("/dev/sda1", 50)]))
    );
    assert_eq!(family("Custom"), None);
    let given = json!({"amiFamily": "AL2", "blockDeviceMappings": [
        {"deviceName": "/dev/a", "ebs": {"volumeSize": "10G", "iops": 0, "throughput": 0,
            "deleteOnTermination": false, "volumeType": "gp3"}},
        {"deviceName": "/dev/b", "rootVolume": true, "ebs": {"volumeSize": "1Ti", "iops": 3000,
            "throughput": 200, "kmsKeyID": "k", "snapshotID": "snap-1", "volumeInitializationRate": 200}},
        {"deviceName": "/dev/c"}]});
    assert_eq!(
        volumes(given),
        Some(json!([
            {"DeviceName": "/dev/a", "Ebs": {"DeleteOnTermination": false, "VolumeSize": 10, "VolumeType": "gp3"}},
            {"DeviceName": "/dev/b", "Ebs": {"Iops": 3000, "KmsKeyId": "k", "SnapshotId": "snap-1",
                "Throughput": 200, "VolumeInitializationRate": 200, "VolumeSize": 1024}},
            {"DeviceName": "/dev/c"},
        ]))
    );
}

#[test]
fn aws_143_monitoring_and_enclaves() {
    let mut case = al2023(json!({"detailedMonitoring": true}));
    case.enclaves = true;
    let data = case.data();
    assert_eq!(data["Monitoring"]["Enabled"], json!(true));
    assert_eq!(data["EnclaveOptions"]["Enabled"], json!(true));
}

#[test]
fn aws_144_metadata_options() {
    let mut case = al2023(
        json!({"metadataOptions": {"httpEndpoint": "disabled", "httpProtocolIPv6": "enabled",
        "httpPutResponseHopLimit": 3, "httpTokens": "optional"}}),
    );
    let mut expected = json!({"HttpEndpoint": "disabled", "HttpProtocolIpv6": "enabled",
        "HttpPutResponseHopLimit": 3, "HttpTokens": "optional", "InstanceMetadataTags": "disabled"});
    assert_eq!(case.data()["MetadataOptions"], expected);
    case.cluster.region = "us-iso-east-1".to_owned();
    expected.as_object_mut().unwrap().remove("HttpProtocolIpv6");
    assert_eq!(case.data()["MetadataOptions"], expected);
}

#[test]
fn aws_145_146_147_148_interfaces() {
    let groups = json!(["sg-1", "sg-2"]);
    let interfaces = |case: &Case| case.data()["NetworkInterfaces"].clone();
    let plain = json!({"associatePublicIPAddress": false, "ipPrefixCount": 10,
        "connectionTracking": {"udpTimeout": 40}});
    let mut case = al2023(plain.clone());
    let mut interface = json!({"AssociatePublicIpAddress": false, "ConnectionTrackingSpecification": {"UdpTimeout": 40},
        "DeviceIndex": 0, "Groups": groups, "Ipv4PrefixCount": 10});
    assert_eq!(interfaces(&case), json!([interface]));
    case.need.efa = 3;
    let adapter = |card: i32, device: i32| {
        let mut adapter = interface.clone();
        adapter["DeviceIndex"] = json!(device);
        adapter["NetworkCardIndex"] = json!(card);
        adapter["InterfaceType"] = json!("efa");
        adapter
    };
    assert_eq!(
        interfaces(&case),
        json!([adapter(0, 0), adapter(1, 1), adapter(2, 1)])
    );
    case.spec["networkInterfaces"] = json!([
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
    ]);
    case.cluster.dns_ip = Some("fd30::a".to_owned());
    interface.as_object_mut().unwrap().remove("Ipv4PrefixCount");
    interface["Ipv6PrefixCount"] = json!(10);
    interface["Ipv6AddressCount"] = json!(1);
    interface["PrimaryIpv6"] = json!(true);
    interface["NetworkCardIndex"] = json!(0);
    interface["InterfaceType"] = json!("interface");
    assert_eq!(
        interfaces(&case),
        json!([interface, {"DeviceIndex": 1, "Groups": groups, "InterfaceType": "efa-only", "NetworkCardIndex": 1}])
    );
    let bare = al2023(json!({}));
    assert_eq!(
        interfaces(&bare),
        json!([{"DeviceIndex": 0, "Groups": groups}])
    );
}

#[test]
fn aws_149_tenancy_and_placement() {
    let mut case = al2023(json!({}));
    case.tenancy = Tenancy::Dedicated;
    case.placed_in = Some(PlacedIn {
        group: "pg-1".to_owned(),
        partition: Some(2),
    });
    assert_eq!(
        case.data()["Placement"],
        json!({"GroupId": "pg-1", "PartitionNumber": 2, "Tenancy": "dedicated"})
    );
}

#[test]
fn the_lowest_partition_that_is_asked_for() {
    let nothing = Resources::new();
    let partition = |values: &[&str], strategy| {
        let key = "karpenter.k8s.aws/placement-group-partition";
        let names = values.iter().map(|name| Name::from(*name));
        let requirements: Requirements = match values.is_empty() {
            true => Requirements::new(),
            false => [Requirement::one_of(key, names)].into_iter().collect(),
        };
        let ask = Ask {
            requirements: &requirements,
            requests: &nothing,
        };
        let group = PlacementGroup {
            id: "pg-1".into(),
            strategy,
        };
        PlacedIn::of(&group, &ask).partition
    };
    let partitions = PlacementStrategy::Partition(12);
    assert_eq!(partition(&["3", "2"], partitions), Some(2));
    assert_eq!(partition(&["10", "2"], partitions), Some(10));
    assert_eq!(partition(&[], partitions), None);
    assert_eq!(partition(&["2"], PlacementStrategy::Spread), None);
}

#[test]
fn aws_143_enclaves_if_asked_for() {
    let requirements = Requirements::new();
    let wants = |name: &str| {
        let requests = Resources::new().with(ResourceName::parse(name), 1);
        let ask = Ask {
            requirements: &requirements,
            requests: &requests,
        };
        ask.wants_enclaves()
    };
    assert!(wants("eks.amazonaws.com/nitro-sandbox") && wants("eks.amazonaws.com/nip-slots"));
    assert!(!wants("nvidia.com/gpu"));
}

#[test]
fn aws_151_reservations() {
    let of = |kind: Option<ReservationKind>, reserving: bool| {
        let mut case = al2023(json!({}));
        case.reserving = reserving;
        case.need.reservation = kind.map(|kind| Reservation {
            id: "cr-1".into(),
            kind,
        });
        let data = case.data();
        let get = |key: &str| data.get(key).cloned().unwrap_or_default();
        (
            get("CapacityReservationSpecification"),
            get("InstanceMarketOptions"),
        )
    };
    let only = json!({"CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-1"}});
    let market = |kind: &str| json!({"MarketType": kind});
    let none = json!({"CapacityReservationPreference": "none"});
    assert_eq!(of(None, true), (none, Value::Null));
    assert_eq!(of(None, false), (Value::Null, Value::Null));
    assert_eq!(
        of(Some(ReservationKind::Default), true),
        (only.clone(), Value::Null)
    );
    let block = of(Some(ReservationKind::CapacityBlock), true);
    assert_eq!(block, (only.clone(), market("capacity-block")));
    let may_go = of(Some(ReservationKind::Interruptible), true);
    assert_eq!(may_go, (only, market("interruptible-capacity-reservation")));
}

#[test]
fn aws_116_nested_virtualization_is_passed() {
    let case = al2023(json!({"cpuOptions": {"nestedVirtualization": "enabled"}}));
    assert_eq!(
        case.data()["CpuOptions"],
        json!({"NestedVirtualization": "enabled"})
    );
    assert_eq!(
        al2023(json!({"cpuOptions": {}})).data().get("CpuOptions"),
        None
    );
}

fn types(names: &[&str]) -> Vec<InstanceType> {
    let all = ec2("us-east-1", &ClassSettings::default()).unwrap().types;
    all.into_iter()
        .filter(|ty| names.contains(&&*ty.name))
        .collect()
}

fn needs(
    spec: Value,
    amis: Value,
    names: &[&str],
    requests: &Resources,
) -> Result<BTreeMap<Need, Vec<Name>>, String> {
    let spec: Ec2NodeClassSpec = serde_json::from_value(spec).unwrap();
    let amis: Vec<joiner_api::types::Ami> = serde_json::from_value(amis).unwrap();
    let requirements: Requirements = [Requirement::is("kubernetes.io/os", "linux".into())]
        .into_iter()
        .collect();
    let ask = Ask {
        requirements: &requirements,
        requests,
    };
    let found = by_need(
        ("default", &spec),
        &amis,
        &types(names),
        &ask,
        CapacityType::OnDemand,
    );
    found.map_err(|error| error.to_string())
}

fn arch(id: &str, arch: &str) -> Value {
    json!({"id": id, "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}]})
}

#[test]
fn aws_168_one_template_for_each_image_and_number_of_pods() {
    let amis = json!([
        arch("ami-new", "amd64"),
        arch("ami-old", "amd64"),
        arch("ami-arm", "arm64")
    ]);
    let nothing = Resources::new();
    let types = ["m5.large", "c5.large", "m5.xlarge", "m6g.large"];
    let found = needs(json!({}), amis, &types, &nothing).unwrap();
    let text = |(need, types): (&Need, &Vec<Name>)| {
        format!("{} {} {}", need.ami, need.max_pods, types.join("+"))
    };
    let found: Vec<String> = found.iter().map(text).collect();
    assert_eq!(
        found,
        [
            "ami-arm 29 m6g.large",
            "ami-new 29 c5.large+m5.large",
            "ami-new 58 m5.xlarge"
        ]
    );
    let error = needs(
        json!({}),
        json!([arch("ami-1", "arm64")]),
        &["m5.large"],
        &nothing,
    )
    .unwrap_err();
    assert_eq!(
        error,
        "EC2NodeClass default: none of the 1 images in status.amis fits any of the 1 instance types of the launch; \
         select images of their architecture in spec.amiSelectorTerms"
    );
}

#[test]
fn aws_137_adapters_only_if_asked_for() {
    let amis = || json!([arch("ami-1", "amd64")]);
    let efa = |spec: Value, requests: &Resources| {
        let found = needs(spec, amis(), &["p5.48xlarge", "m5.large"], requests).unwrap();
        found.keys().map(|need| need.efa).collect::<Vec<u32>>()
    };
    let wanted = Resources::new().with(ResourceName::parse("vpc.amazonaws.com/efa"), 1);
    assert_eq!(efa(json!({}), &Resources::new()), [0, 0]);
    assert_eq!(efa(json!({}), &wanted), [0, 32]);
    let given = json!({"networkInterfaces": [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]});
    assert_eq!(efa(given, &wanted), [0, 0]);
}
