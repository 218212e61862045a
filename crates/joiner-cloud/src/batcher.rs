//! Many requests, few calls: requests that are alike wait for each other for a moment and go to the
//! cloud together.
//!
//! *Flow*: [`Batcher::ask`] puts a request to the others of its [key](BatchCall::key). The batch is
//! closed when no request has come for the idle window, when its first request has waited for the
//! longest window, or when it is full. Then [`BatchCall::call`] is made once for all of them, and each
//! caller gets the answer in the place of its request, or all of them get the error.
//!
//! *Guarantees*: a request is in one call at most. A caller that goes away before the call begins takes
//! its request with it; one that goes away later changes nothing for the others. The number of
//! requests in a call, of calls at a time and of requests that wait is bounded; callers beyond wait
//! outside.
//!
//! *Assumptions*: every call ends, which is for its author to see to. Windows are of the network's
//! time, that is of the runtime's clock, which tests and simulations pause.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// No window is longer.
const WINDOW_MAX: Duration = Duration::from_secs(3600);

/// A call that answers many requests.
#[async_trait]
pub trait BatchCall: Send + Sync + 'static {
    /// What requests have in common that go into one call.
    type Key: Ord + Clone + Send + 'static;
    /// What a caller asks.
    type Request: Send + 'static;
    /// What a caller gets: a `Result` where a call may fail for some of its requests.
    type Answer: Send + 'static;
    /// Why a call failed for all of its requests.
    type Error: Clone + Send + 'static;

    /// The key of a request.
    fn key(&self, request: &Self::Request) -> Self::Key;

    /// Makes the call: one answer for each request, in their order. Answers beyond are dropped, and
    /// requests beyond are told that there is none.
    async fn call(&self, batch: Batch<Self>) -> Result<Vec<Self::Answer>, Self::Error>;
}

/// Requests that go into one call.
pub struct Batch<C: BatchCall + ?Sized> {
    /// What they have in common.
    pub key: C::Key,
    /// The requests, in the order in which they came; at least one.
    pub requests: Vec<C::Request>,
    /// How long the first of them has waited.
    pub waited: Duration,
}

/// How long requests wait for others, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// A batch is closed when no request has come for so long.
    pub idle: Duration,
    /// A batch is closed when it has been open for so long.
    pub longest: Duration,
    /// Requests in a call.
    pub requests_max: NonZeroUsize,
    /// Calls at a time.
    pub calls_max: NonZeroUsize,
    /// Requests that wait for their call to begin; callers beyond wait to be let in.
    pub waiting_max: NonZeroUsize,
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError<E> {
    /// The call failed, for all of its requests.
    #[error(transparent)]
    Failed(E),
    /// The call came to an end without an answer for this request.
    #[error("the call ended without an answer for this request")]
    Unanswered,
    /// The batcher has ended with its runtime.
    #[error("requests are no longer taken")]
    Closed,
}

type Reply<C> = Result<<C as BatchCall>::Answer, BatchError<<C as BatchCall>::Error>>;

/// Puts requests together into calls. Clones share batches; with the last of them it ends.
pub struct Batcher<C: BatchCall> {
    requests: mpsc::Sender<Asked<C>>,
}

impl<C: BatchCall> fmt::Debug for Batcher<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").finish_non_exhaustive()
    }
}

impl<C: BatchCall> Clone for Batcher<C> {
    fn clone(&self) -> Self {
        Self {
            requests: self.requests.clone(),
        }
    }
}

impl<C: BatchCall> Batcher<C> {
    /// Begins to take requests. Needs a tokio runtime, on which calls are made as well.
    #[must_use]
    pub fn start(call: C, limits: BatchLimits) -> Self {
        let (requests, inbox) = mpsc::channel(1);
        let limits = BatchLimits {
            idle: limits.idle.min(WINDOW_MAX),
            longest: limits.longest.min(WINDOW_MAX),
            ..limits
        };
        let desk = Desk {
            call: Arc::new(call),
            limits,
            open: BTreeMap::new(),
            closing: BTreeSet::new(),
            closed: VecDeque::new(),
            n_waiting: 0,
            calls: JoinSet::new(),
        };
        tokio::spawn(desk.run(inbox));
        Self { requests }
    }

    /// The answer to a request.
    ///
    /// # Errors
    /// The call failed, or ended without an answer.
    pub async fn ask(&self, request: C::Request) -> Reply<C> {
        let (reply, answer) = oneshot::channel();
        let asked = Asked { request, reply };
        let sent = self.requests.send(asked).await;
        sent.map_err(|_| BatchError::Closed)?;
        answer.await.unwrap_or(Err(BatchError::Unanswered))
    }
}

