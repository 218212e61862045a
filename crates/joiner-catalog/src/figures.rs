//! What is known of an instance type before a class has its say: a row of the catalog.

use joiner_model::Name;

/// The figures of one instance type. Those of the built-in table are public facts as of its date; a cloud may give
/// newer ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// `m5.xlarge`.
    pub name: Name,
    /// The part of the name before the dot.
    pub family: Name,
    /// The part after it.
    pub size: Name,
    /// `amd64` or `arm64`.
    pub arch: Name,
    /// Empty when unknown.
    pub cpu_maker: Name,
    /// Traffic between machines is encrypted.
    pub encrypts_in_transit: bool,
    /// Can be in a placement group of this strategy.
    pub placement_cluster: bool,
    /// Can be in a placement group of this strategy.
    pub placement_partition: bool,
    /// Can be in a placement group of this strategy.
    pub placement_spread: bool,
    /// Sold on demand.
    pub on_demand: bool,
    /// Sold as spot.
    pub spot: bool,
    /// Virtual processors.
    pub vcpus: u64,
    /// As advertised.
    pub memory_mib: u64,
    /// Bytes that a node of the type was seen with; it replaces the estimate.
    pub discovered_memory: Option<u64>,
    /// `nitro`, `xen`, or empty on bare metal.
    pub hypervisor: Name,
    /// Sustained clock speed; zero when unknown.
    pub clock_mhz: u64,
    /// Network interfaces of each network card, the default card first.
    pub enis: Vec<u64>,
    /// Addresses of an interface.
    pub ipv4_per_eni: u64,
    /// Zero when the type cannot trunk.
    pub branch_enis: u64,
    /// Zero unless EBS-optimized by default.
    pub ebs_mbps: u64,
    /// Zero where only words are published.
    pub network_mbps: u64,
    /// Nitro Enclaves.
    pub enclaves: bool,
    /// Virtual machines can run inside.
    pub nested_virtualization: bool,
    /// Enhanced networking.
    pub ena: bool,
    /// The local disk is NVMe.
    pub nvme: bool,
    /// Elastic Fabric Adapters.
    pub efa: u64,
    /// Local disks, all of them.
    pub local_disk_gb: u64,
    /// GPUs.
    pub gpu: Option<Gpu>,
    /// Machine-learning chips.
    pub accelerator: Option<Accelerator>,
}

/// The GPUs of a type. Fractional GPUs have count zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// Maker.
    pub maker: Name,
    /// Model.
    pub name: Name,
    /// How many.
    pub count: u64,
    /// Of each.
    pub memory_mib: u64,
}

/// The machine-learning chips of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accelerator {
    /// Maker.
    pub maker: Name,
    /// Model.
    pub name: Name,
    /// How many.
    pub count: u64,
    /// Of all chips; zero for chips that are not Neuron devices.
    pub neuron_cores: u64,
}
