//! Behaviors of the upstream AWS provider that are about capacity and overhead, each named by its number in
//! the compatibility table.

use joiner_catalog::{
    AmiFamily, BlockDevice, ClassSettings, InterfaceKind, NetworkInterface, Overhead, Threshold,
    ec2, ec2_type,
};
use joiner_model::{InstanceType, ResourceName, Resources};

const REGION: &str = "us-east-1";
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

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

fn overhead(name: &str, settings: &ClassSettings) -> Overhead {
    Overhead::of(name, settings).expect("a type of the table")
}

fn pods(name: &str, settings: &ClassSettings) -> u64 {
    get(name, settings).capacity.get(&ResourceName::Pods)
}

fn has(name: &str, resource: &str, settings: &ClassSettings) -> u64 {
    let resource = ResourceName::parse(resource);
    get(name, settings).capacity.get(&resource)
}

fn kube_memory_mib(name: &str, settings: &ClassSettings) -> u64 {
    let reserved = overhead(name, settings).kube_reserved;
    reserved.get(&ResourceName::Memory) / MIB
}

fn label(name: &str, key: &str) -> Option<String> {
    let labels = get(name, &ClassSettings::default()).labels;
    let values = labels.get(key)?;
    Some(values.join("|"))
}

#[test]
fn aws_088_defaults_of_m5_xlarge() {
    let parts = overhead("m5.xlarge", &ClassSettings::default());
    assert_eq!(
        parts.kube_reserved.to_string(),
        "cpu 80m, memory 893Mi, ephemeral-storage 1Gi"
    );
    assert!(parts.system_reserved.is_empty());
    assert_eq!(
        parts.eviction.to_string(),
        "memory 100Mi, ephemeral-storage 2Gi"
    );
}

#[test]
fn aws_089_pods_come_from_the_default_card() {
    let settings = ClassSettings::default();
    assert_eq!(pods("t3.large", &settings), 35);
    assert_eq!(pods("m6idn.32xlarge", &settings), 394);
}

#[test]
fn aws_090_max_pods_and_kubelet_memory() {
    for ami_family in AmiFamily::ALL {
        let settings = ClassSettings {
            max_pods: Some(10),
            ..family(ami_family)
        };
        let by_interfaces = matches!(
            ami_family,
            AmiFamily::Al2 | AmiFamily::Al2023 | AmiFamily::Custom
        );
        let expected = if by_interfaces { 640 } else { 365 };
        assert_eq!(
            kube_memory_mib("t3.large", &settings),
            expected,
            "{ami_family}"
        );
        assert_eq!(pods("t3.large", &settings), 10);
    }
}

#[test]
fn aws_091_one_reserved_interface() {
    for (ami_family, n_pods, memory) in [
        (AmiFamily::Al2, 24, 640),
        (AmiFamily::Al2023, 24, 640),
        (AmiFamily::Custom, 24, 640),
        (AmiFamily::Bottlerocket, 24, 519),
        (AmiFamily::Windows2019, 110, 1465),
        (AmiFamily::Windows2022, 110, 1465),
        (AmiFamily::Windows2025, 110, 1465),
    ] {
        let settings = ClassSettings {
            reserved_enis: 1,
            ..family(ami_family)
        };
        assert_eq!(pods("t3.large", &settings), n_pods, "{ami_family}");
        assert_eq!(
            kube_memory_mib("t3.large", &settings),
            memory,
            "{ami_family}"
        );
    }
}

#[test]
fn aws_092_more_reserved_interfaces_than_there_are() {
    let settings = ClassSettings {
        reserved_enis: 1_000_000,
        ..ClassSettings::default()
    };
    let catalog = ec2(REGION, &settings).unwrap();
    for instance_type in &catalog.types {
        assert_eq!(instance_type.capacity.get(&ResourceName::Pods), 0);
    }
}

#[test]
fn aws_093_pods_per_core() {
    let with = |ami_family, pods_per_core, max_pods| ClassSettings {
        pods_per_core,
        max_pods,
        ..family(ami_family)
    };
    let plain = ec2(REGION, &ClassSettings::default()).unwrap();
    let one = ec2(REGION, &with(AmiFamily::Al2023, 1, None)).unwrap();
    for (plain, one) in plain.types.iter().zip(&one.types) {
        let by_interfaces = plain.capacity.get(&ResourceName::Pods);
        let vcpus = plain.capacity.get(&ResourceName::Cpu) / 1000;
        let expected = by_interfaces.min(vcpus);
        assert_eq!(
            one.capacity.get(&ResourceName::Pods),
            expected,
            "{}",
            one.name
        );
    }
    let both = with(AmiFamily::Al2023, 4, Some(20));
    assert_eq!(pods("t3.large", &both), 8);
    assert_eq!(pods("m5.4xlarge", &both), 20);
    assert_eq!(pods("t3.large", &with(AmiFamily::Al2023, 0, None)), 35);
    assert_eq!(pods("t3.large", &with(AmiFamily::Windows2022, 2, None)), 4);
    let ignored = with(AmiFamily::Bottlerocket, 1, None);
    assert_eq!(pods("t3.large", &ignored), 35);
}

