//! Whether the target has replicas at all: the step from zero and to it, which the HPA does not make.

use jiff::Timestamp;

use super::pause::{FORCE_ACTIVATION, Pause, is_forced};
use super::poll::Poll;
use super::spec::ScaledObject;
use crate::condition::{Event, Said, Truth};
use crate::durations::after;

const READY: &str = "Ready";
const ACTIVE: &str = "Active";

/// What to do about the size of the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// The size to write, when it is another one.
    pub scale_to: Option<i32>,
    /// What to say of the object.
    pub conditions: Vec<Said>,
    /// Whether `status.lastActiveTime` becomes now, once the size is written.
    pub was_active: bool,
    crossing: Option<Crossing>,
}

/// Which way the line between none and some is crossed, and why.
#[derive(Clone, Debug, PartialEq)]
enum Crossing {
    FromZero { from: i32, because: String },
    ToZero { from: i32 },
}

/// What else a decision rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// How many replicas are asked for.
    pub current: i32,
    /// When a trigger was last active, if ever.
    pub last_active: Option<Timestamp>,
}

/// Decides what to do after a look at the triggers.
#[must_use]
pub fn execute(
    object: &ScaledObject,
    pause: &Pause,
    poll: &Poll,
    target: Target,
    now: Timestamp,
) -> Execution {
    let forced = is_forced(&object.annotations);
    let mut execution = Execution {
        scale_to: None,
        conditions: Vec::new(),
        was_active: false,
        crossing: None,
    };
    if pause.whole {
        execution.conditions.push(pause.condition());
    } else if poll.is_active || forced {
        execution.active(object, pause, poll, target.current);
    } else {
        execution.quiet(object, pause, poll, target, now);
    }
    execution
}

/// The conditions of an object whose target cannot be read.
#[must_use]
pub fn unreadable(why: &str) -> Said {
    let message = format!("cannot read how many replicas the target has: {why}");
    Said::new(READY, Truth::False, "ErrorGettingCurrentReplicas", message)
}

impl Execution {
    fn say(
        &mut self,
        kind: &'static str,
        status: Truth,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.conditions
            .push(Said::new(kind, status, reason, message));
    }

    fn active(&mut self, object: &ScaledObject, pause: &Pause, poll: &Poll, current: i32) {
        let is_idle = object.idle_replicas.is_some() && current < object.min();
        let has_failed = !poll.errors.is_empty();
        if is_idle || current == 0 {
            if !pause.scale_out {
                self.scale_to = Some(object.min().max(1));
                self.crossing = Some(Crossing::FromZero {
                    from: current,
                    because: because(object, poll),
                });
                self.was_active = true;
            }
        } else if has_failed {
            let message = "some triggers cannot be asked; the others are active";
            self.say(READY, Truth::Unknown, "PartialTriggerError", message);
        } else {
            self.was_active = true;
        }
        if !has_failed {
            self.ready();
        }
        self.say(ACTIVE, Truth::True, "ScalerActive", "a trigger is active");
    }

    fn ready(&mut self) {
        let message = "the object is set up for scaling";
        self.say(READY, Truth::True, "ScaledObjectReady", message);
    }

    fn quiet(
        &mut self,
        object: &ScaledObject,
        pause: &Pause,
        poll: &Poll,
        target: Target,
        now: Timestamp,
    ) {
        let (min, current) = (object.min(), target.current);
        let has_failed = !poll.errors.is_empty();
        if has_failed
            && object
                .fallback
                .is_some_and(|fallback| fallback.replicas != 0)
        {
            // The HPA follows what stands in for the metric.
            return self.not_active();
        }
        if has_failed && object.fallback.is_none() {
            let message = format!("triggers cannot be asked: {}", poll.errors.join("; "));
            self.say(READY, Truth::False, "TriggerError", message);
            return self.not_active();
        }
        if !has_failed {
            self.ready();
        }
        let above_idle = object.idle_replicas.is_some_and(|idle| current > idle);
        if above_idle || (current > 0 && min == 0) {
            if !is_cool(object, target.last_active, now) {
                let message = "no trigger is active, but one was lately";
                return self.say(ACTIVE, Truth::False, "ScalerCooldown", message);
            }
            if !pause.scale_in {
                self.scale_to = Some(object.idle_replicas.unwrap_or(min));
                self.crossing = Some(Crossing::ToZero { from: current });
            }
        } else if object.idle_replicas.is_none() && current < min {
            self.scale_to = Some(min);
        }
        self.not_active();
    }

    fn not_active(&mut self) {
        self.say(
            ACTIVE,
            Truth::False,
            "ScalerNotActive",
            "no trigger is active",
        );
    }

    /// What to tell, now that the size was written or not.
    #[must_use]
    pub fn events(&self, written: Result<(), &str>) -> Option<Event> {
        let to = self.scale_to?;
        Some(match (self.crossing.as_ref()?, written) {
            (Crossing::FromZero { from, because }, Ok(())) => Event::normal(
                "KEDAScaleTargetActivated",
                format!("scaled from {from} to {to} replicas, {because}"),
            ),
            (Crossing::FromZero { from, .. }, Err(why)) => Event::warning(
                "KEDAScaleTargetActivationFailed",
                format!("cannot scale from {from} to {to} replicas: {why}"),
            ),
            (Crossing::ToZero { from }, Ok(())) => Event::normal(
                "KEDAScaleTargetDeactivated",
                format!("scaled from {from} to {to} replicas"),
            ),
            (Crossing::ToZero { from }, Err(why)) => Event::warning(
                "KEDAScaleTargetDeactivationFailed",
                format!("cannot scale from {from} to {to} replicas: {why}"),
            ),
        })
    }
}

/// Why a target leaves zero.
fn because(object: &ScaledObject, poll: &Poll) -> String {
    if !poll.is_active && is_forced(&object.annotations) {
        return format!("as the annotation {FORCE_ACTIVATION} says");
    }
    let active = poll.activity.iter().filter(|(_, is_active)| **is_active);
    let names: Vec<&str> = active.map(|(name, _)| name.as_str()).collect();
    format!("triggered by {}", names.join(";"))
}

/// Whether triggers were quiet for long enough.
fn is_cool(object: &ScaledObject, last_active: Option<Timestamp>, now: Timestamp) -> bool {
    match (last_active, object.created) {
        (Some(last), _) => after(last, object.cooldown) < now,
        (None, Some(created)) => after(created, object.initial_cooldown) < now,
        (None, None) => true,
    }
}
