//! What is sold and ordered when nobody is to use reservations: feature gate `ReservedCapacity` is off.
//!
//! Reserved offerings stay on the list, so that nodes which run in a reservation keep their price and
//! do not drift. But they cannot be had: no plan counts on one, and no launch ends up in one. With
//! upstream they are not even listed then, if its AWS provider sells them.

use std::sync::Arc;

use joiner_api::labels::{CAPACITY_TYPE, RESERVED};
use joiner_cloud::Order;
use joiner_model::{InstanceType, Name, Offering, Operator, Requirement};

fn is_reserved(offering: &Offering) -> bool {
    let capacity_type = offering.labels.get(CAPACITY_TYPE);
    offering.reservation.is_some() || capacity_type.is_some_and(|own| &**own == RESERVED)
}

/// The same types, with nothing reserved to be had. Most catalogs have nothing reserved and are not
/// copied.
pub(crate) fn without_reservations(types: Arc<Vec<InstanceType>>) -> Arc<Vec<InstanceType>> {
    let can_be_had = |own: &Offering| own.available && is_reserved(own);
    if !types.iter().any(|own| own.offerings.iter().any(can_be_had)) {
        return types;
    }
    let mut types = (*types).clone();
    for offering in types.iter_mut().flat_map(|own| &mut own.offerings) {
        offering.available &= !is_reserved(offering);
    }
    Arc::new(types)
}

/// The same order for anything but what is reserved.
pub(crate) fn unreserved(order: &Order) -> Order {
    let mut order = order.clone();
    let other = Requirement::new(CAPACITY_TYPE, Operator::NotIn, [Name::from(RESERVED)]);
    if let Ok(other) = other {
        order.requirements.add(other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use joiner_model::{Labels, Requirements, Resources};
    use serde_json::json;

    /// A type with one reserved offering and one on demand.
    fn mixed() -> Arc<Vec<InstanceType>> {
        let sold = |capacity_type: &str| {
            json!({"Price": 1, "Requirements": [
                {"key": CAPACITY_TYPE, "operator": "In", "values": [capacity_type]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]})
        };
        let mut reserved = sold(RESERVED);
        reserved["ReservationCapacity"] = json!(2);
        let types = json!([{"name": "m", "architecture": "amd64", "operatingSystems": ["linux"],
            "resources": {"cpu": "4", "memory": "8Gi"}, "offerings": [reserved, sold("on-demand")]}]);
        Arc::new(joiner_state::parse_instance_types("types.json", &types.to_string()).unwrap())
    }

    #[test]
    fn reserved_offerings_are_listed_and_cannot_be_had() {
        let before = mixed();
        let after = without_reservations(Arc::clone(&before));
        let shown = |types: &[InstanceType]| -> Vec<String> {
            let offerings = types[0].offerings.iter();
            let one = |own: &Offering| format!("{} {}", own.labels[CAPACITY_TYPE], own.available);
            offerings.map(one).collect()
        };
        assert_eq!(shown(&before), ["reserved true", "on-demand true"]);
        assert_eq!(shown(&after), ["reserved false", "on-demand true"]);
        let again = without_reservations(Arc::clone(&after));
        assert!(Arc::ptr_eq(&after, &again), "there is nothing to change");
    }

    #[test]
    fn an_order_is_for_anything_but_what_is_reserved() {
        let order = |values: &[&str]| {
            let values = values.iter().map(|own| Name::from(*own));
            let own = Requirement::one_of(CAPACITY_TYPE, values);
            let order = Order {
                claim: "c".into(),
                claim_uid: "u".into(),
                pool: None,
                requirements: [own].into_iter().collect::<Requirements>(),
                types: Vec::new(),
                requests: Resources::new(),
                labels: Labels::new(),
                class: None,
            };
            unreserved(&order).requirements.to_string()
        };
        let left = order(&["reserved", "spot"]);
        assert!(
            left.contains("spot") && !left.contains("reserved"),
            "{left}"
        );
        assert!(!order(&["reserved"]).contains("reserved"));
    }
}