#[test]
fn aws_094_overhead_without_vm_overhead() {
    let total = |ami_family, max_pods| {
        let settings = ClassSettings {
            vm_memory_overhead_ppm: 0,
            max_pods,
            ..family(ami_family)
        };
        get("m5.xlarge", &settings)
            .overhead
            .get(&ResourceName::Memory)
    };
    assert_eq!(total(AmiFamily::Al2, None), 993 * MIB);
    assert_eq!(total(AmiFamily::Bottlerocket, None), 993 * MIB);
    assert_eq!(total(AmiFamily::Bottlerocket, Some(110)), 1565 * MIB);
}

#[test]
fn aws_095_eviction_thresholds() {
    let evicted = |threshold| {
        let settings = ClassSettings {
            eviction_memory: threshold,
            eviction_nodefs: threshold,
            ..ClassSettings::default()
        };
        let capacity = get("m5.xlarge", &settings).capacity;
        let amounts = overhead("m5.xlarge", &settings).eviction;
        [ResourceName::Memory, ResourceName::EphemeralStorage]
            .map(|name| (amounts.get(&name), capacity.get(&name)))
    };
    assert_eq!(evicted(None)[0].0, 100 * MIB);
    assert_eq!(evicted(None)[1].0, 2 * GIB);
    for (amount, _) in evicted(Some(Threshold::Bytes(500 * MIB))) {
        assert_eq!(amount, 500 * MIB);
    }
    for (amount, capacity) in evicted(Some(Threshold::percent(10))) {
        assert_eq!(amount, capacity.div_ceil(10));
    }
    for (amount, _) in evicted(Some(Threshold::percent(100))) {
        assert_eq!(amount, 0);
    }
}

#[test]
fn aws_096_given_reservations_are_used_verbatim() {
    let settings = ClassSettings {
        kube_reserved: Resources::new()
            .with(ResourceName::Cpu, 2000)
            .with(ResourceName::parse("pid"), 1000),
        system_reserved: Resources::new()
            .with(ResourceName::Memory, 20 * GIB)
            .with(ResourceName::EphemeralStorage, 10 * GIB),
        ..ClassSettings::default()
    };
    let parts = overhead("m5.xlarge", &settings);
    assert_eq!(
        parts.kube_reserved.to_string(),
        "cpu 2, memory 893Mi, ephemeral-storage 1Gi, pid 1000"
    );
    assert_eq!(parts.system_reserved, settings.system_reserved);
    // Process ids are reserved, but a node has none to take them from.
    assert_eq!(
        parts.total().to_string(),
        "cpu 2, memory 21473Mi, ephemeral-storage 13Gi"
    );
    // More than there is: nothing fits.
    let full = get("m5.xlarge", &settings).allocatable();
    assert_eq!(full, Err(ResourceName::Memory));
}

