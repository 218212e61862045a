//! What was decided and why: kept in memory and in a file, to be asked for later.
//!
//! *Flow*: a decision is one line of JSON. It goes into a ring in memory, to a file if there is
//! one, and in short to the log.
//!
//! *Guarantees*: recording never fails; ring and files are bounded. A line that was recorded is in
//! the file, or in the one it was renamed to, if the process dies right after, also in the middle
//! of a rotation. A file that cannot be written is reported once and tried again with every
//! decision.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use joiner_receipts::{Decision, DecisionQuery, Kept, KeptNodes};

use crate::decision_file::DecisionFile;
use crate::metric_names::DECISIONS;
use crate::metrics::{Metrics, lock};

/// How much is kept, and where.
#[derive(Clone, Debug)]
pub struct DecisionSettings {
    /// Decisions in memory.
    pub count_max: usize,
    /// Bytes in memory, as written.
    pub bytes_max: usize,
    /// The file for them, if any.
    pub file: Option<PathBuf>,
    /// A file is put aside when it would grow beyond this.
    pub file_bytes_max: u64,
    /// So many files that were put aside are kept.
    pub n_files_kept: u32,
}

impl Default for DecisionSettings {
    fn default() -> Self {
        Self {
            count_max: 2_000,
            bytes_max: 8 << 20,
            file: None,
            file_bytes_max: 64 << 20,
            n_files_kept: 5,
        }
    }
}

/// Where decisions are recorded and looked up.
#[derive(Clone)]
pub struct Decisions {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Decisions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decisions").finish_non_exhaustive()
    }
}

struct Shared {
    metrics: Arc<Metrics>,
    ring: Mutex<Ring>,
    kept: Mutex<KeptNodes>,
    file: Option<Mutex<DecisionFile>>,
}

/// The last decisions.
struct Ring {
    recent: VecDeque<(Arc<Decision>, usize)>,
    n_bytes: usize,
    count_max: usize,
    bytes_max: usize,
}

impl Ring {
    fn push(&mut self, decision: Arc<Decision>, n_bytes: usize) {
        self.recent.push_back((decision, n_bytes));
        self.n_bytes += n_bytes;
        while self.recent.len() > self.count_max || self.n_bytes > self.bytes_max {
            let Some((_, n_bytes)) = self.recent.pop_front() else {
                break;
            };
            self.n_bytes -= n_bytes;
        }
    }
}

impl Decisions {
    /// Nothing recorded yet; what is in the file stays there.
    #[must_use]
    pub fn new(settings: &DecisionSettings, metrics: Arc<Metrics>) -> Self {
        let file = settings.file.clone();
        let file = file.map(|path| {
            Mutex::new(DecisionFile::new(
                path,
                settings.file_bytes_max,
                settings.n_files_kept,
            ))
        });
        let ring = Mutex::new(Ring {
            recent: VecDeque::new(),
            n_bytes: 0,
            count_max: settings.count_max,
            bytes_max: settings.bytes_max,
        });
        let shared = Arc::new(Shared {
            metrics,
            ring,
            kept: Mutex::default(),
            file,
        });
        Self { shared }
    }

    /// Records a decision.
    pub fn record(&self, decision: Decision) {
        let line = match serde_json::to_string(&decision) {
            Ok(line) => line,
            Err(error) => {
                tracing::warn!(%error, kind = %decision.kind, "a decision could not be recorded");
                return;
            }
        };
        let reason = decision.reasons.first().map_or("", String::as_str);
        tracing::info!(decision = %decision.kind, generation = decision.generation, reason,
            "{}", decision.outcome);
        // The outcome is for people and differs each time; its first word does not.
        let outcome = decision.outcome.split(' ').next().unwrap_or_default();
        let labels = [("kind", decision.kind.as_str()), ("outcome", outcome)];
        self.shared.metrics.count(DECISIONS, &labels, 1.0);
        if let Some(file) = &self.shared.file {
            lock(file).append(&line);
        }
        lock(&self.shared.ring).push(Arc::new(decision), line.len());
    }

