//! What tests came to: who failed, who was slow, what was left out, and one line that counts them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::runner::{CaseVerdict, Outcome};
use crate::say;

/// So many of the slowest tests are named.
const SLOWEST: usize = 10;

/// How many tests came to what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(super) n_passed: usize,
    pub(super) n_failed: usize,
    /// What tests lacked, and how many lacked it.
    pub(super) lacked: BTreeMap<String, usize>,
}

impl Tally {
    fn of(outcomes: &[Outcome]) -> Self {
        let mut tally = Self::default();
        for outcome in outcomes {
            match &outcome.verdict {
                CaseVerdict::Passed => tally.n_passed += 1,
                CaseVerdict::Failed(_) => tally.n_failed += 1,
                CaseVerdict::Skipped(why) => *tally.lacked.entry(why.clone()).or_default() += 1,
            }
        }
        tally
    }

    /// Tests that did nothing.
    pub(super) fn n_left_out(&self) -> usize {
        self.lacked.values().sum()
    }
}

/// `1 test`, `2 tests`.
pub(super) fn tests(n: usize) -> String {
    format!("{n} {}", if n == 1 { "test" } else { "tests" })
}

/// Prints what came of tests, and sums it up.
pub(super) fn tell(outcomes: &[Outcome]) -> anyhow::Result<Tally> {
    let mut slowest: Vec<&Outcome> = outcomes.iter().collect();
    slowest.sort_by(|a, b| b.took.cmp(&a.took).then_with(|| a.name.cmp(&b.name)));
    say("-- slowest tests")?;
    for outcome in slowest.iter().take(SLOWEST) {
        say(&format!(
            "{:>8.1} s  {}",
            outcome.took.as_secs_f64(),
            outcome.name
        ))?;
    }
    let mut by_executable: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
    for outcome in outcomes {
        let executable = outcome.name.split(' ').next().unwrap_or_default();
        let (n, took) = by_executable.entry(executable).or_default();
        *n += 1;
        *took += outcome.took;
    }
    let mut executables: Vec<_> = by_executable.into_iter().collect();
    executables.sort_by_key(|(_, (_, took))| std::cmp::Reverse(*took));
    say("-- slowest executables")?;
    for (name, (n, took)) in executables.iter().take(SLOWEST) {
        let (secs, n) = (took.as_secs_f64(), tests(*n));
        say(&format!("{secs:>8.1} s  {name}, {n}"))?;
    }
    let failed: Vec<&Outcome> = outcomes.iter().filter(|own| is_failed(own)).collect();
    if !failed.is_empty() {
        say("-- failed tests")?;
    }
    for outcome in &failed {
        if let CaseVerdict::Failed(why) = &outcome.verdict {
            say(&format!("   {}: {why}", outcome.name))?;
        }
    }
    anyhow::ensure!(!outcomes.is_empty(), "there are no tests");
    let tally = Tally::of(outcomes);
    let (n_passed, n_failed) = (tally.n_passed, tally.n_failed);
    let n_left_out = tally.n_left_out();
    say(&format!(
        "{n_passed} passed, {n_failed} failed, {n_left_out} left out"
    ))?;
    Ok(tally)
}

fn is_failed(outcome: &Outcome) -> bool {
    matches!(outcome.verdict, CaseVerdict::Failed(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, verdict: CaseVerdict) -> Outcome {
        Outcome {
            name: name.to_owned(),
            took: Duration::from_secs(1),
            verdict,
        }
    }

    #[test]
    fn tests_are_counted_by_what_they_came_to() {
        let lacks = |why: &str| CaseVerdict::Skipped(why.to_owned());
        let outcomes = [
            outcome("a u", CaseVerdict::Passed),
            outcome("a v", lacks("there is no helm")),
            outcome("a w", lacks("there is no kubectl")),
            outcome("b x", lacks("there is no helm")),
            outcome("b y", CaseVerdict::Failed("exit status: 101".to_owned())),
        ];
        let tally = tell(&outcomes).unwrap();
        let lacked = [("there is no helm", 2), ("there is no kubectl", 1)];
        let expected = Tally {
            n_passed: 1,
            n_failed: 1,
            lacked: lacked.map(|(why, n)| (why.to_owned(), n)).into(),
        };
        assert_eq!(tally, expected);
        assert_eq!(tally.n_left_out(), 3);
        assert!(tell(&[]).is_err());
    }
}
