//! What is between a process and its API server: time that requests take, and faults.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;

/// The connection is cut.
#[derive(Debug, thiserror::Error)]
#[error("the connection was cut, as the test wanted it")]
struct Cut;

type Answer = UnsyncBoxBody<Bytes, Cut>;

/// At which write a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The write, counted from 1.
    pub write: u64,
    /// After it took effect and before it was answered; else before it took effect.
    pub after: bool,
}

/// What goes wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Percent of requests that fail: refused by the server, cut before they took effect, or cut after.
    pub fail_percent: u64,
    /// How long a watch lasts.
    pub watch: Option<Duration>,
    /// How long a request takes at least, and at most; half of it passes before it takes effect.
    pub latency: (Duration, Duration),
    /// The process dies.
    pub crash: Option<Crash>,
}

/// A request that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub path: String,
}

/// The line between one process and its API server.
#[derive(Clone, Debug)]
pub struct Network(Arc<Line>);

#[derive(Debug)]
struct Line {
    state: Mutex<State>,
    dead: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    trouble: Trouble,
    chance: u64,
    seen: Vec<Seen>,
    n_writes: u64,
}

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    Refused(StatusCode),
    CutBefore,
    CutAfter,
    DiesBefore,
    DiesAfter,
}

/// What one request meets.
struct Passage {
    fate: Fate,
    latency: Duration,
    watch: Option<Duration>,
}

impl Network {
    /// A line without trouble to the server of this client, and a client at its other end.
    #[must_use]
    pub fn to(server: Client, seed: u64) -> (Client, Self) {
        let line = Arc::new(Line {
            state: Mutex::new(State {
                trouble: Trouble::default(),
                chance: seed,
                seen: Vec::new(),
                n_writes: 0,
            }),
            dead: watch::Sender::new(false),
        });
        let network = Self(Arc::clone(&line));
        let service = tower::service_fn(move |request: Request<Body>| {
            let passing = pass(Arc::clone(&line), server.clone(), request);
            // A caller that gives up does not take back what is on its way.
            let passing = tokio::spawn(passing);
            async move { passing.await.map_err(|_| Cut).flatten() }
        });
        (Client::new(service, "default"), network)
    }

    /// Something else goes wrong from now on; writes are counted anew.
    pub fn set(&self, trouble: Trouble) {
        let mut state = self.0.state();
        state.trouble = trouble;
        state.n_writes = 0;
    }

    /// All requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.0.state().seen.clone()
    }

    /// Requests so far that change something, since the trouble was set.
    #[must_use]
    pub fn n_writes(&self) -> u64 {
        self.0.state().n_writes
    }

    /// Waits until the process has died; from then on nothing it asks is answered.
    pub async fn died(&self) {
        let mut dead = self.0.dead.subscribe();
        // The sender lives as long as this handle.
        let _ = dead.wait_for(|dead| *dead).await;
    }
}

impl Line {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A number below a limit (splitmix64).
    fn below(&mut self, limit: u64) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.chance;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        if limit == 0 { 0 } else { bits % limit }
    }

    /// Notes a request and decides what becomes of it.
    fn passage(&mut self, request: &Request<Body>) -> Passage {
        let is_write = request.method() != Method::GET;
        self.n_writes += u64::from(is_write);
        self.seen.push(Seen {
            method: request.method().clone(),
            path: request.uri().to_string(),
        });
        let (low, high) = self.trouble.latency;
        let spread = u64::try_from(high.saturating_sub(low).as_micros()).unwrap_or(u64::MAX);
        let latency = low + Duration::from_micros(self.below(spread));
        let crash = self.trouble.crash.filter(|_| is_write);
        let crash = crash.filter(|crash| crash.write == self.n_writes);
        let fails = self.below(100) < self.trouble.fail_percent;
        let fate = match (crash, fails.then(|| self.below(4))) {
            (Some(crash), _) if crash.after => Fate::DiesAfter,
            (Some(_), _) => Fate::DiesBefore,
            (None, None) => Fate::Answered,
            (None, Some(0)) => Fate::Refused(StatusCode::INTERNAL_SERVER_ERROR),
            (None, Some(1)) => Fate::Refused(StatusCode::SERVICE_UNAVAILABLE),
            (None, Some(2)) => Fate::CutBefore,
            (None, Some(_)) => Fate::CutAfter,
        };
        let watches = request.uri().query().unwrap_or("").contains("watch=true");
        Passage {
            fate,
            latency,
            watch: self.trouble.watch.filter(|_| watches),
        }
    }
}

/// Carries a request to the server and its answer back.
async fn pass(
    line: Arc<Line>,
    server: Client,
    request: Request<Body>,
) -> Result<Response<Answer>, Cut> {
    let dead = || *line.dead.borrow();
    let passage = line.state().passage(&request);
    if dead() {
        return std::future::pending().await;
    }
    let half = passage.latency / 2;
    if !half.is_zero() {
        tokio::time::sleep(half).await;
    }
    match passage.fate {
        // What was on its way when the process died arrives all the same.
        Fate::Answered | Fate::CutAfter | Fate::DiesAfter => {}
        Fate::Refused(status) => return Ok(refusal(status)),
        Fate::CutBefore => return Err(Cut),
        Fate::DiesBefore => {
            line.dead.send_replace(true);
            return std::future::pending().await;
        }
    }
    let answer = server.send(request).await;
    if passage.fate == Fate::DiesAfter {
        line.dead.send_replace(true);
    }
    if !half.is_zero() {
        tokio::time::sleep(half).await;
    }
    if dead() {
        return std::future::pending().await;
    }
    if passage.fate == Fate::CutAfter {
        return Err(Cut);
    }
    let (head, body) = answer.map_err(|_| Cut)?.into_parts();
    let body = match passage.watch {
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
