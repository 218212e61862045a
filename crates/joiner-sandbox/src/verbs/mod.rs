//! What can be done to objects: one module per group of verbs.

pub(crate) mod accept;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod definitions;
pub(crate) mod faults;
pub(crate) mod options;
pub(crate) mod pages;
pub(crate) mod read;
pub(crate) mod remove;
mod reviews;
pub(crate) mod special;
pub(crate) mod tokens;
pub(crate) mod twice;
pub(crate) mod update;

use std::sync::Arc;

use http::Method;
use joiner_cluster::ObjectKey;
use joiner_machinery::{ApiError, Reason, Subresource};
use serde_json::json;

use crate::exchange::{Reply, Request};
use crate::registry::Served;
use crate::route::Target;
use crate::server::Server;

/// An object, or the objects of a kind, that a request is about.
pub(crate) struct About {
    pub(crate) served: Arc<Served>,
    /// Namespace in the path.
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

impl About {
    /// Where the named object is stored.
    pub(crate) fn key(&self) -> ObjectKey {
        (
            self.namespace.clone().unwrap_or_default(),
            self.name.clone().unwrap_or_default(),
        )
    }
}

/// 405.
pub(crate) fn not_allowed(method: &Method) -> ApiError {
    let mut error = ApiError::new(
        Reason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    );
    error.details = Some(json!({}));
    let _ = method;
    error
}

/// Answers a request about objects.
pub(crate) fn objects(
    server: &Arc<Server>,
    target: Target,
    request: &Request,
) -> Result<Reply, ApiError> {
    let registry = server.registry();
    let served = registry.find(&target.group, &target.version, &target.plural)?;
    let warning = registry.deprecation(&served.kind);
    let reply = answer(server, served, target, request)?;
    Ok(reply.warn(warning.into_iter().collect()))
}

fn answer(
    server: &Arc<Server>,
    served: Arc<Served>,
    target: Target,
    request: &Request,
) -> Result<Reply, ApiError> {
    if target.namespace.is_some() && !served.kind.namespaced {
        return Err(ApiError::no_such_resource());
    }
    let is_list = request.method == Method::GET && target.name.is_none();
    if served.kind.custom.is_some() {
        accept::check_custom(request)?;
    } else if is_list {
        accept::check(request, accept::LISTS)?;
    } else {
        accept::check(request, accept::OBJECTS)?;
    }
    if let Some(name @ ("." | "..")) = target.name.as_deref() {
        return Err(ApiError::bad_request(format!(
            "Name parameter invalid: \"{name}\": may not be '{name}'"
        )));
    }
    let about = About {
        served,
        namespace: target.namespace,
        name: target.name,
    };
    if let Some(answer) = special::answer(server, &about, target.subresource.as_deref(), request) {
        return answer;
    }
    let subresource = match target.subresource.as_deref() {
        None => None,
        Some("status") if about.served.kind.has(Subresource::Status) => Some(Subresource::Status),
        Some("scale") if about.served.kind.has(Subresource::Scale) => Some(Subresource::Scale),
        Some("finalize") if about.served.kind.has(Subresource::Finalize) => {
            Some(Subresource::Finalize)
        }
        Some(_) => {
            return Err(ApiError::no_such_resource());
        }
    };
    let is_one = about.name.is_some();
    let across = about.served.kind.namespaced && about.namespace.is_none() && !is_one;
    let lists_only = across || about.served.kind.is("", "Namespace");
    options::check(request)?;
    match (request.method.as_str(), is_one) {
        ("GET", false) if target.watch || request.flag("watch") => {
            read::watch(server, &about, request)
        }
        ("GET", false) => read::list(server, &about, request),
        ("GET", true) if target.watch || request.flag("watch") => {
            read::watch(server, &about, request)
        }
        ("GET" | "HEAD", true) => read::get(server, &about, subresource, request),
        ("POST", false) if across => Err(not_allowed(&request.method)),
        ("POST", false) => create::create(server, &about, request),
        ("PUT", true) => update::replace(server, &about, subresource, request),
        ("PATCH", true) => update::patch(server, &about, subresource, request),
        ("DELETE", true) if subresource.is_none() => remove::delete(server, &about, request),
        ("DELETE", false) if lists_only => Err(not_allowed(&request.method)),
        ("DELETE", false) => remove::delete_collection(server, &about, request),
        _ => Err(not_allowed(&request.method)),
    }
}

/// True for `dryRun=All`; anything else has been refused before.
pub(crate) fn is_dry_run(request: &Request) -> Result<bool, ApiError> {
    options::check(request)?;
    Ok(request
        .param("dryRun")
        .is_some_and(|value| !value.is_empty()))
}
