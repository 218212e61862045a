//! Our kinds on a real API server: it takes their definitions, and judges objects as we do.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use joiner_api::{admit, admit_update, crds};
use joiner_testkit::control_plane::{ControlPlane, Error, Program};
use serde_json::{Value, json};

const DRY: [&str; 5] = [
    "create",
    "--dry-run=server",
    "--validate=warn",
    "--output=json",
    "--filename=-",
];
const LIMIT: Duration = Duration::from_secs(60);

/// One control plane for all tests of this file, with our definitions; none where there is none.
fn plane() -> Option<&'static ControlPlane> {
    static PLANE: OnceLock<Option<ControlPlane>> = OnceLock::new();
    let plane = PLANE.get_or_init(|| {
        let plane = ControlPlane::start().expect("its programs work");
        if let Some(plane) = &plane {
            define(plane);
        }
        plane
    });
    if plane.is_none() {
        eprintln!("skipped: there is no control plane; cargo xtask control-plane build");
    }
    plane.as_ref()
}

fn define(plane: &ControlPlane) {
    let folder = root().join("deploy/crds").display().to_string();
    let apply = ["apply", "--server-side", "--filename", &folder];
    plane.kubectl(&apply).expect("the definitions are sound");
    let established = ["wait", "--for=condition=Established", "crd", "--all"];
    plane.kubectl(&established).expect("the names are free");
    // Established is not yet discovered.
    let plurals: Vec<String> = crds().iter().map(|crd| name(crd).to_owned()).collect();
    let (list, started) = (plurals.join(","), Instant::now());
    while let Err(error) = plane.kubectl(&["get", "--all-namespaces", &list]) {
        assert!(started.elapsed() < LIMIT, "{error}");
        std::thread::park_timeout(Duration::from_millis(200));
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn name(object: &Value) -> &str {
    let name = object["metadata"]["name"].as_str();
    name.expect("every object here has a name")
}

/// What the server makes of a new object, without keeping it.
fn create_dry(plane: &ControlPlane, object: &Value) -> Result<Value, String> {
    let created = plane.kubectl_with_input(&DRY, &object.to_string());
    judged(created)
}

/// What the server makes of the new version of an object, without keeping it.
fn replace_dry(plane: &ControlPlane, object: &Value) -> Result<Value, String> {
    let mut arguments = DRY;
    arguments[0] = "replace";
    judged(plane.kubectl_with_input(&arguments, &object.to_string()))
}

fn judged(outcome: Result<String, Error>) -> Result<Value, String> {
    let text = outcome.map_err(|error| error.to_string())?;
    Ok(serde_json::from_str(&text).expect("kubectl prints JSON"))
}

/// Every object of our kinds in the examples.
fn examples() -> Vec<Value> {
    let folders = std::fs::read_dir(root().join("examples")).expect("there are examples");
    let mut objects = Vec::new();
    for folder in folders {
        let folder = folder.expect("it is readable").path();
        let Ok(files) = std::fs::read_dir(folder) else {
            continue;
        };
        for file in files {
            let path = file.expect("it is readable").path();
            if path.extension().is_some_and(|ending| ending == "yaml") {
                let text = std::fs::read_to_string(&path).expect("it is text");
                let read: Vec<Value> = serde_saphyr::from_multiple(&text).expect("it is YAML");
                objects.extend(read.into_iter().filter(|object| !object.is_null()));
            }
        }
    }
    let kinds: Vec<Value> = (crds().iter())
        .map(|crd| crd["spec"]["names"]["kind"].clone())
        .collect();
    objects.retain(|object| kinds.contains(&object["kind"]));
    objects
}

fn class_ref() -> Value {
    json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"})
}

fn object(api_version: &str, kind: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "example"}, "spec": spec})
}

/// A NodePool with these fields besides the necessary ones.
fn pool(requirements: Value, more: Value) -> Value {
    let mut spec = json!({"template": {"spec": {
        "nodeClassRef": class_ref(), "requirements": requirements,
    }}});
    add(&mut spec, &more);
    object("karpenter.sh/v1", "NodePool", spec)
}

fn claim(more: Value) -> Value {
    let mut spec = json!({"nodeClassRef": class_ref(), "requirements": []});
    add(&mut spec, &more);
    object("karpenter.sh/v1", "NodeClaim", spec)
}

