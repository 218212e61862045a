//! A conversation with a real API server, replayed: random configurations of three appliers and
//! merge patches on a custom kind with every sort of list and map. The first line has the schema; each
//! other line has a request and what came of it.

use joiner_machinery::apply::{apply, record};
use joiner_machinery::patch;
use serde_json::{Value, json};

use super::{TEN, by, custom_version, object};

/// The server fills in a default that is a key.
fn with_defaults(mut spec: Value) -> Value {
    for item in spec["l"].as_array_mut().into_iter().flatten() {
        if item.get("p").is_none() {
            item["p"] = json!("D");
        }
    }
    if spec["l"].is_null() {
        spec.as_object_mut().unwrap().remove("l");
    }
    spec
}

fn entries(object: &Value) -> Vec<String> {
    let mut entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for entry in &mut entries {
        entry.as_object_mut().unwrap().remove("time");
    }
    let mut entries: Vec<String> = entries.iter().map(Value::to_string).collect();
    entries.sort();
    entries
}

#[test]
fn a_real_server_said_the_same() {
    let text = include_str!("recorded/things.jsonl");
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut kind = custom_version(lines.next().unwrap());
    kind.kind = "Thing".to_owned();
    let mut live: Option<Value> = None;
    for (i, line) in lines.enumerate() {
        let config = object(&kind, json!({"spec": line["spec"]}));
        let writer = by(line["manager"].as_str().unwrap(), TEN);
        let result = if line["op"] == "apply" {
            apply(
                &kind,
                live.as_ref(),
                &config,
                line["force"] == true,
                &writer,
            )
        } else {
            patch::merge(live.as_ref().unwrap(), &json!({"spec": line["spec"]})).map(|mut after| {
                after["spec"] = with_defaults(after["spec"].take());
                record(&kind, live.as_ref(), &mut after, &writer);
                after
            })
        };
        match result {
            Err(error) => {
                assert_eq!(json!(error.reason.code()), line["code"], "{i}: {error}");
                assert_eq!(error.message, line["message"].as_str().unwrap(), "{i}");
            }
            Ok(mut after) => {
                assert!(
                    line["code"].as_u64().unwrap() < 300,
                    "{i}: {}",
                    line["message"]
                );
                after["spec"] = with_defaults(after["spec"].take());
                assert_eq!(after["spec"], line["after"], "{i}");
                let theirs = json!({"metadata": {"managedFields": line["managedFields"]}});
                assert_eq!(entries(&after), entries(&theirs), "{i}");
                live = Some(after);
            }
        }
    }
}
