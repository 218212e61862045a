//! What the process serves: metrics, decisions, answers to `joiner why`, and whether it is well.
//!
//! `/metrics` and `/debug` are on one port, `/healthz` and `/readyz` on another, as upstream has them.
//! Each port has connections of its own, within limits, so that probes are answered whatever goes on at
//! the other. Decisions are for this machine only: `kubectl port-forward` comes from there, too.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::service::TowerToHyperService;
use joiner_receipts::why::{self, NoAnswer};
use joiner_receipts::{Decision, DecisionQuery};
use joiner_state::live::Snapshot;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::connections::{self, Limits};
use crate::decisions::Decisions;
use crate::http_guard::{Guard, bounded, only_known_names};
use crate::live_answers::Now;
use crate::metrics::Metrics;
use crate::world::World;

/// Decisions in one answer, unless somebody asks for fewer.
const DECISIONS_MAX: usize = 1_000;

/// Tells whether the process is ready, or what it waits for.
pub type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What questions are answered from.
#[derive(Clone, Debug)]
pub struct Receipts {
    /// What was decided.
    pub decisions: Decisions,
    /// The cluster.
    pub world: World,
    /// The time.
    pub clock: Clock,
}

impl Receipts {
    fn find(&self, query: &DecisionQuery) -> Vec<Decision> {
        let found = self.decisions.recent(query);
        found.iter().map(|own| Decision::clone(own)).collect()
    }

    fn now<'s>(&self, snapshot: &'s Snapshot) -> Now<'s> {
        let time = self.clock.now();
        Now { snapshot, time }
    }

    fn pod(&self, name: &str) -> Response {
        let snapshot = self.world.snapshot();
        let now = self.now(&snapshot);
        answered(why::pod(name, Some(&now), &|query| self.find(query)))
    }

    fn node(&self, name: &str) -> Response {
        let snapshot = self.world.snapshot();
        let now = self.now(&snapshot);
        let kept = self.decisions.kept(name).map(|own| own.as_ref().clone());
        answered(why::node(name, Some(&now), kept, &|query| self.find(query)))
    }
}

/// Where to listen.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// On this address; on all when absent.
    pub address: Option<IpAddr>,
    /// For metrics; 0 takes any that is free.
    pub metrics_port: u16,
    /// For health; 0 takes any that is free.
    pub health_port: u16,
    /// Limits of the connections for metrics and decisions.
    pub limits: Limits,
    /// Limits of the connections for health.
    pub health_limits: Limits,
    /// Names under which decisions are shown to other machines, too. Without any, only this machine
    /// sees them.
    pub debug_hosts: Vec<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            address: None,
            metrics_port: 8080,
            health_port: 8081,
            limits: Limits::default(),
            health_limits: Limits {
                connections: 256,
                ..Limits::default()
            },
            debug_hosts: Vec::new(),
        }
    }
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Another process, or another server of this one, has the port.
    #[error("port {port} for {what} is taken: choose another one with {flag}")]
    Taken {
        /// The port.
        port: u16,
        /// What was to be served.
        what: &'static str,
        /// The flag that says otherwise.
        flag: &'static str,
    },
    /// Something else is wrong.
    #[error("cannot listen on port {port} for {what}; see {flag}")]
    Listen {
        /// The port.
        port: u16,
        /// What was to be served.
        what: &'static str,
        /// The flag that says otherwise.
        flag: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Servers that run; they end when this is dropped.
#[derive(Debug)]
pub struct Servers {
    /// Where metrics are served.
    pub metrics_address: SocketAddr,
    /// Where health is served.
    pub health_address: SocketAddr,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Servers {
    /// Starts to serve.
    pub async fn start(
        settings: &HttpSettings,
        metrics: Arc<Metrics>,
        receipts: Receipts,
        ready: Ready,
    ) -> Result<Self, HttpError> {
        let on = |port| (settings.address, port);
        let metrics_on = bind(on(settings.metrics_port), "metrics", "--metrics-port")?;
        let health_on = bind(on(settings.health_port), "health", "--health-probe-port")?;
        let (stop, stopped) = watch::channel(false);
        let shown = Router::new()
            .route("/metrics", get(show_metrics))
            .with_state(metrics)
            .merge(debug(receipts, Guard::new(settings)));
        let health = Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/readyz", get(show_ready))
            .with_state(ready);
        Ok(Self {
            metrics_address: metrics_on.1,
            health_address: health_on.1,
            stop,
            tasks: vec![
                serve(metrics_on.0, settings.limits, shown, stopped.clone()),
                serve(health_on.0, settings.health_limits, health, stopped),
            ],
        })
    }

    /// Stops to listen and waits for answers under way, for a few seconds at most.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let tasks = std::mem::take(&mut self.tasks);
        for mut task in tasks {
            let limit = std::time::Duration::from_secs(3);
            if tokio::time::timeout(limit, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Listens on a port.
fn bind(
    on: (Option<IpAddr>, u16),
    what: &'static str,
    flag: &'static str,
) -> Result<(TcpListener, SocketAddr), HttpError> {
    let (address, port) = on;
    let listen = |address: IpAddr| connections::listen(SocketAddr::new(address, port));
    let listener = match address {
        Some(address) => listen(address),
        // One socket for both families, where there are both.
        None => match listen(IpAddr::V6(Ipv6Addr::UNSPECIFIED)) {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                listen(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
            }
            other => other,
        },
    };
    let listener = listener.and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    listener.map_err(|source| {
        if source.kind() == io::ErrorKind::AddrInUse {
            return HttpError::Taken { port, what, flag };
        }
        HttpError::Listen {
            port,
            what,
            flag,
            source,
        }
    })
}

fn serve(
    listener: TcpListener,
    limits: Limits,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) -> JoinHandle<()> {
    let service = TowerToHyperService::new(router.layer(from_fn(bounded)));
    let stop = async move {
        // A sender that is gone means the same.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    tokio::spawn(connections::serve(
        listener,
        limits,
        connections::plain,
        service,
        stop,
    ))
}

async fn show_metrics(State(metrics): State<Arc<Metrics>>) -> Response {
    let content = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, content)], metrics.render()).into_response()
}

async fn show_ready(State(ready): State<Ready>) -> Response {
    match ready() {
        Ok(()) => "ok".into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason).into_response(),
    }
}

