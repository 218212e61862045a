//! Where in its life is a pod?
//!
//! Everything follows from the pod and the moment its kubelet took it on, so that no kubelet has to
//! remember anything.

use jiff::{SignedDuration, Timestamp};
use joiner_api::labels::ours::{EXIT_CODE, RUN_SECONDS, START_SECONDS, STOP_SECONDS};
use joiner_machinery::meta;
use serde_json::Value;

use super::Settings;
use crate::fields::{after, instant, key};
use crate::names::Digest;
use crate::scheduler::amounts::is_sidecar;
use crate::scheduler::labels::items;
use crate::view::ObjectKey;

/// Seconds between restarts: none at first, then doubling from the base to the most.
const BACK_OFF_BASE: i64 = 10;
const BACK_OFF_MOST: i64 = 300;
/// Exits after which the back-off does not grow any more.
const EXITS_STEADY: i64 = 7;

/// A pod as its kubelet sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodLife {
    /// Namespace and name.
    pub(crate) key: ObjectKey,
    /// Its uid.
    pub(crate) uid: String,
    /// Its node; empty before it is bound.
    pub(crate) node: String,
    /// Succeeded or Failed.
    pub(crate) finished: bool,
    /// Somebody has to agree before it goes.
    pub(crate) held: bool,
    /// When it has to be gone, and the seconds it got for that.
    pub(crate) deletion: Option<(Timestamp, i64)>,
    /// When its kubelet took it on.
    pub(crate) start: Option<Timestamp>,
    /// When its containers are there.
    begin_secs: i64,
    init_secs: i64,
    inits: i64,
    ready_secs: i64,
    run_secs: Option<i64>,
    exit_code: i64,
    restarts: bool,
    deadline_secs: Option<i64>,
    stop: SignedDuration,
}

/// What the containers of a pod do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// They are being made.
    Creating,
    /// The init container with this number (sidecars not counted) runs since then.
    Init(i64, Timestamp),
    /// They run since then.
    Running {
        /// Since when.
        since: Timestamp,
        /// How often they were restarted.
        restarts: i64,
        /// Their readiness probes say yes.
        ready: bool,
    },
    /// They have ended and will be started again.
    BackOff {
        /// When they ran.
        ran: (Timestamp, Timestamp),
        /// How often they were restarted.
        restarts: i64,
    },
    /// They have ended for good.
    Done {
        /// When they ran.
        ran: (Timestamp, Timestamp),
        /// Their exit code.
        exit_code: i64,
        /// They were stopped because the pod was active for too long.
        overdue: bool,
    },
}

