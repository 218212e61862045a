//! One decision: from the HPA, the world and what is remembered to a size, a status and events.

use jiff::Timestamp;

use super::evaluate::{Evaluation, Failure, Proposal, failed};
use super::memory::{Memory, note};
use super::normalize::{Wish, longest_period_secs};
use super::spec::{Hpa, Status};
use super::world::{Scale, Settings, World};
use crate::condition::{Event, Said, Truth};
use crate::selector::Selector;

const ABLE: &str = "AbleToScale";
const ACTIVE: &str = "ScalingActive";
/// The condition that tells a size of zero by metrics from one by hand.
pub const SCALED_TO_ZERO: &str = "ScaledToZero";

/// What a decision came to. What becomes of status and memory depends on whether the new size could be
/// written: [`Decision::conclude`] tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The size to write to the scale, when it is another one.
    pub scale_to: Option<i32>,
    /// What each metric asked for, in order; empty when none was looked at.
    pub proposals: Vec<Result<Proposal, Failure>>,
    /// The largest of these, before older ones and limits are looked at.
    pub recommendation: Option<i32>,
    /// Why the size changes, in the words of the event.
    pub reason: String,
    /// What went wrong, although the decision may stand.
    pub error: Option<String>,
    current: Option<i32>,
    status: Status,
    memory: Memory,
    events: Vec<Event>,
}

/// How writing the new size went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// There was nothing to write.
    Nothing,
    /// It was written.
    Done,
    /// It was not.
    Failed(String),
}

/// What to store and to say after a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// The new status.
    pub status: Status,
    /// What to remember.
    pub memory: Memory,
    /// Events to emit on the HPA, in order.
    pub events: Vec<Event>,
}

/// Whether the metrics of an HPA are looked at, now that its scale is known. Where they are not, there is
/// no need to ask for them.
#[must_use]
pub fn wants_readings(hpa: &Hpa, scale: &Scale, settings: &Settings) -> bool {
    branch(hpa, scale.replicas, settings) == Branch::Metrics
}

/// What decides about the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    /// It is zero and stays so.
    Disabled,
    /// It is above the most there may be.
    Above,
    /// It is below the fewest there may be.
    Below,
    /// Metrics do.
    Metrics,
}

fn branch(hpa: &Hpa, current: i32, settings: &Settings) -> Branch {
    let spec = &hpa.spec;
    if current == 0 {
        let by_metrics =
            settings.gates.scale_to_zero && hpa.status.conditions.is_true(SCALED_TO_ZERO);
        let can_tell = spec.min_replicas >= 1 || spec.looks_outside();
        if by_metrics && can_tell {
            Branch::Metrics
        } else {
            Branch::Disabled
        }
    } else if current > spec.max_replicas {
        Branch::Above
    } else if current < spec.min_replicas {
        Branch::Below
    } else {
        Branch::Metrics
    }
}

/// Decides about the size of the target of `hpa`.
#[must_use]
pub fn decide(hpa: &Hpa, world: &World<'_>, memory: &Memory, now: Timestamp) -> Decision {
    let decision = Decision {
        scale_to: None,
        proposals: Vec::new(),
        recommendation: None,
        reason: String::new(),
        error: None,
        current: None,
        status: hpa.status.clone(),
        memory: memory.clone(),
        events: Vec::new(),
    };
    let mut pass = Pass {
        hpa,
        world,
        now,
        decision,
    };
    pass.run();
    pass.decision
}

/// A decision in the making.
struct Pass<'a> {
    hpa: &'a Hpa,
    world: &'a World<'a>,
    now: Timestamp,
    decision: Decision,
}

