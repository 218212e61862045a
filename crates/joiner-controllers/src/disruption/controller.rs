//! When to look for nodes to give back, and when to wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_disruption::{Memory, confirm, decide};
use joiner_engine::{Looping, Next, Reconcile};
use joiner_model::Name;
use joiner_state::live::{Change, Snapshot};

use super::moves::Book;
use super::orders::{Order, Scene, look};
use super::start::start;
use super::when::{has_drifted, is_busy, is_stale, is_too_early, matters};
use super::{Disruptor, NAME, apply, fleet, measure, report};

/// How often it looks.
pub(super) const EVERY: Duration = Duration::from_secs(10);
/// How soon it looks again after it began, ended or dropped something, and while machines are being
/// launched.
pub(super) const SOON: Duration = Duration::from_secs(1);
/// It does not look in the midst of a burst, but when nothing has happened for this long: what is seen
/// before that is gone a moment later.
const CALM: Duration = Duration::from_secs(1);
/// And some bursts never end: it waits so often at most.
const BURST_MAX: usize = 5;
/// How long a command for money waits before it is asked about again.
pub(super) const CONFIRM_AFTER: Duration = Duration::from_secs(15);

/// Looks for nodes to give back.
pub(super) struct Disruption {
    disruptor: Disruptor,
    known: Known,
    /// When something changed that may turn a "nothing to do" around.
    changed: Timestamp,
    /// Such a change was heard of since the last look.
    has_news: bool,
    phase: Phase,
    /// How long to rest after this round.
    pause: Duration,
}

/// What is kept from one look to the next. Losing it costs time.
#[derive(Debug, Default)]
struct Known {
    /// What was found out.
    memory: Memory,
    /// Moves that workloads do not carry themselves.
    book: Book,
    /// What is wrong with the budgets of pools: said once.
    complaints: BTreeSet<(Name, String)>,
}

/// What a look found.
enum Found {
    /// Nothing that has to wait.
    Look(Look),
    /// Commands that wait.
    Candidates(Candidates),
}

/// Whether candidates were asked about again.
enum Confirmed {
    /// In so long.
    NotYet(Duration),
    /// They were.
    Over(Look),
}

/// What it is doing.
enum Phase {
    /// It rests.
    Resting(Rest),
    /// Something has just happened: it has waited so often for calm.
    Calming(usize),
    /// Commands wait to be asked about again.
    Confirming(Candidates),
    /// It looks.
    Looking,
}

/// A rest that ends at a time, or when the last command under way has ended: then all can be seen that
/// takes its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    until: Timestamp,
    /// Whether commands were under way when it began.
    ends_early: bool,
}

impl Rest {
    /// A rest of this length.
    pub(super) fn new(snapshot: &Snapshot, now: Timestamp, length: Duration) -> Self {
        Self {
            until: now.checked_add(length).unwrap_or(Timestamp::MAX),
            ends_early: is_busy(snapshot),
        }
    }

    /// How long to go on resting; none when it is over.
    pub(super) fn left(&self, snapshot: &Snapshot, now: Timestamp) -> Option<Duration> {
        if now >= self.until || (self.ends_early && !is_busy(snapshot)) {
            return None;
        }
        let left = self.until.duration_since(now).unsigned_abs();
        Some(if self.ends_early {
            left.min(SOON)
        } else {
            left
        })
    }
}

/// Commands that wait to be asked about again.
struct Candidates {
    orders: Vec<Order>,
    /// How many there were at first.
    n: usize,
    /// When they are asked about.
    at: Timestamp,
    /// Commands under way, whose end is waited for first.
    rest: Option<Rest>,
    /// Others were begun in the same look.
    is_begun: bool,
}

/// What came of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// A command was begun.
    Begun,
    /// A command did not hold when it was asked about once more: something else may.
    Dropped,
    /// There is nothing to do, or not now.
    Nothing,
}

impl Look {
    fn of(is_begun: bool, is_dropped: bool) -> Self {
        match (is_begun, is_dropped) {
            (true, _) => Self::Begun,
            (false, true) => Self::Dropped,
            (false, false) => Self::Nothing,
        }
    }
}

