//! Which launch templates a launch needs: one for each distinct combination of what templates fix.

use std::collections::BTreeMap;

use joiner_api::types::{Ami, Ec2NodeClassSpec};
use joiner_model::{InstanceType, Name, ResourceName};

use super::offer::EFA;
use super::{Ask, CapacityType, Reservation};
use crate::ami;

/// What one template fixes, of all that types differ in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    /// Image.
    pub ami: String,
    /// Pods that a node takes.
    pub max_pods: u32,
    /// Elastic Fabric Adapters.
    pub efa: u32,
    /// Reservation.
    pub reservation: Option<Reservation>,
}

/// No image of the class fits a type of the launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "EC2NodeClass {class}: none of the {n_amis} images in status.amis fits any of the {n_types} instance types \
     of the launch; select images of their architecture in spec.amiSelectorTerms"
)]
pub struct NoImage {
    /// Name of the class.
    pub class: String,
    /// How many images it has.
    pub n_amis: usize,
    /// How many types there are.
    pub n_types: usize,
}

/// The types of a launch by what their templates must fix. A type with several reservations is under each.
///
/// # Errors
/// No type has an image.
pub fn by_need(
    (class, spec): (&str, &Ec2NodeClassSpec),
    amis: &[Ami],
    types: &[InstanceType],
    ask: &Ask<'_>,
    capacity_type: CapacityType,
) -> Result<BTreeMap<Need, Vec<Name>>, NoImage> {
    let has_interfaces = spec
        .network_interfaces
        .as_ref()
        .is_some_and(|interfaces| !interfaces.is_empty());
    let wants_efa = ask.wants_efa() && !has_interfaces;
    let mut needs: BTreeMap<Need, Vec<Name>> = BTreeMap::new();
    for ty in types {
        let Some(image) = ami::for_type(amis, ty) else {
            continue;
        };
        let count = |name: ResourceName| u32::try_from(ty.capacity.get(&name)).unwrap_or(u32::MAX);
        let efa = count(ResourceName::Other(EFA.into()));
        let mut reservations: Vec<Option<Reservation>> = match capacity_type {
            CapacityType::Reserved => (ty.offerings.iter())
                .filter_map(Reservation::of)
                .map(Some)
                .collect(),
            CapacityType::Spot | CapacityType::OnDemand => vec![None],
        };
        reservations.sort();
        reservations.dedup();
        for reservation in reservations {
            let need = Need {
                ami: image.id.clone(),
                max_pods: count(ResourceName::Pods),
                efa: if wants_efa { efa } else { 0 },
                reservation,
            };
            needs.entry(need).or_default().push(ty.name.clone());
        }
    }
    match needs.is_empty() {
        true => Err(NoImage {
            class: class.to_owned(),
            n_amis: amis.len(),
            n_types: types.len(),
        }),
        false => Ok(needs),
    }
}
