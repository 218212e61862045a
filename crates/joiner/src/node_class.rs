//! From an EC2NodeClass to the settings that change what its instance types offer.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use joiner_api::types::{
    AmiFamily as ApiFamily, Ec2NodeClass, Ec2NodeClassSpec, InstanceStorePolicy, InterfaceType,
    Kubelet, MaxPods, Toggle,
};
use joiner_catalog::{
    AmiFamily, BlockDevice, ClassSettings, InterfaceKind, NetworkInterface, Threshold,
};
use joiner_model::{ResourceName, Resources};
use joiner_state::NodeClass;
use joiner_state::quantity::Quantity;

/// Settings of a class, and what in it cannot be known offline.
pub(crate) fn settings(class: &NodeClass) -> anyhow::Result<(ClassSettings, Vec<String>)> {
    let name = &class.reference.name;
    let typed: Ec2NodeClass = serde_json::from_value(class.object.clone())
        .with_context(|| format!("EC2NodeClass {name} cannot be read"))?;
    let mut warnings = Vec::new();
    let spec = &typed.spec;
    let mut settings = ClassSettings {
        ami_family: family(spec),
        instance_store_raid0: spec.instance_store_policy == Some(InstanceStorePolicy::Raid0),
        connection_tracking: spec.connection_tracking.is_some(),
        nested_virtualization: spec
            .cpu_options
            .as_ref()
            .is_some_and(|o| o.nested_virtualization == Some(Toggle::Enabled)),
        ..ClassSettings::default()
    };
    if spec.placement_group_selector.is_some() {
        warnings.push(format!(
            "EC2NodeClass {name}: the strategy of its placement group is not known offline; types \
             are not filtered by it"
        ));
    }
    for mapping in spec.block_device_mappings.iter().flatten() {
        let size = mapping.ebs.as_ref().and_then(|ebs| ebs.volume_size.as_ref());
        settings.block_devices.push(BlockDevice {
            device: mapping.device_name.as_deref().unwrap_or_default().into(),
            root_volume: mapping.root_volume.unwrap_or(false),
            size_bytes: size.map(|s| bytes(s.as_str())).transpose()?,
        });
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
        apply_kubelet(name, kubelet, &mut settings, &mut warnings)
            .with_context(|| format!("EC2NodeClass {name}, field spec.kubelet"))?;
    }
    Ok((settings, warnings))
}

/// The family that is named, or that the alias of an image term speaks of.
fn family(spec: &Ec2NodeClassSpec) -> AmiFamily {
    let alias = spec.ami_selector_terms.iter().find_map(|t| t.alias.as_deref());
    let of_alias = alias.and_then(|a| a.split('@').next()).and_then(|f| f.parse().ok());
    let named = spec.ami_family.map(|family| match family {
        ApiFamily::Al2 => AmiFamily::Al2,
        ApiFamily::Al2023 => AmiFamily::Al2023,
        ApiFamily::Bottlerocket => AmiFamily::Bottlerocket,
        ApiFamily::Custom => AmiFamily::Custom,
        ApiFamily::Windows2019 => AmiFamily::Windows2019,
        ApiFamily::Windows2022 => AmiFamily::Windows2022,
        ApiFamily::Windows2025 => AmiFamily::Windows2025,
    });
    named.or(of_alias).unwrap_or(AmiFamily::Custom)
}

fn apply_kubelet(
    name: &str,
    kubelet: &Kubelet,
    settings: &mut ClassSettings,
    warnings: &mut Vec<String>,
) -> anyhow::Result<()> {
    match &kubelet.max_pods {
        Some(MaxPods::Number(n)) => settings.max_pods = u32::try_from(*n).ok(),
        Some(MaxPods::Expression(text)) => warnings.push(format!(
            "EC2NodeClass {name}: maxPods is an expression ({text:?}), which plan does not evaluate; \
             the default pod density is used"
        )),
        None => {}
    }
    settings.pods_per_core =
        kubelet.pods_per_core.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    settings.kube_reserved = reserved(name, kubelet.kube_reserved.as_ref(), warnings);
    settings.system_reserved = reserved(name, kubelet.system_reserved.as_ref(), warnings);
    let hard = kubelet.eviction_hard.as_ref();
    let signal = |key: &str| hard.and_then(|map| map.get(key)).map(|text| threshold(text));
    settings.eviction_memory = signal("memory.available").transpose()?;
    settings.eviction_nodefs = signal("nodefs.available").transpose()?;
    Ok(())
}

/// Reserved amounts; what is not a quantity is an expression, and left to its default.
fn reserved(
    name: &str,
    map: Option<&BTreeMap<String, String>>,
    warnings: &mut Vec<String>,
) -> Resources {
    let mut all = Resources::new();
    for (key, text) in map.into_iter().flatten() {
        let resource = ResourceName::parse(key);
        match Quantity::parse_amount(text) {
            Ok(quantity) => all.set(resource.clone(), quantity.units_up(&resource)),
            Err(_) => warnings.push(format!(
                "EC2NodeClass {name}: the reserved {key} {text:?} is not a quantity and is ignored"
            )),
        }
    }
    all
}

/// `500Mi` or `10%`.
fn threshold(text: &str) -> anyhow::Result<Threshold> {
    let Some(percent) = text.strip_suffix('%') else {
        return Ok(Threshold::Bytes(bytes(text)?));
    };
    let parts: f64 = percent.trim().parse().with_context(|| format!("{text:?} is no percentage"))?;
    if !(0.0..=100.0).contains(&parts) {
        bail!("{text:?} is not between 0% and 100%");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be between 0 and 100 above"
    )]
    let ppm = (parts * 10_000.0).round() as u32;
    Ok(Threshold::PartsPerMillion(ppm))
}

fn bytes(text: &str) -> anyhow::Result<u64> {
    let quantity = Quantity::parse_amount(text).with_context(|| format!("{text:?}"))?;
    Ok(quantity.units_up(&ResourceName::Memory))
}
