//! The connections that a server has, whom each waits for, and which of them makes room for another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::connections::Limits;
use crate::metrics::lock;

/// How long a new connection has to ask something before it may have to make room.
const FRESH: Duration = Duration::from_millis(100);
/// How long a client may take nothing of an answer before its connection may have to make room.
const STUCK: Duration = Duration::from_secs(1);
/// Between two looks for a connection that can make room.
const LOOK: Duration = Duration::from_millis(10);

/// What a connection does.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Requests whose answer is not out.
    answering: usize,
    /// Those of them whose body we wait for.
    awaited: usize,
    /// Some request's head has come.
    has_asked: bool,
    /// Whether the last look for bytes found none.
    is_read: bool,
    /// Since when the client takes nothing of what we write.
    stuck: Option<Instant>,
    /// When it began, or went from waiting to answering or back.
    since: Instant,
    /// It has to end.
    is_over: bool,
}

impl State {
    /// When it is closed in any case.
    fn ends_at(&self, limits: &Limits) -> Option<Instant> {
        let turn = match (self.answering, self.has_asked) {
            (0, false) => Some(limits.head),
            (0, true) => Some(limits.idle),
            _ => limits.answer,
        };
        let turn = turn.map(|time| self.since + time);
        let stuck = self.stuck.map(|since| since + limits.body);
        turn.into_iter().chain(stuck).min()
    }

    /// From when on it may have to make room; never while we are at work for it.
    fn yields_at(&self) -> Option<Instant> {
        if self.is_over {
            return None;
        }
        if let Some(since) = self.stuck {
            return Some(since + STUCK);
        }
        let waits = self.answering == self.awaited && self.is_read;
        waits.then_some(self.since + FRESH)
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Held {
    state: Mutex<State>,
    changed: Notify,
}

impl Held {
    fn new() -> Self {
        Self {
            state: Mutex::new(State {
                answering: 0,
                awaited: 0,
                has_asked: false,
                is_read: false,
                stuck: None,
                since: Instant::now(),
                is_over: false,
            }),
            changed: Notify::new(),
        }
    }

    /// A request's head has come.
    pub(crate) fn begin(held: &Arc<Self>) -> Work {
        let mut state = lock(&held.state);
        state.has_asked = true;
        state.answering += 1;
        if state.answering == 1 {
            state.since = Instant::now();
        }
        drop(state);
        held.changed.notify_one();
        Work(Arc::clone(held))
    }

    /// We wait for more of a request's body, or have got it.
    pub(crate) fn awaits_body(&self, awaits: bool) {
        let mut state = lock(&self.state);
        match awaits {
            true => state.awaited += 1,
            false => state.awaited = state.awaited.saturating_sub(1),
        }
    }

    /// We looked for bytes, and there were none.
    pub(crate) fn reads(&self, found_none: bool) {
        lock(&self.state).is_read = found_none;
    }

    /// We wrote, and the client took nothing.
    pub(crate) fn writes(&self, took_none: bool) {
        let mut state = lock(&self.state);
        match (took_none, state.stuck) {
            (false, _) => state.stuck = None,
            (true, Some(_)) => {}
            (true, None) => {
                state.stuck = Some(Instant::now());
                drop(state);
                self.changed.notify_one();
            }
        }
    }

    fn end(&self) {
        lock(&self.state).is_over = true;
        self.changed.notify_one();
    }

    /// Waits until the connection has to end.
    pub(crate) async fn is_over(&self, limits: Limits) {
        loop {
            let state = *lock(&self.state);
            if state.is_over {
                return;
            }
            let Some(end) = state.ends_at(&limits) else {
                self.changed.notified().await;
                continue;
            };
            if end <= Instant::now() {
                return;
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(end) => {}
            }
        }
    }
}

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(crate) struct Work(Arc<Held>);

impl Drop for Work {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.answering = state.answering.saturating_sub(1);
        if state.answering == 0 {
            state.since = Instant::now();
        }
        drop(state);
        self.0.changed.notify_one();
    }
}

/// All connections of a server.
pub(crate) struct Table {
    places: Arc<Semaphore>,
    all: Mutex<(u64, BTreeMap<u64, Arc<Held>>)>,
}

impl Table {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let n = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            places: Arc::new(Semaphore::new(n)),
            all: Mutex::default(),
        })
    }

    /// A place for one more connection, as soon as there is one.
    pub(crate) async fn place(self: &Arc<Self>) -> Place {
        loop {
            if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
                return self.take(permit);
            }
            self.make_room();
            tokio::select! {
                Ok(permit) = Arc::clone(&self.places).acquire_owned() => return self.take(permit),
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn take(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Place {
        let held = Arc::new(Held::new());
        let mut all = lock(&self.all);
        all.0 += 1;
        let id = all.0;
        all.1.insert(id, Arc::clone(&held));
        Place {
            table: Arc::clone(self),
            id,
            held,
            _permit: permit,
        }
    }

    /// Ends the connection that has waited longest for its client, if one has waited long enough.
    pub(crate) fn make_room(&self) {
        let now = Instant::now();
        let all = lock(&self.all);
        let yields = |held: &Arc<Held>| lock(&held.state).yields_at();
        let waiting = all
            .1
            .values()
            .filter_map(|held| Some((yields(held)?, held)));
        if let Some((_, held)) = waiting
            .min_by_key(|(at, _)| *at)
            .filter(|(at, _)| *at <= now)
        {
            held.end();
        }
    }

    /// Ends all that wait for their clients.
    pub(crate) fn close_waiting(&self) {
        for held in lock(&self.all).1.values() {
            let state = *lock(&held.state);
            if state.answering == 0 && state.stuck.is_none() {
                held.end();
            }
        }
    }
}

/// The place of one connection in the table, until this is dropped.
pub(crate) struct Place {
    table: Arc<Table>,
    id: u64,
    held: Arc<Held>,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    pub(crate) fn held(&self) -> &Arc<Held> {
        &self.held
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.table.all).1.remove(&self.id);
    }
}
