use super::*;

fn made(object: &ScaledObject) -> Value {
    hpa(object, &specs(object), &Pause::default(), "1.0").unwrap()
}

fn names(hpa: &Value) -> Vec<&str> {
    let metrics = hpa["spec"]["metrics"].as_array().unwrap().iter();
    let name = |metric: &'_ Value| match metric["type"].as_str() {
        Some("External") => "/external/metric/name",
        Some("ContainerResource") => "/containerResource/name",
        _ => "/resource/name",
    };
    metrics
        .map(|metric| metric.pointer(name(metric)).unwrap().as_str().unwrap())
        .collect()
}

#[test]
fn keda_12_metrics_have_the_names_that_triggers_make() {
    let one = object(&json!([redis("")]), |_| {});
    assert_eq!(names(&made(&one)), ["s0-redis"]);
    let mut container = cpu();
    container["metadata"]["containerName"] = json!("app");
    let mixed = object(&json!([cpu(), redis("a"), container, redis("b")]), |_| {});
    assert_eq!(names(&made(&mixed)), ["cpu", "s1-redis", "s3-redis", "cpu"]);
    assert_eq!(metric_name(2, "kafka-a.b/c:d(e)%"), "s2-kafka-a-b-c-d-e--");
}

#[test]
fn keda_13_a_metric_goes_with_its_trigger() {
    let two = object(&json!([redis("a"), cpu()]), |_| {});
    let one = object(&json!([redis("a")]), |_| {});
    assert_eq!(names(&made(&two)), ["s0-redis", "cpu"]);
    assert_eq!(names(&made(&one)), ["s0-redis"]);
    assert!(must_be_written(&made(&one), &made(&two)));
}

#[test]
fn keda_17_sizes_are_those_of_the_object() {
    let sizes = |min: Value, max: Value| {
        let object = object(&json!([redis("")]), |object| {
            object["spec"]["idleReplicaCount"] = json!(0);
            object["spec"]["minReplicaCount"] = min;
            object["spec"]["maxReplicaCount"] = max;
        });
        let hpa = made(&object);
        (
            hpa["spec"]["minReplicas"].clone(),
            hpa["spec"]["maxReplicas"].clone(),
        )
    };
    assert_eq!(sizes(json!(2), json!(8)), (json!(2), json!(8)));
    assert_eq!(sizes(json!(0), Value::Null), (json!(1), json!(100)));
}

#[test]
fn keda_18_annotations_are_copied() {
    let object = object(&json!([redis("")]), |object| {
        object["metadata"]["annotations"] = json!({
            "team": "a",
            "scaledobject.keda.sh/hpa-excluded-labels": "secret, other",
        });
        object["metadata"]["labels"] = json!({"app": "web", "secret": "x"});
    });
    let hpa = made(&object);
    assert_eq!(hpa["metadata"]["annotations"]["team"], "a");
    let labels = &hpa["metadata"]["labels"];
    assert_eq!(labels["app"], "web");
    assert_eq!(labels["secret"], Value::Null);
    assert_eq!(labels["app.kubernetes.io/name"], "keda-hpa-web");
    assert_eq!(labels["app.kubernetes.io/part-of"], "web");
}

#[test]
fn keda_19_20_ways_that_are_paused_are_closed() {
    let object = object(&json!([redis("")]), |object| {
        object["spec"]["advanced"] = json!({"horizontalPodAutoscalerConfig": {"behavior": {
            "scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Min"},
        }}});
    });
    let behavior = |annotation: &str| {
        let pause = Pause::read(&annotations(&[(annotation, "true")])).unwrap();
        let hpa = hpa(&object, &specs(&object), &pause, "1.0").unwrap();
        hpa["spec"]["behavior"].clone()
    };
    let down = json!({"stabilizationWindowSeconds": 60, "selectPolicy": "Disabled"});
    assert_eq!(behavior("paused-scale-in"), json!({"scaleDown": down}));
    let open = json!({"stabilizationWindowSeconds": 60, "selectPolicy": "Min"});
    let up = json!({"selectPolicy": "Disabled"});
    assert_eq!(
        behavior("paused-scale-out"),
        json!({"scaleDown": open, "scaleUp": up})
    );
    assert_eq!(behavior("other"), json!({"scaleDown": open}));
}

#[test]
fn keda_20_the_rules_go_where_only_a_pause_made_them() {
    let object = object(&json!([redis("")]), |_| {});
    let pause = Pause::read(&annotations(&[("paused-scale-in", "true")])).unwrap();
    let paused = hpa(&object, &specs(&object), &pause, "1.0").unwrap();
    assert!(must_be_written(&made(&object), &paused));
    assert_eq!(made(&object)["spec"]["behavior"], Value::Null);
}

#[test]
fn keda_21_without_metrics_there_is_no_hpa() {
    let object = object(&json!([redis("")]), |_| {});
    let error = hpa(&object, &[vec![]], &Pause::default(), "1.0").unwrap_err();
    assert_eq!(error, "no trigger makes a metric");
    let twice = [specs(&object).remove(0), specs(&object).remove(0)];
    let error = hpa(&object, &twice, &Pause::default(), "1.0").unwrap_err();
    assert_eq!(
        error,
        "two triggers make a metric s0-redis; change one of them"
    );
}

#[test]
fn keda_22_metrics_that_are_no_more_are_forgotten() {
    let mut health = HealthByMetric::new();
    count(&mut health, "s0-redis", true);
    count(&mut health, "s1-redis", true);
    forget(&mut health, &["s1-redis".to_owned(), "s2-redis".to_owned()]);
    assert_eq!(health.into_keys().collect::<Vec<_>>(), ["s1-redis"]);
}

#[test]
fn keda_23_what_others_change_is_written_again() {
    let object = object(&json!([redis("")]), |_| {});
    let wanted = made(&object);
    let mut found = wanted.clone();
    found["spec"]["metrics"][0]["external"]["metric"]["selector"]["more"] = json!([]);
    found["spec"]["metrics"][0]["external"]["target"]["averageValue"] = json!("10000m");
    found["metadata"]["labels"]["other"] = json!("x");
    assert!(!must_be_written(&wanted, &found));
    for (pointer, value) in [
        ("/spec/maxReplicas", json!(7)),
        ("/metadata/labels/app.kubernetes.io~1name", json!("x")),
        ("/metadata/annotations", json!({"other": "x"})),
        ("/spec/metrics/0/external/target/averageValue", json!("11")),
    ] {
        let mut changed = found.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(must_be_written(&wanted, &changed), "{pointer}");
    }
}

#[test]
fn usage_of_pods_is_asked_for_in_full() {
    for (trigger, why) in [
        (
            json!({"type": "cpu", "metadata": {"value": "50"}}),
            "metricType: must be Utilization",
        ),
        (
            json!({"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50%"}}),
            "metadata.value: must be a whole number of percent",
        ),
        (
            json!({"type": "cpu", "metricType": "Utilization", "metadata": {}}),
            "metadata.value: is missing",
        ),
        (
            json!({"type": "cpu", "metadata": {"type": "Utilization", "value": "50"}}),
            "metadata.type: is no longer read",
        ),
    ] {
        let object = object(&json!([trigger]), |_| {});
        let error = MetricSpec::resource((0, &object.triggers[0])).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}
