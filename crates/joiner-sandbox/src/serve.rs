//! The server's two doors: HTTPS on loopback for everybody, and no socket at all for our own clients.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, Request as HttpRequest, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body as HttpBody, Frame};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use joiner_machinery::{ApiError, Reason};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::certificates::{CertificateError, Certificates};
use crate::exchange::{Body, Reply, Request};
use crate::server::{BODY_MAX, Server};

/// How long the door stays shut after the system has refused a connection.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// A response body: whole, or as it comes.
pub type ReplyBody = UnsyncBoxBody<Bytes, Infallible>;

/// What went wrong while opening the HTTPS door.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port could not be had.
    #[error("cannot listen on {0}: choose another --port, or 0 for any free one")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// No certificate.
    #[error("cannot set up TLS")]
    Tls(#[from] CertificateError),
}

/// An open HTTPS door.
#[derive(Debug)]
pub struct Door {
    /// Where it listens.
    pub address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Opens the HTTPS door; requests need the token.
pub async fn listen(
    server: Arc<Server>,
    address: SocketAddr,
    certificates: &Certificates,
    token: String,
) -> Result<Door, ServeError> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen(address, source))?;
    let address = listener
        .local_addr()
        .map_err(|source| ServeError::Listen(address, source))?;
    let acceptor = TlsAcceptor::from(Arc::new(certificates.server_config()?));
    let token: Arc<str> = token.into();
    let task = tokio::spawn(async move {
        // Connections end with the door, so that those who watch through them know at once.
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (server, acceptor) = (Arc::clone(&server), acceptor.clone());
                    connections.spawn(converse(server, acceptor, Arc::clone(&token), stream));
                }
                // Most likely too many connections are open; some of them will end.
                Err(_) => server.clock().sleep(AFTER_REFUSAL).await,
            }
        }
    });
    Ok(Door { address, task })
}

/// Serves one connection. One that fails is the client's affair.
async fn converse(
    server: Arc<Server>,
    acceptor: TlsAcceptor,
    token: Arc<str>,
    stream: tokio::net::TcpStream,
) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = hyper::service::service_fn(move |request| {
        let (server, token) = (server.clone(), token.clone());
        async move { Ok::<_, Infallible>(guarded(&server, &token, request).await) }
    });
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await;
}

/// Answers a request that has the token. Health checks need none; a wrong one is refused even there,
/// as with every API server.
async fn guarded<B>(
    server: &Arc<Server>,
    token: &str,
    request: HttpRequest<B>,
) -> Response<ReplyBody>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let path = request.uri().path();
    let is_open = ["/healthz", "/livez", "/readyz", "/version"].contains(&path);
    let given = request.headers().get(AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok()).unwrap_or("");
    let shown = given.strip_prefix("Bearer ").map(str::trim);
    let let_in = shown.map_or(is_open, |shown| shown == token);
    if !let_in {
        let error = ApiError::new(Reason::Unauthorized, "Unauthorized");
        return response(Reply::from(error));
    }
    respond(server, request).await
}

/// Answers a request.
pub async fn respond<B>(server: &Arc<Server>, request: HttpRequest<B>) -> Response<ReplyBody>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, BODY_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => {
            let error = ApiError::new(
                Reason::RequestEntityTooLarge,
                format!("Request entity too large: limit is {BODY_MAX}"),
            );
            return response(Reply::from(error));
        }
    };
    response(server.handle(&Request::new(&parts, body)))
}

fn response(reply: Reply) -> Response<ReplyBody> {
    let body = match reply.body {
        Body::Full(bytes) => Full::new(bytes).boxed_unsync(),
        Body::Stream(pieces) => Pieces(pieces).boxed_unsync(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&reply.content_type) {
        headers.insert(CONTENT_TYPE, value);
    }
    for warning in reply.warnings {
        let text = format!(
            "299 - \"{}\"",
            warning.replace('\\', "\\\\").replace('"', "\\\"")
        );
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.append(WARNING, value);
        }
    }
    if let Some(secs) = reply.retry_after_secs {
        headers.insert(RETRY_AFTER, HeaderValue::from(secs));
    }
    response
}

/// A body of pieces that arrive over a channel.
struct Pieces(mpsc::Receiver<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(context)
            .map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A Kubernetes client that calls the server in this process.
#[must_use]
pub fn client(server: &Arc<Server>) -> kube::Client {
    let server = Arc::clone(server);
    let service = tower::service_fn(move |request: HttpRequest<kube::client::Body>| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(respond(&server, request).await) }
    });
    kube::Client::new(service, "default")
}
