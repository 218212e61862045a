//! What answers to launches mean.

use serde_json::{Value, json};

use crate::answer::CreateFleetResult;
use crate::fault::{Fault, FaultClass};
use crate::launch::CapacityType;
use crate::launch::outcome::{FleetOutcome, NoMachine, SoldOut, outcome};

fn error(code: &str, name: &str, zone: &str, message: &str) -> Value {
    json!({"ErrorCode": code, "ErrorMessage": message, "Lifecycle": "spot", "LaunchTemplateAndOverrides": {
        "LaunchTemplateSpecification": {"LaunchTemplateName": "t", "Version": "$Latest"},
        "Overrides": {"InstanceType": name, "AvailabilityZone": zone, "SubnetId": format!("subnet-{zone}")}}})
}

fn machine(id: &str) -> Value {
    json!({"InstanceIds": [id], "InstanceType": "m5.large", "Lifecycle": "spot", "LaunchTemplateAndOverrides": {
        "LaunchTemplateSpecification": {"LaunchTemplateName": "t", "Version": "$Latest"},
        "Overrides": {"InstanceType": "m5.large", "AvailabilityZone": "a", "SubnetId": "subnet-a",
            "ImageId": "ami-1"}}})
}

fn read(
    errors: &[Value],
    instances: &[Value],
    capacity_type: CapacityType,
    n: usize,
) -> FleetOutcome {
    let result = json!({"FleetId": "fleet-1", "Errors": errors, "Instances": instances});
    let result: CreateFleetResult = serde_json::from_value(result).unwrap();
    outcome(&result, capacity_type, &["cr-1".to_owned()], n)
}

fn offering(capacity_type: CapacityType, name: &str, zone: &str) -> SoldOut {
    SoldOut::Offering {
        capacity_type,
        instance_type: name.to_owned(),
        zone: zone.to_owned(),
    }
}

#[test]
fn aws_124_nothing_is_left_of_spot() {
    let errors =
        ["a", "b"].map(|zone| error("InsufficientInstanceCapacity", "m5.large", zone, "none"));
    let read = read(&errors, &[], CapacityType::Spot, 1);
    let marks: Vec<SoldOut> = read.sold_out.into_iter().collect();
    assert_eq!(
        marks,
        ["a", "b"].map(|zone| offering(CapacityType::Spot, "m5.large", zone))
    );
    let said = "InsufficientInstanceCapacity: none".to_owned();
    assert_eq!(read.no_machine, Some(NoMachine::InsufficientCapacity(said)));
    let zones: Vec<&str> = read
        .failures
        .iter()
        .map(|failure| failure.zone.as_str())
        .collect();
    assert_eq!(zones, ["a", "b"]);
}

#[test]
fn aws_125_another_offering_was_had() {
    let errors = [error(
        "InsufficientInstanceCapacity",
        "m5.large",
        "b",
        "none",
    )];
    let read = read(&errors, &[machine("i-1")], CapacityType::OnDemand, 1);
    assert_eq!(read.no_machine, None);
    assert_eq!(read.sold_out.len(), 1);
    let bought = &read.bought[0];
    let said = (
        bought.instance_id.as_str(),
        bought.zone.as_deref(),
        bought.subnet.as_str(),
    );
    assert_eq!(said, ("i-1", Some("a"), "subnet-a"));
}

#[test]
fn aws_127_no_role_for_spot() {
    let code = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";
    let read = read(
        &[error(code, "m5.large", "a", "no role")],
        &[],
        CapacityType::Spot,
        1,
    );
    let marks: Vec<SoldOut> = read.sold_out.into_iter().collect();
    assert_eq!(marks, [SoldOut::CapacityType(CapacityType::Spot)]);
    assert!(read.no_spot_role);
    assert!(matches!(
        read.no_machine,
        Some(NoMachine::InsufficientCapacity(_))
    ));
}

#[test]
fn aws_128_too_many_fleets() {
    let read = read(
        &[error("MaxFleetCountExceeded", "m5.large", "a", "")],
        &[],
        CapacityType::Spot,
        1,
    );
    let marks: Vec<SoldOut> = read.sold_out.into_iter().collect();
    assert_eq!(marks, [offering(CapacityType::Spot, "m5.large", "a")]);
    assert!(matches!(
        read.no_machine,
        Some(NoMachine::InsufficientCapacity(_))
    ));
}

#[test]
fn aws_129_reservations_that_are_used_up() {
    let used_up = [error("ReservationCapacityExceeded", "m5.large", "a", "")];
    let marks: Vec<SoldOut> = read(&used_up, &[], CapacityType::Reserved, 1)
        .sold_out
        .into_iter()
        .collect();
    assert_eq!(marks, [SoldOut::Reservation("cr-1".to_owned())]);
    let throttled = [error("RequestLimitExceeded", "m5.large", "a", "slow down")];
    let read = read(&throttled, &[], CapacityType::Reserved, 1);
    assert!(read.sold_out.is_empty());
    assert_eq!(
        read.no_machine,
        Some(NoMachine::Refused {
            reason: "RequestLimitExceeded",
            message: "RequestLimitExceeded: slow down".to_owned(),
        })
    );
}