#[test]
fn aws_097_estimates_stay_below_what_real_nodes_report() {
    let settings = ClassSettings::default();
    for (name, memory_kib, millis) in [
        ("t4g.small", 1_408_312, Some(1930)),
        ("t4g.medium", 3_377_496, None),
        ("t4g.xlarge", 15_136_012, Some(3920)),
        ("m5.large", 7_220_184, None),
    ] {
        let estimate = get(name, &settings).allocatable().unwrap();
        let memory = estimate.get(&ResourceName::Memory);
        assert!(memory <= memory_kib * KIB, "{name}");
        if let Some(millis) = millis {
            assert!(estimate.get(&ResourceName::Cpu) <= millis, "{name}");
        }
    }
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
fn aws_098_efa_only_interfaces_on_the_default_card_cost_pods() {
    use InterfaceKind::{EfaOnly, Interface};
    let plain = pods("p5.48xlarge", &ClassSettings::default());
    let none = interfaces(&[(0, 0, Interface)]);
    let elsewhere = interfaces(&[(0, 0, Interface), (1, 1, EfaOnly)]);
    let default_card = interfaces(&[(0, 0, Interface), (0, 1, EfaOnly)]);
    assert_eq!(pods("p5.48xlarge", &none), plain);
    assert_eq!(pods("p5.48xlarge", &elsewhere), plain);
    assert_eq!(pods("p5.48xlarge", &default_card), plain - 49);
    assert_eq!(
        has("p5.48xlarge", "vpc.amazonaws.com/efa", &default_card),
        1
    );
    assert_eq!(has("p5.48xlarge", "vpc.amazonaws.com/efa", &none), 0);
    let maximum = ClassSettings::default();
    assert_eq!(has("p5.48xlarge", "vpc.amazonaws.com/efa", &maximum), 32);
}

#[test]
fn aws_099_only_trunking_types_have_pod_interfaces() {
    let settings = ClassSettings::default();
    assert_eq!(has("t3.large", "vpc.amazonaws.com/pod-eni", &settings), 0);
    assert_eq!(has("m5.large", "vpc.amazonaws.com/pod-eni", &settings), 9);
}

#[test]
fn aws_100_private_addresses_are_for_windows() {
    let resource = "vpc.amazonaws.com/PrivateIPv4Address";
    assert_eq!(has("m5.large", resource, &family(AmiFamily::Al2023)), 0);
    assert_eq!(
        has("m5.large", resource, &family(AmiFamily::Windows2022)),
        9
    );
}

#[test]
fn aws_101_devices() {
    let settings = ClassSettings::default();
    for (name, resource, count) in [
        ("p3.8xlarge", "nvidia.com/gpu", 4),
        ("g4ad.16xlarge", "amd.com/gpu", 4),
        ("dl1.24xlarge", "habana.ai/gaudi", 8),
        ("inf1.6xlarge", "aws.amazon.com/neuron", 4),
        ("trn1.32xlarge", "aws.amazon.com/neuron", 16),
        ("inf2.24xlarge", "aws.amazon.com/neuroncore", 12),
        ("g4dn.8xlarge", "vpc.amazonaws.com/efa", 1),
        ("g6f.large", "nvidia.com/gpu", 0),
        ("m5.large", "nvidia.com/gpu", 0),
    ] {
        assert_eq!(has(name, resource, &settings), count, "{name} {resource}");
    }
    let count = label("g6f.large", "karpenter.k8s.aws/instance-gpu-count");
    assert_eq!(count.as_deref(), Some("0"));
    // Qualcomm cards are accelerators but not Neuron devices.
    assert_eq!(has("dl2q.24xlarge", "aws.amazon.com/neuron", &settings), 0);
    let count = label(
        "dl2q.24xlarge",
        "karpenter.k8s.aws/instance-accelerator-count",
    );
    assert_eq!(count.as_deref(), Some("8"));
}

#[test]
fn aws_102_local_disks_hold_ephemeral_storage_on_request() {
    let mut settings = ClassSettings::default();
    assert_eq!(
        has("m6idn.32xlarge", "ephemeral-storage", &settings),
        20 * GIB
    );
    settings.instance_store_raid0 = true;
    assert_eq!(
        has("m6idn.32xlarge", "ephemeral-storage", &settings),
        7_600_000_000_000
    );
    assert_eq!(has("m5.large", "ephemeral-storage", &settings), 20 * GIB);
}

fn with_devices(ami_family: AmiFamily, devices: &[(&str, bool, Option<u64>)]) -> ClassSettings {
    let devices = devices
        .iter()
        .map(|&(device, root_volume, gib)| BlockDevice {
            device: device.into(),
            root_volume,
            size_bytes: gib.map(|gib| gib * GIB),
        });
    ClassSettings {
        block_devices: devices.collect(),
        ..family(ami_family)
    }
}

fn storage_gib(ami_family: AmiFamily, devices: &[(&str, bool, Option<u64>)]) -> u64 {
    let settings = with_devices(ami_family, devices);
    has("m5.large", "ephemeral-storage", &settings) / GIB
}

#[test]
fn aws_103_a_volume_without_a_size_has_20_gib() {
    for ami_family in [AmiFamily::Al2, AmiFamily::Al2023, AmiFamily::Custom] {
        assert_eq!(storage_gib(ami_family, &[("/dev/xvda", false, None)]), 20);
    }
    let root = [("/dev/xvdb", true, None)];
    assert_eq!(storage_gib(AmiFamily::Bottlerocket, &root), 20);
    for ami_family in AmiFamily::ALL {
        let expected = if ami_family.is_windows() { 50 } else { 20 };
        assert_eq!(storage_gib(ami_family, &[]), expected, "{ami_family}");
    }
}

#[test]
fn aws_104_which_volume_holds_ephemeral_storage() {
    let flagged = [
        ("/dev/xvda", false, Some(30)),
        ("/dev/xvdb", false, Some(40)),
        ("/dev/sda1", false, Some(50)),
        ("/dev/xvdc", true, Some(60)),
        ("/dev/xvdd", false, Some(70)),
    ];
    for ami_family in AmiFamily::ALL {
        assert_eq!(storage_gib(ami_family, &flagged), 60);
    }
    let plain = flagged.map(|(device, _, size)| (device, false, size));
    for (ami_family, expected) in [
        (AmiFamily::Al2, 30),
        (AmiFamily::Al2023, 30),
        (AmiFamily::Bottlerocket, 40),
        (AmiFamily::Windows2019, 50),
        (AmiFamily::Custom, 70),
    ] {
        assert_eq!(storage_gib(ami_family, &plain), expected, "{ami_family}");
    }
    let other = [("/dev/xvdz", false, Some(100))];
    assert_eq!(storage_gib(AmiFamily::Al2023, &other), 20);
}
