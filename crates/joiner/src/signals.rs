//! Being told to stop.

use anyhow::Context;

/// Waits for Ctrl-C or a polite kill.
pub(crate) async fn stopped() -> anyhow::Result<()> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("cannot listen for signals")?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed.context("cannot listen for Ctrl-C")?,
        _ = terminated.recv() => {}
    }
    Ok(())
}
