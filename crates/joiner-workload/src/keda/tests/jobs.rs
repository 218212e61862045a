use super::*;

fn job(change: impl FnOnce(&mut Value)) -> ScaledJob {
    let mut object = json!({
        "metadata": {
            "name": "work", "namespace": "shop", "generation": 7,
            "labels": {"team": "a", "secret": "x"},
            "annotations": {"scaledjob.keda.sh/job-excluded-labels": "secret"},
        },
        "spec": {
            "jobTargetRef": {"template": {"spec": {"containers": [{"name": "app"}]}}},
            "triggers": [redis("a"), redis("b")],
        },
    });
    change(&mut object);
    ScaledJob::read(&object).unwrap()
}

fn strategy(name: &str, more: &Value) -> Strategy {
    let job = job(|object| {
        let mut strategy = more.clone();
        strategy["strategy"] = json!(name);
        object["spec"]["scalingStrategy"] = strategy;
    });
    job.strategy
}

/// How many may be made: of so many wanted and running.
fn effective(strategy: Strategy, wanted: i64, running: i64, pending: i64, max: i64) -> i64 {
    let queue = Queue {
        is_active: true,
        scale_to: wanted,
        max_scale: wanted,
    };
    strategy
        .effective(queue, Unfinished { running, pending }, max)
        .0
}

#[test]
fn keda_67_by_default_running_jobs_are_deducted() {
    let default = strategy("default", &json!({}));
    assert_eq!(effective(default, 3, 2, 0, 5), 1);
    assert_eq!(effective(default, 2, 0, 0, 5), 2);
}

#[test]
fn keda_68_or_a_number_and_a_share_of_them() {
    let custom = |deduction: Value, percentage: &str| {
        strategy(
            "custom",
            &json!({
                "customScalingQueueLengthDeduction": deduction,
                "customScalingRunningJobPercentage": percentage,
            }),
        )
    };
    let one = custom(json!(1), "0.5");
    assert_eq!(effective(one, 3, 2, 0, 5), 1);
    assert_eq!(effective(one, 10, 0, 0, 20), 9);
    assert_eq!(effective(custom(json!(2), "0"), 3, 2, 0, 5), 1);
    assert_eq!(effective(custom(json!(-2), "0"), 3, 0, 0, 4), 4);
    assert_eq!(effective(custom(Value::Null, "0.5"), 10, 2, 0, 20), 9);
    assert_eq!(custom(json!(1), ""), Strategy::Default);
}

#[test]
fn keda_69_or_waiting_ones() {
    let accurate = strategy("accurate", &json!({}));
    for (wanted, running, pending, max, expected) in [
        (3, 2, 0, 5, 3),
        (5, 2, 0, 5, 3),
        (3, 4, 2, 10, 1),
        (5, 4, 2, 5, 1),
        (3, 3, 3, 5, 0),
        (20, 15, 10, 20, 5),
    ] {
        assert_eq!(effective(accurate, wanted, running, pending, max), expected);
    }
}

#[test]
fn keda_70_or_as_many_as_may_run() {
    let eager = strategy("eager", &json!({}));
    for (wanted, running, pending, max, expected) in [
        (4, 3, 0, 10, 4),
        (4, 7, 0, 10, 3),
        (4, 1, 6, 10, 3),
        (15, 0, 0, 10, 10),
    ] {
        assert_eq!(effective(eager, wanted, running, pending, max), expected);
    }
    let queue = Queue {
        is_active: true,
        scale_to: 4,
        max_scale: 4,
    };
    assert_eq!(eager.effective(queue, Unfinished::default(), 10).1, 10);
}

#[test]
fn keda_71_the_fewest_run_whatever_the_queue_says() {
    let job = job(|object| object["spec"]["minReplicaCount"] = json!(3));
    let empty = job.queue(&[]);
    assert!(empty.is_active);
    let running = |running| Unfinished {
        running,
        pending: 0,
    };
    assert_eq!(job.n_to_create(empty, running(1)), 2);
    assert_eq!(job.n_to_create(empty, running(3)), 0);
}

fn ended(name: &str, well: bool, seconds_ago: i64) -> Job {
    Job {
        name: name.to_owned(),
        finished: Some(well),
        completed: Some(ago(seconds_ago)),
        pods: Vec::new(),
    }
}

#[test]
fn keda_72_the_newest_ended_jobs_of_each_kind_are_kept() {
    let job = job(|object| {
        object["spec"]["successfulJobsHistoryLimit"] = json!(1);
        object["spec"]["failedJobsHistoryLimit"] = json!(2);
    });
    let jobs = [
        ended("a", true, 30),
        ended("b", false, 40),
        ended("c", true, 10),
        ended("d", false, 20),
        ended("e", true, 50),
        ended("f", false, 60),
        Job::default(),
    ];
    assert_eq!(job.outdated(&jobs), ["e", "a", "f"]);
    let many: Vec<Job> = (0..101).map(|n| ended("x", true, n)).collect();
    assert_eq!(super::jobs::job(|_| {}).outdated(&many).len(), 1);
}

