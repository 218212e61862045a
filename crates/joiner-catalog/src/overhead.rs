//! What the system keeps of a machine: for the kubelet, for the operating system, and the margin
//! at which pods are evicted.

use joiner_model::{ResourceName, Resources};

use crate::capacity::{GIB, MIB, pods, pods_by_interfaces};
use crate::figures::Figures;
use crate::settings::{ClassSettings, Threshold};
use crate::table;

/// Free memory at which the kubelet evicts, unless the class says otherwise.
const EVICTION_MEMORY: Threshold = Threshold::Bytes(100 * MIB);
/// Free disk at which the kubelet evicts, unless the class says otherwise.
const EVICTION_NODEFS: Threshold = Threshold::percent(10);
const KUBE_RESERVED_STORAGE: u64 = GIB;
const KUBE_RESERVED_MEMORY_BASE: u64 = 255 * MIB;
const KUBE_RESERVED_MEMORY_PER_POD: u64 = 11 * MIB;

/// The three parts of what pods cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// For the kubelet and its runtime.
    pub kube_reserved: Resources,
    /// For the operating system.
    pub system_reserved: Resources,
    /// Free room at which the kubelet starts to evict.
    pub eviction: Resources,
}

impl Overhead {
    /// The overhead of a type of the built-in table; none if the table does not have it.
    #[must_use]
    pub fn of(type_name: &str, settings: &ClassSettings) -> Option<Self> {
        let figures = table::find(type_name)?;
        let names = crate::capacity::DeviceNames::new();
        let capacity = crate::capacity::capacity(figures, settings, &names);
        Some(overhead(figures, settings, &capacity))
    }

    /// The sum of the three, for resources that nodes have.
    #[must_use]
    pub fn total(&self) -> Resources {
        let mut total = Resources::new();
        for part in [&self.kube_reserved, &self.system_reserved, &self.eviction] {
            total.add(part);
        }
        // Process ids can be reserved too, but nodes do not have them to give.
        total
            .iter()
            .filter(|(name, _)| is_divisible(name))
            .map(|(name, amount)| (name.clone(), amount))
            .collect()
    }
}

/// What the system keeps of a machine with this capacity.
pub(crate) fn overhead(
    figures: &Figures,
    settings: &ClassSettings,
    capacity: &Resources,
) -> Overhead {
    let memory = settings.eviction_memory.unwrap_or(EVICTION_MEMORY);
    let nodefs = settings.eviction_nodefs.unwrap_or(EVICTION_NODEFS);
    let threshold = |name: ResourceName, threshold: Threshold| {
        let amount = threshold.of(capacity.get(&name));
        (name, amount)
    };
    Overhead {
        kube_reserved: kube_reserved(figures, settings),
        system_reserved: settings.system_reserved.clone(),
        eviction: [
            threshold(ResourceName::Memory, memory),
            threshold(ResourceName::EphemeralStorage, nodefs),
        ]
        .into_iter()
        .collect(),
    }
}

fn kube_reserved(figures: &Figures, settings: &ClassSettings) -> Resources {
    let pods = if settings.ami_family.reserves_memory_by_interfaces() {
        pods_by_interfaces(figures, settings, 0)
    } else {
        pods(figures, settings)
    };
    let memory = pods
        .saturating_mul(KUBE_RESERVED_MEMORY_PER_POD)
        .saturating_add(KUBE_RESERVED_MEMORY_BASE);
    let mut reserved = Resources::new()
        .with(ResourceName::Cpu, kube_reserved_cpu(figures.vcpus))
        .with(ResourceName::Memory, memory)
        .with(ResourceName::EphemeralStorage, KUBE_RESERVED_STORAGE);
    for (name, amount) in settings.kube_reserved.iter() {
        reserved.set(name.clone(), amount);
    }
    reserved
}

/// Millicores: 6 % of the first core, 1 % of the second, half a percent of the next two and a
/// quarter of a percent of the rest, each rounded down.
fn kube_reserved_cpu(vcpus: u64) -> u64 {
    // Upper end of the tier in millicores, and its share in hundredths of a percent.
    const TIERS: [(u64, u64); 4] = [(1000, 600), (2000, 100), (4000, 50), (u64::MAX, 25)];
    let millis = vcpus * 1000;
    let mut reserved = 0;
    let mut below = 0;
    for (end, share) in TIERS {
        reserved += millis.min(end).saturating_sub(below) * share / 10_000;
        below = end;
    }
    reserved
}

fn is_divisible(name: &ResourceName) -> bool {
    match name {
        ResourceName::Cpu | ResourceName::Memory | ResourceName::EphemeralStorage => true,
        ResourceName::Pods | ResourceName::Other(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelet_keeps_less_of_each_further_core() {
        let expected = [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (96, 310)];
        for (vcpus, millis) in expected {
            assert_eq!(kube_reserved_cpu(vcpus), millis, "{vcpus}");
        }
    }
}
