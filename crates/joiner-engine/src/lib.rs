//! What every controller stands on.
//!
//! A controller is one of two things. A [`Keyed`] controller looks at one object at a time: changes of
//! the cluster become keys, keys wait in a queue, and a key is reconciled by one worker at a time. A
//! [`Looping`] controller looks at everything at once, in passes: a change may call for a pass, and each
//! pass says when the next one is due. [`run`] drives either kind.
//!
//! *Guarantees*, for both kinds:
//! - nothing is reconciled before everything that is followed has been listed;
//! - after changes were missed, all keys are looked at, and a pass is made;
//! - what fails is repeated after a pause that doubles, and changes do not shorten it ([`retry`]);
//! - a status that was written by someone else meanwhile is read again, and decided about anew, three
//!   times without a pause ([`write`]);
//! - in a dry run only those run that say so;
//! - the order is fixed: what has ended, then changes, then timers; keys by name.
//!
//! What the engine does not know: clouds, plans, and what any controller is for.

pub mod conditions;
mod controller;
pub mod events;
pub mod finalizer;
mod keyed;
mod looping;
mod queue;
pub mod retry;
mod run;
mod span;
pub mod write;

pub use conditions::{ConditionSet, ConditionType, Finished, Transition};
pub use controller::{Controller, Failure, Keyed, Looping, Next, Reconcile, Shared};
pub use run::run;
pub use write::{After, settle};
