//! Counters, gauges, histograms and summaries, as Prometheus reads them.
//!
//! The families are rows of [`metric_names`](crate::metric_names). This is a small registry of our
//! own because the crates there are do not fit: `prometheus` has no summaries and no way to drop
//! the series of one object, and fixes the labels of a family when it is made, while ours depend on
//! the cloud; `prometheus-client` writes OpenMetrics, with other rules for names. What is left of
//! them would be a map behind a lock, which is what this is.
//!
//! *Guarantees*: no call fails or blocks for long; a family never has more series than its row
//! allows; what does not fit the table is dropped and counted, and stops a debug build.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;
use crate::metric_names::{self, Family, Measure};
use crate::metric_text::{WrongLabels, braced, label, label_text, line, number, with};
use crate::process_metrics;

/// What a summary shows.
const QUANTILES: [f64; 5] = [0.0, 0.5, 0.9, 0.99, 1.0];
/// How long a summary remembers, and how much.
const SUMMARY_AGE: Duration = Duration::from_secs(600);
const SUMMARY_SAMPLES_MAX: usize = 4_096;

/// The labels and the value of one series.
pub type Sample = (Vec<(String, String)>, f64);

/// Writes series while metrics are rendered; see [`Metrics::source`].
#[derive(Debug)]
pub struct Series<'a> {
    family: &'static Family,
    text: &'a mut String,
    n_written: usize,
    n_dropped: usize,
}

/// What is asked for series whenever metrics are rendered.
type Source = Box<dyn Fn(&mut Series<'_>) + Send + Sync>;

/// What this program was built from.
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// Its version.
    pub version: String,
    /// Its commit.
    pub commit: String,
}

/// All metrics of the process.
pub struct Metrics {
    clock: Clock,
    by_name: HashMap<&'static str, usize>,
    slots: Vec<Slot>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// A family and what was measured.
struct Slot {
    family: &'static Family,
    series: Mutex<BTreeMap<Box<str>, Value>>,
    source: Mutex<Option<Source>>,
}

/// What was measured in one series.
enum Value {
    Number(f64),
    Histogram(Box<Histogram>),
    Summary(Box<Summary>),
}

struct Histogram {
    /// By bound, without those below.
    counts: Box<[u64]>,
    sum: f64,
    count: u64,
}

struct Summary {
    recent: VecDeque<(Timestamp, f64)>,
    sum: f64,
    count: u64,
}

/// Why a measurement was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Name,
    Measure,
    Labels,
    TooMany,
}

impl From<WrongLabels> for Wrong {
    fn from(_: WrongLabels) -> Self {
        Self::Labels
    }
}

impl Wrong {
    const fn word(self) -> &'static str {
        match self {
            Self::Name => "unknown_name",
            Self::Measure => "wrong_type",
            Self::Labels => "wrong_labels",
            Self::TooMany => "too_many_series",
        }
    }
}

impl Metrics {
    /// Nothing measured yet.
    #[must_use]
    pub fn new(clock: Clock, build: &Build) -> Self {
        let slots: Vec<Slot> = metric_names::all()
            .map(|family| Slot {
                family,
                series: Mutex::default(),
                source: Mutex::default(),
            })
            .collect();
        let by_name = slots.iter().enumerate();
        let by_name = by_name.map(|(ix, slot)| (slot.family.name, ix)).collect();
        let metrics = Self {
            clock,
            by_name,
            slots,
        };
        let labels = [
            ("version", build.version.as_str()),
            ("commit", build.commit.as_str()),
            ("goarch", architecture()),
            // Dashboards join on this label, so it is there; it says what the compiler is.
            ("goversion", "rust"),
        ];
        metrics.gauge(metric_names::BUILD_INFO, &labels, 1.0);
        for kind in ["multi", "single"] {
            let labels = [("consolidation_type", kind)];
            metrics.count(metric_names::CONSOLIDATION_TIMEOUTS, &labels, 0.0);
        }
        metrics
    }

    /// Counts up.
    pub fn count(&self, name: &'static str, labels: &[(&str, &str)], by: f64) {
        // Also keeps out what is not a number.
        if !(by >= 0.0 && by.is_finite()) {
            return self.reject(name, Wrong::Measure);
        }
        self.change(name, labels, &[Measure::Counter], |value, _| {
            if let Value::Number(number) = value {
                *number += by;
            }
        });
    }

    /// Sets a gauge.
    pub fn gauge(&self, name: &'static str, labels: &[(&str, &str)], to: f64) {
        self.change(name, labels, &[Measure::Gauge], |value, _| {
            if let Value::Number(number) = value {
                *number = to;
            }
        });
    }

