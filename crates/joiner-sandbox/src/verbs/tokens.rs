//! Tokens of service accounts: the answer to `kubectl create token`, and what goes into Secrets.

use std::sync::Arc;

use http::StatusCode;
use jiff::SignedDuration;
use joiner_machinery::kinds::fields;
use joiner_machinery::{ApiError, Cause, Kind, apply, meta};
use serde_json::{Value, json};

use crate::auth::{AUDIENCE, Bound, Claims, Times};
use crate::exchange::{Reply, Request};
use crate::server::Server;
use crate::verbs::create::settle_namespace;
use crate::verbs::{About, decode, not_allowed};

/// How long a token is good for unless its request says so.
const SECS: i64 = 3600;
/// Shortest and longest life of a token.
const SECS_MIN: i64 = 600;
const SECS_MAX: i64 = 1 << 32;

/// POST of a TokenRequest.
pub(crate) fn request(
    server: &Server,
    about: &About,
    request: &Request,
) -> Result<Reply, ApiError> {
    if request.method != http::Method::POST {
        return Err(not_allowed(&request.method));
    }
    let kind = Kind {
        group: "authentication.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "TokenRequest".to_owned(),
        custom: None,
        ..about.served.kind.clone()
    };
    let mut asked = decode::object(request, &kind)?;
    fields::decode(&kind, &mut asked)?;
    note_owner(server, request, &kind, &mut asked);
    settle_namespace(&about.served, about.namespace.as_deref(), &mut asked)?;
    let account = settle(server, about, &kind, &mut asked)?;
    let (namespace, name) = about.key();
    let now = server.clock.now();
    let secs = asked["spec"]["expirationSeconds"].as_i64().unwrap_or(SECS);
    check_life(&kind, secs)?;
    let until = now + SignedDuration::from_secs(secs);
    let audiences = asked["spec"]["audiences"].as_array().into_iter().flatten();
    let audiences = audiences.filter_map(Value::as_str).map(str::to_owned);
    let claims = Claims {
        namespace: namespace.clone(),
        name: name.clone(),
        uid: meta::uid(&account).to_owned(),
        times: Some(Times {
            now,
            until,
            audiences: audiences.collect(),
            id: server.uid(),
        }),
        bound: bound(server, &namespace, &name, &asked["spec"]["boundObjectRef"])?,
    };
    let token = server.credentials.sign(&claims)?;
    asked["metadata"]["creationTimestamp"] = json!(meta::time(now));
    asked["status"] = json!({"token": token, "expirationTimestamp": meta::time(until)});
    asked["apiVersion"] = json!(kind.api_version());
    asked["kind"] = json!(kind.kind);
    Ok(Reply::json(StatusCode::CREATED, &asked))
}

/// Notes who asks for what, as in an object that is stored.
fn note_owner(server: &Server, request: &Request, kind: &Kind, asked: &mut Value) {
    if let Some(fields) = asked.as_object_mut() {
        fields.remove("status");
    }
    let mut said = asked.clone();
    let spec = &mut said["spec"];
    if spec["expirationSeconds"].is_null() {
        spec["expirationSeconds"] = json!(SECS);
    }
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    let writer = apply::Writer {
        manager: request.manager(),
        subresource: Some("token"),
        now: server.clock.now(),
    };
    apply::record(kind, None, &mut said, &writer);
    let mut managed = said["metadata"]["managedFields"].take();
    if let Some(bound) = managed.pointer_mut("/0/fieldsV1/f:spec/f:boundObjectRef") {
        // A struct is owned by its fields.
        if let Some(bound) = bound.as_object_mut() {
            bound.remove(".");
        }
    }
    asked["metadata"]["managedFields"] = managed;
}