#[test]
fn aws_132_a_subnet_without_addresses() {
    let errors = [error(
        "InsufficientFreeAddressesInSubnet",
        "m5.large",
        "c",
        "",
    )];
    let read = read(&errors, &[], CapacityType::OnDemand, 1);
    let marks: Vec<SoldOut> = read.sold_out.into_iter().collect();
    assert_eq!(
        marks,
        [
            offering(CapacityType::OnDemand, "m5.large", "c"),
            SoldOut::Subnet("subnet-c".to_owned())
        ]
    );
}

#[test]
fn a_spread_group_that_is_full() {
    let message = "You have reached the limit of the spread placement group";
    let errors = [error("InstanceLimitExceeded", "m5.large", "a", message)];
    let marks: Vec<SoldOut> = read(&errors, &[], CapacityType::Reserved, 1)
        .sold_out
        .into_iter()
        .collect();
    assert_eq!(
        marks,
        [SoldOut::GroupInZone {
            zone: "a".to_owned()
        }]
    );
}

#[test]
fn aws_139_a_template_that_is_gone() {
    let errors = [error(
        "InvalidLaunchTemplateName.NotFoundException",
        "m5.large",
        "a",
        "",
    )];
    let read = read(&errors, &[], CapacityType::OnDemand, 1);
    assert_eq!(read.templates_gone.into_iter().collect::<Vec<_>>(), ["t"]);
    assert!(Fault::new("InvalidLaunchTemplateName.NotFoundException", "").is_template_gone());
    assert!(matches!(
        read.no_machine,
        Some(NoMachine::Refused {
            reason: "LaunchTemplateNotFound",
            ..
        })
    ));
}

#[test]
fn aws_169_fewer_machines_than_callers() {
    let errors = [error(
        "InsufficientInstanceCapacity",
        "m5.large",
        "b",
        "none",
    )];
    let machines = [machine("i-1"), machine("i-2")];
    let some = read(&errors, &machines, CapacityType::Spot, 3);
    assert_eq!(some.bought.len(), 2);
    assert!(some.no_machine.is_some());
    let silent = read(&[], &machines, CapacityType::Spot, 3);
    assert_eq!(
        silent.no_machine,
        Some(NoMachine::InsufficientCapacity(
            "the fleet has fewer machines than asked for".to_owned()
        ))
    );
}

#[test]
fn reasons_of_failed_launches() {
    for (code, message, expected) in [
        (
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            "",
            "SpotSLRCreationFailed",
        ),
        ("UnauthorizedOperation", "", "Unauthorized"),
        (
            "AuthFailure",
            "Not authorized for images: [ami-1]",
            "AMIAuthorizationFailure",
        ),
        (
            "InvalidParameter",
            "Security group sg-1 and subnet subnet-1 belong to different networks.",
            "SecurityGroupSubnetVPCMismatch",
        ),
        (
            "InvalidParameterValue",
            "Value (x) for parameter iamInstanceProfile.name is invalid",
            "InstanceProfileNameInvalid",
        ),
        (
            "InvalidParameterValue",
            "User data is limited to 16384 bytes",
            "UserDataSizeLimitExceeded",
        ),
        ("InvalidAMIID.Malformed", "", "InvalidAMIID"),
        ("InvalidAMIID.NotFound", "", "AMINotFound"),
        ("VcpuLimitExceeded", "", "VCPULimitExceeded"),
        ("MaxSpotInstanceCountExceeded", "", "SpotQuotaExceeded"),
        ("PendingVerification", "", "AccountPendingVerification"),
        ("SomethingNew", "odd", "LaunchFailed"),
    ] {
        assert_eq!(
            Fault::new(code, message).launch_reason(),
            expected,
            "{code}"
        );
    }
}

#[test]
fn what_errors_call_for() {
    for (code, expected) in [
        ("DryRunOperation", FaultClass::DryRun),
        ("RequestLimitExceeded", FaultClass::Throttled),
        ("InternalError", FaultClass::ServerSide),
        ("InvalidInstanceID.NotFound", FaultClass::NotFound),
        ("EntityAlreadyExists", FaultClass::AlreadyExists),
        ("ExpiredToken", FaultClass::Credentials),
        ("UnauthorizedOperation", FaultClass::Unauthorized),
        ("InvalidParameterValue", FaultClass::Other),
    ] {
        assert_eq!(Fault::new(code, "").class(), expected, "{code}");
    }
    let odd = Fault {
        is_server_side: true,
        ..Fault::new("Odd", "")
    };
    assert_eq!(odd.class(), FaultClass::ServerSide);
}
