//! The log: one line for each event, as JSON with upstream's keys or for people.
//!
//! *Guarantees*: a line is written in one piece to every output. Of identical lines the first
//! hundred of a second are written and then every hundredth, so that a hot loop does not fill
//! disks. Outputs that fail are reported once, to the outputs for errors, and do not stop the
//! program.

use std::fs::OpenOptions;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::clock::Clock;
use crate::log_line::{Fields, Line};
use crate::metrics::lock;

/// Of identical lines in a second, so many are written, then one in so many.
const SAMPLE: u32 = 100;
/// Kinds of lines that are told apart, as good as always.
const SAMPLE_SLOTS: usize = 4_096;

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What changes in the world, warnings and errors.
    #[default]
    Info,
    /// Warnings and errors. No setting of upstream's: it is for programs that print something else.
    Warn,
    /// Errors only.
    Error,
}

impl FromStr for LogLevel {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        match text {
            "debug" => Ok(Self::Debug),
            "" | "info" => Ok(Self::Info),
            "error" => Ok(Self::Error),
            other => Err(LogError::Level(other.to_owned())),
        }
    }
}

/// What a line looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// An object of JSON.
    #[default]
    Json,
    /// For people.
    Human,
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogOutput {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The end of a file.
    File(PathBuf),
}

impl LogOutput {
    /// Reads a list such as `stdout,/var/log/joiner.log`.
    #[must_use]
    pub fn list(text: &str) -> Vec<Self> {
        let names = text.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty());
        names
            .map(|name| match name {
                "stdout" => Self::Stdout,
                "stderr" => Self::Stderr,
                path => Self::File(path.into()),
            })
            .collect()
    }
}

/// How to log.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// What time it is.
    pub clock: Clock,
    /// How much is logged.
    pub level: LogLevel,
    /// What a line looks like.
    pub format: LogFormat,
    /// Where lines go.
    pub outputs: Vec<LogOutput>,
    /// Where it is said that lines cannot be written.
    pub error_outputs: Vec<LogOutput>,
    /// What this program was built from.
    pub commit: String,
}

impl LogSettings {
    /// Upstream's defaults: JSON to standard output from `info` on.
    #[must_use]
    pub fn new(clock: Clock, commit: String) -> Self {
        Self {
            clock,
            level: LogLevel::default(),
            format: LogFormat::default(),
            outputs: vec![LogOutput::Stdout],
            error_outputs: vec![LogOutput::Stderr],
            commit,
        }
    }
}

/// Why the log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// No such level.
    #[error("invalid LOG_LEVEL {0:?}: use debug, info or error")]
    Level(String),
    /// A file cannot be opened.
    #[error("cannot open log file {path}; see --log-output-paths")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// There is a log already.
    #[error("the log is set up already")]
    Twice,
}

/// Keeps the log; dropping it writes out what is in buffers.
#[derive(Debug)]
pub struct LogGuard {
    sinks: Arc<Sinks>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        for sink in &mut *lock(&self.sinks.outputs) {
            // There is nobody left to tell.
            let _ = sink.flush();
        }
    }
}

/// Sets up the log of the process.
pub fn install(settings: &LogSettings) -> Result<LogGuard, LogError> {
    let (subscriber, sinks) = subscriber(settings)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Twice)?;
    Ok(LogGuard { sinks })
}

/// What [`install`] sets up.
fn subscriber(settings: &LogSettings) -> Result<(impl Subscriber + use<>, Arc<Sinks>), LogError> {
    let sinks = Arc::new(Sinks {
        outputs: Mutex::new(open(&settings.outputs)?),
        errors: Mutex::new(open(&settings.error_outputs)?),
    });
    let layer = Lines {
        clock: settings.clock.clone(),
        format: settings.format,
        shows_caller: settings.level == LogLevel::Debug,
        commit: settings.commit.clone(),
        sinks: Arc::clone(&sinks),
        sampler: Mutex::new(Sampler::new()),
    };
    let (own, others) = match settings.level {
        LogLevel::Debug => (LevelFilter::DEBUG, LevelFilter::WARN),
        LogLevel::Info => (LevelFilter::INFO, LevelFilter::WARN),
        LogLevel::Warn => (LevelFilter::WARN, LevelFilter::ERROR),
        LogLevel::Error => (LevelFilter::ERROR, LevelFilter::ERROR),
    };
    // Clients and servers below us speak of connections, which is not for operators.
    let filter = Targets::new()
        .with_default(others)
        .with_target("joiner", own);
    let layer = layer.with_filter(filter);
    Ok((tracing_subscriber::registry().with(layer), sinks))
}

