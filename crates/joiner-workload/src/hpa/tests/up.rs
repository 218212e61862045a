use super::*;

fn first_case() -> Case {
    Case::new(2, 6, 3).cpu(30, &[300, 500, 700])
}

#[test]
fn hpa_1_usage_above_the_target_asks_for_more() {
    assert_eq!(first_case().run().desired(), 5);
}

#[test]
fn hpa_2_one_container_can_be_looked_at_alone() {
    let mut samples = [usage(0, 300), usage(1, 500), usage(2, 700)];
    for sample in &mut samples {
        let sidecar = [("cpu".to_owned(), 5000)].into_iter().collect();
        sample.containers.push(("sidecar".to_owned(), sidecar));
    }
    let metric = json!({"type": "ContainerResource", "containerResource": {
        "name": "cpu", "container": "app",
        "target": {"type": "Utilization", "averageUtilization": 30},
    }});
    let case = Case::new(2, 6, 3).metric(metric, Reading::Usage(samples.to_vec()));
    assert_eq!(case.run().desired(), 5);
}

#[test]
fn hpa_3_pods_that_are_not_ready_are_counted_as_idle_on_the_way_up() {
    let ran = first_case().with(&[0], unready).run();
    assert_eq!((ran.desired(), ran.utilization()), (4, Some(60)));
}

#[test]
fn hpa_4_so_are_pods_that_just_started() {
    let ran = first_case().with(&[0], hot).run();
    assert_eq!((ran.desired(), ran.utilization()), (4, Some(60)));
}

#[test]
fn hpa_5_idle_pods_do_not_turn_the_direction() {
    let case = Case::new(2, 6, 3).cpu(30, &[400, 500, 700]);
    let ran = case.with(&[1, 2], unready).run();
    assert_eq!((ran.desired(), ran.utilization()), (3, Some(40)));
    assert_eq!(ran.able(), "ReadyForNewScale");
}

#[test]
fn hpa_6_failed_pods_are_ignored() {
    let failed = |pod: &mut Pod| pod.phase = Phase::Failed;
    let case = Case::new(2, 6, 2).set(|case| {
        case.pods = (0..4).map(|ix| pod(&format!("web-{ix}"))).collect();
    });
    let ran = case.cpu(30, &[500, 700]).with(&[2, 3], failed).run();
    assert_eq!(ran.desired(), 4);
}

#[test]
fn hpa_7_so_are_terminating_ones() {
    let deleting = |pod: &mut Pod| pod.deleting = true;
    let case = Case::new(2, 6, 2).set(|case| {
        case.pods = (0..4).map(|ix| pod(&format!("web-{ix}"))).collect();
    });
    let ran = case.cpu(30, &[500, 700]).with(&[2, 3], deleting).run();
    assert_eq!(ran.desired(), 4);
}

#[test]
fn hpa_8_the_kind_of_the_target_does_not_matter() {
    for (version, kind) in [
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("v1", "ReplicationController"),
    ] {
        let case = first_case().set(|case| {
            case.spec["scaleTargetRef"] = json!({"apiVersion": version, "kind": kind, "name": "w"});
        });
        assert_eq!(case.run().desired(), 5, "{kind}");
    }
}

#[test]
fn hpa_9_figures_of_pods_above_their_target_ask_for_more() {
    let case = Case::new(2, 6, 3).qps("15", &[20_000, 10_000, 30_000]);
    assert_eq!(case.run().desired(), 4);
}

#[test]
fn hpa_10_figures_of_pods_that_start_count_in_full() {
    let case = Case::new(2, 6, 3).qps("15", &[50_000, 10_000, 30_000]);
    let ran = case.with(&[0], unready).with(&[1], hot).run();
    assert_eq!(ran.desired(), 6);
}

#[test]
fn hpa_11_and_are_capped_at_the_most_replicas() {
    let case = Case::new(2, 6, 3).qps("15", &[50_000, 15_000, 30_000]);
    let ran = case.with(&[0, 1], unready).run();
    assert_eq!(ran.decision.recommendation, Some(7));
    assert_eq!((ran.desired(), ran.limited()), (6, "TooManyReplicas"));
}

#[test]
fn hpa_34_samples_of_unknown_pods_are_no_reason_for_utilization() {
    let samples = [4000, 9500, 3000, 7000, 3200, 2000];
    let requests = [100, 1500, 1100, 1340].map(|millis| {
        let mut requests = Amounts::new();
        requests.insert("cpu".to_owned(), millis);
        requests
    });
    let case = Case::new(1, 100, 4).cpu(100, &samples).set(|case| {
        for (pod, requests) in case.pods.iter_mut().zip(requests) {
            pod.containers[0].requests = requests;
        }
    });
    let ran = case.run();
    assert_eq!(ran.utilization(), Some(581));
    assert_eq!(ran.decision.recommendation, Some(24));
}

#[test]
fn hpa_86_requests_are_those_of_containers_that_stay() {
    let object = json!({
        "metadata": {"name": "web-0"},
        "spec": {
            "containers": [{"name": "app", "resources": {"requests": {"cpu": "500m"}}}],
            "initContainers": [
                {"name": "sidecar", "restartPolicy": "Always",
                 "resources": {"requests": {"cpu": "250m"}}},
                {"name": "setup", "resources": {"requests": {"cpu": "4"}}},
            ],
        },
        "status": {"phase": "Running"},
    });
    let of = |object: &Value, resource: &str, container| {
        let pod = Pod::read(object).unwrap();
        let settings = Settings::default();
        pods::requests(&[&pod], resource, container, &settings).map(|all| all["web-0"])
    };
    assert_eq!(of(&object, "cpu", None), Ok(750));
    assert_eq!(of(&object, "cpu", Some("sidecar")), Ok(250));
    assert!(of(&object, "cpu", Some("setup")).is_err());
    assert!(of(&object, "memory", None).is_err());
    let mut whole = object;
    whole["spec"]["resources"] = json!({"requests": {"cpu": "2"}});
    assert_eq!(of(&whole, "cpu", None), Ok(2000));
    assert_eq!(of(&whole, "cpu", Some("app")), Ok(500));
    assert!(
        of(&whole, "memory", None)
            .unwrap_err()
            .contains("requests of its own")
    );
}
