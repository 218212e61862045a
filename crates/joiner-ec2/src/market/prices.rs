//! What things cost, as far as is known.

use std::collections::BTreeMap;

use joiner_catalog::ec2_prices;
use joiner_model::{Name, NanoDollars};

use super::price_list::spot_prices;
use crate::answer::SpotPrice;

/// The region whose built-in prices stand in for those of regions without any.
const FALLBACK: &str = "us-east-1";

/// On-demand prices by type, and spot prices by type and zone.
///
/// Built-in prices hold until the cloud has answered. Until the first answer about spot, it costs what on-demand
/// does, everywhere; after that, what has no price is not sold as spot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    on_demand: BTreeMap<Name, NanoDollars>,
    spot: Option<BTreeMap<(Name, Name), NanoDollars>>,
}

impl Prices {
    /// The built-in prices of a region.
    #[must_use]
    pub fn built_in(region: &str) -> Self {
        let prices = ec2_prices(region).or_else(|_| ec2_prices(FALLBACK));
        Self {
            on_demand: prices.unwrap_or_default(),
            spot: None,
        }
    }

    /// What the pricing service says, see [`super::on_demand_prices`]. What it does not mention stays.
    ///
    /// Returns false, and changes nothing, when one of the two answers is empty: something is wrong with it.
    pub fn learn_on_demand(&mut self, answers: [BTreeMap<Name, NanoDollars>; 2]) -> bool {
        let is_whole = answers.iter().all(|prices| !prices.is_empty());
        if is_whole {
            self.on_demand.extend(answers.into_iter().flatten());
        }
        is_whole
    }

    /// What the history of spot prices says. What it does not mention stays; an empty answer says nothing, and
    /// false is returned.
    pub fn learn_spot(&mut self, history: &[SpotPrice]) -> bool {
        let new = spot_prices(history);
        let says_something = !new.is_empty();
        if says_something {
            self.spot.get_or_insert_default().extend(new);
        }
        says_something
    }

    /// The price of a type on demand.
    #[must_use]
    pub fn on_demand(&self, instance_type: &str) -> Option<NanoDollars> {
        self.on_demand.get(instance_type).copied()
    }

    /// The price of a type as spot in a zone.
    #[must_use]
    pub fn spot(&self, instance_type: &Name, zone: &Name) -> Option<NanoDollars> {
        match &self.spot {
            None => self.on_demand(instance_type),
            Some(known) => known.get(&(instance_type.clone(), zone.clone())).copied(),
        }
    }
}
