//! What tests came to: who failed, who was slow, what was left out, and one line that counts them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::runner::{CaseVerdict, Outcome};
use super::step::Verdict;
use crate::say;

/// So many of the slowest tests are named.
const SLOWEST: usize = 10;

/// Prints what came of tests, and sums it up.
pub(super) fn tell(outcomes: &[Outcome]) -> anyhow::Result<Verdict> {
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
        say(&format!("{:>8.1} s  {name}, {n} tests", took.as_secs_f64()))?;
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
    let mut lacked: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in outcomes {
        if let CaseVerdict::Skipped(why) = &outcome.verdict {
            *lacked.entry(why).or_default() += 1;
        }
    }
    let n_skipped: usize = lacked.values().sum();
    let n_passed = outcomes.len() - failed.len() - n_skipped;
    say(&format!(
        "{n_passed} passed, {} failed, {n_skipped} skipped",
        failed.len()
    ))?;
    if !failed.is_empty() {
        return Ok(Verdict::Failed(format!("{} tests", failed.len())));
    }
    if n_skipped > 0 {
        let reasons = lacked.iter().map(|(why, n)| format!("{n} tests: {why}"));
        return Ok(Verdict::LeftOut(reasons.collect::<Vec<_>>().join("; ")));
    }
    anyhow::ensure!(n_passed > 0, "there are no tests");
    Ok(Verdict::Passed(format!("{n_passed} tests")))
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
    fn one_failure_fails_and_one_skipped_leaves_out() {
        let passed = outcome("a x", CaseVerdict::Passed);
        let skipped = outcome("a y", CaseVerdict::Skipped("no helm".to_owned()));
        let failed = outcome("a z", CaseVerdict::Failed("exit status: 101".to_owned()));
        let of = |outcomes: &[&Outcome]| {
            let outcomes: Vec<Outcome> = outcomes.iter().map(|own| (*own).clone()).collect();
            tell(&outcomes).unwrap()
        };
        assert!(matches!(of(&[&passed]), Verdict::Passed(_)));
        assert!(
            matches!(of(&[&passed, &skipped]), Verdict::LeftOut(why) if why == "1 tests: no helm")
        );
        assert!(matches!(
            of(&[&passed, &skipped, &failed]),
            Verdict::Failed(_)
        ));
        assert!(tell(&[]).is_err());
    }
}
