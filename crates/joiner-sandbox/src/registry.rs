//! The kinds that are served now: those built in, and those that CRDs define.

use std::collections::BTreeMap;
use std::sync::Arc;

use joiner_machinery::kinds;
use joiner_machinery::{ApiError, Kind, crd};
use serde_json::Value;

use crate::store::Resource;

/// Group, version and plural.
type Name = (String, String, String);

/// Kinds by their names, with the rules of custom ones.
#[derive(Debug)]
pub struct Registry {
    kinds: BTreeMap<Name, Arc<Served>>,
}

/// A kind that is served.
#[derive(Debug)]
pub struct Served {
    /// The kind.
    pub kind: Kind,
    /// Schema and rules of a custom kind.
    pub rules: Option<crd::CustomRules>,
}

impl Served {
    /// Under which name its objects are stored: versions of a kind share one place, and so do the
    /// two kinds of events.
    #[must_use]
    pub fn resource(&self) -> Resource {
        let (group, plural) = self.kind.storage();
        (group.to_owned(), plural.to_owned())
    }
}

impl Registry {
    /// The built-in kinds and those of these CRDs; a CRD whose schema does not compile is left out,
    /// as admission has refused it.
    #[must_use]
    pub fn new<'c>(crds: impl Iterator<Item = &'c Value>) -> Self {
        let mut all: BTreeMap<Name, Arc<Served>> = BTreeMap::new();
        for kind in kinds::builtin() {
            let served = Served { kind, rules: None };
            all.insert(name(&served.kind), Arc::new(served));
        }
        for kind in crds.flat_map(crd::custom_kinds) {
            let version = kind.custom.clone().unwrap_or_default();
            let Ok(rules) = crd::CustomRules::compile(&version) else {
                continue;
            };
            let served = Served {
                rules: Some(rules),
                kind,
            };
            all.entry(name(&served.kind))
                .or_insert_with(|| Arc::new(served));
        }
        Self { kinds: all }
    }

    /// A kind by group, version and plural.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Result<Arc<Served>, ApiError> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        let found = self.kinds.get(&key).cloned();
        found.ok_or_else(ApiError::no_such_resource)
    }

    /// The kind that controllers mean: any served version will do.
    #[must_use]
    pub fn any_version(&self, group: &str, plural: &str) -> Option<Arc<Served>> {
        let mut all = self.kinds.iter();
        let found = all.find(|((g, _, p), _)| g == group && p == plural);
        found.map(|(_, served)| Arc::clone(served))
    }

    /// True when any kind of the group is served.
    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        self.kinds.keys().any(|(own, _, _)| own == group)
    }

    /// All kinds, in order of group, version and plural.
    pub fn all(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.values().map(|served| &served.kind)
    }
}

fn name(kind: &Kind) -> Name {
    (
        kind.group.clone(),
        kind.version.clone(),
        kind.plural.clone(),
    )
}
