//! Where long work is done.

/// Where long work is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Beside the runtime's own threads.
    #[default]
    Beside,
    /// In place: on a clock that jumps to the next timer, time must not pass while it works.
    InPlace,
}

impl Background {
    /// Does long work; nothing comes of work that panics.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match self {
            Self::InPlace => Some(work()),
            Self::Beside => match tokio::task::spawn_blocking(work).await {
                Ok(done) => Some(done),
                Err(error) => {
                    tracing::error!("planning ended badly: {error}");
                    None
                }
            },
        }
    }
}
