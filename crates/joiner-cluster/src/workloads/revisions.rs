//! ControllerRevisions: the templates that a DaemonSet or StatefulSet had, so that it can go back.

use joiner_machinery::meta;
use serde_json::{Value, json};

use super::owned::{Children, Owner};
use crate::fields;
use crate::names::{template_digest, template_hash};
use crate::view::{Action, Resource, View};

/// The kind.
pub(crate) const REVISIONS: Resource = ("apps", "controllerrevisions");
/// Revisions without pods that are kept when the workload does not say.
const KEPT: i64 = 10;

/// The template of a workload as one of its revisions.
pub(crate) struct Revision {
    /// The object's name, `NAME-HASH`.
    pub(crate) name: String,
    /// The hash alone.
    pub(crate) hash: String,
}

/// All revisions of a workload, oldest first.
pub(crate) struct History<'a> {
    all: Vec<&'a Value>,
    /// The one with the workload's template.
    pub(crate) update: Revision,
}

impl<'a> History<'a> {
    /// Finds the revision of the workload's template, or creates it. A template that comes back
    /// gets a number above all others.
    pub(crate) fn follow(
        view: &View<'_>,
        children: &'a Children,
        owner: &Owner<'_>,
        actions: &mut Vec<Action>,
    ) -> Self {
        let workload = owner.object;
        let owned = children.owned(meta::uid(workload));
        let mut all: Vec<&Value> = owned.map(|child| &*child.object).collect();
        all.sort_by_key(|revision| (number(revision), meta::name(revision)));
        let template = &workload["spec"]["template"];
        let digest = template_digest(template);
        let last = all.last().map_or(0, |revision| number(revision));
        let same = |revision: &&&Value| template_digest(&restored(revision)) == digest;
        let update = match all.iter().rfind(same) {
            Some(object) => {
                if number(object) < last {
                    let patch = json!({"revision": last + 1});
                    actions.push(fields::patch(REVISIONS, object, patch));
                }
                let name = meta::name(object);
                let hash = name.rsplit('-').next().unwrap_or(name);
                Revision {
                    name: name.to_owned(),
                    hash: hash.to_owned(),
                }
            }
            None => {
                let (name, hash) = free_name(view, workload, digest);
                // What is made for one that is about to go would keep it from going.
                if !meta::is_deleting(workload) {
                    let object = new_object(owner, &name, &hash, last + 1);
                    actions.push(Action::Create(REVISIONS, object));
                }
                Revision { name, hash }
            }
        };
        Self { all, update }
    }

    /// A revision by name.
    pub(crate) fn find(&self, name: &str) -> Option<&'a Value> {
        self.all
            .iter()
            .copied()
            .find(|revision| meta::name(revision) == name)
    }

    /// Deletes the oldest revisions that nobody uses beyond the history that is to be kept.
    pub(crate) fn clean_up(
        &self,
        workload: &Value,
        is_used: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = Action> {
        let kept = fields::count(&workload["spec"]["revisionHistoryLimit"], KEPT);
        let mut unused = self.all.clone();
        unused.retain(|revision| {
            let name = meta::name(revision);
            name != self.update.name && !is_used(name) && !meta::is_deleting(revision)
        });
        let surplus = usize::try_from(unused.len() as i64 - kept).unwrap_or(0);
        let surplus = unused.into_iter().take(surplus);
        surplus.map(|revision| fields::delete(REVISIONS, revision, None))
    }
}

/// The pod template that a revision holds.
pub(crate) fn restored(revision: &Value) -> Value {
    let mut template = revision["data"]["spec"]["template"].clone();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    template
}

fn number(revision: &Value) -> i64 {
    fields::count(&revision["revision"], 0)
}

/// A name that no other object has: hashes may meet.
fn free_name(view: &View<'_>, workload: &Value, digest: u64) -> (String, String) {
    let mut collisions = 0;
    loop {
        let hash = template_hash(digest, collisions);
        let name = format!("{}-{hash}", meta::name(workload));
        let taken = view.get(REVISIONS, meta::namespace(workload), &name);
        if taken.is_none() || collisions == 16 {
            return (name, hash);
        }
        collisions += 1;
    }
}

fn new_object(owner: &Owner<'_>, name: &str, hash: &str, revision: i64) -> Value {
    let workload = owner.object;
    let mut template = workload["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": meta::namespace(workload),
            "labels": workload["spec"]["template"]["metadata"]["labels"],
            "ownerReferences": [owner.reference()],
        },
        "data": {"spec": {"template": template}},
        "revision": revision,
    });
    let label = match owner.kind {
        "DaemonSet" => "controller-revision-hash",
        _ => "controller.kubernetes.io/hash",
    };
    super::pods::label(&mut object, label, hash);
    let annotations = &workload["metadata"]["annotations"];
    if annotations.is_object() {
        object["metadata"]["annotations"] = annotations.clone();
    }
    object
}
