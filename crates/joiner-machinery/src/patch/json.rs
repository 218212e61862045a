//! JSON patch, RFC 6902: a list of operations, all of which work or none.

use json_patch::PatchOperation;
use serde_json::Value;

use super::does_not_fit;
use crate::error::{ApiError, Reason};

/// How many operations a patch may have.
const MOST_OPERATIONS: usize = 10_000;

/// How many bytes its copies may add up to, since copies of copies grow fast.
const MOST_COPIED: usize = 3 << 20;

/// How deep objects may get. Readers of JSON stop far earlier; patches could go on forever.
const DEEPEST: usize = 500;

/// The object after a JSON patch.
///
/// # Errors
///
/// 400 when the patch is not a list of operations, 413 when they are too many, 422 when one fails:
/// a path that is not there, a test that does not hold.
pub fn json(target: &Value, patch: &Value) -> Result<Value, ApiError> {
    let operations = match patch {
        Value::Array(operations) => operations,
        Value::Null => return Ok(target.clone()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return Err(fault(patch, "value of type []handlers.jsonPatchOp"));
        }
    };
    operations.iter().try_for_each(check)?;
    if operations.len() > MOST_OPERATIONS {
        return Err(ApiError::new(
            Reason::RequestEntityTooLarge,
            format!(
                "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                operations.len()
            ),
        ));
    }
    let mut out = target.clone();
    let mut copied = 0;
    for operation in operations {
        let operation = read(operation).ok_or_else(does_not_fit)?;
        let operation = match operation {
            PatchOperation::Remove(remove) if is_missing(&out, remove.path.as_str()) => continue,
            PatchOperation::Replace(replace) if is_missing(&out, replace.path.as_str()) => {
                PatchOperation::Add(json_patch::AddOperation {
                    path: replace.path,
                    value: replace.value,
                })
            }
            other @ (PatchOperation::Add(_)
            | PatchOperation::Remove(_)
            | PatchOperation::Replace(_)
            | PatchOperation::Move(_)
            | PatchOperation::Copy(_)
            | PatchOperation::Test(_)) => other,
        };
        if !is_bounded(&operation, &out, &mut copied)
            || json_patch::patch_unsafe(&mut out, std::slice::from_ref(&operation)).is_err()
        {
            return Err(does_not_fit());
        }
    }
    Ok(out)
}

/// Refuses what is no operation at all. An unknown one passes here and fails later, as upstream
/// has it.
fn check(operation: &Value) -> Result<(), ApiError> {
    let operation = match operation {
        Value::Object(operation) => operation,
        Value::Null => return Ok(()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(fault(operation, "value of type handlers.jsonPatchOp"));
        }
    };
    for name in ["op", "path", "from"] {
        match operation.get(name) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                let wanted = format!("struct field jsonPatchOp.{name} of type string");
                return Err(fault(other, &wanted));
            }
        }
    }
    Ok(())
}

fn fault(found: &Value, wanted: &str) -> ApiError {
    super::unreadable("error decoding patch: ", found, wanted)
}

/// True when a mapping is there, but not this entry of it. Upstream takes that lightly.
fn is_missing(object: &Value, path: &str) -> bool {
    let Some((parent, _)) = path.rsplit_once('/') else {
        return false;
    };
    object.pointer(parent).is_some_and(Value::is_object) && object.pointer(path).is_none()
}

/// Reads an operation. Whatever is in front of the first slash of a path does not count, as upstream
/// has it.
fn read(operation: &Value) -> Option<PatchOperation> {
    let mut operation = operation.clone();
    for name in ["path", "from"] {
        if let Some(Value::String(path)) = operation.get_mut(name)
            && let Some(slash) = path.find('/')
        {
            path.drain(..slash);
        }
    }
    serde_json::from_value(operation).ok()
}

