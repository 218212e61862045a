//! Against a small server that speaks the wire of the metrics APIs.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// Answers of a server by path and query; anything else is not found.
#[derive(Clone, Default)]
struct Served {
    answers: Arc<Mutex<BTreeMap<String, (u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

const NOT_FOUND: &str = "404 page not found";
const CUSTOM: &str = "/apis/custom.metrics.k8s.io";
const EXTERNAL: &str = "/apis/external.metrics.k8s.io/v1beta1";
const PODS: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods";
const QPS: MetricId<'_> = MetricId {
    name: "qps",
    selector: "",
};

impl Served {
    fn with(self, path: &str, answer: &Value) -> Self {
        self.says(path, 200, &answer.to_string())
    }

    fn says(self, path: &str, code: u16, text: &str) -> Self {
        let answer = (code, text.to_owned());
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
        self
    }

    fn source(&self) -> AggregatedMetrics {
        let served = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let path = request.uri().to_string();
            let answers = served.answers.lock().unwrap();
            let not_found = || (404, NOT_FOUND.to_owned());
            let (code, text) = answers.get(&path).cloned().unwrap_or_else(not_found);
            served.asked.lock().unwrap().push(path);
            let answer = http::Response::builder().status(code);
            let answer = answer.body(Body::from(text.into_bytes())).unwrap();
            std::future::ready(Ok::<_, Infallible>(answer))
        });
        AggregatedMetrics::new(Client::new(service, "default"))
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// Discovery of the custom metrics API.
fn group(preferred: &str, versions: &[&str]) -> Value {
    let version =
        |version: &str| json!({"groupVersion": format!("g/{version}"), "version": version});
    let versions: Vec<Value> = versions.iter().map(|one| version(one)).collect();
    json!({"kind": "APIGroup", "versions": versions, "preferredVersion": version(preferred)})
}

/// A custom metric, as the newer version of the API writes it.
fn value(object: &str, value: Value) -> Value {
    json!({
        "describedObject": {"kind": "Pod", "namespace": "shop", "name": object, "apiVersion": "/v1"},
        "metric": {"name": "qps", "selector": null},
        "timestamp": "2026-01-01T00:00:30Z", "windowSeconds": 60, "value": value,
    })
}

fn list(items: &[Value]) -> Value {
    json!({"metadata": {}, "items": items})
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

fn taken(window_millis: Option<u64>) -> Taken {
    Taken {
        at: "2026-01-01T00:00:30Z".parse().unwrap(),
        window: window_millis.map(Duration::from_millis),
    }
}

fn web(namespace: &'static str) -> DescribedObject<'static> {
    DescribedObject {
        group: "networking.k8s.io",
        resource: "ingresses",
        namespace,
        name: "web",
    }
}

#[tokio::test]
async fn pods_are_read_by_container() {
    let pods = list(&[
        json!({"metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web"}},
            "timestamp": "2026-01-01T00:00:30Z", "window": "15.2s", "containers": [
                {"name": "app", "usage": {"cpu": "12345678n", "memory": "40Mi"}},
                {"name": "sidecar", "usage": {"cpu": 1, "nvidia.com/gpu": "2"}}]}),
        json!({"metadata": {"name": "web-2", "namespace": "shop"}, "containers": null}),
    ]);
    let served = Served::default()
        .with(
            &format!("{PODS}?labelSelector=app+in+%28web%2Cshop%29%2Ctier%21%3Da"),
            &pods,
        )
        .with("/apis/metrics.k8s.io/v1beta1/pods", &json!({"items": null}));
    let source = served.source();
    let found = source.pods(Some("shop"), "app in (web,shop),tier!=a").await;
    let found = found.unwrap();
    let (cpu, memory) = (ResourceName::Cpu, ResourceName::Memory);
    let [first, second] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!((&*first.namespace, &*first.name), ("shop", "web-1"));
    assert_eq!(first.taken, taken(Some(15_200)));
    assert_eq!(first.total(&cpu), Some(quantity("1012345678n")));
    assert_eq!(first.total(&memory), None, "the sidecar has no figure");
    assert_eq!(first.of_container("app", &memory), Some(quantity("40Mi")));
    assert_eq!(first.of_container("sidecar", &memory), None);
    assert_eq!(first.of_container("other", &cpu), None);
    let gpu = ResourceName::parse("nvidia.com/gpu");
    assert_eq!(first.of_container("sidecar", &gpu), Some(quantity("2")));
    assert_eq!(
        second.total(&cpu),
        None,
        "without containers it has no figure"
    );
    assert_eq!(second.taken.at, Timestamp::UNIX_EPOCH);
    assert_eq!(source.pods(None, "").await, Ok(Vec::new()));
}

#[tokio::test]
async fn nodes_are_read() {
    let nodes = list(&[
        json!({"metadata": {"name": "n1"}, "timestamp": "2026-01-01T00:00:30Z",
        "window": "1m0s", "usage": {"cpu": "250m", "memory": "1Gi"}}),
    ]);
    let path = "/apis/metrics.k8s.io/v1beta1/nodes?labelSelector=zone%3Da";
    let source = Served::default().with(path, &nodes).source();
    let found = source.nodes("zone=a").await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(&*found[0].name, "n1");
    assert_eq!(found[0].taken, taken(Some(60_000)));
    let expected = [
        (ResourceName::Cpu, quantity("250m")),
        (ResourceName::Memory, quantity("1Gi")),
    ];
    assert_eq!(found[0].amounts, Amounts::from(expected));
}

#[tokio::test]
async fn metrics_of_pods_are_read_in_the_version_that_the_server_prefers() {
    let path = format!(
        "{CUSTOM}/v1beta2/namespaces/shop/pods/*/qps?labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET"
    );
    let pods = list(&[value("web-1", json!("1500m")), value("web-2", json!("-3"))]);
    let served = Served::default()
        .with(CUSTOM, &group("v1beta2", &["v1beta1", "v1beta2"]))
        .with(&path, &pods);
    let source = served.source();
    let metric = MetricId {
        name: "qps",
        selector: "verb=GET",
    };
    let expected = [("web-1", "1500m"), ("web-2", "-3")].map(|(object, text)| ObjectMetric {
        object: object.into(),
        value: quantity(text),
        taken: taken(Some(60_000)),
    });
    for n_lookups in [1, 0] {
        let found = source.pods_metric("shop", "app=web", metric).await;
        assert_eq!(found.as_deref(), Ok(&expected[..]));
        let n_asked = served
            .asked()
            .iter()
            .filter(|asked| *asked == CUSTOM)
            .count();
        assert_eq!(n_asked, n_lookups, "the version is remembered");
    }
}

#[tokio::test]
async fn an_older_server_is_understood_and_so_is_its_upgrade() {
    let old = json!({"describedObject": {"kind": "Pod", "name": "web-1"}, "metricName": "qps",
        "timestamp": "2026-01-01T00:00:30Z", "window": 45, "value": "2"});
    let below = "namespaces/shop/pods/*/qps";
    let served = Served::default()
        .with(CUSTOM, &group("v1beta1", &["v1beta1"]))
        .with(&format!("{CUSTOM}/v1beta1/{below}"), &list(&[old]));
    let source = served.source();
    let found = source.pods_metric("shop", "", QPS).await.unwrap();
    assert_eq!(found[0].taken, taken(Some(45_000)));
    let gone = served
        .says(&format!("{CUSTOM}/v1beta1/{below}"), 404, NOT_FOUND)
        .with(CUSTOM, &group("v1beta2", &["v1beta2"]))
        .with(
            &format!("{CUSTOM}/v1beta2/{below}"),
            &list(&[value("web-1", json!("4"))]),
        );
    let found = source.pods_metric("shop", "", QPS).await.unwrap();
    assert_eq!(found[0].value, quantity("4"));
    gone.asked();
    source.pods_metric("shop", "", QPS).await.unwrap();
    assert_eq!(gone.asked(), [format!("{CUSTOM}/v1beta2/{below}")]);
}

#[tokio::test]
async fn a_version_that_is_not_known_is_said() {
    let served = Served::default().with(CUSTOM, &group("v2", &["v2", "v3"]));
    let error = served.source().pods_metric("shop", "", QPS).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "custom.metrics.k8s.io gives an answer that cannot be used: it is served as v2, v3, and \
         known are v1beta2, v1beta1"
    );
}

