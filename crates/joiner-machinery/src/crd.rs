//! CustomResourceDefinitions and the kinds they define.
//!
//! *Flow.* A definition is judged by [`crate::validate::create`] like any other object. Once stored, the
//! server writes [`settled_status`], serves the [`custom_kinds`] of what [`is_established`], and
//! compiles one [`CustomRules`] per version, which then completes and judges every custom object. A
//! definition that is deleted stays, [`terminating`], until its last object is gone.

mod definition;
mod judge;
mod life;
mod rules;
mod structure;

use std::sync::Arc;

use serde_json::Value;

use crate::kinds::{Kind, Subresource};
pub(crate) use definition::{definition_causes, definition_update_causes};
pub use life::{FINALIZER, Termination, is_established, settled_status, terminating};
pub use rules::{CustomRules, ScalePaths};

/// The kinds that a definition serves, the preferred version first.
#[must_use]
pub fn custom_kinds(crd: &Value) -> Vec<Kind> {
    let spec = &crd["spec"];
    let text = |key: &str| spec["names"][key].as_str().unwrap_or("").to_owned();
    let texts = |key: &str| {
        let list = spec["names"][key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let versions = spec["versions"].as_array().into_iter().flatten();
    let kind = |version: &Value| {
        let offered = &version["subresources"];
        let mut subresources = Vec::new();
        if !offered["scale"].is_null() {
            subresources.push(Subresource::Scale);
        }
        if !offered["status"].is_null() {
            subresources.push(Subresource::Status);
        }
        Kind {
            group: spec["group"].as_str().unwrap_or("").to_owned(),
            version: version["name"].as_str().unwrap_or("").to_owned(),
            kind: text("kind"),
            plural: text("plural"),
            singular: text("singular"),
            short_names: texts("shortNames"),
            categories: texts("categories"),
            namespaced: spec["scope"] == "Namespaced",
            subresources,
            custom: Some(Arc::new(version.clone())),
        }
    };
    let mut kinds: Vec<Kind> = versions.filter(|v| v["served"] == true).map(kind).collect();
    kinds.sort_by_cached_key(|kind| version_rank(&kind.version));
    kinds
}

/// Released versions before betas before alphas before words, each from the highest number down.
#[must_use]
pub fn version_rank(version: &str) -> (u8, i64, i64, String) {
    let word = || (3, 0, 0, version.to_owned());
    let Some(rest) = version.strip_prefix('v') else {
        return word();
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let Ok(major) = rest[..end].parse::<i64>() else {
        return word();
    };
    let (level, minor) = match &rest[end..] {
        "" => return (0, -major, 0, String::new()),
        tail if tail.starts_with("beta") => (1, &tail[4..]),
        tail if tail.starts_with("alpha") => (2, &tail[5..]),
        _ => return word(),
    };
    match minor.parse::<i64>() {
        Ok(minor) => (level, -major, -minor, String::new()),
        Err(_) => word(),
    }
}

/// The name of the version that objects are stored in.
#[must_use]
pub fn storage_version(crd: &Value) -> Option<&str> {
    let mut versions = crd["spec"]["versions"].as_array()?.iter();
    versions.find(|v| v["storage"] == true)?["name"].as_str()
}

#[cfg(test)]
#[path = "crd/crd_tests.rs"]
mod tests;
