//! Field selectors: `spec.nodeName=a,status.phase!=Running`.

use serde_json::Value;

use crate::error::ApiError;
use crate::kinds::Kind;

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    /// As the client named it.
    label: String,
    /// Where it is in the object.
    path: Vec<String>,
    value: String,
    equal: bool,
}

/// A field selector: all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    conditions: Vec<Condition>,
}

/// What a kind offers, and what is said of anything else.
enum Offer {
    /// These, besides nothing.
    Only(&'static [&'static str]),
    /// Name and namespace; the refusal names them.
    Plain,
}

const POD: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];
const NODE: &[&str] = &["metadata.name", "spec.unschedulable"];
const NAMESPACE: &[&str] = &["metadata.name", "status.phase"];
const SECRET: &[&str] = &["metadata.name", "metadata.namespace", "type"];
const SERVICE: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "spec.clusterIP",
    "spec.type",
];
const JOB: &[&str] = &["metadata.name", "metadata.namespace", "status.successful"];
const EVENT: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const NEW_EVENT: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

fn offer(kind: &Kind) -> Offer {
    if kind.custom.is_some() {
        return Offer::Plain;
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => Offer::Only(POD),
        ("", "Node") => Offer::Only(NODE),
        ("", "Namespace") => Offer::Only(NAMESPACE),
        ("", "Secret") => Offer::Only(SECRET),
        ("", "Service") => Offer::Only(SERVICE),
        ("", "Event") => Offer::Only(EVENT),
        ("events.k8s.io", "Event") => Offer::Only(NEW_EVENT),
        ("batch", "Job") => Offer::Only(JOB),
        _ => Offer::Plain,
    }
}

/// Paths that a CRD declares, as they are declared: `.spec.color`.
fn declared(kind: &Kind) -> impl Iterator<Item = &str> {
    let fields = kind.custom.as_deref().map(|v| &v["selectableFields"]);
    let list = fields.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|field| field["jsonPath"].as_str())
        .map(|path| path.trim_start_matches('.'))
}

impl FieldSelector {
    /// Chooses everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Reads a selector for objects of a kind.
    ///
    /// # Errors
    /// 400 for a syntax error, and for a field that the kind does not offer.
    pub fn parse(kind: &Kind, text: &str) -> Result<Self, ApiError> {
        let mut conditions = Vec::new();
        for term in split(text) {
            if term.is_empty() {
                continue;
            }
            let Some((label, equal, value)) = condition(&term) else {
                return Err(ApiError::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                )));
            };
            let path = place(kind, label).map_err(ApiError::bad_request)?;
            let value = unescape(value).map_err(ApiError::bad_request)?;
            conditions.push(Condition {
                label: label.to_owned(),
                path,
                value,
                equal,
            });
        }
        Ok(Self { conditions })
    }

    /// True when there is no condition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The value that a field must have, when the selector says so: lets a server look up one
    /// object, or one node's pods, instead of all.
    #[must_use]
    pub fn exact(&self, label: &str) -> Option<&str> {
        let mut all = self.conditions.iter();
        all.find(|c| c.equal && c.label == label)
            .map(|c| c.value.as_str())
    }

    /// Whether an object fulfils all conditions.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        self.conditions.iter().all(|c| c.holds(object))
    }
}

impl Condition {
    fn holds(&self, object: &Value) -> bool {
        let value = self
            .path
            .iter()
            .fold(object, |value, key| &value[key.as_str()]);
        let same = match value {
            Value::String(text) => *text == self.value,
            Value::Bool(flag) => flag.to_string() == self.value,
            Value::Number(number) => number.to_string() == self.value,
            Value::Null => match self.label.as_str() {
                "spec.unschedulable" | "spec.hostNetwork" => self.value == "false",
                "status.successful" => self.value == "0",
                "source" | "reportingComponent" => self.reporter(object) == self.value,
                _ => self.value.is_empty(),
            },
            // Addresses of a pod are a list; any of them will do.
            Value::Array(list) => list.iter().any(|item| item["ip"] == self.value.as_str()),
            // The source of an event is an object; its component is meant.
            Value::Object(_) => self.reporter(object) == self.value,
        };
        same == self.equal
    }

    /// Who wrote an event: either field may say.
    fn reporter<'v>(&self, object: &'v Value) -> &'v str {
        let component = object["source"]["component"].as_str().unwrap_or("");
        if component.is_empty() {
            object["reportingComponent"].as_str().unwrap_or("")
        } else {
            component
        }
    }
}

/// Where a field is in an object, or why it cannot be selected by.
fn place(kind: &Kind, label: &str) -> Result<Vec<String>, String> {
    let path = |text: &str| text.split('.').map(str::to_owned).collect();
    match offer(kind) {
        Offer::Only(fields) if fields.contains(&label) => Ok(path(&stored(label))),
        Offer::Only(_) if label == "spec.host" && kind.kind == "Pod" => Ok(path("spec.nodeName")),
        Offer::Only(_) => Err(format!("field label not supported: {label}")),
        Offer::Plain if matches!(label, "metadata.name" | "metadata.namespace") => Ok(path(label)),
        Offer::Plain if declared(kind).any(|field| field == label) => Ok(path(label)),
        Offer::Plain if kind.custom.is_some() => Err(format!("field label not supported: {label}")),
        Offer::Plain => Err(format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )),
    }
}

/// The field of the stored object: events of both groups are stored in the core form, and what a
/// job has done is counted under another name.
fn stored(label: &str) -> String {
    match label {
        "status.successful" => "status.succeeded".to_owned(),
        "reportingController" => "reportingComponent".to_owned(),
        _ => label.replacen("regarding.", "involvedObject.", 1),
    }
}

/// Terms between commas that are not escaped.
fn split(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        let current = terms.len() - 1;
        if c == ',' && !escaped {
            terms.push(String::new());
        } else {
            terms[current].push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    terms
}

fn condition(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find(['=', '!'])?;
    let (label, rest) = term.split_at(at);
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some(value) = rest.strip_prefix(operator) {
            return Some((label, equal, value));
        }
    }
    None
}

fn unescape(text: &str) -> Result<String, String> {
    if !text.contains(['\\', '=', ',']) {
        return Ok(text.to_owned());
    }
    let mut plain = String::with_capacity(text.len());
    let mut escaped = false;
    for c in text.chars() {
        match (escaped, c) {
            (true, '\\' | ',' | '=') => plain.push(c),
            (true, other) => {
                return Err(format!(
                    "invalid field selector: invalid escape sequence: \\{other}"
                ));
            }
            (false, '\\') => {}
            (false, ',' | '=') => {
                // Upstream shows the number of the sign.
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                ));
            }
            (false, other) => plain.push(other),
        }
        escaped = c == '\\' && !escaped;
    }
    if escaped {
        return Err("invalid field selector: invalid escape sequence: \\".to_owned());
    }
    Ok(plain)
}
