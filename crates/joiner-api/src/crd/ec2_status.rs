//! Status of EC2NodeClass.

use super::build::{Field, boolean, list, object, string, time};
use super::common::{Reason, conditions};
use crate::types::Operator;
use serde_json::json;

pub(super) fn status() -> Field {
    object("What the selectors of the class came to.")
        .field(
            "subnets",
            list("Subnets, most free addresses first.", subnet()),
        )
        .field(
            "securityGroups",
            list("Security groups, by id.", security_group()),
        )
        .field("amis", list("Images, newest first.", ami()))
        .field(
            "capacityReservations",
            list("Reservations, by id.", reservation()),
        )
        .field("instanceProfile", string("Instance profile in use."))
        .field("conditions", conditions(Reason::Required))
}

fn subnet() -> Field {
    object("A subnet.")
        .required("id", string("Id of the subnet."))
        .required("zone", string("Zone of the subnet."))
        .field("zoneID", string("Zone of the subnet, by id."))
}

fn security_group() -> Field {
    object("A security group.")
        .required("id", string("Id of the group."))
        .field("name", string("Name of the group."))
}

fn ami() -> Field {
    let operators: Vec<&str> = Operator::ALL.iter().map(|o| o.as_str()).collect();
    let requirement = object("A wish about one label.")
        .required("key", string("The label."))
        .required(
            "operator",
            string("How the label is compared.").one_of(&operators),
        )
        .field(
            "values",
            list("What it is compared with.", string("A value.")).atomic(),
        );
    object("An image.")
        .required("id", string("Id of the image."))
        .field("name", string("Name of the image."))
        .field("deprecated", boolean("Its owner asks people to move on."))
        .required(
            "requirements",
            list("Which instance types it fits.", requirement),
        )
}

fn reservation() -> Field {
    object("Capacity that is paid for already.")
        .required(
            "id",
            string("Id of the reservation.").pattern(super::patterns::RESERVATION_ID),
        )
        .required("availabilityZone", string("Zone of the reservation."))
        .required("instanceType", string("Type that it holds."))
        .required(
            "instanceMatchCriteria",
            string("Which launches it is open to.").one_of(&["open", "targeted"]),
        )
        .required(
            "ownerID",
            string("Account that owns it.").pattern(super::patterns::ACCOUNT_ID),
        )
        .field(
            "reservationType",
            string("Kind of the reservation.")
                .one_of(&["default", "capacity-block"])
                .default(json!("default")),
        )
        .field("interruptible", boolean("AWS may take it back."))
        .field(
            "state",
            string("Where it is in its life.")
                .one_of(&["active", "expiring"])
                .default(json!("active")),
        )
        .field("endTime", time("When it ends."))
}
