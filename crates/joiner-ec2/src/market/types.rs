//! Instance types as EC2 describes them, as rows of the catalog.

use std::collections::{BTreeMap, BTreeSet};

use joiner_catalog::{Accelerator, Figures, Gpu, ec2_figures_of};
use joiner_model::Name;

use crate::answer::{InstanceTypeInfo, InstanceTypeOffering, NetworkInfo};
use crate::request::{Filter, Query};

/// Types a page.
const TYPES_PAGE: i32 = 100;
/// Offerings a page.
const OFFERINGS_PAGE: i32 = 1000;
/// Makes Neuron devices.
const NEURON_MAKER: &str = "aws";

/// The question about instance types.
#[must_use]
pub fn types_query() -> Query {
    Query {
        filters: vec![
            Filter::new("supported-virtualization-type", ["hvm"]),
            Filter::new("processor-info.supported-architecture", ["x86_64", "arm64"]),
        ],
        max_results: Some(TYPES_PAGE),
        ..Query::default()
    }
}

/// The question about zones that sell them; the location type is `availability-zone`.
#[must_use]
pub fn type_offerings_query() -> Query {
    Query {
        max_results: Some(OFFERINGS_PAGE),
        ..Query::default()
    }
}

/// Zones by type.
pub type Offered = BTreeMap<Name, BTreeSet<Name>>;

/// Which zones sell which types.
#[must_use]
pub fn offered(answers: &[InstanceTypeOffering]) -> Offered {
    let mut offered = Offered::new();
    for offering in answers {
        let zones = offered
            .entry(offering.instance_type.as_str().into())
            .or_default();
        zones.insert(offering.location.as_str().into());
    }
    offered
}

/// The row of a type. What EC2 says in words only, or not at all, comes from the built-in table: network bandwidth
/// and branch interfaces.
#[must_use]
pub fn figures(info: &InstanceTypeInfo) -> Figures {
    let name: Name = info.instance_type.as_str().into();
    let (family, size) = name.split_once('.').unwrap_or((&name, ""));
    let known = ec2_figures_of(&name);
    let processor = &info.processor_info;
    let strategies = &info.placement_group_info.supported_strategies;
    let is_in = |list: &[String], value: &str| list.iter().any(|item| item == value);
    let storage = info.instance_storage_info.as_ref();
    let optimized = info.ebs_info.ebs_optimized_support.as_deref() == Some("default");
    let ebs = info
        .ebs_info
        .ebs_optimized_info
        .as_ref()
        .filter(|_| optimized);
    let is_supported =
        |support: Option<&str>| support.is_some_and(|support| support != "unsupported");
    let network = &info.network_info;
    Figures {
        family: family.into(),
        size: size.into(),
        arch: arch(&processor.supported_architectures).into(),
        cpu_maker: kebab(processor.manufacturer.as_deref().unwrap_or_default()),
        encrypts_in_transit: network.encryption_in_transit_supported,
        placement_cluster: is_in(strategies, "cluster"),
        placement_partition: is_in(strategies, "partition"),
        placement_spread: is_in(strategies, "spread"),
        on_demand: is_in(&info.supported_usage_classes, "on-demand"),
        spot: is_in(&info.supported_usage_classes, "spot"),
        vcpus: info.vcpu_info.default_vcpus,
        memory_mib: info.memory_info.size_in_mi_b,
        discovered_memory: None,
        hypervisor: info.hypervisor.as_deref().unwrap_or_default().into(),
        clock_mhz: mhz(processor.sustained_clock_speed_in_ghz.unwrap_or_default()),
        enis: interfaces(network),
        ipv4_per_eni: network.ipv4_addresses_per_interface,
        branch_enis: known.map_or(0, |figures| figures.branch_enis),
        ebs_mbps: ebs
            .and_then(|ebs| ebs.maximum_bandwidth_in_mbps)
            .unwrap_or_default(),
        network_mbps: known.map_or(0, |figures| figures.network_mbps),
        enclaves: info.nitro_enclaves_support.as_deref() == Some("supported"),
        nested_virtualization: is_in(&processor.supported_features, "nested-virtualization"),
        ena: is_supported(network.ena_support.as_deref()),
        nvme: storage.is_some_and(|storage| is_supported(storage.nvme_support.as_deref())),
        efa: network
            .efa_info
            .as_ref()
            .and_then(|efa| efa.maximum_efa_interfaces)
            .unwrap_or_default(),
        local_disk_gb: storage
            .and_then(|storage| storage.total_size_in_gb)
            .unwrap_or_default(),
        gpu: gpu(info),
        accelerator: accelerator(info),
        name,
    }
}

/// The first architecture that nodes can have.
fn arch(all: &[String]) -> &'static str {
    let known = all.iter().find_map(|arch| match arch.as_str() {
        "x86_64" => Some("amd64"),
        "arm64" => Some("arm64"),
        _ => None,
    });
    known.unwrap_or_default()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a clock speed is a small positive number"
)]
fn mhz(ghz: f64) -> u64 {
    (ghz * 1000.0).round() as u64
}

/// Interfaces of each card, the default card first.
fn interfaces(network: &NetworkInfo) -> Vec<u64> {
    if network.network_cards.is_empty() {
        return vec![network.maximum_network_interfaces];
    }
    let default = network.default_network_card_index.unwrap_or_default();
    let mut cards: Vec<_> = network.network_cards.iter().collect();
    cards.sort_by_key(|card| (card.network_card_index != default, card.network_card_index));
    cards
        .into_iter()
        .map(|card| card.maximum_network_interfaces)
        .collect()
}

/// The GPUs, where they are of one kind.
fn gpu(info: &InstanceTypeInfo) -> Option<Gpu> {
    let [device] = info.gpu_info.as_ref()?.devices.as_slice() else {
        return None;
    };
    Some(Gpu {
        maker: kebab(&device.manufacturer),
        name: kebab(&device.name),
        count: device.count.unwrap_or_default(),
        memory_mib: device.memory_info.size_in_mi_b,
    })
}

/// The Neuron devices, where they are of one kind; else the other accelerators likewise.
fn accelerator(info: &InstanceTypeInfo) -> Option<Accelerator> {
    let neuron = info
        .neuron_info
        .as_ref()
        .map(|neuron| neuron.devices.as_slice());
    if let Some([first, rest @ ..]) = neuron {
        let count = first.count.unwrap_or_default();
        return rest.is_empty().then(|| Accelerator {
            maker: NEURON_MAKER.into(),
            name: kebab(&first.name),
            count,
            neuron_cores: count * first.core_info.count.unwrap_or_default(),
        });
    }
    let [device] = info.inference_accelerator_info.as_ref()?.devices.as_slice() else {
        return None;
    };
    Some(Accelerator {
        maker: kebab(&device.manufacturer),
        name: kebab(&device.name),
        count: device.count.unwrap_or_default(),
        neuron_cores: 0,
    })
}

/// A name as label values have it.
fn kebab(text: &str) -> Name {
    text.to_lowercase().replace(' ', "-").into()
}
