use joiner_cluster::{GarbageCollector, Jobs};
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::controllers::world::{JOBS, PODS, World};

fn world() -> World {
    World::new(vec![
        Box::<Jobs>::default(),
        Box::<GarbageCollector>::default(),
    ])
}

fn job(spec: Value, ends: &str) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": spec,
    });
    job["spec"]["template"] = json!({
        "metadata": {"labels": {"ends": ends}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
    });
    job
}

fn condition(job: &Value, kind: &str) -> Option<String> {
    let conditions = job["status"]["conditions"].as_array()?;
    let found = conditions
        .iter()
        .find(|c| c["type"] == kind && c["status"] == "True")?;
    found["reason"].as_str().map(str::to_owned)
}

#[test]
fn a_job_completes() {
    let mut world = world();
    world.create(
        JOBS,
        job(json!({"parallelism": 2, "completions": 5}), "well"),
    );
    world.settle_and(|world| {
        let active = world
            .list(PODS)
            .into_iter()
            .filter(|pod| pod["status"]["phase"].is_null());
        assert!(active.count() <= 2);
    });
    let work = world.get(JOBS, "work");
    assert_eq!(work["status"]["succeeded"], 5);
    assert!(work["status"]["active"].is_null());
    assert_eq!(work["status"]["ready"], 0);
    assert_eq!(work["status"]["uncountedTerminatedPods"], json!({}));
    assert_eq!(
        condition(&work, "Complete").as_deref(),
        Some("CompletionsReached")
    );
    assert_eq!(
        condition(&work, "SuccessCriteriaMet").as_deref(),
        Some("CompletionsReached")
    );
    assert!(
        work["status"]["startTime"].is_string() && work["status"]["completionTime"].is_string()
    );
    assert_eq!(world.list(PODS).len(), 5);
    assert!(
        world
            .list(PODS)
            .iter()
            .all(|pod| pod["metadata"]["finalizers"].is_null())
    );
    assert_eq!(world.events("Completed"), ["Job completed"]);
}

#[test]
fn pods_that_are_deleted_after_success_still_count() {
    let mut world = world();
    world.create(
        JOBS,
        job(json!({"completions": 3, "parallelism": 1}), "well"),
    );
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..40 {
        // Somebody deletes every pod as soon as it has ended.
        let ended: Vec<String> = (world.list(PODS).iter())
            .filter(|pod| pod["status"]["phase"] == "Succeeded")
            .map(|pod| meta::name(pod).to_owned())
            .collect();
        for name in ended {
            seen.insert(name.clone());
            world.delete(PODS, &name, None);
        }
        world.round();
    }
    assert_eq!(world.get(JOBS, "work")["status"]["succeeded"], 3);
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[test]
fn failures_are_retried_more_and_more_slowly_up_to_the_limit() {
    let mut world = world();
    world.create(JOBS, job(json!({"backoffLimit": 3}), "badly"));
    let start = world.now;
    world.settle();
    let mut times = Vec::new();
    while condition(&world.get(JOBS, "work"), "Failed").is_none() {
        world.wait();
        times.push(world.now.as_second() - start.as_second());
    }
    assert_eq!(times, [10, 30, 70]);
    let work = world.get(JOBS, "work");
    assert_eq!(work["status"]["failed"], 4);
    assert_eq!(
        condition(&work, "Failed").as_deref(),
        Some("BackoffLimitExceeded")
    );
    assert_eq!(
        condition(&work, "FailureTarget").as_deref(),
        Some("BackoffLimitExceeded")
    );
    let message = "Job has reached the specified backoff limit";
    assert_eq!(world.events("BackoffLimitExceeded"), [message]);
}

#[test]
fn indexed_jobs_run_every_index_once() {
    let mut world = world();
    let spec = json!({"completionMode": "Indexed", "completions": 4, "parallelism": 2});
    world.create(JOBS, job(spec, "well"));
    world.settle();
    let work = world.get(JOBS, "work");
    assert_eq!(work["status"]["completedIndexes"], "0-3");
    assert_eq!(work["status"]["succeeded"], 4);
    let mut indexes: Vec<String> = (world.list(PODS).iter())
        .map(|pod| {
            meta::label(pod, "batch.kubernetes.io/job-completion-index")
                .unwrap()
                .to_owned()
        })
        .collect();
    indexes.sort();
    assert_eq!(indexes, ["0", "1", "2", "3"]);
    let pod = &world.list(PODS)[0];
    assert!(meta::name(pod).starts_with("work-0-"));
    assert_eq!(pod["spec"]["hostname"], "work-0");
    assert_eq!(
        pod["spec"]["containers"][0]["env"][0]["name"],
        "JOB_COMPLETION_INDEX"
    );
}

#[test]
fn a_deadline_ends_a_job_that_runs() {
    let mut world = world();
    world.create(JOBS, job(json!({"activeDeadlineSeconds": 90}), "never"));
    world.settle();
    assert_eq!(world.get(JOBS, "work")["status"]["active"], 1);
    assert_eq!(world.get(JOBS, "work")["status"]["ready"], 1);
    let start = world.now;
    world.wait();
    assert_eq!(world.now.as_second() - start.as_second(), 90);
    let work = world.get(JOBS, "work");
    assert_eq!(
        condition(&work, "Failed").as_deref(),
        Some("DeadlineExceeded")
    );
    assert_eq!(work["status"]["failed"], 1);
    assert_eq!(world.list(PODS).len(), 0);
}

#[test]
fn suspending_stops_pods_without_counting_them() {
    let mut world = world();
    world.create(
        JOBS,
        job(json!({"parallelism": 2, "completions": 2}), "never"),
    );
    world.settle();
    world.patch(JOBS, "work", json!({"spec": {"suspend": true}}));
    world.settle();
    let work = world.get(JOBS, "work");
    assert_eq!(world.list(PODS).len(), 0);
    assert_eq!(
        condition(&work, "Suspended").as_deref(),
        Some("JobSuspended")
    );
    assert!(work["status"]["failed"].is_null() && work["status"]["startTime"].is_null());
    world.patch(JOBS, "work", json!({"spec": {"suspend": false}}));
    world.settle();
    assert_eq!(world.list(PODS).len(), 2);
    assert_eq!(world.events("Resumed"), ["Job resumed"]);
}

#[test]
fn a_finished_job_is_deleted_after_its_time() {
    let mut world = world();
    world.create(
        JOBS,
        job(
            json!({"completions": 1, "ttlSecondsAfterFinished": 60}),
            "well",
        ),
    );
    world.settle();
    assert!(world.find(JOBS, "work").is_some());
    world.wait();
    assert!(world.find(JOBS, "work").is_none());
    assert_eq!(world.list(PODS).len(), 0);
}

#[test]
fn deleting_a_job_frees_its_pods() {
    let mut world = world();
    world.create(JOBS, job(json!({"completions": 1}), "never"));
    world.settle();
    world.delete(JOBS, "work", Some("Background"));
    world.settle();
    assert_eq!(world.list(PODS).len(), 0);
}

/// Ends a pod with an exit code, and perhaps because of a disruption.
fn fail(world: &mut World, pod: &str, exit_code: i64, disrupted: bool) {
    let conditions = match disrupted {
        true => json!([{"type": "DisruptionTarget", "status": "True"}]),
        false => json!([]),
    };
    let status = json!({
        "phase": "Failed",
        "conditions": conditions,
        "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": exit_code}}}],
    });
    world.patch_status(PODS, pod, status);
}