/// Finds the account, and fills in what the request leaves open.
fn settle(
    server: &Server,
    about: &About,
    kind: &Kind,
    asked: &mut Value,
) -> Result<Arc<Value>, ApiError> {
    let (namespace, name) = about.key();
    let given = meta::name(asked);
    if !given.is_empty() && given != name {
        let why = "must match the service account name if specified";
        return Err(invalid(
            kind,
            &name,
            "metadata.name",
            &format!("{given:?}"),
            why,
        ));
    }
    let key = about.key();
    let resource = about.served.resource();
    let account = server.store.with(|s| s.get(&resource, &key).cloned());
    let account = account.ok_or_else(|| ApiError::not_found(&about.served.kind, &name))?;
    let uid = meta::uid(&account);
    let given = meta::uid(asked);
    if !given.is_empty() && given != uid {
        let why = format!(
            "the UID in the token request ({given}) does not match the UID of the service account ({uid})"
        );
        let kind = Kind {
            plural: kind.kind.clone(),
            ..kind.clone()
        };
        return Err(ApiError::conflict(&kind, &name, &why));
    }
    asked["metadata"]["name"] = json!(name);
    asked["metadata"]["namespace"] = json!(namespace);
    asked["metadata"]["uid"] = json!(uid);
    let spec = &mut asked["spec"];
    if spec["audiences"].as_array().is_none_or(Vec::is_empty) {
        spec["audiences"] = json!([AUDIENCE]);
    }
    if spec["expirationSeconds"].is_null() {
        spec["expirationSeconds"] = json!(SECS);
    }
    Ok(account)
}

fn check_life(kind: &Kind, secs: i64) -> Result<(), ApiError> {
    let why = if secs < SECS_MIN {
        "may not specify a duration less than 10 minutes"
    } else if secs > SECS_MAX {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let field = "spec.expirationSeconds";
    Err(invalid(kind, "", field, &secs.to_string(), why))
}

fn invalid(kind: &Kind, name: &str, field: &str, value: &str, why: &str) -> ApiError {
    let cause = Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {value}: {why}"),
        field: field.to_owned(),
    };
    ApiError::invalid(kind, name, &[cause])
}

/// What a token is to be bound to: a pod with its node, a node, or a Secret.
fn bound(
    server: &Server,
    namespace: &str,
    account: &str,
    reference: &Value,
) -> Result<Vec<Bound>, ApiError> {
    if !reference.is_object() {
        return Ok(Vec::new());
    }
    let text = |field: &str| reference[field].as_str().unwrap_or("");
    let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (word, plural, namespace) = match (version.contains('/'), kind) {
        (false, "Pod") => ("pod", "pods", namespace),
        (false, "Node") => ("node", "nodes", ""),
        (false, "Secret") => ("secret", "secrets", namespace),
        _ => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let served = server.registry().find("", "v1", plural)?;
    let find = |plural: &str, namespace: &str, name: &str| {
        let resource = (String::new(), plural.to_owned());
        let key = (namespace.to_owned(), name.to_owned());
        server.store.with(|s| s.get(&resource, &key).cloned())
    };
    let found = find(plural, namespace, name);
    let found = found.ok_or_else(|| ApiError::not_found(&served.kind, name))?;
    if word == "pod" && found["spec"]["serviceAccountName"] != json!(account) {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
        )));
    }
    let uid = meta::uid(&found).to_owned();
    if !text("uid").is_empty() && text("uid") != uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        );
        // Upstream names the kind here.
        let named = Kind {
            plural: kind.to_owned(),
            ..served.kind.clone()
        };
        return Err(ApiError::conflict(&named, name, &why));
    }
    let mut all = vec![Bound {
        kind: word,
        name: name.to_owned(),
        uid,
    }];
    let node = found["spec"]["nodeName"].as_str().unwrap_or("");
    if word == "pod" && !node.is_empty() {
        let uid = find("nodes", "", node).map(|node| meta::uid(&node).to_owned());
        all.push(Bound {
            kind: "node",
            name: node.to_owned(),
            uid: uid.unwrap_or_default(),
        });
    }
    Ok(all)
}

/// The token of an account that a Secret keeps.
pub(crate) fn kept(server: &Server, account: &Value, secret: &Value) -> Option<String> {
    let claims = Claims {
        namespace: meta::namespace(account).to_owned(),
        name: meta::name(account).to_owned(),
        uid: meta::uid(account).to_owned(),
        times: None,
        bound: vec![Bound {
            kind: "secret",
            name: meta::name(secret).to_owned(),
            uid: meta::uid(secret).to_owned(),
        }],
    };
    server.credentials.sign(&claims).ok()
}
