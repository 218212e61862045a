//! The labels of EC2 nodes that follow from their type and class.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{Name, keys};

use crate::figures::Figures;
use crate::names::Names;
use crate::settings::ClassSettings;

/// Id of the availability zone, the same in every account.
pub(crate) const ZONE_ID: &str = "topology.k8s.aws/zone-id";
/// Partition of a placement group.
pub(crate) const PLACEMENT_GROUP_PARTITION: &str = "karpenter.k8s.aws/placement-group-partition";
/// Letters at the start of the type's name.
pub(crate) const CATEGORY: &str = "karpenter.k8s.aws/instance-category";
/// The type's name before the dot.
pub(crate) const FAMILY: &str = "karpenter.k8s.aws/instance-family";
/// Default number of vCPUs.
pub(crate) const CPU: &str = "karpenter.k8s.aws/instance-cpu";
/// Advertised memory in MiB.
pub(crate) const MEMORY: &str = "karpenter.k8s.aws/instance-memory";
/// Kind of GPU.
pub(crate) const GPU_NAME: &str = "karpenter.k8s.aws/instance-gpu-name";
/// Maker of the GPU.
pub(crate) const GPU_MAKER: &str = "karpenter.k8s.aws/instance-gpu-manufacturer";
/// Number of GPUs.
pub(crate) const GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
/// Kind of machine-learning chip.
pub(crate) const ACCELERATOR_NAME: &str = "karpenter.k8s.aws/instance-accelerator-name";
/// Maker of the chip.
pub(crate) const ACCELERATOR_MAKER: &str = "karpenter.k8s.aws/instance-accelerator-manufacturer";
/// Number of chips.
pub(crate) const ACCELERATOR_COUNT: &str = "karpenter.k8s.aws/instance-accelerator-count";

const GENERATION: &str = "karpenter.k8s.aws/instance-generation";
const SIZE: &str = "karpenter.k8s.aws/instance-size";
const FLEX: &str = "karpenter.k8s.aws/instance-capability-flex";
const CPU_MAKER: &str = "karpenter.k8s.aws/instance-cpu-manufacturer";
const CLOCK: &str = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
const EBS_BANDWIDTH: &str = "karpenter.k8s.aws/instance-ebs-bandwidth";
const NETWORK_BANDWIDTH: &str = "karpenter.k8s.aws/instance-network-bandwidth";
const LOCAL_NVME: &str = "karpenter.k8s.aws/instance-local-nvme";
const GPU_MEMORY: &str = "karpenter.k8s.aws/instance-gpu-memory";
const HYPERVISOR: &str = "karpenter.k8s.aws/instance-hypervisor";
const ENCRYPTION: &str = "karpenter.k8s.aws/instance-encryption-in-transit-supported";
const NITRO_SANDBOX: &str = "karpenter.k8s.aws/nitro-sandbox";
const TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
const PLACEMENT_GROUP: &str = "karpenter.k8s.aws/placement-group-id";

/// Keys that belong to EC2 nodes, over and above those of every provider.
const EC2_KEYS: [&str; 31] = [
    ZONE_ID,
    CATEGORY,
    GENERATION,
    FAMILY,
    SIZE,
    FLEX,
    CPU,
    MEMORY,
    CPU_MAKER,
    CLOCK,
    EBS_BANDWIDTH,
    NETWORK_BANDWIDTH,
    LOCAL_NVME,
    GPU_NAME,
    GPU_MAKER,
    GPU_COUNT,
    GPU_MEMORY,
    ACCELERATOR_NAME,
    ACCELERATOR_MAKER,
    ACCELERATOR_COUNT,
    HYPERVISOR,
    ENCRYPTION,
    NITRO_SANDBOX,
    TENANCY,
    "karpenter.k8s.aws/capacity-reservation-id",
    "karpenter.k8s.aws/capacity-reservation-type",
    "karpenter.k8s.aws/capacity-reservation-interruptible",
    PLACEMENT_GROUP,
    PLACEMENT_GROUP_PARTITION,
    keys::REGION,
    keys::WINDOWS_BUILD,
];

/// Label keys that a pool on EC2 need not define: its nodes have them, or are known not to.
#[must_use]
pub fn ec2_well_known() -> BTreeSet<Name> {
    let all = keys::WELL_KNOWN.iter().chain(&EC2_KEYS);
    all.map(|key| Name::from(*key)).collect()
}

