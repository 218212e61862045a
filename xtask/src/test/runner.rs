//! Runs tests, each in a process of its own, several at a time.
//!
//! Tests on the real control plane share one and take turns, beside the others. A test that takes longer
//! than [`LIMIT`] fails; where more programs want to run than there are cores, time counts accordingly
//! less, so that a busy machine fails no test.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::executables::Case;
use crate::say;

/// A test that takes longer fails.
const LIMIT: Duration = Duration::from_secs(60);
/// A test that was found hanging, however busy the machine.
const LIMIT_HARD: Duration = Duration::from_secs(20 * 60);
/// How often a running test is looked at.
const POLL: Duration = Duration::from_millis(20);
/// How often it is measured how busy the machine is.
const MEASURE: Duration = Duration::from_millis(250);
/// How often it is told how far things are.
const TELL: Duration = Duration::from_secs(60);
/// How a test says that it did nothing for want of a tool.
const SKIPPED: &str = "skipped: ";
/// The last lines of a failed test that are shown.
const LINES_MAX: usize = 400;

/// How tests run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Variables for every test.
    pub(super) variables: Vec<(&'static str, std::ffi::OsString)>,
    /// How long a test may take on a machine that is not busy.
    pub(super) limit: Duration,
    /// No further test begins after this long.
    pub(super) until: Option<Instant>,
    /// Where outputs are kept while tests run.
    pub(super) folder: PathBuf,
}

impl Settings {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            variables: Vec::new(),
            limit: LIMIT,
            until: None,
            folder: root.join("target/test-output"),
        }
    }
}

/// What came of a test.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) took: Duration,
    pub(super) verdict: CaseVerdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CaseVerdict {
    Passed,
    /// What it lacked.
    Skipped(String),
    /// Why it failed.
    Failed(String),
}

/// Time as it passes for one of several programs that want to run.
#[derive(Default)]
struct FairClock {
    micros: AtomicU64,
    stop: AtomicBool,
}

impl FairClock {
    /// Measures until it is told to stop.
    fn run(&self, cores: usize) {
        let mut last = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(MEASURE);
            let passed = last.elapsed();
            last = Instant::now();
            let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            let share = passed.as_secs_f64() / crowding(&text, cores);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a quarter of a second is small"
            )]
            self.micros
                .fetch_add((share * 1e6) as u64, Ordering::Relaxed);
        }
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

/// How many programs want to run on each core, by what the system says; at least 1.
fn crowding(loadavg: &str, cores: usize) -> f64 {
    let running = loadavg.split_whitespace().nth(3);
    let running = running.and_then(|part| part.split('/').next()?.parse::<f64>().ok());
    #[expect(clippy::cast_precision_loss, reason = "machines have few cores")]
    let cores = cores.max(1) as f64;
    (running.unwrap_or(1.0) / cores).max(1.0)
}

/// Tests that wait, and what came of those that do not.
struct Queues {
    real: VecDeque<Case>,
    others: VecDeque<Case>,
    outcomes: Vec<Outcome>,
    n_failed: usize,
    told: Instant,
}

/// Runs tests in this order; returns what came of each.
pub(super) fn run(cases: Vec<Case>, settings: &Settings) -> anyhow::Result<Vec<Outcome>> {
    std::fs::create_dir_all(&settings.folder).context("cannot create a folder for outputs")?;
    let n = cases.len();
    let (real, others) = cases.into_iter().partition(Case::is_real);
    let queues = Mutex::new(Queues {
        real,
        others,
        outcomes: Vec::new(),
        n_failed: 0,
        told: Instant::now(),
    });
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let clock = FairClock::default();
    std::thread::scope(|scope| {
        let measuring = scope.spawn(|| clock.run(cores));
        // What is on the real control plane mostly waits for it.
        let mut workers = vec![scope.spawn(|| work(&queues, true, n, settings, &clock))];
        for _ in 0..cores {
            workers.push(scope.spawn(|| work(&queues, false, n, settings, &clock)));
        }
        for worker in workers {
            let ended = worker.join();
            ended.map_err(|_| anyhow::anyhow!("a worker has panicked"))??;
        }
        clock.stop.store(true, Ordering::Relaxed);
        measuring.thread().unpark();
        anyhow::Ok(())
    })?;
    let queues = queues.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(queues.outcomes)
}

fn work(
    queues: &Mutex<Queues>,
    real: bool,
    n: usize,
    settings: &Settings,
    clock: &FairClock,
) -> anyhow::Result<()> {
    loop {
        let is_over = settings.until.is_some_and(|until| Instant::now() >= until);
        let next = {
            let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
            match real {
                true => queues.real.pop_front(),
                false => queues.others.pop_front(),
            }
        };
        let Some(case) = next.filter(|_| !is_over) else {
            return Ok(());
        };
        let (outcome, output) = run_one(&case, settings, clock)?;
        let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let CaseVerdict::Failed(why) = &outcome.verdict {
            queues.n_failed += 1;
            say(&format!("-- FAILED {}: {why}\n{output}", outcome.name))?;
        }
        queues.outcomes.push(outcome);
        if queues.told.elapsed() > TELL {
            queues.told = Instant::now();
            let (done, failed) = (queues.outcomes.len(), queues.n_failed);
            say(&format!("   {done} of {n} tests are done, {failed} failed"))?;
        }
    }
}

