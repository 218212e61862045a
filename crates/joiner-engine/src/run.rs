//! Runs controllers of either kind.

use std::time::Duration;

use jiff::Timestamp;

use crate::controller::{Controller, Shared};
use crate::{keyed, looping};

/// How often it is asked whether everything is listed.
const LISTED_POLL: Duration = Duration::from_millis(20);

/// Runs one controller until its future is dropped.
pub async fn run(controller: Controller, shared: Shared) {
    if shared.api.is_dry_run() && !controller.runs_dry() {
        return std::future::pending().await;
    }
    let started = shared.clock.now();
    let changes = shared.world.subscribe();
    while !shared.world.is_listed() {
        shared.clock.sleep(LISTED_POLL).await;
    }
    match controller {
        Controller::Keyed(controller) => keyed::run(controller, shared, changes).await,
        Controller::Looping(controller) => {
            let first = started.checked_add(controller.starts_after());
            let first = first.unwrap_or(Timestamp::MAX);
            looping::run(controller, shared, changes, first).await;
        }
    }
}
