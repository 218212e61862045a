//! What a claim is meant to become, before it is launched.

use joiner_model::{InstanceType, Labels, Name, Offering, OfferingIx, keys};

use crate::names::Names;

/// Annotation of a claim: the offering that the plan counts on, as `type/zone/capacity-type`.
pub use joiner_api::labels::ours::PLANNED;

/// The offering that a plan counts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Name of the instance type.
    pub instance_type: Name,
    /// Zone; empty for an offering without one.
    pub zone: Name,
    /// How it is paid for; empty for an offering that does not say.
    pub capacity_type: Name,
}

impl Planned {
    /// Reads the value of [`PLANNED`]: `type/zone/capacity-type`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text, &mut Names::default())
    }

    /// The same, with texts that many claims have.
    pub(crate) fn read(text: &str, names: &mut Names) -> Option<Self> {
        let mut parts = text.splitn(3, '/');
        let (instance_type, zone, capacity_type) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            instance_type: names.get(instance_type),
            zone: names.get(zone),
            capacity_type: names.get(capacity_type),
        })
    }

    /// True for the offering that is meant, if it is one of the type that is meant.
    pub(crate) fn is(&self, offering: &Offering) -> bool {
        let has = |labels: &Labels, key: &str, value: &Name| {
            labels.get(key).is_some_and(|found| found == value)
        };
        has(&offering.labels, keys::ZONE, &self.zone)
            && has(&offering.labels, keys::CAPACITY_TYPE, &self.capacity_type)
    }
}

/// The value of [`PLANNED`] for an offering.
#[must_use]
pub fn planned_text(instance_type: &InstanceType, offering: OfferingIx) -> Option<String> {
    let offering = instance_type.offerings.get(offering.0 as usize)?;
    let label = |key: &str| offering.labels.get(key).map_or("", AsRef::as_ref);
    let (zone, capacity_type) = (label(keys::ZONE), label(keys::CAPACITY_TYPE));
    Some(format!("{}/{zone}/{capacity_type}", instance_type.name))
}
