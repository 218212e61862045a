//! The charts in `deploy`: what helm makes of them, what a real API server makes of that, and what
//! the service account may do.
//!
//! The tests need helm, and some a control plane: `cargo xtask helm`, `cargo xtask control-plane
//! build`. Without these they are skipped, unless `CI=true`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and one that is skipped should say so"
)]

mod permissions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use joiner_testkit::control_plane::{Chart, ControlPlane, Error, Helm, apply_chart};
use serde_json::{Value, json};

const CLOUD: &str = "cloud=simulated";

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn helm() -> Option<Helm> {
    let helm = Helm::find().unwrap();
    if helm.is_none() {
        println!("skipped: there is no helm; cargo xtask helm");
    }
    helm
}

/// One control plane for all tests of this file, with our charts on it; none where there is none.
fn plane() -> Option<&'static (ControlPlane, Chart)> {
    static PLANE: OnceLock<Option<(ControlPlane, Chart)>> = OnceLock::new();
    let plane = PLANE.get_or_init(|| {
        let plane = ControlPlane::start().expect("its programs work")?;
        let chart = apply_chart(&plane, &[]).expect("the charts are sound")?;
        Some((plane, chart))
    });
    if plane.is_none() {
        println!("skipped: cargo xtask control-plane build; cargo xtask helm");
    }
    plane.as_ref()
}

/// The chart as text.
fn render(helm: &Helm, settings: &[&str]) -> Result<String, Error> {
    helm.template(
        &deploy().join("charts/joiner"),
        "joiner",
        "scaling",
        settings,
    )
}

fn objects(text: &str) -> Vec<Value> {
    let read: Vec<Value> = serde_saphyr::from_multiple(text).expect("helm prints YAML");
    read.into_iter()
        .filter(|object| !object.is_null())
        .collect()
}

/// The one object of this kind and name.
fn find<'o>(objects: &'o [Value], kind: &str, name: &str) -> &'o Value {
    let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let mut found = objects.iter().filter(is_it);
    let object = found.next().unwrap_or_else(|| panic!("no {kind} {name}"));
    assert!(found.next().is_none(), "two of {kind} {name}");
    object
}

fn container(objects: &[Value]) -> &Value {
    let pod = &find(objects, "Deployment", "joiner")["spec"]["template"]["spec"];
    &pod["containers"][0]
}

/// The plain variables of the program's environment.
fn environment(objects: &[Value]) -> BTreeMap<&str, &str> {
    let variables = container(objects)["env"].as_array().unwrap().iter();
    variables
        .filter(|variable| variable.get("value").is_some())
        .map(|v| (v["name"].as_str().unwrap(), v["value"].as_str().unwrap()))
        .collect()
}

#[test]
fn bad_values_are_refused_with_the_remedy() {
    let Some(helm) = helm() else { return };
    let cases: [(&[&str], &str); 6] = [
        (
            &[],
            "cloud is not set: say where nodes come from, as in --set cloud=simulated",
        ),
        (&["cloud="], "cloud is not set"),
        (
            &["cloud=moon"],
            "cloud is \"moon\", which this version does not know: use one of: simulated",
        ),
        (
            &[CLOUD, "logLevel=loud"],
            "logLevel is \"loud\": use one of: , debug, info, error",
        ),
        (
            &[CLOUD, "settings.preferencePolicy=Maybe"],
            "settings.preferencePolicy is \"Maybe\": use one of: Respect, Ignore",
        ),
        (
            &[CLOUD, "settings.minValuesPolicy=Lax"],
            "settings.minValuesPolicy is \"Lax\": use one of: Strict, BestEffort",
        ),
    ];
    for (settings, words) in cases {
        let error = render(&helm, settings)
            .expect_err("it is refused")
            .to_string();
        assert!(error.contains(words), "{settings:?}: {error}");
    }
}

