//! Processes that end when we do, however we do.
//!
//! Dropping a [`Processes`] kills and awaits them. That is not enough: a test may abort, be killed,
//! or keep its control plane in a static, which is never dropped. So a shell waits for the end of a
//! pipe that we hold, and cleans up when it comes too soon.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::Error;

/// Reads one process id a line. At the end of the input without a farewell it kills them and
/// removes the folder; the pause lets go of files that a dying process still writes.
const GUARD: &str = r#"
pids=
while read -r line; do
  case $line in
    farewell) exit 0 ;;
    *) pids="$pids $line" ;;
  esac
done
kill -9 $pids
sleep 1
rm -rf "$1"
"#;
/// How often something awaited is looked at.
const POLL: Duration = Duration::from_millis(100);
/// How much of a log goes into a message.
const LOG_LINES: usize = 15;

/// Processes that work in a folder of their own, both gone at the end.
#[derive(Debug)]
pub(super) struct Processes {
    folder: PathBuf,
    /// None where another process of ours runs them and cleans up.
    guard: Option<Child>,
    running: Vec<Running>,
}

/// A process and what it is called.
#[derive(Debug)]
struct Running {
    name: &'static str,
    child: Child,
}

impl Processes {
    /// None yet, in a new folder.
    pub(super) fn new() -> Result<Self, Error> {
        let folder = new_folder()?;
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "guard"]).arg(&folder);
        guard.stdin(Stdio::piped());
        guard.stdout(Stdio::null()).stderr(Stdio::null());
        // In a group of its own, so that Ctrl-C is for us to handle.
        let guard = guard.process_group(0).spawn();
        match guard {
            Ok(guard) => Ok(Self {
                folder,
                guard: Some(guard),
                running: Vec::new(),
            }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&folder);
                Err(Error::io("start a shell")(error))
            }
        }
    }

    /// Those of another process, in this folder: they stay when this is dropped.
    pub(super) fn attached(folder: PathBuf) -> Self {
        Self {
            folder,
            guard: None,
            running: Vec::new(),
        }
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a program; what it says goes to `NAME.log` in the folder.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        program: &Path,
        arguments: &[String],
    ) -> Result<(), Error> {
        let failed = || Error::io(format!("start {}", program.display()));
        let log = File::create(self.log(name)).map_err(failed())?;
        let errors = log.try_clone().map_err(failed())?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = command.process_group(0).spawn().map_err(failed())?;
        let id = child.id();
        self.running.push(Running { name, child });
        self.tell_guard(&id.to_string()).map_err(failed())
    }

    /// Fails when one of them has ended.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        for running in &mut self.running {
            let ended = running.child.try_wait();
            let name = running.name;
            if let Some(status) = ended.map_err(Error::io(format!("look at {name}")))? {
                let log = tail(&self.folder.join(format!("{name}.log")));
                return Err(Error::Ended { name, status, log });
            }
        }
        Ok(())
    }

    /// Waits until something is true; fails when it takes too long or when a process ends.
    pub(super) fn wait_for(
        &mut self,
        what: &'static str,
        limit: Duration,
        mut is_true: impl FnMut(&Path) -> bool,
    ) -> Result<(), Error> {
        let started = Instant::now();
        while !is_true(&self.folder) {
            self.check()?;
            if started.elapsed() > limit {
                let last = self.running.last();
                let log = last.map_or_else(String::new, |last| tail(&self.log(last.name)));
                return Err(Error::TooSlow { what, limit, log });
            }
            std::thread::park_timeout(POLL);
        }
        Ok(())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    fn tell_guard(&mut self, line: &str) -> std::io::Result<()> {
        let pipe = self.guard.as_mut().and_then(|guard| guard.stdin.as_mut());
        pipe.map_or(Ok(()), |pipe| writeln!(pipe, "{line}"))
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if self.guard.is_none() {
            return;
        }
        // Nobody is left to tell of a failure here. The data is not kept, so nothing need end well.
        for running in self.running.iter_mut().rev() {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
        let _ = self.tell_guard("farewell");
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }
}

/// An empty folder that only we can read.
fn new_folder() -> Result<PathBuf, Error> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut token = random_token()?;
    token.truncate(8);
    let name = format!(
        "joiner-control-plane-{}-{count}-{token}",
        std::process::id()
    );
    let folder = std::env::temp_dir().join(name);
    let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
    made.map_err(Error::io(format!("create {}", folder.display())))?;
    Ok(folder)
}

/// Something nobody can guess.
pub(super) fn random_token() -> Result<String, Error> {
    let mut bytes = [0; 16];
    let source = File::open("/dev/urandom");
    let read = source.and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(Error::io("read /dev/urandom"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The last lines of a log.
fn tail(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn shell(processes: &mut Processes, script: &str) {
        let arguments = ["-c".to_owned(), script.to_owned()];
        let started = processes.start("script", Path::new("/bin/sh"), &arguments);
        started.expect("there is a shell");
    }

    #[test]
    fn they_are_gone_after_a_drop() {
        let mut processes = Processes::new().expect("there is a shell");
        let folder = processes.folder().to_owned();
        shell(&mut processes, "echo up; exec sleep 1000");
        let log = processes.log("script");
        let up = processes.wait_for("script", LIMIT, |_| tail(&log) == "up");
        up.expect("it says so");
        let id = processes.running[0].child.id();
        drop(processes);
        assert!(!folder.exists());
        assert!(!is_running(id));
    }

    #[test]
    fn they_are_gone_when_the_pipe_breaks() {
        let mut processes = Processes::new().expect("there is a shell");
        let folder = processes.folder().to_owned();
        shell(&mut processes, "exec sleep 1000");
        // What the system does for a process that is killed.
        drop(processes.guard.as_mut().unwrap().stdin.take());
        let started = Instant::now();
        while folder.exists() {
            assert!(started.elapsed() < LIMIT);
            std::thread::park_timeout(POLL);
        }
        assert!(processes.check().is_err());
    }

    #[test]
    fn an_end_too_soon_shows_the_log() {
        let mut processes = Processes::new().expect("there is a shell");
        shell(&mut processes, "echo no such flag >&2; exit 3");
        let never = processes.wait_for("it", LIMIT, |_| false);
        let text = never.expect_err("it has ended").to_string();
        assert!(text.contains("script ended with exit status: 3"), "{text}");
        assert!(text.contains("no such flag"), "{text}");
    }

    fn is_running(id: u32) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("kill -0 {id} 2>/dev/null")]);
        command.status().is_ok_and(|status| status.success())
    }
}
