//! MIME archives: several parts in one text, as cloud-init reads them.

/// What separates the parts that we write.
const BOUNDARY: &str = "//";
/// Type of a shell script.
pub(super) const SHELL_SCRIPT: &str = "text/x-shellscript; charset=\"us-ascii\"";
/// Type of a configuration for nodeadm.
pub(super) const NODE_CONFIG: &str = "application/node.eks.aws";

const CONTENT_TYPE: &str = "Content-Type";
const TRANSFER_ENCODING: &str = "Content-Transfer-Encoding";

/// One part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Names in their usual spelling, and values.
    headers: Vec<(String, String)>,
    body: String,
}

impl Part {
    /// A part of a type.
    pub(super) fn new(content_type: &str, body: impl Into<String>) -> Self {
        Self {
            headers: vec![(CONTENT_TYPE.to_owned(), content_type.to_owned())],
            body: body.into(),
        }
    }

    /// The part without the headers that cloud-init can do without.
    pub(super) fn with_content_headers_only(mut self) -> Self {
        let needed = |name: &str| name == CONTENT_TYPE || name == TRANSFER_ENCODING;
        self.headers.retain(|(name, _)| needed(name));
        self
    }
}

/// Whether a text is meant as an archive.
pub(super) fn is_archive(text: &str) -> bool {
    let start = text.trim_start();
    start.starts_with("MIME-Version:") || start.starts_with("Content-Type:")
}

/// The parts of an archive.
///
/// # Errors
/// What is wrong with it, to be put after the name of the field.
pub(super) fn parse(text: &str) -> Result<Vec<Part>, String> {
    let text = text.replace('\r', "");
    let mut lines = text.split('\n').skip_while(|line| line.trim().is_empty());
    let headers = headers(&mut lines)?;
    let content_type = headers.iter().find(|(name, _)| name == CONTENT_TYPE);
    let (_, content_type) = content_type.ok_or(
        "starts like a MIME archive and has no Content-Type header; write Content-Type: multipart/mixed; \
         boundary=\"BOUNDARY\"",
    )?;
    let boundary = boundary(content_type)?;
    let (next, last) = (format!("--{boundary}"), format!("--{boundary}--"));
    let mut lines = lines.skip_while(|line| line.trim_end() != next).peekable();
    let unclosed = || format!("is a MIME archive without an end; its last line must be {last}");
    let mut parts = Vec::new();
    while lines.next().is_some() {
        let headers = self::headers(&mut lines)?;
        let mut body = Vec::new();
        loop {
            let line = lines.peek().ok_or_else(unclosed)?;
            let end = line.trim_end();
            if end == last {
                parts.push(Part {
                    headers,
                    body: body.join("\n"),
                });
                return Ok(parts);
            }
            if end == next {
                break;
            }
            body.extend(lines.next());
        }
        parts.push(Part {
            headers,
            body: body.join("\n"),
        });
    }
    Err(unclosed())
}

/// Headers up to the first empty line, which is taken too. Lines that start with a blank go on with the last
/// header.
fn headers<'t>(lines: &mut impl Iterator<Item = &'t str>) -> Result<Vec<(String, String)>, String> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in lines.by_ref().take_while(|line| !line.trim().is_empty()) {
        if line.starts_with([' ', '\t'])
            && let Some((_, value)) = headers.last_mut()
        {
            value.push(' ');
            value.push_str(line.trim());
            continue;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| {
            format!("is a MIME archive with a header that is none: {line:?}; end headers with an empty line")
        })?;
        headers.push((spelled(name.trim()), value.trim().to_owned()));
    }
    headers.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(headers)
}

/// A header's name with capitals where they usually are.
fn spelled(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let rest = letters.map(|letter| letter.to_ascii_lowercase());
        first.into_iter().chain(rest).collect::<String>()
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}

fn boundary(content_type: &str) -> Result<&str, String> {
    if !content_type.to_lowercase().starts_with("multipart/") {
        return Err(format!(
            "starts like a MIME archive and is of the type {content_type:?}; the type must be multipart/mixed"
        ));
    }
    let parameters = content_type.split(';').skip(1).map(str::trim);
    let mut values = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("boundary")
            .then_some(value.trim())
    });
    let value = values.next().map(|value| value.trim_matches('"'));
    let value = value.filter(|value| !value.is_empty());
    value.ok_or_else(|| {
        "is a MIME archive without a boundary; write Content-Type: multipart/mixed; boundary=\"BOUNDARY\""
            .to_owned()
    })
}

/// The archive of these parts.
pub(super) fn render(parts: &[Part]) -> String {
    let mut text =
        format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n");
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text.push_str("--");
        text.push_str(BOUNDARY);
        text.push('\n');
        for (name, value) in &part.headers {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&part.body.replace('\r', ""));
    }
    text + "\n--" + BOUNDARY + "--\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let parts = [
            Part::new(SHELL_SCRIPT, "#!/bin/bash\necho\n"),
            Part::new(NODE_CONFIG, "kind: NodeConfig"),
        ];
        assert_eq!(parse(&render(&parts)), Ok(parts.to_vec()));
    }

    #[test]
    fn headers_may_be_odd() {
        let text = "content-type: Multipart/Mixed;\r\n charset=x; Boundary=abc\r\n\r\npreamble\r\n--abc\r\n\
                    MIME-version: 1.0\r\ncontent-transfer-encoding: base64\r\ncontent-type: a/b\r\n\r\nYQ==\r\n--abc--";
        let parts = parse(text).unwrap();
        assert_eq!(parts.len(), 1);
        let names = |part: &Part| {
            let names = part.headers.iter().map(|(name, _)| name.clone());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            names(&parts[0]),
            "Content-Transfer-Encoding Content-Type Mime-Version"
        );
        assert_eq!(
            names(&parts[0].clone().with_content_headers_only()),
            "Content-Transfer-Encoding Content-Type"
        );
        assert_eq!(parts[0].body, "YQ==");
    }

    #[test]
    fn what_is_no_archive_says_why() {
        for (text, said) in [
            ("MIME-Version: 1.0\n\n--x", "has no Content-Type header"),
            (
                "Content-Type: text/plain\n\nhello",
                "the type must be multipart/mixed",
            ),
            ("Content-Type: multipart/mixed\n\n", "without a boundary"),
            (
                "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nbody",
                "its last line must be --b--",
            ),
            (
                "Content-Type: multipart/mixed; boundary=b\n\nbody",
                "its last line must be --b--",
            ),
            (
                "Content-Type: multipart/mixed; boundary=b\nno header\n\n",
                "\"no header\"",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