fn running(world: &World) -> Vec<String> {
    let pods = world.list(PODS).into_iter();
    pods.filter(|pod| pod["status"]["phase"] == "Running")
        .map(|pod| meta::name(&pod).to_owned())
        .collect()
}

#[test]
fn a_policy_says_which_failures_count() {
    let policy = json!({"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]});
    let spec = json!({"backoffLimit": 0, "podFailurePolicy": policy});
    let cases = [
        (137, true, None),
        (1, false, Some("BackoffLimitExceeded")),
        (42, false, Some("PodFailurePolicy")),
    ];
    for (exit_code, disrupted, expected) in cases {
        let mut world = world();
        world.create(JOBS, job(spec.clone(), "never"));
        world.settle();
        let pod = running(&world).remove(0);
        fail(&mut world, &pod, exit_code, disrupted);
        world.settle();
        let work = world.get(JOBS, "work");
        assert_eq!(
            condition(&work, "Failed").as_deref(),
            expected,
            "{exit_code}"
        );
        match expected {
            None => assert!(work["status"]["failed"].is_null() && running(&world).len() == 1),
            Some(_) => assert_eq!(work["status"]["failed"], 1),
        }
        if exit_code == 42 {
            let message = format!(
                "Container c for pod default/{pod} failed with exit code 42 matching FailJob rule \
                 at index 1"
            );
            assert_eq!(world.events("PodFailurePolicy"), [message]);
        }
    }
}

#[test]
fn some_indexes_can_be_enough() {
    let policy = json!({"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 1}]});
    let spec = json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed",
        "successPolicy": policy});
    let mut world = world();
    world.create(JOBS, job(spec, "never"));
    world.settle();
    let of = |world: &World, index: &str| {
        let start = format!("work-{index}-");
        running(world)
            .into_iter()
            .find(|name| name.starts_with(&start))
            .unwrap()
    };
    for (index, expected) in [("1", None), ("3", Some("SuccessPolicy"))] {
        let pod = of(&world, index);
        world.patch_status(PODS, &pod, json!({"phase": "Succeeded"}));
        world.settle();
        let work = world.get(JOBS, "work");
        assert_eq!(condition(&work, "Complete").as_deref(), expected);
    }
    assert!(running(&world).is_empty());
    assert_eq!(world.get(JOBS, "work")["status"]["succeeded"], 2);
}

#[test]
fn indexes_fail_on_their_own_account() {
    let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed",
        "backoffLimit": i32::MAX, "backoffLimitPerIndex": 1});
    let mut world = world();
    world.create(JOBS, job(spec, "never"));
    world.settle();
    for _ in 0..2 {
        let pods = running(&world);
        let first = pods
            .iter()
            .find(|name| name.starts_with("work-0-"))
            .unwrap();
        fail(&mut world, first, 1, false);
        world.settle();
        world.pass(60);
        world.settle();
    }
    let work = world.get(JOBS, "work");
    assert_eq!(work["status"]["failedIndexes"], "0");
    assert_eq!(condition(&work, "Failed"), None, "the other index goes on");
    let last = running(&world).remove(0);
    world.patch_status(PODS, &last, json!({"phase": "Succeeded"}));
    world.settle();
    let work = world.get(JOBS, "work");
    assert_eq!(condition(&work, "Failed").as_deref(), Some("FailedIndexes"));
    assert_eq!(work["status"]["completedIndexes"], "1");
    assert_eq!(work["status"]["failed"], 2);
}
