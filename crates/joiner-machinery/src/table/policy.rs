//! Rows of budgets, quotas, priorities, leases, roles and runtime classes.

use serde_json::{Value, json};

use super::cell::{Shown, count, items, plain, text};
use super::{AGE, BuiltIn, Column, NAME};
use crate::kinds::Kind;

/// The printer of a kind that is shown here.
pub(super) fn printer(kind: &Kind) -> Option<&'static BuiltIn> {
    let found = match (kind.group.as_str(), kind.kind.as_str()) {
        ("policy", "PodDisruptionBudget") => &BUDGETS,
        ("", "ResourceQuota") => &QUOTAS,
        ("scheduling.k8s.io", "PriorityClass") => &PRIORITIES,
        ("coordination.k8s.io", "Lease") => &LEASES,
        ("node.k8s.io", "RuntimeClass") => &RUNTIMES,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &BINDINGS,
        _ => return None,
    };
    Some(found)
}

static BUDGETS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Min Available", "How many pods must stay."),
        Column::text("Max Unavailable", "How many pods may be gone."),
        Column::integer("Allowed Disruptions", "How many pods may go now."),
        AGE,
    ],
    |shown| {
        let spec = shown.spec();
        let or_na = |field: &str| plain(&spec[field]).unwrap_or_else(|| "N/A".to_owned());
        vec![
            shown.name(),
            json!(or_na("minAvailable")),
            json!(or_na("maxUnavailable")),
            json!(count(&shown.status()["disruptionsAllowed"])),
            shown.age(),
        ]
    },
);

static QUOTAS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Request", "What is used of what may be requested."),
        Column::text("Limit", "What is used of what may be the limit."),
        AGE,
    ],
    |shown| {
        let status = shown.status();
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (name, hard) in status["hard"].as_object().into_iter().flatten() {
            let used = status["used"][name].as_str().unwrap_or("0");
            let part = format!("{name}: {used}/{}", text(hard));
            let list = if name.starts_with("limits.") {
                &mut limits
            } else {
                &mut requests
            };
            list.push(part);
        }
        vec![
            shown.name(),
            json!(requests.join(", ")),
            json!(limits.join(", ")),
            shown.age(),
        ]
    },
);

static PRIORITIES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::integer("Value", "The higher, the sooner."),
        Column::boolean("Global-Default", "Whether pods without a class get it."),
        AGE,
        Column::text("PreemptionPolicy", "Whether its pods may push others out."),
    ],
    |shown| {
        let class = shown.object;
        vec![
            shown.name(),
            json!(count(&class["value"])),
            json!(class["globalDefault"].as_bool().unwrap_or(false)),
            shown.age(),
            json!(text(&class["preemptionPolicy"])),
        ]
    },
);

static LEASES: BuiltIn = BuiltIn::new(
    &[NAME, Column::text("Holder", "Who holds it."), AGE],
    |shown| {
        let holder = text(&shown.spec()["holderIdentity"]);
        vec![shown.name(), json!(holder), shown.age()]
    },
);

static RUNTIMES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Handler", "What runs the containers."),
        AGE,
    ],
    |shown| {
        vec![
            shown.name(),
            json!(text(&shown.object["handler"])),
            shown.age(),
        ]
    },
);

static BINDINGS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Role", "The role that is given."),
        AGE,
        Column::wide("Users", "Users who get it."),
        Column::wide("Groups", "Groups that get it."),
        Column::wide("ServiceAccounts", "Service accounts that get it."),
    ],
    binding,
);

fn binding(shown: &Shown<'_>) -> Vec<Value> {
    let role = &shown.object["roleRef"];
    let role = format!("{}/{}", text(&role["kind"]), text(&role["name"]));
    let of = |kind: &str| {
        let subjects = items(&shown.object["subjects"]).iter();
        let names: Vec<String> = subjects
            .filter(|subject| subject["kind"] == kind)
            .map(|subject| match (kind, text(&subject["namespace"])) {
                ("ServiceAccount", space) => format!("{space}/{}", text(&subject["name"])),
                _ => text(&subject["name"]).to_owned(),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![
        shown.name(),
        json!(role),
        shown.age(),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]
}
