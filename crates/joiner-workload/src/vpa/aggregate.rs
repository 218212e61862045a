//! What is known of containers that are alike: histograms of their usage.

use jiff::Timestamp;

use super::amounts::Resource;
use super::histogram::Histogram;
use super::settings::{Aggregation, Settings};

/// Weight of a sample of CPU.
const CPU_WEIGHT: f64 = 0.1;
/// Weight of a peak of memory.
const MEMORY_WEIGHT: f64 = 1.0;

/// What is known of containers of one name in pods with the same labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Cores.
    pub cpu: Histogram,
    /// Peaks of memory.
    pub memory: Histogram,
    /// The first sample of CPU.
    pub first: Option<Timestamp>,
    /// The last sample of CPU.
    pub last: Option<Timestamp>,
    /// How many samples of CPU there were.
    pub n_samples: i64,
    /// When it was made.
    pub(super) created: Timestamp,
    /// How peaks of memory are collected.
    pub(super) aggregation: Aggregation,
}

impl Aggregate {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(settings: &Settings, now: Timestamp) -> Self {
        Self {
            cpu: Histogram::new(Resource::Cpu, settings.cpu.half_life),
            memory: Histogram::new(Resource::Memory, settings.memory.half_life),
            first: None,
            last: None,
            n_samples: 0,
            created: now,
            aggregation: settings.aggregation,
        }
    }

    pub(super) fn add_cpu(&mut self, millis: i64, time: Timestamp) {
        self.cpu.add(millis as f64 / 1000.0, CPU_WEIGHT, time);
        self.last = self.last.max(Some(time));
        if self.first.is_none_or(|first| time < first) {
            self.first = Some(time);
        }
        self.n_samples += 1;
    }

    pub(super) fn add_memory(&mut self, bytes: i64, time: Timestamp) {
        self.memory.add(bytes as f64, MEMORY_WEIGHT, time);
    }

    pub(super) fn subtract_memory(&mut self, bytes: i64, time: Timestamp) {
        self.memory.subtract(bytes as f64, MEMORY_WEIGHT, time);
    }

    /// Adds all that is known of others.
    pub fn merge(&mut self, other: &mut Self) {
        self.cpu.merge(&mut other.cpu);
        self.memory.merge(&mut other.memory);
        self.first = match (self.first, other.first) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.last = self.last.max(other.last);
        self.n_samples += other.n_samples;
    }

    /// Whether there was no sample of CPU.
    pub(super) const fn is_empty(&self) -> bool {
        self.n_samples == 0
    }

    /// Whether it is too old to count.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        let since = match self.last {
            Some(last) if !self.is_empty() => last,
            Some(_) | None => self.created,
        };
        now.duration_since(since) >= self.aggregation.window()
    }
}
