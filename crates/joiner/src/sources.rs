//! Reads what users name with `-f`: files, folders, standard input.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use joiner_state::Source;

const STANDARD_INPUT: &str = "standard input";
/// Folders deeper than this are not read.
const DEPTH_MAX: usize = 32;

/// What to call something that was named with `-f`.
pub(crate) fn title(path: &Path) -> String {
    if path.as_os_str() == "-" {
        STANDARD_INPUT.to_owned()
    } else {
        path.display().to_string()
    }
}

/// The texts of all named files; folders give their `.yaml`, `.yml` and `.json` files in name order.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let mut all = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .context("cannot read standard input")?;
            all.push(source(STANDARD_INPUT.to_owned(), bytes)?);
        } else if path.is_dir() {
            let mut files = Vec::new();
            collect(path, &mut files, 0)?;
            if files.is_empty() {
                bail!("folder {} has no .yaml, .yml or .json file", path.display());
            }
            for file in files {
                all.push(read_file(&file)?);
            }
        } else {
            all.push(read_file(path)?);
        }
    }
    Ok(all)
}

/// One file.
pub(crate) fn read_file(path: &Path) -> anyhow::Result<Source> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read file {name}"))?;
    source(name, bytes)
}

fn source(name: String, bytes: Vec<u8>) -> anyhow::Result<Source> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(error) => {
            let utf_16 = matches!(error.as_bytes(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
            let what = if utf_16 { "UTF-16" } else { "not UTF-8 text" };
            bail!("cannot read {name}: it is {what}; save it as UTF-8")
        }
    }
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
