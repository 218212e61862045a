//! Being told to stop.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears Ctrl-C and a polite kill, from the moment it is made.
pub(crate) struct Stop {
    interrupted: Signal,
    terminated: Signal,
}

impl Stop {
    /// Begins to listen.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            interrupted: listen(SignalKind::interrupt())?,
            terminated: listen(SignalKind::terminate())?,
        })
    }

    /// Waits until it is told.
    pub(crate) async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
    }
}
