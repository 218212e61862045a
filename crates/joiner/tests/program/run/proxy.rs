//! An API server that is hard to reach: a proxy that fails, is slow, and drops watches.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use joiner_testkit::Random;
use kube::Client;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::run::process::place;

/// The connection is to be cut.
#[derive(Debug, thiserror::Error)]
#[error("cut, as it was told to")]
struct Cut;

type Answer = UnsyncBoxBody<Bytes, Cut>;

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trouble {
    /// Percent of requests that fail: refused by the server, cut before they are carried out, or
    /// cut after.
    pub(crate) fail_percent: u64,
    /// How long a watch lasts.
    pub(crate) watch: Option<Duration>,
    /// How long every request takes.
    pub(crate) latency: Duration,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
}

struct Shared {
    client: Client,
    trouble: Mutex<Trouble>,
    random: Mutex<Random>,
    seen: Mutex<Vec<Seen>>,
}

/// The proxy; it ends when this is dropped.
pub(crate) struct Proxy {
    pub(crate) kubeconfig: PathBuf,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

impl Proxy {
    /// Starts one in front of a server.
    pub(crate) async fn start(client: Client, seed: &str, trouble: Trouble) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let kubeconfig = place("proxy-kubeconfig");
        let address = listener.local_addr().unwrap();
        std::fs::write(&kubeconfig, kubeconfig_for(&format!("http://{address}"))).unwrap();
        let shared = Arc::new(Shared {
            client,
            trouble: Mutex::new(trouble),
            random: Mutex::new(Random::new(seed)),
            seen: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            kubeconfig,
            shared,
            task,
        }
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Something else goes wrong from now on.
    pub(crate) fn set(&self, trouble: Trouble) {
        *self.shared.trouble.lock().unwrap() = trouble;
    }
}

/// A kubeconfig without credentials.
pub(crate) fn kubeconfig_for(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
         users: [{{name: u, user: {{}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    )
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| answer(Arc::clone(&shared), request));
    // A cut connection is what this is about.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Answer>, Cut> {
    let trouble = *shared.trouble.lock().unwrap();
    shared.seen.lock().unwrap().push(Seen {
        method: request.method().to_string(),
        path: request.uri().to_string(),
    });
    tokio::time::sleep(trouble.latency).await;
    let fate = {
        let mut random = shared.random.lock().unwrap();
        random
            .percent(trouble.fail_percent)
            .then(|| random.below(4))
    };
    match fate {
        Some(0) => return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR)),
        Some(1) => return Ok(refusal(StatusCode::SERVICE_UNAVAILABLE)),
        Some(2) => return Err(Cut),
        Some(_) | None => {}
    }
    let watches = request.uri().query().unwrap_or("").contains("watch=true");
    let response = forward(&shared.client, request).await?;
    if fate.is_some() {
        return Err(Cut);
    }
    let (head, body) = response.into_parts();
    let body = match trouble.watch.filter(|_| watches) {
        Some(life) => {
            let frames = BodyStream::new(body).map(|frame| frame.map_err(|_| Cut));
            let end = futures::stream::once(async { Err(Cut) });
            let frames = frames.take_until(Box::pin(tokio::time::sleep(life)));
            StreamBody::new(frames.chain(end)).boxed_unsync()
        }
        None => body.map_err(|_| Cut).boxed_unsync(),
    };
    Ok(Response::from_parts(head, body))
}

/// What a server or something in front of it says that cannot serve.
fn refusal(status: StatusCode) -> Response<Answer> {
    let body = Full::new(Bytes::from_static(b"not today\n"));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}

async fn forward(client: &Client, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    let path = head.uri.path_and_query().unwrap().as_str();
    let mut sent = Request::builder().method(head.method).uri(path);
    for name in [http::header::CONTENT_TYPE, http::header::ACCEPT] {
        if let Some(value) = head.headers.get(&name) {
            sent = sent.header(name, value);
        }
    }
    let sent = sent.body(Body::from(body.to_vec())).unwrap();
    client.send(sent).await.map_err(|_| Cut)
}
