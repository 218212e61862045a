//! A running `joiner run`, with what it says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest that a program may take on a busy machine to end after it was asked to, or to refuse to
/// start.
const END_MAX: Duration = Duration::from_secs(60);
/// The longest that it may take to say something there.
pub(crate) const WORDS_MAX: Duration = Duration::from_secs(120);
/// Lines of its log that are shown when a test fails.
const LAST_WORDS_MAX: usize = 200;

/// A file that nobody else uses.
pub(crate) fn place(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = format!("run-{}-{number}-{name}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(file)
}

/// The program without settings from outside.
pub(crate) fn joiner() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joiner"));
    for name in [
        "KUBECONFIG",
        "FEATURE_GATES",
        "PREFERENCE_POLICY",
        "MIN_VALUES_POLICY",
        "LOG_LEVEL",
        "SCHEDULER_CONFIG",
        "SYSTEM_NAMESPACE",
        "KUBERNETES_SERVICE_HOST",
    ] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// `joiner run` on any free ports.
pub(crate) fn run_command(kubeconfig: &Path, flags: &[&str]) -> Command {
    let mut command = joiner();
    command
        .args(["run", "--cloud", "simulated", "--kubeconfig"])
        .arg(kubeconfig)
        .args(["--metrics-port", "0", "--health-probe-port", "0"])
        .args(flags);
    command
}

/// What a program says that does not stay.
pub(crate) async fn outcome(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let id = child.id();
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    match tokio::time::timeout(END_MAX, ended).await {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal(id, "-KILL");
            panic!("it did not end within {END_MAX:?}: {command:?}");
        }
    }
}

/// A running `joiner run`; killed when this is dropped.
pub(crate) struct Joiner {
    child: Child,
    log: PathBuf,
}

impl Drop for Joiner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            // Whoever reads how a test failed wants to know what the program made of it.
            let said = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let last = &lines[lines.len().saturating_sub(LAST_WORDS_MAX)..];
            println!("the last it said:\n{}", last.join("\n"));
        }
        let _ = std::fs::remove_file(&self.log);
    }
}

impl Joiner {
    /// Starts it on a cluster.
    pub(crate) fn start(kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::spawn(run_command(kubeconfig, flags))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let log = place("log");
        let file = std::fs::File::create(&log).unwrap();
        let errors = file.try_clone().unwrap();
        let child = command.stdout(file).stderr(errors).spawn().unwrap();
        Self { child, log }
    }

    /// All that it has said.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Its log lines; every one that is complete must be a JSON object.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let said = self.said();
        let whole = said.rfind('\n').map_or("", |end| &said[..end]);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
            .collect()
    }

    /// Log lines with this message.
    pub(crate) fn told(&self, message: &str) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["message"] == message);
        lines
    }

    /// Waits until it has said something.
    pub(crate) async fn says(&mut self, words: &str) {
        self.says_within(words, WORDS_MAX).await;
    }

    pub(crate) async fn says_within(&mut self, words: &str, time: Duration) {
        let start = Instant::now();
        while !self.said().contains(words) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "ended without {words:?}: {}", self.said());
            assert!(start.elapsed() < time, "no {words:?} in {}", self.said());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends it at once, whatever it is doing.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Asks it to end, and waits.
    pub(crate) async fn stop(&mut self) -> ExitStatus {
        signal(self.child.id(), "-TERM");
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < END_MAX, "it goes on: {}", self.said());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What an endpoint answers, `metrics` or `health`: status and body.
    pub(crate) async fn get(&mut self, endpoint: &str, path: &str) -> (u16, String) {
        self.says("\"message\":\"listening\"").await;
        let line = &self.told("listening")[0];
        let address: SocketAddr = line[endpoint].as_str().unwrap().parse().unwrap();
        http_get(address.port(), path).await
    }

    /// The value of a metric with these labels in the text, as `name{labels}`.
    pub(crate) async fn metrics(&mut self) -> BTreeMap<String, f64> {
        let (code, text) = self.get("metrics", "/metrics").await;
        assert_eq!(code, 200);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').unwrap();
                (name.to_owned(), value.parse().unwrap())
            })
            .collect()
    }
}

fn signal(id: u32, which: &str) {
    let sent = Command::new("kill").args([which, &id.to_string()]).status();
    assert!(sent.unwrap().success());
}

async fn http_get(port: u16, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}
