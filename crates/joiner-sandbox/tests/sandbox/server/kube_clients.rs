//! Clients made with kube work on the server as on any other, whatever happens to their watches.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use joiner_runtime::Clock;
use joiner_sandbox::certificates::Certificates;
use joiner_sandbox::server::Server;
use joiner_sandbox::store::Inner;
use joiner_sandbox::{Sandbox, Settings, kubeconfig, serve};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};

fn sandbox() -> Sandbox {
    let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
    Sandbox::start(clock, &Settings::default()).unwrap()
}

fn map(name: &str) -> ConfigMap {
    let map = json!({"metadata": {"name": name, "labels": {"kept": "yes"}}});
    serde_json::from_value(map).unwrap()
}

async fn make(api: &Api<ConfigMap>, name: &str) {
    api.create(&PostParams::default(), &map(name))
        .await
        .unwrap();
}

/// A client whose watches are interfered with: `before` runs as one starts.
fn meddled(server: &Arc<Server>, before: impl Fn(usize) + Send + Sync + 'static) -> Client {
    let server = Arc::clone(server);
    let before = Arc::new(before);
    let n_watches = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (server, before) = (Arc::clone(&server), Arc::clone(&before));
        if request.uri().query().unwrap_or("").contains("watch=true") {
            before(n_watches.fetch_add(1, Ordering::Relaxed));
        }
        async move { Ok::<_, Infallible>(serve::respond(&server, request).await) }
    });
    Client::new(service, "default")
}

