//! What the tests share: running the binary, files that go away, and small manifests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Asserts exit code 1, a message with each of the parts, nothing on stdout and no panic.
    #[track_caller]
    pub(crate) fn fails_with(&self, parts: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.stdout.is_empty(), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {self:?}");
        }
    }

    /// Asserts exit code 1 and a message of exactly one line with each of the parts.
    #[track_caller]
    pub(crate) fn fails_in_one_line(&self, parts: &[&str]) {
        self.fails_with(parts);
        assert!(self.stderr.starts_with("joiner: "), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
    }

    /// Asserts the exit code and returns the run for more checks.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Asserts that stdout has each of the parts.
    #[track_caller]
    pub(crate) fn prints(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stdout.contains(part), "{part:?} is not in {self:?}");
        }
        self
    }

    /// Asserts that stderr has a warning with each of the parts.
    #[track_caller]
    pub(crate) fn warns(self, parts: &[&str]) -> Self {
        assert!(self.stderr.contains("warning"), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {self:?}");
        }
        self
    }

    /// The one JSON document on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("stdout is one JSON document")
    }
}

/// A file that is removed with its value.
pub(crate) struct TempFile(PathBuf);

impl TempFile {
    pub(crate) fn new(suffix: &str, content: impl AsRef<[u8]>) -> Self {
        let path = unique(suffix);
        std::fs::write(&path, content).expect("the temporary file is written");
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("temporary paths are UTF-8")
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // A file left behind harms nobody.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A folder that is removed with its value.
pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    pub(crate) fn new() -> Self {
        let path = unique("folder");
        std::fs::create_dir(&path).expect("the temporary folder is made");
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.0.join(name), content).expect("the file is written");
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("temporary paths are UTF-8")
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // A folder left behind harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A path of its own for each call.
pub(crate) fn unique(suffix: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("joiner-cli-{}-{number}-{suffix}", std::process::id());
    std::env::temp_dir().join(name)
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the binary with nothing on standard input.
pub(crate) fn joiner(args: &[&str]) -> Outcome {
    joiner_reading(args, b"")
}

/// Runs the binary at the root of the repository, with some bytes on standard input.
pub(crate) fn joiner_reading(args: &[&str], input: &[u8]) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_joiner"))
        .args(args)
        .current_dir(root())
        .env_remove("PREFERENCE_POLICY")
        .env_remove("MIN_VALUES_POLICY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A run that fails early does not read its input to the end.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().expect("the binary ends");
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// Plans for manifests, with the small catalog and further arguments.
pub(crate) fn plan_with(manifests: impl AsRef<[u8]>, args: &[&str]) -> Outcome {
    plan_on(&small_catalog(), manifests, args)
}

/// Plans for manifests with the small catalog, as a table.
pub(crate) fn plan(manifests: impl AsRef<[u8]>) -> Outcome {
    plan_with(manifests, &[])
}

/// Plans for manifests with a catalog's text and further arguments.
pub(crate) fn plan_on(types: &str, manifests: impl AsRef<[u8]>, args: &[&str]) -> Outcome {
    let types = TempFile::new("types.json", types);
    let manifests = TempFile::new("objects.yaml", manifests);
    let mut all = vec![
        "plan",
        "-f",
        manifests.path(),
        "--instance-types",
        types.path(),
    ];
    all.extend_from_slice(args);
    joiner(&all)
}

/// Documents as one YAML file.
pub(crate) fn documents(parts: &[&str]) -> String {
    parts.join("\n---\n")
}

/// A pool with further lines under `spec` and a list of requirements.
pub(crate) fn pool(spec: &str, requirements: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: general}}
spec:
  {spec}
  template:
    spec:
      nodeClassRef: {{group: example.com, kind: RackNodeClass, name: default}}
      requirements: {requirements}
"
    )
}

/// A pool that sells everything.
pub(crate) fn any_pool() -> String {
    pool("", "[]")
}

/// A pod with requests and one further line under `spec`.
pub(crate) fn pod(name: &str, requests: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: web}}}}
spec:
  containers: [{{name: app, resources: {{requests: {requests}}}}}]
  {spec}
"
    )
}

/// A pod that fits every type of the small catalog.
pub(crate) fn small_pod(name: &str) -> String {
    pod(name, "{cpu: 500m, memory: 512Mi}", "")
}

/// One type, in zones `a` and `b`; the second costs a little more.
pub(crate) fn instance_type(name: &str, cpu: u32, price: f64) -> Value {
    let offering = |zone: &str, price: f64| {
        serde_json::json!({"Price": price, "Available": true, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]})
    };
    serde_json::json!({
        "name": name, "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": cpu.to_string(), "memory": format!("{}Gi", cpu * 4), "pods": "20"},
        "offerings": [offering("zone-a", price), offering("zone-b", price * 1.25)],
    })
}

/// Three types.
pub(crate) fn small_types() -> Vec<Value> {
    vec![
        instance_type("large", 16, 0.75),
        instance_type("small", 2, 0.1),
        instance_type("medium", 4, 0.19),
    ]
}

/// Three types as a catalog file.
pub(crate) fn small_catalog() -> String {
    Value::Array(small_types()).to_string()
}
