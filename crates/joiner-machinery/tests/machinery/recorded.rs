//! What kube-apiserver 1.36 answered to the same requests, recorded in `fixtures`.
//!
//! Uids and times are replaced by fixed ones; addresses and node ports that the server chose are
//! written as `*`. Upstream prints its internal structs in a few messages: those are compared up to
//! the first brace.

use jiff::Timestamp;
use joiner_machinery::admission::{Context, Nothing, prepare_create, prepare_update};
use joiner_machinery::crd::{CustomRules, custom_kinds};
use joiner_machinery::error::{ApiError, Cause};
use joiner_machinery::kinds::{Kind, builtin, fields};
use joiner_machinery::{defaults, validate};
use serde_json::{Value, json};

const UID: &str = "00000000-0000-4000-8000-000000000001";

fn context() -> Context<'static> {
    Context {
        now: "2026-11-15T12:00:00Z".parse::<Timestamp>().expect("a time"),
        uid: UID,
        lookup: &Nothing,
        default_service_account: false,
    }
}

fn kind_of(object: &Value) -> Kind {
    let mut all = builtin().into_iter();
    all.find(|k| object["apiVersion"] == k.api_version() && object["kind"] == k.kind)
        .expect("a built-in kind")
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn complete(kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
    if kind.namespaced && object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = json!("default");
    }
    fields::decode(kind, object)?;
    defaults::apply(kind, object);
    prepare_create(kind, object, &context())
}

