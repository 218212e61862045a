//! What an EC2NodeClass can launch: its figures put to the built-in catalog.

use joiner_catalog::{
    AmiFamily, BlockDevice, ClassSettings, InterfaceKind, NetworkInterface, Threshold,
    UnknownAmiFamily, UnknownRegion, ec2,
};
use joiner_model::{InstanceType, keys};
use serde_json::Value;

use crate::class_figures::{ClassFigures, EvictionThreshold};

/// Why a class has no instance types.
#[derive(Debug, thiserror::Error)]
pub enum ClassTypesError {
    /// The class names a family of images that we do not know.
    #[error("EC2NodeClass {class}")]
    Family {
        /// Name of the class.
        class: String,
        /// What it says.
        #[source]
        source: UnknownAmiFamily,
    },
    /// There is no catalog of the region.
    #[error(transparent)]
    Region(#[from] UnknownRegion),
}

/// The types of an EC2NodeClass in a region, with warnings about what is not known offline.
///
/// # Errors
/// The region or the family of images is not known.
pub fn ec2_types(
    (name, object): (&str, &Value),
    figures: &ClassFigures,
    region: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<InstanceType>, ClassTypesError> {
    if let Some(text) = &figures.max_pods_expression {
        warnings.push(format!(
            "EC2NodeClass {name}: maxPods is an expression ({text:?}), which is not evaluated; the \
             default pod density is used"
        ));
    }
    if !object["spec"]["placementGroupSelector"].is_null() {
        warnings.push(format!(
            "EC2NodeClass {name}: the strategy of its placement group is not known offline; types \
             are not filtered by it"
        ));
    }
    let settings = settings(figures).map_err(|source| ClassTypesError::Family {
        class: name.to_owned(),
        source,
    })?;
    let mut types = ec2(region, &settings)?.types;
    if let Some(zones) = &figures.zones {
        for ty in &mut types {
            ty.offerings
                .retain(|o| o.labels.get(keys::ZONE).is_some_and(|z| zones.contains(z)));
        }
    }
    Ok(types)
}

fn settings(figures: &ClassFigures) -> Result<ClassSettings, UnknownAmiFamily> {
    let family = figures.ami_family.as_deref().map(str::parse).transpose()?;
    let threshold = |t: &EvictionThreshold| match t {
        EvictionThreshold::Bytes(n) => Threshold::Bytes(*n),
        EvictionThreshold::PartsPerMillion(n) => Threshold::PartsPerMillion(*n),
    };
    Ok(ClassSettings {
        ami_family: family.unwrap_or(AmiFamily::Custom),
        max_pods: figures.max_pods,
        pods_per_core: figures.pods_per_core,
        kube_reserved: figures.kube_reserved.clone(),
        system_reserved: figures.system_reserved.clone(),
        eviction_memory: figures.eviction_memory.as_ref().map(threshold),
        eviction_nodefs: figures.eviction_nodefs.as_ref().map(threshold),
        block_devices: figures
            .block_devices
            .iter()
            .map(|d| BlockDevice {
                device: d.device.clone(),
                root_volume: d.root_volume,
                size_bytes: d.size_bytes,
            })
            .collect(),
        instance_store_raid0: figures.instance_store_raid0,
        network_interfaces: figures
            .network_interfaces
            .iter()
            .map(|i| NetworkInterface {
                card: i.card,
                device: i.device,
                kind: if i.efa_only {
                    InterfaceKind::EfaOnly
                } else {
                    InterfaceKind::Interface
                },
            })
            .collect(),
        nested_virtualization: figures.nested_virtualization,
        connection_tracking: figures.connection_tracking,
        ..ClassSettings::default()
    })
}