impl Pass<'_> {
    fn run(&mut self) {
        let scale = match &self.world.scale {
            Ok(scale) => scale.clone(),
            Err(why) => return self.no_scale(why),
        };
        let current = scale.replicas;
        self.say(
            ABLE,
            Truth::True,
            "SucceededGetScale",
            format!("the target has {current} replicas"),
        );
        self.decision.memory.begin(current, self.now);
        if !self.world.settings.gates.scale_to_zero {
            self.decision.status.conditions.remove(SCALED_TO_ZERO);
        }
        let spec = &self.hpa.spec;
        let size = match branch(self.hpa, current, &self.world.settings) {
            Branch::Disabled => {
                self.say(
                    ACTIVE,
                    Truth::False,
                    "ScalingDisabled",
                    "the target has zero replicas, which turns scaling off",
                );
                0
            }
            Branch::Above => {
                "Current number of replicas above Spec.MaxReplicas"
                    .clone_into(&mut self.decision.reason);
                spec.max_replicas
            }
            Branch::Below => {
                "Current number of replicas below Spec.MinReplicas"
                    .clone_into(&mut self.decision.reason);
                spec.min_replicas
            }
            Branch::Metrics => return self.by_metrics(&scale),
        };
        self.decision.status.current_metrics.clear();
        self.settle(current, size);
    }

    fn no_scale(&mut self, why: &str) {
        let target = &self.hpa.spec.target;
        let message = format!(
            "cannot read the scale of {} {}: {why}",
            target.kind, target.name
        );
        self.decision
            .events
            .push(Event::warning("FailedGetScale", message.clone()));
        self.say(ABLE, Truth::False, "FailedGetScale", message.clone());
        self.decision.error = Some(message);
    }

    fn say(
        &mut self,
        kind: &'static str,
        status: Truth,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let said = Said::new(kind, status, reason, message);
        self.decision.status.conditions.set(said, self.now);
    }

    fn by_metrics(&mut self, scale: &Scale) {
        let current = scale.replicas;
        if let Err(message) = self.check_selector(scale) {
            self.decision.status.current_metrics.clear();
            return self.no_metrics(current, message);
        }
        let evaluation = Evaluation::new(self.hpa, self.world, scale, self.now);
        let metrics = self.hpa.spec.metrics.iter().enumerate();
        let proposals = metrics.map(|(ix, m)| evaluation.proposal(m, self.world.readings.get(ix)));
        let proposals: Vec<Result<Proposal, Failure>> = proposals.collect();
        let status = |proposal: &Result<Proposal, Failure>| match proposal {
            Ok(proposal) => proposal.status.clone(),
            Err(_) => failed(),
        };
        self.decision.status.current_metrics = proposals.iter().map(status).collect();
        for failure in proposals.iter().filter_map(|p| p.as_ref().err()) {
            let event = Event::warning(failure.reason, failure.message.clone());
            self.decision.events.push(event);
        }
        let (mut wanted, mut winner) = (0, String::new());
        for proposal in proposals.iter().flatten() {
            if wanted == 0 || proposal.replicas > wanted {
                wanted = proposal.replicas;
                winner.clone_from(&proposal.metric);
            }
        }
        let failures: Vec<&Failure> = proposals.iter().filter_map(|p| p.as_ref().err()).collect();
        let first = failures.first().map(|failure| {
            let (n, of) = (failures.len(), proposals.len());
            let message = format!("{n} of {of} metrics failed, first {}", failure.message);
            (failure.reason, failure.message.clone(), message)
        });
        let all = failures.len() >= proposals.len();
        self.decision.proposals = proposals;
        match first {
            Some((reason, why, message)) if all || wanted < current => {
                self.say(ACTIVE, Truth::False, reason, why);
                return self.no_metrics(current, message);
            }
            Some((_, _, message)) => self.decision.error = Some(message),
            None => {}
        }
        let message = format!("a size could be computed from {winner}");
        self.say(ACTIVE, Truth::True, "ValidMetricFound", message);
        self.normalize(current, wanted, &winner);
    }

    /// Nothing usable came out of the metrics: the size stays what it is.
    fn no_metrics(&mut self, current: i32, message: String) {
        self.decision.status.current_replicas = current;
        let event = Event::warning("FailedComputeMetricsReplicas", message.clone());
        self.decision.events.push(event);
        self.decision.error = Some(message);
    }

    fn check_selector(&mut self, scale: &Scale) -> Result<(), String> {
        let (reason, event, message) = if scale.selector.is_empty() {
            let message = "the scale of the target has no selector of its pods";
            ("InvalidSelector", "SelectorRequired", message.to_owned())
        } else if let Err(error) = Selector::parse(&scale.selector) {
            ("InvalidSelector", "InvalidSelector", error.to_string())
        } else if !self.world.rivals.is_empty() {
            let rivals = self.world.rivals.join(", ");
            let message = format!(
                "pods of {:?} are also those of other autoscalers: {rivals}",
                scale.selector
            );
            ("AmbiguousSelector", "AmbiguousSelector", message)
        } else {
            return Ok(());
        };
        self.say(ACTIVE, Truth::False, reason, message.clone());
        self.decision
            .events
            .push(Event::warning(event, message.clone()));
        Err(message)
    }

    fn normalize(&mut self, current: i32, wanted: i32, winner: &str) {
        self.decision.recommendation = Some(wanted);
        let spec = &self.hpa.spec;
        let wish = Wish {
            current,
            wanted,
            min: spec.min_replicas,
            max: spec.max_replicas,
            behavior: spec.behavior.as_ref(),
            down_window: self.world.settings.downscale_stabilization,
        };
        if wanted > current {
            self.decision.reason = format!("{winner} above target");
        } else if wanted < current {
            "All metrics below target".clone_into(&mut self.decision.reason);
        }
        let normalized = wish.normalize(&mut self.decision.memory, self.now);
        let conditions = &mut self.decision.status.conditions;
        conditions.set(normalized.able, self.now);
        conditions.set(normalized.limited, self.now);
        let size = if current == 0 {
            // Rules do not look at the fewest there may be on the way up from zero.
            normalized.replicas.max(spec.min_replicas)
        } else {
            normalized.replicas
        };
        self.settle(current, size);
    }

    fn settle(&mut self, current: i32, size: i32) {
        self.decision.current = Some(current);
        self.decision.status.current_replicas = current;
        if size == current {
            self.decision.status.desired_replicas = size;
        } else {
            self.decision.scale_to = Some(size);
        }
    }
}

