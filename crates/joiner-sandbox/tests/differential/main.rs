//! The embedded server against a real one: the same requests, the same answers.
//!
//! Requests are in `requests`, one file per topic, run in order against both servers. Neither runs
//! controllers, so that nobody but the requests changes objects. What differs on purpose is in
//! `differences`, with the reason; a reason that no longer applies fails the test, too.

mod compare;
mod differences;
mod request;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use joiner_runtime::Clock;
use joiner_sandbox::serve;
use joiner_sandbox::server::Server;
use joiner_testkit::control_plane::{ControlPlane, Program, Programs};

use compare::{Answer, Difference};
use differences::KEPT;
use request::{Case, filled};

/// How often a request is repeated that waits for a status, a tenth of a second apart.
const REPEATS_MAX: usize = 100;
/// A request that takes longer has hung.
const ANSWER_MAX: Duration = Duration::from_secs(30);

const FILES: &[(&str, &str)] = &[
    ("paths", include_str!("requests/paths.txt")),
    ("objects", include_str!("requests/objects.txt")),
    ("lists", include_str!("requests/lists.txt")),
    ("changes", include_str!("requests/changes.txt")),
    ("apply", include_str!("requests/apply.txt")),
    ("pods", include_str!("requests/pods.txt")),
    ("deletes", include_str!("requests/deletes.txt")),
    ("workloads", include_str!("requests/workloads.txt")),
    ("custom", include_str!("requests/custom.txt")),
];

/// One of the two servers, and what it has said.
struct Side {
    client: kube::Client,
    saved: BTreeMap<String, String>,
}

#[tokio::test]
async fn both_servers_agree() {
    let Some((_folder, plane)) = real() else {
        eprintln!("skipped: there is no control plane; see `cargo xtask control-plane build`");
        return;
    };
    let mut real = Side {
        client: real_client(&plane).await,
        saved: BTreeMap::new(),
    };
    let server = Arc::new(Server::new(Clock::system(1), 1));
    let mut ours = Side {
        client: serve::client(&server),
        saved: BTreeMap::new(),
    };
    let mut report = String::new();
    let mut used = vec![false; KEPT.len()];
    let (mut n_cases, mut n_agreed, mut n_listed) = (0, 0, 0);
    for (file, text) in FILES {
        for case in request::parse(text) {
            let name = format!("{file}: {}", case.name);
            let theirs = real.answer(&case).await;
            let own = ours.answer(&case).await;
            let found = compare::differences(&theirs, &own);
            n_cases += 1;
            n_agreed += usize::from(found.is_empty());
            n_listed += usize::from(!found.is_empty());
            let rest = unlisted(&name, found, &mut used);
            if !rest.is_empty() {
                describe(&name, &case, &rest, &mut report);
            }
        }
    }
    for (kept, _) in KEPT.iter().zip(used).filter(|(_, used)| !used) {
        let _ = writeln!(
            report,
            "\n{} {}: listed, but there is no such difference any more ({})",
            kept.case, kept.place, kept.reason
        );
    }
    eprintln!("{n_cases} requests: {n_agreed} agree, {n_listed} differ in some place");
    assert!(n_cases >= 100, "only {n_cases} requests");
    assert!(report.is_empty(), "{report}");
}

/// The differences that are not in the list.
fn unlisted(name: &str, found: Vec<Difference>, used: &mut [bool]) -> Vec<Difference> {
    let is_new = |difference: &Difference| {
        let mut listed = false;
        for (kept, used) in KEPT.iter().zip(used.iter_mut()) {
            if kept.covers(name, &difference.place) {
                *used = true;
                listed = true;
            }
        }
        !listed
    };
    found.into_iter().filter(is_new).collect()
}

fn describe(name: &str, case: &Case, found: &[Difference], report: &mut String) {
    let _ = writeln!(report, "\n{name} ({} {})", case.method, case.target);
    for Difference { place, real, ours } in found {
        let _ = writeln!(report, "  {place}\n    real: {real}\n    ours: {ours}");
    }
}

/// A real API server without controllers, if there is one to be had.
fn real() -> Option<(Folder, ControlPlane)> {
    let programs = Programs::find().expect("a control plane to test on")?;
    let folder = Folder::new();
    for program in [Program::Etcd, Program::ApiServer, Program::Kubectl] {
        let path = programs.path(program).expect("a program that is needed");
        let link = folder.0.join(program.file_name());
        std::os::unix::fs::symlink(path, link).expect("a link to a program");
    }
    let few = Programs::in_folder(&folder.0).expect("the programs that were linked");
    let plane = ControlPlane::start_with(&few).expect("a control plane");
    Some((folder, plane))
}

/// A temporary folder.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("joiner-differential-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(Path::new(&self.0));
    }
}

async fn real_client(plane: &ControlPlane) -> kube::Client {
    let file = kube::config::Kubeconfig::read_from(plane.kubeconfig()).expect("a kubeconfig");
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(file, &options)
        .await
        .expect("a configuration");
    config.disable_compression = true;
    config.default_retry = false;
    kube::Client::try_from(config).expect("a client")
}

impl Side {
    /// Sends a request, as often as it wants to be sent.
    async fn answer(&mut self, case: &Case) -> Answer {
        let mut answer = self.send(case).await;
        for _ in 0..REPEATS_MAX {
            if case.until.is_none_or(|status| status == answer.status) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            answer = self.send(case).await;
        }
        for (name, pointer) in &case.saves {
            let value = answer.value();
            let value = value.pointer(pointer).and_then(|value| value.as_str());
            let value = value.unwrap_or("missing").to_owned();
            self.saved.insert(name.clone(), value);
        }
        answer
    }

    async fn send(&self, case: &Case) -> Answer {
        let mut request = http::Request::builder()
            .method(case.method.as_str())
            .uri(filled(&case.target, &self.saved))
            .header("User-Agent", "differential/1.0");
        for (key, value) in &case.headers {
            request = request.header(key, value);
        }
        let body = kube::client::Body::from(case.body(&self.saved));
        let request = request.body(body).expect("a request");
        let exchange = async {
            let response = self.client.send(request).await.expect("an answer");
            let (parts, body) = response.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            (parts, body)
        };
        let (parts, body) = tokio::time::timeout(ANSWER_MAX, exchange)
            .await
            .expect("an answer in time");
        let text = |name: &str| {
            let value = parts.headers.get(name);
            let value = value.and_then(|value| value.to_str().ok());
            value.unwrap_or("").to_owned()
        };
        let warnings = parts.headers.get_all("warning").iter();
        Answer {
            status: parts.status.as_u16(),
            content_type: text("content-type"),
            warnings: warnings
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect(),
            retry_after: text("retry-after"),
            body: body.to_vec(),
        }
    }
}
