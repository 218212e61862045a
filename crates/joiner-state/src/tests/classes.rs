use joiner_catalog::{AmiFamily, BlockDevice, InterfaceKind, NetworkInterface, Threshold};

use super::*;

fn class(spec: &str) -> String {
    format!(
        "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: main}}
spec:
  role: r
  subnetSelectorTerms: [{{tags: {{a: b}}}}]
  securityGroupSelectorTerms: [{{tags: {{a: b}}}}]
{spec}
"
    )
}

fn read_class(text: &str) -> crate::NodeClass {
    let objects = Objects::read([Source::new("in.yaml", text)]).unwrap();
    objects.node_classes()[0].clone()
}

#[test]
fn a_class_as_the_catalog_takes_it() {
    let class = read_class(&class(
        "  amiSelectorTerms: [{alias: bottlerocket@latest}]
  instanceStorePolicy: RAID0
  networkInterfaces:
  - {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}
  - {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}
  blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 30Gi}}]
  kubelet:
    maxPods: 42
    podsPerCore: 4
    kubeReserved: {cpu: 150m, memory: 1Gi}
    evictionHard: {memory.available: 7.5%, nodefs.available: 2Gi}
status:
  subnets: [{id: s-1, zone: us-east-1a}, {id: s-2, zone: us-east-1b}]",
    ));
    let mut warnings = Vec::new();
    let settings = class.settings(&mut warnings).unwrap().unwrap();
    assert_eq!(settings.ami_family, AmiFamily::Bottlerocket);
    assert_eq!((settings.max_pods, settings.pods_per_core), (Some(42), 4));
    assert_eq!(settings.kube_reserved.to_string(), "cpu 150m, memory 1Gi");
    assert_eq!(
        settings.eviction_memory,
        Some(Threshold::PartsPerMillion(75_000))
    );
    assert_eq!(settings.eviction_nodefs, Some(Threshold::Bytes(2 << 30)));
    let device = BlockDevice {
        device: "/dev/xvda".into(),
        root_volume: true,
        size_bytes: Some(30 << 30),
    };
    assert_eq!(settings.block_devices, [device]);
    assert!(settings.instance_store_raid0);
    let interface = |card, device, kind| NetworkInterface { card, device, kind };
    assert_eq!(
        settings.network_interfaces,
        [
            interface(0, 0, InterfaceKind::Interface),
            interface(1, 1, InterfaceKind::EfaOnly)
        ]
    );
    assert_eq!(settings.zones.map(|zones| zones.len()), Some(2));
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_family_is_named_or_follows_from_the_alias() {
    for (spec, expected) in [
        ("  amiSelectorTerms: [{alias: al2@latest}]", AmiFamily::Al2),
        (
            "  amiSelectorTerms: [{id: ami-0123456789abcdef0}]
  amiFamily: Windows2022",
            AmiFamily::Windows2022,
        ),
        (
            "  amiSelectorTerms: [{id: ami-0123456789abcdef0}]
  amiFamily: Custom",
            AmiFamily::Custom,
        ),
    ] {
        let class = read_class(&class(spec));
        let settings = class.settings(&mut Vec::new()).unwrap().unwrap();
        assert_eq!(settings.ami_family, expected, "{spec}");
        assert_eq!(settings.zones, None, "no subnets are known yet");
    }
}

#[test]
fn what_settings_leave_out_is_told() {
    let class = read_class(&class(
        "  amiSelectorTerms: [{alias: al2023@latest}]
  placementGroupSelector: {name: near}
  kubelet: {maxPods: max_pods - 2}",
    ));
    let mut warnings = Vec::new();
    let settings = class.settings(&mut warnings).unwrap().unwrap();
    assert_eq!(settings.max_pods, None);
    assert_eq!(
        warnings,
        [
            "EC2NodeClass main: maxPods is an expression (\"max_pods - 2\"), which is not \
             evaluated; the default pod density is used",
            "EC2NodeClass main: the strategy of its placement group is not known offline; types \
             are not filtered by it",
        ]
    );
}

#[test]
fn other_classes_have_no_settings() {
    let other =
        read_class("apiVersion: example.com/v1\nkind: OtherNodeClass\nmetadata: {name: main}\n");
    assert_eq!(other.settings(&mut Vec::new()), Ok(None));
}
