//! Kinds and subresources that are not stored as they come: scale, binding, eviction, logs, reviews
//! and metrics.

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use joiner_machinery::selector::LabelSelector;
use joiner_machinery::{ApiError, Kind, Reason, Subresource, apply, crd, meta};
use serde_json::{Value, json};

use crate::exchange::{Reply, Request};
use crate::server::Server;
use crate::store::packed;
use crate::verbs::remove::{How, delete_one};
use crate::verbs::update::{Mode, change, check_address};
use crate::verbs::{About, decode, is_dry_run, not_allowed, reviews, tokens};
use crate::{logs, usage};

/// The word of a subresource in paths and managed fields.
pub(crate) const fn word(subresource: Subresource) -> &'static str {
    match subresource {
        Subresource::Status => "status",
        Subresource::Scale => "scale",
        Subresource::Binding => "binding",
        Subresource::Eviction => "eviction",
        Subresource::Log => "log",
        Subresource::Finalize => "finalize",
        Subresource::Token => "token",
        Subresource::Unserved => "",
    }
}

/// Answers what needs an answer of its own; `None` for everything that is stored.
pub(crate) fn answer(
    server: &Arc<Server>,
    about: &About,
    subresource: Option<&str>,
    request: &Request,
) -> Option<Result<Reply, ApiError>> {
    let kind = &about.served.kind;
    match (kind.group.as_str(), kind.plural.as_str(), subresource) {
        ("", "pods", Some("binding")) => Some(bind(server, about, request)),
        ("", "pods", Some("eviction")) => Some(evict(server, about, request)),
        ("", "pods", Some("log")) => Some(logs::read(server, about, request)),
        ("", "pods", Some("exec" | "attach" | "portforward")) => Some(Err(ApiError::bad_request(
            "nothing runs in the sandbox: a container has a log, but no processes and no ports",
        ))),
        ("", "serviceaccounts", Some("token")) => Some(tokens::request(server, about, request)),
        ("authorization.k8s.io" | "authentication.k8s.io", _, None) => {
            Some(reviews::answer(server, about, request))
        }
        ("metrics.k8s.io", _, None) => Some(usage::read(server, about, request)),
        _ => None,
    }
}

/// POST of a binding: the pod gets its node.
fn bind(server: &Server, about: &About, request: &Request) -> Result<Reply, ApiError> {
    if request.method != http::Method::POST {
        return Err(not_allowed(&request.method));
    }
    let binding = decode::object(request, &other_kind(&about.served.kind, "Binding"))?;
    let node = binding["target"]["name"].as_str().unwrap_or("").to_owned();
    let uid = meta::uid(&binding).to_owned();
    if node.is_empty() {
        return Err(no_target());
    }
    let dry_run = is_dry_run(request)?;
    let mode = Mode {
        manager: request.manager(),
        user: None,
        subresource: Some(Subresource::Binding),
        dry_run,
        applied: true,
    };
    bind_in(server, about, (&node, &uid), mode)?;
    let made = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "code": 201});
    Ok(Reply::json(StatusCode::CREATED, &made))
}

fn no_target() -> ApiError {
    ApiError::new(Reason::Unknown, "target.name: Required value")
}

/// Gives a pod its node.
pub(crate) fn bind_pod(
    server: &Server,
    about: &About,
    node: &str,
    uid: &str,
    manager: &str,
) -> Result<(), ApiError> {
    let mode = Mode {
        manager,
        user: None,
        subresource: Some(Subresource::Binding),
        dry_run: false,
        // Nobody owns what a binding sets.
        applied: true,
    };
    bind_in(server, about, (node, uid), mode)
}

