//! The generic catalog of the simulated provider: round machines with round prices.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{
    InstanceType, Labels, Name, NanoDollars, Offering, ResourceName, Resources, keys, render_amount,
};

use crate::capacity::{GIB, MIB};

const CORES: [u64; 12] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
/// Family name and GiB of memory per core.
const FAMILIES: [(&str, u64); 3] = [("c", 2), ("s", 4), ("m", 8)];
const SYSTEMS: [&str; 2] = ["linux", "windows"];
const ARCHS: [&str; 2] = ["amd64", "arm64"];
const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];

const SIZE: &str = "karpenter.kwok.sh/instance-size";
const FAMILY: &str = "karpenter.kwok.sh/instance-family";
const CPU: &str = "karpenter.kwok.sh/instance-cpu";
const MEMORY: &str = "karpenter.kwok.sh/instance-memory";

/// 144 types: every combination of cores, memory per core, operating system and architecture, each
/// in four zones, on-demand and spot. An hour of on-demand costs 0.025 dollars a core and 0.001
/// dollars a (decimal) gigabyte, spot seven tenths of that, to the nearest nano-dollar. The system
/// keeps 100m CPU and 10Mi of memory. Types are in the order of their names.
#[must_use]
pub fn kwok_generic() -> Vec<InstanceType> {
    let mut types = Vec::with_capacity(144);
    for cores in CORES {
        for family in FAMILIES {
            for os in SYSTEMS {
                for arch in ARCHS {
                    types.push(generic(cores, family, os, arch));
                }
            }
        }
    }
    types.sort_by(|a, b| a.name.cmp(&b.name));
    types
}

/// A catalog file as the simulated provider of KWOKNodeClasses takes it: everything can be had, the
/// system keeps 100m CPU and 10Mi of memory, and size, family, CPU and memory become labels.
#[must_use]
pub fn kwok_rules(mut types: Vec<InstanceType>) -> Vec<InstanceType> {
    for ty in &mut types {
        let amount = |name| render_amount(&name, ty.capacity.get(&name));
        let (cpu, memory) = (amount(ResourceName::Cpu), amount(ResourceName::Memory));
        let size = ty.name.split_once('.').map_or(&*cpu, |(_, size)| size);
        let family = match ty.name.split(['.', '-']).next() {
            Some(family) if family.len() < ty.name.len() => family,
            Some(_) | None => ty.name.get(..1).unwrap_or_default(),
        };
        let derived = [
            (SIZE, size),
            (FAMILY, family),
            (CPU, &cpu),
            (MEMORY, &memory),
        ];
        let derived = derived.map(|(key, value)| (Name::from(key), vec![Name::from(value)]));
        ty.labels.extend(derived);
        ty.overhead = overhead();
        ty.offerings.iter_mut().for_each(|o| o.available = true);
    }
    types
}

fn overhead() -> Resources {
    Resources::new()
        .with(ResourceName::Cpu, 100)
        .with(ResourceName::Memory, 10 * MIB)
}

/// Label keys that a pool on the simulated provider need not define.
#[must_use]
pub fn kwok_well_known() -> BTreeSet<Name> {
    let own = [SIZE, FAMILY, CPU, MEMORY];
    let all = keys::WELL_KNOWN.iter().chain(&own);
    all.map(|key| Name::from(*key)).collect()
}

fn generic(cores: u64, (family, gib_per_core): (&str, u64), os: &str, arch: &str) -> InstanceType {
    let name: Name = format!("{family}-{cores}x-{arch}-{os}").into();
    let memory = cores * gib_per_core * GIB;
    let memory_text = render_amount(&ResourceName::Memory, memory);
    let cores_text = cores.to_string();
    let labels: BTreeMap<Name, Vec<Name>> = [
        (keys::INSTANCE_TYPE, &*name),
        (keys::ARCH, arch),
        (keys::OS, os),
        (SIZE, &cores_text),
        (FAMILY, family),
        (CPU, &cores_text),
        (MEMORY, &memory_text),
    ]
    .into_iter()
    .map(|(key, value)| (Name::from(key), vec![Name::from(value)]))
    .collect();
    InstanceType {
        name,
        labels,
        capacity: Resources::new()
            .with(ResourceName::Cpu, cores * 1000)
            .with(ResourceName::Memory, memory)
            .with(ResourceName::Pods, (16 * cores).min(1024))
            .with(ResourceName::EphemeralStorage, 20 * GIB),
        overhead: overhead(),
        offerings: offerings(cores, memory),
    }
}

