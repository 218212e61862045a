//! Machines, messages of the queue, checks, shifts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_api::types::Ec2NodeClassStatus;
use joiner_catalog::{ClassSettings, PlacementStrategy, ec2_type};
use joiner_model::{Labels, ResourceName};
use serde_json::{Value, json};

use crate::answer::InstanceStatus;
use crate::health::{Illness, REPAIRS, ill, new_since, queries};
use crate::launch::CapacityType;
use crate::machine::{
    self, End, Life, Machine, PartitionHook, ProviderId, demoted, end, partition_hook,
};
use crate::messages::{Message, MessageAction, MessageKind, MessageMark};
use crate::tags::{Tag, of_registered};
use crate::zonal_shift::{ManagedResource, ShiftChange, changes, shifted};

fn read(more: Value) -> Machine {
    let mut value = json!({
        "InstanceId": "i-1", "InstanceType": "m5.large", "ImageId": "ami-1",
        "LaunchTime": "2026-11-18T18:50:17Z", "State": {"Name": "running"},
        "Placement": {"AvailabilityZone": "us-east-1b", "Tenancy": "default"},
        "SubnetId": "subnet-1", "SecurityGroups": [{"GroupId": "sg-1"}],
        "Tags": [{"Key": "karpenter.sh/nodepool", "Value": "general"},
            {"Key": "karpenter.sh/nodeclaim", "Value": "general-abcde"}],
    });
    for (key, change) in more.as_object().unwrap() {
        value[key] = change.clone();
    }
    Machine::read(&serde_json::from_value(value).unwrap(), true)
}

const RESERVED: fn() -> Value = || {
    json!({"CapacityReservationId": "cr-1",
        "CapacityReservationSpecification": {"CapacityReservationPreference": "capacity-reservations-only"}})
};

#[test]
fn provider_ids_are_read() {
    let id = ProviderId::parse("aws:///us-east-1a/i-1").unwrap();
    assert_eq!(
        (id.zone.as_str(), id.instance_id.as_str()),
        ("us-east-1a", "i-1")
    );
    assert_eq!(id.to_string(), "aws:///us-east-1a/i-1");
    for text in [
        "",
        "i-1",
        "aws:///i-1",
        "aws:////i-1",
        "aws:///us-east-1a/",
        ":///a/b",
    ] {
        let error = ProviderId::parse(text).unwrap_err();
        assert!(
            error.to_string().contains("names no machine of EC2"),
            "{text}"
        );
    }
}

