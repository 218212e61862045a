use super::*;

/// A VPA that recommends this, after a change.
fn recommending(all: Vec<ContainerRecommendation>, change: impl FnOnce(&mut Value)) -> Vpa {
    Vpa {
        recommendation: all,
        ..vpa(change)
    }
}

fn just(name: &str, target: Value) -> ContainerRecommendation {
    recommended(name, target.clone(), target.clone(), target)
}

fn policy(policy: Value) -> impl FnOnce(&mut Value) {
    move |vpa| vpa["spec"]["resourcePolicy"] = json!({"containerPolicies": [policy]})
}

fn ranges(kind: &str, limit: Value) -> LimitRanges {
    let mut limit = limit;
    limit["type"] = json!(kind);
    LimitRanges::read(&[json!({"spec": {"limits": [limit]}})]).unwrap()
}

/// Targets of a resource, container by container.
fn targets(vpa: &Vpa, pod: &Pod, ranges: &LimitRanges, resource: Resource) -> Vec<String> {
    let capped = capped(vpa, pod, ranges);
    let targets = capped
        .iter()
        .map(|one| one.recommendation.target[&resource]);
    targets.map(|amount| amount.to_string()).collect()
}

#[test]
fn vpa_55_limits_that_stay_are_limits_of_requests() {
    let app = [("app", json!({"cpu": "1"}), json!({"cpu": "2"}))];
    let pod = pod("web-0", &app);
    let all = || vec![just("app", json!({"cpu": "5"}))];
    let none = LimitRanges::default();
    let cpu = |vpa: &Vpa, pod: &Pod| targets(vpa, pod, &none, Resource::Cpu);
    assert_eq!(cpu(&recommending(all(), |_| {}), &pod), ["5"]);
    let only = json!({"containerName": "app", "controlledValues": "RequestsOnly"});
    let only = recommending(all(), policy(only));
    assert_eq!(cpu(&only, &pod), ["2"]);
    let capped = capped(&only, &pod, &none);
    assert_eq!(capped[0].notes, ["cpu capped to container limit"]);
    assert_eq!(capped[0].recommendation.upper[&Resource::Cpu], q("2"));
    let mut resized = pod;
    resized.statuses = vec![ContainerStatus {
        name: "app".to_owned(),
        requests: Some(std::collections::BTreeMap::new()),
        limits: [("cpu".to_owned(), q("3"))].into_iter().collect(),
        ..ContainerStatus::default()
    }];
    assert_eq!(cpu(&only, &resized), ["3"]);
}

#[test]
fn vpa_56_policies_bound_all_amounts() {
    let bounds =
        json!({"containerName": "app", "minAllowed": {"cpu": "40"}, "maxAllowed": {"cpu": "45"}});
    let one = recommended(
        "app",
        json!({"cpu": "30"}),
        json!({"cpu": "20"}),
        json!({"cpu": "50"}),
    );
    let vpa = recommending(vec![one], policy(bounds));
    let pod = pod("web-0", &[("app", json!({"cpu": "1"}), json!({}))]);
    let capped = capped(&vpa, &pod, &LimitRanges::default()).remove(0);
    let amounts = [
        &capped.recommendation.target,
        &capped.recommendation.lower,
        &capped.recommendation.upper,
    ];
    assert_eq!(
        amounts.map(|amounts| amounts[&Resource::Cpu].to_string()),
        ["40", "40", "45"]
    );
    assert_eq!(capped.notes, ["cpu capped to minAllowed"]);
}

#[test]
fn vpa_57_what_all_may_have_counts_where_the_policy_is_silent() {
    let mut settings = Settings::default();
    settings.max_allowed.insert(Resource::Cpu, q("100m"));
    settings.max_allowed.insert(Resource::Memory, q("50Mi"));
    let bounds = json!({"containerName": "app", "maxAllowed": {"cpu": "200m"}});
    let mut watch = Watch::new(settings, vpa(policy(bounds)));
    watch
        .cluster
        .set_pods(&[pod("web-0", &[("app", json!({}), json!({}))])], at(0));
    watch.use_of("web-0", "app", (5000, 1000 * MB), at(0));
    let found = watch.containers(at(60)).remove(0);
    assert_eq!(found.target[&Resource::Cpu], q("200m"));
    assert_eq!(found.target[&Resource::Memory], q("50Mi"));
    assert!(found.uncapped[&Resource::Cpu] > q("5"));
}