impl Disruption {
    /// Looks with these handles.
    pub(super) fn new(disruptor: Disruptor) -> Self {
        measure::begin(&disruptor.shared.metrics);
        Self {
            changed: disruptor.shared.clock.now(),
            disruptor,
            known: Known::default(),
            has_news: false,
            phase: Phase::Resting(Rest {
                until: Timestamp::MIN,
                ends_early: false,
            }),
            pause: EVERY,
        }
    }

    /// Goes on from where it is; returns how long to wait.
    async fn go_on(&mut self, snapshot: &Arc<Snapshot>, now: Timestamp) -> Duration {
        if let Phase::Resting(rest) = &self.phase {
            if let Some(left) = rest.left(snapshot, now) {
                return left;
            }
            self.phase = Phase::Calming(0);
        }
        match std::mem::replace(&mut self.phase, Phase::Looking) {
            Phase::Calming(n) => {
                if n < BURST_MAX && std::mem::take(&mut self.has_news) {
                    self.changed = now;
                    if !has_drifted(snapshot) {
                        self.phase = Phase::Calming(n + 1);
                        return CALM;
                    }
                }
                self.begin_round().await;
                self.looks(None).await
            }
            Phase::Confirming(candidates) => match self.confirm(candidates).await {
                Confirmed::NotYet(left) => left,
                Confirmed::Over(look) => self.looks(Some(look)).await,
            },
            Phase::Resting(_) | Phase::Looking => self.looks(None).await,
        }
    }

    async fn begin_round(&mut self) {
        let shared = &self.disruptor.shared;
        let now = shared.clock.now();
        if is_stale(self.changed, now) {
            self.changed = now;
        }
        self.pause = EVERY;
        apply::recover(shared, self.disruptor.terms()).await;
    }

    /// Looks again as long as commands are begun, and then rests. `last` is what came of the last look.
    async fn looks(&mut self, mut last: Option<Look>) -> Duration {
        loop {
            if last == Some(Look::Nothing) {
                return self.rest();
            }
            if last.is_some() {
                self.pause = SOON;
                // What was found out before rests on something that came to nothing, or is under way now.
                self.changed = self.disruptor.shared.clock.now();
            }
            if last == Some(Look::Dropped) {
                return self.rest();
            }
            let found = match self.look().await {
                Found::Look(look) => Confirmed::Over(look),
                Found::Candidates(candidates) => self.confirm(candidates).await,
            };
            match found {
                Confirmed::NotYet(left) => return left,
                Confirmed::Over(look) => last = Some(look),
            }
        }
    }

    fn rest(&mut self) -> Duration {
        let shared = &self.disruptor.shared;
        let snapshot = shared.world.snapshot();
        if is_too_early(self.disruptor.terms(), &snapshot) {
            self.pause = SOON;
        }
        let now = shared.clock.now();
        let rest = Rest::new(&snapshot, now, self.pause);
        let left = rest.left(&snapshot, now).unwrap_or_default();
        self.phase = Phase::Resting(rest);
        left
    }

    /// One look at everything.
    async fn look(&mut self) -> Found {
        let disruptor = &self.disruptor;
        let shared = &disruptor.shared;
        let snapshot = shared.world.snapshot();
        if is_too_early(disruptor.terms(), &snapshot) {
            // The next look will tell.
            return Found::Look(Look::Nothing);
        }
        let started = shared.clock.now();
        self.known.complain(&snapshot, started);
        let before = self.known.memory.clone();
        let scene = Scene {
            snapshot: Arc::clone(&snapshot),
            book: self.known.book.clone(),
            changed: self.changed,
        };
        let looking = look(disruptor, scene, move |fleet| {
            let decision = decide(fleet, &before);
            let judged = report::judged(fleet, &decision);
            (decision.commands.clone(), (decision, judged))
        });
        let Some(((decision, judged), orders)) = looking.await else {
            return Found::Look(Look::Nothing);
        };
        report::decided(disruptor, &decision, judged, &snapshot);
        let took = shared.clock.now().duration_since(started).as_secs_f64();
        measure::decided(&shared.metrics, &decision, &snapshot, took);
        self.known.memory = decision.memory.clone();
        let (waiting, at_once): (Vec<Order>, Vec<Order>) =
            (orders.into_iter()).partition(|order| order.command.method.waits());
        let mut is_begun = false;
        for order in &at_once {
            is_begun |= start(disruptor, &mut self.known.book, order).await;
        }
        match waiting.is_empty() {
            true => Found::Look(Look::of(is_begun, false)),
            false => Found::Candidates(self.candidates(waiting, is_begun)),
        }
    }

