//! YAML as kubectl reads it.

use serde::Deserialize as _;
use serde_json::Value;
use serde_path_to_error::{Path, Segment, Track};
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Options};

use crate::documents::Document;
use crate::wording::{self, TWICE};

const TOO_DEEP: &str = "it is nested too deeply";

/// Why text cannot be used.
pub(crate) struct YamlError {
    pub(crate) message: String,
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    /// Where in the document it is, unless the text is not YAML at all.
    pub(crate) spot: Option<Box<Spot>>,
}

/// A place in a document that can be read well enough to name it.
pub(crate) struct Spot {
    document: Value,
    path: Path,
    /// A key of the object at the end of the path.
    key: Option<String>,
}

impl Spot {
    /// The object, and the path of the field within it.
    pub(crate) fn named(&self) -> (String, String) {
        // Whoever stumbles over a key has not entered its value, so the path does not know it.
        let known = |segment: &&Segment| !matches!(segment, Segment::Unknown);
        let path: Vec<&Segment> = self.path.iter().filter(known).collect();
        let (mut object, mut rest) = (&self.document, path.as_slice());
        loop {
            let (list, index, after) = match rest {
                [Segment::Seq { index }, after @ ..] => (Some(object), *index, after),
                [Segment::Map { key }, Segment::Seq { index }, after @ ..] if key == "items" => {
                    (object.get("items"), *index, after)
                }
                _ => break,
            };
            let Some(item) = list.and_then(|list| list.get(index)) else {
                break;
            };
            (object, rest) = (item, after);
        }
        let key = self.key.clone().map(|key| Segment::Map { key });
        let field = wording::path(rest.iter().copied().chain(key.as_ref()));
        (Document::Value(object).title(), field)
    }
}

/// Cuts a stream at lines that start with `---`. Such a line ends a document wherever it stands,
/// even in the middle of quoted text, and cannot occur inside JSON. Each part keeps its line ends.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let current = rest?;
        let mut from = 0;
        loop {
            let Some(found) = current[from..].find("\n---") else {
                rest = None;
                return Some(current);
            };
            let cut = from + found + 1;
            let after = &current[cut + 3..];
            if after.is_empty() || after.starts_with([' ', '\t', '\r', '\n']) {
                let (part, next) = current.split_at(cut);
                rest = Some(next);
                return Some(part);
            }
            from = cut;
        }
    })
}

/// True for text that cannot be JSON, though it starts with a brace or a bracket.
pub(crate) fn is_flow(text: &str) -> bool {
    let mut marks = text.chars().filter(|c| !c.is_whitespace());
    match (marks.next(), marks.next()) {
        (Some('{'), Some(next)) => !matches!(next, '"' | '}'),
        (Some(_), Some(next)) => !"\"{[]-0123456789tfn".contains(next),
        (_, None) | (None, _) => false,
    }
}

/// How many lines come before the first one with content.
pub(crate) fn lead(text: &str) -> usize {
    text.lines()
        .take_while(|line| {
            let line = line.trim();
            line.is_empty() || line == "---" || line.starts_with('#')
        })
        .count()
}

/// One document; nothing but comments is `null`.
pub(crate) fn parse(text: &str) -> Result<Value, YamlError> {
    let blank = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with(['#', '%']) || line == "---" || line == "..."
    };
    if text.lines().all(blank) {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str_with_options(text, options(text.len()))
        .map_err(|error| explain(text, &error))
}

/// kubectl's habits: `0644` is octal, and no key is there twice. Work is bounded by the length of
/// the text, with aliases counted in what they stand for.
fn options(length: usize) -> Options {
    let bound = length.max(1_000_000);
    let budget = serde_saphyr::budget! {
        max_events: bound,
        max_nodes: bound,
        max_total_scalar_bytes: bound.max(64 << 20),
        max_depth: 64,
        // One anchor may serve many objects: what aliases stand for is bounded elsewhere.
        enforce_alias_anchor_ratio: false,
    };
    serde_saphyr::options! {
        budget: budget,
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

fn explain(text: &str, error: &Error) -> YamlError {
    let mut error = error.without_snippet();
    let location = error.location();
    while let Error::AliasError { error: inner, .. } = error {
        error = inner;
    }
    let position = |figure: u64| usize::try_from(figure).unwrap_or(usize::MAX);
    let (message, spot) = if let Error::DuplicateMappingKey { key, .. } = error {
        let spot = spot(text, key.as_deref());
        let message = match (&spot, key) {
            (None, Some(key)) => format!("the key {:?} {TWICE}", wording::shown(key)),
            (None, None) => format!("a key {TWICE}"),
            (Some(_), _) => TWICE.to_owned(),
        };
        (message, spot)
    } else if let Error::NonFiniteFloat { value, .. } = error {
        let why = "is not a number that can be counted with; put it in quotes if it is text";
        (format!("{value} {why}"), spot(text, None))
    } else {
        (plain(error), None)
    };
    YamlError {
        message,
        line: location.map(|l| position(l.line())),
        column: location.map(|l| position(l.column()).max(1)),
        spot,
    }
}

/// Where the first thing is that cannot be used; the slow search starts only when there is one.
fn spot(text: &str, key: Option<&str>) -> Option<Box<Spot>> {
    let mut path = None;
    // What is wrong is known already; this is about where.
    let _ = serde_saphyr::with_deserializer_from_str_with_options(
        text,
        options(text.len()),
        |deserializer| {
            let mut track = Track::new();
            let tracked = serde_path_to_error::Deserializer::new(deserializer, &mut track);
            let outcome = Value::deserialize(tracked);
            path = Some(track.path());
            outcome
        },
    );
    let mut lenient = options(text.len());
    lenient.duplicate_keys = DuplicateKeyPolicy::LastWins;
    lenient.non_finite_float_policy = NonFiniteFloatPolicy::AsString;
    Some(Box::new(Spot {
        document: serde_saphyr::from_str_with_options(text, lenient).ok()?,
        path: path?,
        key: key.map(str::to_owned),
    }))
}

/// One line, without the position that is shown elsewhere and without inner names.
fn plain(error: &Error) -> String {
    if let Some(text) = known(error) {
        return text.to_owned();
    }
    let message = error.to_string();
    if message.contains("recursion limit") {
        return TOO_DEEP.to_owned();
    }
    let line = message.lines().next().unwrap_or_default();
    let line = line.split(" at line ").next().unwrap_or(line);
    match line.strip_prefix("unexpected EOF while parsing ") {
        Some(part) => format!("the text ends in the middle of {part}"),
        None => line.to_owned(),
    }
}

/// Our words for what the parser says in its own.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the parser's other errors speak for themselves"
)]
fn known(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => TOO_DEEP,
        Error::Budget {
            breach: BudgetBreach::Anchors { .. },
            ..
        } => "it has too many anchors",
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is too large once its aliases are written out"
        }
        Error::UnknownAnchor { .. } => "there is no anchor of this name",
        Error::RecursiveReferencesRequireWeakTypes { .. } => "an anchor contains itself",
        Error::MultipleDocuments { .. } => {
            "there is more text after the end; separate documents with ---"
        }
        Error::InvalidScalar { .. } => "the value does not fit its tag",
        // Values may be anything, so these are about keys.
        Error::Unexpected { .. }
        | Error::NullIntoString { .. }
        | Error::TaggedScalarCannotDeserializeIntoString { .. } => "a key must be text",
        _ => return None,
    })
}
