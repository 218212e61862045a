//! Thousands of half-sent requests while probes and scrapes go on.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::tests::{anywhere, ask, start};
use super::*;

/// What the clients say that then say nothing more.
const HALVES: [&str; 4] = [
    "",
    "GET /metrics HTT",
    "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-",
    "POST /metrics HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf",
];
/// Connections of the crowd, and how many come between two questions in earnest.
const CROWD: usize = 5_000;
const AT_ONCE: usize = 100;

/// Files that this process may have open, where the system says so.
fn files_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    soft.and_then(|soft| soft.parse().ok()).unwrap_or(1_024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_requests_keep_nobody_from_probing_and_scraping() {
    let few = Limits {
        connections: 64,
        ..Limits::default()
    };
    let settings = HttpSettings {
        limits: few,
        health_limits: few,
        ..anywhere()
    };
    let servers = start(settings, Arc::new(|| Ok(()))).await.unwrap();
    let (metrics, health) = (servers.metrics_address, servers.health_address);
    // The server's side of each needs a file, too.
    let n_crowd = CROWD.min((files_max() / 2).saturating_sub(300));
    let mut crowd = Vec::new();
    while crowd.len() < n_crowd {
        for n in 0..AT_ONCE {
            let address = if n % 2 == 0 { metrics } else { health };
            let mut client = TcpStream::connect(address).await.unwrap();
            let half = HALVES[n / 2 % HALVES.len()];
            // One that has been closed meanwhile has had its turn.
            let _ = client.write_all(half.as_bytes()).await;
            crowd.push(client);
        }
        for (address, path) in [
            (metrics, "/metrics"),
            (health, "/healthz"),
            (health, "/readyz"),
        ] {
            let (head, _) = ask(address, path).await;
            assert!(
                head.starts_with("http/1.1 200"),
                "{path} after {}: {head}",
                crowd.len()
            );
        }
    }
    // All but as many as may be were closed.
    let n_kept = 2 * few.connections;
    let n_closed = crowd.len() - n_kept;
    for mut client in crowd.into_iter().take(n_closed) {
        let _ = client.read(&mut [0; 1]).await;
    }
}
