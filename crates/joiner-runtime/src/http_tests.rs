//! Answers as a client gets them.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use joiner_receipts::UNSCHEDULABLE;
use joiner_state::live::Kind;
use serde_json::{Value, json};

use super::*;
use crate::decisions::DecisionSettings;
use crate::metrics::Build;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub(super) async fn start(settings: HttpSettings, ready: Ready) -> Result<Servers, HttpError> {
    let clock = Clock::system(1);
    let metrics = Arc::new(Metrics::new(clock.clone(), &Build::default()));
    let decisions = Decisions::new(&DecisionSettings::default(), Arc::clone(&metrics));
    for generation in 0..3 {
        decisions.record(Decision {
            generation,
            kind: UNSCHEDULABLE.to_owned(),
            about: vec![format!("pod/web/api-{generation}")],
            details: json!({"reasons": ["there is no NodePool"]}),
            ..Decision::default()
        });
    }
    let world = World::start();
    let pod = |namespace: &str, name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "uid": format!("{namespace}{name}")},
            "spec": {"containers": [{"name": "c"}]}})
    };
    for (namespace, name) in [("web", "api-9"), ("shop", "twin"), ("web", "twin")] {
        world.note(Kind::Pod, pod(namespace, name)).await;
    }
    let receipts = Receipts {
        decisions,
        world,
        clock,
    };
    Servers::start(&settings, metrics, receipts, ready).await
}

pub(super) fn anywhere() -> HttpSettings {
    HttpSettings {
        address: Some(LOCAL),
        metrics_port: 0,
        health_port: 0,
        ..HttpSettings::default()
    }
}

/// Status line and headers, and the body.
pub(super) async fn ask(address: SocketAddr, path: &str) -> (String, String) {
    ask_as(address, "localhost", path).await
}

async fn ask_as(address: SocketAddr, host: &str, path: &str) -> (String, String) {
    let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    send(address, head.as_bytes()).await
}

async fn send(address: SocketAddr, request: &[u8]) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

#[tokio::test]
async fn metrics_are_served() {
    let servers = start(anywhere(), Arc::new(|| Ok(()))).await.unwrap();
    let (head, body) = ask(servers.metrics_address, "/metrics").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(
        head.contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(body.contains("karpenter_build_info{"), "{body}");
    let (head, _) = ask(servers.metrics_address, "/healthz").await;
    assert!(head.starts_with("http/1.1 404"), "{head}");
    servers.stop().await;
}

#[tokio::test]
async fn readiness_says_what_is_missing() {
    let synced = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&synced);
    let ready: Ready = Arc::new(move || match seen.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err("the caches are not synced".to_owned()),
    });
    let servers = start(anywhere(), ready).await.unwrap();
    let (head, _) = ask(servers.health_address, "/healthz").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let (head, body) = ask(servers.health_address, "/readyz").await;
    assert!(head.starts_with("http/1.1 503"), "{head}");
    assert_eq!(body, "the caches are not synced");
    synced.store(true, Ordering::Relaxed);
    let (head, _) = ask(servers.health_address, "/readyz").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
}

#[tokio::test]
async fn decisions_are_served_as_json() {
    let servers = start(anywhere(), Arc::new(|| Ok(()))).await.unwrap();
    let path = "/debug/decisions?about=web%2Fapi-1&limit=5";
    let (head, body) = ask(servers.metrics_address, path).await;
    assert!(head.contains("content-type: application/json"), "{head}");
    let found: Vec<Decision> = serde_json::from_str(&body).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].generation, 1);
    let (head, body) = ask(servers.metrics_address, "/debug/decisions?limit=x").await;
    assert!(head.starts_with("http/1.1 400"), "{head}");
    assert_eq!(body, "limit=x: not a number");
}

#[tokio::test]
async fn why_is_answered_with_what_was_decided_and_what_is() {
    let servers = start(anywhere(), Arc::new(|| Ok(()))).await.unwrap();
    let ask = async |path: &str| {
        let (head, body) = ask(servers.metrics_address, path).await;
        let code = head.split(' ').nth(1).unwrap().to_owned();
        (code, serde_json::from_str::<Value>(&body).unwrap())
    };
    // Decided about, and gone.
    for path in ["/debug/why/pod/web/api-1", "/debug/why/pod/api-1"] {
        let (code, answer) = ask(path).await;
        assert_eq!(code, "200");
        assert_eq!(answer["pod"], "web/api-1");
        assert_eq!(answer["receipts"][0]["outcome"], "unschedulable");
        assert_eq!(answer["receipts"][0]["reasons"][0], "there is no NodePool");
        assert!(answer.get("state").is_none());
    }
    // There, and not decided about.
    let (code, answer) = ask("/debug/why/pod/api-9").await;
    assert_eq!(code, "200");
    assert_eq!(answer["state"]["phase"], "Pending");
    assert!(
        answer["state"]["waitsFor"]
            .as_str()
            .unwrap()
            .contains("scheduler")
    );
    let (code, answer) = ask("/debug/why/pod/twin").await;
    assert_eq!(code, "409");
    assert_eq!(answer["all"], json!(["shop/twin", "web/twin"]));
    assert_eq!(ask("/debug/why/pod/shop/twin").await.0, "200");
    let (code, answer) = ask("/debug/why/pod/api").await;
    assert_eq!(code, "404");
    assert_eq!(answer["near"][0], "web/api-0");
    let (code, answer) = ask("/debug/why/node/x").await;
    assert_eq!((code.as_str(), &answer["what"]), ("404", &json!("node")));
}

