use serde_json::{Value, json};

use super::*;
use crate::hpa::{Gates, Hpa};

fn object() -> Value {
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 5,
        },
    })
}

/// What is wrong with an HPA after a change.
fn wrong(change: impl Fn(&mut Value)) -> Vec<String> {
    let mut hpa = object();
    change(&mut hpa);
    let errors = Hpa::read(&hpa, &Gates::default()).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn defaults_are_filled_in() {
    let mut hpa = object();
    hpa["spec"]["behavior"] = json!({"scaleUp": {"policies": [
        {"type": "Pods", "value": 1, "periodSeconds": 60},
    ]}});
    hpa["spec"].as_object_mut().unwrap().remove("minReplicas");
    fill_in(&mut hpa);
    let spec = &hpa["spec"];
    assert_eq!(spec["minReplicas"], 1);
    assert_eq!(
        spec["metrics"],
        json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
        }}])
    );
    let all = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    assert_eq!(
        spec["behavior"],
        json!({
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
            },
            "scaleDown": {"selectPolicy": "Max", "policies": [all]},
        })
    );
    let mut plain = object();
    fill_in(&mut plain);
    assert_eq!(plain["spec"]["behavior"], Value::Null);
}

#[test]
fn what_is_wrong_is_named_by_its_field() {
    let spec =
        |field: &'static str, value: Value| wrong(move |hpa| hpa["spec"][field] = value.clone());
    for (errors, expected) in [
        (
            spec("minReplicas", json!(-1)),
            "spec.minReplicas: must be 1 or more, not -1",
        ),
        (
            spec("maxReplicas", json!(0)),
            "spec.maxReplicas: is missing; set it to 1 or more",
        ),
        (
            spec("maxReplicas", json!(-1)),
            "spec.maxReplicas: must be 1 or more, not -1",
        ),
        (
            spec("maxReplicas", json!(1)),
            "spec.maxReplicas: must be at least minReplicas, which is 2",
        ),
        (
            spec("maxReplicas", json!("5")),
            "spec.maxReplicas: must be a whole number, not \"5\"",
        ),
        (
            wrong(|hpa| hpa["spec"]["scaleTargetRef"]["apiVersion"] = json!("v1")),
            "spec.scaleTargetRef.apiVersion: must be a group and a version, such as apps/v1",
        ),
        (
            wrong(|hpa| hpa["spec"]["scaleTargetRef"]["name"] = json!("a/b")),
            "spec.scaleTargetRef.name: must be a name without / and %",
        ),
        (
            wrong(|hpa| hpa["spec"]["behavior"]["scaleUp"] = json!({"policies": []})),
            "spec.behavior.scaleUp.policies: must have at least one policy",
        ),
        (
            wrong(|hpa| hpa["spec"]["behavior"]["scaleDown"] = json!({"tolerance": "-1"})),
            "spec.behavior.scaleDown.tolerance: must be zero or more, not \"-1\"",
        ),
        (
            wrong(|hpa| {
                hpa["spec"]["behavior"]["scaleUp"] = json!({"stabilizationWindowSeconds": 3601});
            }),
            "spec.behavior.scaleUp.stabilizationWindowSeconds: must be 3600 or less, not 3601",
        ),
        (
            wrong(|hpa| {
                let policy = json!({"type": "Pods", "value": 1, "periodSeconds": 1801});
                hpa["spec"]["behavior"]["scaleUp"] = json!({"policies": [policy]});
            }),
            "spec.behavior.scaleUp.policies[0].periodSeconds: must be 1800 or less, not 1801",
        ),
    ] {
        assert_eq!(errors, [expected]);
    }
}

/// What is wrong with one metric.
fn wrong_metric(metric: &Value) -> Vec<String> {
    let errors = wrong(|hpa| hpa["spec"]["metrics"] = json!([metric]));
    let start = "spec.metrics[0].";
    errors
        .iter()
        .map(|e| e.strip_prefix(start).unwrap().to_owned())
        .collect()
}

