//! Which offering is bought for an order: the cheapest that satisfies it.

use std::collections::BTreeSet;

use joiner_api::labels::kwok;
use joiner_cloud::Order;
use joiner_model::{InstanceType, Labels, Name, Offering, Requirement, Resources, keys};

/// One way to fill an order.
#[derive(Clone, Debug)]
pub(crate) struct Offer<'t> {
    /// The type.
    pub(crate) ty: &'t InstanceType,
    /// The offering of it.
    pub(crate) offering: &'t Offering,
}

/// Every label key that some type or offering of a catalog has. A type without it does not have the
/// label; any other key is between the pool and its nodes.
pub(crate) fn label_keys(types: &[InstanceType]) -> BTreeSet<Name> {
    let mut keys = BTreeSet::new();
    for ty in types {
        keys.extend(ty.labels.keys().cloned());
        for offering in &ty.offerings {
            for key in offering.labels.keys() {
                if !keys.contains(key) {
                    keys.insert(key.clone());
                }
            }
        }
    }
    keys
}

/// Every way to fill an order with these types, cheapest first; of equal price the first by name,
/// zone and capacity type.
pub(crate) fn offers<'t>(
    types: impl Iterator<Item = &'t InstanceType>,
    known: &BTreeSet<Name>,
    order: &Order,
) -> Vec<Offer<'t>> {
    let mut found = Vec::new();
    for ty in types {
        let Ok(room) = ty.allocatable() else {
            continue;
        };
        for offering in &ty.offerings {
            let mut room = room.clone();
            room.add(&offering.extra_capacity);
            let offer = Offer { ty, offering };
            if offering.available && order.requests.fits(&room) && offer.satisfies(known, order) {
                found.push(offer);
            }
        }
    }
    found.sort_by(|a, b| a.rank().cmp(&b.rank()));
    found
}

impl Offer<'_> {
    fn rank(&self) -> (joiner_model::NanoDollars, &Name, &Labels) {
        (self.offering.price, &self.ty.name, &self.offering.labels)
    }

    fn satisfies(&self, known: &BTreeSet<Name>, order: &Order) -> bool {
        let mut requirements = order.requirements.iter();
        requirements.all(|requirement| {
            let key = requirement.key();
            if let Some(value) = self.offering.labels.get(key) {
                return requirement.has(value);
            }
            match self.ty.labels.get(key) {
                Some(values) => values.iter().any(|value| requirement.has(value)),
                None => !known.contains(key) || requirement.holds(None),
            }
        })
    }

    /// What the machine has.
    pub(crate) fn capacity(&self) -> Resources {
        let mut capacity = self.ty.capacity.clone();
        capacity.add(&self.offering.extra_capacity);
        capacity
    }

    /// What pods can use of it.
    pub(crate) fn allocatable(&self) -> Resources {
        let mut room = self.ty.allocatable().unwrap_or_default();
        room.add(&self.offering.extra_capacity);
        room
    }

    /// Labels that come true with it: requirements that leave one value, then the type's, then the
    /// offering's, then the price.
    pub(crate) fn labels(&self, order: &Order) -> Labels {
        let mut labels = Labels::new();
        for requirement in order.requirements.iter() {
            if let Some(value) = single(requirement) {
                labels.insert(requirement.key().clone(), value.clone());
            }
        }
        for (key, values) in &self.ty.labels {
            let wanted = order.requirements.get(key);
            let allowed = |value: &&Name| wanted.is_none_or(|wanted| wanted.has(value));
            if let Some(value) = values.iter().find(allowed) {
                labels.insert(key.clone(), value.clone());
            }
        }
        labels.extend(self.offering.labels.clone());
        let price = self.offering.price.to_string();
        labels.insert(kwok::NODE_VIEWER_PRICE.into(), price.into());
        // The name of a machine is no matter of its type.
        labels.remove(keys::HOSTNAME);
        labels
    }
}

fn single(requirement: &Requirement) -> Option<&Name> {
    let members = requirement.members()?;
    members.first().filter(|_| members.len() == 1)
}

