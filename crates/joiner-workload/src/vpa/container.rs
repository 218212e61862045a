//! One running container: which of its samples count, and its current peak of memory.

use jiff::Timestamp;

use super::aggregate::Aggregate;
use super::amounts::scaled;
use crate::durations::{after, before};

/// One running container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Container {
    last_cpu: Option<Timestamp>,
    last_memory: Option<Timestamp>,
    /// Until when peaks of memory are one peak.
    pub(super) window_end: Option<Timestamp>,
    usage_peak: i64,
    oom_peak: i64,
}

impl Container {
    /// Whether a sample of CPU counts; it does if it is newer than the last one.
    pub(super) fn add_cpu(
        &mut self,
        aggregate: &mut Aggregate,
        millis: i64,
        time: Timestamp,
    ) -> bool {
        if millis < 0 || self.last_cpu.is_some_and(|last| time <= last) {
            return false;
        }
        aggregate.add_cpu(millis, time);
        self.last_cpu = Some(time);
        true
    }

    pub(super) fn add_memory(
        &mut self,
        aggregate: &mut Aggregate,
        bytes: i64,
        time: Timestamp,
    ) -> bool {
        let is_late = self.last_memory.is_some_and(|last| time < last);
        if bytes < 0 || is_late {
            return false;
        }
        self.add_peak(aggregate, (bytes, false), time);
        true
    }

    /// Adds a peak if it is the highest of its window, in place of the one that was.
    fn add_peak(
        &mut self,
        aggregate: &mut Aggregate,
        (bytes, by_oom): (i64, bool),
        time: Timestamp,
    ) {
        self.last_memory = Some(time);
        let end = *self.window_end.get_or_insert(time);
        let old = self.peak();
        if time < end {
            // A window that was opened with nothing takes no peak.
            if old == 0 || bytes <= old {
                return;
            }
            aggregate.subtract_memory(old, end);
        } else {
            let interval = aggregation_nanos(aggregate);
            let passed = time.as_nanosecond() - end.as_nanosecond();
            let shift = passed / interval * interval + interval;
            self.window_end = Some(later(end, shift));
            self.usage_peak = 0;
            self.oom_peak = 0;
        }
        aggregate.add_memory(bytes, self.window_end.unwrap_or(time));
        if by_oom {
            self.oom_peak = bytes;
        } else {
            self.usage_peak = bytes;
        }
    }

    /// The highest use of memory in the current window.
    pub(super) fn peak(&self) -> i64 {
        self.usage_peak.max(self.oom_peak)
    }

    /// Notes that memory ran out while so much was requested or used. What was needed is more than that;
    /// peaks that come from here do not count, so that one does not drive the next.
    pub(super) fn add_oom(
        &mut self,
        aggregate: &mut Aggregate,
        bytes: i64,
        time: Timestamp,
    ) -> bool {
        let settings = aggregate.aggregation;
        let earliest = self.window_end.map(|end| before(end, settings.interval));
        if earliest.is_some_and(|earliest| time < earliest) {
            return false;
        }
        let used = bytes.max(self.usage_peak);
        let bumped = used.saturating_add(super::amounts::amount(settings.oom_min));
        let needed = bumped.max(scaled(used, settings.oom_ratio));
        self.add_peak(aggregate, (needed, true), time);
        true
    }
}

fn aggregation_nanos(aggregate: &Aggregate) -> i128 {
    aggregate.aggregation.interval.as_nanos().max(1)
}

fn later(time: Timestamp, nanos: i128) -> Timestamp {
    let duration = jiff::SignedDuration::try_from_nanos_i128(nanos);
    after(time, duration.unwrap_or(jiff::SignedDuration::MAX))
}