fn bind_in(
    server: &Server,
    about: &About,
    (node, uid): (&str, &str),
    mode: Mode<'_>,
) -> Result<(), ApiError> {
    let kind = Kind {
        plural: "pods/binding".to_owned(),
        ..about.served.kind.clone()
    };
    change(server, about, mode, |pod, now| {
        let name = meta::name(pod);
        let current = pod["spec"]["nodeName"].as_str().unwrap_or("");
        let why = if node.is_empty() {
            return Err(no_target());
        } else if meta::is_deleting(pod) {
            Some(format!(
                "pod {name} is being deleted, cannot be assigned to a host"
            ))
        } else if !current.is_empty() {
            Some(format!(
                "pod {name} is already assigned to node \"{current}\""
            ))
        } else if !uid.is_empty() && uid != meta::uid(pod) {
            Some(format!(
                "the uid of pod {name} is not the one in the binding"
            ))
        } else {
            None
        };
        if let Some(why) = why {
            return Err(ApiError::conflict(&kind, name, &why));
        }
        let mut bound = pod.clone();
        bound["spec"]["nodeName"] = json!(node);
        let condition = json!({"type": "PodScheduled", "status": "True",
            "lastProbeTime": null, "lastTransitionTime": meta::time(now)});
        let conditions = bound["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.unwrap_or_default();
        conditions.retain(|c| c["type"] != "PodScheduled");
        conditions.push(condition);
        bound["status"]["conditions"] = json!(conditions);
        Ok(bound)
    })?;
    Ok(())
}

/// POST of an eviction.
fn evict(server: &Server, about: &About, request: &Request) -> Result<Reply, ApiError> {
    if request.method != http::Method::POST {
        return Err(not_allowed(&request.method));
    }
    let wanted = other_kind(&about.served.kind, "Eviction");
    let eviction = decode::object(request, &wanted)?;
    let given = eviction["kind"].as_str().unwrap_or("");
    if !given.is_empty() && given != "Eviction" {
        return Err(ApiError::bad_request(format!(
            "{given} in version \"v1\" cannot be handled as a Eviction: converting (v1.{given}) to (policy.Eviction): unknown conversion"
        )));
    }
    if meta::name(&eviction) != about.name.as_deref().unwrap_or("") {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let options = &eviction["deleteOptions"];
    let how = How {
        grace_secs: options["gracePeriodSeconds"].as_u64(),
        uid: options["preconditions"]["uid"].as_str().map(str::to_owned),
        dry_run: is_dry_run(request)?
            || options["dryRun"]
                .as_array()
                .is_some_and(|all| !all.is_empty()),
        ..How::default()
    };
    evict_pod(server, about, &how)?;
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "code": 201});
    Ok(Reply::json(StatusCode::CREATED, &done))
}