    /// Adds an observation to a histogram or a summary.
    pub fn observe(&self, name: &'static str, labels: &[(&str, &str)], observed: f64) {
        if observed.is_nan() {
            return self.reject(name, Wrong::Measure);
        }
        let now = self.clock.now();
        self.change(name, labels, &[], |value, family| match value {
            Value::Number(_) => {}
            Value::Histogram(histogram) => histogram.observe(family, observed),
            Value::Summary(summary) => summary.observe(now, observed),
        });
    }

    /// Replaces all series of a gauge.
    pub fn replace(&self, name: &'static str, samples: Vec<Sample>) {
        let Some(slot) = self.slot(name) else {
            return self.reject(name, Wrong::Name);
        };
        if slot.family.measure != Measure::Gauge {
            return self.reject(name, Wrong::Measure);
        }
        let mut series = BTreeMap::new();
        let mut wrong = None;
        for (labels, value) in &samples {
            let labels: Vec<(&str, &str)> = labels.iter().map(|(k, v)| (&**k, &**v)).collect();
            match label_text(slot.family, &labels) {
                Ok(_) if series.len() >= slot.family.series_max => wrong = Some(Wrong::TooMany),
                Ok(text) => {
                    series.insert(text.into_boxed_str(), Value::Number(*value));
                }
                Err(error) => wrong = Some(error.into()),
            }
        }
        *lock(&slot.series) = series;
        if let Some(wrong) = wrong {
            self.reject(name, wrong);
        }
    }

    /// Asks `source` for the series of a gauge whenever metrics are rendered.
    ///
    /// For families with a series for each pod or node: they are made from what is known anyway,
    /// and take no memory between scrapes. There is one source for a family; a second replaces it.
    /// A source must not measure anything itself.
    pub fn source(
        &self,
        name: &'static str,
        source: impl Fn(&mut Series<'_>) + Send + Sync + 'static,
    ) {
        match self.slot(name) {
            Some(slot) if slot.family.measure == Measure::Gauge => {
                *lock(&slot.source) = Some(Box::new(source));
            }
            Some(_) => self.reject(name, Wrong::Measure),
            None => self.reject(name, Wrong::Name),
        }
    }

    /// Drops every series of a family that has these labels, whatever its others are.
    pub fn forget(&self, name: &'static str, labels: &[(&str, &str)]) {
        let Some(slot) = self.slot(name) else {
            return self.reject(name, Wrong::Name);
        };
        let wanted: Vec<String> = labels.iter().map(|(k, v)| label(k, v)).collect();
        // A quote inside a value is escaped, so that `name="` cannot be part of one.
        let has = |text: &str, wanted: &str| {
            text.match_indices(wanted)
                .any(|(at, _)| at == 0 || text.as_bytes()[at - 1] == b',')
        };
        lock(&slot.series).retain(|text, _| !wanted.iter().all(|wanted| has(text, wanted)));
    }

    /// All metrics in Prometheus' text format, version 0.0.4.
    #[must_use]
    pub fn render(&self) -> String {
        for (name, value) in process_metrics::read() {
            match self.slot(name) {
                Some(slot) => {
                    lock(&slot.series).insert(Box::default(), Value::Number(value));
                }
                None => self.reject(name, Wrong::Name),
            }
        }
        let now = self.clock.now();
        let mut text = String::new();
        for slot in &self.slots {
            if slot.render(now, &mut text) > 0 {
                self.reject(slot.family.name, Wrong::TooMany);
            }
        }
        text
    }

    fn slot(&self, name: &str) -> Option<&Slot> {
        self.by_name.get(name).map(|ix| &self.slots[*ix])
    }

    /// Changes one series, which comes to be if need be. `measures` empty: a histogram or a
    /// summary.
    fn change(
        &self,
        name: &'static str,
        labels: &[(&str, &str)],
        measures: &[Measure],
        change: impl FnOnce(&mut Value, &Family),
    ) {
        let Some(slot) = self.slot(name) else {
            return self.reject(name, Wrong::Name);
        };
        let family = slot.family;
        let fits = match family.measure {
            Measure::Counter | Measure::Gauge => measures.contains(&family.measure),
            Measure::Histogram(_) | Measure::Summary => measures.is_empty(),
        };
        if !fits {
            return self.reject(name, Wrong::Measure);
        }
        let text = match label_text(family, labels) {
            Ok(text) => text,
            Err(wrong) => return self.reject(name, wrong.into()),
        };
        let mut series = lock(&slot.series);
        if let Some(value) = series.get_mut(text.as_str()) {
            return change(value, family);
        }
        if series.len() >= family.series_max {
            drop(series);
            return self.reject(name, Wrong::TooMany);
        }
        let value = series.entry(text.into_boxed_str());
        change(value.or_insert_with(|| Value::new(family)), family);
    }

    fn reject(&self, name: &'static str, wrong: Wrong) {
        debug_assert!(
            wrong == Wrong::TooMany,
            "metric {name}: {}, see the table in metric_names",
            wrong.word()
        );
        // Should even this one be wrong, there is nobody left to tell.
        if name != metric_names::METRICS_REJECTED {
            let labels = [("metric", name), ("why", wrong.word())];
            self.count(metric_names::METRICS_REJECTED, &labels, 1.0);
        }
    }
}

impl Series<'_> {
    /// Writes one series.
    pub fn gauge(&mut self, labels: &[(&str, &str)], value: f64) {
        let text = match label_text(self.family, labels) {
            Ok(text) if self.n_written < self.family.series_max => text,
            Ok(_) | Err(_) => {
                self.n_dropped += 1;
                return;
            }
        };
        self.n_written += 1;
        line(self.text, self.family.name, &text, value);
    }
}

