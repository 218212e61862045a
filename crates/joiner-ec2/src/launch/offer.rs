//! What a claim asks for, and which offerings answer it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use joiner_api::labels::aws::{
    CAPACITY_RESERVATION_ID, CAPACITY_RESERVATION_INTERRUPTIBLE, CAPACITY_RESERVATION_TYPE,
    EC2_NODE_CLASS, INSTANCE_TENANCY, PLACEMENT_GROUP_PARTITION,
};
use joiner_api::labels::{CAPACITY_TYPE, NODE_POOL, ON_DEMAND, RESERVED, SPOT, ZONE};
use joiner_model::{
    InstanceType, Labels, Name, NanoDollars, Offering, Requirements, ResourceName, Resources,
};

/// Resource of Elastic Fabric Adapters.
pub(crate) const EFA: &str = "vpc.amazonaws.com/efa";

/// Resources of Nitro Enclaves.
const ENCLAVES: [&str; 2] = [
    "eks.amazonaws.com/nitro-sandbox",
    "eks.amazonaws.com/nip-slots",
];

/// How a machine is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapacityType {
    /// Paid for already.
    Reserved,
    /// Spare, may be taken back.
    Spot,
    /// Ordinary.
    OnDemand,
}

impl CapacityType {
    /// In the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::Reserved, Self::Spot, Self::OnDemand];

    /// As labels say it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => RESERVED,
            Self::Spot => SPOT,
            Self::OnDemand => ON_DEMAND,
        }
    }

    /// What a label says.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|capacity_type| capacity_type.as_str() == text)
    }

    /// How a claim's machine is paid for: reserved if it may be and there is one, else spot likewise, else
    /// on-demand.
    #[must_use]
    pub fn choose<'t>(
        ask: &Ask<'_>,
        types: impl Iterator<Item = &'t InstanceType> + Clone,
    ) -> Self {
        let has = |capacity_type: &Self| {
            let mut types = types.clone();
            let sold =
                |ty: &InstanceType| ask.offers(ty).any(|offering| capacity_type.is_of(offering));
            ask.may_be(CAPACITY_TYPE, capacity_type.as_str()) && types.any(sold)
        };
        [Self::Reserved, Self::Spot]
            .into_iter()
            .find(has)
            .unwrap_or(Self::OnDemand)
    }

    /// Whether an offering is paid for like this.
    #[must_use]
    pub fn is_of(self, offering: &Offering) -> bool {
        label(offering, CAPACITY_TYPE) == Some(self.as_str())
    }
}

/// Whose hardware a machine is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tenancy {
    /// Shared with others.
    Default,
    /// Not shared with other accounts.
    Dedicated,
}

impl Tenancy {
    /// As labels and EC2 say it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Dedicated => "dedicated",
        }
    }

    /// The tenancy of a claim's machine: shared, unless only dedicated will do.
    #[must_use]
    pub fn choose(ask: &Ask<'_>) -> Self {
        match ask.may_be(INSTANCE_TENANCY, Self::Default.as_str()) {
            true => Self::Default,
            false => Self::Dedicated,
        }
    }
}

/// Kinds of reservations, in the order in which ties are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReservationKind {
    /// On-demand capacity.
    Default,
    /// A block of accelerated capacity with an end.
    CapacityBlock,
    /// On-demand capacity that may be taken back.
    Interruptible,
}

/// The reservation behind an offering.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reservation {
    /// Its id.
    pub id: Name,
    /// Its kind.
    pub kind: ReservationKind,
}

impl Reservation {
    /// The reservation that an offering draws on, if it does.
    #[must_use]
    pub fn of(offering: &Offering) -> Option<Self> {
        let id = offering.labels.get(CAPACITY_RESERVATION_ID)?.clone();
        let is_block = label(offering, CAPACITY_RESERVATION_TYPE) == Some("capacity-block");
        let may_go = label(offering, CAPACITY_RESERVATION_INTERRUPTIBLE) == Some("true");
        let kind = match (is_block, may_go) {
            (true, _) => ReservationKind::CapacityBlock,
            (false, true) => ReservationKind::Interruptible,
            (false, false) => ReservationKind::Default,
        };
        Some(Self { id, kind })
    }
}

