//! Whatever a client sends, the answer is one of the API's errors, and the server goes on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use joiner_runtime::Clock;
use joiner_sandbox::exchange::{Body, Reply, Request, User};
use joiner_sandbox::server::Server;
use joiner_sandbox::{Sandbox, Settings, serve};
use proptest::prelude::*;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn sandbox() -> Sandbox {
    let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
    Sandbox::start(clock, &Settings::default()).unwrap()
}

fn request(method: &str, target: &str, media: &str, body: impl Into<Bytes>) -> Request {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = HeaderMap::new();
    if let Ok(media) = HeaderValue::from_str(media) {
        headers.insert("content-type", media);
    }
    let query = form_urlencoded::parse(query.as_bytes());
    Request {
        method: Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET),
        path: path.to_owned(),
        query: query.into_owned().collect(),
        headers,
        body: body.into(),
        user: User::administrator(),
    }
}

fn send(server: &Arc<Server>, method: &str, target: &str, body: impl Into<Bytes>) -> Reply {
    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    server.handle(&request(method, target, media, body))
}

/// An error must say what it is; nothing may be a bug of ours.
fn check(reply: &Reply, what: &str) -> Value {
    let Body::Full(body) = &reply.body else {
        return Value::Null;
    };
    let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let text = String::from_utf8_lossy(body);
    assert_ne!(value["reason"], "InternalError", "{what}: {text}");
    if reply.status.is_client_error() && reply.content_type == "application/json" {
        assert_eq!(value["kind"], "Status", "{what}: {text}");
        assert_eq!(value["code"], reply.status.as_u16(), "{what}: {text}");
        assert!(value["message"].is_string(), "{what}: {text}");
    }
    value
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "x"}]}})
}

fn is_alive(server: &Arc<Server>) -> bool {
    send(server, "GET", "/api/v1/nodes", "").status == StatusCode::OK
}

