//! Owners of pods, one copy each: a hundred thousand pods have a few hundred.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use joiner_model::Name;
use serde_json::Value;

use super::meta::{Owner, list};
use crate::names::Names;
use crate::objects;
use crate::wire::tells_pods;

/// Owners that nobody has any more are looked for when there are this many more than at the last
/// time.
const GROWTH: usize = 1_000;

/// The owner of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOwner {
    owner: Owner,
    /// What the planner calls it.
    pub(super) planned: objects::Owner,
    /// It is in control, and its selector tells its pods.
    pub(super) tells_pods: bool,
}

impl Deref for PodOwner {
    type Target = Owner;

    fn deref(&self) -> &Owner {
        &self.owner
    }
}

/// One copy of every owner.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    by_uid: HashMap<Name, Arc<PodOwner>>,
    n_at_last: usize,
}

impl Owners {
    /// The owner in control of an object of a namespace, or the first there is.
    pub(super) fn of(
        &mut self,
        object: &Value,
        namespace: &str,
        names: &mut Names,
    ) -> Option<Arc<PodOwner>> {
        let owners = || list(&object["metadata"]["ownerReferences"]);
        let in_control = owners().find(|own| own["controller"].as_bool() == Some(true));
        let owner = Owner::read(in_control.or_else(|| owners().next())?, names);
        if let Some(known) = self.by_uid.get(&owner.uid)
            && known.owner == owner
        {
            return Some(Arc::clone(known));
        }
        if self.by_uid.len() >= self.n_at_last * 2 + GROWTH {
            self.by_uid.retain(|_, own| Arc::strong_count(own) > 1);
            self.n_at_last = self.by_uid.len();
        }
        let owner = Arc::new(PodOwner {
            planned: objects::Owner {
                kind: owner.kind.clone(),
                name: names.get(&format!("{namespace}/{}", owner.name)),
            },
            tells_pods: owner.controller && tells_pods(&owner.api_version, &owner.kind),
            owner,
        });
        self.by_uid.insert(owner.uid.clone(), Arc::clone(&owner));
        Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str) -> Value {
        json!({"metadata": {"ownerReferences": [
            {"kind": "Other", "uid": "other"},
            {"kind": "ReplicaSet", "name": "web", "uid": uid, "controller": true}]}})
    }

    #[test]
    fn pods_of_one_owner_share_it() {
        let (mut owners, mut names) = (Owners::default(), Names::default());
        let one = owners.of(&pod("u"), "default", &mut names).unwrap();
        let two = owners.of(&pod("u"), "default", &mut names).unwrap();
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!((&*one.kind, &*one.name), ("ReplicaSet", "web"));
        assert_eq!(&*one.planned.name, "default/web");
        assert_eq!(owners.of(&json!({}), "default", &mut names), None);
    }

    #[test]
    fn owners_without_pods_are_forgotten() {
        let (mut owners, mut names) = (Owners::default(), Names::default());
        let kept = owners.of(&pod("kept"), "default", &mut names);
        for n in 0..10 * GROWTH {
            owners.of(&pod(&n.to_string()), "default", &mut names);
        }
        assert!(owners.by_uid.len() <= GROWTH + 2, "{}", owners.by_uid.len());
        assert!(kept.is_some_and(|own| owners.by_uid.contains_key(&own.uid)));
    }
}
