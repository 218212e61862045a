//! Reads what users name with `-f`: files, folders, standard input.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use joiner_state::Source;

/// The texts of all named files; folders give their `.yaml`, `.yml` and `.json` files in name order.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let mut all = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read standard input")?;
            all.push(Source::new("standard input", text));
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
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read file {}", path.display()))?;
    Ok(Source::new(path.display().to_string(), text))
}

/// Folders deeper than this are taken for a loop of links.
const DEPTH_MAX: usize = 32;

fn collect(folder: &Path, files: &mut Vec<PathBuf>, depth: usize) -> anyhow::Result<()> {
    if depth > DEPTH_MAX {
        bail!("folder {} is nested too deeply", folder.display());
    }
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read folder {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files, depth + 1)?;
        } else if path
            .extension()
            .is_some_and(|e| e == "yaml" || e == "yml" || e == "json")
        {
            files.push(path);
        }
    }
    Ok(())
}
