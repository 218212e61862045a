//! The file of the decision log: lines are appended, a full file is put aside, old ones go.
//!
//! Files put aside are called `FILE.1` (the youngest) to `FILE.N`. Putting aside is a row of
//! renames, from the oldest on, each of which either happens or does not: dying in between leaves a
//! gap in the numbers, which readers skip and the next rotation closes, and no line is lost.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use joiner_receipts::{Decision, DecisionQuery, LogLines};

/// More files than this are not looked for.
const FILES_MAX: u32 = 100;

/// A file that lines are appended to.
#[derive(Debug)]
pub(crate) struct DecisionFile {
    path: PathBuf,
    bytes_max: u64,
    n_kept: u32,
    open: Option<(File, u64)>,
    is_failing: bool,
}

impl DecisionFile {
    /// Nothing is opened before there is something to write.
    pub(crate) fn new(path: PathBuf, bytes_max: u64, n_kept: u32) -> Self {
        Self {
            path,
            bytes_max,
            n_kept: n_kept.min(FILES_MAX),
            open: None,
            is_failing: false,
        }
    }

    /// Appends a line. Trouble is reported once, and the file is opened anew next time.
    pub(crate) fn append(&mut self, line: &str) {
        match self.try_append(line) {
            Ok(()) => self.is_failing = false,
            Err(error) => {
                self.open = None;
                if !std::mem::replace(&mut self.is_failing, true) {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "the decision log cannot be written; trying on");
                }
            }
        }
    }

    fn try_append(&mut self, line: &str) -> io::Result<()> {
        let n_bytes = u64::try_from(line.len()).unwrap_or(u64::MAX) + 1;
        let (file, size) = match self.open.take() {
            Some(open) => open,
            None => open(&self.path)?,
        };
        let (mut file, size) = if size > 0 && size.saturating_add(n_bytes) > self.bytes_max {
            drop(file);
            rotate(&self.path, self.n_kept)?;
            open(&self.path)?
        } else {
            (file, size)
        };
        // One call for the line and its end: a crash between the two would glue lines together.
        file.write_all(format!("{line}\n").as_bytes())?;
        self.open = Some((file, size + n_bytes));
        Ok(())
    }
}

/// Opens a file for appending. A line that a crash cut off is ended, so that it spoils no other.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(path)?;
    let mut size = file.metadata()?.len();
    if size > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            size += 1;
        }
    }
    Ok((file, size))
}

fn aside(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}"));
    PathBuf::from(name)
}

/// Puts the file aside and makes room by dropping the oldest.
fn rotate(path: &Path, n_kept: u32) -> io::Result<()> {
    if n_kept == 0 {
        return std::fs::remove_file(path);
    }
    // Only files up to the first gap have to move.
    let gap = (1..=n_kept).find(|n| !aside(path, *n).exists());
    // Without a gap the oldest is overwritten.
    for n in (1..gap.unwrap_or(n_kept)).rev() {
        std::fs::rename(aside(path, n), aside(path, n + 1))?;
    }
    std::fs::rename(path, aside(path, 1))
}

/// The decisions in a file, and in those put aside before it, that are wanted: oldest first.
///
/// Lines that are not decisions are skipped. An error means that there is no such file.
pub fn read_decisions(path: &Path, query: &DecisionQuery) -> io::Result<Vec<Decision>> {
    let newest = File::open(path);
    // From the youngest on, as files are renamed: one that is put aside meanwhile may be met twice,
    // never missed.
    let older: Vec<File> = (1..=FILES_MAX)
        .filter_map(|n| File::open(aside(path, n)).ok())
        .collect();
    let newest = match newest {
        Ok(file) => Some(file),
        // A process died between two renames.
        Err(_) if !older.is_empty() => None,
        Err(error) => return Err(error),
    };
    let mut files: Vec<File> = newest.into_iter().chain(older).collect();
    files.dedup_by_key(|file| identity(file));
    let mut wanted = LogLines::new(query);
    for file in files.into_iter().rev() {
        let lines = BufReader::new(file).split(b'\n');
        lines
            .map_while(Result::ok)
            .for_each(|line| wanted.take(&line));
    }
    Ok(wanted.into_decisions())
}

/// What tells files apart, whatever their names are.
#[cfg(unix)]
fn identity(file: &File) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let meta = file.metadata().ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Here files cannot be renamed while they are open.
#[cfg(not(unix))]
fn identity(file: &File) -> *const File {
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("joiner-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn log(&self) -> PathBuf {
            self.0.join("decisions.jsonl")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn line(n: u64) -> String {
        let decision = Decision {
            generation: n,
            ..Decision::default()
        };
        serde_json::to_string(&decision).unwrap()
    }

    fn read_all(path: &Path) -> Vec<u64> {
        let found = read_decisions(path, &DecisionQuery::default()).unwrap();
        found.iter().map(|decision| decision.generation).collect()
    }

    fn three_lines() -> u64 {
        3 * u64::try_from(line(10).len() + 1).unwrap()
    }

    #[test]
    fn full_files_are_put_aside_and_old_ones_go() {
        let folder = Folder::new("rotate");
        let mut log = DecisionFile::new(folder.log(), three_lines(), 2);
        (10..22).for_each(|n| log.append(&line(n)));
        assert_eq!(read_all(&folder.log()), (13..22).collect::<Vec<_>>());
        assert!(!aside(&folder.log(), 3).exists());
        let limit = DecisionQuery {
            limit: Some(4),
            ..DecisionQuery::default()
        };
        let last = read_decisions(&folder.log(), &limit).unwrap();
        assert_eq!(last.first().unwrap().generation, 18);
        assert_eq!(last.len(), 4);
    }

    #[test]
    fn a_crash_at_any_point_of_a_rotation_loses_nothing() {
        // The renames of a rotation with three files put aside: 2 to 3, 1 to 2, the file to 1.
        for n_renames in 0..=3 {
            let folder = Folder::new(&format!("crash-{n_renames}"));
            let path = folder.log();
            let mut log = DecisionFile::new(path.clone(), three_lines(), 4);
            (10..19).for_each(|n| log.append(&line(n)));
            drop(log);
            let renames = [
                (aside(&path, 2), aside(&path, 3)),
                (aside(&path, 1), aside(&path, 2)),
                (path.clone(), aside(&path, 1)),
            ];
            for (from, to) in &renames[..n_renames] {
                std::fs::rename(from, to).unwrap();
            }
            assert_eq!(read_all(&path), (10..19).collect::<Vec<_>>(), "{n_renames}");
            let mut log = DecisionFile::new(path.clone(), three_lines(), 4);
            (19..23).for_each(|n| log.append(&line(n)));
            assert_eq!(read_all(&path), (10..23).collect::<Vec<_>>(), "{n_renames}");
        }
    }

    #[test]
    fn a_line_that_was_cut_off_spoils_no_other() {
        let folder = Folder::new("cut");
        let text = format!("{}\n{}", line(10), &line(11)[..20]);
        std::fs::write(folder.log(), text).unwrap();
        let mut log = DecisionFile::new(folder.log(), 1 << 20, 2);
        log.append(&line(12));
        assert_eq!(read_all(&folder.log()), [10, 12]);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_tried_again() {
        let folder = Folder::new("away");
        let path = folder.0.join("later/decisions.jsonl");
        let mut log = DecisionFile::new(path.clone(), 1 << 20, 2);
        log.append(&line(10));
        assert!(read_decisions(&path, &DecisionQuery::default()).is_err());
        std::fs::create_dir(folder.0.join("later")).unwrap();
        log.append(&line(11));
        assert_eq!(read_all(&path), [11]);
    }
}
