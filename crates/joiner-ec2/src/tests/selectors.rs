//! Subnets, security groups, reservations, placement groups.

use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_api::types::{CapacityReservation, ReservationState};
use joiner_catalog::PlacementStrategy;
use serde_json::{Value, json};

use crate::machine::is_expiring;
use crate::reservations::{self, Left, found};
use crate::selectors::{
    free_addresses, placement_group, placement_group_query, security_group_queries,
    security_groups, subnet_queries, subnets,
};

fn filters(queries: &Value) -> Vec<String> {
    let one = |query: &Value| {
        let filters = query["Filters"].as_array().unwrap().iter().map(|filter| {
            let values: Vec<&str> = filter["Values"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_str)
                .collect();
            format!("{}={}", filter["Name"].as_str().unwrap(), values.join(","))
        });
        filters.collect::<Vec<_>>().join(" ")
    };
    queries.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn aws_050_subnets() {
    let terms = json!([{"tags": {"a": "b", "c": "*"}}, {"id": "subnet-1"}, {"tags": {"d": "e"}},
        {"id": "subnet-2", "tags": {"ignored": "x"}}]);
    let queries = subnet_queries(&serde_json::from_value::<Vec<_>>(terms).unwrap());
    assert!(queries.iter().all(|query| query.max_results == Some(500)));
    assert_eq!(
        filters(&serde_json::to_value(&queries).unwrap()),
        [
            "subnet-id=subnet-1,subnet-2",
            "tag:a=b tag-key=c",
            "tag:d=e"
        ]
    );
    let subnet = |id: &str, free: u32| json!({"SubnetId": id, "AvailabilityZone": "a", "AvailabilityZoneId": "az1", "AvailableIpAddressCount": free});
    let answers = json!([
        subnet("subnet-1", 5),
        subnet("subnet-3", 9),
        subnet("subnet-2", 9),
        subnet("subnet-1", 5)
    ]);
    let answers: Vec<_> = serde_json::from_value(answers).unwrap();
    assert_eq!(
        serde_json::to_value(subnets(&answers)).unwrap(),
        json!([
            {"id": "subnet-2", "zone": "a", "zoneID": "az1"},
            {"id": "subnet-3", "zone": "a", "zoneID": "az1"},
            {"id": "subnet-1", "zone": "a", "zoneID": "az1"},
        ])
    );
    assert_eq!(free_addresses(&answers)["subnet-1"], 5);
    assert!(subnets(&[]).is_empty());
}

#[test]
fn aws_051_security_groups() {
    let terms = json!([{"name": "one"}, {"id": "sg-1"}, {"tags": {"a": "b", "c": "d"}}, {"name": "two"},
        {"tags": {"e": "f"}}]);
    let queries = security_group_queries(&serde_json::from_value::<Vec<_>>(terms).unwrap());
    assert_eq!(
        filters(&serde_json::to_value(&queries).unwrap()),
        [
            "group-id=sg-1",
            "group-name=one,two",
            "tag:a=b tag:c=d",
            "tag:e=f"
        ]
    );
    let group = |id: &str, name: &str| json!({"GroupId": id, "GroupName": name});
    let answers = json!([
        group("sg-2", "two"),
        group("sg-1", "one"),
        group("sg-2", "two")
    ]);
    let answers: Vec<_> = serde_json::from_value(answers).unwrap();
    assert_eq!(
        serde_json::to_value(security_groups(&answers)).unwrap(),
        json!([{"id": "sg-1", "name": "one"}, {"id": "sg-2", "name": "two"}])
    );
}

fn now() -> Timestamp {
    "2026-11-18T12:00:00Z".parse().unwrap()
}

fn reservation(id: &str, more: Value) -> Value {
    let mut reservation = json!({"CapacityReservationId": id, "AvailabilityZone": "a", "InstanceType": "m5.large",
        "AvailableInstanceCount": 3, "InstanceMatchCriteria": "open", "OwnerId": "1", "State": "active"});
    for (key, value) in more.as_object().unwrap() {
        reservation[key] = value.clone();
    }
    reservation
}

fn read(all: Value) -> reservations::Found {
    found(&serde_json::from_value::<Vec<_>>(all).unwrap(), now())
}

#[test]
fn aws_061_reservations() {
    let terms = json!([{"id": "cr-1"}, {"tags": {"a": "*"}, "ownerID": "123456789012"},
        {"instanceMatchCriteria": "targeted"}]);
    let queries = reservations::queries(&serde_json::from_value::<Vec<_>>(terms).unwrap());
    assert_eq!(
        filters(&serde_json::to_value(&queries).unwrap()),
        [
            "state=active",
            "tag-key=a owner-id=123456789012 state=active",
            "instance-match-criteria=targeted state=active"
        ]
    );
    assert_eq!(
        (queries[0].max_results, queries[1].max_results),
        (None, Some(1000))
    );
    assert_eq!(queries[0].capacity_reservation_ids, ["cr-1"]);
    let all = read(json!([
        reservation(
            "cr-2",
            json!({"InstanceMatchCriteria": "targeted", "Interruptible": true})
        ),
        reservation("cr-1", json!({})),
        reservation("cr-1", json!({})),
        reservation("cr-3", json!({"EndDate": "2026-11-18T12:00:00Z"})),
        reservation("cr-4", json!({"InstanceMatchCriteria": "odd"})),
        reservation("cr-5", json!({"ReservationType": "odd"})),
    ]));
    let text = |reservation: &CapacityReservation| {
        format!(
            "{} {} {:?}",
            reservation.id, reservation.instance_match_criteria, reservation.interruptible
        )
    };
    let told: Vec<String> = all.reservations.iter().map(text).collect();
    assert_eq!(told, ["cr-1 open Some(false)", "cr-2 targeted Some(true)"]);
    assert_eq!(
        all.free,
        BTreeMap::from([("cr-1".to_owned(), 3), ("cr-2".to_owned(), 3)])
    );
    assert_eq!(
        all.skipped,
        [
            "capacity reservation cr-4: instanceMatchCriteria \"odd\" is not known",
            "capacity reservation cr-5: reservationType \"odd\" is not known"
        ]
    );
}

#[test]
fn aws_062_179_blocks_expire() {
    let block = |end: &str| json!({"ReservationType": "capacity-block", "EndDate": end});
    let all = read(json!([
        reservation("cr-1", block("2026-11-18T12:40:00Z")),
        reservation("cr-2", block("2026-11-18T12:40:01Z")),
        reservation("cr-3", json!({"EndDate": "2026-11-18T12:10:00Z"})),
    ]));
    let states: Vec<_> = all
        .reservations
        .iter()
        .map(|reservation| reservation.state)
        .collect();
    assert_eq!(
        states,
        [
            Some(ReservationState::Expiring),
            Some(ReservationState::Active),
            Some(ReservationState::Active)
        ]
    );
    assert_eq!(
        all.next_change,
        Some("2026-11-18T12:00:01Z".parse().unwrap())
    );
    assert!(is_expiring(&all.reservations, "cr-1"));
    assert!(!is_expiring(&all.reservations, "cr-2"));
    assert!(!is_expiring(&all.reservations, "cr-9"));
}

#[test]
fn aws_157_how_much_is_left_of_a_reservation() {
    let mut left = Left::default();
    left.learn(&BTreeMap::from([("cr-1".to_owned(), 2)]));
    let mark = left.mark();
    left.launched("cr-1", mark);
    assert_eq!(left.of("cr-1"), 1);
    left.terminated("cr-1");
    assert_eq!(left.of("cr-1"), 2);
    left.learn(&BTreeMap::from([("cr-1".to_owned(), 1)]));
    left.launched("cr-1", mark);
    assert_eq!(left.of("cr-1"), 1, "the answer has the launch in it");
    left.used_up("cr-1");
    assert_eq!((left.of("cr-1"), left.of("cr-9")), (0, 0));
}

#[test]
fn aws_064_placement_groups() {
    let spec = |selector: Value| {
        serde_json::from_value(json!({"placementGroupSelector": selector})).unwrap()
    };
    let query = placement_group_query(&spec(json!({"name": "mine"}))).unwrap();
    assert_eq!(
        (query.group_names, query.group_ids.len()),
        (vec!["mine".to_owned()], 0)
    );
    let query = placement_group_query(&spec(json!({"id": "pg-1"}))).unwrap();
    assert_eq!(query.group_ids, ["pg-1"]);
    assert_eq!(query.filters[0].name, "state");
    assert!(placement_group_query(&spec(Value::Null)).is_none());
    let group = |state: &str, strategy: &str| {
        let answers = json!([{"GroupId": "pg-1", "GroupName": "mine", "State": state, "Strategy": strategy,
            "PartitionCount": 3}]);
        placement_group(&serde_json::from_value::<Vec<_>>(answers).unwrap())
    };
    let strategy = |strategy: &str| group("available", strategy).map(|group| group.strategy);
    assert_eq!(strategy("cluster"), Some(PlacementStrategy::Cluster));
    assert_eq!(strategy("partition"), Some(PlacementStrategy::Partition(3)));
    assert_eq!(strategy("spread"), Some(PlacementStrategy::Spread));
    assert_eq!(strategy("odd"), None);
    assert!(group("deleting", "spread").is_none());
    assert!(placement_group(&[]).is_none());
}