/// Deletes a pod if its PodDisruptionBudget allows, and takes it off the budget.
pub(crate) fn evict_pod(server: &Server, about: &About, how: &How) -> Result<(), ApiError> {
    let kind = &about.served.kind;
    let key = about.key();
    let pods = about.served.resource();
    let budgets = ("policy".to_owned(), "poddisruptionbudgets".to_owned());
    let now = server.clock.now();
    let registered = server
        .registry()
        .find("policy", "v1", "poddisruptionbudgets")
        .ok();
    server.store.with(|s| {
        let Some(pod) = s.get(&pods, &key).cloned() else {
            return Err(ApiError::not_found(kind, &key.1));
        };
        let phase = pod["status"]["phase"].as_str().unwrap_or("");
        if matches!(phase, "Succeeded" | "Failed" | "Pending") || meta::is_deleting(&pod) {
            return Ok(());
        }
        let matching: Vec<_> = s
            .objects(&budgets)
            .into_iter()
            .flat_map(|all| all.iter())
            .filter(|((namespace, _), budget)| {
                *namespace == key.0
                    && LabelSelector::of(&budget["spec"]["selector"]).matches(&pod)
            })
            .map(|(key, budget)| (key.clone(), Arc::clone(budget)))
            .collect();
        let (budget_key, budget) = match &matching[..] {
            [] => return Ok(()),
            [one] => one,
            _ => {
                return Err(ApiError::new(
                    Reason::Unknown,
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        let status = &budget["status"];
        let healthy = pod["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"));
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        let current = status["currentHealthy"].as_i64().unwrap_or(0);
        let desired = status["desiredHealthy"].as_i64().unwrap_or(0);
        if !healthy && (always || (current >= desired && desired > 0)) {
            return Ok(());
        }
        let allowed = status["disruptionsAllowed"].as_i64().unwrap_or(0);
        let observed = status["observedGeneration"] == budget["metadata"]["generation"];
        if allowed <= 0 || !observed {
            return Err(refused(&budget_key.1, desired, current, observed));
        }
        if how.dry_run {
            return Ok(());
        }
        let kind = registered.as_ref().map(|served| &served.kind);
        let spent = spent(budget, &key.1, kind, now);
        s.put(&budgets, budget_key, spent);
        Ok(())
    })?;
    if !how.dry_run {
        mark_evicted(server, about);
    }
    delete_one(server, about, how)?;
    Ok(())
}

/// A budget after one more pod has gone.
fn spent(budget: &Value, pod: &str, kind: Option<&Kind>, now: Timestamp) -> Value {
    let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
    let mut spent = budget.clone();
    spent["status"]["disruptionsAllowed"] = json!(allowed - 1);
    spent["status"]["disruptedPods"][pod] = json!(meta::time(now));
    if allowed == 1 {
        let condition = json!({"type": "DisruptionAllowed", "status": "False", "message": "",
            "reason": "InsufficientPods", "lastTransitionTime": meta::time(now),
            "observedGeneration": budget["metadata"]["generation"]});
        let conditions = spent["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.unwrap_or_default();
        let is_same = |c: &Value| c["type"] == condition["type"];
        match conditions.iter_mut().find(|c| is_same(c)) {
            Some(old) if old["status"] == "False" => {}
            Some(old) => *old = condition,
            None => conditions.push(condition),
        }
        spent["status"]["conditions"] = json!(conditions);
    }
    if let Some(kind) = kind {
        let writer = apply::Writer {
            manager: "kube-apiserver",
            subresource: Some("status"),
            now,
        };
        let mut before = budget.clone();
        packed::unpack(&mut before);
        packed::unpack(&mut spent);
        apply::record(kind, Some(&before), &mut spent, &writer);
    }
    spent
}

/// A pod that is evicted says why it goes.
fn mark_evicted(server: &Server, about: &About) {
    let pods = about.served.resource();
    let key = about.key();
    let condition = json!({"type": "DisruptionTarget", "status": "True",
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
        "lastProbeTime": null, "lastTransitionTime": meta::time(server.clock.now())});
    server.store.with(|s| {
        let Some(pod) = s.get(&pods, &key) else {
            return;
        };
        let mut pod = Value::clone(pod);
        let conditions = pod["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.unwrap_or_default();
        if conditions.iter().any(|c| c["type"] == "DisruptionTarget") {
            return;
        }
        conditions.push(condition);
        pod["status"]["conditions"] = json!(conditions);
        s.put(&pods, &key, pod);
    });
}

fn refused(budget: &str, desired: i64, current: i64, observed: bool) -> ApiError {
    let mut error = ApiError::new(
        Reason::TooManyRequests,
        "Cannot evict pod as it would violate the pod's disruption budget.",
    );
    let message = if observed && current > desired {
        format!("The disruption budget {budget} does not allow evicting pods currently")
    } else if observed {
        format!(
            "The disruption budget {budget} needs {desired} healthy pods and has {current} currently"
        )
    } else {
        format!("The disruption budget {budget} is still being processed by the server.")
    };
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": message}]});
    if !observed {
        details["retryAfterSeconds"] = json!(10);
    }
    error.details = Some(details);
    error
}

/// What a body to a subresource is, by the name of its kind.
fn other_kind(kind: &Kind, name: &str) -> Kind {
    Kind {
        kind: name.to_owned(),
        custom: None,
        ..kind.clone()
    }
}

/// What a body to the scale of a kind is.
pub(crate) fn scale_kind(kind: &Kind) -> Kind {
    Kind {
        group: "autoscaling".to_owned(),
        version: "v1".to_owned(),
        ..other_kind(kind, "Scale")
    }
}

/// A scale that is put must be one, of the object in the path.
pub(crate) fn check_scale(about: &About, scale: &Value) -> Result<(), ApiError> {
    let given = scale["kind"].as_str().unwrap_or("");
    if !given.is_empty() && given != "Scale" {
        return Err(ApiError::bad_request(format!(
            "{given} in version \"v1\" cannot be handled as a Scale: converting (v1.{given}) to (autoscaling.Scale): unknown conversion"
        )));
    }
    let replicas = &scale["spec"]["replicas"];
    let found = match replicas {
        Value::Null | Value::Number(_) => None,
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("bool"),
        Value::Array(_) => Some("array"),
        Value::Object(_) => Some("object"),
    };
    if let Some(found) = found {
        return Err(ApiError::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas of type int32"
        )));
    }
    check_address(about, scale)
}

/// The scale of an object.
pub(crate) fn scale_of(kind: &Kind, object: &Value) -> Result<Value, ApiError> {
    let paths = scale_paths(kind)?;
    let at = |path: &str| crd::ScalePaths::get(path, object).clone();
    let mut metadata = json!({"name": meta::name(object)});
    for field in ["namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"][field].as_str() {
            metadata[field] = json!(value);
        }
    }
    let selector = match paths.selector.as_deref().map(at) {
        Some(Value::String(text)) => text,
        Some(selector @ Value::Object(_)) => selector_text(&selector),
        Some(_) | None => String::new(),
    };
    let mut status = json!({"replicas": at(&paths.status).as_i64().unwrap_or(0)});
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    Ok(
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": at(&paths.spec).as_i64().unwrap_or(0)}, "status": status}),
    )
}

/// The object with the replicas of a scale.
pub(crate) fn with_scale(kind: &Kind, object: &Value, scale: &Value) -> Result<Value, ApiError> {
    let paths = scale_paths(kind)?;
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas < 0 {
        let cause = joiner_machinery::Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {replicas}: must be greater than or equal to 0"),
            field: "spec.replicas".to_owned(),
        };
        return Err(ApiError::invalid(
            &scale_kind(kind),
            meta::name(object),
            &[cause],
        ));
    }
    let mut changed = object.clone();
    changed["metadata"]["resourceVersion"] = scale["metadata"]["resourceVersion"].clone();
    crd::ScalePaths::set(&paths.spec, &mut changed, json!(replicas));
    Ok(changed)
}

/// Where a kind keeps its replicas.
fn scale_paths(kind: &Kind) -> Result<crd::ScalePaths, ApiError> {
    let missing = || ApiError::new(Reason::NotFound, "the kind has no scale");
    match &kind.custom {
        None => Ok(crd::ScalePaths {
            spec: ".spec.replicas".to_owned(),
            status: ".status.replicas".to_owned(),
            selector: Some(".spec.selector".to_owned()),
        }),
        Some(version) => {
            let scale = &version["subresources"]["scale"];
            let text = |key: &str| scale[key].as_str().map(str::to_owned);
            Ok(crd::ScalePaths {
                spec: text("specReplicasPath").ok_or_else(missing)?,
                status: text("statusReplicasPath").unwrap_or_default(),
                selector: text("labelSelectorPath"),
            })
        }
    }
}

/// A selector as query text: `app=web,tier in (a,b)`.
fn selector_text(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object();
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
        .collect();
    let exprs = selector["matchExpressions"].as_array();
    for expr in exprs.into_iter().flatten() {
        let key = expr["key"].as_str().unwrap_or("");
        let values = expr["values"].as_array().into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let values = values.join(",");
        parts.push(match expr["operator"].as_str().unwrap_or("") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}
