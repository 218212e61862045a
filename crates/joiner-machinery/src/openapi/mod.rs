//! The schemas that clients ask for before they send anything: `/openapi/v3`.
//!
//! kubectl reads them to see whether the server checks fields, to compute strategic merge patches, and
//! to explain kinds. The older `/openapi/v2` is not here: kubectl takes it as protobuf only, and does
//! without when it is not found.

mod paths;
mod schemas;
mod words;

use serde_json::{Map, Value, json};

use crate::discovery;
use crate::kinds::Kind;

/// The index: where to find the document of each group and version. The hash in an address changes
/// with the document, so that clients may keep what they have read.
#[must_use]
pub fn index(kinds: &[&Kind]) -> Value {
    let mut paths = Map::new();
    for group in discovery::group_names(kinds) {
        for version in discovery::versions(kinds, group) {
            let of = select(kinds, group, version);
            let path = if group.is_empty() {
                format!("api/{version}")
            } else {
                format!("apis/{group}/{version}")
            };
            let address = format!("/openapi/v3/{path}?hash={:016X}", fingerprint(&of));
            paths.insert(path, json!({"serverRelativeURL": address}));
        }
    }
    json!({"paths": paths})
}

/// The document of a group and version; none when nothing is served there.
#[must_use]
pub fn document(kinds: &[&Kind], group: &str, version: &str) -> Option<Value> {
    let of = select(kinds, group, version);
    if of.is_empty() {
        return None;
    }
    let mut all = schemas::Schemas::default();
    let mut paths = Map::new();
    for kind in &of {
        let schema = all.add_kind(kind);
        paths::add(&mut paths, kind, &schema);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": all.into_json()},
    }))
}

fn select<'k>(kinds: &[&'k Kind], group: &str, version: &str) -> Vec<&'k Kind> {
    let matching = |kind: &&&Kind| kind.group == group && kind.version == version;
    let mut found: Vec<&Kind> = kinds.iter().filter(matching).copied().collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    found
}

/// Changes whenever the document does: with the kinds, their schemas, and this program.
fn fingerprint(kinds: &[&Kind]) -> u64 {
    let mut hash = Fingerprint::new();
    hash.add(env!("CARGO_PKG_VERSION"));
    for kind in kinds {
        hash.add(&kind.plural);
        hash.add(&kind.kind);
        if let Some(version) = &kind.custom {
            hash.add(&version["schema"].to_string());
            hash.add(&version["subresources"].to_string());
        }
    }
    hash.0
}

/// FNV-1a: nobody attacks it, and it is the same on every machine.
struct Fingerprint(u64);

impl Fingerprint {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests;
