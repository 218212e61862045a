//! Selector terms of EC2NodeClass.

use super::build::{Field, list, object, string, string_map};
use super::patterns::{
    ACCOUNT_ID, AMI_ALIAS, AMI_ID, PLACEMENT_GROUP_ID, RESERVATION_ID, SECURITY_GROUP_ID, SUBNET_ID,
};
use serde_json::json;

/// Families that AWS publishes images of, as aliases spell them.
const ALIAS_FAMILIES: &[&str] = &[
    "al2",
    "al2023",
    "bottlerocket",
    "windows2019",
    "windows2022",
    "windows2025",
];

/// Most terms of a selector.
pub(super) const TERMS_MAX: u64 = 30;

/// Tags of a selector.
pub(super) fn tags() -> Field {
    string_map("Tags that all must be there. The value * stands for any value.")
        .max_entries(20)
        .rule(
            "self.all(k, k != '' && self[k] != '')",
            "tags need a key and a value",
        )
}

/// Every term says something.
pub(super) fn needs_one_of(fields: &[&str]) -> (String, String) {
    let any = fields
        .iter()
        .map(|field| format!("has(x.{field})"))
        .collect::<Vec<_>>();
    (
        format!("self.all(x, {})", any.join(" || ")),
        format!("every term needs at least one of {}", fields.join(", ")),
    )
}

/// A field that must stand alone. The list is refused when every term breaks this; in a mixed
/// list the field wins over the others of its term.
fn stands_alone(field: &str, others: &[&str]) -> (String, String) {
    let with = others
        .iter()
        .map(|other| format!("has(x.{other})"))
        .collect::<Vec<_>>();
    (
        format!(
            "size(self) == 0 || !self.all(x, has(x.{field}) && ({}))",
            with.join(" || ")
        ),
        format!(
            "{field} cannot be combined with {} in a term",
            others.join(", ")
        ),
    )
}

fn not_empty() -> (String, String) {
    (
        "size(self) != 0".to_owned(),
        "at least one term is needed".to_owned(),
    )
}

pub(super) fn subnets() -> Field {
    let term = object("Picks subnets by tags or by id.")
        .field("tags", tags())
        .field("id", string("Id of a subnet.").pattern(SUBNET_ID));
    list(
        "Subnets that instances may start in. A subnet needs to fit one term.",
        term,
    )
    .max_items(TERMS_MAX)
    .rules(vec![
        not_empty(),
        needs_one_of(&["tags", "id"]),
        stands_alone("id", &["tags"]),
    ])
}

pub(super) fn security_groups() -> Field {
    let term = object("Picks security groups by tags, id or name.")
        .field("tags", tags())
        .field("id", string("Id of a group.").pattern(SECURITY_GROUP_ID))
        .field("name", string("Name of a group; not its Name tag."));
    list(
        "Security groups that instances join. A group needs to fit one term.",
        term,
    )
    .max_items(TERMS_MAX)
    .rules(vec![
        not_empty(),
        needs_one_of(&["tags", "id", "name"]),
        stands_alone("id", &["tags", "name"]),
        stands_alone("name", &["tags", "id"]),
    ])
}

pub(super) fn capacity_reservations() -> Field {
    let term = object("Picks capacity reservations.")
        .field("tags", tags())
        .field("id", string("Id of a reservation.").pattern(RESERVATION_ID))
        .field(
            "ownerID",
            string("Account that owns the reservation.").pattern(ACCOUNT_ID),
        )
        .field(
            "instanceMatchCriteria",
            string("Which launches the reservation is open to.").one_of(&["open", "targeted"]),
        );
    list(
        "Reservations that launches may use. A reservation needs to fit one term.",
        term,
    )
    .max_items(TERMS_MAX)
    .rules(vec![
        needs_one_of(&["tags", "id", "instanceMatchCriteria"]),
        stands_alone("id", &["tags", "ownerID", "instanceMatchCriteria"]),
    ])
}

pub(super) fn placement_group() -> Field {
    object("Placement group that instances start in.")
        .field("name", string("Name of the group.").not_empty())
        .field("id", string("Id of the group.").pattern(PLACEMENT_GROUP_ID))
        .rule(
            "has(self.name) != has(self.id)",
            "set exactly one of name and id",
        )
}

pub(super) fn amis() -> Field {
    let families = ALIAS_FAMILIES
        .iter()
        .map(|f| format!("'{f}'"))
        .collect::<Vec<_>>()
        .join(", ");
    let alias = string("Image that AWS publishes, as family@version; version may be latest.")
        .max_length(30)
        .pattern(AMI_ALIAS)
        .rule(
            format!("self.find('^[^@]+') in [{families}]"),
            format!(
                "the family of an alias must be one of {}",
                ALIAS_FAMILIES.join(", ")
            ),
        )
        .rule(
            "!self.startsWith('windows') || self.endsWith('@latest')",
            "aliases of Windows images can only be @latest",
        );
    let term = object("Picks images.")
        .field("alias", alias)
        .field("tags", tags())
        .field("id", string("Id of an image.").pattern(AMI_ID))
        .field("name", string("Name of an image; not its Name tag."))
        .field(
            "owner",
            string("Account id or alias of the owner: self, amazon, a number."),
        )
        .field(
            "ssmParameter",
            string("Name or ARN of a parameter that holds the id."),
        );
    let clash = |field: &str, others: [&str; 4]| {
        let with = others.map(|other| format!("has(x.{other})")).join(" || ");
        (
            format!("!self.exists(x, has(x.{field}) && ({with}))"),
            format!(
                "{field} cannot be combined with {} in a term",
                others.join(", ")
            ),
        )
    };
    list(
        "Images that instances boot from. The newest that fits an instance type is used.",
        term,
    )
    .with("minItems", json!(1))
    .max_items(TERMS_MAX)
    .rules(vec![
        needs_one_of(&["tags", "id", "name", "alias", "ssmParameter"]),
        clash("id", ["alias", "tags", "name", "owner"]),
        clash("alias", ["id", "tags", "name", "owner"]),
    ])
    .rule(
        "size(self) == 1 || !self.exists(x, has(x.alias))",
        "an alias must be the only term",
    )
}
