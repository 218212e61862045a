//! How often the pods of a workload were moved for money, as it carries it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;

/// Annotation of workloads whose pods were moved.
pub use joiner_api::labels::ours::MOVES;

/// Moves count this long.
const HOURS: i64 = 24;
/// Seconds of an hour.
const HOUR: i64 = 3600;

/// Moves of a workload's pods, by hour since the epoch; a day of them at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveTally(BTreeMap<i64, Hour>);

/// What was moved within an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hour {
    moves: u32,
    /// Of so many replicas; 0 when that is not known.
    replicas: u32,
}

impl Hour {
    /// What these moves count for a workload that has so many replicas now: ten moves of ten replicas
    /// are as much to one that has shrunk to three as three moves.
    fn counts(self, replicas: u32) -> u32 {
        if self.replicas <= replicas {
            return self.moves;
        }
        let scaled = u64::from(self.moves) * u64::from(replicas);
        let scaled = scaled.div_ceil(u64::from(self.replicas));
        u32::try_from(scaled).unwrap_or(u32::MAX)
    }
}

impl MoveTally {
    /// True when all of the value of [`MOVES`] can be understood.
    #[must_use]
    pub fn is_clear(text: &str) -> bool {
        text.split(',').all(|part| hour_of(part).is_some())
    }

    /// Reads `2026-11-16T04=3/10,…` (three moves of ten replicas), and leaves out what cannot be
    /// understood.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(text.split(',').filter_map(hour_of).collect())
    }

    /// Moves within the last day, to a workload of so many replicas; hours count as a whole.
    #[must_use]
    pub fn used(&self, now: Timestamp, replicas: u32) -> u32 {
        let counted = self.0.range(window(now));
        let counted = counted.map(|(_, moved)| moved.counts(replicas));
        counted.fold(0, u32::saturating_add)
    }

    /// With so many more moves of so many replicas now, and without what is too old to count.
    #[must_use]
    pub fn and(&self, now: Timestamp, n: u32, replicas: u32) -> Self {
        let kept = self
            .0
            .range(window(now))
            .map(|(hour, moved)| (*hour, *moved));
        let mut kept: BTreeMap<i64, Hour> = kept.collect();
        let moved = kept.entry(hour(now)).or_default();
        // What was moved before the workload shrank or grew is counted in its size of now.
        let known = moved.replicas == 0 || moved.replicas == replicas;
        moved.moves = match known {
            true => moved.moves,
            false => moved.counts(replicas),
        };
        moved.moves = moved.moves.saturating_add(n);
        moved.replicas = replicas;
        Self(kept)
    }

    /// With so many fewer, latest first.
    #[must_use]
    pub fn without(&self, now: Timestamp, mut n: u32) -> Self {
        let kept = self
            .0
            .range(window(now))
            .map(|(hour, moved)| (*hour, *moved));
        let mut kept: BTreeMap<i64, Hour> = kept.collect();
        for moved in kept.values_mut().rev() {
            let taken = n.min(moved.moves);
            moved.moves -= taken;
            n -= taken;
        }
        kept.retain(|_, moved| moved.moves > 0);
        Self(kept)
    }

    /// The last hour in which something was moved, since the epoch.
    #[must_use]
    pub fn last_hour(&self) -> Option<i64> {
        self.0.keys().next_back().copied()
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (hour, Hour { moves, replicas }) in &self.0 {
            let Ok(started) = Timestamp::from_second(hour.saturating_mul(HOUR)) else {
                continue;
            };
            let comma = if text.is_empty() { "" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "{comma}{}={moves}/{replicas}",
                started.strftime("%Y-%m-%dT%H")
            );
        }
        text
    }
}

/// One hour of a tally's text.
fn hour_of(part: &str) -> Option<(i64, Hour)> {
    let (hour, counts) = part.split_once('=')?;
    let started: Timestamp = format!("{hour}:00:00Z").parse().ok()?;
    let (moves, replicas) = counts.split_once('/').unwrap_or((counts, "0"));
    let moved = Hour {
        moves: moves.parse().ok()?,
        replicas: replicas.parse().ok()?,
    };
    Some((started.as_second().div_euclid(HOUR), moved))
}

fn hour(now: Timestamp) -> i64 {
    now.as_second().div_euclid(HOUR)
}

/// Hours in which moves count. Of an hour that has begun elsewhere already, one is allowed for.
fn window(now: Timestamp) -> std::ops::RangeInclusive<i64> {
    hour(now) - HOURS..=hour(now) + 1
}
