//! Which node class gets the kubelet settings of a pool.
//!
//! A class has one set of settings, and two pools that share it may have had two. The class keeps its
//! name for the pools that want what it has already, or else for the first pool; every further set of
//! settings gets a copy of the class, named after its first pool.

use super::fields::{at, put, take, text};
use super::kind::OldKind;
use super::kubelet::{as_in_class, take_kept};
use super::manifests::Draft;
use super::remark::Remarks;
use super::{annotations, class_reference};
use crate::labels::{KUBELET_CONVERSION, NODE_POOL};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const REFERENCE: &[&str] = &["spec", "template", "spec", "nodeClassRef"];
const KUBELET: &[&str] = &["spec", "kubelet"];
/// Longest name of an object.
const NAME_MAX: usize = 253;

/// A pool, and the settings that it wants.
struct User {
    draft: usize,
    pool: String,
    wanted: Option<Value>,
    /// It says so itself.
    says: bool,
}

/// Moves kubelet settings of converted pools to their classes.
pub(super) fn give_kubelets(drafts: &mut [Draft]) {
    drop_of_claims(drafts);
    let users = users(drafts);
    let mut names = class_names(drafts);
    for (class, users) in users {
        if users.iter().all(|user| !user.says) {
            continue;
        }
        match place_of(drafts, &class) {
            Some(place) => settle(drafts, place, users, &mut names),
            None => users
                .into_iter()
                .for_each(|user| without_class(drafts, user, &class)),
        }
    }
}

/// Claims are what they are: their nodes were started with these settings.
fn drop_of_claims(drafts: &mut [Draft]) {
    for draft in drafts {
        if matches!(draft.old, Some(OldKind::NodeClaim | OldKind::Machine)) {
            for claim in &mut draft.objects {
                take_kept(claim);
            }
        }
    }
}

fn users(drafts: &mut [Draft]) -> BTreeMap<String, Vec<User>> {
    let mut users: BTreeMap<String, Vec<User>> = BTreeMap::new();
    for (ix, draft) in drafts.iter_mut().enumerate() {
        let is_old = draft.old.is_some();
        for pool in draft
            .objects
            .iter_mut()
            .filter(|o| text(o, "kind") == "NodePool")
        {
            let Some(class) = class_of(pool) else {
                other_provider(pool, is_old, &draft.subject, &mut draft.remarks);
                continue;
            };
            let wanted = if is_old { take_kept(pool) } else { None };
            users.entry(class).or_default().push(User {
                draft: ix,
                pool: text(&pool["metadata"], "name").to_owned(),
                says: wanted.is_some(),
                wanted: wanted.map(as_in_class).filter(is_something),
            });
        }
    }
    users
}

/// Settings without any setting are none.
fn is_something(kubelet: &Value) -> bool {
    kubelet.as_object().is_some_and(|map| !map.is_empty())
}

/// The EC2NodeClass that a pool refers to.
fn class_of(pool: &Value) -> Option<String> {
    let reference = at(pool, REFERENCE)?;
    let is_ec2 = (text(reference, "group"), text(reference, "kind")) == class_reference::DEFAULT;
    is_ec2.then(|| text(reference, "name").to_owned())
}

fn other_provider(pool: &Value, is_old: bool, subject: &str, list: &mut Vec<super::Remark>) {
    if is_old && annotations::get(pool, KUBELET_CONVERSION).is_some() {
        let mut remarks = Remarks { subject, list };
        remarks.hand(
            "spec.template.spec.kubelet",
            format!(
                "kubelet settings belong to the node class in v1, and this class is not of AWS: they \
                 are in the annotation {KUBELET_CONVERSION}; move them"
            ),
        );
    }
}

fn class_names(drafts: &[Draft]) -> BTreeSet<String> {
    let objects = drafts.iter().flat_map(|draft| &draft.objects);
    objects
        .filter(|object| text(object, "kind") == "EC2NodeClass")
        .map(|class| text(&class["metadata"], "name").to_owned())
        .collect()
}

/// Where a class is: which draft, and which of its objects.
fn place_of(drafts: &[Draft], class: &str) -> Option<(usize, usize)> {
    drafts.iter().enumerate().find_map(|(draft_ix, draft)| {
        let mut objects = draft.objects.iter();
        let ix = objects.position(|object| {
            text(object, "kind") == "EC2NodeClass" && text(&object["metadata"], "name") == class
        });
        Some((draft_ix, ix?))
    })
}

