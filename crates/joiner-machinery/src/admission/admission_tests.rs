use super::*;
use crate::defaults;
use crate::kinds::builtin;

struct Classes;

impl Lookup for Classes {
    fn priority_class(&self, name: &str) -> Option<Arc<Value>> {
        (name == "high").then(|| {
            Arc::new(json!({
                "metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never",
            }))
        })
    }

    fn default_priority_class(&self) -> Option<Arc<Value>> {
        Some(Arc::new(json!({"metadata": {"name": "plain"}, "value": 7})))
    }

    fn runtime_class(&self, name: &str) -> Option<Arc<Value>> {
        (name == "gvisor").then(|| {
            Arc::new(json!({
                "overhead": {"podFixed": {"cpu": "10m"}},
                "scheduling": {"nodeSelector": {"sandbox": "yes"}},
            }))
        })
    }

    fn default_storage_class(&self) -> Option<String> {
        Some("fast".to_owned())
    }

    fn is_address_taken(&self, address: &str) -> bool {
        address.ends_with(".7")
    }
}

fn context(lookup: &dyn Lookup) -> Context<'_> {
    Context {
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        uid: "u-1",
        lookup,
        default_service_account: true,
    }
}

fn kind(group: &str, name: &str) -> Kind {
    let mut all = builtin().into_iter();
    all.find(|k| k.group == group && k.kind == name).unwrap()
}

fn created(group: &str, name: &str, mut object: Value) -> Result<Value, ApiError> {
    let kind = kind(group, name);
    fields::decode(&kind, &mut object)?;
    defaults::apply(&kind, &mut object);
    prepare_create(&kind, &mut object, &context(&Classes))?;
    Ok(object)
}

fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec})
}

#[test]
fn priority_comes_from_classes() {
    for (spec, priority, policy, class) in [
        (json!({}), 7, "PreemptLowerPriority", "plain"),
        (json!({"priorityClassName": "high"}), 100, "Never", "high"),
        (
            json!({"priorityClassName": "system-node-critical"}),
            2_000_001_000,
            "PreemptLowerPriority",
            "system-node-critical",
        ),
    ] {
        let spec = created("", "Pod", pod(spec)).unwrap()["spec"].clone();
        assert_eq!(spec["priority"], json!(priority));
        assert_eq!(spec["preemptionPolicy"], json!(policy));
        assert_eq!(spec["priorityClassName"], json!(class));
    }
    let error = created("", "Pod", pod(json!({"priorityClassName": "nope"}))).unwrap_err();
    assert_eq!(
        (error.reason.code(), error.message.as_str()),
        (
            403,
            "pods \"p\" is forbidden: no PriorityClass with name nope was found"
        )
    );
}

#[test]
fn pods_get_an_account_a_runtime_and_a_storage_class() {
    let object = created("", "Pod", pod(json!({"runtimeClassName": "gvisor"}))).unwrap();
    let spec = &object["spec"];
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["overhead"], json!({"cpu": "10m"}));
    assert_eq!(spec["nodeSelector"], json!({"sandbox": "yes"}));
    let claim = created("", "PersistentVolumeClaim", pod(json!({}))).unwrap();
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    let none = created(
        "",
        "PersistentVolumeClaim",
        pod(json!({"storageClassName": ""})),
    )
    .unwrap();
    assert_eq!(none["spec"]["storageClassName"], "");
}

#[test]
fn names_and_addresses_follow_from_the_uid() {
    let object = json!({"metadata": {"generateName": "web-"}, "spec": {"ports": [{"port": 80}]}});
    let first = created("", "Service", object.clone()).unwrap();
    let second = created("", "Service", object).unwrap();
    assert_eq!(first, second);
    let name = meta::name(&first);
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    let address: std::net::Ipv4Addr = first["spec"]["clusterIP"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        u32::from(address) >> 20,
        0x0a6,
        "{address} is in 10.96.0.0/12"
    );
    assert_ne!(generated_name("a-", "u-1"), generated_name("a-", "u-2"));
    assert_eq!(generated_name(&"x".repeat(80), "u").len(), 63);
}

#[test]
fn clients_cannot_set_what_is_the_servers() {
    let mut object = pod(json!({}));
    for (field, value) in [
        ("uid", json!("mine")),
        ("generation", json!(9)),
        ("creationTimestamp", json!("2000-01-01T00:00:00Z")),
        ("deletionTimestamp", json!("2000-01-01T00:00:00Z")),
    ] {
        object["metadata"][field] = value;
    }
    object["status"] = json!({"phase": "Running"});
    let object = created("", "Pod", object).unwrap();
    let metadata = &object["metadata"];
    assert_eq!(metadata["uid"], "u-1");
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert!(metadata.get("deletionTimestamp").is_none());
    assert_eq!(object["status"]["phase"], "Pending");
}

fn updated(group: &str, name: &str, old: &Value, new: &Value, sub: Option<Subresource>) -> Value {
    let mut new = new.clone();
    prepare_update(&kind(group, name), old, &mut new, sub, &context(&Nothing)).unwrap();
    new
}

#[test]
fn spec_and_status_are_written_apart() {
    let old = json!({
        "metadata": {"name": "d", "uid": "u-1", "generation": 3, "labels": {"a": "b"}},
        "spec": {"replicas": 1},
        "status": {"replicas": 1},
    });
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(2);
    new["status"]["replicas"] = json!(2);
    let whole = updated("apps", "Deployment", &old, &new, None);
    assert_eq!(
        (&whole["spec"], &whole["status"]),
        (&new["spec"], &old["status"])
    );
    assert_eq!(whole["metadata"]["generation"], 4);
    let status = updated("apps", "Deployment", &old, &new, Some(Subresource::Status));
    assert_eq!(
        (&status["spec"], &status["status"]),
        (&old["spec"], &new["status"])
    );
    assert_eq!(status["metadata"]["generation"], 3);
    let mut labels = old.clone();
    labels["metadata"]["labels"] = json!({"c": "d"});
    let labeled = updated("apps", "Deployment", &old, &labels, None);
    assert_eq!(labeled["metadata"]["generation"], 3);
}

#[test]
fn a_binding_brings_a_condition_but_no_generation() {
    let old = json!({
        "metadata": {"name": "p", "uid": "u-1", "generation": 1},
        "spec": {"containers": []},
        "status": {"phase": "Pending"},
    });
    let mut new = old.clone();
    new["spec"]["nodeName"] = json!("n");
    new["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}]);
    let bound = updated("", "Pod", &old, &new, Some(Subresource::Binding));
    assert_eq!(bound, new);
}

#[test]
fn only_finalize_ends_a_namespace() {
    let old = json!({
        "metadata": {"name": "n", "uid": "u-1"},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    });
    let mut new = old.clone();
    new["spec"] = json!({});
    let plain = updated("", "Namespace", &old, &new, None);
    assert_eq!(plain["spec"], old["spec"]);
    let finalized = updated("", "Namespace", &old, &new, Some(Subresource::Finalize));
    assert_eq!(finalized["spec"], json!({}));
    assert_eq!(finalized["status"], old["status"]);
}

#[test]
fn another_uid_is_another_object() {
    let old = json!({"metadata": {"name": "c", "namespace": "n", "uid": "u-1"}});
    let mut new = json!({"metadata": {"name": "c", "namespace": "n", "uid": "u-2"}});
    let kind = kind("", "ConfigMap");
    let error = prepare_update(&kind, &old, &mut new, None, &context(&Nothing)).unwrap_err();
    assert_eq!(error.reason.code(), 409);
    assert!(
        error
            .message
            .contains("UID in precondition: u-2, UID in object meta: u-1")
    );
}
