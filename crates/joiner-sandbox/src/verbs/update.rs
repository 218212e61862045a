//! Replace and patch, of whole objects and of subresources.

use http::StatusCode;
use jiff::Timestamp;
use joiner_machinery::{ApiError, Kind, Reason, Subresource, apply, meta, patch as patches};
use serde_json::{Value, json};

use crate::exchange::{Reply, Request};
use crate::registry::Served;
use crate::server::{OBJECT_MAX, Server};
use crate::store::Inner;
use crate::verbs::create::{By, insert};
use crate::verbs::{About, decode, is_dry_run, remove, special};
use crate::{rules, versions};

/// How a change is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode<'a> {
    pub(crate) manager: &'a str,
    pub(crate) subresource: Option<Subresource>,
    pub(crate) dry_run: bool,
    /// The object has been through server-side apply: its managers are right already.
    pub(crate) applied: bool,
}

/// PUT.
pub(crate) fn replace(
    server: &Server,
    about: &About,
    subresource: Option<Subresource>,
    request: &Request,
) -> Result<Reply, ApiError> {
    let mut object = decode::object(request)?;
    let mode = Mode {
        manager: request.manager(),
        subresource,
        dry_run: is_dry_run(request)?,
        applied: false,
    };
    if subresource == Some(Subresource::Scale) {
        let replicas = object["spec"]["replicas"].clone();
        let version = object["metadata"]["resourceVersion"].clone();
        return scale(server, about, mode, |current| {
            if version.is_string() {
                current["metadata"]["resourceVersion"] = version.clone();
            }
            current["spec"]["replicas"] = replicas.clone();
            Ok(())
        });
    }
    decode::check_type(&about.served, &mut object)?;
    let warnings = rules::read(&about.served, &mut object, request)?;
    let given = meta::name(&object);
    let name = about.name.as_deref().unwrap_or("");
    if !given.is_empty() && given != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    object["metadata"]["name"] = json!(name);
    if let Some(namespace) = &about.namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    let changed = change(server, about, mode, |_, _| Ok(object.clone()))?;
    Ok(Reply::json(StatusCode::OK, &changed).warn(warnings))
}

/// PATCH.
pub(crate) fn patch(
    server: &Server,
    about: &About,
    subresource: Option<Subresource>,
    request: &Request,
) -> Result<Reply, ApiError> {
    if request.body.len() > OBJECT_MAX {
        return Err(decode::too_large());
    }
    let mode = Mode {
        manager: request.manager(),
        subresource,
        dry_run: is_dry_run(request)?,
        applied: false,
    };
    let media = request.media_type();
    if media == "application/apply-patch+yaml" || media == "application/apply-patch+cbor" {
        return apply_patch(server, about, mode, request);
    }
    let body = decode::json(&request.body)?;
    let kind = &about.served.kind;
    if media == "application/strategic-merge-patch+json" && kind.custom.is_some() {
        return Err(decode::unsupported(media));
    }
    let patched = |current: &Value| match media {
        "application/json-patch+json" => patches::json(current, &body),
        "application/merge-patch+json" => patches::merge(current, &body),
        "application/strategic-merge-patch+json" => patches::strategic(kind, current, &body),
        other => Err(decode::unsupported(other)),
    };
    if subresource == Some(Subresource::Scale) {
        return scale(server, about, mode, |current| {
            *current = patched(current)?;
            Ok(())
        });
    }
    let mut warnings = Vec::new();
    let changed = change(server, about, mode, |current, _| {
        let mut object = patched(current)?;
        warnings = rules::read(&about.served, &mut object, request)?;
        check_identity(kind, current, &object)?;
        Ok(object)
    })?;
    Ok(Reply::json(StatusCode::OK, &changed).warn(warnings))
}

/// A patch may not turn an object into another one.
fn check_identity(kind: &Kind, current: &Value, object: &Value) -> Result<(), ApiError> {
    for field in ["name", "namespace"] {
        let (was, is) = (meta::text(current, field), meta::text(object, field));
        if was != is {
            return Err(ApiError::bad_request(format!(
                "metadata.{field} of {} \"{}\" cannot be changed by a patch",
                kind.kind,
                meta::name(current)
            )));
        }
    }
    Ok(())
}

/// Changes the replicas of an object through its scale.
fn scale(
    server: &Server,
    about: &About,
    mode: Mode<'_>,
    edit: impl Fn(&mut Value) -> Result<(), ApiError>,
) -> Result<Reply, ApiError> {
    let kind = &about.served.kind;
    let changed = change(server, about, mode, |current, _| {
        let mut scale = special::scale_of(kind, current)?;
        edit(&mut scale)?;
        special::with_scale(kind, current, &scale)
    })?;
    let scale = special::scale_of(kind, &changed)?;
    Ok(Reply::json(StatusCode::OK, &scale))
}