#[test]
fn vpa_58_limit_ranges_of_containers_bound_requests_by_their_limits() {
    let pod = pod(
        "web-0",
        &[(
            "app",
            json!({"cpu": "1", "memory": "100M"}),
            json!({"cpu": "1", "memory": "100M"}),
        )],
    );
    let vpa = recommending(
        vec![just("app", json!({"cpu": "2", "memory": "200M"}))],
        |_| {},
    );
    let ranges = ranges(
        "Container",
        json!({"max": {"cpu": "1"}, "min": {"memory": "500M"}}),
    );
    assert_eq!(targets(&vpa, &pod, &ranges, Resource::Cpu), ["1"]);
    assert_eq!(targets(&vpa, &pod, &ranges, Resource::Memory), ["500M"]);
    let notes = capped(&vpa, &pod, &ranges).remove(0).notes;
    assert_eq!(
        notes,
        [
            "cpu capped to fit Max in container LimitRange",
            "memory capped to fit Min in container LimitRange"
        ]
    );
}

/// Two containers with these requests, whose limits are the same.
fn two(resource: &str, first: &str, second: &str) -> Pod {
    let same = |amount: &str| json!({resource: amount});
    pod(
        "web-0",
        &[
            ("a", same(first), same(first)),
            ("b", same(second), same(second)),
        ],
    )
}

#[test]
fn vpa_59_containers_share_what_a_pod_may_have() {
    let vpa = recommending(
        vec![
            just("a", json!({"cpu": "1"})),
            just("b", json!({"cpu": "1"})),
        ],
        |_| {},
    );
    let ranges = ranges("Pod", json!({"max": {"cpu": "1"}}));
    assert_eq!(
        targets(&vpa, &two("cpu", "1", "1"), &ranges, Resource::Cpu),
        ["500m", "500m"]
    );
}

#[test]
fn vpa_60_and_what_it_must_have() {
    let both = vec![
        just("a", json!({"memory": "1G"})),
        just("b", json!({"memory": "1G"})),
    ];
    let range = ranges("Pod", json!({"min": {"memory": "4G"}}));
    let pod = two("memory", "1G", "1G");
    let memory = |vpa: &Vpa| targets(vpa, &pod, &range, Resource::Memory);
    assert_eq!(
        memory(&recommending(both.clone(), |_| {})),
        ["2G", "2G"].map(|t| q(t).to_string())
    );
    let one = recommending(both[..1].to_vec(), |_| {});
    assert_eq!(memory(&one), [q("2G").to_string()]);
}

#[test]
fn vpa_61_shares_of_what_it_must_have_are_rounded_up() {
    let all = vec![
        just("a", json!({"cpu": "15m"})),
        just("b", json!({"cpu": "100m"})),
    ];
    let ranges = ranges("Pod", json!({"min": {"cpu": "150m"}}));
    let pod = two("cpu", "15m", "100m");
    let vpa = recommending(all, |_| {});
    assert_eq!(targets(&vpa, &pod, &ranges, Resource::Cpu), ["20m", "131m"]);
}

#[test]
fn vpa_62_shares_of_what_it_may_have_are_rounded_down() {
    let all = vec![
        just("a", json!({"memory": "1Gi"})),
        just("b", json!({"memory": "2Gi"})),
    ];
    let ranges = ranges("Pod", json!({"max": {"memory": "1Gi"}}));
    let vpa = recommending(all, |_| {});
    let pod = two("memory", "1Gi", "2Gi");
    assert_eq!(
        targets(&vpa, &pod, &ranges, Resource::Memory),
        ["357913941", "715827882"]
    );
}

#[test]
fn vpa_63_a_limit_that_stays_wins_over_what_it_must_have() {
    let pod = pod(
        "web-0",
        &[("app", json!({"cpu": "1"}), json!({"cpu": "2"}))],
    );
    let only = json!({"containerName": "app", "controlledValues": "RequestsOnly"});
    let vpa = recommending(vec![just("app", json!({"cpu": "1"}))], policy(only));
    let ranges = ranges("Container", json!({"min": {"cpu": "5"}}));
    assert_eq!(targets(&vpa, &pod, &ranges, Resource::Cpu), ["2"]);
}

#[test]
fn new_sizes_say_what_changes_and_what_stays() {
    let pod = pod(
        "web-0",
        &[
            (
                "app",
                json!({"cpu": "1", "memory": "1Gi"}),
                json!({"cpu": "2"}),
            ),
            ("other", json!({"cpu": "3"}), json!({"cpu": "4"})),
        ],
    );
    let vpa = recommending(vec![just("app", json!({"cpu": "10"}))], |_| {});
    let none = LimitRanges::default();
    let capped = capped(&vpa, &pod, &none);
    let changes = resized(&vpa, &pod, &capped, &none);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes["app"].limits[&Resource::Cpu], q("20"));
    assert_eq!(changes["app"].requests.len(), 1);
    let all = completed(&vpa, &pod, &capped, &none);
    assert_eq!(all["app"].requests[&Resource::Memory], q("1Gi"));
    assert_eq!(all["other"].limits[&Resource::Cpu], q("4"));
}
