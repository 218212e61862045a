//! What a client gets when something is wrong: the `Status` object and its code.

use serde_json::{Value, json};

use crate::kinds::Kind;

/// Machine-readable reason of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// 400.
    BadRequest,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 405.
    MethodNotAllowed,
    /// 406.
    NotAcceptable,
    /// 409: somebody else was there first.
    AlreadyExists,
    /// 409: the object has changed.
    Conflict,
    /// 410: the version is too old.
    Expired,
    /// 413.
    RequestEntityTooLarge,
    /// 415.
    UnsupportedMediaType,
    /// 422: the object breaks a rule.
    Invalid,
    /// 429.
    TooManyRequests,
    /// 500.
    InternalError,
    /// 500 without a word: what upstream answers where it has no reason of its own.
    Unknown,
    /// 504.
    Timeout,
}

impl Reason {
    /// The HTTP status code.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError | Self::Unknown => 500,
            Self::Timeout => 504,
        }
    }

    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid => "Invalid",
            Self::TooManyRequests => "TooManyRequests",
            Self::InternalError => "InternalError",
            Self::Unknown => "",
            Self::Timeout => "Timeout",
        }
    }
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable type: `FieldValueRequired`, `FieldValueInvalid`, …
    pub reason: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// Path of the field; empty for the whole object.
    pub field: String,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// Why.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// The `details` of the status: group, kind, name, uid, causes, retryAfterSeconds.
    pub details: Option<Value>,
    /// The `metadata` of the status, where a list that cannot go on says how it can.
    pub metadata: Value,
}

impl ApiError {
    /// An error without details.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            details: None,
            metadata: json!({}),
        }
    }

    /// 400 with a message.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// 404 for an object.
    #[must_use]
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{}\" not found", kind.resource(), printable(name));
        Self::about(Reason::NotFound, message, kind, name)
    }

    /// 409 for a name that is taken.
    #[must_use]
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.resource());
        Self::about(Reason::AlreadyExists, message, kind, name)
    }

    /// 409 for an object that has changed.
    #[must_use]
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.resource()
        );
        Self::about(Reason::Conflict, message, kind, name)
    }

    /// 403 with a reason.
    #[must_use]
    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.resource());
        Self::about(Reason::Forbidden, message, kind, name)
    }

    /// 422 with all that is wrong. Details carry the kind, not the resource, as upstream has it.
    #[must_use]
    pub fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for text in causes.iter().map(Cause::text) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let all = match &texts[..] {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let what = if kind.group.is_empty() {
            kind.kind.clone()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        let mut error = Self::about(
            Reason::Invalid,
            format!("{what} \"{name}\" is invalid: {all}"),
            kind,
            name,
        );
        if let Some(details) = &mut error.details {
            details["kind"] = json!(kind.kind);
            let causes: Vec<Value> = causes.iter().map(Cause::to_json).collect();
            details["causes"] = Value::Array(causes);
        }
        error
    }

    /// 422 for options that do not go together; `kind` is theirs, as in `CreateOptions`.
    #[must_use]
    pub fn invalid_options(kind: &str, cause: &Cause) -> Self {
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {}", cause.text());
        let mut error = Self::new(Reason::Invalid, message);
        error.details =
            Some(json!({"group": "meta.k8s.io", "kind": kind, "causes": [cause.to_json()]}));
        error
    }

    /// 404 for a path that leads nowhere.
    #[must_use]
    pub fn no_such_resource() -> Self {
        let mut error = Self::new(
            Reason::NotFound,
            "the server could not find the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    fn about(reason: Reason, message: String, kind: &Kind, name: &str) -> Self {
        let mut details = json!({"kind": kind.plural});
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        Self {
            reason,
            message,
            details: Some(details),
            metadata: json!({}),
        }
    }

    /// The `Status` object.
    #[must_use]
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.reason.code(),
        });
        if !self.reason.word().is_empty() {
            status["reason"] = json!(self.reason.word());
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

/// A name from a path may hold anything; signs that cannot be printed are shown by their numbers.
fn printable(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' => shown.push_str("\\\""),
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c.is_control() => {
                let number = u32::from(c);
                shown.push_str(&format!("\\x{number:02x}"));
            }
            c => shown.push(c),
        }
    }
    shown
}

impl Cause {
    fn text(&self) -> String {
        if self.field.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.field, self.message)
        }
    }

    fn to_json(&self) -> Value {
        let mut cause = json!({"reason": self.reason, "message": self.message});
        if !self.field.is_empty() {
            cause["field"] = json!(self.field);
        }
        cause
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