type Sink = Box<dyn Write + Send>;

fn open(outputs: &[LogOutput]) -> Result<Vec<Sink>, LogError> {
    let open = |output: &LogOutput| -> Result<Sink, LogError> {
        Ok(match output {
            LogOutput::Stdout => Box::new(io::stdout()),
            LogOutput::Stderr => Box::new(io::stderr()),
            LogOutput::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                Box::new(file.map_err(|source| LogError::File {
                    path: path.display().to_string(),
                    source,
                })?)
            }
        })
    };
    outputs.iter().map(open).collect()
}

/// Where lines go, opened.
struct Sinks {
    outputs: Mutex<Vec<Sink>>,
    /// Emptied once trouble was reported.
    errors: Mutex<Vec<Sink>>,
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sinks").finish_non_exhaustive()
    }
}

impl Sinks {
    fn write(&self, line: &str) {
        let mut trouble = None;
        for sink in &mut *lock(&self.outputs) {
            if let Err(error) = sink.write_all(line.as_bytes()) {
                trouble = Some(error);
            }
        }
        if let Some(error) = trouble {
            for mut sink in lock(&self.errors).drain(..) {
                // There is nobody left to tell.
                let _ = writeln!(sink, "cannot write to the log: {error}");
            }
        }
    }
}

/// Counts identical lines.
struct Sampler {
    /// By hash of level and message: the second, and how many in it.
    slots: Box<[(i64, u32)]>,
}

impl Sampler {
    fn new() -> Self {
        Self {
            slots: vec![(i64::MIN, 0); SAMPLE_SLOTS].into_boxed_slice(),
        }
    }

    /// Whether this line is written.
    fn admits(&mut self, level: Level, message: &str, now: Timestamp) -> bool {
        let mut hasher = DefaultHasher::new();
        (level.as_str(), message).hash(&mut hasher);
        let ix = usize::try_from(hasher.finish() % SAMPLE_SLOTS as u64).unwrap_or(0);
        let (second, count) = &mut self.slots[ix];
        if *second != now.as_second() {
            (*second, *count) = (now.as_second(), 0);
        }
        *count += 1;
        *count <= SAMPLE || (*count - SAMPLE).is_multiple_of(SAMPLE)
    }
}

/// Turns events into lines.
struct Lines {
    clock: Clock,
    format: LogFormat,
    shows_caller: bool,
    commit: String,
    sinks: Arc<Sinks>,
    sampler: Mutex<Sampler>,
}

impl<S> Layer<S> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        id: &tracing::span::Id,
        context: Context<'_, S>,
    ) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(
        &self,
        id: &tracing::span::Id,
        values: &tracing::span::Record<'_>,
        context: Context<'_, S>,
    ) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut own = Fields::default();
        event.record(&mut own);
        let now = self.clock.now();
        let level = *event.metadata().level();
        if !lock(&self.sampler).admits(level, own.message(), now) {
            return;
        }
        let mut fields = Fields::default();
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.extend(of_span);
            }
        }
        fields.extend(&own);
        let caller = self.shows_caller.then(|| event.metadata());
        let caller = caller.and_then(|meta| Some((meta.file()?, meta.line()?)));
        let line = Line {
            level,
            now,
            commit: &self.commit,
            caller,
            fields: &fields,
        };
        let text = match self.format {
            LogFormat::Json => line.json(),
            LogFormat::Human => line.human(),
        };
        self.sinks.write(&text);
    }
}

#[cfg(test)]
#[path = "logging_tests.rs"]
mod tests;
