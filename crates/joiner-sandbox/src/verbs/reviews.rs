//! Reviews: questions about users and their rights, answered and not stored.

use http::StatusCode;
use joiner_machinery::rbac::{Access, Decision, User};
use joiner_machinery::{ApiError, Cause, Kind, apply, meta};
use serde_json::{Value, json};

use crate::auth::{self, AUDIENCE};
use crate::exchange::{Reply, Request};
use crate::rules;
use crate::server::Server;
use crate::verbs::create::settle_namespace;
use crate::verbs::{About, decode, not_allowed};

/// POST of a review.
pub(crate) fn answer(server: &Server, about: &About, request: &Request) -> Result<Reply, ApiError> {
    if request.method != http::Method::POST || about.name.is_some() {
        return Err(not_allowed(&request.method));
    }
    let kind = &about.served.kind;
    let (mut review, twice) = decode::object_noting(request, kind)?;
    decode::check_type(&about.served, &mut review, request)?;
    let warnings = rules::read_body(&about.served, &mut review, request, twice)?;
    settle_namespace(&about.served, about.namespace.as_deref(), &mut review)?;
    let answer = match kind.kind.as_str() {
        "SelfSubjectRulesReview" => rules_of(server, &request.user, review)?,
        "SelfSubjectReview" => json!({
            "metadata": {"creationTimestamp": meta::time(server.clock.now())},
            "status": {"userInfo": request.user.to_json()}}),
        "TokenReview" => noted(server, kind, request, review, |review| {
            of_token(server, review)
        })?,
        _ => noted(server, kind, request, review, |review| {
            of_access(server, kind, &request.user, review)
        })?,
    };
    let mut answer = answer;
    answer["apiVersion"] = json!(kind.api_version());
    answer["kind"] = json!(kind.kind);
    Ok(Reply::json(StatusCode::CREATED, &answer).warn(warnings))
}

/// A review with its answer. Who asked is noted in it, as in an object that is stored.
fn noted(
    server: &Server,
    kind: &Kind,
    request: &Request,
    mut review: Value,
    answer: impl Fn(&Value) -> Result<Value, ApiError>,
) -> Result<Value, ApiError> {
    if let Some(fields) = review.as_object_mut() {
        fields.remove("status");
    }
    let status = answer(&review)?;
    let writer = apply::Writer {
        manager: request.manager(),
        subresource: None,
        now: server.clock.now(),
    };
    apply::record(kind, None, &mut review, &writer);
    review["status"] = status;
    Ok(review)
}

fn rules_of(server: &Server, user: &User, review: Value) -> Result<Value, ApiError> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or("");
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let rules = auth::rules_for(server, user, namespace);
    Ok(json!({"metadata": {}, "spec": {}, "status": rules.to_status()}))
}

fn of_token(server: &Server, review: &Value) -> Result<Value, ApiError> {
    let spec = &review["spec"];
    let token = spec["token"].as_str().unwrap_or("");
    if token.is_empty() {
        let why = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(why));
    }
    let mut audiences = texts(&spec["audiences"]);
    if audiences.is_empty() {
        audiences.push(AUDIENCE.to_owned());
    }
    Ok(match auth::read_token(server, token, &audiences) {
        Ok(shown) => json!({"authenticated": true, "user": shown.user.to_json(),
            "audiences": shown.audiences}),
        Err(why) => json!({"user": {}, "error": why}),
    })
}

fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    let all = all.filter_map(Value::as_str);
    all.map(str::to_owned).collect()
}

/// May the one who asks, or the one who is asked about?
fn of_access(
    server: &Server,
    kind: &Kind,
    asking: &User,
    review: &Value,
) -> Result<Value, ApiError> {
    let spec = &review["spec"];
    let causes = faults(kind, review);
    if !causes.is_empty() {
        return Err(nameless(kind, &causes));
    }
    let other;
    let user = match kind.kind.as_str() {
        "SelfSubjectAccessReview" => asking,
        _ => {
            other = user_of(spec);
            &other
        }
    };
    let Decision { allowed, reason } = auth::authorize(server, user, &access_of(spec));
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    Ok(status)
}

/// 422 as upstream has it here, which does not name the kind.
fn nameless(kind: &Kind, causes: &[Cause]) -> ApiError {
    let kind = Kind {
        kind: String::new(),
        ..kind.clone()
    };
    let mut error = ApiError::invalid(&kind, "", causes);
    if let Some(details) = error.details.as_mut().and_then(Value::as_object_mut) {
        details.remove("kind");
    }
    error
}

fn user_of(spec: &Value) -> User {
    let text = |field: &str| spec[field].as_str().unwrap_or("").to_owned();
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text("user"),
        uid: text("uid"),
        groups: texts(&spec["groups"]),
        extra: extra
            .map(|(key, values)| (key.clone(), texts(values)))
            .collect(),
    }
}

fn access_of(spec: &Value) -> Access {
    let asked = &spec["resourceAttributes"];
    let text = |asked: &Value, field: &str| asked[field].as_str().unwrap_or("").to_owned();
    if !asked.is_object() {
        let asked = &spec["nonResourceAttributes"];
        return Access::to_path(&text(asked, "verb"), &text(asked, "path"));
    }
    Access {
        verb: text(asked, "verb"),
        path: None,
        group: text(asked, "group"),
        resource: text(asked, "resource"),
        subresource: text(asked, "subresource"),
        namespace: text(asked, "namespace"),
        name: text(asked, "name"),
    }
}

/// What is wrong with a question about access.
fn faults(kind: &Kind, review: &Value) -> Vec<Cause> {
    let spec = &review["spec"];
    let mut causes = Vec::new();
    let mut invalid = |field: &str, value: &str, why: &str| {
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {why}"),
            field: field.to_owned(),
        });
    };
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let shown = json!({"Path": path["path"], "Verb": path["verb"]}).to_string();
    match (resource.is_object(), path.is_object()) {
        (true, true) => invalid(
            "spec.nonResourceAttributes",
            &shown,
            "cannot be specified in combination with resourceAttributes",
        ),
        (false, false) => invalid(
            "spec.resourceAttributes",
            "null",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        _ => {}
    }
    let is_self = kind.kind == "SelfSubjectAccessReview";
    if !is_self && user_of(spec).name.is_empty() && user_of(spec).groups.is_empty() {
        let why = "at least one of user or group must be specified";
        invalid("spec.user", "\"\"", why);
    }
    if kind.namespaced {
        let namespace = resource["namespace"].as_str().unwrap_or("");
        if resource.is_object() && namespace != meta::namespace(review) {
            let why = "must match metadata.namespace";
            invalid(
                "spec.resourceAttributes.namespace",
                &format!("{namespace:?}"),
                why,
            );
        }
        if path.is_object() {
            let why = "disallowed on this kind of request";
            invalid("spec.nonResourceAttributes", &shown, why);
        }
    }
    causes
}
