//! What the lines of a decision log come to: the last decisions that are wanted.

use std::collections::VecDeque;

use crate::decision::{Decision, DecisionQuery};

/// Most decisions that are kept of a log when the query does not say how many.
const KEPT_MAX: usize = 10_000;

/// Takes the lines of a log, oldest first, and keeps the last decisions that a query wants.
#[derive(Debug)]
pub struct LogLines<'q> {
    query: &'q DecisionQuery,
    wanted: VecDeque<Decision>,
}

impl<'q> LogLines<'q> {
    /// No line taken yet.
    #[must_use]
    pub fn new(query: &'q DecisionQuery) -> Self {
        let wanted = VecDeque::new();
        Self { query, wanted }
    }

    /// Takes the next line, without its end. One that is not a decision is skipped.
    pub fn take(&mut self, line: &[u8]) {
        let Ok(decision) = serde_json::from_slice::<Decision>(line) else {
            return;
        };
        if !self.query.wants(&decision) {
            return;
        }
        self.wanted.push_back(decision);
        if self.wanted.len() > self.query.limit.unwrap_or(KEPT_MAX) {
            self.wanted.pop_front();
        }
    }

    /// The decisions that are wanted, oldest first.
    #[must_use]
    pub fn into_decisions(self) -> Vec<Decision> {
        self.wanted.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generations(query: &DecisionQuery) -> Vec<u64> {
        let mut lines = LogLines::new(query);
        for line in [
            r#"{"kind": "launch", "generation": 1}"#,
            r#"{"kind": "kept", "generation": 2}"#,
            "not a decision",
            "",
            r#"{"kind": "launch", "generation": 3}"#,
            r#"{"kind": "launch", "generation": 4, "cut"#,
            r#"{"kind": "launch", "generation": 5}"#,
        ] {
            lines.take(line.as_bytes());
        }
        let decisions = lines.into_decisions();
        decisions.iter().map(|line| line.generation).collect()
    }

    #[test]
    fn the_last_wanted_lines_are_kept_and_others_skipped() {
        let query = |kind: Option<&str>, limit| DecisionQuery {
            kind: kind.map(str::to_owned),
            limit,
            ..DecisionQuery::default()
        };
        assert_eq!(generations(&query(None, None)), [1, 2, 3, 5]);
        assert_eq!(generations(&query(Some("launch"), Some(2))), [3, 5]);
        assert_eq!(generations(&query(None, Some(0))), Vec::<u64>::new());
    }
}
