//! Finalizers of ours.
//!
//! The list is written as a whole, so each patch carries the version that it was made from: it fails
//! when the object was changed meanwhile, and is made anew.

use joiner_state::live::Meta;
use serde_json::{Value, json};

/// The patch that adds a finalizer; none when it is there.
#[must_use]
pub fn add(meta: &Meta, finalizer: &str) -> Option<Value> {
    if meta.has_finalizer(finalizer) {
        return None;
    }
    let known = meta.finalizers.iter().map(AsRef::as_ref);
    Some(patch(meta, known.chain([finalizer])))
}

/// The patch that removes a finalizer; none when it is not there.
#[must_use]
pub fn remove(meta: &Meta, finalizer: &str) -> Option<Value> {
    if !meta.has_finalizer(finalizer) {
        return None;
    }
    let known = meta.finalizers.iter().map(AsRef::as_ref);
    Some(patch(meta, known.filter(|other| *other != finalizer)))
}

fn patch<'f>(meta: &Meta, finalizers: impl Iterator<Item = &'f str>) -> Value {
    json!({"metadata": {
        "resourceVersion": meta.version.to_string(),
        "finalizers": finalizers.collect::<Vec<_>>(),
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finalizer_is_added_and_removed_once_and_others_stay() {
        let meta = |finalizers: &[&str]| Meta {
            version: 7,
            finalizers: finalizers.iter().map(|name| (*name).into()).collect(),
            ..Meta::default()
        };
        let written =
            |all: &[&str]| Some(json!({"metadata": {"resourceVersion": "7", "finalizers": all}}));
        assert_eq!(add(&meta(&["a"]), "b"), written(&["a", "b"]));
        assert_eq!(add(&meta(&["a", "b"]), "b"), None);
        assert_eq!(remove(&meta(&["a", "b", "c"]), "b"), written(&["a", "c"]));
        assert_eq!(remove(&meta(&["a"]), "b"), None);
    }
}