fn create(kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
    complete(kind, object)?;
    let causes = validate::create(kind, object);
    if causes.is_empty() {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or("");
    Err(ApiError::invalid(kind, name, &causes))
}

/// Field, reason and message of causes, sorted: upstream walks some maps in no order.
fn rows(causes: &[Value]) -> Vec<String> {
    let row = |cause: &Value| {
        let text = |key: &str| cause[key].as_str().unwrap_or("").to_owned();
        format!(
            "{} | {} | {}",
            text("field"),
            text("reason"),
            text("message")
        )
    };
    let mut rows: Vec<String> = causes.iter().map(row).collect();
    rows.sort();
    rows
}

fn ours(error: &ApiError) -> Vec<Value> {
    let causes = error.details.as_ref().map(|details| &details["causes"]);
    causes
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

fn list_of(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Messages agree; where upstream prints an internal struct, up to that.
fn agree(expected: &[String], found: &[String]) -> bool {
    expected.len() == found.len()
        && expected.iter().zip(found).all(|(expected, found)| {
            let start = |text: &str| {
                let internal = [
                    "Invalid value: {\"",
                    "Invalid value: [{\"",
                    "compilation failed",
                ];
                let cut = internal.iter().filter_map(|mark| text.find(mark)).min();
                let cut = cut
                    .or_else(|| text.find("\n@@"))
                    .or_else(|| text.find("expression, but isn't"));
                text[..cut.unwrap_or(text.len())].to_owned()
            };
            expected == found
                || (start(expected) == start(found) && start(expected).len() < expected.len())
        })
}

#[test]
fn new_objects_are_completed_alike() {
    let mut wrong = Vec::new();
    for case in list_of(&read(include_str!("fixtures/created.json"))) {
        let mut object = case["input"].clone();
        let kind = kind_of(&object);
        if let Err(error) = create(&kind, &mut object) {
            wrong.push(format!("{}\n  refused: {error}", case["input"]));
            continue;
        }
        let mut expected = case["output"].clone();
        forget_chosen(&mut expected, &mut object);
        if object != expected {
            wrong.push(format!(
                "{}\n  ours   {object}\n  theirs {expected}",
                case["input"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Replaces what the server chose at will by the same in both.
fn forget_chosen(expected: &mut Value, object: &mut Value) {
    for path in [
        "/spec/clusterIP",
        "/spec/clusterIPs",
        "/spec/ports/0/nodePort",
    ] {
        let chosen = expected.pointer(path).is_some_and(|value| value == "*");
        if chosen && let Some(ours) = object.pointer_mut(path) {
            *ours = json!("*");
        }
    }
}

#[test]
fn bad_objects_are_refused_alike() {
    let mut wrong = Vec::new();
    for case in list_of(&read(include_str!("fixtures/refused.json"))) {
        let mut object = case["input"].clone();
        // Which namespace a request is for is known to the server, not here.
        if object["metadata"]["namespace"] == "other" {
            continue;
        }
        let kind = kind_of(&object);
        let result = create(&kind, &mut object);
        let (code, causes, message) = match &result {
            Ok(()) => (201, Vec::new(), String::new()),
            Err(error) => (error.reason.code(), ours(error), error.message.clone()),
        };
        let (expected, found) = (rows(&list_of(&case["causes"])), rows(&causes));
        let same_message = case["message"].as_str().is_none_or(|text| text == message);
        if case["code"] != code || !agree(&expected, &found) || !same_message {
            wrong.push(format!(
                "{}\n  ours   {code} {}\n  theirs {} {}{}",
                case["input"],
                if found.is_empty() {
                    message
                } else {
                    found.join("\n         ")
                },
                case["code"],
                expected.join("\n         "),
                case["message"].as_str().unwrap_or(""),
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Writes a value at a dotted path.
fn set(object: &mut Value, path: &str, value: &Value) {
    let (above, last) = path.rsplit_once('.').unwrap_or(("", path));
    let pointer = above.split('.').filter(|key| !key.is_empty());
    let pointer: String = pointer.map(|key| format!("/{key}")).collect();
    if object.pointer(&pointer).is_none() {
        set(object, above, &json!({}));
    }
    let target = object.pointer_mut(&pointer).expect("it was made");
    match (target, last.parse::<usize>()) {
        (Value::Array(list), Ok(index)) => list[index] = value.clone(),
        (target, _) if value.is_null() => {
            if let Some(map) = target.as_object_mut() {
                map.remove(last);
            }
        }
        (target, _) => target[last] = value.clone(),
    }
}

#[test]
fn changes_are_taken_and_refused_alike() {
    let mut wrong = Vec::new();
    for case in list_of(&read(include_str!("fixtures/updated.json"))) {
        let (old, field) = (&case["old"], case["field"].as_str().unwrap());
        // The name in the path is known to the server, not here.
        if field == "metadata.name" {
            continue;
        }
        let kind = kind_of(old);
        let mut new = old.clone();
        set(&mut new, field, &case["value"]);
        let outcome = fields::decode(&kind, &mut new).and_then(|_| {
            defaults::apply(&kind, &mut new);
            prepare_update(&kind, old, &mut new, None, &context())
        });
        let causes = match &outcome {
            Ok(()) => validate::update(&kind, old, &new),
            Err(_) => Vec::new(),
        };
        let found = rows(&list_of(&json_of(&causes)));
        let expected = rows(&list_of(&case["causes"]));
        let code = match &outcome {
            Ok(()) if causes.is_empty() => 200,
            Ok(()) => 422,
            Err(error) => error.reason.code(),
        };
        let message = outcome.err().map_or(String::new(), |error| error.message);
        let mut theirs = case["output"].clone();
        if theirs.is_object() {
            forget_chosen(&mut theirs, &mut new);
            theirs["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"].clone();
            if kind.kind == "Service" {
                for port in theirs["spec"]["ports"].as_array_mut().into_iter().flatten() {
                    port.as_object_mut().unwrap().remove("nodePort");
                }
                for port in new["spec"]["ports"].as_array_mut().into_iter().flatten() {
                    port.as_object_mut().unwrap().remove("nodePort");
                }
            }
        }
        let same_object = code != 200 || new == theirs;
        let same_message = case["message"].as_str().is_none_or(|text| text == message);
        if case["code"] != code || !agree(&expected, &found) || !same_object || !same_message {
            wrong.push(format!(
                "{} {field} = {}\n  ours   {code} {}{message}\n  theirs {} {}{}",
                kind.kind,
                case["value"],
                found.join("\n         "),
                case["code"],
                expected.join("\n         "),
                case["message"].as_str().unwrap_or(""),
            ));
            if !same_object {
                wrong.push(format!("  ours   {new}\n  theirs {theirs}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn json_of(causes: &[Cause]) -> Value {
    let one = |cause: &Cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field});
    causes.iter().map(one).collect()
}

#[test]
fn custom_objects_are_completed_and_judged_alike() {
    let all = read(include_str!("fixtures/custom.json"));
    let mut crd = all["crd"].clone();
    create(&kind_of(&crd), &mut crd).unwrap();
    let kind = custom_kinds(&crd).remove(0);
    let rules = CustomRules::compile(kind.custom.as_deref().unwrap()).unwrap();
    let mut wrong = Vec::new();
    let prepare = |object: &mut Value| {
        object["metadata"]["namespace"] = json!("default");
        rules.decode(&kind, object)?;
        rules.apply_defaults(object);
        prepare_create(&kind, object, &context())
    };
    for case in list_of(&all["good"]) {
        let mut object = case["input"].clone();
        prepare(&mut object).unwrap();
        let causes = rules.create(&kind, &object);
        if object != case["output"] || !causes.is_empty() {
            wrong.push(format!(
                "ours   {object} {causes:?}\ntheirs {}",
                case["output"]
            ));
        }
    }
    for case in list_of(&all["bad"]) {
        let mut object = case["input"].clone();
        let prepared = prepare(&mut object);
        let found = match &prepared {
            Ok(()) => rows(&list_of(&json_of(&rules.create(&kind, &object)))),
            Err(_) => Vec::new(),
        };
        let expected = rows(&list_of(&case["causes"]));
        let message = prepared.err().map_or(String::new(), |error| error.message);
        let same_message = case["message"].as_str().is_none_or(|text| text == message);
        if !agree(&expected, &found) || !same_message {
            wrong.push(format!(
                "{}\n  ours   {}{message}\n  theirs {}{}",
                case["input"]["spec"],
                found.join("\n         "),
                expected.join("\n         "),
                case["message"].as_str().unwrap_or("")
            ));
        }
    }
    for case in list_of(&all["update"]) {
        let old = &case["old"];
        let mut new = old.clone();
        set(&mut new, case["field"].as_str().unwrap(), &case["value"]);
        rules.decode(&kind, &mut new).unwrap();
        rules.apply_defaults(&mut new);
        prepare_update(&kind, old, &mut new, None, &context()).unwrap();
        let found = rows(&list_of(&json_of(&rules.update(&kind, old, &new))));
        let expected = rows(&list_of(&case["causes"]));
        let mut theirs = case["output"].clone();
        if theirs.is_object() {
            theirs["metadata"]["resourceVersion"] = new["metadata"]["resourceVersion"].clone();
        }
        if !agree(&expected, &found) || (theirs.is_object() && theirs != new) {
            wrong.push(format!(
                "{}\n ours {found:?} {new}\n theirs {expected:?} {theirs}",
                case["field"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn bad_definitions_are_refused_alike() {
    let mut wrong = Vec::new();
    for case in list_of(&read(include_str!("fixtures/definitions.json"))) {
        let mut object = case["input"].clone();
        let found = match create(&kind_of(&object), &mut object) {
            Ok(()) => Vec::new(),
            Err(error) => rows(&ours(&error)),
        };
        let expected = rows(&list_of(&case["causes"]));
        // Rules are compiled here without the types of what they speak of.
        let typed = |row: &String| {
            row.contains("undefined field") || row.contains("must evaluate to a bool")
        };
        if !agree(&expected, &found) && !expected.iter().any(typed) {
            wrong.push(format!(
                "{}\n  ours   {}\n  theirs {}",
                case["input"]["spec"],
                found.join("\n         "),
                expected.join("\n         ")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
