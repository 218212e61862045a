//! Failures of a cloud, sorted by what is to be done about them.

use std::time::Duration;

use joiner_model::Name;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same again, later.
    Later,
    /// The same again, not before this has passed: the cloud said so.
    After(Duration),
    /// Something else: decide anew, without what was refused.
    DecideAnew,
}

/// Why a machine was not launched.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LaunchError {
    /// No offering of the order can be had now. The cloud remembers which ones: the catalog shows
    /// them as unavailable from here on.
    #[error("insufficient capacity, {0}")]
    InsufficientCapacity(String),
    /// The node class is missing, not ready, or being deleted.
    #[error("NodeClassRef not ready, {0}")]
    ClassNotReady(String),
    /// The cloud said no for a reason that somebody may remove; it goes into the claim's condition.
    #[error("creating nodeclaim, {message}")]
    Refused {
        /// One word for the condition.
        reason: Name,
        /// In words.
        message: String,
    },
    /// Too many calls.
    #[error("the cloud is throttling, {0}")]
    Throttled(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl LaunchError {
    /// What to do next.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::InsufficientCapacity(_) | Self::ClassNotReady(_) => Retry::DecideAnew,
            Self::Refused { .. } | Self::Throttled(_) | Self::Other(_) => Retry::Later,
        }
    }
}

/// Why a question about machines, or the end of one, got no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CloudError {
    /// Too many calls.
    #[error("the cloud is throttling, {0}")]
    Throttled(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Why there is no list of instance types.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CatalogError {
    /// The class does not exist, or cannot be used: no pool that names it can buy.
    #[error("the node class cannot be used, {0}")]
    Class(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}