/// A cache that follows config maps, and how often it started anew.
fn follow(client: Client, config: watcher::Config) -> (Store<ConfigMap>, Arc<AtomicUsize>) {
    let (reader, writer) = reflector::store();
    let n_inits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&n_inits);
    let events = watcher(
        Api::namespaced(client, "default"),
        config.labels("kept=yes"),
    );
    let events = events.default_backoff().inspect_ok(move |event| {
        if matches!(event, watcher::Event::Init) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let run = reflector::reflector(writer, events).for_each(|_| async {});
    tokio::spawn(run);
    (reader, n_inits)
}

fn names(store: &Store<ConfigMap>) -> BTreeSet<String> {
    store.state().iter().map(|map| map.name_any()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn caches_survive_watches_that_end() {
    for config in [
        watcher::Config::default().timeout(20),
        watcher::Config::default().timeout(20).streaming_lists(),
        watcher::Config::default().timeout(20).page_size(1),
    ] {
        let sandbox = sandbox();
        let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
        make(&api, "one").await;
        make(&api, "two").await;
        let (cache, n_inits) = follow(sandbox.client(), config);
        cache.wait_until_ready().await.unwrap();
        assert_eq!(names(&cache), set(&["one", "two"]));
        for n in 0..10 {
            make(&api, &format!("later-{n}")).await;
            tokio::time::sleep(Duration::from_secs(15)).await;
        }
        api.delete("one", &Default::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(names(&cache).len(), 11);
        assert!(!names(&cache).contains("one"));
        assert_eq!(n_inits.load(Ordering::Relaxed), 1, "no change was missed");
    }
}

#[tokio::test(start_paused = true)]
async fn caches_start_anew_after_a_compaction() {
    let sandbox = sandbox();
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    make(&api, "one").await;
    let server = Arc::clone(sandbox.server());
    let client = meddled(sandbox.server(), move |n| {
        // The third watch starts from a revision that has just been forgotten.
        if n == 2 {
            let resource = (String::new(), "configmaps".to_owned());
            let key = |name: &str| ("default".to_owned(), name.to_owned());
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata":
                {"name": "two", "namespace": "default", "labels": {"kept": "yes"}}});
            server.store().with(|s| {
                s.remove(&resource, &key("one"));
                s.put(&resource, &key("two"), object);
                s.compact();
            });
        }
    });
    let (cache, n_inits) = follow(client, watcher::Config::default().timeout(20));
    cache.wait_until_ready().await.unwrap();
    assert_eq!(names(&cache), set(&["one"]));
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(names(&cache), set(&["two"]));
    assert_eq!(n_inits.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_move_idle_watches_on() {
    let sandbox = sandbox();
    let api: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let now = api.list(&ListParams::default()).await.unwrap();
    let version = now.metadata.resource_version.unwrap();
    let params = WatchParams::default().timeout(100);
    let mut events = api.watch(&params, &version).await.unwrap().boxed();
    // Leases are renewed meanwhile: the bookmark is past them.
    let Some(WatchEvent::Bookmark(mark)) = events.try_next().await.unwrap() else {
        panic!("a bookmark comes first");
    };
    let number = |text: &str| text.parse::<u64>().unwrap();
    assert!(number(&mark.metadata.resource_version) > number(&version));
    assert!(events.try_next().await.unwrap().is_none(), "time is up");

    sandbox.server().store().with(Inner::compact);
    let mut events = api.watch(&params, &version).await.unwrap().boxed();
    let Some(WatchEvent::Error(status)) = events.try_next().await.unwrap() else {
        panic!("the version is gone");
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn controllers_reconcile() {
    let sandbox = sandbox();
    let client = sandbox.client();
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    make(&api, "one").await;
    let config = watcher::Config::default().labels("kept=yes").timeout(30);
    let reconcile = |map: Arc<ConfigMap>, api: Arc<Api<ConfigMap>>| async move {
        let patch = json!({"data": {"seen": map.name_any()}});
        let patch = kube::api::Patch::Merge(patch);
        api.patch(&map.name_any(), &Default::default(), &patch)
            .await?;
        Ok::<_, kube::Error>(Action::await_change())
    };
    let run = Controller::new(api.clone(), config)
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(api.clone()),
        )
        .for_each(|_| async {});
    let task = tokio::spawn(run);
    tokio::time::sleep(Duration::from_secs(100)).await;
    make(&api, "two").await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    for name in ["one", "two"] {
        let data = api.get(name).await.unwrap().data.unwrap();
        assert_eq!(data["seen"], name);
    }
    task.abort();
}

/// Tries to hold a lease, and renews it, until it is aborted.
async fn lead(client: Client, clock: Clock, name: &'static str) {
    let api: Api<Lease> = Api::default_namespaced(client);
    loop {
        let now = clock.now();
        let spec = json!({"holderIdentity": name, "leaseDurationSeconds": 15,
            "renewTime": format!("{now:.6}")});
        let lease = |version: Value| -> Lease {
            let metadata = json!({"name": "leader", "resourceVersion": version});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        match api.get_opt("leader").await.unwrap() {
            None => {
                // The other one may be faster.
                let _ = api
                    .create(&PostParams::default(), &lease(Value::Null))
                    .await;
            }
            Some(old) => {
                let version = json!(old.resource_version());
                let old = old.spec.unwrap();
                let expires = old.renew_time.unwrap().0.as_second() + 15;
                if old.holder_identity.as_deref() == Some(name) || expires <= now.as_second() {
                    let params = PostParams::default();
                    let _ = api.replace("leader", &params, &lease(version)).await;
                }
            }
        }
        clock.sleep(Duration::from_secs(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_over() {
    let sandbox = sandbox();
    let clock = sandbox.server().clock().clone();
    let api: Api<Lease> = Api::default_namespaced(sandbox.client());
    let holder = || async {
        let lease = api.get("leader").await.unwrap();
        lease.spec.unwrap().holder_identity.unwrap()
    };
    let first = tokio::spawn(lead(sandbox.client(), clock.clone(), "first"));
    clock.sleep(Duration::from_millis(10)).await;
    let second = tokio::spawn(lead(sandbox.client(), clock.clone(), "second"));
    clock.sleep(Duration::from_hours(1)).await;
    assert_eq!(holder().await, "first");
    first.abort();
    clock.sleep(Duration::from_secs(10)).await;
    assert_eq!(holder().await, "first", "the lease has not run out yet");
    clock.sleep(Duration::from_secs(10)).await;
    assert_eq!(holder().await, "second");
    second.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_handed_over_and_lost() {
    let sandbox = sandbox();
    let clock = sandbox.server().clock().clone();
    let api: Api<Lease> = Api::default_namespaced(sandbox.client());
    let holder = || async {
        let lease = api.get("leader").await.unwrap();
        lease.spec.unwrap().holder_identity.unwrap_or_default()
    };
    let first = tokio::spawn(lead(sandbox.client(), clock.clone(), "first"));
    clock.sleep(Duration::from_secs(3)).await;
    let known = api.get("leader").await.unwrap();
    // The first gives it up, and the second need not wait until it runs out.
    first.abort();
    let past = Timestamp::UNIX_EPOCH - jiff::SignedDuration::from_secs(60);
    let given_up = json!({"spec": {"holderIdentity": null, "renewTime": format!("{past:.6}")}});
    let patch = kube::api::Patch::Merge(given_up);
    api.patch("leader", &Default::default(), &patch)
        .await
        .unwrap();
    let second = tokio::spawn(lead(sandbox.client(), clock.clone(), "second"));
    clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(holder().await, "second");
    // The first comes back with what it knew: it is told, and does not lead.
    let params = PostParams::default();
    let error = api.replace("leader", &params, &known).await.unwrap_err();
    let kube::Error::Api(status) = error else {
        panic!("{error}");
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let first = tokio::spawn(lead(sandbox.client(), clock.clone(), "first"));
    clock.sleep(Duration::from_hours(1)).await;
    assert_eq!(holder().await, "second");
    // When the second is lost, the first takes over.
    second.abort();
    clock.sleep(Duration::from_secs(20)).await;
    assert_eq!(holder().await, "first");
    first.abort();
}

/// GETs a path over TLS with the protocol that is asked for; returns version, status and body.
async fn get(
    door: &serve::Door,
    ca_pem: &str,
    alpn: &str,
    path: &str,
    token: Option<&str>,
) -> (http::Version, u16, String) {
    let mut roots = rustls::RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let tcp = tokio::net::TcpStream::connect(door.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let io = TokioIo::new(connector.connect(name, tcp).await.unwrap());
    let mut request = http::Request::get(format!("https://localhost{path}"));
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request
        .header("host", "localhost")
        .body(Full::<Bytes>::default())
        .unwrap();
    let response = if alpn == "h2" {
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    };
    let (version, status) = (response.version(), response.status().as_u16());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (version, status, String::from_utf8(body.to_vec()).unwrap())
}

/// Something between clients and the server that can cut all connections.
struct Proxy {
    address: std::net::SocketAddr,
    cuts: tokio::sync::watch::Sender<usize>,
}

impl Proxy {
    async fn start(to: std::net::SocketAddr) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = tokio::sync::watch::Sender::new(0);
        let all = cuts.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut cuts = all.subscribe();
                tokio::spawn(async move {
                    let mut server = tokio::net::TcpStream::connect(to).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Self { address, cuts }
    }

    fn cut(&self) {
        self.cuts.send_modify(|n| *n += 1);
    }
}

/// A cluster behind HTTPS, and a client that comes in through a proxy.
async fn behind_a_proxy() -> (Sandbox, serve::Door, Proxy, Client) {
    let sandbox = Sandbox::start(Clock::system(1), &Settings::default()).unwrap();
    let certificates = Certificates::make().unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = Arc::clone(sandbox.server());
    let door = serve::listen(server, any, &certificates, "secret".to_owned());
    let door = door.await.unwrap();
    let proxy = Proxy::start(door.address).await;
    let text = kubeconfig::render(proxy.address, &certificates.ca_pem, "secret");
    let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await;
    let client = Client::try_from(config.unwrap()).unwrap();
    (sandbox, door, proxy, client)
}

/// Waits for something to become true, though not forever.
async fn until<F: Future<Output = bool>>(what: &str, is_true: impl Fn() -> F) {
    let wait = async {
        while !is_true().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    assert!(waited.is_ok(), "waited for {what}");
}

#[tokio::test]
async fn caches_survive_connections_that_are_cut() {
    let (sandbox, _door, proxy, client) = behind_a_proxy().await;
    let api: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    make(&api, "one").await;
    let (listed, n_lists) = follow(client.clone(), watcher::Config::default());
    let streaming = watcher::Config::default().streaming_lists();
    let (streamed, _) = follow(client, streaming);
    listed.wait_until_ready().await.unwrap();
    streamed.wait_until_ready().await.unwrap();
    for n in 0..3 {
        // In the middle of a stream, and with news while nobody is connected.
        proxy.cut();
        make(&api, &format!("later-{n}")).await;
        for cache in [&listed, &streamed] {
            until("the news", || async { names(cache).len() == n + 2 }).await;
        }
    }
    assert_eq!(n_lists.load(Ordering::Relaxed), 1, "no change was missed");
    // What happened while nobody was connected is forgotten before they come back.
    proxy.cut();
    api.delete("one", &Default::default()).await.unwrap();
    make(&api, "last").await;
    sandbox.server().store().with(Inner::compact);
    for cache in [&listed, &streamed] {
        let is_there = || async { names(cache).contains("last") && !names(cache).contains("one") };
        until("a new start", is_there).await;
    }
}

#[tokio::test]
async fn controllers_survive_connections_that_are_cut() {
    let (sandbox, _door, proxy, client) = behind_a_proxy().await;
    let inside: Api<ConfigMap> = Api::default_namespaced(sandbox.client());
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let config = watcher::Config::default().labels("kept=yes");
    let reconcile = |map: Arc<ConfigMap>, api: Arc<Api<ConfigMap>>| async move {
        let patch = json!({"data": {"seen": map.name_any()}});
        let patch = kube::api::Patch::Merge(patch);
        api.patch(&map.name_any(), &Default::default(), &patch)
            .await?;
        Ok::<_, kube::Error>(Action::await_change())
    };
    let run = Controller::new(api.clone(), config)
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_millis(100)),
            Arc::new(api),
        )
        .for_each(|_| async {});
    let task = tokio::spawn(run);
    for n in 0..4 {
        let name = format!("map-{n}");
        make(&inside, &name).await;
        let is_seen = || async {
            let data = inside.get(&name).await.unwrap().data;
            data.is_some_and(|data| data["seen"] == name)
        };
        until("the controller", is_seen).await;
        proxy.cut();
        if n == 2 {
            sandbox.server().store().with(Inner::compact);
        }
    }
    task.abort();
}

#[tokio::test]
async fn watches_end_in_time_and_with_the_door() {
    let (_sandbox, door, _proxy, client) = behind_a_proxy().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let short = WatchParams::default().timeout(1);
    let mut events = api.watch(&short, "0").await.unwrap().boxed();
    while events.try_next().await.unwrap().is_some() {}

    let long = WatchParams::default().timeout(290);
    let mut events = api.watch(&long, "0").await.unwrap().boxed();
    let address = door.address;
    drop(door);
    // Whether as an end or as an error is up to the client.
    let wait = async { while let Some(Ok(_)) = events.next().await {} };
    let ended = tokio::time::timeout(Duration::from_secs(60), wait).await;
    assert!(ended.is_ok(), "the watch goes on without a server");
    let refused = tokio::net::TcpStream::connect(address).await;
    assert!(refused.is_err(), "the port is free again");
}

#[tokio::test]
async fn https_needs_the_token_and_speaks_both_versions() {
    let clock = Clock::system(1);
    let sandbox = Sandbox::start(clock, &Settings::default()).unwrap();
    let certificates = Certificates::make().unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = Arc::clone(sandbox.server());
    let door = serve::listen(server, any, &certificates, "secret".to_owned());
    let door = door.await.unwrap();
    let ca = &certificates.ca_pem;
    for (alpn, version) in [
        ("h2", http::Version::HTTP_2),
        ("http/1.1", http::Version::HTTP_11),
    ] {
        for (token, path, expected) in [
            (None, "/api/v1/nodes", 403),
            (Some("wrong"), "/api/v1/nodes", 401),
            (Some("secret"), "/api/v1/nodes", 200),
            (None, "/readyz", 200),
            (None, "/version", 200),
            (Some("secret"), "/version", 200),
            (Some("wrong"), "/version", 401),
            (Some("wrong"), "/readyz", 401),
        ] {
            let (spoken, status, body) = get(&door, ca, alpn, path, token).await;
            assert_eq!(
                (spoken, status),
                (version, expected),
                "{path} {token:?}: {body}"
            );
            if status > 400 {
                let body: Value = serde_json::from_str(&body).unwrap();
                let reason = if status == 401 {
                    "Unauthorized"
                } else {
                    "Forbidden"
                };
                assert_eq!(
                    (&body["kind"], &body["reason"]),
                    (&json!("Status"), &json!(reason))
                );
            }
        }
    }
    let text = kubeconfig::render(door.address, ca, "secret");
    let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await;
    let client = Client::try_from(config.unwrap()).unwrap();
    let (cache, _) = follow(client.clone(), watcher::Config::default().streaming_lists());
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    make(&api, "one").await;
    cache.wait_until_ready().await.unwrap();
    make(&api, "two").await;
    while names(&cache).len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(names(&cache), set(&["one", "two"]));
}
