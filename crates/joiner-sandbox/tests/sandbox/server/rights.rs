//! Who may do what, over HTTPS: tokens of service accounts, impersonation, and limits of connections.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use joiner_runtime::Clock;
use joiner_runtime::connections::Limits;
use joiner_sandbox::certificates::Certificates;
use joiner_sandbox::server::Server;
use joiner_sandbox::{Sandbox, Settings, kubeconfig, serve};
use kube::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ROBOT: &str = "system:serviceaccount:default:robot";

/// A cluster behind HTTPS.
struct Cluster {
    sandbox: Sandbox,
    door: serve::Door,
    ca: String,
    admin: Client,
}

async fn client(door: &serve::Door, ca: &str, token: &str, user: Option<&str>) -> Client {
    let text = kubeconfig::render(door.address, ca, token);
    let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await;
    let mut config = config.unwrap();
    config.auth_info.impersonate = user.map(str::to_owned);
    Client::try_from(config).unwrap()
}

impl Cluster {
    async fn start() -> Self {
        let certificates = Certificates::make().unwrap();
        let settings = Settings {
            ca_pem: certificates.ca_pem.clone(),
            ..Settings::default()
        };
        let sandbox = Sandbox::start(Clock::system(1), &settings).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let server = Arc::clone(sandbox.server());
        let door = serve::listen(server, any, &certificates, "secret".to_owned());
        let door = door.await.unwrap();
        let ca = certificates.ca_pem.clone();
        let admin = client(&door, &ca, "secret", None).await;
        Self {
            sandbox,
            door,
            ca,
            admin,
        }
    }

    async fn with_token(&self, token: &str) -> Client {
        client(&self.door, &self.ca, token, None).await
    }

    async fn acting_as(&self, user: &str) -> Client {
        client(&self.door, &self.ca, "secret", Some(user)).await
    }

    async fn make(&self, path: &str, object: Value) -> Value {
        ask(&self.admin, "POST", path, Some(object)).await.unwrap()
    }
}

/// Sends a request; what is refused comes as code and message.
async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Result<Value, (u16, String)> {
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    let body = body.map_or(Vec::new(), |body| body.to_string().into_bytes());
    let answer = client.request::<Value>(request.body(body).unwrap()).await;
    answer.map_err(|error| {
        if let kube::Error::Api(status) = &error {
            return (status.code, status.message.clone());
        }
        (0, error.to_string())
    })
}

async fn get(client: &Client, path: &str) -> Result<Value, (u16, String)> {
    ask(client, "GET", path, None).await
}