/// What a claim asks for.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// What its machine must be.
    pub requirements: &'a Requirements,
    /// What it must have room for.
    pub requests: &'a Resources,
}

impl Ask<'_> {
    /// Whether a label may have a value. A claim that does not mention it does not mind.
    #[must_use]
    pub fn may_be(&self, key: &str, value: &str) -> bool {
        let requirement = self.requirements.get(key);
        requirement.is_none_or(|requirement| requirement.has(value))
    }

    /// Whether the claim asks for the kind of capacity by name, or does not mind.
    #[must_use]
    pub fn may_be_reserved(&self) -> bool {
        self.may_be(CAPACITY_TYPE, RESERVED)
    }

    /// Whether any requirement asks for several different values.
    #[must_use]
    pub fn has_min_values(&self) -> bool {
        self.requirements
            .iter()
            .any(|requirement| requirement.min_values().is_some())
    }

    /// Whether the claim asks for Elastic Fabric Adapters.
    #[must_use]
    pub fn wants_efa(&self) -> bool {
        self.requests.get(&ResourceName::Other(EFA.into())) > 0
    }

    /// Whether the claim asks for Nitro Enclaves, under their name now or that of release 1.14.
    #[must_use]
    pub fn wants_enclaves(&self) -> bool {
        let asks = |name: &str| self.requests.get(&ResourceName::Other(name.into())) > 0;
        ENCLAVES.into_iter().any(asks)
    }

    /// The offerings of a type that are available, satisfy the claim and have room for its pods.
    pub fn offers<'t>(&self, ty: &'t InstanceType) -> impl Iterator<Item = &'t Offering> {
        let allocatable = ty.allocatable().ok().filter(|_| self.fits(ty));
        let fits_type = (allocatable.as_ref()).is_some_and(|room| self.requests.fits(room));
        let has_room = move |offering: &Offering| match &allocatable {
            Some(room) if !offering.extra_capacity.is_empty() => {
                let mut room = room.clone();
                room.add(&offering.extra_capacity);
                self.requests.fits(&room)
            }
            _ => fits_type,
        };
        let sold = ty.offerings.iter().filter(|offering| offering.available);
        sold.filter(|offering| self.fits_offering(offering))
            .filter(move |offering| has_room(offering))
    }

    /// The price of the cheapest of these.
    #[must_use]
    pub fn cheapest(&self, ty: &InstanceType) -> Option<NanoDollars> {
        self.offers(ty).map(|offering| offering.price).min()
    }

    /// Whether a type's labels satisfy the claim, leaving aside its room and how it is sold.
    #[must_use]
    pub fn fits(&self, ty: &InstanceType) -> bool {
        self.requirements
            .iter()
            .all(|requirement| match ty.labels.get(requirement.key()) {
                Some(values) => values.iter().any(|value| requirement.has(value)),
                None => is_free(requirement.key()) || requirement.holds(None),
            })
    }

    fn fits_offering(&self, offering: &Offering) -> bool {
        OFFERED.iter().all(|key| {
            let requirement = self.requirements.get(key);
            requirement.is_none_or(|requirement| requirement.holds(label(offering, key)))
        })
    }
}

/// Labels that offerings carry, or are known not to.
const OFFERED: [&str; 7] = [
    ZONE,
    CAPACITY_TYPE,
    joiner_api::labels::aws::ZONE_ID,
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    PLACEMENT_GROUP_PARTITION,
];

/// Whether a type need not say anything of a label: offerings do, or the claim brings it.
fn is_free(key: &str) -> bool {
    static WELL_KNOWN: LazyLock<BTreeSet<Name>> = LazyLock::new(joiner_catalog::ec2_well_known);
    OFFERED.contains(&key)
        || [NODE_POOL, EC2_NODE_CLASS].contains(&key)
        || !WELL_KNOWN.contains(key)
}

/// A label of an offering.
pub(crate) fn label<'o>(offering: &'o Offering, key: &str) -> Option<&'o str> {
    let labels: &Labels = &offering.labels;
    labels.get(key).map(|value| &**value)
}
