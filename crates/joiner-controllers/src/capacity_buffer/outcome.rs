//! What a plan made of headroom, as the buffers say it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_api::conditions::{PROVISIONING, READY_FOR_PROVISIONING};
use joiner_api::labels::{BUFFER_NAME, BUFFER_NAMESPACE};
use joiner_engine::write::StatusWrite;
use joiner_engine::{Failure, Shared};
use joiner_model::Name;
use joiner_state::live::{Conditions as _, LiveBuffer, VirtualPod};
use serde_json::{Value, json};

use super::{condition_set, conditions, finished, write};

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
pub struct BufferOutcome {
    /// On nodes that are there, or on their way.
    pub existing: usize,
    /// On nodes to buy.
    pub new: usize,
    /// Nowhere.
    pub nowhere: usize,
}

impl BufferOutcome {
    fn total(self) -> usize {
        self.existing + self.new + self.nowhere
    }
}

/// What a plan made of headroom, by buffer (`namespace/name`). `placed` is asked with the name of
/// each pod, `namespace/name`.
pub fn outcomes(
    pods: &[VirtualPod],
    placed: impl Fn(&str) -> Placed,
) -> BTreeMap<Name, BufferOutcome> {
    let mut all: BTreeMap<Name, BufferOutcome> = BTreeMap::new();
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
        let outcome = all.entry(buffer.into()).or_default();
        match placed(&name) {
            Placed::Existing => outcome.existing += 1,
            Placed::New => outcome.new += 1,
            Placed::Nowhere => outcome.nowhere += 1,
        }
    }
    all
}

/// The write of a buffer's conditions after a plan; nothing when that is no news, or when the buffer
/// has stopped to ask for anything since.
#[must_use]
pub(super) fn provisioning(
    buffer: &LiveBuffer,
    outcome: BufferOutcome,
    now: Timestamp,
) -> Option<StatusWrite> {
    let total = outcome.total();
    if total == 0 || !conditions(buffer).is_true(&READY_FOR_PROVISIONING) {
        return None;
    }
    let mut set = condition_set(buffer, now);
    if outcome.existing == total {
        let message = format!("all {total} virtual pods fit on capacity that is there");
        set.set_true_for(PROVISIONING, "FitsExistingCapacity", &message);
    } else {
        let BufferOutcome { new, nowhere, .. } = outcome;
        let message =
            format!("{new}/{total} virtual pods need new capacity, {nowhere} fit nowhere");
        set.set_false(PROVISIONING, "RequiresNewCapacity", &message);
    }
    let finished = finished(set, buffer);
    let changed = finished.changed;
    changed.then(|| StatusWrite::new(&buffer.meta, finished, json!({})))
}

/// Says on each buffer what a plan made of its pods. A buffer that is written by others at the same
/// time says it after the next plan.
///
/// # Errors
/// When the API server refuses.
pub async fn report(
    shared: &Shared,
    outcomes: &BTreeMap<Name, BufferOutcome>,
) -> Result<(), Failure> {
    let now = shared.world.snapshot();
    for (name, outcome) in outcomes {
        let Some(buffer) = now.buffer(name) else {
            continue;
        };
        let Some(status) = provisioning(buffer, *outcome, shared.clock.now()) else {
            continue;
        };
        match write(shared, buffer, &status).await {
            Err(failure) if !failure.is_conflict() => return Err(failure),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
