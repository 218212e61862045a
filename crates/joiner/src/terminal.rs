//! Text for a terminal: whatever names and labels hold, it cannot give the terminal orders.

use std::io::{self, Write};

/// Writes on to another writer, with control characters other than line ends spelled out.
pub(crate) struct Printable<W>(pub(crate) W);

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let hostile = |c: char| c.is_control() && c != '\n';
        let Ok(mut rest) = std::str::from_utf8(bytes) else {
            // Formatted text comes in whole characters; anything else is not meant to be read.
            return self
                .0
                .write_all(bytes.escape_ascii().to_string().as_bytes());
        };
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| hostile(*c)) {
            self.0.write_all(&rest.as_bytes()[..at])?;
            write!(self.0, "{}", c.escape_debug())?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_all(rest.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// One line about what may need attention, to standard error.
pub(crate) fn warn(warning: &str) -> io::Result<()> {
    let line = warning.replace('\n', "\\n");
    writeln!(Printable(io::stderr().lock()), "joiner: warning: {line}")
}

/// What went wrong and why, from the outside in. Libraries repeat their cause in their own words; it is
/// said once.
pub(crate) fn said_once(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if said.contains(&text) {
            continue;
        }
        if !said.is_empty() {
            said.push_str(": ");
        }
        said.push_str(&text);
    }
    said
}

/// Columns and lines of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) lines: usize,
}

/// The size of the terminal that standard output is, if it is one.
pub(crate) fn size() -> Option<Size> {
    let (columns, lines) = terminal_size::terminal_size_of(io::stdout())?;
    (columns.0 > 0 && lines.0 > 0).then_some(Size {
        columns: usize::from(columns.0),
        lines: usize::from(lines.0),
    })
}

/// Prints what `render` writes, for people. Lines that are longer than a terminal is wide are broken
/// between words.
pub(crate) fn print(
    out: &mut dyn Write,
    columns: Option<usize>,
    render: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some(columns) = columns else {
        return render(&mut Printable(out));
    };
    let mut text = Vec::new();
    render(&mut Printable(&mut text))?;
    for line in String::from_utf8_lossy(&text).lines() {
        for part in broken(line, columns, hanging(line)) {
            writeln!(out, "{part}")?;
        }
    }
    Ok(())
}

/// How far the second part of a line is indented: below the text of the first.
fn hanging(line: &str) -> usize {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    match text.starts_with("- ") || text.starts_with("→ ") {
        true => indent + 2,
        false if indent > 0 => indent + 2,
        false => 0,
    }
}

/// A line in parts of at most so many columns, broken between words; the second and those after it are
/// indented by `indent`.
pub(crate) fn broken(line: &str, columns: usize, indent: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = line.to_owned();
    while rest.chars().count() > columns {
        let least = rest.chars().take_while(|c| *c == ' ').count();
        // The last space that leaves no more than fits, and else the first one.
        let spaces = rest.char_indices().enumerate().skip(least);
        let spaces = spaces.filter(|(_, (_, c))| *c == ' ');
        let (mut fitting, mut beyond) = (None, None);
        for (column, (at, _)) in spaces {
            match column <= columns {
                true => fitting = Some(at),
                false => beyond = beyond.or(Some(at)),
            }
        }
        let Some(at) = fitting.or(beyond) else { break };
        let next = rest[at..].trim_start().to_owned();
        parts.push(rest[..at].trim_end().to_owned());
        rest = format!("{}{next}", " ".repeat(indent));
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_that_repeat_themselves_are_said_once() {
        let inner = std::io::Error::other("no such file");
        let error = anyhow::Error::new(inner)
            .context("failed to read \"/nope\": no such file")
            .context("cannot start");
        assert_eq!(
            said_once(&error),
            "cannot start: failed to read \"/nope\": no such file"
        );
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let line = "  - pool \"a\" has no type large enough";
        assert_eq!(
            broken(line, 20, hanging(line)),
            ["  - pool \"a\" has no", "    type large", "    enough"]
        );
        assert_eq!(broken("short", 20, 4), ["short"]);
        assert_eq!(broken("", 20, 4), [""]);
        let word = "a-word-that-is-longer-than-the-line and another";
        assert_eq!(
            broken(word, 10, 0),
            ["a-word-that-is-longer-than-the-line", "and", "another"]
        );
    }

    fn printed(text: &str) -> String {
        let mut out = Vec::new();
        write!(Printable(&mut out), "{text}").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(printed("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\n");
        assert_eq!(printed("\r\t\u{7f}\u{9b}x"), "\\r\\t\\u{7f}\\u{9b}x");
        assert_eq!(printed("█░ … × ü"), "█░ … × ü");
    }
}