#[test]
fn machines_are_asked_for_as_upstream_does() {
    let query = serde_json::to_value(machine::of_cluster("demo")).unwrap();
    let states = json!(["pending", "running", "stopping", "stopped", "shutting-down"]);
    assert_eq!(
        query,
        json!({"Filters": [
            {"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]},
            {"Name": "tag-key", "Values": ["karpenter.k8s.aws/ec2nodeclass"]},
            {"Name": "tag:eks:eks-cluster-name", "Values": ["demo"]},
            {"Name": "instance-state-name", "Values": states}],
            "MaxResults": 1000})
    );
    let query = serde_json::to_value(machine::by_ids(&["i-1".to_owned()])).unwrap();
    assert_eq!(
        query,
        json!({"Filters": [{"Name": "instance-state-name", "Values": states}], "InstanceIds": ["i-1"]})
    );
}

#[test]
fn aws_152_how_a_machine_is_paid_for() {
    assert_eq!(read(json!({})).capacity_type, CapacityType::OnDemand);
    assert_eq!(
        read(json!({"SpotInstanceRequestId": "sir-1"})).capacity_type,
        CapacityType::Spot
    );
    assert_eq!(read(RESERVED()).capacity_type, CapacityType::Reserved);
    let open = json!({"CapacityReservationId": "cr-1",
        "CapacityReservationSpecification": {"CapacityReservationPreference": "open"}});
    assert_eq!(read(open).capacity_type, CapacityType::OnDemand);
    let without_gate = Machine::read(&serde_json::from_value(RESERVED()).unwrap(), false);
    assert_eq!(without_gate.capacity_type, CapacityType::OnDemand);
}

#[test]
fn aws_136_137_what_a_claim_is_told() {
    let ty = ec2_type("m5.large", "us-east-1", &ClassSettings::default())
        .unwrap()
        .unwrap();
    let class: Ec2NodeClassStatus = serde_json::from_value(json!({
        "subnets": [{"id": "subnet-1", "zone": "us-east-1b", "zoneID": "use1-az1"}],
        "capacityReservations": [{"id": "cr-1", "availabilityZone": "us-east-1b", "instanceType": "m5.large",
            "instanceMatchCriteria": "open", "ownerID": "1", "interruptible": true}],
    }))
    .unwrap();
    let machine = read(json!({}));
    let labels = machine.labels(&ty, &class);
    let get = |labels: &Labels, key: &str| labels.get(key).map(|value| value.to_string());
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "m5.large"),
        ("topology.kubernetes.io/zone", "us-east-1b"),
        ("topology.k8s.aws/zone-id", "use1-az1"),
        ("karpenter.sh/capacity-type", "on-demand"),
        ("karpenter.k8s.aws/instance-tenancy", "default"),
        ("karpenter.k8s.aws/instance-cpu", "2"),
    ] {
        assert_eq!(get(&labels, key).as_deref(), Some(value), "{key}");
    }
    assert!(
        labels
            .keys()
            .all(|key| !key.contains("reservation") && !key.contains("gpu"))
    );
    let reserved = read(RESERVED()).labels(&ty, &class);
    for (key, value) in [
        ("id", "cr-1"),
        ("type", "default"),
        ("interruptible", "true"),
    ] {
        let key = format!("karpenter.k8s.aws/capacity-reservation-{key}");
        assert_eq!(get(&reserved, &key).as_deref(), Some(value), "{key}");
    }
    let placed = read(
        json!({"Placement": {"AvailabilityZone": "us-east-1b", "GroupId": "pg-1",
        "PartitionNumber": 3}}),
    );
    let labels = placed.labels(&ty, &class);
    assert_eq!(
        get(&labels, "karpenter.k8s.aws/placement-group-partition").as_deref(),
        Some("3")
    );
    let annotations = machine::annotations("1", "v5", "demo_1");
    let keys: Vec<&str> = annotations.keys().map(|key| &**key).collect();
    assert_eq!(
        keys,
        [
            "karpenter.k8s.aws/ec2nodeclass-hash",
            "karpenter.k8s.aws/ec2nodeclass-hash-version",
            "karpenter.k8s.aws/instance-profile-name"
        ]
    );
    let adapters = ResourceName::parse("vpc.amazonaws.com/efa");
    let large = ec2_type("p5.48xlarge", "us-east-1", &ClassSettings::default())
        .unwrap()
        .unwrap();
    assert_eq!(machine.resources(&large.capacity).named(&adapters), None);
    let with = read(
        json!({"NetworkInterfaces": [{"InterfaceType": "interface"}, {"InterfaceType": "efa"}]}),
    );
    assert_eq!(with.resources(&large.capacity).named(&adapters), Some(32));
}

#[test]
fn aws_178_a_reservation_that_lapsed() {
    let said = |capacity_type: &str| {
        Labels::from([("karpenter.sh/capacity-type".into(), capacity_type.into())])
    };
    let machine = read(json!({}));
    let (capacity_type, gone) = demoted(&said("reserved"), &machine).unwrap();
    assert_eq!(capacity_type, "on-demand");
    assert_eq!(
        gone,
        [
            "karpenter.k8s.aws/capacity-reservation-id",
            "karpenter.k8s.aws/capacity-reservation-type"
        ]
    );
    assert_eq!(demoted(&said("on-demand"), &machine), None);
    assert_eq!(demoted(&said("on-demand"), &read(RESERVED())), None);
    assert_eq!(demoted(&said("reserved"), &read(RESERVED())), None);
}

