//! Delete: grace periods, finalizers, propagation, whole collections.

use std::sync::Arc;

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use joiner_machinery::{ApiError, Kind, Reason, meta};
use serde_json::{Value, json};

use crate::exchange::{Reply, Request};
use crate::server::Server;
use crate::store::Inner;
use crate::verbs::{About, decode, is_dry_run, read};
use crate::versions;

/// How something is deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct How {
    pub(crate) grace_secs: Option<u64>,
    pub(crate) propagation: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) dry_run: bool,
}

impl How {
    fn read(request: &Request) -> Result<Self, ApiError> {
        let body = decode::options(request)?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let given = request.param("gracePeriodSeconds").map(str::to_owned);
        let grace = match (&body["gracePeriodSeconds"], given) {
            (Value::Null, None) => None,
            (Value::Null, Some(text)) => Some(text.parse::<i64>().map_err(|_| {
                ApiError::bad_request(format!("gracePeriodSeconds: \"{text}\" is not a number"))
            })?),
            (value, _) => Some(value.as_i64().ok_or_else(|| {
                ApiError::bad_request("gracePeriodSeconds: must be a whole number")
            })?),
        };
        let grace_secs = match grace {
            None => None,
            Some(secs) => Some(u64::try_from(secs).map_err(|_| {
                ApiError::new(
                    Reason::Invalid,
                    "gracePeriodSeconds: Invalid value: must be greater than or equal to 0",
                )
            })?),
        };
        let propagation = text(&body["propagationPolicy"])
            .or_else(|| request.param("propagationPolicy").map(str::to_owned));
        if let Some(policy) = &propagation
            && !matches!(policy.as_str(), "Background" | "Foreground" | "Orphan")
        {
            return Err(ApiError::new(
                Reason::Invalid,
                format!(
                    "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"{policy}\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                ),
            ));
        }
        let in_body = body["dryRun"].as_array().is_some_and(|all| !all.is_empty());
        Ok(Self {
            grace_secs,
            propagation,
            uid: text(&body["preconditions"]["uid"]),
            version: text(&body["preconditions"]["resourceVersion"]),
            dry_run: is_dry_run(request)? || in_body,
        })
    }
}

/// DELETE of one object.
pub(crate) fn delete(server: &Server, about: &About, request: &Request) -> Result<Reply, ApiError> {
    let how = How::read(request)?;
    let answer = delete_one(server, about, &how)?;
    Ok(Reply::json(StatusCode::OK, &answer))
}

/// DELETE of all objects that selectors choose.
pub(crate) fn delete_collection(
    server: &Server,
    about: &About,
    request: &Request,
) -> Result<Reply, ApiError> {
    let how = How::read(request)?;
    let wanted = read::wanted(about, request)?;
    let resource = about.served.resource();
    let found: Vec<Arc<Value>> = server.store.with(|s| {
        let all = s.objects(&resource).into_iter().flat_map(|o| o.values());
        all.filter(|object| wanted(object)).cloned().collect()
    });
    let kind = &about.served.kind;
    let mut items = Vec::new();
    for object in found {
        let namespace = meta::namespace(&object);
        let one = About {
            served: Arc::clone(&about.served),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: Some(meta::name(&object).to_owned()),
        };
        match delete_one(server, &one, &how) {
            Err(error) if error.reason != Reason::NotFound => return Err(error),
            Ok(_) | Err(_) => items.push(versions::shown(kind, &object)),
        }
    }
    let revision = server.store.with(|s| s.revision());
    let list = json!({"kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
        "metadata": {"resourceVersion": revision.to_string()}, "items": items});
    Ok(Reply::json(StatusCode::OK, &list))
}

/// Deletes an object, or marks it when something has to happen first.
pub(crate) fn delete_one(server: &Server, about: &About, how: &How) -> Result<Value, ApiError> {
    let kind = &about.served.kind;
    let resource = about.served.resource();
    let key = about.key();
    let now = server.clock.now();
    let answer = server.store.with(|s| {
        let Some(stored) = s.get(&resource, &key).cloned() else {
            return Err(ApiError::not_found(kind, &key.1));
        };
        check(kind, &stored, how)?;
        let marked = marked(kind, &stored, how, now);
        if how.dry_run {
            return Ok(success(kind, &stored));
        }
        if is_finished(kind, &marked) {
            remove(s, &resource, &key, &stored);
            return Ok(if returns_object(kind) {
                versions::shown(kind, &marked)
            } else {
                success(kind, &stored)
            });
        }
        if marked == *stored {
            return Ok(versions::shown(kind, &stored));
        }
        let kept = s.put(&resource, &key, marked);
        Ok(versions::shown(kind, &kept))
    })?;
    if kind.kind == "CustomResourceDefinition" {
        server.reload_kinds();
    }
    Ok(answer)
}

