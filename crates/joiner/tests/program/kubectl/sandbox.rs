//! A running `joiner sandbox`, and a shell whose `kubectl` talks to it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The longest that one command may take.
const COMMAND_MAX: Duration = Duration::from_secs(90);
/// How many times faster than ours the clock of the cluster runs.
const SPEED: &str = "10";

/// The cluster; it ends when this is dropped.
pub(crate) struct Sandbox {
    child: Child,
    kubeconfig: PathBuf,
    path: OsString,
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

impl Sandbox {
    /// Starts one and waits until it listens; `None` when there is no kubectl.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let path = path_with_kubectl();
        let version = Command::new("sh")
            .args(["-c", "kubectl version --client"])
            .env("PATH", &path)
            .output()
            .unwrap();
        if !version.status.success() {
            let is_ci = setting("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "there is no kubectl on the path, and CI=true");
            println!("skipped: there is no kubectl on the path");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let kubeconfig = folder.join(format!("kubeconfig-{name}-{}", std::process::id()));
        let mut child = Command::new(env!("CARGO_BIN_EXE_joiner"))
            .args([
                "sandbox",
                "--autoscaler=false",
                "--speed",
                SPEED,
                "--kubeconfig",
            ])
            .arg(&kubeconfig)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The kubeconfig is there when the last of the first words is.
        let is_up = lines.any(|line| line.unwrap().contains("Ctrl-C"));
        assert!(is_up, "the sandbox has ended early");
        Some(Self {
            child,
            kubeconfig,
            path,
        })
    }

    /// What a command prints, and its exit code if it fails.
    pub(crate) fn sh(&self, command: &str) -> String {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1\n{command}"))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/kubectl"))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stdout.read_to_end(&mut bytes);
            let _ = sender.send(bytes);
        });
        let Ok(bytes) = receiver.recv_timeout(COMMAND_MAX) else {
            let _ = child.kill();
            let _ = child.wait();
            return format!("[killed after {} s]", COMMAND_MAX.as_secs());
        };
        let status = child.wait().unwrap();
        let mut output = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if !status.success() {
            let code = status.code().unwrap_or(-1);
            output.push_str(&format!("\n[exit {code}]"));
        }
        output.trim_start_matches('\n').to_owned()
    }
}

/// The path, with the folder of a chosen kubectl in front.
fn path_with_kubectl() -> OsString {
    let path = setting("PATH").unwrap_or_default();
    let chosen = setting("JOINER_CONTROL_PLANE").or_else(|| setting("KUBEBUILDER_ASSETS"));
    let folders = chosen.map(PathBuf::from).into_iter();
    std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap()
}

fn setting(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
