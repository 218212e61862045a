use super::*;
use crate::vpa::amounts::AMOUNT_MAX;
use crate::vpa::recommend::{confidence, round_up};

fn one_container() -> Pod {
    pod("web-0", &[("app", json!({}), json!({}))])
}

fn amounts(amounts: &Resources<Quantity>) -> (i64, i64) {
    let of = |resource| amounts.get(&resource).copied();
    let (cpu, memory) = (of(Resource::Cpu), of(Resource::Memory));
    (
        cpu.map_or(-1, Quantity::millis),
        memory.map_or(-1, Quantity::units),
    )
}

/// What is recommended after the same use every minute for so long.
fn after_minutes(minutes: i64, settings: Settings, vpa: Vpa) -> ContainerRecommendation {
    let mut watch = Watch::new(settings, vpa);
    watch.cluster.set_pods(&[one_container()], at(0));
    for minute in 0..minutes {
        watch.use_of("web-0", "app", (1000, 1000 * MB), at(60 * minute));
    }
    watch.containers(at(60 * minutes)).remove(0)
}

#[test]
fn vpa_34_estimates_are_close_to_what_was_used() {
    let settings = Settings {
        margin: 0.0,
        ..Settings::default()
    };
    let (cpu, memory) = amounts(&after_minutes(10, settings, vpa(|_| {})).target);
    assert!((1000..=1050).contains(&cpu), "{cpu}");
    assert!((1000 * MB..=1050 * MB).contains(&memory), "{memory}");
}

#[test]
fn vpa_35_without_a_history_bounds_say_nothing() {
    let first = after_minutes(1, Settings::default(), vpa(|_| {}));
    assert_eq!(amounts(&first.upper), (AMOUNT_MAX, AMOUNT_MAX));
    assert_eq!(amounts(&first.lower), (25, 250 << 20));
}

#[test]
fn vpa_36_confidence_grows_with_time_and_samples() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    watch.cluster.set_pods(&[one_container()], at(0));
    for sample in 0..9 {
        watch.use_of("web-0", "app", (3140, 1000 * MB), at(120 * sample));
    }
    let aggregate = watch
        .cluster
        .to_store(&watch.id, at(1080))
        .remove("app")
        .unwrap();
    let found = confidence(&aggregate, &Settings::default().cpu);
    assert_eq!(found, 9.0 / 1440.0);
    let multiplied = 314.0 / 100.0 * (1.0 + 0.1 / found).powi(2);
    assert!((multiplied - 907.46).abs() < 0.01, "{multiplied}");
}

#[test]
fn vpa_37_the_interval_of_confidence_can_be_shorter() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    watch.cluster.set_pods(&[one_container()], at(0));
    for sample in 0..9 {
        watch.use_of("web-0", "app", (3140, 1000 * MB), at(120 * sample));
    }
    let aggregate = watch
        .cluster
        .to_store(&watch.id, at(1080))
        .remove("app")
        .unwrap();
    let mut settings = Settings::default().cpu;
    settings.confidence_interval = SignedDuration::from_mins(18);
    assert_eq!(confidence(&aggregate, &settings), 9.0 / 18.0);
    let mut few = aggregate;
    few.n_samples = 100;
    assert_eq!(confidence(&few, &settings), 16.0 / 18.0);
}

#[test]
fn vpa_38_a_margin_is_added() {
    let with = |margin| {
        let settings = Settings {
            margin,
            ..Settings::default()
        };
        amounts(&after_minutes(10, settings, vpa(|_| {})).target).0
    };
    let plain = with(0.0);
    assert_eq!(with(0.1), plain + plain / 10);
}