impl PodLife {
    /// Reads a Pod; annotations override the settings.
    pub(crate) fn read(pod: &Value, settings: &Settings) -> Self {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let number = |key: &str| meta::annotation(pod, key)?.parse::<i64>().ok();
        let policy = spec["restartPolicy"].as_str().unwrap_or("Always");
        let exit_code = number(EXIT_CODE).unwrap_or(0);
        let ends = number(RUN_SECONDS).or((policy != "Always").then_some(settings.run_secs));
        let probes = items(&spec["containers"]);
        let probes = probes.filter_map(|one| one["readinessProbe"]["initialDelaySeconds"].as_i64());
        let inits = items(&spec["initContainers"])
            .filter(|one| !is_sidecar(one))
            .count();
        let grace = pod["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or(0);
        let finalizers = &pod["metadata"]["finalizers"];
        let draw = Digest::default().text(meta::uid(pod)).finish();
        let by_chance = i64::try_from(draw % settings.stop_millis_max.max(1)).unwrap_or(0);
        let stop = number(STOP_SECONDS).map(SignedDuration::from_secs);
        Self {
            key: key(pod),
            uid: meta::uid(pod).to_owned(),
            node: spec["nodeName"].as_str().unwrap_or("").to_owned(),
            finished: status["phase"] == "Succeeded" || status["phase"] == "Failed",
            held: finalizers.as_array().is_some_and(|all| !all.is_empty()),
            deletion: instant(&pod["metadata"]["deletionTimestamp"]).map(|at| (at, grace)),
            start: instant(&status["startTime"]),
            begin_secs: number(START_SECONDS).unwrap_or(settings.start_secs),
            init_secs: settings.init_secs,
            inits: i64::try_from(inits).unwrap_or(i64::MAX),
            ready_secs: probes.max().unwrap_or(0),
            run_secs: ends.map(|seconds| seconds.max(1)),
            exit_code,
            restarts: policy == "Always" || (policy == "OnFailure" && exit_code != 0),
            deadline_secs: spec["activeDeadlineSeconds"].as_i64(),
            stop: stop.unwrap_or_else(|| SignedDuration::from_millis(by_chance)),
        }
    }

    /// When a deleted pod is gone: as soon as its containers have stopped, at the end of its grace
    /// at the latest.
    pub(crate) fn stops_at(&self) -> Option<Timestamp> {
        let (deadline, grace) = self.deletion?;
        if self.start.is_none() || self.finished {
            return Some(after(deadline, -grace));
        }
        let stopped = after(deadline, -grace)
            .checked_add(self.stop)
            .unwrap_or(Timestamp::MAX);
        Some(stopped.min(deadline))
    }

    /// What the containers do now, and when that changes.
    pub(crate) fn stage(&self, start: Timestamp, now: Timestamp) -> (Stage, Option<Timestamp>) {
        let deadline = self.deadline_secs.map(|seconds| after(start, seconds));
        let (stage, next) = self.undisturbed(start, now);
        let Some(deadline) = deadline else {
            return (stage, next);
        };
        let ended = match stage {
            Stage::Done { ran, .. } => Some(ran.1),
            Stage::Creating | Stage::Init(..) | Stage::Running { .. } | Stage::BackOff { .. } => {
                None
            }
        };
        if now < deadline || ended.is_some_and(|ended| ended <= deadline) {
            return (
                stage,
                Some(next.map_or(deadline, |next| next.min(deadline))).filter(|_| ended.is_none()),
            );
        }
        let ran = (start, deadline);
        let overdue = Stage::Done {
            ran,
            exit_code: 137,
            overdue: true,
        };
        (overdue, None)
    }

    fn undisturbed(&self, start: Timestamp, now: Timestamp) -> (Stage, Option<Timestamp>) {
        let begin = after(start, self.begin_secs);
        if now < begin {
            return (Stage::Creating, Some(begin));
        }
        let init_secs = self.init_secs.max(0);
        let main = after(begin, init_secs.saturating_mul(self.inits));
        if now < main {
            let passed = now.duration_since(begin).as_secs() / init_secs.max(1);
            let since = after(begin, passed * init_secs);
            return (Stage::Init(passed, since), Some(after(since, init_secs)));
        }
        let Some(run) = self.run_secs else {
            return self.running(main, 0, now, None);
        };
        self.cycle(main, run, now)
    }

    fn running(
        &self,
        since: Timestamp,
        restarts: i64,
        now: Timestamp,
        end: Option<Timestamp>,
    ) -> (Stage, Option<Timestamp>) {
        let ready_at = after(since, self.ready_secs);
        let ready = now >= ready_at;
        let stage = Stage::Running {
            since,
            restarts,
            ready,
        };
        let next = if ready {
            end
        } else {
            Some(end.map_or(ready_at, |end| end.min(ready_at)))
        };
        (stage, next)
    }

    /// Containers that run for a while: once, or again and again.
    fn cycle(&self, main: Timestamp, run: i64, now: Timestamp) -> (Stage, Option<Timestamp>) {
        let elapsed = now.duration_since(main).as_secs();
        let (mut at, mut exits) = (0_i64, 0_i64);
        loop {
            let end = at + run;
            if elapsed < end {
                return self.running(after(main, at), exits, now, Some(after(main, end)));
            }
            let ran = (after(main, at), after(main, end));
            exits += 1;
            if !self.restarts {
                let exit_code = self.exit_code;
                return (
                    Stage::Done {
                        ran,
                        exit_code,
                        overdue: false,
                    },
                    None,
                );
            }
            let next = end + back_off(exits);
            if elapsed < next {
                let restarts = exits - 1;
                return (Stage::BackOff { ran, restarts }, Some(after(main, next)));
            }
            at = next;
            if exits >= EXITS_STEADY {
                let period = run + BACK_OFF_MOST;
                let skipped = (elapsed - at) / period;
                at += skipped * period;
                exits += skipped;
            }
        }
    }
}

fn back_off(exits: i64) -> i64 {
    match u32::try_from(exits).unwrap_or(u32::MAX) {
        0 | 1 => 0,
        exits => BACK_OFF_BASE
            .saturating_mul(1 << (exits - 2).min(10))
            .min(BACK_OFF_MOST),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// Stage and next change of a pod taken on at second 100.
    fn stage(pod: &Value, seconds: i64) -> (Stage, Option<i64>) {
        let life = PodLife::read(pod, &Settings::default());
        let (stage, next) = life.stage(at(100), at(seconds));
        (stage, next.map(Timestamp::as_second))
    }

    #[test]
    fn a_server_starts_and_stays() {
        let pod = json!({"spec": {
            "initContainers": [{}, {"restartPolicy": "Always"}, {}],
            "containers": [{"readinessProbe": {"initialDelaySeconds": 5}}],
        }});
        let running = |ready| Stage::Running {
            since: at(103),
            restarts: 0,
            ready,
        };
        assert_eq!(stage(&pod, 100), (Stage::Creating, Some(101)));
        assert_eq!(stage(&pod, 101), (Stage::Init(0, at(101)), Some(102)));
        assert_eq!(stage(&pod, 102), (Stage::Init(1, at(102)), Some(103)));
        assert_eq!(stage(&pod, 103), (running(false), Some(108)));
        assert_eq!(stage(&pod, 108), (running(true), None));
        assert_eq!(stage(&pod, 100_000), (running(true), None));
    }

    #[test]
    fn a_job_ends() {
        let pod = json!({
            "metadata": {"annotations": {RUN_SECONDS: "30", EXIT_CODE: "3"}},
            "spec": {"restartPolicy": "Never", "containers": [{}]},
        });
        let done = Stage::Done {
            ran: (at(101), at(131)),
            exit_code: 3,
            overdue: false,
        };
        assert_eq!(stage(&pod, 130).1, Some(131));
        assert_eq!(stage(&pod, 131), (done, None));
        let mut late = pod.clone();
        late["spec"]["activeDeadlineSeconds"] = json!(10);
        let overdue = Stage::Done {
            ran: (at(100), at(110)),
            exit_code: 137,
            overdue: true,
        };
        assert_eq!(stage(&late, 105).1, Some(110));
        assert_eq!(stage(&late, 110), (overdue, None));
        late["spec"]["activeDeadlineSeconds"] = json!(60);
        assert_eq!(stage(&late, 500), (done, None), "in time is in time");
    }

    #[test]
    fn crashes_are_restarted_ever_later() {
        let pod = json!({
            "metadata": {"annotations": {RUN_SECONDS: "5", EXIT_CODE: "1"}},
            "spec": {"restartPolicy": "OnFailure", "containers": [{}]},
        });
        let running = |since, restarts| Stage::Running {
            since: at(since),
            restarts,
            ready: true,
        };
        assert_eq!(stage(&pod, 101), (running(101, 0), Some(106)));
        assert_eq!(
            stage(&pod, 106),
            (running(106, 1), Some(111)),
            "the first restart is free"
        );
        let waits = Stage::BackOff {
            ran: (at(106), at(111)),
            restarts: 1,
        };
        assert_eq!(stage(&pod, 111), (waits, Some(121)));
        assert_eq!(stage(&pod, 121), (running(121, 2), Some(126)));
        let day = |seconds: i64| match stage(&pod, 100 + seconds).0 {
            Stage::Running { restarts, .. } | Stage::BackOff { restarts, .. } => restarts,
            other @ (Stage::Creating | Stage::Init(..) | Stage::Done { .. }) => panic!("{other:?}"),
        };
        assert!((280..290).contains(&day(86_400)), "{}", day(86_400));
    }

    #[test]
    fn stopping_takes_no_longer_than_the_grace() {
        let pod = |stop: &str, grace: i64| {
            let pod = json!({
                "metadata": {
                    "annotations": {STOP_SECONDS: stop},
                    "deletionTimestamp": meta::time(at(1000 + grace)),
                    "deletionGracePeriodSeconds": grace,
                },
                "status": {"startTime": meta::time(at(100))},
            });
            PodLife::read(&pod, &Settings::default()).stops_at()
        };
        assert_eq!(pod("5", 30), Some(at(1005)));
        assert_eq!(pod("90", 30), Some(at(1030)));
        assert_eq!(pod("0", 30), Some(at(1000)));
    }
}
