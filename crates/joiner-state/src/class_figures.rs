//! What an EC2NodeClass says that the figures of instance types depend on.

use std::collections::{BTreeMap, BTreeSet};

use joiner_api::types::{
    BlockDeviceMapping, Ec2NodeClass, Ec2NodeClassSpec, InterfaceType, Kubelet, MaxPods, Toggle,
};
use joiner_model::{Name, ResourceName, Resources};

use crate::documents::Document;
use crate::error::{Place, ReadError};
use crate::pools::NodeClass;
use crate::quantity::Quantity;

/// Settings of an EC2NodeClass in the units of the model. What the class does not say is `None` or
/// empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassFigures {
    /// Kind of machine image, for example `AL2023`; `None` when neither the class nor an alias
    /// says.
    pub ami_family: Option<String>,
    /// Kubelet `maxPods` as a number.
    pub max_pods: Option<u32>,
    /// Kubelet `maxPods` as an expression over the instance type.
    pub max_pods_expression: Option<String>,
    /// Kubelet `podsPerCore`, zero for no such limit.
    pub pods_per_core: u32,
    /// Kubelet `kubeReserved`.
    pub kube_reserved: Resources,
    /// Kubelet `systemReserved`.
    pub system_reserved: Resources,
    /// Kubelet `evictionHard` for `memory.available`.
    pub eviction_memory: Option<EvictionThreshold>,
    /// Kubelet `evictionHard` for `nodefs.available`.
    pub eviction_nodefs: Option<EvictionThreshold>,
    /// Block devices in the order of the class.
    pub block_devices: Vec<DeviceFigures>,
    /// Local disks hold the pods' ephemeral storage.
    pub instance_store_raid0: bool,
    /// Network interfaces in the order of the class.
    pub network_interfaces: Vec<InterfaceFigures>,
    /// Nodes must be able to run virtual machines.
    pub nested_virtualization: bool,
    /// The class sets connection tracking timeouts.
    pub connection_tracking: bool,
    /// Zones of the subnets that the class resolved to; `None` while it has not.
    pub zones: Option<BTreeSet<Name>>,
}

/// How much must stay free before pods are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionThreshold {
    /// That many bytes.
    Bytes(u64),
    /// That many millionths of the capacity.
    PartsPerMillion(u32),
}

/// A block device of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFigures {
    /// Device name.
    pub device: Name,
    /// Marked as the root volume.
    pub root_volume: bool,
    /// Size, when given.
    pub size_bytes: Option<u64>,
}

/// A network interface of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceFigures {
    /// Index of the network card.
    pub card: u32,
    /// Index of the device on that card.
    pub device: u32,
    /// Only for the Elastic Fabric Adapter.
    pub efa_only: bool,
}

impl NodeClass {
    /// The figures of an EC2NodeClass; `None` for other kinds.
    ///
    /// # Errors
    /// A quantity or percentage that cannot be read.
    pub fn figures(&self) -> Result<Option<ClassFigures>, ReadError> {
        if &*self.reference.kind != "EC2NodeClass" {
            return Ok(None);
        }
        ClassFigures::of(&self.reference.name, &self.object, &self.place).map(Some)
    }
}

impl ClassFigures {
    /// The figures of an EC2NodeClass object.
    ///
    /// # Errors
    /// A field of the wrong type, or a quantity or percentage that cannot be read.
    pub fn of(name: &str, object: &serde_json::Value, place: &Place) -> Result<Self, ReadError> {
        let title = format!("EC2NodeClass {name}");
        let wrong = |e: ReadError| e.of(title.as_str()).at(place.clone());
        let class: Ec2NodeClass = Document::Value(object).parse(place)?;
        let mut figures = figures(&class.spec).map_err(wrong)?;
        let subnets = class.status.and_then(|status| status.subnets);
        figures.zones = subnets
            .filter(|subnets| !subnets.is_empty())
            .map(|subnets| {
                subnets
                    .iter()
                    .map(|s| Name::from(s.zone.as_str()))
                    .collect()
            });
        Ok(figures)
    }
}

