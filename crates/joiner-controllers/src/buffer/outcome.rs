//! What a plan made of headroom, told on the buffers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_api::labels::{BUFFER_NAME, BUFFER_NAMESPACE};
use joiner_model::Name;
use joiner_state::live::{Conditions as _, LiveBuffer, VirtualPod};
use serde_json::{Value, json};

use super::{PROVISIONING, READY_FOR_PROVISIONING, condition_set, conditions, finished, write};
use crate::context::{Ctx, Failure};

/// Where a plan put a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// On a node that is there, or on its way.
    Existing,
    /// On a node to buy.
    New,
    /// Nowhere.
    Nowhere,
}

/// What a plan made of the pods of one buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// On nodes that are there, or on their way.
    pub existing: usize,
    /// On nodes to buy.
    pub new: usize,
    /// Nowhere.
    pub nowhere: usize,
}

impl Outcome {
    fn total(self) -> usize {
        self.existing + self.new + self.nowhere
    }
}

/// What a plan made of headroom, by buffer (`namespace/name`). `placed` is asked with the name of
/// each pod, `namespace/name`.
pub fn outcomes(pods: &[VirtualPod], placed: impl Fn(&str) -> Placed) -> BTreeMap<Name, Outcome> {
    let mut all: BTreeMap<Name, Outcome> = BTreeMap::new();
    for pod in pods {
        let meta = &pod.object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let annotations = &meta["annotations"];
        let buffer = format!(
            "{}/{}",
            text(&annotations[BUFFER_NAMESPACE]),
            text(&annotations[BUFFER_NAME])
        );
        let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
        let own = all.entry(buffer.into()).or_default();
        match placed(&name) {
            Placed::Existing => own.existing += 1,
            Placed::New => own.new += 1,
            Placed::Nowhere => own.nowhere += 1,
        }
    }
    all
}

/// The conditions of a buffer after a plan; nothing when that is no news, or when the buffer has
/// stopped to ask for anything since.
#[must_use]
pub(super) fn provisioning(buffer: &LiveBuffer, outcome: Outcome, now: Timestamp) -> Option<Value> {
    let total = outcome.total();
    if total == 0 || !conditions(buffer).is_true(READY_FOR_PROVISIONING) {
        return None;
    }
    let mut set = condition_set(buffer, now);
    if outcome.existing == total {
        let message = format!("all {total} virtual pods fit on capacity that is there");
        set.set_true_for(PROVISIONING, "FitsExistingCapacity", &message);
    } else {
        let Outcome { new, nowhere, .. } = outcome;
        let message =
            format!("{new}/{total} virtual pods need new capacity, {nowhere} fit nowhere");
        set.set_false(PROVISIONING, "RequiresNewCapacity", &message);
    }
    let finished = finished(set, buffer);
    finished
        .changed
        .then(|| json!({"conditions": finished.to_value()}))
}

/// Tells on each buffer what a plan made of its pods. A buffer that somebody else writes at the
/// same time is told after the next plan.
///
/// # Errors
/// When the API server refuses.
pub async fn report(ctx: &Ctx, outcomes: &BTreeMap<Name, Outcome>) -> Result<(), Failure> {
    let now = ctx.world.snapshot();
    for (name, outcome) in outcomes {
        let Some(buffer) = now.buffer(name) else {
            continue;
        };
        if let Some(status) = provisioning(buffer, *outcome, ctx.clock.now()) {
            write(ctx, buffer, status).await?;
        }
    }
    Ok(())
}
