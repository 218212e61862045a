//! What clients rely on over several requests: pages of one list, and the end of a definition.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;
use joiner_runtime::Clock;
use joiner_sandbox::exchange::{Body, Reply, Request, User};
use joiner_sandbox::server::Server;
use joiner_sandbox::store::Inner;
use joiner_sandbox::{Sandbox, Settings};
use serde_json::{Value, json};

fn sandbox() -> Sandbox {
    let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
    Sandbox::start(clock, &Settings::default()).unwrap()
}

fn send(server: &Arc<Server>, method: &str, target: &str, body: impl Into<Bytes>) -> Reply {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let query = form_urlencoded::parse(query.as_bytes());
    server.handle(&Request {
        method: Method::from_bytes(method.as_bytes()).unwrap(),
        path: path.to_owned(),
        query: query.into_owned().collect(),
        headers: HeaderMap::from_iter([(
            http::header::CONTENT_TYPE,
            HeaderValue::from_static(media),
        )]),
        body: body.into(),
        user: User::administrator(),
    })
}

fn value(reply: &Reply) -> Value {
    let Body::Full(body) = &reply.body else {
        return Value::Null;
    };
    serde_json::from_slice(body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn pages_belong_together() {
    let sandbox = sandbox();
    let server = sandbox.server();
    let maps = "/api/v1/namespaces/default/configmaps";
    let make = |name: &str| {
        let object = json!({"metadata": {"name": name}}).to_string();
        assert_eq!(send(server, "POST", maps, object).status, 201);
    };
    let list = |query: &str| value(&send(server, "GET", &format!("{maps}?{query}"), ""));
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        items
            .iter()
            .map(name)
            .filter(|n| n.starts_with("m-"))
            .collect()
    };
    for name in ["m-b", "m-c", "m-d"] {
        make(name);
    }
    let mut page = list("limit=1");
    while names(&page) != ["m-b"] {
        let token = page["metadata"]["continue"].as_str().unwrap();
        page = list(&format!("limit=1&continue={token}"));
    }
    let token = page["metadata"]["continue"].as_str().unwrap();
    let version = page["metadata"]["resourceVersion"].as_str().unwrap();
    // Whatever happens now, the rest of the list is what it was.
    make("m-ca");
    send(server, "DELETE", &format!("{maps}/m-d"), "");
    send(
        server,
        "PATCH",
        &format!("{maps}/m-c"),
        "{\"data\":{\"a\":\"b\"}}",
    );
    let rest = list(&format!("continue={token}"));
    assert_eq!(names(&rest), ["m-c", "m-d"]);
    assert_eq!(rest["metadata"]["resourceVersion"], version);
    let exact = list(&format!(
        "resourceVersion={version}&resourceVersionMatch=Exact"
    ));
    assert_eq!(names(&exact), ["m-b", "m-c", "m-d"]);
    assert_eq!(names(&list("")), ["m-b", "m-c", "m-ca"]);
    // Until it is forgotten; then the client may go on with what there is.
    server.store().with(Inner::compact);
    make("m-e");
    let refused = list(&format!("continue={token}"));
    assert_eq!(refused["reason"], "Expired");
    let onward = refused["metadata"]["continue"].as_str().unwrap();
    assert_eq!(
        names(&list(&format!("continue={onward}"))),
        ["m-c", "m-ca", "m-e"]
    );
    let exact = list(&format!(
        "resourceVersion={version}&resourceVersionMatch=Exact"
    ));
    assert_eq!(exact["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn a_definition_goes_after_its_objects() {
    let sandbox = sandbox();
    let server = sandbox.server();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({"metadata": {"name": "gears.mill.dev"}, "spec": {"group": "mill.dev",
        "scope": "Cluster", "names": {"plural": "gears", "kind": "Gear"}, "versions": [
        {"name": "v1", "served": true, "storage": true,
         "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let gears = "/apis/mill.dev/v1/gears";
    let gear = |name: &str, finalizers: Value| {
        let metadata = json!({"name": name, "finalizers": finalizers});
        json!({"apiVersion": "mill.dev/v1", "kind": "Gear", "metadata": metadata}).to_string()
    };
    for _ in 0..2 {
        assert_eq!(
            send(server, "POST", crds, definition.to_string()).status,
            201
        );
        assert_eq!(
            send(server, "POST", gears, gear("plain", json!([]))).status,
            201
        );
        let held = gear("held", json!(["mill.dev/hold"]));
        assert_eq!(send(server, "POST", gears, held).status, 201);
        let one = format!("{crds}/gears.mill.dev");
        assert_eq!(send(server, "DELETE", &one, "").status, 200);
        let going = value(&send(server, "GET", &one, ""));
        let last = going["status"]["conditions"]
            .as_array()
            .unwrap()
            .last()
            .cloned();
        assert_eq!(last.unwrap()["reason"], "InstanceDeletionInProgress");
        assert_eq!(
            send(server, "GET", &format!("{gears}/plain"), "").status,
            404
        );
        let late = gear("late", json!([]));
        assert_eq!(send(server, "POST", gears, late).status, 403);
        let free = "{\"metadata\":{\"finalizers\":null}}";
        assert_eq!(
            send(server, "PATCH", &format!("{gears}/held"), free).status,
            200
        );
        assert_eq!(send(server, "GET", &one, "").status, 404);
        assert_eq!(send(server, "GET", gears, "").status, 404);
    }
}
