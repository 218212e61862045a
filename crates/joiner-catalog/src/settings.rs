//! What a node class decides about its nodes' capacity, overhead and labels.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use joiner_model::{Name, Resources};

/// The settings of a node class that figures depend on. The default is a class with AL2023 and
/// nothing else set, under a controller with default settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSettings {
    /// Kind of machine image.
    pub ami_family: AmiFamily,
    /// Kubelet `maxPods`.
    pub max_pods: Option<u32>,
    /// Kubelet `podsPerCore`; zero means no such limit.
    pub pods_per_core: u32,
    /// Kubelet `kubeReserved`; a resource that is not named keeps its default.
    pub kube_reserved: Resources,
    /// Kubelet `systemReserved`.
    pub system_reserved: Resources,
    /// Kubelet `evictionHard`, `memory.available`; default 100Mi.
    pub eviction_memory: Option<Threshold>,
    /// Kubelet `evictionHard`, `nodefs.available`; default 10 %.
    pub eviction_nodefs: Option<Threshold>,
    /// Block device mappings in the order of the class; none means the defaults of the family.
    pub block_devices: Vec<BlockDevice>,
    /// Instance store policy `RAID0`: local disks hold the pods' ephemeral storage.
    pub instance_store_raid0: bool,
    /// Network interfaces of the class; none means the cloud's defaults.
    pub network_interfaces: Vec<NetworkInterface>,
    /// Nodes must be able to run virtual machines themselves.
    pub nested_virtualization: bool,
    /// The class sets connection tracking timeouts, which only Nitro machines honor.
    pub connection_tracking: bool,
    /// Placement group the nodes go into.
    pub placement_group: Option<PlacementGroup>,
    /// Zones of the subnets that the class resolved to; `None` while it has not, and all will do.
    pub zones: Option<BTreeSet<Name>>,
    /// Network interfaces kept free for other uses (a setting of the controller).
    pub reserved_enis: u32,
    /// Memory the machine never sees, in millionths of what is advertised (a setting of the
    /// controller); default 75000, that is 7.5 %.
    pub vm_memory_overhead_ppm: u32,
}

impl Default for ClassSettings {
    fn default() -> Self {
        Self {
            ami_family: AmiFamily::Al2023,
            max_pods: None,
            pods_per_core: 0,
            kube_reserved: Resources::new(),
            system_reserved: Resources::new(),
            eviction_memory: None,
            eviction_nodefs: None,
            block_devices: Vec::new(),
            instance_store_raid0: false,
            network_interfaces: Vec::new(),
            nested_virtualization: false,
            connection_tracking: false,
            placement_group: None,
            zones: None,
            reserved_enis: 0,
            vm_memory_overhead_ppm: 75_000,
        }
    }
}

impl ClassSettings {
    /// How many EFA-only interfaces the class asks for.
    pub(crate) fn efa_only(&self) -> u64 {
        self.count_interfaces(|_| true)
    }

    /// How many of them sit on the default network card.
    pub(crate) fn efa_only_on_default_card(&self) -> u64 {
        self.count_interfaces(|interface| interface.card == 0)
    }

    fn count_interfaces(&self, which: impl Fn(&NetworkInterface) -> bool) -> u64 {
        let efa_only = (self.network_interfaces.iter())
            .filter(|interface| interface.kind == InterfaceKind::EfaOnly && which(interface));
        efa_only.count() as u64
    }
}

/// Kinds of machine images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AmiFamily {
    /// Amazon Linux 2.
    Al2,
    /// Amazon Linux 2023.
    Al2023,
    /// Bottlerocket.
    Bottlerocket,
    /// Images of the user's own.
    Custom,
    /// Windows Server 2019.
    Windows2019,
    /// Windows Server 2022.
    Windows2022,
    /// Windows Server 2025.
    Windows2025,
}

