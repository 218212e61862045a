//! Hashes and drift.

use std::collections::BTreeMap;

use crate::drift::{Compared, Drift, DriftError, Machine, rehash};
use crate::hash::{HashVersion, class_hash};
use joiner_api::labels::aws::{EC2_NODE_CLASS_HASH, EC2_NODE_CLASS_HASH_VERSION};
use joiner_api::types::{Ec2NodeClassSpec, Ec2NodeClassStatus, NodeClaim};
use serde_json::{Value, json};

const CA: &str = "test-ca-bundle";

fn hash(spec: &Value, version: HashVersion, ca: &str) -> String {
    let spec: Ec2NodeClassSpec = serde_json::from_value(spec.clone()).unwrap();
    class_hash(&spec, ca, version)
}

fn base() -> Value {
    json!({
        "role": "role-1",
        "tags": {"keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2"},
        "context": "fake-context",
        "detailedMonitoring": false,
        "associatePublicIPAddress": false,
        "metadataOptions": {"httpEndpoint": "disabled", "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1, "httpTokens": "optional"},
        "blockDeviceMappings": [
            {"deviceName": "map-device-1", "ebs": {"deleteOnTermination": false, "encrypted": false,
                "iops": 0, "kmsKeyID": "fakeKMSKeyID", "snapshotID": "fakeSnapshot", "throughput": 0,
                "volumeSize": "2G", "volumeType": "standard"}},
            {"deviceName": "map-device-2"}],
        "userData": "userdata-test-1",
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut spec = base();
    spec[field] = value;
    spec
}

#[test]
fn aws_039_digests_that_are_known() {
    let mut profile = with("instanceProfile", json!("test-instance-profile"));
    profile.as_object_mut().unwrap().remove("role");
    let mut larger = base();
    larger["blockDeviceMappings"][0]["ebs"]["volumeSize"] = json!("10G");
    for (spec, expected) in [
        (base(), "11148166120438674859"),
        (
            with("userData", json!("userdata-test-2")),
            "11774429238106843388",
        ),
        (
            with("instanceStorePolicy", json!("RAID0")),
            "16697988646989909967",
        ),
        (
            with("connectionTracking", json!({"udpStreamTimeout": 120})),
            "13743705849402595405",
        ),
        (
            with("cpuOptions", json!({"nestedVirtualization": "enabled"})),
            "6157846767212910604",
        ),
        (profile, "10323991363677716244"),
        (larger, "10372902467896351912"),
    ] {
        assert_eq!(hash(&spec, HashVersion::V6, CA), expected, "{spec}");
    }
    assert_eq!(hash(&base(), HashVersion::V5, CA), "2608468723537941485");
}

#[test]
fn aws_039_digests_that_release_1_14_wrote() {
    const CERTIFICATE: &str = "ZmFrZS1jZXJ0aWZpY2F0ZS1hdXRob3JpdHk=";
    let class = |alias: &str, more: Value| {
        let mut spec = json!({
            "amiSelectorTerms": [{"alias": alias}],
            "role": "KarpenterNodeRole-demo",
            "metadataOptions": {"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled",
                "httpPutResponseHopLimit": 1, "httpTokens": "required"},
        });
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        spec
    };
    let kubelet = json!({"kubelet": {
            "podsPerCore": 10, "evictionSoft": {"memory.available": "500Mi"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"}, "evictionMaxPodGracePeriod": 60,
            "systemReserved": {"memory": "100Mi", "ephemeral-storage": "1Gi"},
            "kubeReserved": {"cpu": "200m", "memory": "300Mi"}},
        "context": "my-context",
        "connectionTracking": {"tcpEstablishedTimeout": 600, "udpTimeout": 40},
        "blockDeviceMappings": [
            {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "volumeType": "gp3"}},
            {"deviceName": "/dev/sdf", "ebs": {"snapshotID": "snap-0123", "volumeType": "io2",
                "iops": 3000, "kmsKeyID": "key-1", "volumeInitializationRate": 200}}],
        "userData": "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"BOUNDARY\"\n\n\
            --BOUNDARY\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/bash\necho first\n\n\
            --BOUNDARY\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\n\
            kind: NodeConfig\nspec:\n  kubelet:\n    config:\n      shutdownGracePeriod: 30s\n\n--BOUNDARY--\n"});
    let rocket = json!({"tags": {"team": "rocket"}, "detailedMonitoring": true,
        "associatePublicIPAddress": true, "instanceStorePolicy": "RAID0",
        "metadataOptions": {"httpEndpoint": "enabled", "httpProtocolIPv6": "enabled",
            "httpPutResponseHopLimit": 3, "httpTokens": "optional"},
        "blockDeviceMappings": [
            {"deviceName": "/dev/xvda", "ebs": {"encrypted": true, "volumeSize": "4Gi", "volumeType": "gp3"}},
            {"deviceName": "/dev/xvdb", "rootVolume": true, "ebs": {"deleteOnTermination": true,
                "encrypted": true, "iops": 4000, "throughput": 250, "volumeSize": "100G",
                "volumeType": "gp3"}}],
        "kubelet": {"clusterDNS": ["10.100.0.20"], "cpuCFSQuota": false, "maxPods": 42,
            "evictionHard": {"memory.available": "5%", "nodefs.available": "10%"},
            "imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 60,
            "kubeReserved": {"cpu": "150m"}, "systemReserved": {"cpu": "100m", "memory": "200Mi"}},
        "userData": "[settings.kubernetes]\nallowed-unsafe-sysctls = [\"net.ipv4.tcp_mtu_probing\"]\n\
            event-qps = 0\nunknown-key = \"lost\"\n[settings.kubernetes.node-labels]\n\"user/label\" = \"yes\"\n\
            [settings.kubernetes.node-taints]\n\"user/taint\" = [\"x:NoSchedule\"]\n\
            [settings.host-containers.admin]\nenabled = true\n"});
    for (spec, expected) in [
        (class("al2023@latest", json!({})), "9134710474571640168"),
        (
            class(
                "al2023@latest",
                json!({"tags": {"cost-center": "42", "Name": "mine"}}),
            ),
            "18296649706167888064",
        ),
        (class("al2023@latest", kubelet), "16323638212095150030"),
        (class("bottlerocket@latest", rocket), "17686651710104598426"),
    ] {
        assert_eq!(
            hash(&spec, HashVersion::V5, CERTIFICATE),
            expected,
            "{spec}"
        );
    }
}

#[test]
fn aws_037_order_does_not_count() {
    let mut turned = base();
    turned["blockDeviceMappings"]
        .as_array_mut()
        .unwrap()
        .reverse();
    for version in [HashVersion::V5, HashVersion::V6] {
        assert_eq!(hash(&turned, version, CA), hash(&base(), version, CA));
    }
}

#[test]
fn aws_038_selectors_do_not_count() {
    for (field, value) in [
        ("subnetSelectorTerms", json!([{"id": "subnet-1"}])),
        ("securityGroupSelectorTerms", json!([{"name": "a"}])),
        ("capacityReservationSelectorTerms", json!([{"id": "cr-1"}])),
        ("amiSelectorTerms", json!([{"id": "ami-1"}])),
        ("ipPrefixCount", json!(3)),
    ] {
        for version in [HashVersion::V5, HashVersion::V6] {
            let changed = hash(&with(field, value.clone()), version, CA);
            assert_eq!(changed, hash(&base(), version, CA), "{field}");
        }
    }
}

#[test]
fn aws_039_every_static_field_counts() {
    let changes = [
        ("placementGroupSelector", json!({"name": "g"})),
        ("placementGroupSelector", json!({"id": "g"})),
        ("associatePublicIPAddress", json!(true)),
        ("userData", json!("other")),
        ("role", json!("role-2")),
        ("tags", json!({"keyTag-1": "valueTag-1"})),
        ("blockDeviceMappings", json!([])),
        ("blockDeviceMappings", json!([{"rootVolume": true}])),
        (
            "networkInterfaces",
            json!([{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]),
        ),
        (
            "networkInterfaces",
            json!([{"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "interface"}]),
        ),
        ("detailedMonitoring", json!(true)),
        ("metadataOptions", json!({"httpEndpoint": "disabled"})),
        ("context", json!("other")),
        ("amiFamily", json!("AL2")),
        ("amiSelectorTerms", json!([{"alias": "al2023@latest"}])),
        ("kubelet", json!({"maxPods": 12})),
        ("kubelet", json!({"maxPods": 21})),
        ("kubelet", json!({"podsPerCore": 12})),
        ("kubelet", json!({"clusterDNS": ["10.0.0.1"]})),
    ];
    for version in [HashVersion::V5, HashVersion::V6] {
        let mut seen = BTreeMap::from([(hash(&base(), version, CA), json!(null))]);
        seen.insert(hash(&base(), version, "other"), json!("certificate"));
        for (field, value) in &changes {
            let new = hash(&with(field, value.clone()), version, CA);
            assert_eq!(seen.insert(new, value.clone()), None, "{field} {value}");
        }
    }
}

fn class_annotations(hash: &str, version: &str) -> BTreeMap<String, String> {
    let pairs = [
        (EC2_NODE_CLASS_HASH, hash),
        (EC2_NODE_CLASS_HASH_VERSION, version),
    ];
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn aws_040_claims_follow_a_new_version() {
    let old = class_annotations("1", "v4");
    let fresh = rehash(&old, false, "2", "v5").unwrap();
    assert_eq!((fresh.hash.as_deref(), fresh.version), (Some("2"), "v5"));
    assert_eq!(rehash(&old, true, "2", "v5").unwrap().hash, None);
    assert_eq!(
        rehash(&class_annotations("1", "v5"), false, "2", "v5"),
        None
    );
    assert!(rehash(&BTreeMap::new(), false, "2", "v5").is_some());
}

struct Case {
    annotations: BTreeMap<String, String>,
    status: Ec2NodeClassStatus,
    group: Option<&'static str>,
    claim: Value,
    machine: Machine,
    ami: Option<&'static str>,
}

impl Case {
    fn new() -> Self {
        let status = json!({
            "amis": [{"id": "ami-1"}],
            "securityGroups": [{"id": "sg-1"}, {"id": "sg-2"}],
            "subnets": [{"id": "subnet-1", "zone": "a"}],
            "capacityReservations": [{"id": "cr-1", "availabilityZone": "a", "instanceType": "m5.large",
                "instanceMatchCriteria": "open", "ownerID": "1"}],
        });
        Self {
            annotations: class_annotations("1", "v5"),
            status: serde_json::from_value(status).unwrap(),
            group: None,
            claim: json!({
                "metadata": {"name": "c", "annotations": class_annotations("1", "v5")},
                "spec": {"requirements": [], "nodeClassRef": {"group": "", "kind": "", "name": ""}},
                "status": {"imageID": "ami-1"},
            }),
            machine: Machine {
                security_groups: ["sg-2", "sg-1"].map(str::to_owned).into(),
                subnet: "subnet-1".to_owned(),
                reservation: Some("cr-1".to_owned()),
            },
            ami: Some("ami-1"),
        }
    }

    fn drift(&self) -> Result<Option<Drift>, DriftError> {
        let claim: NodeClaim = serde_json::from_value(self.claim.clone()).unwrap();
        let compared = Compared {
            class: "default",
            class_annotations: &self.annotations,
            status: &self.status,
            placement_group: self.group,
            claim: &claim,
            machine: &self.machine,
        };
        compared.drift(self.ami)
    }
}

fn changed(change: impl FnOnce(&mut Case)) -> Result<Option<Drift>, DriftError> {
    let mut case = Case::new();
    change(&mut case);
    case.drift()
}

#[test]
fn aws_041_hashes_are_compared_within_a_version() {
    assert_eq!(Case::new().drift(), Ok(None));
    let other = class_annotations("2", "v5");
    assert_eq!(
        changed(|case| case.annotations = other.clone()),
        Ok(Some(Drift::NodeClass))
    );
    for (class, claim) in [
        (class_annotations("2", "v6"), class_annotations("1", "v5")),
        (class_annotations("", "v5"), class_annotations("1", "v5")),
        (class_annotations("2", "v5"), class_annotations("", "v5")),
        (class_annotations("2", ""), class_annotations("1", "")),
    ] {
        let verdict = changed(|case| {
            case.annotations = class;
            case.claim["metadata"]["annotations"] = json!(claim);
        });
        assert_eq!(verdict, Ok(None));
    }
}

#[test]
fn aws_043_another_image_or_none() {
    assert_eq!(
        changed(|case| case.ami = Some("ami-2")),
        Ok(Some(Drift::Ami))
    );
    assert_eq!(changed(|case| case.ami = None), Ok(Some(Drift::Ami)));
}

#[test]
fn aws_044_a_subnet_that_is_not_selected() {
    let elsewhere = changed(|case| case.machine.subnet = "subnet-2".to_owned());
    assert_eq!(elsewhere, Ok(Some(Drift::Subnet)));
    let error = changed(|case| case.status.subnets = None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "EC2NodeClass default: status.subnets is empty; wait until the class is ready"
    );
    let error = changed(|case| case.status.security_groups = Some(Vec::new())).unwrap_err();
    assert!(error.to_string().contains("status.securityGroups is empty"));
}

#[test]
fn aws_045_groups_are_a_set() {
    let more = changed(|case| _ = case.machine.security_groups.insert("sg-3".to_owned()));
    assert_eq!(more, Ok(Some(Drift::SecurityGroup)));
    let fewer = changed(|case| _ = case.machine.security_groups.pop_first());
    assert_eq!(fewer, Ok(Some(Drift::SecurityGroup)));
}

#[test]
fn aws_046_a_claim_without_an_image() {
    let error = changed(|case| case.claim["status"] = json!({})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "NodeClaim c: status.imageID is missing; it is set when the claim is launched"
    );
    let error = changed(|case| case.status.amis = None).unwrap_err();
    assert!(error.to_string().contains("status.amis is empty"));
}

#[test]
fn aws_047_a_reservation_that_is_not_selected() {
    let gone = changed(|case| case.status.capacity_reservations = None);
    assert_eq!(gone, Ok(Some(Drift::CapacityReservation)));
    let on_demand = changed(|case| {
        case.status.capacity_reservations = None;
        case.machine.reservation = None;
    });
    assert_eq!(on_demand, Ok(None));
}

#[test]
fn aws_048_the_first_reason_is_told() {
    let verdict = changed(|case| {
        case.ami = None;
        case.machine.subnet = String::new();
    });
    assert_eq!(verdict, Ok(Some(Drift::Ami)));
}

#[test]
fn aws_049_placement_groups() {
    let label = "karpenter.k8s.aws/placement-group-id";
    let drifted = Ok(Some(Drift::PlacementGroup));
    assert_eq!(changed(|case| case.group = Some("pg-1")), drifted);
    let labeled = |group| {
        changed(|case| {
            case.claim["metadata"]["labels"] = json!({label: "pg-1"});
            case.group = group;
        })
    };
    assert_eq!(labeled(None), drifted);
    assert_eq!(labeled(Some("pg-2")), drifted);
    assert_eq!(labeled(Some("pg-1")), Ok(None));
}