    /// Takes in why every node stays, as of one pass over all of them. Reasons that are new go to the
    /// file; the ring has no place for them, since the latest of each node is kept anyway.
    pub fn judged(&self, all: Vec<Kept>, generation: u64, now: Timestamp) {
        let news = lock(&self.shared.kept).replace(all, now);
        let Some(file) = self.shared.file.as_ref().filter(|_| !news.is_empty()) else {
            return;
        };
        let decision = KeptNodes::record(&news, generation, now);
        if let Ok(line) = serde_json::to_string(&decision) {
            lock(file).append(&line);
        }
    }

    /// Why a node stays, by its name or that of its claim, as of the last pass.
    #[must_use]
    pub fn kept(&self, name: &str) -> Option<Arc<Kept>> {
        lock(&self.shared.kept).of(name)
    }

    /// The decisions in memory that are wanted, oldest first.
    #[must_use]
    pub fn recent(&self, query: &DecisionQuery) -> Vec<Arc<Decision>> {
        let ring = lock(&self.shared.ring);
        let wanted = ring.recent.iter().rev().map(|(decision, _)| decision);
        let wanted = wanted.filter(|decision| query.wants(decision));
        let mut wanted: Vec<_> = wanted
            .take(query.limit.unwrap_or(usize::MAX))
            .cloned()
            .collect();
        wanted.reverse();
        wanted
    }
}

#[cfg(test)]
mod tests {
    use joiner_model::NanoDollars;

    use super::*;
    use crate::clock::Clock;
    use crate::metrics::Build;

    fn decisions(settings: &DecisionSettings) -> Decisions {
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
        let metrics = Metrics::new(clock, &Build::default());
        Decisions::new(settings, Arc::new(metrics))
    }

    fn decision(n: u64) -> Decision {
        Decision {
            time: Timestamp::from_second(i64::try_from(n).unwrap()).unwrap(),
            kind: if n.is_multiple_of(2) {
                "launch"
            } else {
                "provisioning"
            }
            .to_owned(),
            generation: n,
            outcome: format!("launched {n} nodes"),
            price_after: Some(NanoDollars::new(96_000_000)),
            about: vec![format!("pod/web/api-{n}"), "pool/general".to_owned()],
            ..Decision::default()
        }
    }

    fn generations(decisions: &Decisions, query: &DecisionQuery) -> Vec<u64> {
        let found = decisions.recent(query);
        found.iter().map(|decision| decision.generation).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_ring_is_bounded_by_count_and_by_bytes() {
        let all = DecisionQuery::default();
        let mut settings = DecisionSettings {
            count_max: 3,
            ..DecisionSettings::default()
        };
        let by_count = decisions(&settings);
        (0..10).for_each(|n| by_count.record(decision(n)));
        assert_eq!(generations(&by_count, &all), [7, 8, 9]);

        settings.count_max = 100;
        settings.bytes_max = 2 * serde_json::to_string(&decision(0)).unwrap().len() + 10;
        let by_bytes = decisions(&settings);
        (0..9).for_each(|n| by_bytes.record(decision(n)));
        assert_eq!(generations(&by_bytes, &all), [7, 8]);
        let large = Decision {
            outcome: "x".repeat(10_000),
            ..decision(9)
        };
        by_bytes.record(large);
        assert!(
            generations(&by_bytes, &all).is_empty(),
            "one alone is too much"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_wanted_is_found() {
        let decisions = decisions(&DecisionSettings::default());
        (0..20).for_each(|n| decisions.record(decision(n)));
        let query = |about: Option<&str>, kind: Option<&str>, since, limit| DecisionQuery {
            about: about.map(str::to_owned),
            kind: kind.map(str::to_owned),
            since,
            limit,
        };
        let since = Timestamp::from_second(17).unwrap();
        for (query, expected) in [
            (query(Some("api-1"), None, None, None), vec![1]),
            (query(Some("web/api-1"), None, None, None), vec![1]),
            (query(Some("pod/web/api-1"), None, None, None), vec![1]),
            (query(Some("pi-1"), None, None, None), vec![]),
            (query(Some("general"), None, None, Some(2)), vec![18, 19]),
            (query(None, Some("launch"), Some(since), None), vec![18]),
            (query(None, None, Some(since), None), vec![17, 18, 19]),
        ] {
            assert_eq!(generations(&decisions, &query), expected, "{query:?}");
        }
    }
}