#[tokio::test]
async fn decisions_are_not_shown_under_a_strange_name() {
    let servers = start(anywhere(), Arc::new(|| Ok(()))).await.unwrap();
    let address = servers.metrics_address;
    for path in ["/debug/decisions", "/debug/why/pod/web/api-1"] {
        for host in ["evil.example", "evil.example:8080", "10.0.0.5"] {
            let (head, body) = ask_as(address, host, path).await;
            assert!(head.starts_with("http/1.1 403"), "{host} {path}: {head}");
            assert!(
                body.contains("under the name") && body.contains("--debug-hosts"),
                "{body}"
            );
            assert!(!body.contains("api-1"), "{body}");
        }
        for host in ["localhost", "127.0.0.1:8080", "[::1]:8080"] {
            let (head, _) = ask_as(address, host, path).await;
            assert!(head.starts_with("http/1.1 200"), "{host} {path}: {head}");
        }
    }
    // Each of two names counts, and so does the one in the path.
    let two = "GET /debug/decisions HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n               connection: close\r\n\r\n";
    let absolute = "GET http://evil.example/debug/decisions HTTP/1.1\r\nhost: localhost\r\n                    connection: close\r\n\r\n";
    let none = "GET /debug/decisions HTTP/1.0\r\n\r\n";
    for request in [two, absolute, none] {
        let (head, _) = send(address, request.as_bytes()).await;
        assert!(
            head.contains(" 403 ") || head.contains(" 400 "),
            "{request}: {head}"
        );
    }
    // Metrics hold no secrets, and scrapers have names of their own for us.
    let (head, _) = ask_as(address, "joiner.scaling.svc:8080", "/metrics").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
}

#[tokio::test]
async fn names_that_are_given_are_answered() {
    let settings = HttpSettings {
        debug_hosts: vec!["joiner.example".to_owned()],
        ..anywhere()
    };
    let servers = start(settings, Arc::new(|| Ok(()))).await.unwrap();
    for (host, code) in [("joiner.example:8080", 200), ("evil.example", 403)] {
        let (head, _) = ask_as(servers.metrics_address, host, "/debug/decisions").await;
        assert!(
            head.starts_with(&format!("http/1.1 {code}")),
            "{host}: {head}"
        );
    }
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let servers = start(anywhere(), Arc::new(|| Ok(()))).await.unwrap();
    for address in [servers.metrics_address, servers.health_address] {
        let mut known =
            b"POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n".to_vec();
        known.resize(known.len() + 100_000, b'x');
        let mut pieces =
            b"POST /metrics HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for _ in 0..10 {
            pieces.extend(format!("{:x}\r\n{}\r\n", 10_000, "x".repeat(10_000)).as_bytes());
        }
        let endless = b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\nx".to_vec();
        for request in [known, pieces, endless] {
            let (head, body) = send(address, &request).await;
            assert!(head.starts_with("http/1.1 413"), "{head}");
            assert_eq!(body, "the body is larger than 65536 bytes");
        }
        let (head, _) = send(
            address,
            b"POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nconnection: close\r\n\r\nxx",
        )
        .await;
        assert!(!head.starts_with("http/1.1 413"), "{head}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_its_flag() {
    let taken = TcpListener::bind((LOCAL, 0)).await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let settings = HttpSettings {
        health_port: port,
        ..anywhere()
    };
    let error = start(settings, Arc::new(|| Ok(()))).await.unwrap_err();
    let expected =
        format!("port {port} for health is taken: choose another one with --health-probe-port");
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn nobody_is_served_after_the_end() {
    let servers = start(anywhere(), Arc::new(|| Ok(()))).await.unwrap();
    let address = servers.metrics_address;
    servers.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[test]
fn queries_are_bounded_and_checked() {
    assert_eq!(parse("").unwrap().limit, Some(DECISIONS_MAX));
    assert_eq!(parse("limit=999999").unwrap().limit, Some(DECISIONS_MAX));
    let query = parse("kind=launch&since=2026-01-01T00:00:00Z").unwrap();
    assert_eq!(query.kind.as_deref(), Some("launch"));
    assert!(query.since.is_some());
    assert!(
        parse("since=yesterday")
            .unwrap_err()
            .starts_with("since=yesterday")
    );
    assert_eq!(
        parse("x=1").unwrap_err(),
        "x: use about, kind, since or limit"
    );
}
