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
        let in_force = crds.filter(|definition| crd::is_established(definition));
        for kind in in_force.flat_map(crd::custom_kinds) {
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

    /// What clients are told who use a kind that is on its way out.
    #[must_use]
    pub fn deprecation(&self, kind: &Kind) -> Option<String> {
        if kind.is("", "Endpoints") {
            let text =
                "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
            return Some(text.to_owned());
        }
        let is_out = |kind: &Kind| kind.custom.as_ref().map(|v| v["deprecated"] == true);
        if is_out(kind) != Some(true) {
            return None;
        }
        let own = kind.custom.as_ref()?["deprecationWarning"].as_str();
        if let Some(text) = own {
            return Some(text.to_owned());
        }
        let others = self.all().filter(|other| {
            (&other.group, &other.kind) == (&kind.group, &kind.kind) && is_out(other) == Some(false)
        });
        let text = format!("{} {} is deprecated", kind.api_version(), kind.kind);
        Some(match others.min_by_key(|k| crd::version_rank(&k.version)) {
            Some(best) => format!("{text}; use {} {}", best.api_version(), best.kind),
            None => text,
        })
    }

    /// True when a group is one of definitions, which a router of its own serves.
    #[must_use]
    pub fn is_custom(&self, group: &str) -> bool {
        let mut own = self.kinds.values().filter(|s| s.kind.group == group);
        own.any(|served| served.kind.custom.is_some())
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
