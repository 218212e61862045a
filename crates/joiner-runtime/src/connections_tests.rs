//! Servers whose clients keep them waiting. Limits are short, and nothing is said about how long anything
//! takes: only about what is there in the end.

use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::*;

const SOON: Duration = Duration::from_millis(50);
const NEVER: Duration = Duration::from_secs(3_600);
const PATIENT: Limits = Limits {
    connections: 8,
    head: NEVER,
    body: NEVER,
    idle: NEVER,
    answer: None,
};

/// A server that reads a body and says how long it was; `/wait` is not answered.
struct Served {
    address: SocketAddr,
    /// Requests that were seen.
    n_asked: Arc<AtomicUsize>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Served {
    fn start(limits: Limits) -> Self {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let n_asked = Arc::new(AtomicUsize::new(0));
        let asked = Arc::clone(&n_asked);
        let service = service_fn(move |request: Request<RequestBody>| {
            asked.fetch_add(1, Ordering::SeqCst);
            async move {
                if request.uri().path() == "/wait" {
                    std::future::pending::<()>().await;
                }
                if request.uri().path() == "/large" {
                    return Ok(Response::new(Full::new(Bytes::from(vec![0; 64 << 20]))));
                }
                let text = match request.into_body().collect().await {
                    Ok(body) => body.to_bytes().len().to_string(),
                    Err(error) => error.to_string(),
                };
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text))))
            }
        });
        let (stop, mut stopped) = watch::channel(false);
        let stopping = async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let task = tokio::spawn(serve(listener, limits, plain, service, stopping));
        Self {
            address,
            n_asked,
            stop,
            task,
        }
    }

    /// A client that has said this.
    async fn client(&self, words: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(words.as_bytes()).await.unwrap();
        client
    }

    /// What a client hears that asks in earnest.
    async fn ask(&self) -> String {
        let request = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        heard(self.client(request).await).await
    }

    async fn until_asked(&self, n: usize) {
        while self.n_asked.load(Ordering::SeqCst) < n {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// What comes until the connection ends.
async fn heard(mut client: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset has ended, too.
    let _ = client.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_answered(heard: &str) -> bool {
    heard.starts_with("HTTP/1.1 200")
}

#[tokio::test]
async fn clients_that_keep_a_server_waiting_are_left() {
    let half = "GET / HTTP/1.1\r\nho";
    let no_body = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab";
    let whole = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let waits = "GET /wait HTTP/1.1\r\nhost: x\r\n\r\n";
    let cases = [
        (
            Limits {
                head: SOON,
                ..PATIENT
            },
            "",
            "",
        ),
        (
            Limits {
                head: SOON,
                ..PATIENT
            },
            half,
            "",
        ),
        (
            Limits {
                body: SOON,
                idle: SOON,
                ..PATIENT
            },
            no_body,
            "the body takes too long",
        ),
        (
            Limits {
                idle: SOON,
                ..PATIENT
            },
            whole,
            "\r\n\r\n0",
        ),
        (
            Limits {
                answer: Some(SOON),
                ..PATIENT
            },
            waits,
            "",
        ),
    ];
    for (limits, words, end) in cases {
        let served = Served::start(limits);
        let client = served.client(words).await;
        let heard = heard(client).await;
        assert!(heard.ends_with(end), "{words:?}: {heard:?}");
        assert_eq!(heard.is_empty(), end.is_empty(), "{words:?}: {heard:?}");
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_left() {
    let served = Served::start(Limits {
        body: SOON,
        ..PATIENT
    });
    let client = served
        .client("GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    served.until_asked(1).await;
    tokio::time::sleep(SOON * 4).await;
    let heard = heard(client).await;
    assert!(heard.len() < 64 << 20, "{}", heard.len());
}

#[tokio::test]
async fn whoever_waits_longest_makes_room() {
    for words in [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab",
        "GET /large HTTP/1.1\r\nhost: x\r\n\r\n",
    ] {
        let served = Served::start(PATIENT);
        let mut others = Vec::new();
        for _ in 0..3 * PATIENT.connections {
            others.push(served.client(words).await);
        }
        for _ in 0..3 {
            let heard = served.ask().await;
            assert!(is_answered(&heard), "after {words:?}: {heard:?}");
        }
        // Of those that came first none is left.
        for other in others.drain(..PATIENT.connections) {
            heard(other).await;
        }
    }
}

#[tokio::test]
async fn whoever_is_being_answered_stays() {
    let served = Served::start(Limits {
        connections: 2,
        ..PATIENT
    });
    let mut first = served.client("GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
    served.until_asked(1).await;
    for n in 0..5 {
        let _idle = served.client("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        served.until_asked(2 + 2 * n).await;
        assert!(is_answered(&served.ask().await));
    }
    let mut byte = [0; 1];
    assert!(
        first
            .try_read(&mut byte)
            .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    );
    // With both places taken by work, a third waits until one is done.
    let second = served.client("GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
    served.until_asked(12).await;
    let third = served
        .client("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await;
    tokio::time::sleep(SOON).await;
    assert_eq!(served.n_asked.load(Ordering::SeqCst), 12);
    drop(second);
    assert!(is_answered(&heard(third).await));
    assert!(first.write_all(b"x").await.is_ok());
}

#[tokio::test]
async fn the_end_waits_for_answers_and_not_for_clients() {
    let served = Served::start(PATIENT);
    let half = served.client("GET / HTTP/1.1\r\nho").await;
    let idle = served.client("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    served.until_asked(1).await;
    let mut slow = served
        .client("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nab")
        .await;
    served.until_asked(2).await;
    served.stop.send_replace(true);
    heard(half).await;
    heard(idle).await;
    slow.write_all(b"c").await.unwrap();
    let heard = heard(slow).await;
    assert!(heard.ends_with("\r\n\r\n3"), "{heard:?}");
    served.task.await.unwrap();
    assert!(TcpStream::connect(served.address).await.is_err());
}
