use super::*;
use crate::condition::Truth;
use std::collections::BTreeMap;

/// A situation of one VPA whose pods have one container.
struct Scene {
    vpa: Vpa,
    pods: Vec<Pod>,
    configured: i64,
    ranges: LimitRanges,
    settings: UpdaterSettings,
    memory: ResizeMemory,
    now: Timestamp,
}

/// What a round came to.
#[derive(Debug, Default, PartialEq)]
struct Came {
    order: Vec<String>,
    evicted: Vec<String>,
    resized: Vec<String>,
}

fn cpu(amount: &str) -> Value {
    json!({"cpu": amount})
}

fn both(cpu: &str, memory: &str) -> Value {
    json!({"cpu": cpu, "memory": memory})
}

impl Scene {
    /// Pods that request a core where two are recommended, and three at most.
    fn new(n_pods: usize) -> Self {
        let requests = || both("1", "1Gi");
        let pods =
            (0..n_pods).map(|ix| pod(&format!("web-{ix}"), &[("app", requests(), json!({}))]));
        let one = recommended(
            "app",
            both("2", "1Gi"),
            both("1500m", "1Gi"),
            both("3", "1Gi"),
        );
        Self {
            vpa: Vpa {
                recommendation: vec![one],
                ..vpa(|_| {})
            },
            pods: pods.collect(),
            configured: i64::try_from(n_pods).unwrap(),
            ranges: LimitRanges::default(),
            settings: UpdaterSettings::default(),
            memory: ResizeMemory::default(),
            now: at(DAY),
        }
    }

