//! Defaults of namespaces, nodes, storage, secrets, roles and definitions.

use serde_json::{Map, Value, json};

use super::{existing, items, put, text, under};

pub(super) fn namespace(map: &mut Map<String, Value>) {
    under(map, "metadata", |meta| {
        let name = text(meta, "name").to_owned();
        if !name.is_empty() {
            under(meta, "labels", |labels| {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
            });
        }
    });
    under(map, "status", |status| put(status, "phase", "Active"));
}

/// The range of a node's pods has two fields, of which the second can hold one more.
pub(super) fn node(map: &mut Map<String, Value>) {
    if let Some(spec) = existing(map, "spec") {
        let range = text(spec, "podCIDR").to_owned();
        let first = spec
            .get("podCIDRs")
            .and_then(|list| list[0].as_str())
            .map(str::to_owned);
        match first {
            Some(first) if range.is_empty() => put(spec, "podCIDR", first),
            None if !range.is_empty() => put(spec, "podCIDRs", json!([range])),
            Some(_) | None => {}
        }
    }
    under(map, "status", |status| {
        if let Some(capacity) = status.get("capacity").cloned() {
            put(status, "allocatable", capacity);
        }
    });
}

/// Text is turned into data; data of the same key is replaced.
pub(super) fn secret(map: &mut Map<String, Value>) {
    put(map, "type", "Opaque");
    let Some(Value::Object(texts)) = map.remove("stringData") else {
        return;
    };
    under(map, "data", |data| {
        for (key, value) in texts {
            let bytes = value.as_str().unwrap_or("").as_bytes();
            data.insert(key, Value::from(base64(bytes)));
        }
    });
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let sign = SIGNS[(word >> (18 - 6 * index) & 63) as usize];
            text.push(if index <= chunk.len() {
                char::from(sign)
            } else {
                '='
            });
        }
    }
    text
}

pub(super) fn volume(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        put(spec, "persistentVolumeReclaimPolicy", "Retain");
        put(spec, "volumeMode", "Filesystem");
        if let Some(path) = existing(spec, "hostPath") {
            put(path, "type", "");
        }
    });
    under(map, "status", |status| put(status, "phase", "Pending"));
}

pub(super) fn claim(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| put(spec, "volumeMode", "Filesystem"));
    under(map, "status", |status| put(status, "phase", "Pending"));
}

pub(super) fn limit_range(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        for item in items(spec, "limits") {
            if text(item, "type") != "Container" {
                continue;
            }
            for (to, from) in [
                ("default", "max"),
                ("defaultRequest", "default"),
                ("defaultRequest", "min"),
            ] {
                let Some(Value::Object(amounts)) = item.get(from).cloned() else {
                    continue;
                };
                under(item, to, |target| {
                    for (name, amount) in amounts {
                        target.entry(name).or_insert(amount);
                    }
                });
            }
        }
    });
}

pub(super) fn storage_class(map: &mut Map<String, Value>) {
    put(map, "reclaimPolicy", "Delete");
    put(map, "volumeBindingMode", "Immediate");
}

pub(super) fn csi_driver(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        put(spec, "attachRequired", true);
        put(spec, "podInfoOnMount", false);
        put(spec, "volumeLifecycleModes", json!(["Persistent"]));
        put(spec, "storageCapacity", false);
        put(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        put(spec, "requiresRepublish", false);
        put(spec, "seLinuxMount", false);
    });
}

/// Subjects and roles belong to the group of rules unless they say otherwise.
pub(super) fn rbac(map: &mut Map<String, Value>) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    for subject in items(map, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            put(subject, "apiGroup", GROUP);
        }
    }
    if let Some(role) = existing(map, "roleRef") {
        let unset = text(role, "apiGroup").is_empty();
        if unset {
            role.insert("apiGroup".to_owned(), GROUP.into());
        }
    }
}

/// Names that follow from the kind, and the conversion that does nothing.
pub(super) fn definition(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        put(spec, "conversion", json!({"strategy": "None"}));
        under(spec, "names", |names| {
            let kind = text(names, "kind").to_owned();
            if !kind.is_empty() {
                put(names, "singular", kind.to_lowercase());
                put(names, "listKind", format!("{kind}List"));
            }
        });
    });
}
