//! Lists as they were: pages that belong together, and exact versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use joiner_cluster::ObjectKey;
use joiner_machinery::{ApiError, Reason, meta};
use serde_json::{Value, json};

use crate::exchange::Request;
use crate::server::Server;
use crate::store::{Inner, Resource};
use crate::verbs::{About, options};
use crate::watch::Wanted;

/// Where a list goes on.
pub(crate) struct Mark {
    /// The revision of the first page; none when the rest is wanted as it is now.
    revision: Option<u64>,
    /// The last object of the page before.
    last: ObjectKey,
}

/// The objects that a list is about, and the revision that they are of.
pub(crate) fn chosen(
    server: &Server,
    about: &About,
    request: &Request,
    wanted: &Wanted,
    from: Option<&Mark>,
) -> Result<(Vec<Arc<Value>>, u64), ApiError> {
    let resource = about.served.resource();
    let exact = match request.param("resourceVersionMatch") {
        Some("Exact") => Some(options::version(
            request.param("resourceVersion").unwrap_or(""),
        )?),
        Some(_) | None => None,
    };
    server.store.with(|s| {
        let at = from.map_or(exact, |mark| mark.revision);
        let mut past = BTreeMap::new();
        if let Some(at) = at {
            past = undone(s, &resource, at).ok_or_else(|| match from {
                Some(mark) => expired(&mark.last),
                None => ApiError::new(
                    Reason::Expired,
                    "The resourceVersion for the provided list is too old.",
                ),
            })?;
        }
        let is_after = |key: &ObjectKey| from.is_none_or(|mark| *key > mark.last);
        let now = s.objects(&resource).into_iter().flatten();
        let now = now.filter(|(key, _)| !past.contains_key(*key));
        let mut all: Vec<(&ObjectKey, &Arc<Value>)> = now
            .chain(past.iter().filter_map(|(k, o)| Some((k, o.as_ref()?))))
            .filter(|(key, object)| is_after(key) && wanted(object))
            .collect();
        if !past.is_empty() {
            all.sort_by_key(|(key, _)| *key);
        }
        let all = all.into_iter().map(|(_, object)| Arc::clone(object));
        Ok((all.collect(), at.unwrap_or_else(|| s.revision())))
    })
}

/// What has changed after a revision, as it was then; nothing when that is no longer known.
fn undone(
    store: &Inner,
    resource: &Resource,
    revision: u64,
) -> Option<BTreeMap<ObjectKey, Option<Arc<Value>>>> {
    let mut past = BTreeMap::new();
    if store.revision_of(resource) <= revision && revision >= store.compacted() {
        return Some(past);
    }
    for change in store.changes_since(resource, revision)? {
        let object = change.object();
        let key = (
            meta::namespace(&object).to_owned(),
            meta::name(&object).to_owned(),
        );
        past.entry(key).or_insert_with(|| change.before());
    }
    Some(past)
}

/// 410, with a token that goes on from there regardless.
fn expired(last: &ObjectKey) -> ApiError {
    let mut error = ApiError::new(
        Reason::Expired,
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.metadata = json!({"continue": encoded("now", last)});
    error
}

/// Where a list goes on after an object.
pub(crate) fn token(revision: u64, last: &Value) -> String {
    let last = (
        meta::namespace(last).to_owned(),
        meta::name(last).to_owned(),
    );
    encoded(&revision.to_string(), &last)
}

/// Revision, namespace and name, in hexadecimal so that nobody reads meaning into it.
fn encoded(revision: &str, (namespace, name): &ObjectKey) -> String {
    let text = format!("{revision}\n{namespace}\n{name}");
    text.bytes().map(|b| format!("{b:02x}")).collect()
}

/// Reads a token.
pub(crate) fn resume(token: &str) -> Result<Mark, ApiError> {
    let bad = || {
        ApiError::bad_request(
            "invalid continue token: continue key is not valid: it is not one of ours",
        )
    };
    let bytes: Option<Vec<u8>> = (0..token.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(token.get(i..i + 2)?, 16).ok())
        .collect();
    let text = String::from_utf8(bytes.ok_or_else(bad)?).map_err(|_| bad())?;
    let mut parts = text.split('\n');
    let (Some(revision), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(bad());
    };
    let revision = match revision {
        "now" => None,
        number => Some(number.parse().map_err(|_| bad())?),
    };
    Ok(Mark {
        revision,
        last: (namespace.to_owned(), name.to_owned()),
    })
}