#[test]
fn keda_73_a_job_waits_until_one_pod_has_all_conditions() {
    let wants = job(|object| {
        object["spec"]["scalingStrategy"]["pendingPodConditions"] =
            json!(["Ready", "PodScheduled"]);
    });
    let pod = |conditions: &[&str]| JobPod {
        has_run: true,
        conditions: conditions.iter().map(|kind| (*kind).to_owned()).collect(),
    };
    let of = |pods: Vec<JobPod>| Job {
        pods,
        ..Job::default()
    };
    let spread = of(vec![pod(&["Ready"]), pod(&["PodScheduled"])]);
    let whole = of(vec![pod(&["Ready", "PodScheduled", "More"])]);
    let jobs = [spread, whole, ended("x", true, 1)];
    let expected = |pending| Unfinished {
        running: 2,
        pending,
    };
    assert_eq!(wants.unfinished(&jobs), expected(1));
    assert_eq!(job(|_| {}).unfinished(&jobs), expected(0));
}

#[test]
fn keda_74_jobs_say_what_they_were_made_of() {
    let made = job(|_| {}).new_job("1.0");
    let meta = &made["metadata"];
    assert_eq!(meta["generateName"], "work-");
    assert_eq!(meta["labels"][JOB_LABEL], "work");
    assert_eq!(meta["labels"]["team"], "a");
    assert_eq!(meta["labels"]["secret"], Value::Null);
    assert_eq!(meta["annotations"][GENERATION], "7");
    let template = &made["spec"]["template"];
    assert_eq!(template["spec"]["restartPolicy"], "OnFailure");
    assert_eq!(template["metadata"]["labels"][JOB_LABEL], "work");
    let mut never = job(|_| {});
    never.job["template"]["spec"]["restartPolicy"] = json!("Never");
    assert_eq!(
        never.new_job("1.0")["spec"]["template"]["spec"]["restartPolicy"],
        "Never"
    );
}

#[test]
fn keda_75_targets_are_averaged() {
    let spec = |target_millis| MetricSpec::External {
        name: "s0-redis".to_owned(),
        metric_type: MetricType::AverageValue,
        target_millis,
    };
    let mean = mean_target(&[spec(5000), spec(5000), spec(3000)]);
    assert!((mean - 13.0 / 3.0).abs() < 1e-12);
    assert_eq!(mean_target(&[]), 0.0);
}

/// A trigger with a queue of this length, of which a Job takes ten.
fn trigger(length: f64, is_active: bool) -> (Vec<MetricSpec>, TriggerReading) {
    let spec = MetricSpec::External {
        name: "s0-redis".to_owned(),
        metric_type: MetricType::AverageValue,
        target_millis: 10_000,
    };
    let reading = TriggerReading {
        is_active,
        values: vec![("s0-redis".to_owned(), length)],
    };
    (vec![spec], reading)
}

#[test]
fn several_triggers_become_one_queue() {
    let triggers = [
        trigger(25.0, true),
        trigger(8.0, true),
        trigger(90.0, false),
    ];
    for (calculation, length, most) in [
        ("max", 25, 3),
        ("min", 8, 1),
        ("avg", 17, 2),
        ("sum", 33, 4),
    ] {
        let job = job(|object| {
            object["spec"]["scalingStrategy"]["multipleScalersCalculation"] = json!(calculation);
        });
        let queue = job.queue(&triggers);
        assert_eq!(
            (queue.scale_to, queue.max_scale),
            (length, most),
            "{calculation}"
        );
    }
    let limited = job(|object| object["spec"]["maxReplicaCount"] = json!(2));
    assert_eq!(limited.queue(&triggers).max_scale, 2);
    assert!(!limited.queue(&triggers[2..]).is_active);
}

#[test]
fn what_is_wrong_with_a_scaled_job_is_named() {
    let complaints = |change: fn(&mut Value)| {
        let errors = job(change).complaints();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        complaints(|object| object["spec"]["triggers"][1]["metricType"] = json!("Value")),
        ["spec.triggers[1].metricType: must be left out of a ScaledJob"]
    );
    assert!(
        complaints(|object| {
            object["spec"]["triggers"][1]["useCachedMetrics"] = json!(true);
            object["spec"]["triggers"][1]["type"] = json!("cron");
        })
        .is_empty()
    );
    let error = ScaledJob::read(&json!({"metadata": {"name": "a"}, "spec": {}})).unwrap_err();
    assert_eq!(error.to_string(), "spec.jobTargetRef: is missing; set it");
}
