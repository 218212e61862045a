//! Delete: grace periods, finalizers, propagation, whole collections.

use std::sync::Arc;

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use joiner_machinery::{ApiError, Cause, Kind, Reason, crd, meta};
use serde_json::{Value, json};

use crate::exchange::{Reply, Request};
use crate::server::Server;
use crate::verbs::{About, decode, definitions, is_dry_run, read};
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
        let given = body["kind"].as_str().unwrap_or("DeleteOptions");
        if given != "DeleteOptions" {
            let version = body["apiVersion"].as_str().unwrap_or("");
            return Err(ApiError::bad_request(format!(
                "no kind \"{given}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let given = request.param("gracePeriodSeconds").map(str::to_owned);
        let grace = match (&body["gracePeriodSeconds"], given) {
            (Value::Null, None) => None,
            (Value::Null, Some(text)) => Some(text.parse::<i64>().map_err(|_| {
                ApiError::bad_request(format!(
                    "strconv.ParseInt: parsing \"{text}\": invalid syntax"
                ))
            })?),
            (value, _) => Some(value.as_i64().ok_or_else(|| {
                let found = if value.is_number() {
                    format!("number {value}")
                } else if value.is_string() {
                    "string".to_owned()
                } else {
                    "value".to_owned()
                };
                ApiError::bad_request(format!("json: cannot unmarshal {found} into Go struct field DeleteOptions.gracePeriodSeconds of type int64"))
            })?),
        };
        // As upstream has it, less than nothing is as soon as can be told.
        let grace_secs = grace.map(|secs| u64::try_from(secs).unwrap_or(1));
        let propagation = text(&body["propagationPolicy"])
            .or_else(|| request.param("propagationPolicy").map(str::to_owned));
        if let Some(policy) = &propagation
            && !matches!(policy.as_str(), "Background" | "Foreground" | "Orphan")
        {
            let cause = Cause {
                reason: "FieldValueNotSupported",
                message: format!(
                    "Unsupported value: \"{policy}\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                ),
                field: "propagationPolicy".to_owned(),
            };
            return Err(ApiError::invalid_options("DeleteOptions", &cause));
        }
        let orphan = body["orphanDependents"].as_bool();
        if let (Some(policy), Some(_)) = (&propagation, orphan) {
            let cause = Cause {
                reason: "FieldValueInvalid",
                message: format!(
                    "Invalid value: \"{policy}\": orphanDependents and deletionPropagation cannot be both set"
                ),
                field: "propagationPolicy".to_owned(),
            };
            return Err(ApiError::invalid_options("DeleteOptions", &cause));
        }
        let propagation = propagation.or_else(|| {
            let word = if orphan? { "Orphan" } else { "Background" };
            Some(word.to_owned())
        });
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
    let mut how = How::read(request)?;
    let kind = &about.served.kind;
    let name = about.name.as_deref().unwrap_or("");
    if kind.is("", "Namespace") && matches!(name, "default" | "kube-system" | "kube-public") {
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden(kind, name, why));
    }
    let mut warnings = Vec::new();
    if kind.is("batch", "Job") && how.propagation.is_none() {
        how.propagation = Some("Orphan".to_owned());
        warnings.push("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning".to_owned());
    }
    let answer = delete_one(server, about, &how)?;
    Ok(Reply::json(StatusCode::OK, &answer).warn(warnings))
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
            Ok(_) | Err(_) => items.push(read::as_item(kind, versions::shown(kind, &object))),
        }
    }
    let revision = server.store.with(|s| s.revision());
    let mut list = json!({"kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
        "metadata": {"resourceVersion": revision.to_string()}, "items": items});
    if kind.custom.is_some() {
        list["metadata"]["continue"] = json!("");
    }
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
            return Ok(if definitions::is_definition(kind) {
                versions::shown(kind, &marked)
            } else {
                success(kind, &stored)
            });
        }
        if is_finished(kind, &marked) {
            s.remove(&resource, &key);
            return Ok(if kind.is("", "Pod") || kind.is("", "Namespace") {
                versions::shown(kind, &marked)
            } else if returns_object(kind) {
                versions::shown(kind, &stored)
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
    if !how.dry_run {
        definitions::after_change(server, kind);
    }
    Ok(answer)
}

fn check(kind: &Kind, stored: &Value, how: &How) -> Result<(), ApiError> {
    for (what, wanted, is, rest) in [
        (
            "UID",
            &how.uid,
            meta::uid(stored),
            "deleted and then recreated",
        ),
        (
            "ResourceVersion",
            &how.version,
            meta::text(stored, "resourceVersion"),
            "modified",
        ),
    ] {
        if let Some(wanted) = wanted
            && wanted != is
        {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object might have been {rest}"
            );
            // Upstream names the kind here where it names the resource elsewhere.
            let named = Kind {
                plural: kind.kind.clone(),
                ..kind.clone()
            };
            return Err(ApiError::conflict(&named, meta::name(stored), &why));
        }
    }
    Ok(())
}

/// The object with the marks of deletion on it.
pub(crate) fn marked(kind: &Kind, stored: &Value, how: &How, now: Timestamp) -> Value {
    if definitions::is_definition(kind) {
        return marked_definition(stored, now);
    }
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
    let is_first = metadata["deletionTimestamp"].is_null();
    if is_first || earlier.is_some_and(|before| grace < before) {
        let by = SignedDuration::from_secs(i64::try_from(grace).unwrap_or(i64::MAX));
        let at = now.checked_add(by).unwrap_or(Timestamp::MAX);
        metadata["deletionTimestamp"] = json!(meta::time(at));
        if kind.kind != "Namespace" {
            metadata["deletionGracePeriodSeconds"] = json!(grace);
        }
        if let Some(generation) = metadata["generation"].as_u64().filter(|_| is_first) {
            metadata["generation"] = json!(generation + 1);
        }
    }
    if kind.kind == "Namespace" {
        object["status"]["phase"] = json!("Terminating");
    }
    object
}

/// A definition goes when its objects have gone, whatever else is asked for.
fn marked_definition(stored: &Value, now: Timestamp) -> Value {
    let mut object = stored.clone();
    if !object["metadata"]["deletionTimestamp"].is_null() {
        object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        return object;
    }
    object["metadata"]["deletionTimestamp"] = json!(meta::time(now));
    let list = object["metadata"]["finalizers"].as_array().cloned();
    let mut list = list.unwrap_or_default();
    if !list.iter().any(|f| f == crd::FINALIZER) {
        list.push(json!(crd::FINALIZER));
    }
    object["metadata"]["finalizers"] = Value::Array(list);
    object["status"] = crd::terminating(stored, crd::Termination::Pending, now);
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
    kind.is("storage.k8s.io", "StorageClass")
        || kind.group.is_empty()
            && matches!(
                kind.kind.as_str(),
                "Pod"
                    | "Namespace"
                    | "PersistentVolume"
                    | "PersistentVolumeClaim"
                    | "ResourceQuota"
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
