//! Room under `limits.nodes` that is spoken for while claims are being made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use joiner_model::Name;

use super::Counts;

/// Nodes that are being made, by pool; clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    held: Arc<Mutex<BTreeMap<Name, u64>>>,
}

/// Room that is held until this is dropped.
#[derive(Debug)]
pub struct Reserved {
    held: Arc<Mutex<BTreeMap<Name, u64>>>,
    pool: Name,
    granted: u64,
}

impl Reservations {
    /// Holds room for as many of the nodes wanted as the limit allows: what is there and what is
    /// held already counts against it. `count` says what is there and how many more are wanted; it
    /// is called when nothing else can be reserved, so that what others have made is seen.
    #[must_use]
    pub fn reserve(
        &self,
        pool: &Name,
        limit: Option<u64>,
        count: impl FnOnce() -> (Counts, u64),
    ) -> Reserved {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (counts, wanted) = count();
        let before = held.get(pool).copied().unwrap_or(0);
        let used = counts.total().saturating_add(before);
        let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(used));
        let granted = wanted.min(room);
        if granted > 0 {
            held.insert(pool.clone(), before + granted);
        }
        Reserved {
            held: Arc::clone(&self.held),
            pool: pool.clone(),
            granted,
        }
    }
}

impl Reserved {
    /// How many nodes may be made.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.granted
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let left = held.get(&self.pool).copied().unwrap_or(0);
        let left = left.saturating_sub(self.granted);
        if left == 0 {
            held.remove(&self.pool);
        } else {
            held.insert(self.pool.clone(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn counts(running: u64, deleting: u64, pending: u64) -> Counts {
        Counts {
            running,
            deleting,
            pending,
        }
    }

    #[test]
    fn core_336_everything_there_and_everything_held_counts_against_the_limit() {
        for (limit, there, wanted, granted) in [
            (None, counts(0, 0, 0), 7, 7),
            (Some(5), counts(0, 0, 0), 7, 5),
            (Some(5), counts(1, 1, 1), 7, 2),
            (Some(5), counts(3, 2, 0), 1, 0),
            (Some(5), counts(9, 0, 0), 1, 0),
            (Some(5), counts(0, 0, 0), 0, 0),
        ] {
            let all = Reservations::default();
            let reserved = all.reserve(&"p".into(), limit, || (there, wanted));
            assert_eq!(reserved.granted(), granted, "{limit:?} {there:?} {wanted}");
        }
    }

    #[test]
    fn core_336_what_is_held_is_given_back_and_pools_do_not_mix() {
        let all = Reservations::default();
        let pool: Name = "p".into();
        let first = all.reserve(&pool, Some(3), || (counts(0, 0, 0), 2));
        let second = all.reserve(&pool, Some(3), || (counts(0, 0, 0), 4));
        assert_eq!((first.granted(), second.granted()), (2, 1));
        let other = all.reserve(&"q".into(), Some(3), || (counts(0, 0, 0), 4));
        assert_eq!(other.granted(), 3);
        drop((first, second));
        let again = all.reserve(&pool, Some(3), || (counts(0, 0, 0), 9));
        assert_eq!(again.granted(), 3);
    }

    #[test]
    fn core_336_many_at_once_never_exceed_the_limit() {
        let all = Reservations::default();
        let (made, limit) = (AtomicU64::new(0), 20);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let count = || (counts(made.load(Ordering::SeqCst), 0, 0), 3);
                        let reserved = all.reserve(&"p".into(), Some(limit), count);
                        // The claims are seen before the room is given back.
                        let after = made.fetch_add(reserved.granted(), Ordering::SeqCst);
                        assert!(after + reserved.granted() <= limit);
                    }
                });
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), limit);
    }
}
