//! A whole cluster with an autoscaler on one clock: what the sandbox, the demo and tests run.
//!
//! - [`Process`] assembles the simulated cloud and every controller on any API server, as
//!   `joiner run` does. A process can be killed at any moment; another one takes over.
//! - [`virtual_sandbox`] is an embedded control plane whose time jumps to the next timer.
//! - [`Network`] stands between a process and its API server: requests take time, fail before or after
//!   they took effect, and at a chosen write the process dies. Chance comes from a seed.
//!
//! *Guarantees*: on a paused, single-threaded runtime the same settings and seeds give the same
//! requests in the same order.

mod network;
mod process;

use jiff::Timestamp;
use joiner_machinery::ApiError;
use joiner_runtime::Clock;
use joiner_sandbox::Sandbox;

pub use network::{Crash, Network, Seen, Trouble};
pub use process::{Process, ProcessSettings};

/// When simulated time begins, in seconds of Unix time.
const EPOCH_SECS: i64 = 1_800_000_000;

/// An embedded control plane without nodes, and the clock that drives it. Needs a paused runtime.
///
/// # Errors
/// When its first objects are refused, which does not happen.
pub fn virtual_sandbox(seed: u64) -> Result<(Sandbox, Clock), ApiError> {
    let clock = Clock::new(Timestamp::constant(EPOCH_SECS, 0), 1);
    let settings = joiner_sandbox::Settings {
        n_nodes: 0,
        seed,
        ..joiner_sandbox::Settings::default()
    };
    let sandbox = Sandbox::start(clock.clone(), &settings)?;
    Ok((sandbox, clock))
}