fn offerings(cores: u64, memory: u64) -> Vec<Offering> {
    // In thousandths of a nano-dollar, which is what a byte costs.
    let thousandths = 25_000_000_000 * cores + memory;
    let on_demand = NanoDollars::new((thousandths + 500) / 1000);
    let spot = NanoDollars::new((7 * thousandths + 5000) / 10_000);
    let mut offerings = Vec::with_capacity(2 * ZONES.len());
    for zone in ZONES {
        for (capacity_type, price) in [("on-demand", on_demand), ("spot", spot)] {
            offerings.push(Offering {
                labels: Labels::from([
                    (keys::ZONE.into(), zone.into()),
                    (keys::CAPACITY_TYPE.into(), capacity_type.into()),
                ]),
                price,
                available: true,
                reservation: None,
                extra_capacity: Resources::new(),
            });
        }
    }
    offerings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> InstanceType {
        let mut all = kwok_generic();
        let at = all.iter().position(|t| &*t.name == name).unwrap();
        all.swap_remove(at)
    }

    #[test]
    fn there_are_144_types_in_order() {
        let all = kwok_generic();
        assert_eq!(all.len(), 144);
        assert!(all.windows(2).all(|two| two[0].name < two[1].name));
        assert!(all.iter().all(|t| t.offerings.len() == 8));
    }

    #[test]
    fn prices_are_exact_to_the_nano_dollar() {
        // 0.025 x 4 + 0.001 x 17.179869184, and 0.7 of that.
        let prices: Vec<u64> = (find("s-4x-arm64-linux").offerings.iter())
            .map(|offer| offer.price.get())
            .take(2)
            .collect();
        assert_eq!(prices, [117_179_869, 82_025_908]);
    }

    #[test]
    fn pods_can_use_what_is_left() {
        let big = find("m-256x-amd64-windows");
        assert_eq!(
            big.allocatable().unwrap().to_string(),
            "cpu 255900m, memory 2097142Mi, pods 1024, ephemeral-storage 20Gi"
        );
        let label = |key: &str| big.labels[key][0].to_string();
        assert_eq!(label(MEMORY), "2Ti");
        assert_eq!(label(SIZE), "256");
        assert_eq!(label(keys::OS), "windows");
        assert_eq!(
            find("c-1x-amd64-linux").capacity.get(&ResourceName::Pods),
            16
        );
    }

    #[test]
    fn files_follow_the_rules_of_the_provider() {
        let names = ["m5.2xlarge", "c-4x-amd64-linux", "metal"];
        let types = names.map(|name| InstanceType {
            name: name.into(),
            overhead: Resources::new(),
            ..find("c-4x-arm64-linux")
        });
        let mut types = types.to_vec();
        types[0].offerings[0].available = false;
        let types = kwok_rules(types);
        let shown = |ty: &InstanceType| {
            let keys = [SIZE, FAMILY, CPU, MEMORY];
            keys.map(|key| ty.labels[key][0].to_string()).join(" ")
        };
        assert_eq!(shown(&types[0]), "2xlarge m5 4 8Gi");
        assert_eq!(shown(&types[1]), "4 c 4 8Gi");
        assert_eq!(shown(&types[2]), "4 m 4 8Gi");
        assert!(types[0].offerings[0].available);
        let left = types[0].allocatable().unwrap();
        assert_eq!(left.get(&ResourceName::Cpu), 3900);
    }

    #[test]
    fn every_label_is_well_known() {
        let known = kwok_well_known();
        for instance_type in kwok_generic() {
            assert!(instance_type.labels.keys().all(|key| known.contains(key)));
        }
    }
}