#[test]
fn aws_184_partitions_are_known_before_nodes_are_open() {
    let key = "karpenter.k8s.aws/placement-group-partition".to_owned();
    let none = BTreeMap::new();
    let empty = BTreeMap::from([(key.clone(), String::new())]);
    let set = BTreeMap::from([(key, "2".to_owned())]);
    let partitions = Some(PlacementStrategy::Partition(3));
    let placed = read(json!({"Placement": {"AvailabilityZone": "a", "PartitionNumber": 2}}));
    let early = read(json!({}));
    let id = Some("aws:///a/i-1");
    for strategy in [
        None,
        Some(PlacementStrategy::Cluster),
        Some(PlacementStrategy::Spread),
    ] {
        assert_eq!(
            partition_hook(strategy, &none, None, None),
            Ok(PartitionHook::Passes)
        );
    }
    assert_eq!(
        partition_hook(partitions, &set, None, None),
        Ok(PartitionHook::Passes)
    );
    assert_eq!(
        partition_hook(partitions, &none, None, None),
        Ok(PartitionHook::Waits)
    );
    assert_eq!(
        partition_hook(partitions, &empty, id, Some(&placed)),
        Ok(PartitionHook::Label(2))
    );
    assert_eq!(
        partition_hook(partitions, &none, id, Some(&early)),
        Ok(PartitionHook::Waits)
    );
    let error = partition_hook(partitions, &none, id, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "machine aws:///a/i-1 is gone, and its partition cannot be told"
    );
}

#[test]
fn how_machines_end() {
    let in_state = |state: &str| read(json!({"State": {"Name": state}}));
    assert_eq!(end(None), End::Gone);
    assert_eq!(end(Some(&in_state("terminated"))), End::Gone);
    assert_eq!(end(Some(&in_state("shutting-down"))), End::Waits);
    assert_eq!(end(Some(&in_state("stopped"))), End::Terminate);
    assert_eq!(end(Some(&in_state("running"))), End::Terminate);
    assert_eq!(in_state("pending").life, Life::Runs);
}

#[test]
fn aws_177_missing_tags_are_added() {
    let keys = |present: &[Tag]| {
        let tags = of_registered(present, "ip-1", "c", "demo");
        let keys: Vec<String> = tags
            .into_iter()
            .map(|tag| format!("{}={}", tag.key, tag.value))
            .collect();
        keys.join(" ")
    };
    assert_eq!(
        keys(&[]),
        "Name=ip-1 karpenter.sh/nodeclaim=c eks:eks-cluster-name=demo"
    );
    let present = [
        Tag::new("Name", "mine"),
        Tag::new("eks:eks-cluster-name", "demo"),
    ];
    assert_eq!(keys(&present), "karpenter.sh/nodeclaim=c");
}

fn message(source: &str, kind: &str, detail: &Value) -> Message {
    let body = json!({"version": "0", "id": "1", "detail-type": kind, "source": source, "account": "1",
        "time": "2026-11-18T18:49:30Z", "region": "us-east-1", "resources": [], "detail": detail});
    Message::parse(&body.to_string()).unwrap()
}