/// The labels of the type's nodes, without those that depend on the offering.
pub(crate) fn labels(
    figures: &Figures,
    settings: &ClassSettings,
    region: &str,
    names: &mut Names,
) -> BTreeMap<Name, Vec<Name>> {
    let mut labels = Builder {
        names,
        pairs: Vec::with_capacity(32),
    };
    labels.pairs.push((
        labels.names.text(keys::INSTANCE_TYPE),
        vec![figures.name.clone()],
    ));
    labels.text(keys::ARCH, &figures.arch);
    labels.text(keys::REGION, region);
    match settings.ami_family.windows_build() {
        Some(build) => {
            labels.text(keys::OS, "windows");
            labels.text(keys::WINDOWS_BUILD, build);
        }
        None => labels.text(keys::OS, "linux"),
    }
    let (category, generation) = category_and_generation(&figures.family);
    labels.text_if_any(CATEGORY, category);
    labels.text_if_any(GENERATION, generation);
    labels.text(FAMILY, &figures.family);
    labels.text(SIZE, &figures.size);
    labels.flag(FLEX, figures.family.contains("-flex"));
    labels.number(CPU, figures.vcpus);
    labels.number(MEMORY, figures.memory_mib);
    labels.text_if_any(CPU_MAKER, &figures.cpu_maker);
    labels.number(CLOCK, figures.clock_mhz);
    labels.number_if_any(EBS_BANDWIDTH, figures.ebs_mbps);
    labels.number_if_any(NETWORK_BANDWIDTH, figures.network_mbps);
    if figures.nvme {
        labels.number(LOCAL_NVME, figures.local_disk_gb);
    }
    labels.text(HYPERVISOR, &figures.hypervisor);
    labels.flag(ENCRYPTION, figures.encrypts_in_transit);
    labels.flag(NITRO_SANDBOX, figures.enclaves);
    labels.devices(figures);
    let tenancies = ["default", "dedicated"].map(|tenancy| labels.names.text(tenancy));
    labels
        .pairs
        .push((labels.names.text(TENANCY), tenancies.into()));
    if let Some(group) = &settings.placement_group {
        let key = labels.names.text(PLACEMENT_GROUP);
        labels.pairs.push((key, vec![group.id.clone()]));
    }
    labels.pairs.into_iter().collect()
}

struct Builder<'a> {
    names: &'a mut Names,
    pairs: Vec<(Name, Vec<Name>)>,
}

impl Builder<'_> {
    fn text(&mut self, key: &'static str, value: &str) {
        let pair = (self.names.text(key), vec![self.names.text(value)]);
        self.pairs.push(pair);
    }

    fn text_if_any(&mut self, key: &'static str, value: &str) {
        if !value.is_empty() {
            self.text(key, value);
        }
    }

    fn number(&mut self, key: &'static str, value: u64) {
        let pair = (self.names.text(key), vec![self.names.number(value)]);
        self.pairs.push(pair);
    }

    fn number_if_any(&mut self, key: &'static str, value: u64) {
        if value > 0 {
            self.number(key, value);
        }
    }

    fn flag(&mut self, key: &'static str, value: bool) {
        let pair = (self.names.text(key), vec![self.names.flag(value)]);
        self.pairs.push(pair);
    }

    fn devices(&mut self, figures: &Figures) {
        if let Some(gpu) = &figures.gpu {
            self.text(GPU_NAME, &gpu.name);
            self.text(GPU_MAKER, &gpu.maker);
            self.number(GPU_COUNT, gpu.count);
            self.number(GPU_MEMORY, gpu.memory_mib);
        }
        if let Some(chips) = &figures.accelerator {
            self.text(ACCELERATOR_NAME, &chips.name);
            self.text(ACCELERATOR_MAKER, &chips.maker);
            self.number(ACCELERATOR_COUNT, chips.count);
        }
    }
}

/// Letters at the start, and the first number after them; an infix such as `-6tb` is skipped.
fn category_and_generation(family: &str) -> (&str, &str) {
    let letters = leading(family, |c| c.is_ascii_lowercase());
    let mut rest = &family[letters.len()..];
    if let Some(infix) = rest.strip_prefix('-') {
        let terabytes = leading(infix, |c| c.is_ascii_digit());
        if let Some(after) = infix[terabytes.len()..].strip_prefix("tb") {
            rest = after;
        }
    }
    (letters, leading(rest, |c| c.is_ascii_digit()))
}

fn leading(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_split_into_category_and_generation() {
        for (family, expected) in [
            ("m5", ("m", "5")),
            ("u-6tb1", ("u", "1")),
            ("u7i-12tb", ("u", "7")),
            ("c7g-flex", ("c", "7")),
            ("hpc7a", ("hpc", "7")),
            ("im4gn", ("im", "4")),
            ("p6-b200", ("p", "6")),
        ] {
            assert_eq!(category_and_generation(family), expected, "{family}");
        }
    }
}
