//! Get, list and watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use joiner_machinery::selector::{FieldSelector, LabelSelector};
use joiner_machinery::table::{self, IncludeObject};
use joiner_machinery::{ApiError, Kind, Reason, Subresource, meta};
use serde_json::{Map, Value, json};

use crate::exchange::{Reply, Request};
use crate::server::Server;
use crate::store::packed;
use crate::verbs::{About, accept, options, pages, special};
use crate::versions;
use crate::watch::{Ask, Rendered, Start, WATCH_SECS, Wanted, start};

/// The form that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    Table(IncludeObject),
    MetadataOnly,
}

/// One object.
pub(crate) fn get(
    server: &Server,
    about: &About,
    subresource: Option<Subresource>,
    request: &Request,
) -> Result<Reply, ApiError> {
    let kind = &about.served.kind;
    if let Some(version) = request.param("resourceVersion").filter(|v| !v.is_empty()) {
        let version = options::version(version)?;
        check_future(server, version, Some(1))?;
    }
    let resource = about.served.resource();
    let key = about.key();
    let found = server.store.with(|s| s.get(&resource, &key).cloned());
    let object = found.ok_or_else(|| ApiError::not_found(kind, &key.1))?;
    let shown = versions::shown(kind, &object);
    if subresource == Some(Subresource::Scale) {
        let scale = special::scale_of(kind, &shown)?;
        return Ok(Reply::json(StatusCode::OK, &scale));
    }
    reply(server, kind, request, (StatusCode::OK, shown))
}

/// An object in the form that the client asks for.
pub(crate) fn reply(
    server: &Server,
    kind: &Kind,
    request: &Request,
    (status, shown): (StatusCode, Value),
) -> Result<Reply, ApiError> {
    let value = match form(request)? {
        Form::Whole => shown,
        Form::MetadataOnly => metadata_only(&shown),
        Form::Table(include) => {
            let version = json!({"resourceVersion": shown["metadata"]["resourceVersion"]});
            let options = table_options(include, &version);
            table::render(kind, std::iter::once(&shown), &options, server.clock.now())
        }
    };
    Ok(Reply::json(status, &value))
}

/// How items of built-in kinds look in lists: the list says what they are.
pub(crate) fn as_item(kind: &Kind, mut object: Value) -> Value {
    if kind.custom.is_none()
        && let Some(map) = object.as_object_mut()
    {
        map.remove("kind");
        map.remove("apiVersion");
    }
    object
}

/// The objects of a kind.
pub(crate) fn list(server: &Server, about: &About, request: &Request) -> Result<Reply, ApiError> {
    let kind = &about.served.kind;
    let wanted = wanted(about, request)?;
    check_version(server, request)?;
    let limit = options::number(request, "limit")?.unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(0);
    let from = match request.param("continue") {
        None | Some("") => None,
        Some(token) => Some(pages::resume(token)?),
    };
    let (objects, revision) = pages::chosen(server, about, request, &wanted, from.as_ref())?;
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    let n_all = objects.len();
    let page: Vec<Arc<Value>> = if limit > 0 && n_all > limit {
        let last = &objects[limit - 1];
        metadata["continue"] = json!(pages::token(revision, last));
        if request.param("labelSelector").is_none() && request.param("fieldSelector").is_none() {
            metadata["remainingItemCount"] = json!(n_all - limit);
        }
        objects[..limit].to_vec()
    } else {
        objects
    };
    let shown = page.iter().map(|object| versions::shown(kind, object));
    let value = match form(request)? {
        Form::Whole => {
            if kind.custom.is_some() && metadata["continue"].is_null() {
                // Lists of custom kinds have always said so.
                metadata["continue"] = json!("");
            }
            let body = whole_list(kind, &metadata, &page);
            return Ok(Reply::bytes(StatusCode::OK, "application/json", body));
        }
        Form::MetadataOnly => {
            let items: Vec<Value> = shown.map(|object| metadata_only(&object)).collect();
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata, "items": items})
        }
        Form::Table(include) => {
            let rows: Vec<Value> = shown.collect();
            let options = table_options(include, &metadata);
            table::render(kind, rows.iter(), &options, server.clock.now())
        }
    };
    Ok(Reply::json(StatusCode::OK, &value))
}

/// A list of whole objects as JSON. What is stored as it is shown is written without a copy: with ten
/// thousand pods, copies take most of the time.
fn whole_list(kind: &Kind, metadata: &Value, page: &[Arc<Value>]) -> Vec<u8> {
    let head = json!({"kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
        "metadata": metadata});
    let mut text = head.to_string();
    text.pop();
    text.push_str(",\"items\":[");
    for (ix, object) in page.iter().enumerate() {
        if ix > 0 {
            text.push(',');
        }
        match object.as_object() {
            Some(map)
                if kind.custom.is_none()
                    && object["apiVersion"] == *kind.api_version()
                    && object["kind"] == *kind.kind =>
            {
                write_item(map, &mut text);
            }
            Some(_) | None => {
                let shown = as_item(kind, versions::shown(kind, object));
                text.push_str(&shown.to_string());
            }
        }
    }
    text.push_str("]}");
    text.into_bytes()
}

/// What [`as_item`] leaves of an object, as JSON.
fn write_item(map: &Map<String, Value>, text: &mut String) {
    let fields = map
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion"));
    packed::write_fields(fields, text);
}

