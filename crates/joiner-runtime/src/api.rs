//! Every write to Kubernetes goes through here, and what is read of single objects.
//!
//! What the server answers is noted in the [`World`] before the call returns, so that whoever
//! decides next sees it. In a dry run nothing is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use joiner_model::Name;
use joiner_state::live::Kind;
use kube::Client;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::metric_names::{CLIENT_REQUEST_DURATION, CLIENT_REQUESTS};
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::watch::chain;
use crate::world::World;

/// The longest that an answer may take. A server that went away without a word never answers, and
/// whoever asked would wait for good. It is the network's time, however fast the clock runs.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Why a write did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiFailure {
    /// There is no such object.
    #[error("not found")]
    NotFound,
    /// The object has changed, or is somebody else's by now.
    #[error("conflict: {0}")]
    Conflict(String),
    /// There is one of that name.
    #[error("already exists")]
    AlreadyExists,
    /// Not now: a disruption budget, or the server is busy.
    #[error("not now: {0}")]
    TooManyRequests(String),
    /// We may not.
    #[error("not allowed: {0}")]
    Forbidden(String),
    /// The server does not accept the object.
    #[error("refused: {0}")]
    Invalid(String),
    /// The server cannot be reached, or has trouble of its own.
    #[error("the API server is away: {0}")]
    Away(String),
    /// Anything else.
    #[error("{code}: {message}")]
    Other {
        /// HTTP status.
        code: u16,
        /// What the server says.
        message: String,
    },
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// The object as it is now.
    Object(Box<Value>),
    /// Nothing: this is a dry run.
    Dry,
}

/// How to delete.
#[derive(Clone, Debug, Default)]
pub struct Delete {
    /// Only if it still has this uid.
    pub uid: Option<Name>,
    /// Seconds it gets; its own when absent.
    pub grace_secs: Option<u32>,
}

/// Writes to Kubernetes.
#[derive(Clone)]
pub struct Api {
    client: Client,
    world: World,
    dry_run: bool,
    pace: Option<Pace>,
    metrics: Option<(Arc<Metrics>, Clock)>,
    n_requests: Arc<AtomicU64>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

/// Where the API server keeps node classes of a kind: they come from the cloud, so that [`Kind`] does not
/// know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassPath {
    /// Group of the API.
    pub group: &'static str,
    /// Version of the API.
    pub version: &'static str,
    /// Plural, as in paths.
    pub plural: &'static str,
    /// Kind.
    pub kind: &'static str,
}

/// What to send.
struct Call<'a> {
    method: &'static str,
    kind: Kind,
    /// Of node classes: where they are.
    class: Option<ClassPath>,
    /// `namespace/name`, or the name alone; empty for the collection.
    name: &'a str,
    /// Below the object, for example `status`.
    sub: &'static str,
    body: Value,
    content: &'static str,
}

