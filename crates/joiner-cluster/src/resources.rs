//! Names of kinds that are only known at run time.

use std::collections::BTreeMap;

use crate::view::Resource;

/// Turns groups and plurals, also of custom resources, into [`Resource`]s.
#[derive(Default)]
pub(crate) struct Resources(BTreeMap<(String, String), Resource>);

impl Resources {
    /// The kind with this group and plural.
    pub(crate) fn named(&mut self, kind: &(String, String)) -> Resource {
        if let Some(resource) = self.0.get(kind) {
            return *resource;
        }
        // Kinds are few and mostly live as long as the process: each leaks its name once.
        let group: &'static str = Box::leak(kind.0.clone().into_boxed_str());
        let plural: &'static str = Box::leak(kind.1.clone().into_boxed_str());
        self.0.insert(kind.clone(), (group, plural));
        (group, plural)
    }
}