fn figures(spec: &Ec2NodeClassSpec) -> Result<ClassFigures, ReadError> {
    let mut figures = ClassFigures {
        ami_family: ami_family(spec),
        instance_store_raid0: spec.instance_store_policy.is_some(),
        connection_tracking: spec.connection_tracking.is_some(),
        nested_virtualization: spec
            .cpu_options
            .as_ref()
            .is_some_and(|options| options.nested_virtualization == Some(Toggle::Enabled)),
        ..ClassFigures::default()
    };
    for (ix, mapping) in spec.block_device_mappings.iter().flatten().enumerate() {
        figures.block_devices.push(device(ix, mapping)?);
    }
    for interface in spec.network_interfaces.iter().flatten() {
        figures.network_interfaces.push(InterfaceFigures {
            card: u32::try_from(interface.network_card_index).unwrap_or(0),
            device: u32::try_from(interface.device_index).unwrap_or(0),
            efa_only: interface.interface_type == InterfaceType::EfaOnly,
        });
    }
    if let Some(kubelet) = &spec.kubelet {
        kubelet_figures(kubelet, &mut figures)?;
    }
    Ok(figures)
}

/// The family that the class names, or that its image alias stands for.
fn ami_family(spec: &Ec2NodeClassSpec) -> Option<String> {
    if let Some(family) = spec.ami_family {
        return Some(family.as_str().to_owned());
    }
    let alias = spec
        .ami_selector_terms
        .iter()
        .find_map(|term| term.alias.as_deref())?;
    let wanted = alias.split('@').next().unwrap_or(alias);
    let known = joiner_api::types::AmiFamily::ALL.iter();
    let known = known.map(|family| family.as_str());
    known
        .into_iter()
        .find(|family| family.eq_ignore_ascii_case(wanted))
        .map(str::to_owned)
}

fn device(ix: usize, mapping: &BlockDeviceMapping) -> Result<DeviceFigures, ReadError> {
    let size = mapping
        .ebs
        .as_ref()
        .and_then(|ebs| ebs.volume_size.as_ref());
    let size = size.map(|size| {
        let quantity = Quantity::parse_amount(size.as_str());
        quantity.map(|q| q.units_down(&ResourceName::EphemeralStorage))
    });
    Ok(DeviceFigures {
        device: mapping.device_name.as_deref().unwrap_or_default().into(),
        root_volume: mapping.root_volume == Some(true),
        size_bytes: size.transpose().map_err(|e| {
            let field = format!("spec.blockDeviceMappings[{ix}].ebs.volumeSize");
            ReadError::new(e.to_string()).field(field)
        })?,
    })
}

fn kubelet_figures(kubelet: &Kubelet, figures: &mut ClassFigures) -> Result<(), ReadError> {
    match &kubelet.max_pods {
        Some(MaxPods::Number(number)) => figures.max_pods = u32::try_from(*number).ok(),
        Some(MaxPods::Expression(text)) => figures.max_pods_expression = Some(text.clone()),
        None => {}
    }
    figures.pods_per_core = kubelet
        .pods_per_core
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or(0);
    figures.kube_reserved = reserved(kubelet.kube_reserved.as_ref(), "kubeReserved")?;
    figures.system_reserved = reserved(kubelet.system_reserved.as_ref(), "systemReserved")?;
    let hard = |signal: &str| {
        let text = kubelet
            .eviction_hard
            .as_ref()
            .and_then(|map| map.get(signal));
        text.map(|text| threshold(signal, text)).transpose()
    };
    figures.eviction_memory = hard("memory.available")?;
    figures.eviction_nodefs = hard("nodefs.available")?;
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
fn threshold(signal: &str, text: &str) -> Result<EvictionThreshold, ReadError> {
    let wrong = |problem: String| {
        ReadError::new(problem).field(format!("spec.kubelet.evictionHard.{signal}"))
    };
    let Some(percent) = text.strip_suffix('%') else {
        let quantity = Quantity::parse_amount(text).map_err(|e| wrong(e.to_string()))?;
        return Ok(EvictionThreshold::Bytes(
            quantity.units_up(&ResourceName::Memory),
        ));
    };
    // A percent is ten thousand parts per million.
    let parts = Quantity::parse_amount(percent)
        .ok()
        .map(|quantity| quantity.nanos() / 100_000)
        .filter(|parts| *parts <= 1_000_000)
        .and_then(|parts| u32::try_from(parts).ok())
        .ok_or_else(|| wrong(format!("{text:?} is not a percentage from 0% to 100%")))?;
    Ok(EvictionThreshold::PartsPerMillion(parts))
}
