//! What can be bought: instance types and their offerings.

use std::collections::BTreeMap;

use crate::{Labels, Name, NanoDollars, ResourceName, Resources};

/// Index of an instance type in its problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeIx(pub u32);

/// Index of an offering in its instance type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferingIx(pub u32);

/// A machine one can buy.
#[derive(Clone, Debug)]
pub struct InstanceType {
    /// Name, the value of its instance-type label.
    pub name: Name,
    /// Labels of its nodes. Several values: the node ends up with one of them, our choice.
    /// A key that is not here is a label that its nodes do not have.
    pub labels: BTreeMap<Name, Vec<Name>>,
    /// All that it has.
    pub capacity: Resources,
    /// What the system keeps for itself.
    pub overhead: Resources,
    /// Where and how it is sold.
    pub offerings: Vec<Offering>,
}

impl InstanceType {
    /// What pods and daemons can use.
    ///
    /// # Errors
    /// The resource of which the system keeps more than there is: nothing fits then.
    pub fn allocatable(&self) -> Result<Resources, ResourceName> {
        let mut left = self.capacity.minus(&self.overhead)?;
        // Huge pages are set aside from memory.
        let huge = |name: &ResourceName| name.as_str().starts_with("hugepages-");
        let set_aside: u64 = self
            .capacity
            .iter()
            .filter(|(name, _)| huge(name))
            .map(|(_, bytes)| bytes)
            .sum();
        if set_aside > 0 {
            let memory = left.get(&ResourceName::Memory).saturating_sub(set_aside);
            left.set(ResourceName::Memory, memory);
        }
        Ok(left)
    }
}

/// One way to buy an instance type.
#[derive(Clone, Debug)]
pub struct Offering {
    /// Labels that come with it: zone, capacity type and whatever else tells offerings apart.
    pub labels: Labels,
    /// Price an hour.
    pub price: NanoDollars,
    /// False while the cloud has none.
    pub available: bool,
    /// For reserved capacity: reservation id and how many are left.
    pub reservation: Option<(Name, u32)>,
    /// Resources that only this offering has, on top of the type's.
    pub extra_capacity: Resources,
}
