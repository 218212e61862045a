//! Create.

use std::sync::Arc;

use http::StatusCode;
use joiner_machinery::rbac::{self, User};
use joiner_machinery::{ApiError, Cause, Reason, apply, meta};
use serde_json::{Value, json};

use crate::auth;
use crate::exchange::{Reply, Request};
use crate::registry::Served;
use crate::server::Server;
use crate::store::Inner;
use crate::verbs::{About, decode, definitions, is_dry_run, read};
use crate::{rules, versions};

/// How often a generated name is tried.
const NAMES_MAX: usize = 8;
/// How much of a generated name is the client's: with what follows, it fits into a label.
const GENERATED_START_MAX: usize = 58;

/// POST of an object.
pub(crate) fn create(server: &Server, about: &About, request: &Request) -> Result<Reply, ApiError> {
    let (mut object, twice) = decode::object_noting(request, &about.served.kind)?;
    decode::check_type(&about.served, &mut object, request)?;
    let dry_run = is_dry_run(request)?;
    let warnings = rules::read_body(&about.served, &mut object, request, twice)?;
    let by = By {
        manager: request.manager(),
        user: Some(&request.user),
        dry_run,
        applied: false,
    };
    let made = insert(
        server,
        &about.served,
        about.namespace.as_deref(),
        object,
        by,
    )?;
    let made = (StatusCode::CREATED, made);
    Ok(read::reply(server, &about.served.kind, request, made)?.warn(warnings))
}

/// Who creates, and whether it is for real.
#[derive(Clone, Copy, Debug)]
pub(crate) struct By<'a> {
    pub(crate) manager: &'a str,
    /// Whose rights count; none for the server itself.
    pub(crate) user: Option<&'a User>,
    pub(crate) dry_run: bool,
    /// The object has been through server-side apply: its managers are right already.
    pub(crate) applied: bool,
}

/// Creates an object and returns it as the client of this kind sees it.
pub(crate) fn insert(
    server: &Server,
    served: &Served,
    namespace: Option<&str>,
    object: Value,
    by: By<'_>,
) -> Result<Value, ApiError> {
    let made = store_new(server, served, namespace, object, by)?;
    Ok(versions::shown(&served.kind, &made))
}

/// Creates an object and returns it as it is stored.
pub(crate) fn store_new(
    server: &Server,
    served: &Served,
    namespace: Option<&str>,
    object: Value,
    by: By<'_>,
) -> Result<Arc<Value>, ApiError> {
    let mut object = object;
    settle_namespace(served, namespace, &mut object)?;
    if !meta::text(&object, "resourceVersion").is_empty() {
        return Err(ApiError::new(
            Reason::Unknown,
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let generated =
        meta::name(&object).is_empty() && !meta::text(&object, "generateName").is_empty();
    if !generated {
        return insert_named(server, served, object, by);
    }
    for _ in 0..NAMES_MAX {
        let mut named = object.clone();
        let start = meta::text(&object, "generateName").chars();
        let start: String = start.take(GENERATED_START_MAX).collect();
        let name = format!("{start}{}", server.suffix());
        named["metadata"]["name"] = json!(name);
        match insert_named(server, served, named, by) {
            Err(error) if error.reason == Reason::AlreadyExists => {}
            answer => return answer,
        }
    }
    Err(ApiError::new(
        Reason::AlreadyExists,
        "no free name was found for generateName; try again",
    ))
}

fn insert_named(
    server: &Server,
    served: &Served,
    mut object: Value,
    by: By<'_>,
) -> Result<Arc<Value>, ApiError> {
    let kind = &served.kind;
    let now = server.clock.now();
    let name = meta::name(&object).to_owned();
    if name.is_empty() {
        let cause = Cause {
            reason: "FieldValueRequired",
            message: "Required value: name or generateName is required".to_owned(),
            field: "metadata.name".to_owned(),
        };
        return Err(ApiError::invalid(kind, "", &[cause]));
    }
    let key = (meta::namespace(&object).to_owned(), name.clone());
    let resource = served.resource();
    let uid = server.uid();
    let made = server.store.with(|s| {
        check_namespace(s, served, &key.0, &name)?;
        check_rights(s, served, by.user, None, &object)?;
        if let Some(old) = s.get(&resource, &key) {
            let mut error = ApiError::already_exists(kind, &name);
            if meta::is_deleting(old) {
                error.message = format!("object is being deleted: {}", error.message);
            }
            return Err(error);
        }
        if definitions::is_going(s, kind) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(kind, &name, why));
        }
        let note = rules::Note {
            writer: apply::Writer {
                manager: by.manager,
                subresource: None,
                now,
            },
            applied: by.applied,
        };
        rules::create(s, served, &mut object, &uid, &note)?;
        let object = versions::stored(kind, object);
        if decode::is_too_large(&object) {
            return Err(decode::too_large());
        }
        if by.dry_run {
            return Ok(Arc::new(object));
        }
        Ok(s.put(&resource, &key, object))
    })?;
    if !by.dry_run {
        definitions::after_change(server, kind);
    }
    Ok(made)
}

/// Roles and bindings grant only what their writer has.
pub(crate) fn check_rights(
    store: &Inner,
    served: &Served,
    user: Option<&User>,
    before: Option<&Value>,
    object: &Value,
) -> Result<(), ApiError> {
    let Some(user) = user.filter(|_| served.kind.group == rbac::GROUP) else {
        return Ok(());
    };
    let write = rbac::Write {
        resource: &served.kind.plural,
        namespace: meta::namespace(object),
        before,
        object,
    };
    auth::check_write(store, user, &write)
}

/// The namespace of path and body must agree.
pub(crate) fn settle_namespace(
    served: &Served,
    path: Option<&str>,
    object: &mut Value,
) -> Result<(), ApiError> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let given = meta::namespace(object).to_owned();
    if !served.kind.namespaced {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        return Ok(());
    }
    match path {
        Some(path) if given.is_empty() || given == path => {
            object["metadata"]["namespace"] = json!(path);
            Ok(())
        }
        Some(_) => Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
        None => Err(ApiError::bad_request(
            "an empty namespace may not be set during creation",
        )),
    }
}

/// Objects come only into namespaces that are there and not going.
fn check_namespace(
    store: &Inner,
    served: &Served,
    namespace: &str,
    name: &str,
) -> Result<(), ApiError> {
    if !served.kind.namespaced {
        return Ok(());
    }
    let namespaces = (String::new(), "namespaces".to_owned());
    let key = (String::new(), namespace.to_owned());
    let Some(found) = store.get(&namespaces, &key) else {
        let mut error = ApiError::new(
            Reason::NotFound,
            format!("namespaces \"{namespace}\" not found"),
        );
        error.details = Some(json!({"name": namespace, "kind": "namespaces"}));
        return Err(error);
    };
    if meta::is_deleting(found) {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut error = ApiError::forbidden(&served.kind, name, &why);
        if let Some(details) = &mut error.details {
            details["causes"] = json!([{"reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace"}]);
        }
        return Err(error);
    }
    Ok(())
}