fn overlay(more: Value) -> Value {
    let mut spec = json!({"requirements": []});
    add(&mut spec, &more);
    object("karpenter.sh/v1alpha1", "NodeOverlay", spec)
}

fn ec2_class(more: Value) -> Value {
    let tags = json!([{"tags": {"discovery": "cluster"}}]);
    let mut spec = json!({
        "role": "nodes",
        "subnetSelectorTerms": tags,
        "securityGroupSelectorTerms": tags,
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
    });
    add(&mut spec, &more);
    object("karpenter.k8s.aws/v1", "EC2NodeClass", spec)
}

fn kwok_class(spec: Value) -> Value {
    object("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", spec)
}

fn buffer(spec: Value) -> Value {
    object("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", spec)
}

fn add(spec: &mut Value, more: &Value) {
    let more = more.as_object().expect("more fields come as an object");
    let spec = spec.as_object_mut().expect("a spec is an object");
    spec.extend(more.clone());
}

#[test]
fn all_six_definitions_are_established() {
    let Some(plane) = plane() else { return };
    let text = plane.kubectl(&["get", "crd", "--output=json"]);
    let list: Value = serde_json::from_str(&text.expect("it lists")).expect("it is JSON");
    let found = list["items"].as_array().expect("a list has items");
    assert_eq!(found.len(), 6);
    for crd in crds() {
        let there = found.iter().find(|there| name(there) == name(&crd));
        let there = there.expect("it was applied");
        let stored = &there["spec"]["versions"][0]["schema"];
        let same = *stored == crd["spec"]["versions"][0]["schema"];
        assert!(same, "{}: cargo xtask gen was not run", name(&crd));
        let conditions = there["status"]["conditions"].as_array();
        for condition in conditions.expect("it was looked at") {
            assert_eq!(condition["status"], "True", "{}: {condition}", name(&crd));
        }
    }
}

