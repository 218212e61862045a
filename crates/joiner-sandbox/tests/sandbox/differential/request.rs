//! The text form of requests.
//!
//! ```text
//! === a name that is used once
//! POST /api/v1/namespaces/diff/pods?dryRun=All
//! Content-Type: application/json
//! save: version /metadata/resourceVersion
//! until: 200
//!
//! {"the": "body, until the next request"}
//! ```
//!
//! `save` keeps a value of the answer, and `${version}` is where it goes later: each of the two
//! servers has values of its own. `until` repeats the request until the status comes, `until-body`
//! until the text does, `token` sends a token instead of the administrator's, and `compact` makes the
//! server forget what was before. In a body, `@pad(N)`
//! stands for N letters, `@rep(N,TEXT)` for a text N times, `@hex(..)` for bytes, and `@ff` for one
//! that is not UTF-8.

use std::collections::BTreeMap;

/// A request to both servers.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Names of values, and where they are in the answer.
    pub(crate) saves: Vec<(String, String)>,
    /// Status to wait for.
    pub(crate) until: Option<u16>,
    /// Text of the body to wait for.
    pub(crate) until_body: Option<String>,
    /// A token to send instead of the administrator's credentials.
    pub(crate) token: Option<String>,
    /// The past is forgotten first.
    pub(crate) compact: bool,
    body: String,
}

impl Case {
    /// The body, with the saved values of one server in it.
    pub(crate) fn body(&self, saved: &BTreeMap<String, String>) -> Vec<u8> {
        let text = filled(&self.body, saved);
        let mut body = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('@') {
            body.extend(before.bytes());
            rest = if let Some(after) = after.strip_prefix("ff") {
                body.push(0xff);
                after
            } else if let Some((n, after)) = argument(after, "pad(") {
                body.extend(std::iter::repeat_n(b'x', n.parse().expect("a number")));
                after
            } else if let Some((repeated, after)) = argument(after, "rep(") {
                let (n, text) = repeated.split_once(',').expect("a number and a text");
                body.extend(text.repeat(n.parse().expect("a number")).bytes());
                after
            } else if let Some((digits, after)) = argument(after, "hex(") {
                let byte = |i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hex digits");
                body.extend((0..digits.len()).step_by(2).map(byte));
                after
            } else {
                body.push(b'@');
                after
            };
        }
        body.extend(rest.bytes());
        body
    }
}

/// What is in the parentheses of a word, and what comes after them.
fn argument<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    text.strip_prefix(word)?.split_once(')')
}

/// Puts saved values where they belong.
pub(crate) fn filled(text: &str, saved: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in saved {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    text
}

/// The requests of a file.
pub(crate) fn parse(text: &str) -> Vec<Case> {
    let cases = text.split("\n=== ").skip(1);
    cases.map(parse_one).collect()
}

fn parse_one(text: &str) -> Case {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let name = lines.next().expect("a case has a name").trim();
    let line = lines.next().expect("a case has a request").trim();
    let (method, target) = line.split_once(' ').expect("a method and a target");
    let mut case = Case {
        name: name.to_owned(),
        method: method.to_owned(),
        target: target.to_owned(),
        body: body.trim_end().to_owned(),
        ..Case::default()
    };
    for line in lines.filter(|line| !line.starts_with('#')) {
        let (key, value) = line.split_once(':').expect("a header or a directive");
        let value = value.trim();
        match key {
            "save" => {
                let (name, path) = value.split_once(' ').expect("a name and a pointer");
                case.saves.push((name.to_owned(), path.to_owned()));
            }
            "until" => case.until = Some(value.parse().expect("a status")),
            "until-body" => case.until_body = Some(value.to_owned()),
            "token" => case.token = Some(value.to_owned()),
            "compact" => case.compact = true,
            _ => case.headers.push((key.to_owned(), value.to_owned())),
        }
    }
    let has_type = case
        .headers
        .iter()
        .any(|(key, _)| key.eq_ignore_ascii_case("content-type"));
    if !case.body.is_empty() && !has_type {
        let json = ("Content-Type".to_owned(), "application/json".to_owned());
        case.headers.push(json);
    }
    case
}
