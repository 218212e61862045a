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

#[cfg(test)]
mod tests {
    use super::*;

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
