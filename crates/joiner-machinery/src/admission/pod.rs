//! New pods: priority, runtime class, service account, tolerations, first status.

use serde_json::{Value, json};

use super::Context;
use crate::defaults::qos_class;
use crate::error::ApiError;
use crate::kinds::Kind;
use crate::meta;
use crate::validate::SYSTEM_CLASSES;

/// How long pods stay on a node that is lost, unless they say otherwise.
const TOLERATION_SECS: i64 = 300;

pub(super) fn create(
    kind: &Kind,
    object: &mut Value,
    context: &Context<'_>,
) -> Result<(), ApiError> {
    let name = meta::name(object).to_owned();
    let deny = |why: String| ApiError::forbidden(kind, &name, &why);
    let spec = &mut object["spec"];
    if context.default_service_account && spec["serviceAccountName"].is_null() {
        spec["serviceAccountName"] = json!("default");
        spec["serviceAccount"] = json!("default");
    }
    priority(spec, context).map_err(deny)?;
    runtime_class(spec, context).map_err(deny)?;
    tolerations(spec);
    let mut status = json!({"phase": "Pending", "qosClass": qos_class(&object["spec"])});
    let gates = object["spec"]["schedulingGates"].as_array();
    if gates.is_some_and(|gates| !gates.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": meta::time(context.now),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    object["status"] = status;
    Ok(())
}

fn priority(spec: &mut Value, context: &Context<'_>) -> Result<(), String> {
    const PREEMPT: &str = "PreemptLowerPriority";
    let wanted = spec["priorityClassName"].as_str().unwrap_or("").to_owned();
    let class = if wanted.is_empty() {
        context.lookup.default_priority_class()
    } else {
        context.lookup.priority_class(&wanted)
    };
    let system = SYSTEM_CLASSES.iter().find(|(name, _)| *name == wanted);
    let (value, policy) = match (&class, system) {
        (Some(class), _) => (
            class["value"].as_i64().unwrap_or(0),
            class["preemptionPolicy"].as_str().unwrap_or(PREEMPT),
        ),
        (None, Some((_, value))) => (*value, PREEMPT),
        (None, None) if wanted.is_empty() => (0, PREEMPT),
        (None, None) => return Err(format!("no PriorityClass with name {wanted} was found")),
    };
    if let Some(given) = spec["priority"].as_i64()
        && given != value
    {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {value} from the given PriorityClass name"
        ));
    }
    if let Some(given) = spec["preemptionPolicy"].as_str()
        && given != policy
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    if wanted.is_empty()
        && let Some(class) = &class
    {
        spec["priorityClassName"] = json!(meta::name(class));
    }
    spec["priority"] = json!(value);
    spec["preemptionPolicy"] = json!(policy);
    Ok(())
}

fn runtime_class(spec: &mut Value, context: &Context<'_>) -> Result<(), String> {
    let name = spec["runtimeClassName"].as_str().unwrap_or("").to_owned();
    if name.is_empty() {
        let surplus = spec["overhead"].as_object().is_some_and(|o| !o.is_empty());
        return if surplus {
            Err(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                 Overhead"
                    .to_owned(),
            )
        } else {
            Ok(())
        };
    }
    let Some(class) = context.lookup.runtime_class(&name) else {
        return Err(format!("pod rejected: RuntimeClass {name:?} not found"));
    };
    let overhead = &class["overhead"]["podFixed"];
    if !overhead.is_null() {
        spec["overhead"] = overhead.clone();
    }
    let selector = class["scheduling"]["nodeSelector"].as_object();
    for (key, value) in selector.into_iter().flatten() {
        let own = &spec["nodeSelector"][key.as_str()];
        if !own.is_null() && own != value {
            return Err(format!(
                "pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; \
                 pod.spec.nodeSelector[{key}] = {}",
                value.as_str().unwrap_or(""),
                own.as_str().unwrap_or("")
            ));
        }
        spec["nodeSelector"][key.as_str()] = value.clone();
    }
    let added = class["scheduling"]["tolerations"].as_array();
    for toleration in added.into_iter().flatten() {
        push(&mut spec["tolerations"], toleration.clone());
    }
    Ok(())
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(list) if list.contains(&item) => {}
        Value::Array(list) => list.push(item),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *list = json!([item]);
        }
    }
}

fn tolerations(spec: &mut Value) {
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let covers = |toleration: &Value| {
            let of = |field: &str| toleration[field].as_str().unwrap_or("").to_owned();
            (of("key").is_empty() || of("key") == key)
                && (of("effect").is_empty() || of("effect") == "NoExecute")
        };
        let known = spec["tolerations"].as_array();
        if known.is_some_and(|list| list.iter().any(covers)) {
            continue;
        }
        let toleration = json!({
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": TOLERATION_SECS,
        });
        push(&mut spec["tolerations"], toleration);
    }
}