#[test]
fn vpa_39_little_use_is_recommended_a_share_of_the_least() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    let pods = [pod(
        "web-0",
        &[("a", json!({}), json!({})), ("b", json!({}), json!({}))],
    )];
    watch.cluster.set_pods(&pods, at(0));
    for container in ["a", "b"] {
        watch.use_of("web-0", container, (1, 1000), at(0));
    }
    let targets = watch.containers(at(60));
    let targets: Vec<(i64, i64)> = targets.iter().map(|one| amounts(&one.target)).collect();
    assert_eq!(targets, [(12, 125 << 20); 2]);
    let off = vpa(|vpa| {
        vpa["spec"]["resourcePolicy"] =
            json!({"containerPolicies": [{"containerName": "b", "mode": "Off"}]});
    });
    let mut alone = Watch::new(Settings::default(), off);
    alone.cluster.set_pods(&pods, at(0));
    alone.use_of("web-0", "a", (1, 1000), at(0));
    let targets = alone.containers(at(60));
    assert_eq!(targets.len(), 1);
    assert_eq!(amounts(&targets[0].target), (25, 250 << 20));
}

#[test]
fn vpa_40_only_what_is_controlled_is_recommended() {
    let controlled = |resources: Value| {
        let vpa = vpa(|vpa| {
            vpa["spec"]["resourcePolicy"] = json!({"containerPolicies": [
                {"containerName": "*", "controlledResources": resources},
            ]});
        });
        after_minutes(3, Settings::default(), vpa)
    };
    let memory = controlled(json!(["memory"]));
    for amounts in [
        &memory.target,
        &memory.lower,
        &memory.upper,
        &memory.uncapped,
    ] {
        assert_eq!(amounts.keys().collect::<Vec<_>>(), [&Resource::Memory]);
    }
    assert!(controlled(json!([])).target.is_empty());
}

#[test]
fn vpa_41_containers_are_in_order_of_their_names() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    let names = ["c", "a", "b"].map(|name| (name, json!({}), json!({})));
    watch.cluster.set_pods(&[pod("web-0", &names)], at(0));
    let found = watch.containers(at(60));
    let found: Vec<&str> = found.iter().map(|one| one.container.as_str()).collect();
    assert_eq!(found, ["a", "b", "c"]);
    let upper = amounts(&watch.containers(at(60))[0].upper);
    assert_eq!(upper, (8, (250 << 20) / 3));
}

#[test]
fn vpa_42_amounts_are_rounded_up_to_multiples() {
    for (amount, unit, rounded) in [
        (101, 50, 150),
        (100, 50, 100),
        (7, 0, 7),
        (7, -5, 7),
        (0, 50, 0),
    ] {
        assert_eq!(round_up(amount, unit), rounded);
    }
    let mut settings = Settings::default();
    settings.cpu.round_to = 50;
    settings.memory.round_to = 1 << 25;
    let (cpu, memory) = amounts(&after_minutes(3, settings, vpa(|_| {})).target);
    assert_eq!((cpu % 50, memory % (1 << 25)), (0, 0));
    let human = Settings {
        humanize_memory: true,
        ..Settings::default()
    };
    let target = after_minutes(3, human, vpa(|_| {})).target[&Resource::Memory];
    assert_eq!(target, q("1.09Gi"));
}

/// A pod with these labels besides the one that VPAs choose by.
fn labelled(name: &str, namespace: &str, version: &str) -> Pod {
    let mut pod = pod(name, &[("app", json!({}), json!({}))]);
    namespace.clone_into(&mut pod.namespace);
    pod.labels.insert("version".to_owned(), version.to_owned());
    pod
}

#[test]
fn vpa_43_pods_with_other_labels_count_together() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    watch.cluster.set_pods(
        &[labelled("a", "shop", "1"), labelled("b", "shop", "2")],
        at(0),
    );
    watch.use_of("a", "app", (100, 0), at(0));
    watch.use_of("b", "app", (2000, 0), at(0));
    let stored = watch.cluster.to_store(&watch.id, at(60));
    assert_eq!(stored["app"].n_samples, 2);
    let target = amounts(&watch.containers(at(60))[0].target).0;
    assert!(target > 2000, "{target}");
}

