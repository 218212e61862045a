//! The server's two doors: HTTPS on loopback for everybody, and no socket at all for our own clients.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, Request as HttpRequest, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body as HttpBody, Frame};
use hyper::service::service_fn;
use joiner_machinery::rbac::User;
use joiner_machinery::{ApiError, Reason};
use joiner_runtime::Wire;
use joiner_runtime::connections::{self, Limits};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::auth;
use crate::certificates::{CertificateError, Certificates};
use crate::exchange::{Body, Reply, Request};
use crate::server::{BODY_MAX, Server};
use crate::verbs::accept;

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

/// Opens the HTTPS door. The token is an administrator's; service accounts have tokens of their own.
pub async fn listen(
    server: Arc<Server>,
    address: SocketAddr,
    certificates: &Certificates,
    token: String,
) -> Result<Door, ServeError> {
    let limits = Limits {
        // Watches go on.
        answer: None,
        ..Limits::default()
    };
    listen_within(server, address, certificates, token, limits).await
}

/// The same with other limits of its connections.
pub async fn listen_within(
    server: Arc<Server>,
    address: SocketAddr,
    certificates: &Certificates,
    token: String,
    limits: Limits,
) -> Result<Door, ServeError> {
    let refused = |source| ServeError::Listen(address, source);
    let listener = connections::listen(address).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let acceptor = TlsAcceptor::from(Arc::new(certificates.server_config()?));
    server.credentials.add_administrator(token);
    let secure = move |wire: Wire| acceptor.accept(wire);
    let service = service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(guarded(&server, request).await) }
    });
    // Connections end with the door, so that those who watch through them know at once.
    let stop = std::future::pending();
    let task = tokio::spawn(connections::serve(listener, limits, secure, service, stop));
    Ok(Door { address, task })
}

/// Answers a request of whoever has shown good credentials, or none.
async fn guarded<B>(server: &Arc<Server>, request: HttpRequest<B>) -> Response<ReplyBody>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match auth::identify(server, request.headers()) {
        Ok(sender) => respond_to(server, sender, request).await,
        Err(error) => response(Reply::from(error)),
    }
}

/// Answers a request from within the process: an administrator's, unless it shows a token.
pub async fn respond<B>(server: &Arc<Server>, request: HttpRequest<B>) -> Response<ReplyBody>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match auth::bearer(request.headers()) {
        Some(_) => guarded(server, request).await,
        None => respond_to(server, User::administrator(), request).await,
    }
}

async fn respond_to<B>(
    server: &Arc<Server>,
    sender: User,
    request: HttpRequest<B>,
) -> Response<ReplyBody>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let mut request = Request::new(&parts, Bytes::new());
    // Nothing is read of those who may not.
    match auth::admit(server, sender, &request) {
        Ok(user) => request.user = user,
        Err(error) => return response(accept::written(&request, Reply::from(error))),
    }
    match Limited::new(body, BODY_MAX).collect().await {
        Ok(body) => request.body = body.to_bytes(),
        Err(error) => return response(accept::written(&request, unread(&*error).into())),
    }
    response(server.handle(&request))
}

/// A body that is too large, or does not come.
fn unread(error: &(dyn std::error::Error + Send + Sync + 'static)) -> ApiError {
    match error.is::<LengthLimitError>() {
        true => ApiError::new(
            Reason::RequestEntityTooLarge,
            format!("Request entity too large: limit is {BODY_MAX}"),
        ),
        false => ApiError::new(
            Reason::Timeout,
            "Timeout: request did not complete within the allotted timeout",
        ),
    }
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
