//! Instance types.

use serde::{Deserialize, Serialize};

/// A type as DescribeInstanceTypes has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct InstanceTypeInfo {
    /// No hypervisor.
    pub bare_metal: bool,
    /// Volumes.
    pub ebs_info: EbsInfo,
    /// GPUs.
    pub gpu_info: Option<Devices<GpuDevice>>,
    /// `nitro` or `xen`.
    pub hypervisor: Option<String>,
    /// Accelerators that are no Neuron devices.
    pub inference_accelerator_info: Option<Devices<AcceleratorDevice>>,
    /// Local disks.
    pub instance_storage_info: Option<InstanceStorage>,
    /// Name.
    pub instance_type: String,
    /// Memory.
    pub memory_info: MemoryInfo,
    /// Network.
    pub network_info: NetworkInfo,
    /// Neuron devices.
    pub neuron_info: Option<Devices<NeuronDevice>>,
    /// `supported` where enclaves are.
    pub nitro_enclaves_support: Option<String>,
    /// Placement groups.
    pub placement_group_info: PlacementGroupInfo,
    /// Processor.
    pub processor_info: ProcessorInfo,
    /// `on-demand`, `spot`, `capacity-block`.
    pub supported_usage_classes: Vec<String>,
    /// Virtual processors.
    #[serde(rename = "VCpuInfo")]
    pub vcpu_info: VCpuInfo,
}

/// Volumes of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct EbsInfo {
    /// How fast they are.
    pub ebs_optimized_info: Option<EbsBandwidth>,
    /// `default`, `supported` or `unsupported`.
    pub ebs_optimized_support: Option<String>,
}

/// How fast volumes are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct EbsBandwidth {
    /// Mbps.
    pub maximum_bandwidth_in_mbps: Option<u64>,
}

/// Devices of one sort. EC2 has a name for the list that differs with the sort.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Devices<Device> {
    /// One entry for each kind.
    #[serde(
        alias = "Gpus",
        alias = "Accelerators",
        alias = "NeuronDevices",
        default = "Vec::new"
    )]
    pub devices: Vec<Device>,
}

/// GPUs of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct GpuDevice {
    /// How many; none where machines have parts of one.
    pub count: Option<u64>,
    /// Maker.
    pub manufacturer: String,
    /// Memory of each.
    pub memory_info: AcceleratorMemory,
    /// Model.
    pub name: String,
}

/// Memory of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AcceleratorMemory {
    /// MiB.
    pub size_in_mi_b: u64,
}

/// Accelerators of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AcceleratorDevice {
    /// How many.
    pub count: Option<u64>,
    /// Maker.
    pub manufacturer: String,
    /// Model.
    pub name: String,
}

/// Neuron devices of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NeuronDevice {
    /// Cores of each.
    pub core_info: NeuronCoreInfo,
    /// How many.
    pub count: Option<u64>,
    /// Model.
    pub name: String,
}

/// Cores of a Neuron device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NeuronCoreInfo {
    /// How many.
    pub count: Option<u64>,
}

/// Local disks of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct InstanceStorage {
    /// `required`, `supported` or `unsupported`.
    pub nvme_support: Option<String>,
    /// GB of all of them.
    #[serde(rename = "TotalSizeInGB")]
    pub total_size_in_gb: Option<u64>,
}

/// Memory of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct MemoryInfo {
    /// MiB.
    pub size_in_mi_b: u64,
}

/// Network of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NetworkInfo {
    /// The card that one interface sits on.
    pub default_network_card_index: Option<usize>,
    /// Elastic Fabric Adapters.
    pub efa_info: Option<EfaInfo>,
    /// `required`, `supported` or `unsupported`.
    pub ena_support: Option<String>,
    /// Traffic between machines is encrypted.
    pub encryption_in_transit_supported: bool,
    /// Addresses of an interface.
    pub ipv4_addresses_per_interface: u64,
    /// Interfaces of all cards.
    pub maximum_network_interfaces: u64,
    /// Cards.
    pub network_cards: Vec<NetworkCard>,
}

/// Elastic Fabric Adapters of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct EfaInfo {
    /// How many.
    pub maximum_efa_interfaces: Option<u64>,
}

/// A network card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NetworkCard {
    /// Interfaces that it takes.
    pub maximum_network_interfaces: u64,
    /// Its index.
    pub network_card_index: usize,
}

/// Placement groups of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct PlacementGroupInfo {
    /// `cluster`, `partition`, `spread`.
    pub supported_strategies: Vec<String>,
}

/// Processor of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ProcessorInfo {
    /// Maker.
    pub manufacturer: Option<String>,
    /// `x86_64`, `arm64`, ..
    pub supported_architectures: Vec<String>,
    /// `nested-virtualization`, ..
    pub supported_features: Vec<String>,
    /// GHz.
    pub sustained_clock_speed_in_ghz: Option<f64>,
}

/// Virtual processors of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct VCpuInfo {
    /// How many, unless asked otherwise.
    #[serde(rename = "DefaultVCpus")]
    pub default_vcpus: u64,
}

/// A type is sold in a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct InstanceTypeOffering {
    /// Type.
    pub instance_type: String,
    /// Zone.
    pub location: String,
}
