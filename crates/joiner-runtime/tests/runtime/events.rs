//! Events as they arrive on the embedded control plane.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use joiner_runtime::{About, Build, Clock, Event, Events, Metrics};
use joiner_sandbox::{Sandbox, Settings, serve};
use kube::Client;
use serde_json::Value;

/// What happens to requests.
#[derive(Clone, Copy)]
enum Line {
    Fine,
    /// The first so many are done, but their answers are errors.
    Deaf(usize),
    /// None is done.
    Away,
    /// None is done, all are answered well.
    Ignored,
}

struct World {
    sandbox: Sandbox,
    clock: Clock,
    metrics: Arc<Metrics>,
    n_requests: Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
        let sandbox = Sandbox::start(clock.clone(), &Settings::default()).unwrap();
        let metrics = Arc::new(Metrics::new(clock.clone(), &Build::default()));
        Self {
            sandbox,
            clock,
            metrics,
            n_requests: Arc::default(),
        }
    }

    fn client(&self, line: Line) -> Client {
        let (server, n) = (
            Arc::clone(self.sandbox.server()),
            Arc::clone(&self.n_requests),
        );
        let service = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
            let n_before = n.fetch_add(1, Ordering::Relaxed);
            let server = Arc::clone(&server);
            async move {
                if matches!(line, Line::Away | Line::Ignored) {
                    let nothing = http::Request::get("/version");
                    request = nothing.body(kube::client::Body::empty()).unwrap();
                }
                let mut answer = serve::respond(&server, request).await;
                if matches!(line, Line::Away) || matches!(line, Line::Deaf(n) if n_before < n) {
                    *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
                }
                Ok::<_, Infallible>(answer)
            }
        });
        Client::new(service, "default")
    }

    fn events(&self, line: Line, dry_run: bool) -> Events {
        let client = self.client(line);
        let metrics = Arc::clone(&self.metrics);
        let (events, writer) = Events::new(client, self.clock.clone(), metrics, dry_run);
        tokio::spawn(writer.run());
        events
    }

    async fn wait(&self, secs: u64) {
        self.clock.sleep(Duration::from_secs(secs)).await;
    }

    /// What was written by us.
    async fn written(&self) -> Vec<Value> {
        let request = http::Request::get("/api/v1/events")
            .body(Vec::new())
            .unwrap();
        let list: Value = self.sandbox.client().request(request).await.unwrap();
        let items = list["items"].as_array().unwrap().iter();
        let ours = |event: &&Value| event["source"]["component"] == "karpenter";
        items.filter(ours).cloned().collect()
    }
}

fn claim(name: &str) -> About {
    About {
        kind: "NodeClaim",
        api_version: "karpenter.sh/v1".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
    }
}

fn launched(name: &str) -> Event {
    Event::normal(claim(name), "Launched", format!("launched {name}"))
}

#[tokio::test(start_paused = true)]
async fn the_same_news_is_one_event_that_counts() {
    let world = World::new();
    let events = world.events(Line::Fine, false);
    for _ in 0..30 {
        events.tell(launched("a"));
        world.wait(10).await;
    }
    events.tell(launched("b"));
    world.wait(1).await;
    let written = world.written().await;
    assert_eq!(written.len(), 2, "{written:#?}");
    let a = &written[0];
    assert_eq!(a["involvedObject"]["name"], "a");
    assert_eq!(a["count"], 3);
    assert_eq!(a["firstTimestamp"], "1970-01-01T00:00:00Z");
    assert_eq!(a["lastTimestamp"], "1970-01-01T00:04:00Z");
    assert_eq!(written[1]["count"], 1);
}

#[tokio::test(start_paused = true)]
async fn other_words_are_another_event() {
    let world = World::new();
    let events = world.events(Line::Fine, false);
    events.tell(launched("a"));
    world.wait(121).await;
    let mut event = launched("a");
    event.message = "launched again".to_owned();
    events.tell(event);
    world.wait(1).await;
    assert_eq!(world.written().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_deleted_is_written_anew() {
    let world = World::new();
    let events = world.events(Line::Fine, false);
    events.tell(launched("a"));
    world.wait(121).await;
    let name = world.written().await[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/v1/namespaces/default/events/{name}");
    let request = http::Request::delete(path).body(Vec::new()).unwrap();
    let _: Value = world.sandbox.client().request(request).await.unwrap();
    events.tell(launched("a"));
    world.wait(1).await;
    let written = world.written().await;
    assert_eq!(written.len(), 1);
    assert_eq!(written[0]["count"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing() {
    let world = World::new();
    let events = world.events(Line::Fine, true);
    events.tell(launched("a"));
    world.wait(10).await;
    assert!(world.written().await.is_empty());
    assert_eq!(world.n_requests.load(Ordering::Relaxed), 0);
    let text = world.metrics.render();
    assert!(
        text.contains("joiner_events_dropped_total{why=\"dry_run\"} 1"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_in_trouble_is_asked_again_but_not_for_ever() {
    let world = World::new();
    let events = world.events(Line::Deaf(1), false);
    events.tell(launched("a"));
    world.wait(20).await;
    assert_eq!(world.n_requests.load(Ordering::Relaxed), 2);
    assert_eq!(
        world.written().await.len(),
        1,
        "once, although it was sent twice"
    );
    let text = world.metrics.render();
    assert!(
        text.contains("joiner_events_written_total{reason=\"Launched\"} 1"),
        "{text}"
    );

    let world = World::new();
    let events = world.events(Line::Away, false);
    events.tell(launched("a"));
    world.wait(600).await;
    assert_eq!(world.n_requests.load(Ordering::Relaxed), 3);
    let text = world.metrics.render();
    assert!(
        text.contains("joiner_events_dropped_total{why=\"refused\"} 1"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_queue_cannot_hold_is_dropped_and_counted() {
    let world = World::new();
    let client = world.client(Line::Ignored);
    let metrics = Arc::clone(&world.metrics);
    let (events, writer) = Events::new(client, world.clock.clone(), metrics, false);
    for n in 0..10_100 {
        events.tell(launched(&format!("c{n}")));
    }
    let text = world.metrics.render();
    assert!(
        text.contains("joiner_events_dropped_total{why=\"queue\"} 100"),
        "{text}"
    );
    // When nobody can tell anything any more, all that is left is written.
    drop(events);
    writer.run().await;
    assert_eq!(world.n_requests.load(Ordering::Relaxed), 10_000);
}