fn is_bounded(operation: &PatchOperation, object: &Value, copied: &mut usize) -> bool {
    let source = |from: &str| object.pointer(from);
    let added = match operation {
        PatchOperation::Add(add) => Some(&add.value),
        PatchOperation::Replace(replace) => Some(&replace.value),
        PatchOperation::Move(shift) => source(shift.from.as_str()),
        PatchOperation::Copy(copy) => {
            let from = source(copy.from.as_str());
            *copied += from.map_or(0, size);
            from
        }
        PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
    };
    let path = operation.path().as_str();
    let steps = path.bytes().filter(|byte| *byte == b'/').count();
    *copied <= MOST_COPIED && added.is_none_or(|value| steps + depth(value) <= DEEPEST)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// About as many bytes as the value takes when written.
fn size(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            map.iter()
                .map(|(k, v)| k.len() + 4 + size(v))
                .sum::<usize>()
                + 2
        }
        Value::Array(list) => list.iter().map(|v| 1 + size(v)).sum::<usize>() + 2,
        Value::String(text) => text.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations() {
        let target = json!({"spec": {"replicas": 1, "list": ["a", "b"]}});
        let patch = json!([
            {"op": "test", "path": "/spec/replicas", "value": 1},
            {"op": "replace", "path": "/spec/replicas", "value": 3},
            {"op": "add", "path": "/spec/list/-", "value": "c"},
            {"op": "add", "path": "/spec/a~1b", "value": {}},
            {"op": "copy", "from": "/spec/list/0", "path": "/spec/first"},
            {"op": "move", "from": "/spec/list/1", "path": "/spec/second"},
            {"op": "remove", "path": "/spec/list/0"},
        ]);
        let expected =
            json!({"spec": {"replicas": 3, "list": ["c"], "a/b": {}, "first": "a", "second": "b"}});
        assert_eq!(json(&target, &patch).unwrap(), expected);
    }

    #[test]
    fn entries_that_are_not_there_do_no_harm() {
        let target = json!({"spec": {"replicas": 1}});
        let patch = json!([
            {"op": "remove", "path": "/spec/none"},
            {"op": "replace", "path": "/spec/new", "value": 1},
        ]);
        let expected = json!({"spec": {"replicas": 1, "new": 1}});
        assert_eq!(json(&target, &patch).unwrap(), expected);
    }

    #[test]
    fn what_fails() {
        let target = json!({"spec": {"replicas": 1}});
        let cases = [
            (json!({}), 400),
            (json!("x"), 400),
            (json!([1]), 400),
            (json!([{"op": 1, "path": "/spec"}]), 400),
            (
                json!([{"op": "test", "path": "/spec/replicas", "value": 2}]),
                422,
            ),
            (json!([{"op": "remove", "path": "/none/deep"}]), 422),
            (
                json!([{"op": "add", "path": "/none/deep", "value": 1}]),
                422,
            ),
            (json!([{"op": "dance", "path": "/spec"}]), 422),
            (json!([{"op": "add", "path": "spec", "value": 1}]), 422),
            (json!([null]), 422),
            (json!([{"op": "add"}]), 422),
        ];
        for (patch, code) in cases {
            let error = json(&target, &patch).unwrap_err();
            assert_eq!(error.reason.code(), code, "{patch}: {error}");
        }
    }

    #[test]
    fn copies_of_copies_and_deep_objects_have_an_end() {
        let double = json!({"op": "copy", "from": "/a", "path": "/a/b"});
        let add = json!({"op": "add", "path": "/a/-", "value": ["xxxxxxxxxxxxxxxx"]});
        let copy = json!({"op": "copy", "from": "/a", "path": "/a/0"});
        for (target, patch) in [
            (json!({"a": {}}), vec![double; 2000]),
            (json!({"a": []}), [vec![add], vec![copy; 40]].concat()),
        ] {
            let error = json(&target, &Value::Array(patch)).unwrap_err();
            assert_eq!(error.reason, Reason::Invalid);
        }
        let many = vec![json!({"op": "remove", "path": "/a"}); MOST_OPERATIONS + 1];
        let error = json(&json!({}), &Value::Array(many)).unwrap_err();
        assert_eq!(error.reason.code(), 413);
    }
}