/// A request, and where its answer goes.
struct Asked<C: BatchCall> {
    request: C::Request,
    reply: oneshot::Sender<Reply<C>>,
}

impl<C: BatchCall> Asked<C> {
    fn is_given_up(&self) -> bool {
        self.reply.is_closed()
    }
}

/// A batch that still takes requests.
struct Open<C: BatchCall> {
    asked: Vec<Asked<C>>,
    since: Instant,
    closes: Instant,
}

/// A batch that waits for its call.
struct Closed<C: BatchCall> {
    key: C::Key,
    asked: Vec<Asked<C>>,
    since: Instant,
}

/// Where requests come in and calls go out: the one owner of all batches.
struct Desk<C: BatchCall> {
    call: Arc<C>,
    limits: BatchLimits,
    open: BTreeMap<C::Key, Open<C>>,
    /// Open batches by the time when they close.
    closing: BTreeSet<(Instant, C::Key)>,
    closed: VecDeque<Closed<C>>,
    /// Requests in open and closed batches.
    n_waiting: usize,
    calls: JoinSet<()>,
}

impl<C: BatchCall> Desk<C> {
    async fn run(mut self, mut inbox: mpsc::Receiver<Asked<C>>) {
        let mut is_asked = true;
        while is_asked || self.n_waiting > 0 || !self.calls.is_empty() {
            let has_room = self.n_waiting < self.limits.waiting_max.get();
            let closes = self.closing.first().map(|(closes, _)| *closes);
            tokio::select! {
                biased;
                Some(_) = self.calls.join_next() => {}
                () = until(closes) => self.close_due(),
                asked = inbox.recv(), if is_asked && has_room => match asked {
                    Some(asked) => self.take(asked),
                    None => is_asked = false,
                },
            }
            self.make_calls();
        }
    }

    fn take(&mut self, asked: Asked<C>) {
        let now = Instant::now();
        let limits = self.limits;
        let key = self.call.key(&asked.request);
        let open = self.open.entry(key.clone()).or_insert_with(|| Open {
            asked: Vec::new(),
            since: now,
            closes: now,
        });
        open.asked.push(asked);
        self.n_waiting += 1;
        self.closing.remove(&(open.closes, key.clone()));
        open.closes = (now + limits.idle).min(open.since + limits.longest);
        if open.asked.len() >= limits.requests_max.get() {
            self.close(key);
        } else {
            self.closing.insert((open.closes, key));
        }
    }

    fn close_due(&mut self) {
        let now = Instant::now();
        while let Some((closes, _)) = self.closing.first()
            && *closes <= now
        {
            let due = self.closing.pop_first();
            due.into_iter().for_each(|(_, key)| self.close(key));
        }
    }

    fn close(&mut self, key: C::Key) {
        if let Some(Open { asked, since, .. }) = self.open.remove(&key) {
            self.closed.push_back(Closed { key, asked, since });
        }
    }

    fn make_calls(&mut self) {
        while self.calls.len() < self.limits.calls_max.get()
            && let Some(Closed { key, asked, since }) = self.closed.pop_front()
        {
            self.n_waiting -= asked.len();
            let wanted = asked.into_iter().filter(|asked| !asked.is_given_up());
            let (requests, replies): (Vec<_>, Vec<_>) =
                wanted.map(|asked| (asked.request, asked.reply)).unzip();
            if requests.is_empty() {
                continue;
            }
            let batch = Batch {
                key,
                requests,
                waited: since.elapsed(),
            };
            self.calls
                .spawn(answer(Arc::clone(&self.call), batch, replies));
        }
    }
}

/// Makes a call and hands out what came of it. A call that panics drops `replies`, which tells its
/// callers that there is no answer.
async fn answer<C: BatchCall>(
    call: Arc<C>,
    batch: Batch<C>,
    replies: Vec<oneshot::Sender<Reply<C>>>,
) {
    match call.call(batch).await {
        Ok(answers) => {
            for (reply, answer) in replies.into_iter().zip(answers) {
                // A caller that has gone away does not want its answer.
                drop(reply.send(Ok(answer)));
            }
        }
        Err(error) => {
            for reply in replies {
                drop(reply.send(Err(BatchError::Failed(error.clone()))));
            }
        }
    }
}

/// Waits until then, or for good.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "batcher_tests.rs"]
mod tests;
