use super::*;
use crate::{DeviceFigures, EvictionThreshold};

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
fn a_class_in_figures() {
    let class = read_class(&class(
        "  amiSelectorTerms: [{alias: bottlerocket@latest}]
  instanceStorePolicy: RAID0
  blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 30Gi}}]
  kubelet:
    maxPods: 42
    podsPerCore: 4
    kubeReserved: {cpu: 150m, memory: 1Gi}
    evictionHard: {memory.available: 7.5%, nodefs.available: 2Gi}
status:
  subnets: [{id: s-1, zone: us-east-1a}, {id: s-2, zone: us-east-1b}]",
    ));
    let figures = class.figures().unwrap().unwrap();
    assert_eq!(figures.ami_family.as_deref(), Some("Bottlerocket"));
    assert_eq!((figures.max_pods, figures.pods_per_core), (Some(42), 4));
    assert_eq!(figures.kube_reserved.to_string(), "cpu 150m, memory 1Gi");
    assert_eq!(
        figures.eviction_memory,
        Some(EvictionThreshold::PartsPerMillion(75_000))
    );
    assert_eq!(
        figures.eviction_nodefs,
        Some(EvictionThreshold::Bytes(2 << 30))
    );
    let device = DeviceFigures {
        device: "/dev/xvda".into(),
        root_volume: true,
        size_bytes: Some(30 << 30),
    };
    assert_eq!(figures.block_devices, [device]);
    assert!(figures.instance_store_raid0);
    assert_eq!(figures.zones.map(|zones| zones.len()), Some(2));
}

#[test]
fn other_classes_have_no_figures() {
    let other =
        read_class("apiVersion: example.com/v1\nkind: OtherNodeClass\nmetadata: {name: main}\n");
    assert_eq!(other.figures(), Ok(None));
}
