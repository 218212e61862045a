//! Messages of the interruption queue: what EventBridge tells about machines.
//!
//! Every message is deleted once it was handled; one that says nothing to us, or that cannot be read, is handled by
//! deleting it.

use jiff::Timestamp;
use serde::Deserialize;

/// Messages taken at once.
pub const MESSAGES_MAX: i32 = 10;
/// For how long a message that was taken is hidden from others, in seconds.
pub const HIDDEN_SECONDS: i32 = 20;
/// For how long the queue waits for a message before it answers, in seconds.
pub const WAIT_SECONDS: i32 = 20;
/// Version of the envelope.
const VERSION: &str = "0";

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageKind {
    /// Spot capacity is taken back in two minutes.
    SpotInterrupted,
    /// Spot capacity may be taken back.
    RebalanceRecommendation,
    /// The machine stops or has stopped.
    InstanceStopped,
    /// The machine is being ended or is gone.
    InstanceTerminated,
    /// What is below the machine will be serviced.
    ScheduledChange,
    /// A reservation is taken back.
    CapacityReservationInterrupted,
    /// Nothing that concerns us.
    NoOp,
}

impl MessageKind {
    /// As metrics say it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SpotInterrupted => "spot_interrupted",
            Self::RebalanceRecommendation => "rebalance_recommendation",
            Self::InstanceStopped => "instance_stopped",
            Self::InstanceTerminated => "instance_terminated",
            Self::ScheduledChange => "scheduled_change",
            Self::CapacityReservationInterrupted => "capacity_reservation_interrupted",
            Self::NoOp => "no_op",
        }
    }

    /// What is to be done for the claims of the machines.
    #[must_use]
    pub const fn action(self) -> MessageAction {
        match self {
            Self::RebalanceRecommendation => MessageAction::Tell,
            Self::NoOp => MessageAction::Nothing,
            Self::SpotInterrupted
            | Self::InstanceStopped
            | Self::InstanceTerminated
            | Self::ScheduledChange
            | Self::CapacityReservationInterrupted => MessageAction::Drain,
        }
    }

    /// Type and reason of the event that claim and node get.
    #[must_use]
    pub const fn event(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::SpotInterrupted => ("Warning", "SpotInterrupted"),
            Self::RebalanceRecommendation => ("Normal", "SpotRebalanceRecommendation"),
            Self::InstanceStopped => ("Warning", "InstanceStopping"),
            Self::InstanceTerminated => ("Warning", "InstanceTerminating"),
            Self::ScheduledChange => ("Warning", "InstanceUnhealthy"),
            Self::CapacityReservationInterrupted => {
                ("Warning", "CapacityReservationInstanceInterrupted")
            }
            Self::NoOp => return None,
        })
    }

    /// What is remembered as sold out besides.
    #[must_use]
    pub const fn mark(self) -> Option<MessageMark> {
        match self {
            Self::SpotInterrupted => Some(MessageMark::Offering),
            Self::CapacityReservationInterrupted => Some(MessageMark::Reservation),
            Self::RebalanceRecommendation
            | Self::InstanceStopped
            | Self::InstanceTerminated
            | Self::ScheduledChange
            | Self::NoOp => None,
        }
    }
}

/// What is to be done for the claims that a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageAction {
    /// Delete them; a replacement is ordered at the same time.
    Drain,
    /// Tell them by an event.
    Tell,
    /// Nothing.
    Nothing,
}

/// What a message says of capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageMark {
    /// The machine's type is sold out in its zone, as spot.
    Offering,
    /// Nothing is left of the machine's reservation.
    Reservation,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it is about.
    pub kind: MessageKind,
    /// Ids of the machines.
    pub instance_ids: Vec<String>,
    /// When it was sent, if it says so.
    pub time: Option<Timestamp>,
}

/// The text is no message of EventBridge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message of EventBridge, {0}")]
pub struct Unreadable(pub String);

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[derive(Default)]
struct Envelope {
    version: String,
    source: String,
    detail_type: String,
    time: Option<String>,
    detail: Detail,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Detail {
    #[serde(rename = "instance-id")]
    instance_id: String,
    state: String,
    service: String,
    #[serde(rename = "eventTypeCategory")]
    category: String,
    #[serde(rename = "affectedEntities")]
    affected: Vec<Affected>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Affected {
    #[serde(rename = "entityValue")]
    value: String,
}

impl Message {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// It is no JSON, or not of EventBridge's form.
    pub fn parse(body: &str) -> Result<Self, Unreadable> {
        let envelope: Envelope =
            serde_json::from_str(body).map_err(|error| Unreadable(error.to_string()))?;
        let kind = kind(&envelope);
        let detail = envelope.detail;
        let ids: Vec<String> = match kind {
            MessageKind::NoOp => Vec::new(),
            MessageKind::ScheduledChange => detail
                .affected
                .into_iter()
                .map(|entity| entity.value)
                .collect(),
            MessageKind::SpotInterrupted
            | MessageKind::RebalanceRecommendation
            | MessageKind::InstanceStopped
            | MessageKind::InstanceTerminated
            | MessageKind::CapacityReservationInterrupted => vec![detail.instance_id],
        };
        Ok(Self {
            kind,
            instance_ids: ids.into_iter().filter(|id| !id.is_empty()).collect(),
            time: envelope.time.and_then(|time| time.parse().ok()),
        })
    }
}

fn kind(envelope: &Envelope) -> MessageKind {
    if envelope.version != VERSION {
        return MessageKind::NoOp;
    }
    let detail = &envelope.detail;
    let is_change = detail.service == "EC2" && detail.category == "scheduledChange";
    match (envelope.source.as_str(), envelope.detail_type.as_str()) {
        ("aws.ec2", "EC2 Spot Instance Interruption Warning") => MessageKind::SpotInterrupted,
        ("aws.ec2", "EC2 Instance Rebalance Recommendation") => {
            MessageKind::RebalanceRecommendation
        }
        ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning") => {
            MessageKind::CapacityReservationInterrupted
        }
        ("aws.ec2", "EC2 Instance State-change Notification") => state_change(&detail.state),
        ("aws.health", "AWS Health Event") if is_change => MessageKind::ScheduledChange,
        _ => MessageKind::NoOp,
    }
}

/// Upstream takes states in any case and sorts them by the lower one, so that `STOPPED` counts as ended.
fn state_change(state: &str) -> MessageKind {
    match (state.to_lowercase().as_str(), state) {
        (_, "stopping" | "stopped") => MessageKind::InstanceStopped,
        ("stopping" | "stopped" | "shutting-down" | "terminated", _) => {
            MessageKind::InstanceTerminated
        }
        _ => MessageKind::NoOp,
    }
}