#[test]
fn aws_187_messages_that_end_machines() {
    let one = json!({"instance-id": "i-1", "instance-action": "terminate"});
    let state = |state: &str| json!({"instance-id": "i-1", "state": state});
    let change = json!({"service": "EC2", "eventTypeCategory": "scheduledChange",
        "affectedEntities": [{"entityValue": "i-1"}, {"entityValue": "i-2"}]});
    let states = "EC2 Instance State-change Notification";
    for (source, kind, detail, expected) in [
        (
            "aws.ec2",
            "EC2 Spot Instance Interruption Warning",
            one.clone(),
            MessageKind::SpotInterrupted,
        ),
        (
            "aws.ec2",
            "EC2 Capacity Reservation Instance Interruption Warning",
            one.clone(),
            MessageKind::CapacityReservationInterrupted,
        ),
        (
            "aws.ec2",
            states,
            state("stopping"),
            MessageKind::InstanceStopped,
        ),
        (
            "aws.ec2",
            states,
            state("stopped"),
            MessageKind::InstanceStopped,
        ),
        (
            "aws.ec2",
            states,
            state("STOPPED"),
            MessageKind::InstanceTerminated,
        ),
        (
            "aws.ec2",
            states,
            state("shutting-down"),
            MessageKind::InstanceTerminated,
        ),
        (
            "aws.ec2",
            states,
            state("terminated"),
            MessageKind::InstanceTerminated,
        ),
        (
            "aws.health",
            "AWS Health Event",
            change,
            MessageKind::ScheduledChange,
        ),
    ] {
        let read = message(source, kind, &detail);
        assert_eq!(read.kind, expected, "{detail}");
        assert_eq!(read.kind.action(), MessageAction::Drain);
        assert_eq!(read.instance_ids[0], "i-1");
        assert_eq!(
            read.time,
            Some("2026-11-18T18:49:30Z".parse::<Timestamp>().unwrap())
        );
        assert_eq!(read.kind.event().unwrap().0, "Warning");
    }
    let advice = message("aws.ec2", "EC2 Instance Rebalance Recommendation", &one);
    assert_eq!(advice.kind.action(), MessageAction::Tell);
    assert_eq!(
        advice.kind.event(),
        Some(("Normal", "SpotRebalanceRecommendation"))
    );
}

#[test]
fn aws_189_messages_that_say_nothing() {
    let states = "EC2 Instance State-change Notification";
    let running = json!({"instance-id": "i-1", "state": "running"});
    let issue = json!({"service": "EC2", "eventTypeCategory": "issue"});
    let other = json!({"service": "RDS", "eventTypeCategory": "scheduledChange"});
    for read in [
        message("aws.ec2", states, &running),
        message("aws.ec2", "Something Else", &json!({})),
        message(
            "aws.other",
            "EC2 Spot Instance Interruption Warning",
            &json!({"instance-id": "i-1"}),
        ),
        message("aws.health", "AWS Health Event", &issue),
        message("aws.health", "AWS Health Event", &other),
        Message::parse("{}").unwrap(),
    ] {
        assert_eq!(read.kind, MessageKind::NoOp);
        assert_eq!(read.kind.action(), MessageAction::Nothing);
        assert!(read.instance_ids.is_empty());
    }
    for text in ["", "not json", "3", "{\"detail\": 3}"] {
        let error = Message::parse(text).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("not a message of EventBridge, "),
            "{text}"
        );
    }
}

#[test]
fn aws_190_what_messages_say_of_capacity() {
    assert_eq!(
        MessageKind::SpotInterrupted.mark(),
        Some(MessageMark::Offering)
    );
    let reservation = MessageKind::CapacityReservationInterrupted;
    assert_eq!(reservation.mark(), Some(MessageMark::Reservation));
    assert_eq!(MessageKind::ScheduledChange.mark(), None);
}

fn status(id: &str, instance: Value, system: Value, events: Value) -> InstanceStatus {
    let value = json!({"InstanceId": id, "InstanceStatus": instance, "SystemStatus": system, "Events": events});
    serde_json::from_value(value).unwrap()
}

fn failed(since: &str) -> Value {
    json!({"Status": "impaired", "Details": [{"Status": "failed", "ImpairedSince": since}]})
}