impl AmiFamily {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Al2,
        Self::Al2023,
        Self::Bottlerocket,
        Self::Custom,
        Self::Windows2019,
        Self::Windows2022,
        Self::Windows2025,
    ];

    /// How node classes write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Al2 => "AL2",
            Self::Al2023 => "AL2023",
            Self::Bottlerocket => "Bottlerocket",
            Self::Custom => "Custom",
            Self::Windows2019 => "Windows2019",
            Self::Windows2022 => "Windows2022",
            Self::Windows2025 => "Windows2025",
        }
    }

    /// The Windows build of its nodes; none for Linux.
    #[must_use]
    pub const fn windows_build(self) -> Option<&'static str> {
        match self {
            Self::Windows2019 => Some("10.0.17763"),
            Self::Windows2022 => Some("10.0.20348"),
            Self::Windows2025 => Some("10.0.26100"),
            Self::Al2 | Self::Al2023 | Self::Bottlerocket | Self::Custom => None,
        }
    }

    /// True for the Windows families.
    #[must_use]
    pub const fn is_windows(self) -> bool {
        self.windows_build().is_some()
    }

    /// Memory kept for the kubelet depends on the pods that the network could hold, not on the
    /// pods that the settings allow.
    pub(crate) const fn reserves_memory_by_interfaces(self) -> bool {
        matches!(self, Self::Al2 | Self::Al2023 | Self::Custom)
    }

    /// The device that holds the pods' ephemeral storage and its default size in GiB.
    pub(crate) const fn ephemeral_device(self) -> Option<(&'static str, u64)> {
        match self {
            Self::Al2 | Self::Al2023 => Some(("/dev/xvda", 20)),
            Self::Bottlerocket => Some(("/dev/xvdb", 20)),
            Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => Some(("/dev/sda1", 50)),
            Self::Custom => None,
        }
    }
}

impl fmt::Display for AmiFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AmiFamily {
    type Err = UnknownAmiFamily;

    /// The family a node class or an image alias names, in any case.
    fn from_str(text: &str) -> Result<Self, UnknownAmiFamily> {
        let found = Self::ALL
            .into_iter()
            .find(|family| family.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| UnknownAmiFamily(text.to_owned()))
    }
}

/// No image family has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown AMI family \"{0}\"; known are AL2, AL2023, Bottlerocket, Custom, Windows2019, Windows2022 and Windows2025"
)]
pub struct UnknownAmiFamily(pub String);

/// How much must stay free before the kubelet evicts pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// That many bytes.
    Bytes(u64),
    /// That many millionths of the capacity. All of it (100 %) switches the threshold off.
    PartsPerMillion(u32),
}

impl Threshold {
    /// A threshold in whole percent of the capacity.
    #[must_use]
    pub const fn percent(percent: u32) -> Self {
        Self::PartsPerMillion(percent.saturating_mul(10_000))
    }

    /// The threshold in bytes, rounded up.
    pub(crate) fn of(self, capacity: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::PartsPerMillion(1_000_000) => 0,
            Self::PartsPerMillion(parts) => parts_of(capacity, parts),
        }
    }
}

/// `parts` millionths of `whole`, rounded up, saturating.
pub(crate) fn parts_of(whole: u64, parts: u32) -> u64 {
    let exact = (u128::from(whole) * u128::from(parts)).div_ceil(1_000_000);
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// A block device mapping of the class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Device name.
    pub device: Name,
    /// Marked as the root volume.
    pub root_volume: bool,
    /// Size, when the mapping gives one.
    pub size_bytes: Option<u64>,
}

/// A network interface of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// Index of the network card.
    pub card: u32,
    /// Index of the device on that card.
    pub device: u32,
    /// What the interface is for.
    pub kind: InterfaceKind,
}

/// Kinds of network interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceKind {
    /// An ordinary one.
    Interface,
    /// Only for the Elastic Fabric Adapter.
    EfaOnly,
}

/// The placement group of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementGroup {
    /// Its id.
    pub id: Name,
    /// How it places machines.
    pub strategy: PlacementStrategy,
}

/// How a placement group places machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementStrategy {
    /// Close together.
    Cluster,
    /// In so many partitions that share no hardware.
    Partition(u32),
    /// Each on hardware of its own.
    Spread,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_read_as_classes_and_aliases_write_them() {
        for family in AmiFamily::ALL {
            assert_eq!(family.as_str().parse(), Ok(family));
            assert_eq!(family.as_str().to_lowercase().parse(), Ok(family));
        }
        assert!("al3".parse::<AmiFamily>().is_err());
    }

    #[test]
    fn percentages_round_up() {
        assert_eq!(Threshold::percent(10).of(101), 11);
        assert_eq!(Threshold::percent(10).of(100), 10);
        assert_eq!(Threshold::PartsPerMillion(75_000).of(u64::MAX), {
            (u128::from(u64::MAX) * 75_000).div_ceil(1_000_000) as u64
        });
    }
}