#[test]
fn vpa_44_pods_of_other_namespaces_do_not() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    let pods = [
        labelled("a", "shop", "1"),
        labelled("b", "shop", "1"),
        labelled("c", "other", "1"),
    ];
    watch.cluster.set_pods(&pods, at(0));
    for pod in ["a", "b"] {
        watch.use_of(pod, "app", (100, 0), at(0));
    }
    let usage = Usage {
        container: "app".to_owned(),
        cpu_millis: 9000,
        memory_bytes: 0,
        time: at(0),
    };
    watch
        .cluster
        .add_usage(&("other".to_owned(), "c".to_owned()), &usage, at(0));
    assert_eq!(
        watch.cluster.to_store(&watch.id, at(60))["app"].n_samples,
        2
    );
}

#[test]
fn vpa_45_another_label_moves_later_samples() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    watch.cluster.set_pods(&[labelled("a", "shop", "1")], at(0));
    watch.use_of("a", "app", (100, 0), at(0));
    let mut moved = labelled("a", "shop", "1");
    moved.labels.insert("app".to_owned(), "api".to_owned());
    watch.cluster.set_pods(&[moved], at(60));
    watch.use_of("a", "app", (100, 0), at(60));
    assert_eq!(
        watch.cluster.to_store(&watch.id, at(60))["app"].n_samples,
        1
    );
    assert!(!watch.cluster.recommend(&watch.id, at(60)).unwrap().has_pods);
}

#[test]
fn vpa_46_another_selector_chooses_anew() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    watch.cluster.set_pods(
        &[labelled("a", "shop", "1"), labelled("b", "shop", "2")],
        at(0),
    );
    watch.use_of("a", "app", (100, 0), at(0));
    let second = Selector::parse("version=2").unwrap();
    watch.cluster.set_vpas(vec![(vpa(|_| {}), second)]);
    assert_eq!(
        watch.cluster.to_store(&watch.id, at(60))["app"].n_samples,
        0
    );
    let both = Selector::parse("app=web").unwrap();
    watch.cluster.set_vpas(vec![(vpa(|_| {}), both)]);
    assert_eq!(
        watch.cluster.to_store(&watch.id, at(60))["app"].n_samples,
        1
    );
}

/// Whether something is known of a container so long after its only sample.
fn is_known(n_intervals: i64, days: i64) -> bool {
    let mut settings = Settings::default();
    settings.aggregation.n_intervals = n_intervals;
    let mut watch = Watch::new(settings, vpa(|_| {}));
    watch.cluster.set_pods(&[one_container()], at(0));
    watch.use_of("web-0", "app", (100, 0), at(0));
    watch.cluster.set_pods(&[], at(days * DAY));
    watch.cluster.forget(at(days * DAY));
    !watch.cluster.to_store(&watch.id, at(days * DAY)).is_empty()
}

#[test]
fn vpa_47_what_is_old_is_forgotten() {
    assert!(is_known(8, 7) && !is_known(8, 8));
    assert!(is_known(4, 3) && !is_known(4, 4));
}

#[test]
fn vpa_48_nothing_is_kept_of_pods_that_are_gone_and_never_were_seen() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    watch.cluster.set_pods(&[one_container()], at(0));
    watch.cluster.forget(at(0));
    assert_eq!(watch.cluster.to_store(&watch.id, at(0)).len(), 1);
    watch.cluster.set_pods(&[], at(7200));
    watch.cluster.forget(at(7200));
    assert!(watch.cluster.to_store(&watch.id, at(7200)).is_empty());
}

#[test]
fn vpa_49_forgetting_is_not_done_all_the_time_and_does_no_harm() {
    let mut watch = Watch::new(Settings::default(), vpa(|_| {}));
    watch.cluster.forget(at(0));
    watch.cluster.set_pods(&[one_container()], at(0));
    watch.cluster.set_pods(&[], at(60));
    watch.cluster.forget(at(1800));
    assert_eq!(watch.cluster.to_store(&watch.id, at(1800)).len(), 1);
    watch.cluster.forget(at(3600));
    assert!(watch.cluster.to_store(&watch.id, at(3600)).is_empty());
    watch.cluster.set_pods(&[one_container()], at(3660));
    watch.use_of("web-0", "app", (100, 0), at(3660));
    assert_eq!(
        watch.cluster.to_store(&watch.id, at(3660))["app"].n_samples,
        1
    );
}

