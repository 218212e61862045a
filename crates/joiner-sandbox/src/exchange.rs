//! Requests and replies, free of any HTTP library's types but the small ones.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use joiner_machinery::ApiError;
pub use joiner_machinery::rbac::User;
use serde_json::Value;
use tokio::sync::mpsc;

/// A request with its body read.
#[derive(Clone, Debug)]
pub struct Request {
    /// GET, POST, …
    pub method: Method,
    /// Path without the query.
    pub path: String,
    /// Decoded pairs of the query, in order.
    pub query: Vec<(String, String)>,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// As whom it is made; what is called within the process is an administrator's.
    pub user: User,
}

impl Request {
    /// A request from the parts of an HTTP one.
    #[must_use]
    pub fn new(parts: &http::request::Parts, body: Bytes) -> Self {
        let query = parts.uri.query().unwrap_or("");
        Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: pairs(query),
            headers: parts.headers.clone(),
            body,
            user: User::administrator(),
        }
    }

    /// The first value of a query parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// True for a name that is there, unless it says otherwise: `name=false` and `name=0`.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.param(name)
            .is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A header as text, empty when absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|v| v.to_str().ok()).unwrap_or("")
    }

    /// The media type of the body, without parameters.
    #[must_use]
    pub fn media_type(&self) -> &str {
        let full = self.header("content-type");
        full.split(';').next().unwrap_or("").trim()
    }

    /// The name under which fields are owned: asked for, or the first part of the user agent.
    #[must_use]
    pub fn manager(&self) -> &str {
        match self.param("fieldManager") {
            Some(manager) if !manager.is_empty() => manager,
            Some(_) | None => {
                let agent = self.header("user-agent");
                let first = agent.split('/').next().unwrap_or("");
                if first.is_empty() { "unknown" } else { first }
            }
        }
    }
}

/// The pairs of a query. As upstream has it, those that are not well formed do not count.
fn pairs(query: &str) -> Vec<(String, String)> {
    let parts = query.split('&').filter(|part| is_well_formed(part));
    let pairs = parts.flat_map(|part| form_urlencoded::parse(part.as_bytes()));
    pairs
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect()
}

/// True when there is no semicolon, and every percent sign has its two digits.
fn is_well_formed(part: &str) -> bool {
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    !part.contains(';') && part.split('%').skip(1).all(is_escape)
}

/// What comes back.
#[derive(Debug)]
pub struct Reply {
    /// Status code.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: String,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
    /// Seconds for a `Retry-After` header.
    pub retry_after_secs: Option<u64>,
    /// The body.
    pub body: Body,
}

/// All at once, or piece by piece.
#[derive(Debug)]
pub enum Body {
    /// The whole body.
    Full(Bytes),
    /// Pieces as they come, until the sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

impl Reply {
    /// An object as JSON.
    #[must_use]
    pub fn json(status: StatusCode, value: &Value) -> Self {
        Self::bytes(status, "application/json", value.to_string().into_bytes())
    }

    /// Text.
    #[must_use]
    pub fn text(status: StatusCode, text: &str) -> Self {
        Self::bytes(
            status,
            "text/plain; charset=utf-8",
            text.as_bytes().to_vec(),
        )
    }

    /// Any bytes.
    #[must_use]
    pub fn bytes(status: StatusCode, content_type: &str, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type: content_type.to_owned(),
            warnings: Vec::new(),
            retry_after_secs: None,
            body: Body::Full(body.into()),
        }
    }

    /// Pieces as they come.
    #[must_use]
    pub fn stream(content_type: &str, pieces: mpsc::Receiver<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: content_type.to_owned(),
            warnings: Vec::new(),
            retry_after_secs: None,
            body: Body::Stream(pieces),
        }
    }

    /// With these warnings.
    #[must_use]
    pub fn warn(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        let status = StatusCode::from_u16(error.reason.code());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut reply = Self::json(status, &error.to_status());
        let details = error.details.as_ref();
        reply.retry_after_secs = details.and_then(|d| d["retryAfterSeconds"].as_u64());
        reply
    }
}