#[cfg(test)]
mod tests {
    use joiner_catalog::kwok_generic;
    use joiner_model::{Operator, Requirements, ResourceName};

    use super::*;

    type Wanted<'a> = &'a [(&'a str, Operator, &'a [&'a str])];

    fn order(requirements: Wanted<'_>, cpu: u64) -> Order {
        let read = |(key, operator, values): &(&str, Operator, &[&str])| {
            let values = values.iter().map(|value| Name::from(*value));
            Requirement::new(key, *operator, values).unwrap()
        };
        Order {
            claim: "web".into(),
            claim_uid: "uid".into(),
            pool: None,
            requirements: requirements.iter().map(read).collect::<Requirements>(),
            types: Vec::new(),
            requests: Resources::new().with(ResourceName::Cpu, cpu),
            labels: Labels::new(),
            class: None,
        }
    }

    fn cheapest(requirements: Wanted<'_>, cpu: u64) -> Option<String> {
        let types = kwok_generic();
        let order = order(requirements, cpu);
        let known = label_keys(&types);
        let offers = offers(types.iter(), &known, &order);
        offers.first().map(|offer| {
            let labels = &offer.offering.labels;
            let (zone, kind) = (&labels[keys::ZONE], &labels[keys::CAPACITY_TYPE]);
            format!("{} {zone} {kind}", offer.ty.name)
        })
    }

    #[test]
    fn the_cheapest_that_will_do_is_bought() {
        use Operator::{DoesNotExist, Exists, Gt, In, NotIn};
        let cases: [(Wanted<'_>, u64, Option<&str>); 9] = [
            (&[], 1, Some("c-1x-amd64-linux test-zone-a spot")),
            (&[], 901, Some("c-2x-amd64-linux test-zone-a spot")),
            (&[], 255_901, None),
            (
                &[
                    (keys::ARCH, In, &["arm64"]),
                    (keys::ZONE, NotIn, &["test-zone-a"]),
                    (keys::CAPACITY_TYPE, In, &["on-demand"]),
                ],
                1,
                Some("c-1x-arm64-linux test-zone-b on-demand"),
            ),
            (
                &[(kwok::INSTANCE_CPU, Gt, &["3"])],
                1,
                Some("c-4x-amd64-linux test-zone-a spot"),
            ),
            (&[(keys::ZONE, In, &["nowhere"])], 1, None),
            (&[(keys::ARCH, DoesNotExist, &[])], 1, None),
            (
                &[
                    ("example.com/team", In, &["a"]),
                    ("example.com/tier", Exists, &[]),
                ],
                1,
                Some("c-1x-amd64-linux test-zone-a spot"),
            ),
            (
                &[(
                    keys::INSTANCE_TYPE,
                    In,
                    &["m-2x-arm64-linux", "s-2x-arm64-linux"],
                )],
                1,
                Some("s-2x-arm64-linux test-zone-a spot"),
            ),
        ];
        for (requirements, cpu, expected) in cases {
            let found = cheapest(requirements, cpu);
            assert_eq!(found.as_deref(), expected, "{requirements:?} {cpu}");
        }
    }

    #[test]
    fn labels_are_what_came_true() {
        let mut types = kwok_generic();
        types.truncate(1);
        types[0]
            .labels
            .insert(keys::OS.into(), vec!["linux".into(), "windows".into()]);
        let order = order(
            &[
                (keys::OS, Operator::NotIn, &["linux"]),
                (keys::ZONE, Operator::In, &["test-zone-c", "test-zone-d"]),
                ("example.com/team", Operator::In, &["a"]),
                ("example.com/many", Operator::In, &["a", "b"]),
            ],
            1,
        );
        let known = label_keys(&types);
        let offers = offers(types.iter(), &known, &order);
        let labels = offers[0].labels(&order);
        assert_eq!(&*labels[keys::OS], "windows");
        assert_eq!(&*labels[keys::ZONE], "test-zone-c");
        assert_eq!(&*labels["example.com/team"], "a");
        assert_eq!(labels.get("example.com/many"), None);
        let price = offers[0].offering.price.to_string();
        assert_eq!(*labels[kwok::NODE_VIEWER_PRICE], *price);
    }
}