#[tokio::test(start_paused = true)]
async fn mistakes_get_the_errors_of_the_api() {
    let sandbox = sandbox();
    let server = sandbox.server();
    assert_eq!(send(server, "POST", PODS, pod("p").to_string()).status, 201);
    let one = &format!("{PODS}/p");
    let nested = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let deep = format!(
        "{{\"metadata\":{{\"name\":\"q\"}},\"spec\":{}}}",
        nested(100_000)
    );
    let fat = |bytes: usize| {
        let data = "x".repeat(bytes);
        json!({"metadata": {"name": "fat"}, "data": {"a": data}}).to_string()
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    for (method, path, body, status) in [
        ("POST", PODS, String::new(), 400),
        ("POST", PODS, "{".to_owned(), 400),
        ("POST", PODS, "[]".to_owned(), 400),
        ("POST", PODS, "null".to_owned(), 400),
        ("POST", PODS, "{\"kind\": \"Node\"}".to_owned(), 400),
        ("POST", PODS, "{\"metadata\": 5}".to_owned(), 400),
        (
            "POST",
            PODS,
            "{\"metadata\": {\"name\": {}}}".to_owned(),
            400,
        ),
        (
            "POST",
            PODS,
            "{\"metadata\": {\"labels\": []}}".to_owned(),
            400,
        ),
        ("POST", PODS, deep, 400),
        ("POST", maps, fat(1600 * 1024), 422),
        ("PATCH", one, "{".to_owned(), 400),
        ("PATCH", one, nested(200), 400),
        ("PUT", one, "{}".to_owned(), 422),
        ("GET", "/api/v1/unicorns", String::new(), 404),
        ("POST", "/apis/joiner.dev/v1/unicorns", "{}".to_owned(), 404),
        (
            "GET",
            "/api/v1/pods?labelSelector=a%20in%20(",
            String::new(),
            400,
        ),
        (
            "GET",
            "/api/v1/pods?fieldSelector=%3D%3D",
            String::new(),
            400,
        ),
        ("GET", "/api/v1/pods?continue=zz", String::new(), 400),
        ("GET", "/api/v1/pods?resourceVersion=x", String::new(), 400),
        ("POST", "/api/v1/nodes/n", "{}".to_owned(), 405),
        ("BREW", PODS, String::new(), 405),
    ] {
        let what: String = format!("{method} {path} {body}").chars().take(90).collect();
        let reply = send(server, method, path, body);
        check(&reply, &what);
        let code = reply.status.as_u16();
        // Which of the two a wrong type or a missing field gets depends on who finds it first.
        let fine =
            code == status || (status == 400 || status == 422) && (code == 400 || code == 422);
        assert!(fine, "{what}: {code}, not {status}");
    }
    assert!(is_alive(server));
}

#[tokio::test(start_paused = true)]
async fn patches_that_make_no_sense_change_nothing() {
    let sandbox = sandbox();
    let server = sandbox.server();
    send(server, "POST", PODS, pod("p").to_string());
    let one = format!("{PODS}/p");
    let before = check(&send(server, "GET", &one, ""), "get");
    for (media, patch) in [
        ("application/json-patch+json", "{}"),
        (
            "application/json-patch+json",
            r#"[{"op":"fly","path":"/metadata"}]"#,
        ),
        (
            "application/json-patch+json",
            r#"[{"op":"remove","path":"/metadata"}]"#,
        ),
        (
            "application/json-patch+json",
            r#"[{"op":"replace","path":"","value":5}]"#,
        ),
        (
            "application/json-patch+json",
            r#"[{"op":"add","path":"/metadata/labels","value":7}]"#,
        ),
        (
            "application/json-patch+json",
            r#"[{"op":"replace","path":"/spec/containers","value":{}}]"#,
        ),
        ("application/merge-patch+json", "[]"),
        ("application/merge-patch+json", r#"{"metadata":7}"#),
        ("application/merge-patch+json", r#"{"metadata":null}"#),
        ("application/merge-patch+json", r#"{"spec":null}"#),
        ("application/strategic-merge-patch+json", "7"),
        (
            "application/strategic-merge-patch+json",
            r#"{"spec":{"containers":7}}"#,
        ),
        (
            "application/strategic-merge-patch+json",
            r#"{"spec":{"containers":[7]}}"#,
        ),
        (
            "application/strategic-merge-patch+json",
            r#"{"spec":{"$patch":"fly"}}"#,
        ),
        ("application/apply-patch+yaml", "&a [*a]"),
        ("application/apply-patch+yaml", "metadata: 7"),
        ("application/fruit", "{}"),
        ("", "{}"),
    ] {
        let target = format!("{one}?fieldManager=me");
        let reply = server.handle(&request("PATCH", &target, media, patch));
        check(&reply, &format!("{media} {patch}"));
    }
    let after = check(&send(server, "GET", &one, ""), "get");
    assert_eq!(before["spec"], after["spec"]);
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_text_are_refused() {
    let sandbox = sandbox();
    let server = sandbox.server();
    let junk: &[u8] = b"{\"metadata\":{\"name\":\"\xff\xfe\"}}";
    for media in [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ] {
        let reply = server.handle(&request("POST", PODS, media, junk));
        check(&reply, media);
        assert!(reply.status.is_client_error(), "{media}");
    }
    for target in [
        "/api/v1/namespaces/%FF/pods/%00",
        "/api/v1/pods?labelSelector=%FF%FE",
    ] {
        let reply = send(server, "GET", target, "");
        check(&reply, target);
        assert!(reply.status.is_client_error(), "{target}");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_nest_too_deeply_are_refused() {
    let sandbox = sandbox();
    let server = sandbox.server();
    send(server, "POST", PODS, pod("p").to_string());
    let pools = "/apis/karpenter.sh/v1/nodepools";
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for n in [128, 1_000, 10_000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(n), close.repeat(n));
            let body = format!("{{\"metadata\":{{\"name\":\"q\"}},\"spec\":{deep}}}");
            for (method, path, media) in [
                ("POST", PODS.to_owned(), "application/json"),
                ("POST", PODS.to_owned(), "application/yaml"),
                ("POST", pools.to_owned(), "application/json"),
                ("POST", crds.to_owned(), "application/json"),
                ("PUT", format!("{PODS}/p"), "application/json"),
                ("DELETE", format!("{PODS}/p"), "application/json"),
                ("POST", format!("{PODS}/p/eviction"), "application/json"),
                ("PATCH", format!("{PODS}/p"), "application/merge-patch+json"),
                (
                    "PATCH",
                    format!("{PODS}/p"),
                    "application/strategic-merge-patch+json",
                ),
                ("PATCH", format!("{PODS}/p"), "application/json-patch+json"),
                (
                    "PATCH",
                    format!("{PODS}/p?fieldManager=me"),
                    "application/apply-patch+yaml",
                ),
            ] {
                let what = format!("{method} {path} {media} {n}");
                let reply = server.handle(&request(method, &path, media, body.clone()));
                assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{what}");
                check(&reply, &what);
            }
        }
    }
    assert!(is_alive(server));
}

#[tokio::test(start_paused = true)]
async fn every_refusal_is_a_status() {
    let sandbox = sandbox();
    let server = sandbox.server();
    send(server, "POST", PODS, pod("p").to_string());
    let pools = "/apis/karpenter.sh/v1/nodepools";
    let long = "x".repeat(300);
    let named = |metadata: Value| json!({"metadata": metadata}).to_string();
    let maps = "/api/v1/namespaces/default/configmaps";
    for (method, path, media, body, code) in [
        ("POST", maps, "text/csv", "a,b".to_owned(), 415),
        ("POST", pools, "text/csv", "a,b".to_owned(), 415),
        ("PATCH", "/api/v1/nodes/n", "text/csv", "{}".to_owned(), 415),
        (
            "PATCH",
            "/apis/karpenter.sh/v1/nodepools/x",
            "application/strategic-merge-patch+json",
            "{}".to_owned(),
            415,
        ),
        (
            "POST",
            pools,
            "application/vnd.kubernetes.protobuf",
            "k8s\0".to_owned(),
            400,
        ),
        ("POST", maps, "", named(json!({"name": long})), 422),
        ("POST", maps, "", named(json!({"name": "a/b"})), 422),
        ("POST", maps, "", named(json!({"generateName": "-"})), 422),
        (
            "POST",
            maps,
            "",
            named(json!({"name": "a", "labels": {"a b": "c"}})),
            422,
        ),
        (
            "POST",
            maps,
            "",
            named(json!({"name": "a", "resourceVersion": "x"})),
            500,
        ),
        (
            "POST",
            maps,
            "",
            "{\"metadata\":{\"name\":\"a\"},\"data\":1e999}".to_owned(),
            400,
        ),
        ("GET", "/api/v1/pods?limit=x", "", String::new(), 400),
        (
            "GET",
            "/api/v1/pods?resourceVersion=-1",
            "",
            String::new(),
            400,
        ),
        (
            "GET",
            "/api/v1/pods?resourceVersion=99999999",
            "",
            String::new(),
            504,
        ),
        (
            "GET",
            "/api/v1/pods?labelSelector=!!a",
            "",
            String::new(),
            400,
        ),
        ("GET", "/api/v1/nodes/..", "", String::new(), 400),
        ("TRACE", PODS, "", String::new(), 405),
    ] {
        let what: String = format!("{method} {path} {body}").chars().take(90).collect();
        let reply = server.handle(&request(method, path, media, body));
        assert_eq!(reply.status.as_u16(), code, "{what}");
        assert_eq!(check(&reply, &what)["kind"], "Status", "{what}");
    }
    let mut picky = request("GET", PODS, "", "");
    for accept in [
        "text/html",
        "application/xml",
        "application/*",
        "image/png;q=x",
    ] {
        let value = HeaderValue::from_static(accept);
        picky.headers.insert("accept", value);
        let reply = server.handle(&picky);
        assert_eq!(reply.status, StatusCode::NOT_ACCEPTABLE, "{accept}");
        check(&reply, accept);
    }
    assert!(is_alive(server));
}

#[tokio::test(start_paused = true)]
async fn large_maps_are_taken_up_to_the_limit() {
    let sandbox = sandbox();
    let server = sandbox.server();
    let labels: Value = (0..10_000).map(|n| (format!("k{n}"), json!("v"))).collect();
    let mut object = pod("many");
    object["metadata"]["labels"] = labels;
    assert_eq!(send(server, "POST", PODS, object.to_string()).status, 201);
    let selector = format!("{PODS}?labelSelector=k1%3Dv,k9999%3Dv");
    let list = check(&send(server, "GET", &selector, ""), "list");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    // An object that grows by patches meets the limit, too.
    let patch = |from: usize| {
        let more = (0..50_000).map(|n| (format!("a{}", from + n), json!("value")));
        json!({"metadata": {"labels": more.collect::<Value>()}}).to_string()
    };
    let one = format!("{PODS}/many");
    let mut replies = (0..4).map(|n| send(server, "PATCH", &one, patch(n * 50_000)));
    let last = check(&replies.nth(3).unwrap(), "a patch");
    // The words of the store behind a real API server.
    assert_eq!(last["message"], "etcdserver: request is too large");
    // The body of a request has a limit of its own.
    let body = Bytes::from(vec![b' '; 4 << 20]);
    let request = http::Request::post(PODS).body(http_body_util::Full::new(body));
    let response = serve::respond(server, request.unwrap()).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_requests_at_once() {
    let clock = Clock::system(1);
    let sandbox = Sandbox::start(clock, &Settings::default()).unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let tasks: Vec<_> = (0..10_000)
        .map(|n| {
            let server = Arc::clone(sandbox.server());
            tokio::spawn(async move {
                let object = json!({"metadata": {"name": format!("m{}", n / 2)}});
                let request = http::Request::post(maps)
                    .header("content-type", "application/json")
                    .body(http_body_util::Full::new(Bytes::from(object.to_string())))
                    .unwrap();
                serve::respond(&server, request).await.status().as_u16()
            })
        })
        .collect();
    let mut answers = std::collections::BTreeMap::new();
    for task in tasks {
        *answers.entry(task.await.unwrap()).or_insert(0) += 1;
    }
    assert_eq!(answers, [(201, 5_000), (409, 5_000)].into());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_nobody_reads_ends() {
    let sandbox = sandbox();
    let server = sandbox.server();
    let maps = "/api/v1/namespaces/default/configmaps";
    let watch = format!("{maps}?watch=true&resourceVersion=1");
    let request = http::Request::get(&watch).body(http_body_util::Empty::<Bytes>::new());
    let mut slow = serve::respond(server, request.unwrap()).await.into_body();
    for n in 0..2_000 {
        let object = json!({"metadata": {"name": format!("m{n}")}});
        assert_eq!(send(server, "POST", maps, object.to_string()).status, 201);
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut n_events = 0;
    while let Some(frame) = slow.frame().await {
        n_events += usize::from(frame.unwrap().is_data());
    }
    assert!(
        (1..1_000).contains(&n_events),
        "{n_events} events were kept"
    );
}

fn paths() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec![
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/services",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/events",
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/batch/v1/namespaces/default/cronjobs",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/karpenter.sh/v1/nodepools",
        "/openapi/v3",
    ]);
    let ends = prop::sample::select(vec![
        "",
        "/x",
        "/x/status",
        "/x/scale",
        "/x/binding",
        "/x/eviction",
        "/x/log",
        "/x/finalize",
    ]);
    let queries = "(\\?[a-zA-Z]{0,8}=[ -~]{0,8})?";
    prop_oneof![
        8 => (kinds, ends, queries).prop_map(|(kind, end, query)| format!("{kind}{end}{query}")),
        1 => "/[ -~]{0,40}",
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z%:/]{0,6}".prop_map(Value::from),
        Just(json!("x")),
    ];
    let keys = prop::sample::select(vec![
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "spec",
        "status",
        "containers",
        "template",
        "selector",
        "matchLabels",
        "replicas",
        "ports",
        "finalizers",
        "ownerReferences",
        "managedFields",
        "resourceVersion",
        "generateName",
        "target",
        "versions",
        "schema",
        "conditions",
        "gracePeriodSeconds",
        "preconditions",
        "op",
        "path",
        "value",
        "data",
        "metrics",
        "names",
        "rules",
        "schedule",
        "jobTemplate",
    ]);
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => prop::collection::btree_map(keys.clone(), inner, 0..6)
                .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

/// An object that gets past the first checks, with something strange in it.
fn objects() -> impl Strategy<Value = Value> {
    let fields = prop::sample::select(vec!["spec", "status", "metadata", "data", "target"]);
    (fields, values()).prop_map(|(field, value)| {
        let mut object = pod("x");
        object["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
        object
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key != "kind" && key != "apiVersion");
        if field == "metadata" && value.is_object() {
            let map = value.as_object().unwrap().clone();
            object["metadata"].as_object_mut().unwrap().extend(map);
        } else {
            object[field] = value;
        }
        object
    })
}

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 0..200),
        3 => values().prop_map(|value| value.to_string().into_bytes()),
        5 => objects().prop_map(|value| value.to_string().into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]
    #[test]
    fn no_request_is_a_panic(requests in prop::collection::vec((paths(), bodies(), 0..7_usize, 0..9_usize), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = Arc::new(Server::new(Clock::new(Timestamp::UNIX_EPOCH, 1), 0));
            let default = json!({"metadata": {"name": "default"}}).to_string();
            assert_eq!(send(&server, "POST", "/api/v1/namespaces", default).status, 201);
            for (target, body, method, media) in requests {
                let method = ["GET", "POST", "PUT", "PATCH", "DELETE", "POST", "PATCH"][method];
                let media = [
                    "application/json", "application/json", "application/yaml",
                    "application/vnd.kubernetes.protobuf", "application/json-patch+json",
                    "application/merge-patch+json", "application/strategic-merge-patch+json",
                    "application/apply-patch+yaml", "text/html",
                ][media];
                let text = String::from_utf8_lossy(&body).into_owned();
                let target = if media.contains("apply") && !target.contains('?') {
                    format!("{target}?fieldManager=me")
                } else {
                    target
                };
                let reply = server.handle(&request(method, &target, media, body));
                check(&reply, &format!("{method} {target} {media} {text}"));
            }
        });
    }
}
