//! What an EC2NodeClass says that the figures of instance types depend on, read into the settings
//! that `joiner-catalog` computes with.

use std::collections::BTreeMap;

use joiner_api::types::{
    self as api, BlockDeviceMapping, Ec2NodeClass, Ec2NodeClassSpec, InterfaceType, Kubelet,
    MaxPods, Toggle,
};
use joiner_catalog::{
    AmiFamily, BlockDevice, ClassSettings, InterfaceKind, NetworkInterface, Threshold,
};
use joiner_model::{Name, ResourceName, Resources};
use serde_json::Value;

use crate::documents::Document;
use crate::error::{Place, ReadError};
use crate::pools::NodeClass;
use crate::quantity::Quantity;

impl NodeClass {
    /// The settings of an EC2NodeClass, with warnings about what they leave out; `None` for other
    /// kinds.
    ///
    /// # Errors
    /// A quantity or percentage that cannot be read.
    pub fn settings(&self, warnings: &mut Vec<String>) -> Result<Option<ClassSettings>, ReadError> {
        if &*self.reference.kind != "EC2NodeClass" {
            return Ok(None);
        }
        class_settings(&self.reference.name, &self.object, &self.place, warnings).map(Some)
    }
}

/// The settings of an EC2NodeClass object, with warnings about what they leave out.
///
/// # Errors
/// A field of the wrong type, or a quantity or percentage that cannot be read.
pub fn class_settings(
    name: &str,
    object: &Value,
    place: &Place,
    warnings: &mut Vec<String>,
) -> Result<ClassSettings, ReadError> {
    let title = format!("EC2NodeClass {name}");
    let wrong = |e: ReadError| e.of(title.as_str()).at(place.clone());
    let class: Ec2NodeClass = Document::Value(object).parse(place)?;
    let mut settings = of_spec(&class.spec).map_err(wrong)?;
    let subnets = class.status.and_then(|status| status.subnets);
    let zone = |subnet: &api::Subnet| Name::from(subnet.zone.as_str());
    settings.zones = subnets
        .filter(|subnets| !subnets.is_empty())
        .map(|subnets| subnets.iter().map(zone).collect());
    let kubelet = class.spec.kubelet.as_ref();
    if let Some(MaxPods::Expression(text)) = kubelet.and_then(|kubelet| kubelet.max_pods.as_ref()) {
        warnings.push(format!(
            "{title}: maxPods is an expression ({text:?}), which is not evaluated; the default pod \
             density is used"
        ));
    }
    if class.spec.placement_group_selector.is_some() {
        warnings.push(format!(
            "{title}: the strategy of its placement group is not known offline; types are not \
             filtered by it"
        ));
    }
    Ok(settings)
}

fn of_spec(spec: &Ec2NodeClassSpec) -> Result<ClassSettings, ReadError> {
    let mut settings = ClassSettings {
        ami_family: ami_family(spec),
        instance_store_raid0: spec.instance_store_policy.is_some(),
        connection_tracking: spec.connection_tracking.is_some(),
        nested_virtualization: spec
            .cpu_options
            .as_ref()
            .is_some_and(|options| options.nested_virtualization == Some(Toggle::Enabled)),
        ..ClassSettings::default()
    };
    for (ix, mapping) in spec.block_device_mappings.iter().flatten().enumerate() {
        settings.block_devices.push(device(ix, mapping)?);
    }
    for interface in spec.network_interfaces.iter().flatten() {
        settings.network_interfaces.push(NetworkInterface {
            card: u32::try_from(interface.network_card_index).unwrap_or(0),
            device: u32::try_from(interface.device_index).unwrap_or(0),
            kind: match interface.interface_type {
                InterfaceType::Interface => InterfaceKind::Interface,
                InterfaceType::EfaOnly => InterfaceKind::EfaOnly,
            },
        });
    }
    if let Some(kubelet) = &spec.kubelet {
        of_kubelet(kubelet, &mut settings)?;
    }
    Ok(settings)
}