/// Server-side apply: changes the object, or makes it.
fn apply_patch(
    server: &Server,
    about: &About,
    mode: Mode<'_>,
    request: &Request,
) -> Result<Reply, ApiError> {
    if request.param("fieldManager").is_none_or(str::is_empty) {
        return Err(ApiError::new(
            Reason::Invalid,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        ));
    }
    let mut config = decode::yaml(&request.body)?;
    decode::check_type(&about.served, &mut config)?;
    let warnings = rules::read(&about.served, &mut config, request)?;
    let force = request.flag("force");
    let kind = &about.served.kind;
    let resource = about.served.resource();
    let key = about.key();
    let subresource = mode.subresource.map(special::word);
    let is_there = server.store.with(|s| s.get(&resource, &key).is_some());
    if !is_there {
        if mode.subresource.is_some() {
            return Err(ApiError::not_found(kind, &key.1));
        }
        config["metadata"]["name"] = json!(key.1);
        let writer = apply::Writer {
            manager: mode.manager,
            subresource,
            now: server.clock.now(),
        };
        let object = apply::apply(kind, None, &config, force, &writer)?;
        let by = By {
            manager: mode.manager,
            dry_run: mode.dry_run,
            applied: true,
        };
        let made = insert(
            server,
            &about.served,
            about.namespace.as_deref(),
            object,
            by,
        )?;
        return Ok(Reply::json(StatusCode::CREATED, &made).warn(warnings));
    }
    let mode = Mode {
        applied: true,
        ..mode
    };
    let changed = change(server, about, mode, |current, now| {
        let writer = apply::Writer {
            manager: mode.manager,
            subresource,
            now,
        };
        apply::apply(kind, Some(current), &config, force, &writer)
    })?;
    Ok(Reply::json(StatusCode::OK, &changed).warn(warnings))
}

/// Reads an object, changes it and writes it back, all under the lock.
pub(crate) fn change(
    server: &Server,
    about: &About,
    mode: Mode<'_>,
    edit: impl FnMut(&Value, Timestamp) -> Result<Value, ApiError>,
) -> Result<Value, ApiError> {
    let mut edit = edit;
    let served = &about.served;
    let kind = &served.kind;
    let now = server.clock.now();
    let key = about.key();
    let resource = served.resource();
    let written = server.store.with(|s| {
        let Some(stored) = s.get(&resource, &key).cloned() else {
            return Err(ApiError::not_found(kind, &key.1));
        };
        let before = versions::shown(kind, &stored);
        let mut object = edit(&before, now)?;
        check_current(kind, &before, &object)?;
        keep_system_fields(&before, &mut object);
        let note = rules::Note {
            writer: apply::Writer {
                manager: mode.manager,
                subresource: mode.subresource.map(special::word),
                now,
            },
            applied: mode.applied,
        };
        rules::update(s, served, &before, &mut object, (mode.subresource, &note))?;
        if object.to_string().len() > OBJECT_MAX {
            return Err(decode::too_large());
        }
        if same(&before, &object) || mode.dry_run {
            return Ok(object);
        }
        finish(s, served, &key, object)
    })?;
    if !mode.dry_run && kind.kind == "CustomResourceDefinition" {
        server.reload_kinds();
    }
    Ok(written)
}

/// Writes a changed object, or removes it when the last finalizer of a deleted one is gone.
fn finish(
    store: &mut Inner,
    served: &Served,
    key: &(String, String),
    object: Value,
) -> Result<Value, ApiError> {
    let kind = &served.kind;
    let resource = served.resource();
    let gone = remove::is_finished(kind, &object);
    let stored = store.put(&resource, key, versions::stored(kind, object));
    if gone {
        store.remove(&resource, key);
    }
    Ok(versions::shown(kind, &stored))
}

/// A version or uid in the body must be the current one.
fn check_current(kind: &Kind, before: &Value, object: &Value) -> Result<(), ApiError> {
    let name = meta::name(before);
    let version = meta::text(object, "resourceVersion");
    if !version.is_empty() && version != meta::text(before, "resourceVersion") {
        return Err(ApiError::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        ));
    }
    let uid = meta::uid(object);
    if !uid.is_empty() && uid != meta::uid(before) {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            meta::uid(before)
        );
        return Err(ApiError::conflict(kind, name, &why));
    }
    Ok(())
}

/// Fields of the metadata that only the server writes.
fn keep_system_fields(before: &Value, object: &mut Value) {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "generateName",
        "selfLink",
    ] {
        let kept = &before["metadata"][field];
        if !kept.is_null() {
            object["metadata"][field] = kept.clone();
        } else if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove(field);
        }
    }
}

/// True when nothing has changed but when who owned what.
fn same(before: &Value, object: &Value) -> bool {
    let plain = |value: &Value| {
        let mut value = value.clone();
        if let Some(entries) = value["metadata"]["managedFields"].as_array_mut() {
            entries
                .iter_mut()
                .for_each(|entry| entry["time"] = Value::Null);
        }
        value
    };
    before == object || plain(before) == plain(object)
}
