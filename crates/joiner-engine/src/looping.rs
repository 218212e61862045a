//! Runs a controller that looks at everything at once.

use std::sync::Arc;

use jiff::Timestamp;
use joiner_model::Name;
use joiner_state::live::Change;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::controller::{Looping, Next, Shared};
use crate::queue::Trouble;
use crate::span;

/// When the next pass is made.
#[derive(Debug)]
struct Due {
    at: Option<Timestamp>,
    /// The last pass failed, and changes do not hasten the next one.
    is_punished: bool,
    trouble: Trouble,
}

impl Due {
    fn hasten(&mut self, now: Timestamp) {
        if !self.is_punished {
            self.at = Some(self.at.map_or(now, |at| at.min(now)));
        }
    }
}

/// Runs until its future is dropped; the first pass is made at `first`.
pub(crate) async fn run(
    mut controller: Box<dyn Looping>,
    shared: Shared,
    mut changes: Receiver<Arc<[Change]>>,
    first: Timestamp,
) {
    let mut due = Due {
        at: Some(first),
        is_punished: false,
        trouble: Trouble::default(),
    };
    loop {
        if !hear(&mut *controller, &shared, &mut changes, &mut due) {
            return;
        }
        if due.at.is_some_and(|at| at <= shared.clock.now()) {
            pass(&mut *controller, &shared, &mut due).await;
            continue;
        }
        let until = due.at.unwrap_or(Timestamp::MAX);
        let heard = tokio::select! {
            biased;
            change = changes.recv() => Some(change),
            () = controller.called() => {
                due.hasten(shared.clock.now());
                None
            }
            () = shared.clock.sleep_until(until), if until < Timestamp::MAX => None,
        };
        match heard {
            Some(Ok(told)) => note(&mut *controller, &shared, &told, &mut due),
            Some(Err(RecvError::Lagged(_))) => miss(&mut *controller, &shared, &mut due),
            Some(Err(RecvError::Closed)) => return,
            None => {}
        }
    }
}

/// Hears everything that has happened so far. False when there will be no more.
fn hear(
    controller: &mut dyn Looping,
    shared: &Shared,
    changes: &mut Receiver<Arc<[Change]>>,
    due: &mut Due,
) -> bool {
    loop {
        match changes.try_recv() {
            Ok(told) => note(controller, shared, &told, due),
            Err(TryRecvError::Lagged(_)) => miss(controller, shared, due),
            Err(TryRecvError::Empty) => return true,
            Err(TryRecvError::Closed) => return false,
        }
    }
}

fn miss(controller: &mut dyn Looping, shared: &Shared, due: &mut Due) {
    controller.missed();
    due.hasten(shared.clock.now());
}

fn note(controller: &mut dyn Looping, shared: &Shared, told: &[Change], due: &mut Due) {
    let now = shared.world.snapshot();
    for change in told {
        if controller.wakes(change, &now) {
            due.hasten(shared.clock.now());
        }
    }
}

async fn pass(controller: &mut dyn Looping, shared: &Shared, due: &mut Due) {
    let now = shared.world.snapshot();
    let at = shared.clock.now();
    let key = Name::from("");
    let name = controller.name();
    let result = span::measured(shared, name, &key, controller.pass(&now, at)).await;
    let ended = shared.clock.now();
    due.is_punished = false;
    due.at = match &result {
        Ok(next) => {
            due.trouble = Trouble::default();
            match next {
                Next::Done => None,
                Next::Again(after) => Some(ended.checked_add(*after).unwrap_or(Timestamp::MAX)),
            }
        }
        Err(failure) => {
            let at = due.trouble.next(failure, ended);
            due.is_punished = at.is_some();
            Some(at.unwrap_or(ended))
        }
    };
}
