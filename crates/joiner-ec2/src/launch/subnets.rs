//! Which subnet of each zone a launch uses, and how many addresses that leaves.

use std::collections::BTreeMap;

use joiner_api::labels::ZONE;
use joiner_api::types::Subnet;
use joiner_model::{InstanceType, ResourceName};

use super::offer::label;
use super::{Ask, CapacityType};

/// Free addresses of subnets: what EC2 said, less what launches on their way will take.
///
/// *Flow*: [`Self::learn`] after each DescribeSubnets, [`Self::take`] before a launch, [`Self::give_back`]
/// after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    free: BTreeMap<String, u32>,
    /// Counts the answers of EC2: a deduction that is older than the last answer is in it already.
    answers: u64,
}

/// What a launch took, by subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    by_subnet: BTreeMap<String, u32>,
    answers: u64,
}

impl Addresses {
    /// What EC2 says now. Earlier deductions are forgotten.
    pub fn learn(&mut self, free: impl IntoIterator<Item = (String, u32)>) {
        self.free.extend(free);
        self.answers += 1;
    }

    /// How many addresses a subnet has left, as far as is known.
    #[must_use]
    pub fn left(&self, subnet: &str) -> u32 {
        self.free.get(subnet).copied().unwrap_or_default()
    }

    /// A subnet turned out to have none left.
    pub fn exhausted(&mut self, subnet: &str) {
        self.free.insert(subnet.to_owned(), 0);
    }

    /// Takes addresses out of the subnets that a launch may use: the fewest that any of its types would need
    /// in the zone.
    pub fn take(
        &mut self,
        chosen: &BTreeMap<String, Subnet>,
        types: &[InstanceType],
        capacity_type: CapacityType,
    ) -> Taken {
        let mut by_subnet = BTreeMap::new();
        for (zone, subnet) in chosen {
            let pods = types.iter().filter(|ty| is_sold(ty, zone, capacity_type));
            let pods = pods.map(|ty| ty.capacity.get(&ResourceName::Pods)).min();
            let Some(pods) = pods.and_then(|pods| u32::try_from(pods).ok()) else {
                continue;
            };
            let left = self.left(&subnet.id);
            let taken = pods.min(left);
            self.free.insert(subnet.id.clone(), left - taken);
            by_subnet.insert(subnet.id.clone(), taken);
        }
        Taken {
            by_subnet,
            answers: self.answers,
        }
    }

    /// Gives back what a launch took and did not use: all but the subnet of its machine, or all of it when it
    /// failed. Nothing where EC2 has said something new meanwhile.
    pub fn give_back(&mut self, taken: &Taken, used: Option<&str>) {
        if taken.answers != self.answers {
            return;
        }
        for (subnet, amount) in &taken.by_subnet {
            if used != Some(subnet.as_str()) {
                let left = self.left(subnet);
                self.free
                    .insert(subnet.clone(), left.saturating_add(*amount));
            }
        }
    }
}

/// The subnet of each zone that a launch may use: the one with the most addresses left, the first of equals in
/// the order of the class's status.
#[must_use]
pub fn choose(subnets: &[Subnet], addresses: &Addresses) -> BTreeMap<String, Subnet> {
    let mut chosen: BTreeMap<String, &Subnet> = BTreeMap::new();
    for subnet in subnets {
        let left = addresses.left(&subnet.id);
        let slot = chosen.entry(subnet.zone.clone()).or_insert(subnet);
        if left > addresses.left(&slot.id) {
            *slot = subnet;
        }
    }
    let owned = |(zone, subnet): (String, &Subnet)| (zone, subnet.clone());
    chosen.into_iter().map(owned).collect()
}

/// Whether a type is sold like this in a zone, whatever is asked for.
fn is_sold(ty: &InstanceType, zone: &str, capacity_type: CapacityType) -> bool {
    let everything = joiner_model::Requirements::new();
    let nothing = joiner_model::Resources::new();
    let ask = Ask {
        requirements: &everything,
        requests: &nothing,
    };
    let mut offers = ask.offers(ty);
    offers.any(|offering| label(offering, ZONE) == Some(zone) && capacity_type.is_of(offering))
}
