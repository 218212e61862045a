//! Several candidates, one leader: on the embedded control plane, in virtual time.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use joiner_runtime::{Clock, Election, ElectionSettings};
use joiner_sandbox::{Sandbox, Settings, serve};
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;

/// What happens to the requests of a candidate.
const FINE: u8 = 0;
/// The server is broken.
const REFUSED: u8 = 1;
/// Nobody answers.
const SILENT: u8 = 2;
/// What is written is written, but the answer is an error.
const ANSWER_LOST: u8 = 3;

/// A candidate with a line to the server that can be cut.
struct Candidate {
    election: Option<Election>,
    leading: watch::Receiver<bool>,
    line: Arc<AtomicU8>,
}

impl Candidate {
    fn new(sandbox: &Sandbox, clock: &Clock, name: &str) -> Self {
        let line = Arc::new(AtomicU8::new(FINE));
        let client = faulty(sandbox, &line);
        let settings = ElectionSettings::new("kube-system", format!("{name}_1"));
        let election = Election::start(client, clock.clone(), settings);
        Self {
            leading: election.leading(),
            election: Some(election),
            line,
        }
    }

    fn leads(&self) -> bool {
        // A candidate that died does not act, whatever it said last.
        self.election.is_some() && *self.leading.borrow()
    }

    fn cut(&self, how: u8) {
        self.line.store(how, Ordering::Relaxed);
    }
}

fn faulty(sandbox: &Sandbox, line: &Arc<AtomicU8>) -> Client {
    let (server, line) = (Arc::clone(sandbox.server()), Arc::clone(line));
    let service = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        let (server, line) = (Arc::clone(&server), line.load(Ordering::Relaxed));
        async move {
            if line == SILENT {
                std::future::pending::<()>().await;
            }
            let breaks = line == REFUSED || line == ANSWER_LOST && request.method() != "GET";
            if line == REFUSED {
                let nothing = http::Request::get("/version").body(kube::client::Body::empty());
                request = nothing.unwrap();
            }
            let mut answer = serve::respond(&server, request).await;
            if breaks {
                *answer.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
            }
            Ok::<_, Infallible>(answer)
        }
    });
    Client::new(service, "default")
}

/// The candidates, and the most leaders there ever were at a time.
struct World {
    sandbox: Sandbox,
    clock: Clock,
    candidates: Vec<Candidate>,
    n_leaders_max: usize,
}

impl World {
    fn new(n: usize) -> Self {
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
        let sandbox = Sandbox::start(clock.clone(), &Settings::default()).unwrap();
        let candidates = (0..n)
            .map(|n| Candidate::new(&sandbox, &clock, &format!("c{n}")))
            .collect();
        Self {
            sandbox,
            clock,
            candidates,
            n_leaders_max: 0,
        }
    }

    fn leader(&self) -> Option<usize> {
        self.candidates.iter().position(Candidate::leads)
    }

    /// Lets a while pass, in small steps, with an eye on how many lead.
    async fn pass(&mut self, secs: f64) {
        let end = self.clock.now() + Duration::from_secs_f64(secs);
        while self.clock.now() < end {
            self.clock.sleep(Duration::from_millis(20)).await;
            let n_leaders = self.candidates.iter().filter(|c| c.leads()).count();
            self.n_leaders_max = self.n_leaders_max.max(n_leaders);
        }
    }

    /// Seconds until somebody leads.
    async fn until_led(&mut self) -> f64 {
        let start = self.clock.now();
        while self.leader().is_none() {
            self.pass(0.02).await;
            assert!((self.clock.now().duration_since(start)).as_secs() < 120);
        }
        self.clock.now().duration_since(start).as_secs_f64()
    }

