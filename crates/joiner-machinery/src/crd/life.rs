//! The life of a definition: whether its names are free, whether it is in force, how it ends.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::meta;

/// Keeps a definition until its last object is gone.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How far the end of a definition has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// Somebody has deleted it.
    Pending,
    /// Its objects are being deleted.
    InProgress,
    /// Its objects are gone.
    Completed,
}

fn condition<'c>(crd: &'c Value, kind: &str) -> Option<&'c Value> {
    let list = crd["status"]["conditions"].as_array()?;
    list.iter().find(|condition| condition["type"] == kind)
}

/// True when the kinds of a definition are served.
#[must_use]
pub fn is_established(crd: &Value) -> bool {
    condition(crd, "Established").is_some_and(|found| found["status"] == "True")
}

/// Sets a condition; its time stays as long as its status does.
fn set_condition(status: &mut Value, new: [&str; 4], now: Timestamp) {
    let [kind, value, reason, message] = new;
    let list = status["conditions"].as_array().cloned();
    let mut list = list.unwrap_or_default();
    let old = list.iter_mut().find(|known| known["type"] == kind);
    let mut new = json!({"type": kind, "status": value, "reason": reason, "message": message,
        "lastTransitionTime": meta::time(now)});
    match old {
        Some(old) => {
            if old["status"] == value {
                new["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = new;
        }
        None => list.push(new),
    }
    status["conditions"] = Value::Array(list);
}

/// The status of a definition beside the others that there are. A name that another definition of
/// the group was given is not accepted, and without all of its names a definition is not in force;
/// one that is in force stays so.
#[must_use]
pub fn settled_status<'o>(
    crd: &Value,
    others: impl Iterator<Item = &'o Value>,
    now: Timestamp,
) -> Value {
    let group = &crd["spec"]["group"];
    let taken: Vec<&Value> = others
        .filter(|other| other["spec"]["group"] == *group && meta::name(other) != meta::name(crd))
        .map(|other| &other["status"]["acceptedNames"])
        .collect();
    let wanted = &crd["spec"]["names"];
    let mut status = crd["status"].clone();
    let mut accepted = status["acceptedNames"].clone();
    let mut conflict = None;
    for (field, also, reason) in [
        ("plural", RESOURCES, "PluralConflict"),
        ("singular", RESOURCES, "SingularConflict"),
        ("shortNames", RESOURCES, "ShortNamesConflict"),
        ("kind", KINDS, "KindConflict"),
        ("listKind", KINDS, "ListKindConflict"),
    ] {
        let in_use = texts(&wanted[field])
            .find(|name| taken.iter().any(|names| has(names, also, name)))
            .filter(|_| wanted[field] != accepted[field]);
        match in_use {
            Some(name) => conflict = Some((reason, format!("{name:?} is already in use"))),
            None => copy(wanted, &mut accepted, field),
        }
    }
    copy(wanted, &mut accepted, "categories");
    status["acceptedNames"] = accepted;
    match &conflict {
        Some((reason, why)) => {
            set_condition(&mut status, ["NamesAccepted", "False", reason, why], now);
        }
        None => {
            let fine = ["NamesAccepted", "True", "NoConflicts", "no conflicts found"];
            set_condition(&mut status, fine, now);
        }
    }
    if !is_established(crd) {
        let (value, reason, why) = match conflict {
            Some(_) => ("False", "NotAccepted", "not all names are accepted"),
            None => (
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        };
        set_condition(&mut status, ["Established", value, reason, why], now);
    }
    status
}

/// Names that must not be the same as one another.
const RESOURCES: &[&str] = &["plural", "singular", "shortNames"];
const KINDS: &[&str] = &["kind", "listKind"];

/// A text, or the texts of a list.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().into_iter().flatten();
    list.chain(std::iter::once(value))
        .filter_map(Value::as_str)
        .filter(|text| !text.is_empty())
}

fn has(names: &Value, fields: &[&str], name: &str) -> bool {
    let mut all = fields.iter().flat_map(|field| texts(&names[*field]));
    all.any(|own| own == name)
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    if !from[field].is_null() {
        to[field] = from[field].clone();
    } else if let Some(map) = to.as_object_mut() {
        map.remove(field);
    }
}

/// The status of a definition that is on its way out.
#[must_use]
pub fn terminating(crd: &Value, step: Termination, now: Timestamp) -> Value {
    let mut status = crd["status"].clone();
    let (value, reason, why) = match step {
        Termination::Pending => (
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ),
        Termination::InProgress => (
            "True",
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        ),
        Termination::Completed => (
            "False",
            "InstanceDeletionCompleted",
            "removed all instances",
        ),
    };
    set_condition(&mut status, ["Terminating", value, reason, why], now);
    status
}
