//! Connections of a server, within limits: how many there are, and how long a client may keep each of
//! them waiting.
//!
//! *Guarantees*: a new connection is always served. When there are as many as may be, the one that
//! has waited longest for its client is closed: one that sent half a request or nothing, that does
//! not ask anything any more, or that does not read its answer. One whose request is being answered
//! stays, and so does one whose bytes have not been looked at yet.
//!
//! *Assumes* that answers come soon or, where they go on for long, that only known clients get them.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use crate::connection_table::{Held, Table, Work};
use crate::wire::Wire;

/// Connections that the system keeps until they are accepted.
const BACKLOG: u32 = 4_096;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long nothing is accepted after the system has refused a connection.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// Limits of a server's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// From the beginning of a connection to the end of the head of its first request.
    pub head: Duration,
    /// From a request's head to the end of its body; also how long a client may take nothing of an
    /// answer.
    pub body: Duration,
    /// From an answer to the end of the head of the next request.
    pub idle: Duration,
    /// From a request's head to the end of the answer; none where answers go on, as watches do.
    pub answer: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            idle: Duration::from_secs(90),
            answer: Some(Duration::from_secs(60)),
        }
    }
}

/// Who asks: an extension of each request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Listens on an address, with room for many who come at once.
///
/// # Errors
/// When the system refuses it.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Nothing is between HTTP and the wire: what [`serve`] takes where there is no TLS.
///
/// # Errors
/// Never.
pub async fn plain(wire: Wire) -> io::Result<Wire> {
    Ok(wire)
}

/// Serves HTTP until `stop` ends; then takes nothing new, closes what waits for its client, and ends
/// with the last answer. `secure` turns a wire into what HTTP is spoken on: a TLS handshake, or
/// [`plain`]. Connections end when this is dropped.
pub async fn serve<L, F, Io, S, B>(
    listener: TcpListener,
    limits: Limits,
    secure: L,
    service: S,
    stop: impl Future<Output = ()> + Send,
) where
    L: Fn(Wire) -> F,
    F: Future<Output = io::Result<Io>> + Send + 'static,
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let table = Table::new(limits);
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // Most likely too many files are open.
            table.make_room();
            tokio::time::sleep(AFTER_REFUSAL).await;
            continue;
        };
        let place = tokio::select! {
            biased;
            () = &mut stop => break,
            place = table.place() => place,
        };
        let held = Arc::clone(place.held());
        let service = service.clone();
        let service = service_fn(move |request| answer(&service, &held, limits, peer, request));
        let held = Arc::clone(place.held());
        let secured = secure(wire(stream, &held));
        let talk = converse(secured, service, stopped.clone());
        connections.spawn(async move {
            tokio::select! {
                () = talk => {}
                () = held.is_over(limits) => {}
            }
            drop(place);
        });
    }
    stopping.send_replace(true);
    table.close_waiting();
    while connections.join_next().await.is_some() {}
}

fn wire(stream: TcpStream, held: &Arc<Held>) -> Wire {
    // Answers are short, and nobody waits for more of them.
    let _ = stream.set_nodelay(true);
    Wire::new(stream, Arc::clone(held))
}

/// Serves one connection. One that fails is the client's affair.
async fn converse<Io, S, B>(
    secured: impl Future<Output = io::Result<Io>>,
    service: S,
    mut stopped: watch::Receiver<bool>,
) where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Ok(io) = secured.await else { return };
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().max_buf_size(HEAD_BYTES_MAX);
    let connection = http.serve_connection_with_upgrades(TokioIo::new(io), service);
    let mut connection = pin!(connection);
    let stop = async {
        // A sender that is gone means the same.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Has one request answered, and counts it until the answer is out.
fn answer<S, B>(
    service: &S,
    held: &Arc<Held>,
    limits: Limits,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Answer<B>>, Infallible>> + Send + use<S, B>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    S::Future: Send + 'static,
{
    let work = Held::begin(held);
    let mut request = request.map(|body| RequestBody {
        body,
        held: Arc::clone(held),
        is_awaited: false,
        time: limits.body,
        end: None,
    });
    request.extensions_mut().insert(Peer(peer));
    let answer = service.call(request);
    async move {
        let response = answer.await?;
        Ok(response.map(|body| Answer { body, _work: work }))
    }
}

/// The body of a request; it fails when its client takes too long.
#[derive(Debug)]
pub struct RequestBody {
    body: Incoming,
    held: Arc<Held>,
    /// We wait for more of it.
    is_awaited: bool,
    time: Duration,
    end: Option<Pin<Box<Sleep>>>,
}

impl RequestBody {
    fn awaits(&mut self, awaits: bool) {
        if self.is_awaited != awaits {
            self.is_awaited = awaits;
            self.held.awaits_body(awaits);
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.awaits(false);
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.awaits(polled.is_pending());
        if let Poll::Ready(frame) = polled {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let time = self.time;
        let end = self
            .end
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        end.as_mut().poll(context).map(|()| {
            let error = io::Error::new(io::ErrorKind::TimedOut, "the body takes too long");
            Some(Err(error.into()))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body, which keeps its connection at work.
struct Answer<B> {
    body: B,
    _work: Work,
}

impl<B: Body + Unpin> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