#[test]
fn so_is_what_is_wrong_with_a_metric() {
    let average = json!({"type": "AverageValue", "averageValue": "5"});
    let described = json!({"apiVersion": "v1", "kind": "Service", "name": "a"});
    for (metric, expected) in [
        (json!({}), "type: is missing; set it"),
        (
            json!({"type": "Cloud"}),
            "type: must be Resource, ContainerResource, Pods, Object or External, not \"Cloud\"",
        ),
        (
            json!({"type": "Pods"}),
            "pods: is missing; a metric of type Pods needs it",
        ),
        (
            json!({"type": "Pods", "pods": {"metric": {"name": "a"}, "target": {"type": "Value", "value": "1"}}}),
            "pods.target.averageValue: is missing; set it",
        ),
        (
            json!({"type": "External", "external": {"metric": {"name": "a/b"}, "target": average}}),
            "external.metric.name: must be a name without / and %",
        ),
        (
            json!({"type": "External", "external": {"metric": {"name": "a"},
                "target": {"type": "Value", "value": "1", "averageValue": "1"}}}),
            "external.target.averageValue: must be left out where value is set",
        ),
        (
            json!({"type": "Object", "object": {"metric": {"name": "a"},
                "describedObject": described, "target": {"type": "Value"}}}),
            "object.target.value: is missing; set it or averageValue",
        ),
        (
            json!({"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 0}}}),
            "resource.target.averageUtilization: must be at least 1 percent, not 0",
        ),
        (
            json!({"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "AverageValue", "averageValue": "0"}}}),
            "resource.target.averageValue: must be more than zero, not \"0\"",
        ),
        (
            json!({"type": "ContainerResource", "containerResource": {"name": "cpu",
                "container": "A", "target": average}}),
            "containerResource.container: must be the name of a container, not \"A\"",
        ),
    ] {
        assert_eq!(wrong_metric(&metric), [expected], "{metric}");
    }
    let two = json!({
        "type": "Resource",
        "resource": {"name": "cpu", "target": average},
        "pods": {"metric": {"name": "a"}, "target": average},
    });
    assert!(wrong_metric(&two)[0].starts_with("pods: must be left out"));
}

#[test]
fn zero_needs_the_gate_and_a_metric_from_elsewhere() {
    let mut hpa = object();
    hpa["spec"]["minReplicas"] = json!(0);
    hpa["spec"]["metrics"] = json!([{"type": "External", "external": {
        "metric": {"name": "a"}, "target": {"type": "Value", "value": "1"},
    }}]);
    let gates = Gates {
        scale_to_zero: true,
        ..Gates::default()
    };
    assert!(Hpa::read(&hpa, &gates).is_ok());
    assert!(Hpa::read(&hpa, &Gates::default()).is_err());
    assert!(Hpa::read_stored(&hpa, &Gates::default()).is_ok());
    hpa["spec"].as_object_mut().unwrap().remove("metrics");
    let errors = Hpa::read(&hpa, &gates).unwrap_err();
    assert_eq!(errors[0].path, "spec.metrics");
}

#[test]
fn the_first_version_carries_the_rest_in_annotations() {
    let mut original = object();
    original["spec"]["metrics"] = json!([
        {"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
        {"type": "Resource", "resource": {
            "name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}},
    ]);
    original["spec"]["behavior"] = json!({"scaleUp": {"selectPolicy": "Min", "tolerance": "50m"}});
    original["status"] = json!({
        "conditions": [{"type": "AbleToScale", "status": "True"}],
        "currentMetrics": [{"type": "Resource", "resource": {
            "name": "memory", "current": {"averageUtilization": 9}}}],
    });
    let mut hpa = original.clone();
    to_v1(&mut hpa);
    assert_eq!(hpa["apiVersion"], "autoscaling/v1");
    assert_eq!(hpa["spec"]["targetCPUUtilizationPercentage"], 50);
    assert_eq!(hpa["spec"]["metrics"], Value::Null);
    let annotations = &hpa["metadata"]["annotations"];
    assert_eq!(
        annotations["autoscaling.alpha.kubernetes.io/scale-up-tolerance"],
        "50m"
    );
    to_v2(&mut hpa);
    assert_eq!(hpa, original);
}

#[test]
fn annotations_of_the_first_version_have_its_fields() {
    let mut hpa = object();
    hpa["apiVersion"] = json!("autoscaling/v1");
    let metrics = json!([
        {"type": "Pods", "pods": {"metricName": "qps", "targetAverageValue": "5"}},
        {"type": "Object", "object": {
            "target": {"kind": "Ingress", "name": "front"}, "metricName": "qps", "targetValue": "7"}},
        {"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 60}},
    ]);
    let behavior = json!({"ScaleUp": {"StabilizationWindowSeconds": 7, "SelectPolicy": null}});
    hpa["metadata"]["annotations"] = json!({
        "autoscaling.alpha.kubernetes.io/metrics": metrics.to_string(),
        "autoscaling.alpha.kubernetes.io/behavior": behavior.to_string(),
    });
    to_v2(&mut hpa);
    assert_eq!(
        hpa["spec"]["metrics"],
        json!([
            {"type": "Pods", "pods": {
                "metric": {"name": "qps"},
                "target": {"type": "AverageValue", "averageValue": "5"}}},
            {"type": "Object", "object": {
                "describedObject": {"kind": "Ingress", "name": "front"},
                "metric": {"name": "qps"}, "target": {"type": "Value", "value": "7"}}},
            {"type": "Resource", "resource": {
                "name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}},
        ])
    );
    assert_eq!(
        hpa["spec"]["behavior"],
        json!({"scaleUp": {"stabilizationWindowSeconds": 7}})
    );
    assert!(Hpa::read(&hpa, &Gates::default()).is_ok());
}
