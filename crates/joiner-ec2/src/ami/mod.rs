//! Images: which ones a class selects, and which one a machine boots from.

mod choose;

pub use choose::for_type;