/// The family that the class names, or that its image alias stands for.
fn ami_family(spec: &Ec2NodeClassSpec) -> AmiFamily {
    if let Some(family) = spec.ami_family {
        return match family {
            api::AmiFamily::Al2 => AmiFamily::Al2,
            api::AmiFamily::Al2023 => AmiFamily::Al2023,
            api::AmiFamily::Bottlerocket => AmiFamily::Bottlerocket,
            api::AmiFamily::Custom => AmiFamily::Custom,
            api::AmiFamily::Windows2019 => AmiFamily::Windows2019,
            api::AmiFamily::Windows2022 => AmiFamily::Windows2022,
            api::AmiFamily::Windows2025 => AmiFamily::Windows2025,
        };
    }
    let mut terms = spec.ami_selector_terms.iter();
    let alias = terms.find_map(|term| term.alias.as_deref());
    let family = alias.and_then(|alias| alias.split('@').next()?.parse().ok());
    family.unwrap_or(AmiFamily::Custom)
}

fn device(ix: usize, mapping: &BlockDeviceMapping) -> Result<BlockDevice, ReadError> {
    let size = mapping
        .ebs
        .as_ref()
        .and_then(|ebs| ebs.volume_size.as_ref());
    let size = size.map(|size| {
        let quantity = Quantity::parse_amount(size.as_str());
        quantity.map(|q| q.units_down(&ResourceName::EphemeralStorage))
    });
    Ok(BlockDevice {
        device: mapping.device_name.as_deref().unwrap_or_default().into(),
        root_volume: mapping.root_volume == Some(true),
        size_bytes: size.transpose().map_err(|e| {
            let field = format!("spec.blockDeviceMappings[{ix}].ebs.volumeSize");
            ReadError::new(e.to_string()).field(field)
        })?,
    })
}

fn of_kubelet(kubelet: &Kubelet, settings: &mut ClassSettings) -> Result<(), ReadError> {
    if let Some(MaxPods::Number(number)) = kubelet.max_pods {
        settings.max_pods = u32::try_from(number).ok();
    }
    settings.pods_per_core = kubelet
        .pods_per_core
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or(0);
    settings.kube_reserved = reserved(kubelet.kube_reserved.as_ref(), "kubeReserved")?;
    settings.system_reserved = reserved(kubelet.system_reserved.as_ref(), "systemReserved")?;
    let hard = |signal: &str| {
        let text = kubelet
            .eviction_hard
            .as_ref()
            .and_then(|map| map.get(signal));
        text.map(|text| threshold(signal, text)).transpose()
    };
    settings.eviction_memory = hard("memory.available")?;
    settings.eviction_nodefs = hard("nodefs.available")?;
    Ok(())
}

fn reserved(given: Option<&BTreeMap<String, String>>, field: &str) -> Result<Resources, ReadError> {
    let read = |(name, text): (&String, &String)| {
        let resource = ResourceName::parse(name);
        let quantity = Quantity::parse_amount_of(&resource, text).map_err(|e| {
            ReadError::new(e.to_string()).field(format!("spec.kubelet.{field}.{name}"))
        })?;
        let amount = quantity.units_up(&resource);
        Ok((resource, amount))
    };
    given.into_iter().flatten().map(read).collect()
}

/// `500Mi` or `7.5%`.
fn threshold(signal: &str, text: &str) -> Result<Threshold, ReadError> {
    let wrong = |problem: String| {
        ReadError::new(problem).field(format!("spec.kubelet.evictionHard.{signal}"))
    };
    let Some(percent) = text.strip_suffix('%') else {
        let quantity = Quantity::parse_amount(text).map_err(|e| wrong(e.to_string()))?;
        return Ok(Threshold::Bytes(quantity.units_up(&ResourceName::Memory)));
    };
    // A percent is ten thousand parts per million.
    let parts = Quantity::parse_amount(percent)
        .ok()
        .map(|quantity| quantity.nanos() / 100_000)
        .filter(|parts| *parts <= 1_000_000)
        .and_then(|parts| u32::try_from(parts).ok())
        .ok_or_else(|| wrong(format!("{text:?} is not a percentage from 0% to 100%")))?;
    Ok(Threshold::PartsPerMillion(parts))
}