#[test]
fn the_default_is_what_upstreams_chart_sets() {
    let Some(helm) = helm() else { return };
    let objects = objects(&render(&helm, &[CLOUD]).unwrap());
    let container = container(&objects);
    let arguments = json!(["run", "--cloud=simulated", "--simulated-kubelets=true"]);
    assert_eq!(container["args"], arguments);
    assert_eq!(
        container["image"],
        format!("joiner:{}", env!("CARGO_PKG_VERSION"))
    );
    let security = &container["securityContext"];
    assert_eq!(security["runAsUser"], 65532);
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(security["allowPrivilegeEscalation"], false);
    let variables = environment(&objects);
    let expected = [
        ("METRICS_PORT", "8080"),
        ("HEALTH_PROBE_PORT", "8081"),
        ("LOG_LEVEL", "info"),
        ("PREFERENCE_POLICY", "Respect"),
        ("MIN_VALUES_POLICY", "Strict"),
        ("IGNORE_DRA_REQUESTS", "true"),
        (
            "FEATURE_GATES",
            "CapacityBuffer=false,NodeOverlay=false,NodeRepair=false,ReservedCapacity=true,\
             SpotToSpotConsolidation=false,StaticCapacity=false",
        ),
    ];
    for (name, value) in expected {
        assert_eq!(variables.get(name), Some(&value), "{name}");
    }
    // These stay the program's own.
    assert!(!variables.contains_key("BATCH_IDLE_DURATION"));
    assert!(!variables.contains_key("LEADER_ELECTION_NAME"));
    let deployment = &find(&objects, "Deployment", "joiner")["spec"];
    assert_eq!(deployment["replicas"], 2);
    let affinity = &deployment["template"]["spec"]["affinity"]["podAntiAffinity"];
    let term = &affinity["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(term["labelSelector"], deployment["selector"]);
    assert_eq!(
        find(&objects, "PodDisruptionBudget", "joiner")["spec"]["maxUnavailable"],
        1
    );
}

/// Settings, each with a part of what they must lead to.
const SETTINGS: [(&str, &str); 56] = [
    ("nameOverride=other", "app.kubernetes.io/name: other"),
    ("fullnameOverride=other", "name: other-core"),
    ("additionalLabels.team=blue", "team: blue"),
    ("additionalAnnotations.note=x", "note: x"),
    ("imagePullPolicy=Always", "imagePullPolicy: Always"),
    ("imagePullSecrets[0].name=key", "imagePullSecrets:"),
    ("service.annotations.scrape=often", "scrape: often"),
    ("serviceAccount.name=robot", "serviceAccountName: robot"),
    ("serviceAccount.annotations.role=arn", "role: arn"),
    ("serviceMonitor.enabled=true", "kind: ServiceMonitor"),
    (
        "networkPolicy.metricsFrom=[{\"ipBlock\":{\"cidr\":\"10.0.0.0/8\"}}]",
        "cidr: 10.0.0.0/8",
    ),
    (
        "networkPolicy.extraIngress=[{\"ports\":[{\"port\":15020}]}]",
        "port: 15020",
    ),
    (
        "simulatedCloud.takeOver=true",
        "verbs: [\"get\", \"list\", \"delete\"]",
    ),
    ("replicas=3", "replicas: 3"),
    ("revisionHistoryLimit=4", "revisionHistoryLimit: 4"),
    (
        "strategy.rollingUpdate.maxUnavailable=2",
        "maxUnavailable: 2",
    ),
    ("podLabels.color=red", "color: red"),
    ("podAnnotations.color=green", "color: green"),
    ("podDisruptionBudget.name=budget", "name: budget"),
    ("podDisruptionBudget.maxUnavailable=2", "maxUnavailable: 2"),
    ("podSecurityContext.fsGroup=7", "fsGroup: 7"),
    ("priorityClassName=high", "priorityClassName: \"high\""),
    (
        "terminationGracePeriodSeconds=0",
        "terminationGracePeriodSeconds: 0",
    ),
    ("hostNetwork=true", "hostNetwork: true"),
    ("dnsPolicy=Default", "dnsPolicy: Default"),
    ("dnsConfig.options[0].name=ndots", "dnsConfig:"),
    ("schedulerName=mine", "schedulerName: \"mine\""),
    ("nodeSelector.disk=fast", "disk: fast"),
    ("controller.containerName=main", "containerName: main"),
    ("controller.image.repository=r.io/j", "image: r.io/j:"),
    ("controller.image.tag=9", "image: joiner:9"),
    (
        "controller.image.digest=sha256:00",
        "image: joiner@sha256:00",
    ),
    ("controller.env[0].name=EXTRA", "name: EXTRA"),
    ("controller.envFrom[0].secretRef.name=keys", "envFrom:"),
    ("controller.resources.requests.cpu=2", "cpu: 2"),
    ("controller.metrics.port=9000", "containerPort: 9000"),
    ("controller.healthProbe.port=9001", "containerPort: 9001"),
    ("logLevel=debug", "value: \"debug\""),
    (
        "logOutputPaths=[\"stdout\",\"/log\"]",
        "value: \"stdout,/log\"",
    ),
    ("logErrorOutputPaths=[\"/errors\"]", "value: \"/errors\""),
    (
        "settings.batchMaxDuration=20s",
        "name: BATCH_MAX_DURATION\n              value: \"20s\"",
    ),
    (
        "settings.batchIdleDuration=2s",
        "name: BATCH_IDLE_DURATION\n              value: \"2s\"",
    ),
    ("settings.preferencePolicy=Ignore", "value: \"Ignore\""),
    (
        "settings.minValuesPolicy=BestEffort",
        "value: \"BestEffort\"",
    ),
    (
        "settings.schedulerConfig=x",
        "name: SCHEDULER_CONFIG\n              value: \"x\"",
    ),
    (
        "settings.ignoreDRARequests=false",
        "name: IGNORE_DRA_REQUESTS\n              value: \"false\"",
    ),
    (
        "settings.disableClusterStateObservability=true",
        "name: DISABLE_CLUSTER_STATE_OBSERVABILITY\n              value: \"true\"",
    ),
    (
        "settings.clusterName=c",
        "name: CLUSTER_NAME\n              value: \"c\"",
    ),
    (
        "settings.clusterEndpoint=e",
        "name: CLUSTER_ENDPOINT\n              value: \"e\"",
    ),
    (
        "settings.interruptionQueue=q",
        "name: INTERRUPTION_QUEUE\n              value: \"q\"",
    ),
    (
        "settings.isolatedVPC=true",
        "name: ISOLATED_VPC\n              value: \"true\"",
    ),
    ("settings.featureGates.nodeRepair=true", "NodeRepair=true"),
    (
        "settings.featureGates.staticCapacity=true",
        "StaticCapacity=true",
    ),
    (
        "settings.featureGates.capacityBuffer=true",
        "CapacityBuffer=true",
    ),
    (
        "simulatedCloud.kubelets=false",
        "--simulated-kubelets=false",
    ),
    (
        "simulatedCloud.instanceTypes=[{\"name\":\"a\"}]",
        "--instance-types=/etc/joiner/",
    ),
];

#[test]
fn every_setting_has_its_effect() {
    let Some(helm) = helm() else { return };
    let plain = render(&helm, &[CLOUD]).unwrap();
    for (setting, part) in SETTINGS {
        let text = render(&helm, &[CLOUD, setting]).unwrap();
        assert!(!plain.contains(part), "{setting}: {part} is there anyway");
        assert!(text.contains(part), "{setting}: no {part} in\n{text}");
    }
}

#[test]
fn others_reach_metrics_and_health_and_nothing_else() {
    let Some(helm) = helm() else { return };
    let ports = [
        "controller.metrics.port=9000",
        "controller.healthProbe.port=9001",
    ];
    let settings = [&[CLOUD], &ports[..]].concat();
    let rendered = objects(&render(&helm, &settings).unwrap());
    let policy = &find(&rendered, "NetworkPolicy", "joiner")["spec"];
    let deployment = &find(&rendered, "Deployment", "joiner")["spec"];
    assert_eq!(policy["podSelector"], deployment["selector"]);
    assert_eq!(
        policy["policyTypes"],
        json!(["Ingress"]),
        "what goes out is free"
    );
    let open = |port: u16| json!({"ports": [{"port": port, "protocol": "TCP"}]});
    assert_eq!(policy["ingress"], json!([open(9001), open(9000)]));
    // Scrapes may be restricted, and probes still come from anywhere.
    let from = "networkPolicy.metricsFrom=[{\"namespaceSelector\":{}}]";
    let restricted = objects(&render(&helm, &[CLOUD, from]).unwrap());
    let ingress = &find(&restricted, "NetworkPolicy", "joiner")["spec"]["ingress"];
    assert!(ingress[0].get("from").is_none(), "{ingress}");
    assert_eq!(ingress[1]["from"], json!([{"namespaceSelector": {}}]));
    let none = objects(&render(&helm, &[CLOUD, "networkPolicy.enabled=false"]).unwrap());
    assert!(none.iter().all(|object| object["kind"] != "NetworkPolicy"));
}

#[test]
fn machines_have_a_namespace_that_outlives_the_release() {
    let Some(helm) = helm() else { return };
    let rendered = objects(&render(&helm, &[CLOUD]).unwrap());
    let name = joiner_cloud_sim::MACHINES_NAMESPACE;
    let namespace = find(&rendered, "Namespace", name);
    let annotations = &namespace["metadata"]["annotations"];
    assert_eq!(annotations["helm.sh/resource-policy"], "keep");
    let role = find(&rendered, "Role", "joiner-machines");
    assert_eq!(role["metadata"]["namespace"], name);
}

#[test]
fn an_account_that_exists_is_used_and_not_made() {
    let Some(helm) = helm() else { return };
    let settings = [
        CLOUD,
        "serviceAccount.create=false",
        "serviceAccount.name=robot",
    ];
    let objects = objects(&render(&helm, &settings).unwrap());
    assert!(
        objects
            .iter()
            .all(|object| object["kind"] != "ServiceAccount")
    );
    for binding in objects.iter().filter(|o| o["subjects"].is_array()) {
        let subject = json!([{"kind": "ServiceAccount", "name": "robot", "namespace": "scaling"}]);
        assert_eq!(binding["subjects"], subject);
    }
}

/// Sets of values to render and to show to a real API server.
const SETS: [&[&str]; 6] = [
    &[CLOUD],
    &[
        CLOUD,
        "simulatedCloud.takeOver=true",
        "networkPolicy.metricsFrom=[{\"namespaceSelector\":{}}]",
        "networkPolicy.extraIngress=[{\"ports\":[{\"port\":15020,\"protocol\":\"TCP\"}]}]",
    ],
    &[
        CLOUD,
        "simulatedCloud.kubelets=false",
        "replicas=1",
        "hostNetwork=true",
    ],
    &[
        CLOUD,
        "simulatedCloud.instanceTypes=[{\"name\":\"c-1x\",\"resources\":{\"cpu\":\"1\"}}]",
    ],
    &[
        CLOUD,
        "fullnameOverride=other",
        "additionalLabels.team=blue",
        "additionalAnnotations.note=x",
        "additionalClusterRoleRules=[{\"apiGroups\":[\"a.b\"],\"resources\":[\"c\"],\"verbs\":[\"get\"]}]",
        "controller.resources={\"requests\":{\"cpu\":\"1\",\"memory\":\"1Gi\"},\"limits\":{\"memory\":\"1Gi\"}}",
        "controller.env=[{\"name\":\"EXTRA\",\"value\":\"1\"}]",
        "controller.envFrom=[{\"secretRef\":{\"name\":\"keys\"}}]",
        "settings.schedulerConfig=podTopologySpread: {}",
        "terminationGracePeriodSeconds=0",
        "serviceMonitor.enabled=true",
    ],
    &[
        CLOUD,
        "extraVolumes=[{\"name\":\"token\",\"emptyDir\":{}}]",
        "controller.extraVolumeMounts=[{\"name\":\"token\",\"mountPath\":\"/token\"}]",
        "controller.sidecarContainer=[{\"name\":\"proxy\",\"image\":\"proxy:1\"}]",
        "controller.sidecarVolumeMounts=[{\"name\":\"token\",\"mountPath\":\"/other\"}]",
        "affinity={\"podAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":\
         [{\"weight\":1,\"podAffinityTerm\":{\"topologyKey\":\"zone\"}}]}}",
        "dnsConfig.options=[{\"name\":\"ndots\",\"value\":\"1\"}]",
        "simulatedCloud.instanceTypes=[{\"name\":\"c-1x\"}]",
    ],
];

#[test]
fn a_real_api_server_takes_every_object() {
    let (Some(helm), Some((plane, _))) = (helm(), plane()) else {
        return;
    };
    let dry = [
        "apply",
        "--server-side",
        "--dry-run=server",
        "--force-conflicts",
        "--filename=-",
    ];
    for settings in SETS {
        let text = helm.template(
            &deploy().join("charts/joiner"),
            "joiner",
            "joiner",
            settings,
        );
        let mut objects = objects(&text.unwrap());
        // Its kind belongs to somebody else and is not there.
        objects.retain(|object| object["kind"] != "ServiceMonitor");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let answer = plane.kubectl_with_input(&dry, &list.to_string());
        let lines = answer.unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        assert_eq!(
            lines.lines().count(),
            objects.len(),
            "{settings:?}: {lines}"
        );
    }
}

#[test]
fn an_upgrade_may_remove_the_machines_that_it_finds_and_the_next_one_nothing() {
    let (Some(helm), Some((plane, _))) = (helm(), plane()) else {
        return;
    };
    let kubeconfig = plane.kubeconfig().display().to_string();
    let chart = deploy().join("charts/joiner").display().to_string();
    let upgrade = || {
        let release = [
            "upgrade",
            "--install",
            "again",
            &chart,
            "--namespace",
            "again",
        ];
        let settings = ["--create-namespace", "--set", "cloud=simulated,replicas=0"];
        let whose = ["--kubeconfig", &kubeconfig];
        helm.run(&[&release[..], &settings, &whose].concat())
            .unwrap();
        let role = [
            "get",
            "role",
            "again-joiner",
            "--namespace",
            "again",
            "--output=json",
        ];
        let role: Value = serde_json::from_str(&plane.kubectl(&role).unwrap()).unwrap();
        let mut rules = role["rules"].as_array().unwrap().clone();
        rules.retain(|rule| rule["resources"] == json!(["configmaps"]));
        // Only reading one about faults is always there.
        rules.remove(0);
        rules
    };
    let none = Vec::<Value>::new();
    assert_eq!(upgrade(), none, "there was no older version");
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "simulated-instance-x", "namespace": "again",
        "labels": {joiner_cloud_sim::INSTANCE_LABEL: "true"}}});
    let apply = ["apply", "--server-side", "--filename=-"];
    plane.kubectl_with_input(&apply, &old.to_string()).unwrap();
    let rules = upgrade();
    assert_eq!(rules.len(), 2, "{rules:?}");
    assert_eq!(rules[0]["verbs"], json!(["list"]));
    assert_eq!(rules[1]["verbs"], json!(["get", "delete"]));
    assert_eq!(rules[1]["resourceNames"], json!(["simulated-instance-x"]));
    let delete = [
        "delete",
        "configmap",
        "simulated-instance-x",
        "--namespace",
        "again",
    ];
    plane.kubectl(&delete).unwrap();
    assert_eq!(upgrade(), none);
    helm.run(&[
        "uninstall",
        "again",
        "--namespace",
        "again",
        "--kubeconfig",
        &kubeconfig,
    ])
    .unwrap();
}

