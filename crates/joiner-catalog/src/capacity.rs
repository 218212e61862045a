//! What a machine of a type has, before the system takes its share.

use joiner_model::{Name, ResourceName, Resources};

use crate::figures::Figures;
use crate::settings::{ClassSettings, parts_of};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// Size of a volume nobody gave a size.
const DEFAULT_VOLUME_GIB: u64 = 20;
/// Memory that ARM kernels set aside, invisible to everybody else.
const ARM_RESERVED_MIB: u64 = 64;
/// Pods on a node whose image does not count network interfaces.
const DEFAULT_PODS: u64 = 110;

/// Names of the resources only some types have, shared by all.
pub(crate) struct DeviceNames {
    pod_eni: Name,
    nvidia: Name,
    amd: Name,
    gaudi: Name,
    neuron: Name,
    neuron_core: Name,
    efa: Name,
    private_ipv4: Name,
}

impl DeviceNames {
    /// Their usual spelling.
    pub(crate) fn new() -> Self {
        Self {
            pod_eni: "vpc.amazonaws.com/pod-eni".into(),
            nvidia: "nvidia.com/gpu".into(),
            amd: "amd.com/gpu".into(),
            gaudi: "habana.ai/gaudi".into(),
            neuron: "aws.amazon.com/neuron".into(),
            neuron_core: "aws.amazon.com/neuroncore".into(),
            efa: "vpc.amazonaws.com/efa".into(),
            private_ipv4: "vpc.amazonaws.com/PrivateIPv4Address".into(),
        }
    }
}

/// All that a node of the type has. Resources it has none of are not named.
pub(crate) fn capacity(
    figures: &Figures,
    settings: &ClassSettings,
    names: &DeviceNames,
) -> Resources {
    let mut capacity = Resources::new()
        .with(ResourceName::Cpu, figures.vcpus * 1000)
        .with(ResourceName::Memory, memory(figures, settings))
        .with(ResourceName::Pods, pods(figures, settings))
        .with(
            ResourceName::EphemeralStorage,
            ephemeral_storage(figures, settings),
        );
    for (name, count) in devices(figures, settings, names) {
        if count > 0 {
            capacity.set(ResourceName::Other(name.clone()), count);
        }
    }
    capacity
}

/// Memory in bytes that the operating system sees: as seen before, else estimated.
pub(crate) fn memory(figures: &Figures, settings: &ClassSettings) -> u64 {
    if let Some(bytes) = figures.discovered_memory {
        return bytes;
    }
    let reserved = if &*figures.arch == "arm64" {
        ARM_RESERVED_MIB
    } else {
        0
    };
    let mib = figures.memory_mib.saturating_sub(reserved);
    mib.saturating_sub(parts_of(mib, settings.vm_memory_overhead_ppm)) * MIB
}

/// How many pods a node takes.
pub(crate) fn pods(figures: &Figures, settings: &ClassSettings) -> u64 {
    let limit = match settings.max_pods {
        Some(pods) => u64::from(pods),
        None if settings.ami_family.is_windows() => DEFAULT_PODS,
        None => pods_by_interfaces(figures, settings, u64::from(settings.reserved_enis)),
    };
    let per_core = u64::from(settings.pods_per_core);
    if per_core == 0 || settings.ami_family == crate::AmiFamily::Bottlerocket {
        return limit;
    }
    limit.min(per_core * figures.vcpus)
}

/// How many pods the network of a node can give addresses to.
pub(crate) fn pods_by_interfaces(
    figures: &Figures,
    settings: &ClassSettings,
    reserved_enis: u64,
) -> u64 {
    let on_default_card = figures.enis.first().copied().unwrap_or(0);
    let enis = on_default_card
        .saturating_sub(reserved_enis)
        .saturating_sub(settings.efa_only_on_default_card());
    if enis == 0 {
        return 0;
    }
    enis * figures.ipv4_per_eni.saturating_sub(1) + 2
}

/// Scratch space in bytes: the local disks, or the volume that holds it.
pub(crate) fn ephemeral_storage(figures: &Figures, settings: &ClassSettings) -> u64 {
    if settings.instance_store_raid0 && figures.local_disk_gb > 0 {
        return figures.local_disk_gb * 1_000_000_000;
    }
    let devices = &settings.block_devices;
    let root = devices.iter().find(|device| device.root_volume);
    if let Some(size) = root.and_then(|device| device.size_bytes) {
        return size;
    }
    match settings.ami_family.ephemeral_device() {
        None => (devices.last())
            .and_then(|device| device.size_bytes)
            .unwrap_or(DEFAULT_VOLUME_GIB * GIB),
        Some((name, default_gib)) => (devices.iter())
            .find(|device| *device.device == *name)
            .and_then(|device| device.size_bytes)
            .unwrap_or(default_gib * GIB),
    }
}

fn devices<'a>(
    figures: &Figures,
    settings: &ClassSettings,
    names: &'a DeviceNames,
) -> [(&'a Name, u64); 8] {
    let gpus = |maker: &str| {
        let gpu = figures.gpu.as_ref().filter(|gpu| &*gpu.maker == maker);
        gpu.map_or(0, |gpu| gpu.count)
    };
    let neuron = (figures.accelerator.as_ref()).filter(|chips| chips.neuron_cores > 0);
    let efa = if settings.network_interfaces.is_empty() {
        figures.efa
    } else {
        settings.efa_only()
    };
    let private_ipv4 = if settings.ami_family.is_windows() {
        figures.ipv4_per_eni.saturating_sub(1)
    } else {
        0
    };
    [
        (&names.pod_eni, figures.branch_enis),
        (&names.nvidia, gpus("nvidia")),
        (&names.amd, gpus("amd")),
        (&names.gaudi, gpus("habana")),
        (&names.neuron, neuron.map_or(0, |chips| chips.count)),
        (
            &names.neuron_core,
            neuron.map_or(0, |chips| chips.neuron_cores),
        ),
        (&names.efa, efa),
        (&names.private_ipv4, private_ipv4),
    ]
}