impl Decision {
    /// The status, what to remember and events, now that the new size was written or not.
    #[must_use]
    pub fn conclude(
        mut self,
        hpa: &Hpa,
        written: &Written,
        settings: &Settings,
        now: Timestamp,
    ) -> Conclusion {
        if let (Some(size), Some(current)) = (self.scale_to, self.current) {
            match written {
                Written::Failed(why) => self.not_written(size, why, now),
                Written::Done | Written::Nothing => {
                    self.was_written(hpa, (current, size), settings, now);
                }
            }
        }
        Conclusion {
            status: self.status,
            memory: self.memory,
            events: self.events,
        }
    }

    fn not_written(&mut self, size: i32, why: &str, now: Timestamp) {
        let reason = &self.reason;
        let message = format!("New size: {size}; reason: {reason}; error: {why}");
        self.events.push(Event::warning("FailedRescale", message));
        let message = format!("cannot write the size {size} to the scale of the target: {why}");
        let said = Said::new(ABLE, Truth::False, "FailedUpdateScale", message);
        self.status.conditions.set(said, now);
    }

    fn was_written(
        &mut self,
        hpa: &Hpa,
        (current, size): (i32, i32),
        settings: &Settings,
        now: Timestamp,
    ) {
        let message = format!("the target was told to have {size} replicas");
        let said = Said::new(ABLE, Truth::True, "SucceededRescale", message);
        self.status.conditions.set(said, now);
        let message = format!("New size: {size}; reason: {}", self.reason);
        self.events
            .push(Event::normal("SuccessfulRescale", message));
        if let Some(behavior) = &hpa.spec.behavior {
            if size > current {
                let longest = longest_period_secs(&behavior.up);
                note(
                    &mut self.memory.ups,
                    size.wrapping_sub(current),
                    longest,
                    now,
                );
            } else {
                let longest = longest_period_secs(&behavior.down);
                note(
                    &mut self.memory.downs,
                    current.wrapping_sub(size),
                    longest,
                    now,
                );
            }
        }
        if settings.gates.scale_to_zero {
            let spec = &hpa.spec;
            let to_zero = size == 0 && current > 0 && spec.min_replicas == 0;
            let said = if to_zero && spec.looks_outside() {
                let message = "metrics asked for no replicas; they can ask for some again";
                Said::new(SCALED_TO_ZERO, Truth::True, "ScaledToZero", message)
            } else {
                let message = "the target has replicas, or none because it was told so";
                Said::new(SCALED_TO_ZERO, Truth::False, "NotScaledToZero", message)
            };
            self.status.conditions.set(said, now);
        }
        self.status.desired_replicas = size;
        self.status.last_scale_time = Some(now);
    }
}
