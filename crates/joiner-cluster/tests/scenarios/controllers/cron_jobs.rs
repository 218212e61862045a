use joiner_cluster::{CronJobs, GarbageCollector, Jobs};
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::controllers::world::{CRON_JOBS, JOBS, PODS, World};

fn world() -> World {
    World::new(vec![
        Box::<CronJobs>::default(),
        Box::<Jobs>::default(),
        Box::<GarbageCollector>::default(),
    ])
}

fn cron(schedule: &str, ends: &str, more: Value) -> Value {
    let mut cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": more,
    });
    cron["spec"]["schedule"] = json!(schedule);
    cron["spec"]["jobTemplate"] = json!({"spec": {"completions": 1, "template": {
        "metadata": {"labels": {"ends": ends}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
    }}});
    cron
}

/// Plays until a time of day, and gives the minutes at which Jobs were started.
fn play(world: &mut World, hours: i64) -> Vec<i64> {
    let start = world.now.as_second();
    let mut fired = std::collections::BTreeSet::new();
    loop {
        world.settle();
        for job in world.list(JOBS) {
            let minutes = meta::name(&job)
                .rsplit('-')
                .next()
                .unwrap()
                .parse::<i64>()
                .unwrap();
            fired.insert(minutes - start / 60);
        }
        match world.wake {
            Some(wake) if wake.as_second() <= start + hours * 3600 => world.now = wake,
            _ => return fired.into_iter().collect(),
        }
    }
}

#[test]
fn a_day_of_firings() {
    let mut world = world();
    world.create(CRON_JOBS, cron("0 */6 * * *", "well", json!({})));
    assert_eq!(play(&mut world, 24), [360, 720, 1080, 1440]);
    let tick = world.get(CRON_JOBS, "tick");
    assert_eq!(tick["status"]["lastScheduleTime"], "2026-01-02T00:00:00Z");
    assert_eq!(tick["status"]["lastSuccessfulTime"], "2026-01-02T00:00:00Z");
    assert!(tick["status"]["active"].is_null());
    // Three successes are kept, with their pods.
    assert_eq!(world.list(JOBS).len(), 3);
    assert_eq!(world.list(PODS).len(), 3);
    assert_eq!(
        world
            .events("SuccessfulCreate")
            .iter()
            .filter(|m| m.starts_with("Created job"))
            .count(),
        4
    );
    let job = &world.list(JOBS)[0];
    assert_eq!(
        meta::name(job),
        format!("tick-{}", (1_767_225_600 + 720 * 60) / 60)
    );
    assert_eq!(
        meta::annotation(job, "batch.kubernetes.io/cronjob-scheduled-timestamp"),
        Some("2026-01-01T12:00:00Z")
    );
}

#[test]
fn time_zones_and_words() {
    for (schedule, zone, fired) in [
        ("@daily", None, vec![1440]),
        ("@daily", Some("Europe/Berlin"), vec![1380]),
        ("30 9 * * *", Some("Asia/Tokyo"), vec![30]),
        ("not a schedule", None, vec![]),
    ] {
        let mut world = world();
        world.create(CRON_JOBS, cron(schedule, "well", json!({"timeZone": zone})));
        assert_eq!(play(&mut world, 24), fired, "{schedule} {zone:?}");
        let complaints = world.events("UnparseableSchedule").len();
        assert_eq!(complaints, usize::from(fired.is_empty()), "{schedule}");
    }
}

#[test]
fn overlapping_runs_follow_the_policy() {
    for (policy, running, started) in [("Allow", 3, 3), ("Forbid", 1, 1), ("Replace", 1, 3)] {
        let mut world = world();
        world.create(
            CRON_JOBS,
            cron("@hourly", "never", json!({"concurrencyPolicy": policy})),
        );
        assert_eq!(play(&mut world, 3).len(), started, "{policy}");
        assert_eq!(world.list(JOBS).len(), running, "{policy}");
        let active = world.get(CRON_JOBS, "tick")["status"]["active"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(active, running, "{policy}");
        let skipped = usize::from(policy == "Forbid");
        assert_eq!(world.events("JobAlreadyActive").len(), skipped, "{policy}");
    }
}

#[test]
fn missed_runs_are_made_up_once_within_the_deadline() {
    for (deadline, jobs) in [(json!(null), 1), (json!(600), 0), (json!(1800), 1)] {
        let mut world = world();
        let more = json!({"startingDeadlineSeconds": deadline, "suspend": true});
        world.create(CRON_JOBS, cron("@hourly", "well", more));
        world.settle();
        assert!(world.wake.is_none(), "suspended");
        world.pass(3 * 3600 + 1200);
        world.patch(CRON_JOBS, "tick", json!({"spec": {"suspend": false}}));
        world.settle();
        assert_eq!(world.list(JOBS).len(), jobs, "deadline {deadline}");
    }
}

#[test]
fn a_job_that_somebody_else_made_is_noticed_and_not_counted() {
    let mut world = world();
    world.create(CRON_JOBS, cron("0 0 1 1 *", "never", json!({})));
    let owner = meta::uid(&world.get(CRON_JOBS, "tick")).to_owned();
    world.create(
        JOBS,
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "by-hand", "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": owner,
                "controller": true,
            }]},
            "spec": {"completions": 1, "template": {
                "metadata": {"labels": {"ends": "never"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
            }},
        }),
    );
    world.settle();
    assert!(world.get(CRON_JOBS, "tick")["status"]["active"].is_null());
    let message = "Saw a job that the controller did not create or forgot: by-hand";
    assert_eq!(world.events("UnexpectedJob"), [message]);
}