impl Call<'_> {
    /// Group, version, plural and kind of what it is about.
    fn place(&self) -> (&'static str, &'static str, &'static str, &'static str) {
        let known = self
            .class
            .map(|own| (own.group, own.version, own.plural, own.kind));
        known.unwrap_or(self.kind.api())
    }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl Api {
    /// Writes with `client` and notes answers in `world`.
    #[must_use]
    pub fn new(client: Client, world: World, dry_run: bool) -> Self {
        Self {
            client,
            world,
            dry_run,
            pace: None,
            metrics: None,
            n_requests: Arc::default(),
        }
    }

    /// The same, no faster than this.
    #[must_use]
    pub fn paced(mut self, pace: Pace) -> Self {
        self.pace = Some(pace);
        self
    }

    /// The same, with requests counted and timed.
    #[must_use]
    pub fn metered(mut self, metrics: Arc<Metrics>, clock: Clock) -> Self {
        self.metrics = Some((metrics, clock));
        self
    }

    /// True when nothing is written.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// How many requests were sent.
    #[must_use]
    pub fn n_requests(&self) -> u64 {
        self.n_requests.load(Ordering::Relaxed)
    }

    /// Creates an object.
    pub async fn create(&self, kind: Kind, object: &Value) -> Result<Written, ApiFailure> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let within = match namespace {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        self.write(Call {
            method: "POST",
            kind,
            class: None,
            name: &within,
            sub: "",
            body: object.clone(),
            content: JSON,
        })
        .await
    }

    /// Changes an object by a merge patch (RFC 7396).
    pub async fn patch(
        &self,
        kind: Kind,
        name: &str,
        patch: &Value,
    ) -> Result<Written, ApiFailure> {
        self.change(kind, name, ("", MERGE), patch).await
    }

    /// Changes the status of an object by a merge patch (RFC 7396).
    pub async fn patch_status(
        &self,
        kind: Kind,
        name: &str,
        patch: &Value,
    ) -> Result<Written, ApiFailure> {
        self.change(kind, name, ("status", MERGE), patch).await
    }

    /// Changes the number of replicas of a workload by a merge patch (RFC 7396) of its scale. The
    /// world hears of it from the watch.
    pub async fn patch_scale(
        &self,
        kind: Kind,
        name: &str,
        patch: &Value,
    ) -> Result<Written, ApiFailure> {
        self.change(kind, name, ("scale", MERGE), patch).await
    }

    /// Changes the status of an object of Kubernetes' own by a strategic merge patch: lists are merged
    /// by their keys.
    pub async fn merge_status(
        &self,
        kind: Kind,
        name: &str,
        patch: &Value,
    ) -> Result<Written, ApiFailure> {
        self.change(kind, name, ("status", STRATEGIC), patch).await
    }

    async fn change(
        &self,
        kind: Kind,
        name: &str,
        (sub, content): (&'static str, &'static str),
        patch: &Value,
    ) -> Result<Written, ApiFailure> {
        self.write(Call {
            method: "PATCH",
            kind,
            class: None,
            name,
            sub,
            body: patch.clone(),
            content,
        })
        .await
    }

    /// Changes a node class, or with `sub` its `status`, by a merge patch (RFC 7396).
    pub async fn patch_class(
        &self,
        class: ClassPath,
        name: &str,
        sub: &'static str,
        patch: &Value,
    ) -> Result<Written, ApiFailure> {
        self.write(Call {
            method: "PATCH",
            kind: Kind::NodeClass,
            class: Some(class),
            name,
            sub,
            body: patch.clone(),
            content: MERGE,
        })
        .await
    }

    /// Reads a node class as the server has it now; the world is not told. None when there is none.
    pub async fn get_class(
        &self,
        class: ClassPath,
        name: &str,
    ) -> Result<Option<Value>, ApiFailure> {
        self.read(Kind::NodeClass, Some(class), name).await
    }

    /// Deletes an object. One that is gone already is [`ApiFailure::NotFound`].
    pub async fn delete(&self, kind: Kind, name: &str, how: Delete) -> Result<(), ApiFailure> {
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if let Some(uid) = &how.uid {
            body["preconditions"] = json!({"uid": &**uid});
        }
        if let Some(secs) = how.grace_secs {
            body["gracePeriodSeconds"] = json!(secs);
        }
        let call = Call {
            method: "DELETE",
            kind,
            class: None,
            name,
            sub: "",
            body,
            content: JSON,
        };
        self.write(call).await.map(|_| ())
    }

    /// Evicts a pod, as far as disruption budgets allow.
    pub async fn evict(&self, pod: &str, uid: &str) -> Result<(), ApiFailure> {
        let (namespace, name) = pod.split_once('/').unwrap_or(("", pod));
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}}});
        let call = Call {
            method: "POST",
            kind: Kind::Pod,
            class: None,
            name: pod,
            sub: "eviction",
            body,
            content: JSON,
        };
        self.write(call).await.map(|_| ())
    }

    /// Reads an object as the server has it now; the world is not told. None when there is none.
    pub async fn get(&self, kind: Kind, name: &str) -> Result<Option<Value>, ApiFailure> {
        self.read(kind, None, name).await
    }

    async fn read(
        &self,
        kind: Kind,
        class: Option<ClassPath>,
        name: &str,
    ) -> Result<Option<Value>, ApiFailure> {
        let call = Call {
            method: "GET",
            kind,
            class,
            name,
            sub: "",
            body: Value::Null,
            content: JSON,
        };
        match self.send(&call).await {
            Ok(object) => Ok(Some(object)),
            Err(ApiFailure::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn write(&self, call: Call<'_>) -> Result<Written, ApiFailure> {
        if self.dry_run {
            self.pretend(&call).await?;
            return Ok(Written::Dry);
        }
        let (kind, method) = (call.kind, call.method);
        let own = call.place().3;
        let answer = self.send(&call).await?;
        let own_kind = answer["kind"].as_str() == Some(own);
        if own_kind {
            let gone = method == "DELETE" && is_final(&answer);
            if gone {
                self.world.note_gone(kind, answer.clone()).await;
            } else {
                self.world.note(kind, answer.clone()).await;
            }
        }
        Ok(Written::Object(Box::new(answer)))
    }

    /// Keeps in memory what a dry run would have written of how pools and their like stand: decisions
    /// rest on it, and on a cluster that never saw an autoscaler it is nowhere else.
    async fn pretend(&self, call: &Call<'_>) -> Result<(), ApiFailure> {
        let stands = matches!(
            call.kind,
            Kind::NodePool | Kind::NodeClass | Kind::NodeOverlay | Kind::CapacityBuffer
        );
        let written = (call.method, call.content, call.sub);
        if !stands || !matches!(written, ("PATCH", MERGE, "" | "status")) {
            return Ok(());
        }
        let Some(object) = self.read(call.kind, call.class, call.name).await? else {
            return Ok(());
        };
        let mut patch = call.body.clone();
        let metadata = patch.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata {
            metadata.remove("resourceVersion");
        }
        self.world.pretend(call.kind, object, &patch).await;
        Ok(())
    }

    async fn send(&self, call: &Call<'_>) -> Result<Value, ApiFailure> {
        self.n_requests.fetch_add(1, Ordering::Relaxed);
        let body = match call.body.is_null() {
            true => Vec::new(),
            false => serde_json::to_vec(&call.body).unwrap_or_default(),
        };
        let request = http::Request::builder()
            .method(call.method)
            .uri(path(call))
            .header(http::header::CONTENT_TYPE, call.content)
            .body(body)
            .map_err(|error| ApiFailure::Invalid(error.to_string()))?;
        if let Some(pace) = &self.pace {
            pace.turn().await;
        }
        let answer = async {
            let answer = tokio::time::timeout(ANSWER_MAX, self.client.request(request)).await;
            let late = |_| Err(kube::Error::Service("no answer in time".into()));
            answer.unwrap_or_else(late)
        };
        let Some((metrics, clock)) = &self.metrics else {
            return answer.await.map_err(sorted);
        };
        let started = clock.now();
        let answer = answer.await;
        let took = clock.now().duration_since(started).as_secs_f64();
        measure(metrics, call, answer.as_ref().err(), took);
        answer.map_err(sorted)
    }
}

/// Counts and times a request, under the names that dashboards know.
fn measure(metrics: &Metrics, call: &Call<'_>, error: Option<&kube::Error>, secs: f64) {
    let code = match error {
        None if call.method == "POST" => "201".to_owned(),
        None => "200".to_owned(),
        Some(kube::Error::Api(status)) => status.code.to_string(),
        Some(_) => "<error>".to_owned(),
    };
    let labels = [("code", code.as_str()), ("method", call.method)];
    metrics.count(CLIENT_REQUESTS, &labels, 1.0);
    let (group, version, _, kind) = call.place();
    let verb = match call.method {
        "POST" => "create",
        "PATCH" => "patch",
        "GET" => "get",
        _ => "delete",
    };
    let labels = [
        ("verb", verb),
        ("group", group),
        ("version", version),
        ("kind", kind),
        ("subresource", call.sub),
    ];
    metrics.observe(CLIENT_REQUEST_DURATION, &labels, secs);
}

/// A deleted object that nothing holds any more: no finalizer, no grace.
fn is_final(object: &Value) -> bool {
    let meta = &object["metadata"];
    let held = meta["finalizers"].as_array().is_some_and(|f| !f.is_empty());
    let grace = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    !held && grace == 0
}

fn path(call: &Call<'_>) -> String {
    let (group, version, plural, _) = call.place();
    let mut path = match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let (namespace, name) = match call.name.split_once('/') {
        Some((namespace, name)) => (namespace, name),
        None => ("", call.name),
    };
    if !namespace.is_empty() {
        path = format!("{path}/namespaces/{namespace}");
    }
    for part in [plural, name, call.sub] {
        if !part.is_empty() {
            path = format!("{path}/{part}");
        }
    }
    match call.method {
        "GET" => path,
        _ => format!("{path}?fieldManager=karpenter"),
    }
}

fn sorted(error: kube::Error) -> ApiFailure {
    let kube::Error::Api(status) = error else {
        return ApiFailure::Away(chain(&error));
    };
    let message = status.message.clone();
    match (status.code, status.reason.as_str()) {
        (404, _) => ApiFailure::NotFound,
        (409, "AlreadyExists") => ApiFailure::AlreadyExists,
        (409, _) => ApiFailure::Conflict(message),
        (429, _) => ApiFailure::TooManyRequests(message),
        (401 | 403, _) => ApiFailure::Forbidden(message),
        (400 | 422, _) => ApiFailure::Invalid(message),
        (500..=599, _) => ApiFailure::Away(message),
        (code, _) => ApiFailure::Other { code, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_away() {
        type Answer = http::Response<kube::client::Body>;
        let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<Answer, std::convert::Infallible>>()
        });
        let api = Api::new(Client::new(silent, "default"), World::start(), false);
        let patched = api.patch(Kind::Node, "n", &json!({})).await;
        assert!(matches!(patched, Err(ApiFailure::Away(_))), "{patched:?}");
        let read = api.get(Kind::Node, "n").await;
        assert!(matches!(read, Err(ApiFailure::Away(_))), "{read:?}");
    }
}
