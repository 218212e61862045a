//! The embedded server against a real one: the same requests, the same answers.
//!
//! Requests are in `requests`, one file per topic, run in order against both servers. Neither runs
//! controllers, so that nobody but the requests changes objects. What differs on purpose is in
//! `differences`, with the reason; a reason that no longer applies fails the test, too.

mod compare;
mod differences;
mod real;
mod request;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use joiner_runtime::Clock;
use joiner_sandbox::serve;
use joiner_sandbox::server::Server;
use joiner_sandbox::store::Inner;

use compare::{Answer, Difference};
use differences::KEPT;
use real::Real;
use request::{Case, filled};

/// How often a request is repeated that waits for a status, a tenth of a second apart.
const REPEATS_MAX: usize = 600;
/// How often a request is sent whose connection breaks.
const TRIES_MAX: usize = 3;
/// A request that takes longer has hung.
const ANSWER_MAX: Duration = Duration::from_secs(60);

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
    ("definitions", include_str!("requests/definitions.txt")),
    ("kinds", include_str!("requests/kinds.txt")),
    ("hostile", include_str!("requests/hostile.txt")),
    ("rights", include_str!("requests/rights.txt")),
    ("compaction", include_str!("requests/compaction.txt")),
];

/// One of the two servers, and what it has said.
struct Side {
    /// An administrator's.
    client: kube::Client,
    /// Without credentials.
    bare: kube::Client,
    saved: BTreeMap<String, String>,
    /// Makes the server forget the past.
    forget: Box<dyn Fn()>,
}

#[tokio::test]
async fn both_servers_agree() {
    let Some(upstream) = Real::start() else {
        eprintln!("skipped: there is no control plane; see `cargo xtask control-plane build`");
        return;
    };
    let mut real = Side {
        client: upstream.client().await,
        bare: upstream.bare_client().await,
        saved: BTreeMap::new(),
        forget: Box::new(move || upstream.compact()),
    };
    let server = Arc::new(Server::new(Clock::system(1), 1));
    joiner_sandbox::sandbox::first_roles(&server).expect("the first roles");
    let mut ours = Side {
        client: serve::client(&server),
        bare: serve::client(&server),
        saved: BTreeMap::new(),
        forget: Box::new(move || server.store().with(Inner::compact)),
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

impl Side {
    /// Sends a request, as often as it wants to be sent.
    async fn answer(&mut self, case: &Case) -> Answer {
        if case.compact {
            (self.forget)();
        }
        let mut answer = self.send(case).await;
        for _ in 0..REPEATS_MAX {
            let text = String::from_utf8_lossy(&answer.body);
            let is_there = |wanted: &String| text.contains(wanted.as_str());
            if case.until.is_none_or(|status| status == answer.status)
                && case.until_body.as_ref().is_none_or(is_there)
            {
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
        let exchange = async {
            let client = match case.token {
                Some(_) => &self.bare,
                None => &self.client,
            };
            let mut response = client.send(self.request(case)).await;
            for _ in 1..TRIES_MAX {
                // A server that has refused a body may close the connection just as it is used again.
                if response.is_err() {
                    response = client.send(self.request(case)).await;
                }
            }
            let (parts, body) = response.expect("an answer").into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            (parts, body)
        };
        let answer = tokio::time::timeout(ANSWER_MAX, exchange).await;
        let Ok((parts, body)) = answer else {
            return Answer::late();
        };
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

    fn request(&self, case: &Case) -> http::Request<kube::client::Body> {
        let mut request = http::Request::builder()
            .method(case.method.as_str())
            .uri(filled(&case.target, &self.saved))
            .header("User-Agent", "differential/1.0");
        for (key, value) in &case.headers {
            request = request.header(key, value);
        }
        if let Some(token) = &case.token {
            let token = filled(token, &self.saved);
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let body = kube::client::Body::from(case.body(&self.saved));
        request.body(body).expect("a request")
    }
}
