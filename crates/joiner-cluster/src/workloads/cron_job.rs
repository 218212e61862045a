//! Starts Jobs by the clock.

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use super::backoff::{Backoff, Backoffs};
use super::job::JOBS;
use super::owned::{Children, Owner};
use super::pods;
use super::rests::Rests;
use super::schedule::Schedule;
use crate::events::{Recorder, Severity};
use crate::fields::{self, Fields};
use crate::view::{Action, Controller, Resource, Step, View};

/// The kind.
pub(crate) const CRON_JOBS: Resource = ("batch", "cronjobs");
/// Missed firings from which on users are told that something is wrong.
const MISSED_MAX: i64 = 100;
/// The time that a Job was due.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The controller of CronJobs.
pub struct CronJobs {
    jobs: Children,
    rests: Rests,
    backoffs: Backoffs,
}

impl Default for CronJobs {
    fn default() -> Self {
        Self {
            jobs: Children::new(JOBS, "CronJob"),
            rests: Rests::default(),
            backoffs: Backoffs::default(),
        }
    }
}

impl Controller for CronJobs {
    fn name(&self) -> &'static str {
        "cronjob-controller"
    }

    fn reads(&self) -> &'static [Resource] {
        &[CRON_JOBS, JOBS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.backoffs.keep(view.all(CRON_JOBS).map(|cron| &**cron));
        self.jobs.refresh(view);
        let mut recorder = Recorder::new(view, self.name());
        let (all_jobs, backoffs) = (&self.jobs, &mut self.backoffs);
        let is_touched = |cron: &Value| all_jobs.is_touched(cron);
        self.rests.look(view, CRON_JOBS, is_touched, |object| {
            let backoff = backoffs.read(meta::uid(object));
            let jobs = all_jobs.owned(meta::uid(object));
            let mut jobs: Vec<&Value> = jobs.map(|job| &*job.object).collect();
            jobs.sort_by_cached_key(|job| (fields::created(job), meta::name(job).to_owned()));
            let mut cron = CronJob::new(view, object, jobs, &mut recorder);
            cron.sync(backoff.as_ref());
            if backoff.is_some_and(|backoff| backoff.until <= view.now) && !cron.has_created {
                backoffs.clear(meta::uid(object));
            }
            Step {
                actions: cron.actions,
                wake: cron.wake,
            }
        })
    }

    fn refused(&mut self, action: &Action, message: &str, now: Timestamp) -> Option<Timestamp> {
        self.backoffs.note(action, message, now);
        Some(now)
    }
}

/// One CronJob in one step.
struct CronJob<'a, 's> {
    view: &'s View<'a>,
    object: &'s Value,
    recorder: &'s mut Recorder<'a>,
    jobs: Vec<&'s Value>,
    active: Vec<Value>,
    last: Option<Timestamp>,
    last_success: Option<Timestamp>,
    has_created: bool,
    actions: Vec<Action>,
    wake: Option<Timestamp>,
}

impl<'a, 's> CronJob<'a, 's> {
    fn new(
        view: &'s View<'a>,
        object: &'s Value,
        jobs: Vec<&'s Value>,
        recorder: &'s mut Recorder<'a>,
    ) -> Self {
        let status = &object["status"];
        let active = status["active"].as_array();
        Self {
            view,
            object,
            recorder,
            jobs,
            active: active.cloned().unwrap_or_default(),
            last: fields::instant(&status["lastScheduleTime"]),
            last_success: fields::instant(&status["lastSuccessfulTime"]),
            has_created: false,
            actions: Vec::new(),
            wake: None,
        }
    }

    fn sync(&mut self, backoff: Option<&Backoff>) {
        if let Some(backoff) = backoff.filter(|backoff| backoff.untold) {
            let message = format!("Error creating job: {}", backoff.message);
            let event = self.recorder.warning(self.object, "FailedCreate", &message);
            self.actions.push(event);
        }
        self.follow_jobs();
        if !meta::is_deleting(self.object) {
            self.clean_up();
            self.fire(backoff);
        }
        let time = |at: Option<Timestamp>| json!(at.map(meta::time));
        let status = Fields::default()
            .list("active", self.active.clone())
            .value("lastScheduleTime", time(self.last))
            .value("lastSuccessfulTime", time(self.last_success));
        let change = fields::patch_status(CRON_JOBS, self.object, status.finish());
        self.actions.extend(change);
    }

    /// Brings the list of active Jobs up to date with the Jobs that are there.
    fn follow_jobs(&mut self) {
        let (mut active, mut strangers) = (Vec::new(), Vec::new());
        for entry in std::mem::take(&mut self.active) {
            let job = self.jobs.iter().find(|job| entry["uid"] == meta::uid(job));
            let name = entry["name"].as_str().unwrap_or_default();
            let event = match job.map(|job| end_of(job)) {
                Some(None) => {
                    active.push(entry);
                    continue;
                }
                Some(Some(end)) => {
                    let message = format!("Saw completed job: {name}, condition: {end}");
                    self.recorder
                        .normal(self.object, "SawCompletedJob", &message)
                }
                None => {
                    let message = format!("Active job went missing: {name}");
                    self.recorder.normal(self.object, "MissingJob", &message)
                }
            };
            self.actions.push(event);
        }
        for job in &self.jobs {
            let is_listed = active.iter().any(|entry| entry["uid"] == meta::uid(job));
            if !is_listed && end_of(job).is_none() && !meta::is_deleting(job) {
                match is_ours(job, self.object) {
                    true => active.push(reference(job)),
                    false => strangers.push(meta::name(job).to_owned()),
                }
            }
            // A Job that is there was fired, also if we were interrupted before we wrote it down.
            let due = meta::annotation(job, SCHEDULED).and_then(meta::parse_time);
            self.last = self.last.max(due.filter(|_| is_ours(job, self.object)));
            if end_of(job) == Some("Complete") {
                let end = fields::instant(&job["status"]["completionTime"]);
                self.last_success = self.last_success.max(end);
            }
        }
        self.active = active;
        for name in strangers {
            let message = format!("Saw a job that the controller did not create or forgot: {name}");
            self.tell_once("UnexpectedJob", &message, Timestamp::UNIX_EPOCH);
        }
    }