#[test]
fn vpa_51_a_target_that_is_none_is_told() {
    let mut said = crate::condition::Conditions::default();
    supported(&mut said, Some("the target has no selector"), at(0));
    assert!(said.is_true("ConfigUnsupported"));
    supported(&mut said, None, at(60));
    assert_eq!(said.iter().count(), 0);
}

#[test]
fn vpa_52_recommenders_have_names() {
    let named = |name: &str| vpa(|vpa| vpa["spec"]["recommenders"] = json!([{"name": name}]));
    assert!(vpa(|_| {}).is_for("default") && !vpa(|_| {}).is_for("other"));
    assert!(named("other").is_for("other") && !named("other").is_for("default"));
}

#[test]
fn vpa_53_cpu_can_be_whole_cores_where_an_annotation_says_so() {
    let target = |value: &str| {
        let settings = Settings {
            integer_cpu: true,
            ..Settings::default()
        };
        let vpa = vpa(|vpa| {
            let name = "vpa-post-processor.kubernetes.io/app_integerCPU";
            vpa["metadata"]["annotations"] = json!({name: value});
        });
        amounts(&after_minutes(3, settings, vpa).target).0
    };
    assert_eq!(target("true"), 2000);
    assert_ne!(target("yes") % 1000, 0);
}

#[test]
fn vpa_54_without_pods_that_is_said() {
    let mut said = crate::condition::Conditions::default();
    let nothing = Recommended::default();
    conditions(&mut said, &nothing, at(0));
    let reasons: Vec<(&str, &str)> = said
        .iter()
        .map(|c| (c.status.as_str(), c.reason.as_str()))
        .collect();
    assert_eq!(
        reasons,
        [("True", "NoPodsMatched"), ("False", "NoPodsMatched")]
    );
    let some = Recommended {
        containers: vec![ContainerRecommendation::default()],
        has_pods: true,
    };
    conditions(&mut said, &some, at(60));
    assert!(said.is_true("RecommendationProvided"));
    assert_eq!(said.iter().count(), 1);
}

#[test]
fn what_was_stored_goes_on() {
    let mut first = Watch::new(Settings::default(), vpa(|_| {}));
    first.cluster.set_pods(&[one_container()], at(0));
    for minute in 0..30 {
        first.use_of("web-0", "app", (1000 + minute, 500 * MB), at(60 * minute));
    }
    let stored = first.cluster.to_store(&first.id, at(1800))["app"].to_checkpoint(at(1800));
    let mut second = Watch::new(Settings::default(), vpa(|_| {}));
    let initial = Aggregate::of_checkpoint(&stored, &Settings::default(), at(1860)).unwrap();
    second.cluster.set_initial(&second.id, "app", initial);
    let (a, b) = (first.containers(at(1860)), second.containers(at(1860)));
    assert_eq!(a[0].target[&Resource::Cpu], b[0].target[&Resource::Cpu]);
    // The peak of memory is not over yet: it will be measured again.
    assert_eq!(stored["memoryHistogram"]["totalWeight"], Value::Null);
}

#[test]
fn policies_can_say_how_peaks_are_collected() {
    let with = |per_vpa: bool| {
        let vpa = vpa(|vpa| {
            vpa["spec"]["resourcePolicy"] = json!({"containerPolicies": [
                {"containerName": "app", "oomBumpUpRatio": 3, "oomMinBumpUp": "0"},
            ]});
        });
        let settings = Settings {
            per_vpa,
            margin: 0.0,
            ..Settings::default()
        };
        let mut watch = Watch::new(settings, vpa);
        watch.cluster.set_pods(&[one_container()], at(0));
        let oom = Oom {
            namespace: "shop".to_owned(),
            pod: "web-0".to_owned(),
            container: "app".to_owned(),
            bytes: 1000 * MB,
            time: at(0),
        };
        watch.cluster.add_oom(&oom, at(0));
        amounts(&watch.containers(at(60))[0].target).1 / (100 * MB)
    };
    assert_eq!((with(true), with(false)), (30, 12));
}
