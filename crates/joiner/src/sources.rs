//! Reads what users name with `-f`: files, folders, standard input.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use joiner_model::{ResourceName, render_amount};
use joiner_state::{Source, quantity};

const STANDARD_INPUT: &str = "standard input";
/// Folders deeper than this are not read.
const DEPTH_MAX: usize = 32;
/// Bytes that are read at a time.
const PIECE: u64 = 1 << 20;

/// What to call something that was named with `-f`.
pub(crate) fn title(path: &Path) -> String {
    if path.as_os_str() == "-" {
        STANDARD_INPUT.to_owned()
    } else {
        path.display().to_string()
    }
}

/// How much is read.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct InputArgs {
    /// Most that is read, of all files and standard input together, such as 512Mi
    #[arg(long, default_value = "1Gi", value_name = "SIZE", value_parser = bytes)]
    max_input: u64,
}

fn bytes(text: &str) -> Result<u64, String> {
    quantity::parse_request(&ResourceName::Memory, text).map_err(|error| error.to_string())
}

impl InputArgs {
    /// Begins to read.
    pub(crate) fn reader(self) -> Reader {
        Reader {
            max: self.max_input,
            left: self.max_input,
        }
    }
}

/// Reads files and standard input, and no more of them together than it may.
#[derive(Debug)]
pub(crate) struct Reader {
    max: u64,
    left: u64,
}

impl Reader {
    /// For tests.
    #[cfg(test)]
    pub(crate) fn unbounded() -> Self {
        InputArgs {
            max_input: u64::MAX,
        }
        .reader()
    }

    /// The texts of all named files; folders give their `.yaml`, `.yml` and `.json` files in name order.
    pub(crate) fn read(&mut self, paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
        let mut all = Vec::new();
        for path in paths {
            if path.as_os_str() == "-" {
                let stdin = std::io::stdin().lock();
                all.push(self.source(STANDARD_INPUT, STANDARD_INPUT, stdin)?);
            } else if path.is_dir() {
                let mut files = Vec::new();
                collect(path, &mut files, 0)?;
                if files.is_empty() {
                    bail!("folder {} has no .yaml, .yml or .json file", path.display());
                }
                for file in files {
                    all.push(self.read_file(&file)?);
                }
            } else {
                all.push(self.read_file(path)?);
            }
        }
        Ok(all)
    }

    /// One file.
    pub(crate) fn read_file(&mut self, path: &Path) -> anyhow::Result<Source> {
        self.read_named("file", path)
    }

    /// One file, which messages call a `kind`.
    pub(crate) fn read_named(&mut self, kind: &str, path: &Path) -> anyhow::Result<Source> {
        let name = path.display().to_string();
        let what = format!("{kind} {name}");
        let file = File::open(path).with_context(|| format!("cannot read {what}"))?;
        self.source(&what, &name, file)
    }

    fn source(&mut self, what: &str, name: &str, from: impl Read) -> anyhow::Result<Source> {
        let mut bytes = Vec::new();
        let mut from = from.take(self.left.saturating_add(1));
        loop {
            let begin = bytes.len();
            let mut piece = from.by_ref().take(PIECE);
            let n_read = piece
                .read_to_end(&mut bytes)
                .with_context(|| format!("cannot read {what}"))?;
            // No text has such a byte: devices and archives end here, and not at the bound.
            if n_read == 0 || bytes[begin..].contains(&0) {
                break;
            }
        }
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let text = text(what, bytes)?;
        match self.left.checked_sub(size) {
            Some(left) => self.left = left,
            None => bail!(
                "cannot read {what}: the input is larger than {}; let more in with --max-input",
                render_amount(&ResourceName::Memory, self.max)
            ),
        }
        Ok(Source::new(name, text))
    }

    /// Fails for a file that is larger than what may be read, and for what is no file: for readers
    /// that are not ours.
    pub(crate) fn check(&self, kind: &str, path: &Path) -> anyhow::Result<()> {
        let what = || format!("cannot read {kind} {}", path.display());
        let about = std::fs::metadata(path).with_context(what)?;
        if !about.is_file() {
            bail!("{}: it is not a file", what());
        }
        if about.len() > self.left {
            bail!(
                "{}: it is larger than {}; let more in with --max-input",
                what(),
                render_amount(&ResourceName::Memory, self.max)
            );
        }
        Ok(())
    }
}

fn text(what: &str, bytes: Vec<u8>) -> anyhow::Result<String> {
    let why = match bytes.as_slice() {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
        bytes if bytes.contains(&0) => "not text in UTF-8",
        _ => match String::from_utf8(bytes) {
            Ok(text) => return Ok(text),
            Err(_) => "not UTF-8 text",
        },
    };
    bail!("cannot read {what}: it is {why}; save it as UTF-8")
}

/// Files of a folder and of those below it. As with kubectl, links to folders are not followed;
/// hidden files and folders are left out, which are other programs' business.
fn collect(folder: &Path, files: &mut Vec<PathBuf>, depth: usize) -> anyhow::Result<()> {
    if depth > DEPTH_MAX {
        bail!("folder {} is nested too deeply", folder.display());
    }
    let unreadable = || format!("cannot read folder {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(unreadable)?;
    let mut entries = entries
        .collect::<Result<Vec<_>, _>>()
        .with_context(unreadable)?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type().with_context(unreadable)?.is_dir() {
            collect(&path, files, depth + 1)?;
            continue;
        }
        let ending = path.extension().unwrap_or_default();
        if path.is_dir() || !["yaml", "yml", "json"].iter().any(|e| ending == *e) {
            continue;
        }
        if path.exists() && !path.is_file() {
            // Reading from a pipe or a device may never end.
            bail!("cannot read {}: it is not a file", path.display());
        }
        files.push(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(max_input: u64, bytes: &[u8]) -> anyhow::Result<Source> {
        let mut reader = InputArgs { max_input }.reader();
        reader.source("file x", "x", bytes)
    }

    #[test]
    fn as_much_is_read_as_may_be() {
        assert_eq!(read(4, b"abcd").unwrap().text, "abcd");
        let error = read(2048, &[b'a'; 2049]).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot read file x: the input is larger than 2Ki; let more in with --max-input"
        );
    }

    #[test]
    fn files_share_what_may_be_read() {
        let mut reader = InputArgs { max_input: 5 }.reader();
        assert!(reader.source("a", "a", &b"abc"[..]).is_ok());
        assert!(reader.source("b", "b", &b"abc"[..]).is_err());
        assert!(reader.source("c", "c", &b"ab"[..]).is_ok());
    }

    #[test]
    fn what_is_not_text_is_not_read_to_its_end() {
        let error = read(u64::MAX, &[0; 8]).unwrap_err().to_string();
        assert!(error.contains("it is not text"), "{error}");
        let mut reader = InputArgs { max_input: 1 << 40 }.reader();
        assert!(reader.source("zero", "zero", std::io::repeat(0)).is_err());
    }

    #[test]
    fn sizes_are_quantities() {
        assert_eq!(bytes("512Mi"), Ok(512 << 20));
        assert_eq!(bytes("1000"), Ok(1000));
        assert!(bytes("much").is_err() && bytes("-1").is_err());
    }
}