/// What is for this machine only, unless the settings say otherwise.
fn debug(receipts: Receipts, guard: Guard) -> Router {
    Router::new()
        .route("/debug/decisions", get(show_decisions))
        .route("/debug/why/pod/{name}", get(why_pod))
        .route("/debug/why/pod/{namespace}/{name}", get(why_pod_in))
        .route("/debug/why/node/{name}", get(why_node))
        .route_layer(from_fn_with_state(Arc::new(guard), only_known_names))
        .with_state(receipts)
}

async fn show_decisions(State(receipts): State<Receipts>, RawQuery(query): RawQuery) -> Response {
    let query = match parse(query.as_deref().unwrap_or_default()) {
        Ok(query) => query,
        Err(reason) => return (StatusCode::BAD_REQUEST, reason).into_response(),
    };
    json(StatusCode::OK, &receipts.decisions.recent(&query))
}

async fn why_pod(State(receipts): State<Receipts>, Path(name): Path<String>) -> Response {
    receipts.pod(&name)
}

async fn why_pod_in(
    State(receipts): State<Receipts>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    receipts.pod(&format!("{namespace}/{name}"))
}

async fn why_node(State(receipts): State<Receipts>, Path(name): Path<String>) -> Response {
    receipts.node(&name)
}

fn answered<T: serde::Serialize>(answer: Result<T, NoAnswer>) -> Response {
    match answer {
        Ok(answer) => json(StatusCode::OK, &answer),
        Err(error @ NoAnswer::Unknown { .. }) => json(StatusCode::NOT_FOUND, &error),
        Err(error @ NoAnswer::Several { .. }) => json(StatusCode::CONFLICT, &error),
    }
}

fn json<T: serde::Serialize>(status: StatusCode, body: &T) -> Response {
    match serde_json::to_string(body) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Reads `about=..&kind=..&since=..&limit=..`.
fn parse(query: &str) -> Result<DecisionQuery, String> {
    let mut wanted = DecisionQuery {
        limit: Some(DECISIONS_MAX),
        ..DecisionQuery::default()
    };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "about" => wanted.about = Some(value.into_owned()),
            "kind" => wanted.kind = Some(value.into_owned()),
            "since" => {
                let since = value.parse();
                let since = since.map_err(|error| format!("since={value}: {error}"))?;
                wanted.since = Some(since);
            }
            "limit" => {
                let limit: usize = value
                    .parse()
                    .map_err(|_| format!("limit={value}: not a number"))?;
                wanted.limit = Some(limit.min(DECISIONS_MAX));
            }
            other => return Err(format!("{other}: use about, kind, since or limit")),
        }
    }
    Ok(wanted)
}

#[cfg(test)]
#[path = "crowd_tests.rs"]
mod crowd_tests;
#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
