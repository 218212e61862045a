//! What may be done to a kind, path by path.

use serde_json::{Map, Value, json};

use super::schemas::reference;
use crate::kinds::{Kind, Subresource};

/// Adds the paths of a kind, whose schema has this name.
pub(super) fn add(paths: &mut Map<String, Value>, kind: &Kind, schema: &str) {
    let operations = Operations { kind, schema };
    let list = kind.path(Some("{namespace}"));
    let one = format!("{list}/{{name}}");
    let named = operations.parameters(true);
    paths.insert(list.clone(), operations.under_list());
    if kind.namespaced {
        let everywhere = json!({"get": operations.operation("list", LIST)});
        if kind.verbs().contains(&"list") {
            paths.insert(kind.path(None), everywhere);
        }
    }
    if kind.verbs().contains(&"get") {
        paths.insert(one.clone(), operations.under_name());
    }
    for subresource in &kind.subresources {
        if matches!(subresource, Subresource::Status | Subresource::Scale)
            && let Some(word) = subresource.word()
        {
            let mut entry = json!({"parameters": named});
            for (method, action, params) in [
                ("get", "get", GET),
                ("put", "put", WRITE),
                ("patch", "patch", PATCH),
            ] {
                entry[method] = operations.under(*subresource, action, params);
            }
            paths.insert(format!("{one}/{word}"), entry);
        }
    }
}

/// A query parameter: its name, type and meaning.
type Parameter = (&'static str, &'static str, &'static str);

const DRY_RUN: Parameter = (
    "dryRun",
    "string",
    "All: answer as usual, but change nothing.",
);
const MANAGER: Parameter = (
    "fieldManager",
    "string",
    "Who will own the fields that are set.",
);
const VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "What to do about unknown fields: Ignore, Warn or Strict.",
);
const GET: &[Parameter] = &[];
const WRITE: &[Parameter] = &[DRY_RUN, MANAGER, VALIDATION];
const PATCH: &[Parameter] = &[
    DRY_RUN,
    MANAGER,
    VALIDATION,
    ("force", "boolean", "Take fields over from other managers."),
];
const SELECTORS: [Parameter; 2] = [
    ("fieldSelector", "string", "Only objects with these fields."),
    ("labelSelector", "string", "Only objects with these labels."),
];
const LIST: &[Parameter] = &[
    (
        "allowWatchBookmarks",
        "boolean",
        "Send the current version now and then.",
    ),
    (
        "continue",
        "string",
        "Where the previous part of the list ended.",
    ),
    SELECTORS[0],
    SELECTORS[1],
    ("limit", "integer", "How many objects at once."),
    (
        "resourceVersion",
        "string",
        "The version to read, or to watch from.",
    ),
    ("resourceVersionMatch", "string", "Exact, or NotOlderThan."),
    (
        "sendInitialEvents",
        "boolean",
        "Start a watch with what is there.",
    ),
    ("timeoutSeconds", "integer", "When a watch ends."),
    ("watch", "boolean", "Go on with changes."),
];
const DELETE: &[Parameter] = &[
    DRY_RUN,
    (
        "gracePeriodSeconds",
        "integer",
        "How long the object has to end.",
    ),
    (
        "propagationPolicy",
        "string",
        "Orphan, Background or Foreground.",
    ),
];

struct Operations<'k> {
    kind: &'k Kind,
    schema: &'k str,
}

impl Operations<'_> {
    fn under_list(&self) -> Value {
        let mut entry = json!({"parameters": self.parameters(false)});
        for (verb, method, action, params) in [
            ("list", "get", "list", LIST),
            ("create", "post", "post", WRITE),
            ("deletecollection", "delete", "deletecollection", DELETE),
        ] {
            if self.kind.verbs().contains(&verb) {
                entry[method] = self.operation(action, params);
            }
        }
        entry
    }

    fn under_name(&self) -> Value {
        let mut entry = json!({"parameters": self.parameters(true)});
        for (verb, method, params) in [
            ("get", "get", GET),
            ("update", "put", WRITE),
            ("patch", "patch", PATCH),
            ("delete", "delete", DELETE),
        ] {
            if self.kind.verbs().contains(&verb) {
                entry[method] = self.operation(method, params);
            }
        }
        entry
    }

    fn under(&self, subresource: Subresource, action: &str, params: &[Parameter]) -> Value {
        let mut operation = self.operation(action, params);
        if subresource == Subresource::Scale {
            operation["x-kubernetes-group-version-kind"] =
                json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        }
        operation
    }

    fn operation(&self, action: &str, params: &[Parameter]) -> Value {
        let kind = self.kind;
        let parameter = |(name, of, description): &Parameter| {
            json!({
                "name": name,
                "in": "query",
                "description": description,
                "schema": {"type": of, "uniqueItems": true},
            })
        };
        let mut operation = json!({
            "description": format!("{action} {}", kind.plural),
            "parameters": params.iter().map(parameter).collect::<Vec<_>>(),
            "responses": {"200": {
                "description": "OK",
                "content": {"application/json": {"schema": reference(self.schema)}},
            }},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {
                "group": kind.group, "version": kind.version, "kind": kind.kind,
            },
        });
        let body = match action {
            "post" | "put" => json!({"application/json": {"schema": reference(self.schema)}}),
            "patch" => self.patch_types(),
            _ => return operation,
        };
        operation["requestBody"] = json!({"content": body, "required": true});
        operation
    }

    fn patch_types(&self) -> Value {
        let any = json!({"schema": {"type": "object"}});
        let mut content = json!({
            "application/apply-patch+yaml": any,
            "application/json-patch+json": any,
            "application/merge-patch+json": any,
        });
        // From this kubectl knows which kind of patch to send.
        if self.kind.custom.is_none() {
            content["application/strategic-merge-patch+json"] = any;
        }
        content
    }

    fn parameters(&self, with_name: bool) -> Value {
        let parameter = |name: &str, description: String| {
            json!({
                "name": name,
                "in": "path",
                "description": description,
                "required": true,
                "schema": {"type": "string", "uniqueItems": true},
            })
        };
        let mut list = Vec::new();
        if with_name {
            list.push(parameter("name", format!("name of the {}", self.kind.kind)));
        }
        if self.kind.namespaced {
            list.push(parameter("namespace", "namespace of the object".to_owned()));
        }
        Value::Array(list)
    }
}
