//! What it says when it cannot start, or cannot work yet; it never ends in a loop of crashes.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use joiner_testkit::stage::install_kinds;

use crate::run::cluster::Served;
use crate::run::process::{Joiner, joiner, outcome, place, run_command};
use crate::run::proxy::{Proxy, Trouble, kubeconfig_for};

/// What a command says that fails with exit code 1.
async fn refusal(command: Command) -> String {
    let output = outcome(command).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

#[tokio::test]
async fn without_a_cloud_it_explains_and_stops() {
    let mut command = joiner();
    command.arg("run");
    let output = outcome(command).await;
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("buy nodes for pending pods"), "{said}");
    assert!(said.contains("joiner run --cloud simulated"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        error,
        "joiner: no cloud is named; choose one with --cloud\n"
    );
}

#[tokio::test]
async fn bad_flags_and_variables_are_named() {
    let flags: [(&[&str], &str); 10] = [
        (&["--cloud", "moon"], "invalid value 'moon' for '--cloud"),
        (
            &["--log-level", "loud"],
            "invalid LOG_LEVEL \"loud\": it is debug, info or error",
        ),
        (
            &["--preference-policy", "Maybe"],
            "invalid PREFERENCE_POLICY \"Maybe\"",
        ),
        (
            &["--min-values-policy", "Lax"],
            "invalid MIN_VALUES_POLICY \"Lax\"",
        ),
        (
            &["--batch-max-duration", "soon"],
            "invalid value 'soon' for '--batch-max-duration",
        ),
        (
            &["--batch-idle-duration", "1"],
            "invalid value '1' for '--batch-idle-duration",
        ),
        (
            &["--feature-gates", "NodeRepair=maybe"],
            "\"maybe\" of NodeRepair is not true or false",
        ),
        (
            &["--ignore-dra-requests=false"],
            "leave out --ignore-dra-requests, or set it to true",
        ),
        (&["--metrics-port", "99999"], "99999 is not in 0..=65535"),
        (&["--nonsense"], "unexpected argument '--nonsense'"),
    ];
    let nowhere = Path::new("/nowhere");
    for (flags, words) in flags {
        let mut command = joiner();
        command.args(["run", "--kubeconfig"]).arg(nowhere);
        if !flags.contains(&"--cloud") {
            command.args(["--cloud", "simulated"]);
        }
        command.args(flags);
        let said = refusal(command).await;
        assert!(said.contains(words), "{flags:?}: {said}");
    }
    for (name, value, words) in [
        (
            "PREFERENCE_POLICY",
            "Maybe",
            "invalid PREFERENCE_POLICY \"Maybe\"",
        ),
        (
            "FEATURE_GATES",
            "NodeRepair",
            "\"NodeRepair\" is not Name=bool",
        ),
        ("LOG_LEVEL", "loud", "invalid LOG_LEVEL \"loud\""),
        (
            "IGNORE_DRA_REQUESTS",
            "false",
            "IGNORE_DRA_REQUESTS is false, but",
        ),
        (
            "BATCH_MAX_DURATION",
            "1x",
            "invalid value '1x' for '--batch-max-duration",
        ),
        (
            "KUBE_CLIENT_QPS",
            "many",
            "invalid value 'many' for '--kube-client-qps",
        ),
    ] {
        let mut command = run_command(nowhere, &[]);
        command.env(name, value);
        let said = refusal(command).await;
        assert!(said.contains(words), "{name}={value}: {said}");
    }
}

#[tokio::test]
async fn no_cluster_is_told_with_the_remedy() {
    let said = refusal(run_command(Path::new("/nowhere/at/all"), &[])).await;
    assert!(
        said.contains("cannot read the kubeconfig /nowhere/at/all"),
        "{said}"
    );

    let mut command = joiner();
    command.args(["run", "--cloud", "simulated"]);
    command
        .env("HOME", "/nowhere")
        .env("KUBECONFIG", "/nowhere/k");
    let said = refusal(command).await;
    assert!(
        said.contains("name a kubeconfig with --kubeconfig"),
        "{said}"
    );

    let file = place("kubeconfig");
    std::fs::write(&file, "clusters: 5").unwrap();
    let said = refusal(run_command(&file, &[])).await;
    assert!(said.contains("cannot read the kubeconfig"), "{said}");
    std::fs::remove_file(&file).unwrap();
}

/// It says what is wrong with the server, to the log and to whoever asks whether it is ready, and
/// waits.
async fn waits_saying(kubeconfig: &Path, words: &[&str]) -> Joiner {
    let mut joiner = Joiner::start(kubeconfig, &[]);
    for words in words {
        joiner.says(words).await;
        let (code, body) = joiner.get("health", "/readyz").await;
        assert_eq!(code, 503);
        assert!(body.contains(words), "{body}");
    }
    assert_eq!(joiner.get("health", "/healthz").await.0, 200);
    assert!(joiner.is_running());
    joiner
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_is_waited_for() {
    let file = place("kubeconfig");
    std::fs::write(&file, kubeconfig_for("http://127.0.0.1:1")).unwrap();
    let words = "cannot reach the API server: check the address in the kubeconfig";
    let mut joiner = waits_saying(&file, &[words]).await;
    // It hears when it is told to end.
    assert_eq!(joiner.stop().await.code(), Some(0));
    std::fs::remove_file(&file).unwrap();

    let cluster = Served::embedded().await;
    cluster.pool().await;
    let away = Trouble {
        fail_percent: 100,
        ..Trouble::default()
    };
    let proxy = Proxy::start(cluster.client.clone(), "away", away).await;
    let mut joiner = waits_saying(&proxy.kubeconfig, &["the API server"]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let asked = proxy.seen();
    let n_asked = asked.iter().filter(|own| own.path == "/version").count();
    assert!((2..=5).contains(&n_asked), "asked {n_asked} times");
    assert_eq!(joiner.told("starting").len(), 0);
    proxy.set(Trouble::default());
    joiner.says("the API server answers").await;
    cluster.deployment("web", 5).await;
    cluster.all_run(5, 120).await;
    assert_eq!(joiner.get("health", "/readyz").await.0, 200);
    assert_eq!(joiner.stop().await.code(), Some(0));
}

/// What it says with another token than the one in the kubeconfig.
async fn a_wrong_token_is_told_by(cluster: &Served) {
    let text = std::fs::read_to_string(&cluster.kubeconfig).unwrap();
    let (_, token) = text.split_once("token").unwrap();
    let token = token.trim_start_matches(['"', ':', ' ']);
    let end = token.find(['"', '\n']).unwrap();
    let file = place("kubeconfig");
    std::fs::write(&file, text.replace(&token[..end], "wrong")).unwrap();
    let words = [
        "the API server does not accept our credentials",
        "renew the token or certificate",
    ];
    let mut joiner = waits_saying(&file, &words).await;
    assert_eq!(joiner.stop().await.code(), Some(0));
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_is_told() {
    a_wrong_token_is_told_by(&Served::embedded().await).await;
}

/// A server whose certificate ran out years ago; the kubeconfig for it.
async fn expired_server() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut old = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    old.not_before = rcgen::date_time_ymd(2019, 1, 1);
    old.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let certificate = old.self_signed(&key).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = rustls::ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = acceptor.accept(stream).await;
        }
    });
    joiner_sandbox::kubeconfig::render(address, &certificate.pem(), "t")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_certificate_is_told() {
    let file = place("kubeconfig");
    std::fs::write(&file, expired_server().await).unwrap();
    let mut joiner = waits_saying(&file, &["its certificate has not expired"]).await;
    let said = joiner.said().to_lowercase();
    assert!(said.contains("certificate expired"), "{said}");
    assert_eq!(joiner.stop().await.code(), Some(0));
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_and_bad_files_are_named() {
    let cluster = Served::embedded().await;
    let listener = std::net::TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut command = joiner();
    command.args(["run", "--cloud", "simulated", "--kubeconfig"]);
    command.arg(&cluster.kubeconfig);
    command.args(["--metrics-port", &port, "--health-probe-port", "0"]);
    let said = refusal(command).await;
    assert!(
        said.contains(&format!(
            "port {port} for metrics is taken: choose another one with --metrics-port"
        )),
        "{said}"
    );
    let flags = ["--instance-types", "/nowhere/types.json"];
    let said = refusal(run_command(&cluster.kubeconfig, &flags)).await;
    assert!(said.contains("/nowhere/types.json"), "{said}");
    let flags = ["--log-output-paths", "/nowhere/log"];
    let said = refusal(run_command(&cluster.kubeconfig, &flags)).await;
    assert!(said.contains("/nowhere/log"), "{said}");
}

mod real {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "soak: one of many on the real control plane"]
    async fn a_wrong_token_is_told() {
        if let Some(cluster) = Served::real().await {
            a_wrong_token_is_told_by(&cluster).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "soak: needs a control plane of its own"]
    async fn it_waits_for_our_kinds_and_says_how_to_install_them() {
        let Some(cluster) = Served::bare().await else {
            return;
        };
        let mut joiner = Joiner::start(&cluster.kubeconfig, &["--disable-leader-election"]);
        joiner.says("install the CRDs with `joiner crds").await;
        for kind in ["NodePool", "NodeClaim", "KWOKNodeClass"] {
            let words =
                format!("{kind}: the server does not know the kind {kind}: install the CRDs");
            loop {
                let (code, body) = joiner.get("health", "/readyz").await;
                assert_eq!(code, 503);
                if body.contains(&words) {
                    break;
                }
                // The server may take its time for the first answers.
                assert!(body.contains(&format!("{kind}: not listed yet")), "{body}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        assert_eq!(joiner.get("health", "/healthz").await.0, 200);
        install_kinds(cluster.plane()).unwrap();
        cluster.pool().await;
        cluster.deployment("web", 5).await;
        cluster.all_run(5, 120).await;
        assert_eq!(joiner.get("health", "/readyz").await.0, 200);
        assert_eq!(joiner.stop().await.code(), Some(0));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "soak: one of many on the real control plane"]
    async fn a_missing_permission_is_named_with_its_kind() {
        let Some(cluster) = Served::real().await else {
            return;
        };
        let plane = cluster.plane();
        plane
            .kubectl(&["create", "serviceaccount", "nobody"])
            .unwrap();
        let token = plane.kubectl(&["create", "token", "nobody"]).unwrap();
        let text = std::fs::read_to_string(&cluster.kubeconfig).unwrap();
        let file = place("kubeconfig");
        std::fs::write(&file, text.replace(plane.token(), token.trim())).unwrap();
        let mut joiner = Joiner::start(&file, &[]);
        joiner.says("not allowed to list and watch Pod").await;
        joiner.says("could not get or renew the leader lease").await;
        // The server answers one kind after the other.
        loop {
            let (code, body) = joiner.get("health", "/readyz").await;
            assert_eq!(code, 503);
            assert!(body.contains("grant it in the ClusterRole"), "{body}");
            if body.contains("nodepools") {
                break;
            }
            assert!(body.contains("NodePool: not listed yet"), "{body}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(joiner.is_running());
        assert_eq!(joiner.stop().await.code(), Some(0));
        std::fs::remove_file(&file).unwrap();
    }
}
