//! Options in the query: which go together, and what upstream says when they do not.

use joiner_machinery::{ApiError, Cause, Reason};

use crate::exchange::Request;

/// Longest name of a field manager.
const MANAGER_MAX: usize = 128;

/// Refuses options that make no sense.
pub(crate) fn check(request: &Request) -> Result<(), ApiError> {
    match request.method.as_str() {
        "GET" => check_list(request),
        "POST" => check_write(request, "CreateOptions"),
        "PUT" => check_write(request, "UpdateOptions"),
        "PATCH" => {
            check_write(request, "PatchOptions")?;
            check_patch(request)
        }
        "DELETE" => check_dry_run(request, "DeleteOptions"),
        _ => Ok(()),
    }
}

fn refuse(kind: &str, reason: &'static str, field: &str, message: String) -> ApiError {
    let cause = Cause {
        reason,
        message,
        field: field.to_owned(),
    };
    ApiError::invalid_options(kind, &cause)
}

fn forbid(kind: &str, field: &str, why: &str) -> ApiError {
    let message = format!("Forbidden: {why}");
    refuse(kind, "FieldValueForbidden", field, message)
}

fn unsupported(kind: &str, field: &str, given: &str, known: &str) -> ApiError {
    let message = format!("Unsupported value: {given}: supported values: {known}");
    refuse(kind, "FieldValueNotSupported", field, message)
}

fn check_dry_run(request: &Request, kind: &str) -> Result<(), ApiError> {
    match request.param("dryRun") {
        None | Some("All" | "") => Ok(()),
        Some(other) => {
            let given = format!("[\"{other}\"]");
            Err(unsupported(kind, "dryRun", &given, "\"All\""))
        }
    }
}

fn check_write(request: &Request, kind: &str) -> Result<(), ApiError> {
    check_dry_run(request, kind)?;
    if request
        .param("fieldManager")
        .is_some_and(|name| name.len() > MANAGER_MAX)
    {
        let message = format!("Too long: may not be more than {MANAGER_MAX} bytes");
        return Err(refuse(kind, "FieldValueTooLong", "fieldManager", message));
    }
    match request.param("fieldValidation") {
        None | Some("" | "Ignore" | "Strict" | "Warn") => Ok(()),
        Some(other) => {
            let given = format!("\"{other}\"");
            let known = "\"\", \"Ignore\", \"Strict\", \"Warn\"";
            Err(unsupported(kind, "fieldValidation", &given, known))
        }
    }
}

fn check_patch(request: &Request) -> Result<(), ApiError> {
    let is_apply = request.media_type().starts_with("application/apply-patch");
    if is_apply && request.param("fieldManager").is_none_or(str::is_empty) {
        let message = "Required value: is required for apply patch".to_owned();
        return Err(refuse(
            "PatchOptions",
            "FieldValueRequired",
            "fieldManager",
            message,
        ));
    }
    if !is_apply && request.param("force").is_some() {
        let why = "may not be specified for non-apply patch";
        return Err(forbid("PatchOptions", "force", why));
    }
    Ok(())
}

fn check_list(request: &Request) -> Result<(), ApiError> {
    let kind = "ListOptions";
    let field = "resourceVersionMatch";
    let chosen = request.param(field).unwrap_or("");
    let version = request.param("resourceVersion").unwrap_or("");
    let is_watch = request.flag("watch") || request.path.contains("/watch/");
    let initial = request.param("sendInitialEvents").is_some();
    if is_watch {
        if initial && chosen != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            return Err(forbid(kind, field, why));
        }
        if !initial && !chosen.is_empty() {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            return Err(forbid(kind, field, why));
        }
        return Ok(());
    }
    if initial {
        let why = "sendInitialEvents is forbidden for list";
        return Err(forbid(kind, "sendInitialEvents", why));
    }
    if !version.is_empty() && request.param("continue").is_some_and(|c| !c.is_empty()) {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    match chosen {
        "" => Ok(()),
        _ if version.is_empty() => {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            Err(forbid(kind, field, why))
        }
        "Exact" if version == "0" => {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            Err(forbid(kind, field, why))
        }
        "Exact" | "NotOlderThan" => Ok(()),
        other => {
            let given = format!("\"{other}\"");
            let known = "\"Exact\", \"NotOlderThan\", \"\"";
            Err(unsupported(kind, field, &given, known))
        }
    }
}

/// A whole number of the query, in upstream's words when it is none.
pub(crate) fn number(request: &Request, name: &str) -> Result<Option<i64>, ApiError> {
    match request.param(name) {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|error| {
            let why = number_fault(&error);
            ApiError::bad_request(format!("strconv.ParseInt: parsing \"{text}\": {why}"))
        }),
    }
}

/// A resource version of the query or of an object.
pub(crate) fn version(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|error| {
        let why = number_fault(&error);
        ApiError::new(
            Reason::Unknown,
            format!(
                "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": {why}"
            ),
        )
    })
}

/// Why a text is no number, in upstream's words.
pub(crate) fn number_fault(error: &std::num::ParseIntError) -> &'static str {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    if matches!(error.kind(), PosOverflow | NegOverflow) {
        "value out of range"
    } else {
        "invalid syntax"
    }
}