#[test]
fn the_chart_of_definitions_holds_all_and_lets_go_of_none() {
    let Some(helm) = helm() else { return };
    let chart = deploy().join("charts/joiner-crd");
    let found = objects(&helm.template(&chart, "joiner-crd", "scaling", &[]).unwrap());
    let plain: Vec<Value> = joiner_api::crds();
    assert_eq!(found.len(), plain.len());
    for crd in &plain {
        let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
        let there = find(&found, "CustomResourceDefinition", &name);
        assert_eq!(
            there["spec"], crd["spec"],
            "{name}: cargo xtask gen was not run"
        );
        let policy = &there["metadata"]["annotations"]["helm.sh/resource-policy"];
        assert_eq!(policy, "keep", "{name}");
    }
}

#[test]
fn recipe_and_charts_are_of_our_versions() {
    let read = |path: &str| std::fs::read_to_string(deploy().join(path)).unwrap();
    let toolchain = read("../rust-toolchain.toml");
    let channel = toolchain
        .lines()
        .find_map(|line| line.strip_prefix("channel = "));
    let channel = channel.unwrap().trim_matches('"');
    let recipe = read("Containerfile");
    assert!(
        recipe.contains(&format!("ARG RUST_VERSION={channel}\n")),
        "not {channel}"
    );
    for chart in ["joiner", "joiner-crd"] {
        let text = read(&format!("charts/{chart}/Chart.yaml"));
        let chart: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    }
}