#[test]
fn aws_191_194_checks_of_machines() {
    let now: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
    let (old, young) = (
        failed("2026-11-18T11:58:00Z"),
        failed("2026-11-18T11:58:01Z"),
    );
    let fine = json!({"Status": "ok", "Details": [{"Status": "passed"}]});
    let none = json!([]);
    let stop = json!([{"Code": "instance-stop"}]);
    let found = ill(
        &[
            status("i-1", old.clone(), fine.clone(), none.clone()),
            status("i-2", young.clone(), fine.clone(), none.clone()),
            status("i-3", fine.clone(), old.clone(), stop.clone()),
            status("i-4", fine.clone(), fine.clone(), stop),
            status("i-5", fine.clone(), young, none.clone()),
            status(
                "i-6",
                fine.clone(),
                fine.clone(),
                json!([{"Code": "unknown"}]),
            ),
            status("i-1", old, fine.clone(), none),
        ],
        now,
    );
    let expected = BTreeMap::from([
        ("i-1".to_owned(), vec![Illness::InstanceStatus]),
        (
            "i-3".to_owned(),
            vec![Illness::SystemStatus, Illness::EventStatus],
        ),
        ("i-4".to_owned(), vec![Illness::EventStatus]),
    ]);
    assert_eq!(found, expected);
    assert!(Illness::SystemStatus.is_forceful() && Illness::InstanceStatus.is_forceful());
    assert!(!Illness::EventStatus.is_forceful());
    let filters = queries().map(|query| query.filters[0].name.clone());
    assert_eq!(
        filters,
        [
            "instance-status.status",
            "system-status.status",
            "event.code"
        ]
    );
}

#[test]
fn aws_192_an_illness_is_counted_once() {
    let of =
        |id: &str, illnesses: &[Illness]| BTreeMap::from([(id.to_owned(), illnesses.to_vec())]);
    let one = of("i-1", &[Illness::SystemStatus]);
    let two = of("i-1", &[Illness::SystemStatus, Illness::EventStatus]);
    let first = new_since(&BTreeMap::new(), &one);
    assert_eq!(first, [("i-1".to_owned(), Illness::SystemStatus)]);
    assert!(new_since(&one, &one).is_empty());
    assert_eq!(
        new_since(&one, &two),
        [("i-1".to_owned(), Illness::EventStatus)]
    );
    assert_eq!(new_since(&BTreeMap::new(), &one).len(), 1);
}

#[test]
fn states_of_nodes_that_are_repaired() {
    let text = REPAIRS.map(|repair| {
        format!(
            "{} {} {}",
            repair.condition,
            repair.status,
            repair.toleration.as_secs()
        )
    });
    assert_eq!(text[1], "Ready Unknown 1800");
    assert_eq!(text[2], "AcceleratedHardwareReady False 600");
    assert_eq!(text.len(), 7);
}

#[test]
fn aws_119_183_shifts() {
    let now: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
    let resource: ManagedResource = serde_json::from_value(json!({
        "zonalShifts": [
            {"appliedStatus": "APPLIED", "awayFrom": "use1-az1", "expiryTime": "2026-11-18T13:00:00Z"},
            {"appliedStatus": "APPLIED", "awayFrom": "use1-az2", "expiryTime": "2026-11-18T12:00:00Z"},
            {"appliedStatus": "NOT_APPLIED", "awayFrom": "use1-az3"}],
        "autoshifts": [{"appliedStatus": "APPLIED", "awayFrom": "use1-az4"},
            {"appliedStatus": "NOT_APPLIED", "awayFrom": "use1-az5"}],
    }))
    .unwrap();
    let zones = shifted(&resource, now);
    assert_eq!(zones, ["use1-az1", "use1-az4"].map(str::to_owned).into());
    let before = BTreeSet::from(["use1-az9".to_owned(), "use1-az1".to_owned()]);
    let found = changes(&before, &zones);
    assert_eq!(
        found,
        [
            ShiftChange::Active("use1-az4".to_owned()),
            ShiftChange::Cleared("use1-az9".to_owned())
        ]
    );
    assert_eq!(found[0].event(), ("Warning", "ZonalShiftActive"));
    assert_eq!(found[1].event(), ("Normal", "ZonalShiftCleared"));
    assert!(changes(&zones, &zones).is_empty());
}
