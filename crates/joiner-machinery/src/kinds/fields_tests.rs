use super::*;
use crate::kinds::builtin;
use serde_json::json;

fn kind(group: &str, name: &str) -> Kind {
    let mut all = builtin().into_iter();
    all.find(|k| k.group == group && k.kind == name).unwrap()
}

#[test]
fn values_of_the_wrong_type_are_bad_requests() {
    let pod = |spec: Value| ("", "Pod", json!({"spec": spec}));
    let container = |mut rest: Value| {
        rest["name"] = json!("c");
        pod(json!({"containers": [rest]}))
    };
    let amount = "quantities must match the regular expression \
                  '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    for ((group, name, mut object), why) in [
        (
            ("", "Pod", json!({"metadata": {"name": 5}})),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type \
             string",
        ),
        (
            ("", "Pod", json!({"metadata": {"labels": {"a": 5}}})),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type \
             string",
        ),
        (
            ("", "Pod", json!({"metadata": {"labels": ["a"]}})),
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type \
             map[string]string",
        ),
        (
            container(json!({"image": 5})),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of \
             type string",
        ),
        (
            container(json!({"args": [1]})),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.args of \
             type string",
        ),
        (
            pod(json!({"containers": {}})),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type \
             []v1.Container",
        ),
        (
            ("", "Pod", json!({"spec": []})),
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            pod(json!({"terminationGracePeriodSeconds": 1.5})),
            "json: cannot unmarshal number 1.5 into Go struct field \
             PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            (
                "apps",
                "Deployment",
                json!({"spec": {"replicas": 30_000_000_000i64}}),
            ),
            "json: cannot unmarshal number 30000000000 into Go struct field \
             DeploymentSpec.spec.replicas of type int32",
        ),
        (
            container(json!({"resources": {"requests": {"cpu": "abc"}}})),
            amount,
        ),
        (
            container(json!({"resources": {"requests": {"cpu": true}}})),
            amount,
        ),
        (
            container(json!({"resources": {"requests": {"cpu": "1mi"}}})),
            "unable to parse quantity's suffix",
        ),
        (
            ("", "Secret", json!({"data": {"a": "b"}})),
            "illegal base64 data at input byte 0",
        ),
        (
            ("", "Secret", json!({"data": {"a": "b$$$"}})),
            "illegal base64 data at input byte 1",
        ),
        (
            (
                "",
                "Service",
                json!({"spec": {"ports": [{"port": 80, "targetPort": true}]}}),
            ),
            "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of \
             type int32",
        ),
        (
            (
                "",
                "Pod",
                json!({"metadata": {"creationTimestamp": "yesterday"}}),
            ),
            "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \
             \"yesterday\" as \"2006\"",
        ),
    ] {
        let error = decode(&kind(group, name), &mut object).unwrap_err();
        let message = format!("{name} in version \"v1\" cannot be handled as a {name}: {why}");
        assert_eq!((error.reason.code(), error.message), (400, message));
    }
}

#[test]
fn unknown_fields_are_dropped_and_named() {
    let mut object = json!({
        "metadata": {"name": "a", "foo": 1},
        "spec": {"containers": [{"name": "c", "bar": 1}], "baz": {}},
    });
    let pod = kind("", "Pod");
    let unknown = decode(&pod, &mut object).unwrap();
    assert_eq!(
        unknown,
        [
            "unknown field \"metadata.foo\"",
            "unknown field \"spec.baz\"",
            "unknown field \"spec.containers[0].bar\"",
        ]
    );
    assert!(object["spec"]["baz"].is_null());
    let error = strict_error(&pod, &unknown[..1]);
    assert_eq!(
        error.message,
        "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \
         \"metadata.foo\""
    );
}

#[test]
fn empty_fields_go_and_standing_fields_come() {
    let mut object = json!({
        "metadata": {"name": "a", "labels": {}, "creationTimestamp": null},
        "spec": {"replicas": 0, "paused": false, "selector": {"matchLabels": {}}, "template": {}},
    });
    decode(&kind("apps", "Deployment"), &mut object).unwrap();
    assert_eq!(
        object,
        json!({
            "metadata": {"name": "a"},
            "spec": {
                "replicas": 0,
                "selector": {},
                "strategy": {},
                "template": {"metadata": {}, "spec": {"containers": null}},
            },
            "status": {},
        })
    );
    let once = object.clone();
    decode(&kind("apps", "Deployment"), &mut object).unwrap();
    assert_eq!(object, once, "decoding twice changes nothing");
}
