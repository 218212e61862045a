//! Which pods of a VPA are updated, in which order, and how: evicted, or resized where they run.
//!
//! 1. `priority`: which pods are worth it, and which first?
//! 2. `groups`: how many of them may be disturbed?
//! 3. `in_place`: may a pod be resized where it runs, or has that been tried for too long?
//! 4. `round`: one look at all pods, one action at a time.

mod groups;
mod in_place;
mod priority;
mod round;
mod settings;

pub use groups::Controller;
pub use in_place::{InPlace, ResizeMemory};
pub use priority::{Accepted, Priority};
pub use round::{Action, Round, Situation};
pub use settings::UpdaterSettings;