/// Waits for a status code.
async fn until(client: &Client, path: &str, code: u16) {
    let wait = async {
        while get(client, path)
            .await
            .map_or_else(|refused| refused.0, |_| 200)
            != code
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    assert!(waited.is_ok(), "waited for {code} of {path}");
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// An account that may read pods in its namespace.
async fn robot(cluster: &Cluster) {
    let account = json!({"metadata": {"name": "robot"}});
    cluster
        .make("/api/v1/namespaces/default/serviceaccounts", account)
        .await;
    let role = json!({"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]});
    cluster
        .make(&format!("{RBAC}/namespaces/default/roles"), role)
        .await;
    bind(cluster, "Role", "reader").await;
}

async fn bind(cluster: &Cluster, kind: &str, role: &str) {
    let binding = json!({"metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]});
    cluster
        .make(&format!("{RBAC}/namespaces/default/rolebindings"), binding)
        .await;
}

#[tokio::test]
async fn tokens_of_accounts_are_accepted_and_authorized() {
    let cluster = Cluster::start().await;
    robot(&cluster).await;
    let path = "/api/v1/namespaces/default/serviceaccounts/robot";
    let asked =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let made = cluster.make(&format!("{path}/token"), asked).await;
    let token = made["status"]["token"].as_str().unwrap();
    let robot = cluster.with_token(token).await;
    get(&robot, PODS).await.unwrap();
    let refused = get(&robot, SECRETS).await.unwrap_err();
    let words = format!(
        "secrets is forbidden: User \"{ROBOT}\" cannot list resource \"secrets\" in API group \"\" in the namespace \"default\""
    );
    assert_eq!(refused, (403, words));
    let refused = get(&robot, "/api/v1/nodes").await.unwrap_err();
    assert!(refused.1.ends_with("at the cluster scope"), "{refused:?}");
    let forged = cluster.with_token(&format!("{token}x")).await;
    assert_eq!(get(&forged, PODS).await.unwrap_err().0, 401);

    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = ask(&robot, "POST", reviews, Some(review)).await.unwrap();
    let who = &who["status"]["userInfo"];
    assert_eq!(who["username"], ROBOT);
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    assert_eq!(who["groups"], json!(groups));

    ask(&cluster.admin, "DELETE", path, None).await.unwrap();
    until(&robot, PODS, 401).await;
}

#[tokio::test]
async fn secrets_get_tokens_that_end_with_them() {
    let cluster = Cluster::start().await;
    robot(&cluster).await;
    let secret = |name: &str, account: &str| {
        json!({"metadata": {"name": name,
                "annotations": {"kubernetes.io/service-account.name": account}},
            "type": "kubernetes.io/service-account-token"})
    };
    cluster.make(SECRETS, secret("kept", "robot")).await;
    cluster.make(SECRETS, secret("lost", "nobody")).await;
    until(&cluster.admin, &format!("{SECRETS}/lost"), 404).await;
    let path = format!("{SECRETS}/kept");
    let data = loop {
        let kept = get(&cluster.admin, &path).await.unwrap();
        if kept["data"]["token"].is_string() {
            break kept["data"].clone();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let text = |key: &str| {
        let coded = data[key].as_str().unwrap();
        String::from_utf8(BASE64_STANDARD.decode(coded).unwrap()).unwrap()
    };
    assert_eq!(
        (text("namespace").as_str(), &text("ca.crt")),
        ("default", &cluster.ca)
    );
    let robot = cluster.with_token(&text("token")).await;
    get(&robot, PODS).await.unwrap();
    assert_eq!(get(&robot, SECRETS).await.unwrap_err().0, 403);
    ask(&cluster.admin, "DELETE", &path, None).await.unwrap();
    until(&robot, PODS, 401).await;
}

#[tokio::test]
async fn aggregated_roles_gather_rules() {
    let cluster = Cluster::start().await;
    robot(&cluster).await;
    bind(&cluster, "ClusterRole", "view").await;
    let robot = cluster.acting_as(ROBOT).await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    until(&robot, deployments, 200).await;
    assert_eq!(get(&robot, SECRETS).await.unwrap_err().0, 403);
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    let more = json!({"metadata": {"name": "view-secrets", "labels": {label: "true"}}, "rules": [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]});
    cluster.make(&format!("{RBAC}/clusterroles"), more).await;
    until(&robot, SECRETS, 200).await;
}

#[tokio::test]
async fn who_acts_as_another_has_the_rights_of_that_one() {
    let cluster = Cluster::start().await;
    robot(&cluster).await;
    get(&cluster.admin, SECRETS).await.unwrap();
    let robot = cluster.acting_as(ROBOT).await;
    get(&robot, PODS).await.unwrap();
    assert_eq!(get(&robot, SECRETS).await.unwrap_err().0, 403);
    let role = json!({"metadata": {"name": "writer"}, "rules": [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "patch"]}]});
    cluster
        .make(&format!("{RBAC}/namespaces/default/roles"), role)
        .await;
    bind(&cluster, "Role", "writer").await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let role = |verb: &str| {
        json!({"metadata": {"name": format!("may-{verb}")}, "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]})
    };
    ask(&robot, "POST", &roles, Some(role("list")))
        .await
        .unwrap();
    let (code, message) = ask(&robot, "POST", &roles, Some(role("delete")))
        .await
        .unwrap_err();
    assert_eq!(code, 403);
    assert!(
        message.contains("is attempting to grant RBAC permissions not currently held"),
        "{message}"
    );
    let applied = format!("{roles}/may-list");
    let request =
        http::Request::patch(&applied).header("content-type", "application/merge-patch+json");
    let body = json!({"rules": role("delete")["rules"]})
        .to_string()
        .into_bytes();
    let refused = robot.request::<Value>(request.body(body).unwrap()).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
}

#[tokio::test(start_paused = true)]
async fn tokens_end() {
    let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
    let sandbox = Sandbox::start(clock.clone(), &Settings::default()).unwrap();
    let account = json!({"metadata": {"name": "robot"}});
    let admin = sandbox.client();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    ask(&admin, "POST", accounts, Some(account)).await.unwrap();
    let asked = json!({"spec": {"expirationSeconds": 600}});
    let made = ask(
        &admin,
        "POST",
        &format!("{accounts}/robot/token"),
        Some(asked),
    )
    .await
    .unwrap();
    let token = made["status"]["token"].as_str().unwrap();
    let status = async |server: &Arc<Server>| {
        let request =
            http::Request::get("/apis").header("authorization", format!("Bearer {token}"));
        let body = kube::client::Body::empty();
        serve::respond(server, request.body(body).unwrap())
            .await
            .status()
            .as_u16()
    };
    assert_eq!(status(sandbox.server()).await, 200);
    clock.sleep(Duration::from_secs(599)).await;
    assert_eq!(status(sandbox.server()).await, 200);
    clock.sleep(Duration::from_secs(120)).await;
    assert_eq!(status(sandbox.server()).await, 401);
    let left = clock.now().duration_since(Timestamp::UNIX_EPOCH);
    assert!(left > SignedDuration::from_mins(10));
}

#[tokio::test]
async fn half_sent_requests_make_room() {
    let cluster = Cluster::start().await;
    let certificates = Certificates::make().unwrap();
    let limits = Limits {
        connections: 8,
        answer: None,
        ..Limits::default()
    };
    let any = "127.0.0.1:0".parse().unwrap();
    let server = Arc::clone(cluster.sandbox.server());
    let door = serve::listen_within(server, any, &certificates, "secret".to_owned(), limits);
    let door = door.await.unwrap();
    let mut halves = Vec::new();
    for _ in 0..24 {
        let mut half = TcpStream::connect(door.address).await.unwrap();
        half.write_all(b"\x16\x03\x01").await.unwrap();
        halves.push(half);
    }
    let admin = client(&door, &certificates.ca_pem, "secret", None).await;
    get(&admin, PODS).await.unwrap();
    let closed = async {
        for half in halves.iter_mut().take(16) {
            let mut rest = Vec::new();
            let _ = half.read_to_end(&mut rest).await;
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(60), closed).await;
    assert!(closed.is_ok(), "those that came first had to go");
}

#[tokio::test]
async fn large_bodies_are_refused_and_those_of_strangers_not_read() {
    let cluster = Cluster::start().await;
    let large = json!({"metadata": {"name": "x"}, "data": {"x": "x".repeat(4 << 20)}});
    let maps = "/api/v1/namespaces/default/configmaps";
    let refused = ask(&cluster.admin, "POST", maps, Some(large.clone()))
        .await
        .unwrap_err();
    assert_eq!(
        refused,
        (413, "Request entity too large: limit is 3145728".to_owned())
    );
    let stranger = cluster.acting_as("eve").await;
    let small = json!({"metadata": {"name": "x"}});
    assert_eq!(
        ask(&stranger, "POST", maps, Some(small))
            .await
            .unwrap_err()
            .0,
        403
    );
}