    /// Commands that are to be asked about again after a wait.
    fn candidates(&self, orders: Vec<Order>, is_begun: bool) -> Candidates {
        let shared = &self.disruptor.shared;
        for order in &orders {
            report::candidate(&self.disruptor, order);
            measure::approved(shared, order);
        }
        let (snapshot, now) = (shared.world.snapshot(), shared.clock.now());
        let rest = is_busy(&snapshot).then(|| Rest::new(&snapshot, now, CONFIRM_AFTER));
        Candidates {
            n: orders.len(),
            orders,
            at: now.checked_add(CONFIRM_AFTER).unwrap_or(Timestamp::MAX),
            rest,
            is_begun,
        }
    }

    /// Asks about candidates again when their wait is over.
    async fn confirm(&mut self, mut waiting: Candidates) -> Confirmed {
        let clock = self.disruptor.shared.clock.clone();
        if let Some(rest) = waiting.rest {
            let snapshot = self.disruptor.shared.world.snapshot();
            if let Some(left) = rest.left(&snapshot, clock.now()) {
                self.phase = Phase::Confirming(waiting);
                return Confirmed::NotYet(left);
            }
            waiting.rest = None;
            // What was under way has ended, and pods are elsewhere now: what that was the end of, too, is not
            // waited for.
            if clock.now() < waiting.at {
                let mut held = Vec::new();
                for order in waiting.orders {
                    if self.confirmed(&order).await.is_some() {
                        held.push(order);
                    }
                }
                waiting.orders = held;
            }
        }
        let left = waiting.at.duration_since(clock.now());
        if left.is_positive() && !waiting.orders.is_empty() {
            self.phase = Phase::Confirming(waiting);
            return Confirmed::NotYet(left.unsigned_abs());
        }
        let mut is_dropped = waiting.orders.len() < waiting.n;
        let mut is_begun = waiting.is_begun;
        for order in &waiting.orders {
            match self.confirmed(order).await {
                Some(order) => {
                    is_begun |= start(&self.disruptor, &mut self.known.book, &order).await;
                }
                None => is_dropped = true,
            }
        }
        Confirmed::Over(Look::of(is_begun, is_dropped))
    }

    /// The same command, decided anew on a fresh snapshot; none when it does not come out again.
    async fn confirmed(&self, order: &Order) -> Option<Order> {
        let shared = &self.disruptor.shared;
        let scene = Scene {
            snapshot: shared.world.snapshot(),
            book: self.known.book.clone(),
            changed: shared.clock.now(),
        };
        let command = order.command.clone();
        let looking = look(&self.disruptor, scene, move |fleet| {
            match confirm(fleet, &command) {
                Ok(command) => (vec![command], None),
                Err(rejection) => (Vec::new(), Some(rejection)),
            }
        });
        let (rejection, orders) = looking.await?;
        let again = orders.into_iter().next();
        if again.is_none() {
            report::rejected(&self.disruptor, order, rejection.as_ref());
        }
        again
    }
}

impl Known {
    /// Says what is wrong with the budgets of pools, once.
    fn complain(&mut self, snapshot: &Snapshot, now: Timestamp) {
        let complaints = fleet::complaints(snapshot, now);
        for (pool, complaint) in complaints.difference(&self.complaints) {
            tracing::error!(NodePool = &**pool, "invalid disruption budget: {complaint}");
        }
        self.complaints = complaints;
    }
}

impl Looping for Disruption {
    fn name(&self) -> &'static str {
        NAME
    }

    fn starts_after(&self) -> Duration {
        EVERY
    }

    fn wakes(&mut self, change: &Change, _: &Snapshot) -> bool {
        self.has_news |= matters(change);
        false
    }

    fn missed(&mut self) {
        self.has_news = true;
    }

    fn pass<'a>(&'a mut self, now: &'a Arc<Snapshot>, at: Timestamp) -> Reconcile<'a> {
        async move { Ok(Next::Again(self.go_on(now, at).await)) }.boxed()
    }
}