    /// Starts the Job that is due, if any, and says when the next one is.
    fn fire(&mut self, backoff: Option<&Backoff>) {
        let spec = &self.object["spec"];
        if spec["suspend"] == true {
            return;
        }
        let (text, zone) = (
            spec["schedule"].as_str().unwrap_or_default(),
            spec["timeZone"].as_str(),
        );
        let schedule = match Schedule::parse(text, zone) {
            Ok(schedule) => schedule,
            Err(error) => {
                let message = format!("unparseable schedule: {text:?} : {error}");
                self.tell_once("UnparseableSchedule", &message, Timestamp::UNIX_EPOCH);
                return;
            }
        };
        let now = self.view.now;
        let mut since = self.last.unwrap_or_else(|| fields::created(self.object));
        self.wake = schedule.next(since, now);
        let deadline = spec["startingDeadlineSeconds"].as_i64();
        if let Some(deadline) = deadline {
            since = since.max(fields::after(now, -deadline));
        }
        let due = schedule.due(since, now);
        let Some(time) = due.last else {
            return;
        };
        if due.missed > MISSED_MAX {
            let message = "too many missed start times. Set or decrease \
                           .spec.startingDeadlineSeconds or check clock skew";
            self.tell_once("TooManyMissedTimes", message, time);
        }
        if let Some(backoff) = backoff.filter(|backoff| backoff.until > now) {
            self.wake = fields::sooner(self.wake, Some(backoff.until));
            return;
        }
        self.start(time);
    }

    fn start(&mut self, time: Timestamp) {
        let policy = self.object["spec"]["concurrencyPolicy"].as_str();
        if policy == Some("Forbid") && !self.active.is_empty() {
            let message = "Not starting job because prior execution is running and \
                           concurrency policy is Forbid";
            let (how, reason) = (Severity::Normal, "JobAlreadyActive");
            let event = self
                .recorder
                .once_since(time, self.object, how, reason, message);
            self.actions.extend(event);
            return;
        }
        let name = format!("{}-{}", meta::name(self.object), time.as_second() / 60);
        if self
            .view
            .get(JOBS, meta::namespace(self.object), &name)
            .is_some()
        {
            return;
        }
        if policy == Some("Replace") {
            for entry in std::mem::take(&mut self.active) {
                let job = self.jobs.iter().find(|job| entry["uid"] == meta::uid(job));
                if let Some(job) = job.copied() {
                    self.delete(job);
                }
            }
        }
        let message = format!("Created job {name}");
        self.actions
            .push(Action::Create(JOBS, self.new_job(name, time)));
        let event = self
            .recorder
            .normal(self.object, "SuccessfulCreate", &message);
        self.actions.push(event);
        self.has_created = true;
    }

    fn new_job(&self, name: String, time: Timestamp) -> Value {
        let owner = Owner {
            api_version: "batch/v1",
            kind: "CronJob",
            object: self.object,
        };
        let template = &self.object["spec"]["jobTemplate"];
        let mut job = pods::from_template(template, &owner, name);
        job["apiVersion"] = json!("batch/v1");
        job["kind"] = json!("Job");
        pods::annotate(&mut job, SCHEDULED, &meta::time(time));
        job
    }

    /// Deletes finished Jobs beyond the history that is to be kept.
    fn clean_up(&mut self) {
        for (end, field, absent) in [
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ] {
            let kept = fields::count(&self.object["spec"][field], absent);
            let mut ended = self.jobs.clone();
            ended.retain(|job| end_of(job) == Some(end) && !meta::is_deleting(job));
            let surplus = usize::try_from(ended.len() as i64 - kept).unwrap_or(0);
            for job in ended.into_iter().take(surplus) {
                self.delete(job);
            }
        }
    }

    fn delete(&mut self, job: &Value) {
        self.actions
            .push(fields::delete(JOBS, job, Some("Background")));
        let message = format!("Deleted job {}", meta::name(job));
        let event = self
            .recorder
            .normal(self.object, "SuccessfulDelete", &message);
        self.actions.push(event);
    }

    fn tell_once(&mut self, reason: &str, message: &str, since: Timestamp) {
        let how = Severity::Warning;
        let event = self
            .recorder
            .once_since(since, self.object, how, reason, message);
        self.actions.extend(event);
    }
}

/// `Complete` or `Failed` for a Job that has ended.
fn end_of(job: &Value) -> Option<&'static str> {
    let mut ends = ["Complete", "Failed"].into_iter();
    ends.find(|end| fields::is_true(job, end))
}

/// True for a Job that the schedule has started: `kubectl create job --from` makes others.
fn is_ours(job: &Value, cron: &Value) -> bool {
    let rest = meta::name(job).strip_prefix(meta::name(cron));
    let minutes = rest.and_then(|rest| rest.strip_prefix('-'));
    minutes.is_some_and(|minutes| minutes.parse::<u64>().is_ok())
}

/// An entry of the list of active Jobs.
fn reference(job: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": meta::name(job),
        "namespace": meta::namespace(job),
        "uid": meta::uid(job),
        "resourceVersion": meta::text(job, "resourceVersion"),
    })
}