/// Changes as they come.
pub(crate) fn watch(
    server: &Arc<Server>,
    about: &About,
    request: &Request,
) -> Result<Reply, ApiError> {
    let kind = &about.served.kind;
    accept::check_watch(request)?;
    let wanted = wanted(about, request)?;
    let marked = request.flag("sendInitialEvents");
    let start_at = match request.param("resourceVersion") {
        _ if marked => Start::AllMarked,
        None | Some("" | "0") => Start::All,
        Some(version) => Start::After(options::version(version)?),
    };
    let secs = options::number(request, "timeoutSeconds")?;
    let secs = secs.and_then(|secs| u64::try_from(secs).ok());
    let form = form(request)?;
    let ask = Ask {
        resource: about.served.resource(),
        wanted,
        rendered: rendered(server, kind, form),
        is_whole: form == Form::Whole,
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        start: start_at,
        bookmarks: request.flag("allowWatchBookmarks"),
        secs: secs.filter(|secs| *secs > 0).unwrap_or(WATCH_SECS),
    };
    let events = start(Arc::clone(&server.store), server.clock.clone(), ask);
    Ok(Reply::stream("application/json", events))
}

fn rendered(server: &Arc<Server>, kind: &Kind, form: Form) -> Rendered {
    let kind = kind.clone();
    let clock = server.clock.clone();
    let has_headers = AtomicBool::new(false);
    Arc::new(move |object| {
        let shown = versions::shown(&kind, object);
        match form {
            Form::Whole => shown,
            Form::MetadataOnly => metadata_only(&shown),
            Form::Table(include) => {
                let version = json!({"resourceVersion": shown["metadata"]["resourceVersion"]});
                let options = table::Options {
                    no_headers: has_headers.swap(true, Ordering::Relaxed),
                    ..table_options(include, &version)
                };
                table::render(&kind, std::iter::once(&shown), &options, clock.now())
            }
        }
    })
}

/// Which objects the path and the selectors of a request choose.
pub(crate) fn wanted(about: &About, request: &Request) -> Result<Wanted, ApiError> {
    let labels = LabelSelector::parse(request.param("labelSelector").unwrap_or(""))?;
    let fields = request.param("fieldSelector").unwrap_or("");
    let fields = FieldSelector::parse(&about.served.kind, fields)?;
    let namespace = about.namespace.clone();
    let name = about.name.clone();
    Ok(Arc::new(move |object: &Value| {
        namespace
            .as_deref()
            .is_none_or(|own| meta::namespace(object) == own)
            && name.as_deref().is_none_or(|own| meta::name(object) == own)
            && labels.matches(object)
            && fields.matches(object)
    }))
}

fn form(request: &Request) -> Result<Form, ApiError> {
    let accept = request.header("accept");
    let mut refused = false;
    for option in accept.split(',').map(str::trim) {
        let has = |part: &str| option.split(';').any(|p| p.trim() == part);
        let known = [
            "as=Table",
            "as=PartialObjectMetadata",
            "as=PartialObjectMetadataList",
        ];
        let is_known = known.iter().any(|word| has(word)) && has_version(option);
        if option.contains("as=") && !is_known {
            refused = true;
            continue;
        }
        if has("as=Table") {
            let word = request.param("includeObject").unwrap_or("");
            let include = IncludeObject::parse(word).ok_or_else(|| {
                ApiError::bad_request(format!("Unable to convert to Table as requested: includeObject: Invalid value: \"{word}\": must be 'Metadata', 'Object', 'None', or empty"))
            })?;
            return Ok(Form::Table(include));
        }
        if has("as=PartialObjectMetadata") || has("as=PartialObjectMetadataList") {
            return Ok(Form::MetadataOnly);
        }
        refused = false;
        let plain = ["application/json", "application/yaml", "*/*"];
        if plain.iter().any(|form| option.starts_with(form)) {
            break;
        }
    }
    if refused {
        return Err(accept::only(accept::OBJECTS));
    }
    Ok(Form::Whole)
}

/// True when the version of the form that is asked for is one we write.
fn has_version(option: &str) -> bool {
    let mut parts = option.split(';').map(str::trim);
    parts.all(|part| {
        part.strip_prefix("v=")
            .is_none_or(|v| matches!(v, "v1" | "v1beta1"))
    })
}

fn table_options(include: IncludeObject, metadata: &Value) -> table::Options {
    table::Options {
        include,
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        no_headers: false,
    }
}

fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"]})
}

fn check_version(server: &Server, request: &Request) -> Result<(), ApiError> {
    let Some(version) = request.param("resourceVersion").filter(|v| !v.is_empty()) else {
        return Ok(());
    };
    let version = options::version(version).map_err(|error| {
        ApiError::bad_request(format!("invalid resource version: {}", error.message))
    })?;
    let is_exact = request.param("resourceVersionMatch") == Some("Exact");
    check_future(server, version, (!is_exact).then_some(1))
}

/// Nobody can read what has not happened yet.
fn check_future(server: &Server, version: u64, retry_secs: Option<u64>) -> Result<(), ApiError> {
    let now = server.store.with(|s| s.revision());
    if version <= now {
        return Ok(());
    }
    let mut error = ApiError::new(
        Reason::Timeout,
        format!("Timeout: Too large resource version: {version}, current: {now}"),
    );
    let mut details = json!({"causes": [{"reason": "ResourceVersionTooLarge",
        "message": "Too large resource version"}]});
    if let Some(secs) = retry_secs {
        details["retryAfterSeconds"] = json!(secs);
    }
    error.details = Some(details);
    Err(error)
}