impl Slot {
    /// Appends all series; tells how many were dropped.
    fn render(&self, now: Timestamp, text: &mut String) -> usize {
        let family = self.family;
        let source = lock(&self.source);
        let mut series = lock(&self.series);
        if series.is_empty() && source.is_none() {
            return 0;
        }
        let measure = match family.measure {
            Measure::Counter => "counter",
            Measure::Gauge => "gauge",
            Measure::Histogram(_) => "histogram",
            Measure::Summary => "summary",
        };
        let name = family.name;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {}", family.help);
        let _ = writeln!(text, "# TYPE {name} {measure}");
        if let Some(source) = &*source {
            let mut series = Series {
                family,
                text,
                n_written: 0,
                n_dropped: 0,
            };
            source(&mut series);
            return series.n_dropped;
        }
        for (labels, value) in series.iter_mut() {
            match value {
                Value::Number(number) => line(text, name, labels, *number),
                Value::Histogram(histogram) => histogram.render(family, labels, text),
                Value::Summary(summary) => summary.render(name, labels, now, text),
            }
        }
        0
    }
}

impl Value {
    fn new(family: &Family) -> Self {
        match family.measure {
            Measure::Counter | Measure::Gauge => Self::Number(0.0),
            Measure::Histogram(bounds) => Self::Histogram(Box::new(Histogram {
                counts: vec![0; bounds.len()].into_boxed_slice(),
                sum: 0.0,
                count: 0,
            })),
            Measure::Summary => Self::Summary(Box::new(Summary {
                recent: VecDeque::new(),
                sum: 0.0,
                count: 0,
            })),
        }
    }
}

fn bounds(family: &Family) -> &'static [f64] {
    match family.measure {
        Measure::Histogram(bounds) => bounds,
        Measure::Counter | Measure::Gauge | Measure::Summary => &[],
    }
}

impl Histogram {
    fn observe(&mut self, family: &Family, observed: f64) {
        let ix = bounds(family).partition_point(|bound| *bound < observed);
        if let Some(count) = self.counts.get_mut(ix) {
            *count += 1;
        }
        self.sum += observed;
        self.count += 1;
    }

    fn render(&self, family: &Family, labels: &str, text: &mut String) {
        let name = family.name;
        let mut below = 0;
        for (bound, count) in bounds(family).iter().zip(&self.counts) {
            below += count;
            let labels = with(labels, "le", &number(*bound));
            let _ = writeln!(text, "{name}_bucket{{{labels}}} {below}");
        }
        let all = with(labels, "le", "+Inf");
        let _ = writeln!(text, "{name}_bucket{{{all}}} {}", self.count);
        line(text, &format!("{name}_sum"), labels, self.sum);
        let _ = writeln!(text, "{name}_count{} {}", braced(labels), self.count);
    }
}

impl Summary {
    fn observe(&mut self, now: Timestamp, observed: f64) {
        self.sum += observed;
        self.count += 1;
        if self.recent.len() >= SUMMARY_SAMPLES_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((now, observed));
        self.age(now);
    }

    fn age(&mut self, now: Timestamp) {
        let age = SignedDuration::try_from(SUMMARY_AGE).unwrap_or(SignedDuration::MAX);
        while let Some((at, _)) = self.recent.front()
            && now.duration_since(*at) > age
        {
            self.recent.pop_front();
        }
    }

    fn render(&mut self, name: &str, labels: &str, now: Timestamp, text: &mut String) {
        self.age(now);
        let mut sorted: Vec<f64> = self.recent.iter().map(|(_, value)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        for quantile in QUANTILES {
            let labels = with(labels, "quantile", &number(quantile));
            line(text, name, &labels, at_rank(&sorted, quantile));
        }
        line(text, &format!("{name}_sum"), labels, self.sum);
        let _ = writeln!(text, "{name}_count{} {}", braced(labels), self.count);
    }
}

/// The value at a quantile of sorted values; not a number when there are none.
fn at_rank(sorted: &[f64], quantile: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a rank among at most a few thousand"
    )]
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// The processor as upstream spells it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A panic elsewhere does not make numbers wrong.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