fn remove(
    store: &mut Inner,
    resource: &(String, String),
    key: &(String, String),
    stored: &Arc<Value>,
) {
    store.remove(resource, key);
    // Objects of a kind go with its definition.
    if resource.1 == "customresourcedefinitions" {
        let group = stored["spec"]["group"].as_str().unwrap_or("").to_owned();
        let plural = stored["spec"]["names"]["plural"].as_str().unwrap_or("");
        let custom = (group, plural.to_owned());
        let keys: Vec<(String, String)> = store
            .objects(&custom)
            .into_iter()
            .flat_map(|objects| objects.keys().cloned())
            .collect();
        for key in keys {
            store.remove(&custom, &key);
        }
    }
}

fn check(kind: &Kind, stored: &Value, how: &How) -> Result<(), ApiError> {
    for (what, wanted, is) in [
        ("UID", &how.uid, meta::uid(stored)),
        (
            "ResourceVersion",
            &how.version,
            meta::text(stored, "resourceVersion"),
        ),
    ] {
        if let Some(wanted) = wanted
            && wanted != is
        {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {is}"
            );
            return Err(ApiError::conflict(kind, meta::name(stored), &why));
        }
    }
    Ok(())
}

/// The object with the marks of deletion on it.
fn marked(kind: &Kind, stored: &Value, how: &How, now: Timestamp) -> Value {
    let mut object = stored.clone();
    let finalizer = match how.propagation.as_deref() {
        Some("Foreground") => Some("foregroundDeletion"),
        Some("Orphan") => Some("orphan"),
        Some(_) | None => None,
    };
    let metadata = &mut object["metadata"];
    if let Some(finalizer) = finalizer {
        let mut all: Vec<Value> = metadata["finalizers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let opposite = ["foregroundDeletion", "orphan"];
        all.retain(|f| !opposite.contains(&f.as_str().unwrap_or("")));
        all.push(json!(finalizer));
        metadata["finalizers"] = json!(all);
    }
    let grace = grace_secs(kind, stored, how);
    let earlier = metadata["deletionGracePeriodSeconds"].as_u64();
    if metadata["deletionTimestamp"].is_null() || earlier.is_some_and(|before| grace < before) {
        let by = SignedDuration::from_secs(i64::try_from(grace).unwrap_or(i64::MAX));
        let at = now.checked_add(by).unwrap_or(Timestamp::MAX);
        metadata["deletionTimestamp"] = json!(meta::time(at));
        metadata["deletionGracePeriodSeconds"] = json!(grace);
        if let Some(generation) = metadata["generation"].as_u64() {
            metadata["generation"] = json!(generation + 1);
        }
    }
    if kind.kind == "Namespace" {
        object["status"]["phase"] = json!("Terminating");
    }
    object
}

/// Seconds until a pod must be gone; other kinds go at once.
fn grace_secs(kind: &Kind, stored: &Value, how: &How) -> u64 {
    if kind.kind != "Pod" || !kind.group.is_empty() {
        return 0;
    }
    let unscheduled = stored["spec"]["nodeName"].as_str().unwrap_or("").is_empty();
    let phase = stored["status"]["phase"].as_str().unwrap_or("");
    if unscheduled || matches!(phase, "Succeeded" | "Failed") {
        return 0;
    }
    let own = stored["spec"]["terminationGracePeriodSeconds"].as_u64();
    how.grace_secs.or(own).unwrap_or(30)
}

/// True when nothing keeps a deleted object any more.
pub(crate) fn is_finished(kind: &Kind, object: &Value) -> bool {
    let none = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    let metadata = &object["metadata"];
    !metadata["deletionTimestamp"].is_null()
        && none(&metadata["finalizers"])
        && metadata["deletionGracePeriodSeconds"].as_u64().unwrap_or(0) == 0
        && (kind.kind != "Namespace" || none(&object["spec"]["finalizers"]))
}

/// Kinds whose deletion answers with the object rather than with a status.
fn returns_object(kind: &Kind) -> bool {
    kind.group.is_empty()
        && matches!(
            kind.kind.as_str(),
            "Pod"
                | "Namespace"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "ServiceAccount"
                | "Service"
        )
}

fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({"name": meta::name(object), "kind": kind.plural,
        "uid": meta::uid(object)});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details})
}