#[tokio::test]
async fn a_metric_of_an_object_is_one_value() {
    let place = format!("{CUSTOM}/v1beta2/namespaces/shop");
    let one = list(&[value("web", json!("7"))]);
    let two = list(&[value("web", json!("7")), value("web", json!("8"))]);
    let served = Served::default()
        .with(CUSTOM, &group("v1beta2", &["v1beta2"]))
        .with(
            &format!("{place}/ingresses.networking.k8s.io/web/qps"),
            &one,
        )
        .with(
            &format!("{place}/services/web/qps?metricLabelSelector=a%3Db"),
            &one,
        )
        .with(&format!("{place}/metrics/qps"), &one)
        .with(&format!("{place}/services/web/two%20words"), &two)
        .with(&format!("{place}/services/web/none"), &list(&[]));
    let source = served.source();
    let core = |resource| DescribedObject {
        group: "",
        resource,
        ..web("shop")
    };
    let narrow = MetricId {
        selector: "a=b",
        ..QPS
    };
    for (object, metric) in [
        (web("shop"), QPS),
        (core("services"), narrow),
        (core("namespaces"), QPS),
    ] {
        let found = source.object_metric(object, metric).await;
        assert_eq!(found.unwrap().value, quantity("7"), "{object:?}");
    }
    for (name, n_found) in [("two words", 2), ("none", 0)] {
        let metric = MetricId { name, selector: "" };
        let error = source.object_metric(core("services"), metric).await;
        let expected = format!(
            "custom.metrics.k8s.io gives an answer that cannot be used: {n_found} values of {name} \
             instead of one"
        );
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
}

#[tokio::test]
async fn external_metrics_come_with_all_series() {
    let series = |queue: &str, value: Value| {
        json!({"metricName": "depth", "metricLabels": {"queue": queue},
            "timestamp": "2026-01-01T00:00:30Z", "window": 0, "value": value})
    };
    let path = format!("{EXTERNAL}/namespaces/shop/depth?labelSelector=env%3Dprod");
    let found = list(&[series("a", json!("42")), series("b", json!(1.5))]);
    let source = Served::default().with(&path, &found).source();
    let metric = MetricId {
        name: "depth",
        selector: "env=prod",
    };
    let found = source.external_metric("shop", metric).await.unwrap();
    let expected = [("a", "42"), ("b", "1500m")].map(|(queue, text)| ExternalMetric {
        labels: [("queue".into(), queue.into())].into(),
        value: quantity(text),
        taken: taken(Some(0)),
    });
    assert_eq!(found, expected);
}

#[tokio::test]
async fn an_api_that_is_not_there_is_told_from_a_metric_that_is_not() {
    let none = Served::default().source();
    let errors = [
        none.pods(Some("shop"), "").await.unwrap_err(),
        none.nodes("").await.unwrap_err(),
        none.pods_metric("shop", "", QPS).await.unwrap_err(),
        none.object_metric(web("shop"), QPS).await.unwrap_err(),
        none.external_metric("shop", QPS).await.unwrap_err(),
    ];
    use MetricsApi::{Custom, External, Resource};
    let apis = [Resource, Resource, Custom, Custom, External];
    assert_eq!(errors, apis.map(MetricsError::NoApi));
    assert_eq!(
        errors[0].to_string(),
        "the cluster has no API metrics.k8s.io: install metrics-server"
    );
    let message = "the server could not find the metric qps for pods";
    let status = json!({"kind": "Status", "status": "Failure", "reason": "NotFound",
        "message": message});
    let served = Served::default()
        .with(CUSTOM, &group("v1beta2", &["v1beta2"]))
        .says(
            &format!("{CUSTOM}/v1beta2/namespaces/shop/pods/*/qps"),
            404,
            &status.to_string(),
        )
        .with(
            EXTERNAL,
            &json!({"kind": "APIResourceList", "resources": []}),
        );
    let source = served.source();
    let error = source.pods_metric("shop", "", QPS).await.unwrap_err();
    let message = message.to_owned();
    assert_eq!(
        error,
        MetricsError::NotFound {
            api: Custom,
            message
        }
    );
    let error = source.external_metric("shop", QPS).await.unwrap_err();
    let message = NOT_FOUND.to_owned();
    assert_eq!(
        error,
        MetricsError::NotFound {
            api: External,
            message
        }
    );
}

#[tokio::test(start_paused = true)]
async fn calls_that_fail_say_why() {
    let away = Served::default()
        .says(PODS, 503, "no endpoints available")
        .says(CUSTOM, 500, "panic")
        .says(
            &format!("{EXTERNAL}/namespaces/shop/qps"),
            403,
            "you may not",
        );
    let source = away.source();
    let pods = source.pods(Some("shop"), "").await.unwrap_err();
    let custom = source.pods_metric("shop", "", QPS).await.unwrap_err();
    let external = source.external_metric("shop", QPS).await.unwrap_err();
    for (error, api, said) in [
        (pods, MetricsApi::Resource, "503 no endpoints available"),
        (custom, MetricsApi::Custom, "500 panic"),
        (external, MetricsApi::External, "403 you may not"),
    ] {
        let message = said.to_owned();
        assert_eq!(error, MetricsError::Failed { api, message });
    }
    let silent = tower::service_fn(|_: http::Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, Infallible>>()
    });
    let source = AggregatedMetrics::new(Client::new(silent, "default"));
    let error = source.nodes("").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "metrics.k8s.io gives no answer: it takes too long"
    );
}