    fn set(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn mode(self, mode: UpdateMode) -> Self {
        self.set(|scene| {
            scene.vpa.mode = mode;
            scene.settings.in_place = true;
        })
    }

    fn run_with(&mut self, resize_works: bool) -> Came {
        let owner = ("ReplicaSet".to_owned(), "web-1".to_owned());
        let situation = Situation {
            vpa: &self.vpa,
            pods: &self.pods,
            configured: BTreeMap::from([(owner, self.configured)]),
            ranges: self.ranges.clone(),
            settings: self.settings,
        };
        let mut round = Round::new(&situation, &self.memory, self.now);
        let mut came = Came {
            order: round
                .order()
                .iter()
                .map(|one| one.pod.name.clone())
                .collect(),
            ..Came::default()
        };
        while let Some(action) = round.next_action() {
            match action {
                Action::Evict { pod } => {
                    came.evicted.push(pod);
                    round.report(true);
                }
                Action::Resize { pod, .. } => {
                    came.resized.push(pod);
                    round.report(resize_works);
                }
            }
        }
        let memory = round.into_memory();
        self.memory = memory;
        came
    }

    fn run(mut self) -> Came {
        self.run_with(true)
    }
}

fn request(pod: &mut Pod, amount: &str) {
    pod.containers[0]
        .requests
        .insert("cpu".to_owned(), q(amount));
}

#[test]
fn vpa_69_growth_comes_first_and_then_what_is_most_off() {
    let requests = ["1", "100m", "9", "5", "500m"];
    let scene = Scene::new(5).set(|scene| {
        for (pod, amount) in scene.pods.iter_mut().zip(requests) {
            request(pod, amount);
        }
    });
    assert_eq!(
        scene.run().order,
        ["web-1", "web-4", "web-0", "web-2", "web-3"]
    );
}

/// The difference of a pod that requests this much CPU where so much is recommended.
fn difference(requested: &str, target: &str) -> (f64, bool) {
    let mut scene = Scene::new(1);
    request(&mut scene.pods[0], requested);
    scene.vpa.recommendation = vec![recommended("app", cpu(target), cpu(target), cpu(target))];
    let situation = Situation {
        vpa: &scene.vpa,
        pods: &scene.pods,
        configured: BTreeMap::new(),
        ranges: LimitRanges::default(),
        settings: scene.settings,
    };
    let round = Round::new(&situation, &scene.memory, scene.now);
    let priority = round.order()[0].priority;
    (priority.difference, priority.grows)
}

#[test]
fn vpa_70_differences_are_parts_of_the_requests() {
    assert_eq!(difference("2", "10"), (4.0, true));
    assert_eq!(difference("10m", "900m"), (89.0, true));
    assert_eq!(difference("4", "3"), (0.25, false));
}

fn really(pod: &mut Pod, amount: &str) {
    let real = [
        ("cpu".to_owned(), q(amount)),
        ("memory".to_owned(), q("1Gi")),
    ];
    pod.statuses.push(ContainerStatus {
        name: "app".to_owned(),
        requests: Some(real.into_iter().collect()),
        ..ContainerStatus::default()
    });
}

#[test]
fn vpa_71_what_is_really_requested_counts() {
    let scene = Scene::new(2).set(|scene| really(&mut scene.pods[0], "2"));
    assert_eq!(scene.run().order, ["web-1"]);
}

#[test]
fn vpa_72_a_missing_request_is_too_little() {
    let scene = Scene::new(2).set(|scene| {
        request(&mut scene.pods[0], "2");
        request(&mut scene.pods[1], "2");
        scene.pods[0].containers[0].requests.remove("cpu");
    });
    assert_eq!(scene.run().order, ["web-0"]);
}

#[test]
fn vpa_73_containers_that_were_not_there_do_not_count() {
    let observed = |text: &str| {
        let text = text.to_owned();
        Scene::new(1).set(|scene| {
            let annotations = &mut scene.pods[0].annotations;
            annotations.insert("vpaObservedContainers".to_owned(), text);
        })
    };
    assert!(observed("other").run().order.is_empty());
    assert_eq!(observed("other, app").run().order.len(), 1);
    assert_eq!(observed("not a name!").run().order.len(), 1);
}

#[test]
fn vpa_74_old_pods_are_updated_when_they_are_off() {
    let within = |requested: &str, hours: i64| {
        let mut scene = Scene::new(1);
        request(&mut scene.pods[0], requested);
        scene.pods[0].started = Some(scene.now - SignedDuration::from_hours(hours));
        !scene.run().order.is_empty()
    };
    assert!(within("1700m", 13));
    assert!(!within("1900m", 13));
    assert!(!within("1700m", 11));
    assert!(within("1", 11));
    let unknown = Scene::new(1).set(|scene| request(&mut scene.pods[0], "1700m"));
    assert!(unknown.run().order.is_empty());
}

/// Memory ran out after so many seconds.
fn ran_out(pod: &mut Pod, seconds: i64, reason: &str) {
    pod.statuses.push(ContainerStatus {
        name: "app".to_owned(),
        last: Some(Ended {
            reason: reason.to_owned(),
            started: Some(at(0)),
            finished: Some(at(seconds)),
        }),
        ..ContainerStatus::default()
    });
}

#[test]
fn vpa_75_memory_that_ran_out_soon_is_a_reason() {
    let scene = |requested: &str, seconds, reason: &str, change: fn(&mut Scene)| {
        let mut scene = Scene::new(1).set(change);
        request(&mut scene.pods[0], requested);
        ran_out(&mut scene.pods[0], seconds, reason);
        !scene.run().order.is_empty()
    };
    assert!(scene("1900m", 599, "OOMKilled", |_| {}));
    assert!(!scene("1900m", 600, "OOMKilled", |_| {}));
    assert!(!scene("1900m", 599, "Error", |_| {}));
    assert!(!scene("2", 599, "OOMKilled", |_| {}));
    let unseen: fn(&mut Scene) = |scene| {
        let annotations = &mut scene.pods[0].annotations;
        annotations.insert("vpaObservedContainers".to_owned(), "other".to_owned());
    };
    assert!(!scene("1900m", 599, "OOMKilled", unseen));
    let quick: fn(&mut Scene) = |scene| {
        scene.vpa.evict_after_oom = Some(SignedDuration::from_secs(60));
        scene.settings.per_vpa = true;
    };
    assert!(!scene("1900m", 599, "OOMKilled", quick));
    assert!(scene("1900m", 59, "OOMKilled", quick));
}

/// Whether a pod is let go by requirements, each of resources and a direction.
fn let_go(requirements: &[(&[&str], bool)], cpu: &str, memory: &str) -> bool {
    let mut scene = Scene::new(1);
    request(&mut scene.pods[0], cpu);
    scene.pods[0].containers[0]
        .requests
        .insert("memory".to_owned(), q(memory));
    let requirement = |(resources, higher): &(&[&str], bool)| Requirement {
        resources: resources.iter().map(|name| (*name).to_owned()).collect(),
        higher: *higher,
    };
    scene.vpa.requirements = requirements.iter().map(requirement).collect();
    !scene.run().order.is_empty()
}

#[test]
fn vpa_76_requirements_say_which_changes_are_worth_it() {
    assert!(let_go(&[(&["cpu"], true)], "1", "1Gi"));
    assert!(!let_go(&[(&["cpu"], true)], "5", "1Gi"));
    assert!(let_go(&[(&["cpu", "memory"], true)], "5", "512Mi"));
    assert!(!let_go(
        &[(&["cpu"], true), (&["memory"], true)],
        "1",
        "2Gi"
    ));
    assert!(let_go(
        &[(&["cpu"], true), (&["memory"], false)],
        "1",
        "2Gi"
    ));
    let mut two = Scene::new(1);
    two.vpa.requirements = vec![Requirement {
        resources: vec!["cpu".to_owned()],
        higher: true,
    }];
    two.vpa.recommendation[0] =
        recommended("app", both("1", "1Gi"), both("1", "1Gi"), both("1", "1Gi"));
    two.pods[0] = pod(
        "web-0",
        &[
            ("app", both("2", "1Gi"), json!({})),
            ("none", json!({}), json!({})),
        ],
    );
    assert!(two.run().order.is_empty());
}

#[test]
fn vpa_77_half_of_the_pods_may_be_disturbed() {
    let evicted = |n_pods, configured, tolerance| {
        let mut scene = Scene::new(n_pods);
        scene.configured = configured;
        scene.settings.eviction_tolerance = tolerance;
        scene.run().evicted.len()
    };
    assert_eq!(evicted(3, 3, 0.5), 1);
    assert_eq!(evicted(4, 4, 0.5), 2);
    assert_eq!(evicted(3, 4, 0.5), 1);
}

#[test]
fn vpa_78_at_least_one_where_all_are_there() {
    let evicted = |n_pods, configured| {
        let mut scene = Scene::new(n_pods);
        scene.configured = configured;
        scene.settings.eviction_tolerance = 0.1;
        scene.run().evicted.len()
    };
    assert_eq!((evicted(3, 3), evicted(2, 3)), (1, 0));
}

#[test]
fn vpa_79_pods_that_wait_may_always_go() {
    let scene = Scene::new(3).set(|scene| {
        for ix in [0, 2] {
            "Pending".clone_into(&mut scene.pods[ix].phase);
        }
    });
    assert_eq!(scene.run().evicted, ["web-0", "web-2"]);
}

#[test]
fn vpa_80_a_pod_alone_stays_unless_it_is_told() {
    assert!(Scene::new(1).run().evicted.is_empty());
    let told = Scene::new(1).set(|scene| scene.vpa.min_replicas = Some(1));
    assert_eq!(told.run().evicted, ["web-0"]);
    let flag = Scene::new(1).set(|scene| scene.settings.min_replicas = 1);
    assert_eq!(flag.run().evicted, ["web-0"]);
    let gone = Scene::new(2).set(|scene| scene.configured = 0);
    assert!(gone.run().evicted.is_empty());
}

fn resizing(pod: &mut Pod, kind: &str, reason: &str) {
    pod.conditions.push(PodCondition {
        kind: kind.to_owned(),
        status: Truth::True,
        reason: reason.to_owned(),
        since: None,
    });
}

#[test]
fn vpa_81_the_same_holds_for_resizes() {
    let scene = Scene::new(4).mode(UpdateMode::InPlaceOrRecreate);
    assert_eq!(scene.run().resized, ["web-0", "web-1"]);
    let one_on_its_way = Scene::new(4)
        .mode(UpdateMode::InPlaceOrRecreate)
        .set(|scene| {
            resizing(&mut scene.pods[0], "PodResizeInProgress", "");
        });
    assert_eq!(one_on_its_way.run().resized, ["web-1", "web-2"]);
}

/// What becomes of the first of three pods whose resize is at this.
fn resize_at(kind: &str, reason: &str) -> Came {
    let scene = Scene::new(3)
        .mode(UpdateMode::InPlaceOrRecreate)
        .set(|scene| {
            resizing(&mut scene.pods[0], kind, reason);
            for pod in &mut scene.pods[1..] {
                request(pod, "2");
            }
        });
    scene.run()
}

#[test]
fn vpa_82_resizes_that_cannot_be_become_evictions() {
    assert_eq!(
        resize_at("PodResizePending", "Infeasible").evicted,
        ["web-0"]
    );
    assert_eq!(resize_at("PodResizePending", "Surprise").evicted, ["web-0"]);
    assert_eq!(resize_at("PodResizeInProgress", "Error").evicted, ["web-0"]);
    for (kind, reason) in [
        ("PodResizeInProgress", ""),
        ("PodResizePending", "Deferred"),
    ] {
        let came = resize_at(kind, reason);
        assert!(came.evicted.is_empty() && came.resized.is_empty(), "{kind}");
    }
    assert_eq!(resize_at("Ready", "").resized, ["web-0"]);
}

#[test]
fn vpa_83_resizes_that_take_too_long_do_so_too() {
    for (kind, reason, seconds) in [
        ("PodResizePending", "Deferred", 300),
        ("PodResizeInProgress", "", 3600),
    ] {
        for (mode, given_up) in [
            (UpdateMode::InPlaceOrRecreate, true),
            (UpdateMode::InPlace, false),
        ] {
            let mut scene = Scene::new(3).mode(mode).set(|scene| {
                for pod in &mut scene.pods {
                    resizing(pod, kind, reason);
                }
            });
            assert!(scene.run_with(true).evicted.is_empty());
            let first = scene.now;
            scene.now = first + SignedDuration::from_secs(seconds);
            assert!(scene.run_with(true).evicted.is_empty());
            scene.now = first + SignedDuration::from_secs(seconds + 1);
            assert_eq!(scene.run_with(true).evicted.len() == 1, given_up);
        }
    }
}

#[test]
fn vpa_84_what_a_node_could_not_do_is_tried_again_when_it_is_less() {
    let target = |cpu: &str| {
        vec![recommended(
            "app",
            both(cpu, "1Gi"),
            both(cpu, "1Gi"),
            both(cpu, "1Gi"),
        )]
    };
    let mut scene = Scene::new(3).mode(UpdateMode::InPlace).set(|scene| {
        scene.pods.truncate(2);
        scene.configured = 2;
        resizing(&mut scene.pods[0], "PodResizePending", "Infeasible");
        request(&mut scene.pods[1], "2");
    });
    assert!(scene.run_with(true).resized.is_empty());
    assert_eq!(scene.memory.infeasible.len(), 1);
    scene.vpa.recommendation = target("5");
    let web_0 = |came: &Came| came.resized.contains(&"web-0".to_owned());
    assert!(!web_0(&scene.run_with(true)));
    scene.vpa.recommendation = target("1800m");
    assert!(web_0(&scene.run_with(true)));
    let other = Scene::new(2)
        .mode(UpdateMode::InPlaceOrRecreate)
        .set(|scene| {
            resizing(&mut scene.pods[0], "PodResizePending", "Infeasible");
            request(&mut scene.pods[1], "2");
        });
    assert_eq!(other.run().evicted, ["web-0"]);
}

#[test]
fn vpa_85_the_budget_can_be_left_aside_where_nothing_starts_again() {
    let skipping = || {
        Scene::new(4)
            .mode(UpdateMode::InPlaceOrRecreate)
            .set(|scene| {
                scene.settings.skip_budget = true;
            })
    };
    assert_eq!(skipping().run().resized.len(), 4);
    let mixed = skipping().set(|scene| {
        for pod in &mut scene.pods {
            pod.containers[0].restarts_on.push("memory".to_owned());
        }
    });
    assert_eq!(mixed.run().resized.len(), 2);
    let few = skipping().set(|scene| scene.settings.min_replicas = 9);
    let came = few.run();
    assert_eq!((came.resized.len(), came.evicted.len()), (4, 0));
}

#[test]
fn vpa_86_modes_say_what_may_be_done() {
    for mode in [UpdateMode::Off, UpdateMode::Initial] {
        let came = Scene::new(4).mode(mode).run();
        assert_eq!(
            (came.order.len(), came.evicted.len(), came.resized.len()),
            (4, 0, 0)
        );
    }
    for mode in [UpdateMode::Auto, UpdateMode::Recreate] {
        assert_eq!(Scene::new(4).mode(mode).run().evicted.len(), 2);
    }
    let failed = Scene::new(4)
        .mode(UpdateMode::InPlaceOrRecreate)
        .run_with(false);
    assert_eq!((failed.resized.len(), failed.evicted.len()), (4, 2));
    let in_place = Scene::new(4).mode(UpdateMode::InPlace).run_with(false);
    assert_eq!((in_place.resized.len(), in_place.evicted.len()), (4, 0));
    let gate_off = Scene::new(4)
        .mode(UpdateMode::InPlace)
        .set(|scene| scene.settings.in_place = false);
    assert!(gate_off.run().resized.is_empty());
}

#[test]
fn pods_that_are_boosted_or_go_are_left_alone() {
    let scene = Scene::new(4).set(|scene| {
        scene.settings.startup_boost = true;
        let annotations = &mut scene.pods[0].annotations;
        annotations.insert("vpaCpuStartupBoost/app".to_owned(), "{}".to_owned());
        scene.pods[1].deleting = true;
    });
    assert_eq!(scene.run().order, ["web-2", "web-3"]);
}