/// Gives a class its settings, and further settings to copies of it.
fn settle(
    drafts: &mut [Draft],
    (draft, object): (usize, usize),
    users: Vec<User>,
    names: &mut BTreeSet<String>,
) {
    let class = drafts[draft].objects[object].clone();
    let has = at(&class, KUBELET).cloned();
    let mut sets: Vec<(Option<Value>, Vec<User>)> = Vec::new();
    for mut user in users {
        if !user.says {
            user.wanted.clone_from(&has);
        }
        match sets.iter_mut().find(|(wanted, _)| *wanted == user.wanted) {
            Some((_, users)) => users.push(user),
            None => sets.push((user.wanted.clone(), vec![user])),
        }
    }
    // The class stays as it is for those that want it so, if there are any.
    let first = sets
        .iter()
        .position(|(wanted, _)| *wanted == has)
        .unwrap_or(0);
    let (wanted, users) = sets.remove(first);
    let name = text(&class["metadata"], "name").to_owned();
    if let Some(kubelet) = wanted.filter(|wanted| Some(wanted) != has.as_ref()) {
        put(&mut drafts[draft].objects[object], KUBELET, kubelet);
        drafts[draft].is_changed = true;
    }
    for user in users.iter().filter(|user| user.says) {
        told(
            drafts,
            user,
            format!("is spec.kubelet of the EC2NodeClass {name} now"),
        );
    }
    for (n_copies, (wanted, users)) in sets.into_iter().enumerate() {
        let copy_name = free_name(&name, &users[0].pool, names);
        let copy = copy(&class, &copy_name, wanted);
        drafts[draft].objects.insert(object + 1 + n_copies, copy);
        drafts[draft].is_changed = true;
        let said = format!(
            "is spec.kubelet of the EC2NodeClass {copy_name} now, a copy of {name}, which other pools \
             use with other settings"
        );
        for user in users {
            refer(drafts, &user, &copy_name);
            told(drafts, &user, said.clone());
        }
    }
}

fn told(drafts: &mut [Draft], user: &User, message: String) {
    let draft = &mut drafts[user.draft];
    let path = match draft.old {
        Some(OldKind::Provisioner) => "spec.kubeletConfiguration",
        _ => "spec.template.spec.kubelet",
    };
    let mut remarks = Remarks {
        subject: &draft.subject,
        list: &mut draft.remarks,
    };
    remarks.note(path, message);
}

/// Points a pool and its claims at another class.
fn refer(drafts: &mut [Draft], user: &User, class: &str) {
    drafts[user.draft].is_changed = true;
    for draft in drafts {
        let is_changed = draft.is_changed;
        for object in &mut draft.objects {
            let label = at(object, &["metadata", "labels", NODE_POOL]).and_then(Value::as_str);
            match text(object, "kind") {
                "NodePool" if text(&object["metadata"], "name") == user.pool => {
                    put(
                        object,
                        &["spec", "template", "spec", "nodeClassRef", "name"],
                        class.into(),
                    );
                }
                "NodeClaim" if is_changed && label == Some(user.pool.as_str()) => {
                    put(object, &["spec", "nodeClassRef", "name"], class.into());
                }
                _ => {}
            }
        }
    }
}

/// A class like another one, with a name and settings of its own.
fn copy(class: &Value, name: &str, kubelet: Option<Value>) -> Value {
    let mut copy = class.clone();
    take(&mut copy, &["status"]);
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "ownerReferences",
        "selfLink",
    ] {
        take(&mut copy, &["metadata", field]);
    }
    put(&mut copy, &["metadata", "name"], name.into());
    match kubelet {
        Some(kubelet) => put(&mut copy, KUBELET, kubelet),
        None => drop(take(&mut copy, KUBELET)),
    }
    copy
}

/// A name that no class has yet.
fn free_name(class: &str, pool: &str, names: &mut BTreeSet<String>) -> String {
    let base: String = format!("{class}-{pool}")
        .chars()
        .take(NAME_MAX - 4)
        .collect();
    let base = base.trim_end_matches(['-', '.']);
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut candidates = std::iter::once(base.to_owned()).chain(numbered);
    let name = candidates
        .find(|name| !names.contains(name))
        .unwrap_or_default();
    names.insert(name.clone());
    name
}

/// The class is not there to take the settings: they stay in an annotation.
fn without_class(drafts: &mut [Draft], user: User, class: &str) {
    let Some(kubelet) = user.wanted.clone().filter(|_| user.says) else {
        return;
    };
    let text = kubelet.to_string();
    for object in &mut drafts[user.draft].objects {
        if at(object, &["kind"]).is_some_and(|kind| kind == "NodePool") {
            annotations::set(object, KUBELET_CONVERSION, text.clone());
        }
    }
    let draft = &mut drafts[user.draft];
    let path = match draft.old {
        Some(OldKind::Provisioner) => "spec.kubeletConfiguration",
        _ => "spec.template.spec.kubelet",
    };
    let mut remarks = Remarks {
        subject: &draft.subject,
        list: &mut draft.remarks,
    };
    remarks.hand(
        path,
        format!(
            "belongs to the EC2NodeClass {class} in v1, which is not in the input: give both, or write \
             under its spec.kubelet: {text}"
        ),
    );
}