    async fn lease(&self) -> Value {
        let path =
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election";
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.sandbox.client().request(request).await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_three_leads_and_keeps_leading() {
    let mut world = World::new(3);
    assert!(world.until_led().await < 1.0);
    let leader = world.leader().unwrap();
    world.pass(300.0).await;
    assert_eq!(world.leader(), Some(leader));
    assert_eq!(world.n_leaders_max, 1);
    let lease = world.lease().await;
    assert_eq!(lease["spec"]["holderIdentity"], format!("c{leader}_1"));
    assert_eq!(lease["spec"]["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_back_changes_hands_in_seconds() {
    let mut world = World::new(3);
    world.until_led().await;
    for round in 1..=3 {
        world.pass(7.3).await;
        let leader = world.leader().unwrap();
        let election = world.candidates[leader].election.take().unwrap();
        election.release().await;
        assert!(!*world.candidates[leader].leading.borrow());
        assert_eq!(world.lease().await["spec"]["holderIdentity"], "");
        if round == 3 {
            break;
        }
        let secs = world.until_led().await;
        assert!(secs < 3.0, "{secs}");
        assert_eq!(world.lease().await["spec"]["leaseTransitions"], round);
    }
    assert_eq!(world.n_leaders_max, 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_is_followed_when_its_lease_has_run_out() {
    let mut world = World::new(2);
    world.until_led().await;
    world.pass(61.0).await;
    let leader = world.leader().unwrap();
    drop(world.candidates[leader].election.take());
    let secs = world.until_led().await;
    // Lease and one try; the last renewal may be as old as the time between two.
    assert!((10.0..15.0 + 2.4 + 0.1).contains(&secs), "{secs}");
    assert_ne!(world.leader(), Some(leader));
    assert_eq!(world.n_leaders_max, 1);
}

#[tokio::test(start_paused = true)]
async fn short_trouble_does_not_cost_the_lease() {
    for how in [REFUSED, SILENT, ANSWER_LOST] {
        let mut world = World::new(2);
        world.until_led().await;
        world.pass(30.0).await;
        let leader = world.leader().unwrap();
        for _ in 0..5 {
            world.candidates[leader].cut(how);
            world.pass(5.0).await;
            assert_eq!(world.leader(), Some(leader), "{how}");
            world.candidates[leader].cut(FINE);
            world.pass(5.0).await;
        }
        assert_eq!(world.leader(), Some(leader), "{how}");
        assert_eq!(world.lease().await["spec"]["leaseTransitions"], 0, "{how}");
        assert_eq!(world.n_leaders_max, 1, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_a_server_steps_down_before_the_next_takes_over() {
    for how in [REFUSED, SILENT] {
        let mut world = World::new(2);
        world.until_led().await;
        world.pass(30.0).await;
        let leader = world.leader().unwrap();
        world.candidates[leader].cut(how);
        world.pass(10.1).await;
        assert_eq!(world.leader(), None, "{how}");
        let secs = world.until_led().await;
        assert!(secs < 8.0, "{how}: {secs}");
        assert_ne!(world.leader(), Some(leader), "{how}");
        // Back again, it finds that another leads.
        world.candidates[leader].cut(FINE);
        world.pass(60.0).await;
        assert_eq!(world.leader(), Some(1 - leader), "{how}");
        assert_eq!(world.n_leaders_max, 1, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_leads_twice_while_all_lines_fail_at_odd_times() {
    let mut world = World::new(3);
    world.until_led().await;
    let mut n_led = 0;
    for n in 0_u32..80 {
        // A fixed sequence without a pattern that matches the timers.
        let draw = n.wrapping_mul(2_654_435_761) >> 16;
        let how = [FINE, REFUSED, SILENT, ANSWER_LOST, FINE][draw as usize % 5];
        world.candidates[draw as usize / 5 % 3].cut(how);
        world.pass(0.7 + f64::from(draw % 13) * 1.7).await;
        n_led += usize::from(world.leader().is_some());
    }
    assert_eq!(world.n_leaders_max, 1);
    assert!(n_led > 20, "{n_led}");
    for candidate in &world.candidates {
        candidate.cut(FINE);
    }
    world.pass(40.0).await;
    assert!(world.leader().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_does_not_keep_the_real_one_from_leading() {
    let mut world = World::new(1);
    let settings = ElectionSettings::new("kube-system", "dry_1".to_owned()).dry_run();
    let dry = Election::start(world.sandbox.client(), world.clock.clone(), settings);
    world.pass(10.0).await;
    assert_eq!(world.leader(), Some(0));
    assert!(*dry.leading().borrow());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_as_it_writes_gives_the_lease_back() {
    // The answer to the write that took the lease never came.
    let mut world = World::new(1);
    world.candidates[0].cut(ANSWER_LOST);
    world.clock.sleep(Duration::from_millis(500)).await;
    assert_eq!(world.leader(), None);
    world.candidates[0].cut(FINE);
    let election = world.candidates[0].election.take().unwrap();
    election.release().await;
    assert_eq!(world.lease().await["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn candidates_ask_every_few_seconds_only() {
    let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
    let sandbox = Sandbox::start(clock.clone(), &Settings::default()).unwrap();
    let n_requests = Arc::new(AtomicUsize::new(0));
    let (server, counted) = (Arc::clone(sandbox.server()), Arc::clone(&n_requests));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(serve::respond(&server, request).await) }
    });
    let client = Client::new(service, "default");
    let settings = ElectionSettings::new("kube-system", "a_1".to_owned());
    let _election = Election::start(client, clock.clone(), settings);
    clock.sleep(Duration::from_secs(100)).await;
    let n_requests = n_requests.load(Ordering::Relaxed);
    assert!((45..=55).contains(&n_requests), "{n_requests}");
}