#[tokio::test]
async fn answers_that_cannot_be_read_say_where() {
    let usage = |window: &str, cpu: &str| {
        list(&[
            json!({"metadata": {"name": "web-1", "namespace": "shop"}, "window": window,
            "containers": [{"name": "app", "usage": {"cpu": cpu}}]}),
        ])
        .to_string()
    };
    for (answer, said) in [
        (
            usage("15s", "much"),
            "pod shop/web-1: cpu: \"much\" is not a quantity",
        ),
        (usage("soon", "1"), "pod shop/web-1: window: "),
        ("<html>".to_owned(), "expected value at line 1"),
    ] {
        let source = Served::default().says(PODS, 200, &answer).source();
        let error = source.pods(Some("shop"), "").await.unwrap_err();
        assert!(matches!(error, MetricsError::Unusable { .. }), "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn names_stay_within_their_place() {
    let served = Served::default().with(CUSTOM, &group("v1beta2", &["v1beta2"]));
    let source = served.source();
    for name in ["", "..", "a/b", "a%2fb"] {
        let metric = MetricId { name, selector: "" };
        let errors = [
            source.external_metric("shop", metric).await.map(drop),
            source.pods_metric("shop", "", metric).await.map(drop),
            source.object_metric(web(name), QPS).await.map(drop),
        ];
        for error in errors {
            let error = error.unwrap_err();
            assert!(matches!(error, MetricsError::Name { .. }), "{error:?}");
        }
    }
    assert!(served.asked().iter().all(|asked| asked == CUSTOM));
}