#[test]
fn good_objects_are_completed_alike() {
    let Some(plane) = plane() else { return };
    let mut good = examples();
    assert!(good.len() >= 8, "{}", good.len());
    good.extend([
        pool(json!([]), json!({})),
        pool(
            json!([{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]}]),
            json!({"replicas": 3, "limits": {"nodes": "5"},
                "disruption": {"consolidateAfter": "Never", "budgets": [{}]}}),
        ),
        claim(json!({"resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}})),
        overlay(json!({"priceAdjustment": "-10%", "capacity": {"example.com/gpu": 1}})),
        ec2_class(json!({"kubelet": {"maxPods": 110},
            "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}}]})),
        kwok_class(json!({"nodeRegistrationDelay": "1m30s"})),
        buffer(json!({"podTemplateRef": {"name": "web"}, "replicas": 2})),
    ]);
    for mut object in good {
        let there =
            create_dry(plane, &object).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
        let ours = admit(&mut object).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
        assert_eq!(ours.warnings, [], "{object:#}");
        assert_eq!(there["spec"], object["spec"], "{}", object["kind"]);
    }
}

#[test]
fn bad_objects_are_refused_alike() {
    let Some(plane) = plane() else { return };
    let pools = "spec.template.spec.requirements[0]";
    let bad = [
        // What a schema says.
        ("spec.weight", pool(json!([]), json!({"weight": 101}))),
        (
            "spec.disruption.consolidateAfter",
            pool(json!([]), json!({"disruption": {}})),
        ),
        (
            "spec.replicas",
            pool(json!([]), json!({"replicas": 1_i64 << 31})),
        ),
        (
            "spec.template.spec.requirements[0].operator",
            pool(json!([{"key": "a", "operator": "Near"}]), json!({})),
        ),
        ("spec.expireAfter", claim(json!({"expireAfter": "a while"}))),
        (
            "spec.nodeClassRef.group",
            claim(json!({"nodeClassRef": {"name": "x", "kind": "Y"}})),
        ),
        ("spec.price", overlay(json!({"price": "cheap"}))),
        (
            "spec.subnetSelectorTerms",
            ec2_class(json!({"subnetSelectorTerms": []})),
        ),
        (
            "spec.nodeRegistrationDelay",
            kwok_class(json!({"nodeRegistrationDelay": "soon"})),
        ),
        (
            "spec.replicas",
            buffer(json!({"scalableRef": {"kind": "D", "name": "d"}, "replicas": -1})),
        ),
        // What a rule says.
        (
            pools,
            pool(
                json!([{"key": "a", "operator": "In", "values": []}]),
                json!({}),
            ),
        ),
        (
            pools,
            pool(
                json!([{"key": "a", "operator": "Lt", "values": ["few"]}]),
                json!({}),
            ),
        ),
        (
            "spec.template.spec.requirements[0].key",
            pool(
                json!([{"key": "kubernetes.io/hostname", "operator": "Exists"}]),
                json!({}),
            ),
        ),
        ("spec", pool(json!([]), json!({"replicas": 1, "weight": 5}))),
        (
            "spec.requirements[0].key",
            claim(json!({"requirements": [{"key": "karpenter.sh/own", "operator": "Exists"}]})),
        ),
        (
            "spec",
            overlay(json!({"price": "1", "priceAdjustment": "+1"})),
        ),
        ("spec.capacity", overlay(json!({"capacity": {"cpu": "1"}}))),
        ("spec", ec2_class(json!({"instanceProfile": "too"}))),
        (
            "spec.tags",
            ec2_class(json!({"tags": {"kubernetes.io/cluster/x": "owned"}})),
        ),
        ("spec", buffer(json!({"podTemplateRef": {"name": "web"}}))),
    ];
    for (path, mut object) in bad {
        let there = create_dry(plane, &object).expect_err(&format!("{object:#}"));
        let words = format!("{path}: ");
        assert!(there.contains(&words), "want {words}\ngot {there}");
        let ours = admit(&mut object).expect_err(&format!("{object:#}"));
        let hit = ours.errors().iter().any(|error| error.path == path);
        assert!(hit, "want {path}\ngot {ours}");
    }
}

#[test]
fn changes_are_judged_alike() {
    let Some(plane) = plane() else { return };
    let other = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let mut moved = pool(json!([]), json!({}));
    moved["spec"]["template"]["spec"]["nodeClassRef"] = other;
    let changes = [
        (
            pool(json!([]), json!({})),
            pool(json!([]), json!({"weight": 7})),
            None,
        ),
        (
            pool(json!([]), json!({})),
            moved,
            Some("spec.template.spec.nodeClassRef.group"),
        ),
        (
            pool(json!([]), json!({})),
            pool(json!([]), json!({"replicas": 1})),
            Some("spec"),
        ),
        (claim(json!({})), claim(json!({})), None),
        (
            claim(json!({})),
            claim(json!({"expireAfter": "1h"})),
            Some("spec"),
        ),
    ];
    for (mut old, mut new, path) in changes {
        // Others create objects of these kinds at the same time.
        for own in [&mut old, &mut new] {
            own["metadata"]["name"] = json!("changed");
        }
        let input = old.to_string();
        let created = plane.kubectl_with_input(&["create", "--filename=-"], &input);
        created.expect("it is good");
        let there = replace_dry(plane, &new);
        let deleted = plane.kubectl_with_input(&["delete", "--filename=-"], &input);
        deleted.expect("it is there");
        let _ = admit(&mut old).expect("it is good");
        let ours = admit_update(&old, &mut new);
        match path {
            None => assert!(there.is_ok() && ours.is_ok(), "{there:?}\n{ours:?}"),
            Some(path) => {
                let there = there.expect_err("it is refused");
                assert!(there.contains(&format!("{path}: ")), "{there}");
                let ours = ours.expect_err("it is refused");
                let hit = ours.errors().iter().any(|error| error.path == path);
                assert!(hit, "{ours}");
            }
        }
    }
}

#[test]
fn pods_are_created_and_scheduled() {
    let Some(plane) = plane() else { return };
    if !plane.has(Program::ControllerManager) || !plane.has(Program::Scheduler) {
        eprintln!("skipped: this control plane has no controllers");
        return;
    }
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "web"}],
                "tolerations": [{"operator": "Exists"}],
            },
        }},
    });
    for object in [node, deployment] {
        let created = plane.kubectl_with_input(&["create", "--filename=-"], &object.to_string());
        created.expect("it is good");
    }
    let wait = [
        "wait",
        "--for=condition=PodScheduled",
        "pod",
        "--selector=app=web",
    ];
    let started = Instant::now();
    // There is nothing to wait for until the controllers have made the pods.
    while let Err(error) = plane.kubectl(&wait) {
        assert!(started.elapsed() < LIMIT, "{error}");
    }
}
