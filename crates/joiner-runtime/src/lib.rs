//! What everything above the pure line shares: for now the clock.

mod clock;

pub use clock::Clock;