/// Runs one test; returns its last lines, too.
fn run_one(
    case: &Case,
    settings: &Settings,
    clock: &FairClock,
) -> anyhow::Result<(Outcome, String)> {
    let file = format!("{}.txt", case.full_name().replace(['/', ':', ' '], "-"));
    let file = settings.folder.join(file);
    let log = File::create(&file).with_context(|| format!("cannot create {}", file.display()))?;
    let errors = log.try_clone().context("cannot write twice to a file")?;
    let mut command = Command::new(&case.executable.path);
    command.args([&case.name, "--exact", "--include-ignored"]);
    command.args(["--nocapture", "--test-threads=1"]);
    command.current_dir(&case.executable.folder);
    command.env("CARGO_MANIFEST_DIR", &case.executable.folder);
    command.envs(settings.variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    // In a group of its own, so that what it has started can be ended with it.
    command.process_group(0);
    let (started, fair) = (Instant::now(), clock.now());
    let mut child = command.spawn().context("cannot start a test")?;
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        let took = clock.now().saturating_sub(fair);
        if took > settings.limit || started.elapsed() > LIMIT_HARD {
            end_group(&mut child)?;
            break None;
        }
        std::thread::park_timeout(POLL);
    };
    let bytes = std::fs::read(&file).unwrap_or_default();
    let output = String::from_utf8_lossy(&bytes);
    let skipped = output.lines().find_map(|line| lacked(line, &case.name));
    let verdict = match (ended, skipped) {
        (None, _) => {
            let secs = settings.limit.as_secs();
            CaseVerdict::Failed(format!("it takes more than {secs} s"))
        }
        (Some(status), _) if !status.success() => CaseVerdict::Failed(status.to_string()),
        (Some(_), _) if !output.contains("1 passed") => {
            CaseVerdict::Failed("it did not run".to_owned())
        }
        (Some(_), Some(why)) => CaseVerdict::Skipped(why),
        (Some(_), None) => CaseVerdict::Passed,
    };
    let lines: Vec<&str> = output.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES_MAX)..].join("\n");
    let outcome = Outcome {
        name: case.full_name(),
        took: started.elapsed(),
        verdict,
    };
    let _ = std::fs::remove_file(&file);
    Ok((outcome, last))
}

/// What this line says that a test lacks, if it does. The first line of a test comes after its name.
fn lacked(line: &str, name: &str) -> Option<String> {
    let own = line
        .strip_prefix("test ")
        .and_then(|line| line.strip_prefix(name));
    let own = own
        .and_then(|line| line.strip_prefix(" ... "))
        .unwrap_or(line);
    let (says, why) = own.split_at_checked(SKIPPED.len())?;
    says.eq_ignore_ascii_case(SKIPPED).then(|| why.to_owned())
}

/// Ends a test and what it has started.
fn end_group(child: &mut Child) -> anyhow::Result<()> {
    let group = format!("-{}", child.id());
    // Its control plane, if it has one of its own, ends when the pipe to its guard closes.
    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    child.wait()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::executables::Executable;
    use std::sync::Arc;

    #[test]
    fn a_busy_machine_has_slower_time() {
        assert!((crowding("0.5 0.5 0.5 1/200 77", 2) - 1.0).abs() < 1e-9);
        assert!((crowding("0.5 0.5 0.5 6/200 77", 2) - 3.0).abs() < 1e-9);
        assert!((crowding("", 2) - 1.0).abs() < 1e-9);
    }

    /// A shell script in place of an executable of tests.
    fn script(name: &str, text: &str) -> Case {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tests");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Case {
            executable: Arc::new(Executable {
                name: "script".to_owned(),
                path,
                folder,
            }),
            name: name.to_owned(),
            is_ignored: false,
        }
    }

    fn verdict(name: &str, text: &str, limit: Duration) -> CaseVerdict {
        let case = script(name, text);
        let folder = case.executable.folder.clone();
        let settings = Settings {
            variables: Vec::new(),
            limit,
            until: None,
            folder: folder.join("output"),
        };
        let outcomes = run(vec![case], &settings).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        outcomes[0].verdict.clone()
    }

    #[test]
    fn what_a_test_does_decides() {
        let cases = [
            ("good", "echo 1 passed", CaseVerdict::Passed),
            (
                "none",
                "echo 0 passed",
                CaseVerdict::Failed("it did not run".to_owned()),
            ),
            (
                "without",
                "echo 'skipped: there is no helm'; echo 1 passed",
                CaseVerdict::Skipped("there is no helm".to_owned()),
            ),
        ];
        for (name, text, expected) in cases {
            assert_eq!(verdict(name, text, LIMIT), expected, "{name}");
        }
        let failed = verdict("bad", "echo 1 passed; exit 101", LIMIT);
        assert!(matches!(failed, CaseVerdict::Failed(_)));
    }

    #[test]
    fn a_test_says_what_it_lacks_at_the_start_of_a_line() {
        let why = Some("no helm".to_owned());
        assert_eq!(lacked("skipped: no helm", "a::b"), why);
        assert_eq!(lacked("SKIPPED: no helm", "a::b"), why);
        assert_eq!(lacked("test a::b ... skipped: no helm", "a::b"), why);
        for other in ["2 kinds are skipped: Secret", "test a::b ... ok", "ski", ""] {
            assert_eq!(lacked(other, "a::b"), None, "{other}");
        }
    }

    #[test]
    fn a_test_that_takes_too_long_fails() {
        let slow = verdict(
            "slow",
            "sleep 100; echo 1 passed",
            Duration::from_millis(100),
        );
        assert_eq!(
            slow,
            CaseVerdict::Failed("it takes more than 0 s".to_owned())
        );
    }
}
