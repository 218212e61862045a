//! Whether a type can run under a node class at all. A type that cannot stays in the catalog, with
//! offerings that are not available.

use crate::figures::Figures;
use crate::settings::{AmiFamily, ClassSettings, PlacementStrategy};

/// True when the class can launch the type.
pub(crate) fn fits_class(figures: &Figures, settings: &ClassSettings) -> bool {
    let image = !(settings.ami_family == AmiFamily::Al2023 && &*figures.family == "a1");
    let virtualization = !settings.nested_virtualization || figures.nested_virtualization;
    let tracking = !settings.connection_tracking || &*figures.hypervisor == "nitro";
    image && virtualization && tracking && has_interfaces(figures, settings) && {
        let group = settings.placement_group.as_ref();
        group.is_none_or(|group| match group.strategy {
            PlacementStrategy::Cluster => figures.placement_cluster,
            PlacementStrategy::Partition(_) => figures.placement_partition,
            PlacementStrategy::Spread => figures.placement_spread,
        })
    }
}

fn has_interfaces(figures: &Figures, settings: &ClassSettings) -> bool {
    if settings.network_interfaces.is_empty() {
        return true;
    }
    let exist = settings.network_interfaces.iter().all(|interface| {
        let card = usize::try_from(interface.card).unwrap_or(usize::MAX);
        let devices = figures.enis.get(card).copied().unwrap_or(0);
        u64::from(interface.device) < devices
    });
    exist && figures.ena && settings.efa_only() <= figures.efa
}
