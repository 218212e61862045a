//! The command itself: what it says on start and when it cannot start, and how it ends.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that an ended sandbox may take to be gone on a busy machine.
const END_MAX: Duration = Duration::from_secs(20);

fn sandbox() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joiner"));
    command.arg("sandbox");
    command
}

/// A place for a kubeconfig that nobody else uses.
fn place(name: &str) -> PathBuf {
    let file = format!("command-{name}-{}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    let _ = std::fs::remove_file(&path);
    path
}

/// A sandbox that listens, with all that it said.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    greeting: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(kubeconfig: &Path, flags: &[&str]) -> Self {
        let mut command = sandbox();
        command.args(flags).arg("--kubeconfig").arg(kubeconfig);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("Ctrl-C") {
            assert!(stdout.read_line(&mut greeting).unwrap() > 0, "{greeting}");
        }
        Self {
            child,
            stdout,
            greeting,
        }
    }

    /// Presses Ctrl-C; says what came then, and after how long.
    fn stop(&mut self) -> (String, Duration) {
        let start = Instant::now();
        let id = self.child.id().to_string();
        let pressed = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(pressed.success());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        (rest, start.elapsed())
    }
}

/// What a sandbox says that cannot start.
fn refusal(flags: &[&str]) -> String {
    let output = sandbox().args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{flags:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn bad_flags_are_named() {
    for (flags, expected) in [
        (
            ["--nodes", "-1"],
            "error: invalid value '-1' for '--nodes <N>': -1 is not in 0..=5000",
        ),
        (
            ["--nodes", "many"],
            "error: invalid value 'many' for '--nodes <N>': invalid digit found in string",
        ),
        (
            ["--speed", "0"],
            "error: invalid value '0' for '--speed <N>': 0 is not in 1..=10000",
        ),
        (
            ["--port", "99999"],
            "error: invalid value '99999' for '--port <PORT>': 99999 is not in 0..=65535",
        ),
        (
            ["--autoscaler", "maybe"],
            "error: invalid value 'maybe' for '--autoscaler <BOOL>'",
        ),
        (
            ["--kubeconfig", "/nowhere/at/all"],
            "joiner: cannot write the kubeconfig /nowhere/at/all: choose another place with --kubeconfig: No such file or directory (os error 2)",
        ),
    ] {
        assert_eq!(refusal(&flags), expected);
    }
}

#[test]
fn it_greets_and_ends_at_once() {
    let file = place("greets and ends");
    let mut running = Running::start(&file, &["--nodes", "1", "--speed", "5"]);
    let path = file.display().to_string();
    for expected in [
        "(Kubernetes 1.36 API, 1 node) listens on https://127.0.0.1:",
        "Its clock runs 5 times as fast as yours.",
        &format!("export KUBECONFIG='{path}'"),
    ] {
        assert!(running.greeting.contains(expected), "{}", running.greeting);
    }
    let (rest, time) = running.stop();
    assert_eq!(rest, "The sandbox has ended.\n");
    assert!(time < END_MAX, "it took {time:?}");
    assert!(!file.exists(), "the kubeconfig goes, too");
}

#[test]
fn nothing_of_value_is_overwritten() {
    let file = place("value");
    std::fs::write(
        &file,
        "apiVersion: v1\nkind: Config\ncurrent-context: production\n",
    )
    .unwrap();
    let path = file.display().to_string();
    assert_eq!(
        refusal(&["--kubeconfig", &path]),
        format!(
            "joiner: {path} is there already and no sandbox wrote it: choose another place for the \
             kubeconfig with --kubeconfig"
        )
    );
    std::fs::write(&file, "").unwrap();
    let mut running = Running::start(&file, &[]);
    let said = refusal(&["--kubeconfig", &path]);
    let expected = format!("joiner: {path} belongs to a sandbox that still runs, on https://127");
    assert!(said.starts_with(&expected), "{said}");

    // Left behind by a sandbox that was killed, it is in nobody's way.
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert!(file.exists());
    let mut next = Running::start(&file, &[]);
    std::fs::write(&file, "mine").unwrap();
    next.stop();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_taken_port_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let file = place("port").display().to_string();
    let said = refusal(&["--port", &address.port().to_string(), "--kubeconfig", &file]);
    assert_eq!(
        said,
        format!(
            "joiner: cannot listen on {address}: choose another --port, or 0 for any free one: \
             Address already in use (os error 98)"
        )
    );
    assert!(!Path::new(&file).exists());
}
