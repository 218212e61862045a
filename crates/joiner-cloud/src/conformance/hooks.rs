//! Checks of registration hooks: what holds a Node back has a name, and what was ready stays ready.

use std::collections::BTreeSet;
use std::time::Duration;

use joiner_api::names::{key_error, label_value_error};
use joiner_api::types::NodeClaim;
use serde_json::{Value, json};

use super::{Outcome, Subject, ensure, failed, launch, order};
use crate::{Instance, Order, Registration};

/// As long as a claim waits for its Node.
const WAIT_MAX: Duration = Duration::from_secs(900);
/// How long a hook is left alone that does not say when to ask again.
const PAUSE: Duration = Duration::from_secs(5);
/// However soon a hook wants to be asked again, it is not asked more often than that.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Hooks come to an end, or say who they are each time; a crash does not undo them. A cloud that has
/// none holds nothing back.
pub(super) async fn registration(subject: &dyn Subject) -> Outcome {
    let order = order(subject, "000000000015").await?;
    let instance = launch(subject, &order).await?;
    let claim = claim(&order, &instance)?;
    let mut passed = Duration::ZERO;
    let ready = loop {
        let has_hooks = subject.cloud().has_registration_hooks();
        let answer = subject.cloud().registration(&claim).await;
        sound(&answer)?;
        ensure(has_hooks || answer == Registration::default(), || {
            format!("without hooks the answer is {answer:?}")
        })?;
        if answer.pending.is_empty() {
            break answer;
        }
        // A hook may wait for a Node, which nobody promised here.
        if passed >= WAIT_MAX {
            return Ok(());
        }
        let asked = answer.pending.iter().filter_map(|own| own.again).min();
        let pause = asked.unwrap_or(PAUSE).max(PAUSE_MIN);
        subject.pass(pause).await;
        passed += pause;
    };
    subject.crash().await;
    let again = subject.cloud().registration(&claim).await;
    ensure(again == ready, || {
        format!("{ready:?} became {again:?} by a crash")
    })
}

/// An answer that can be shown and written.
fn sound(answer: &Registration) -> Outcome {
    let mut names = BTreeSet::new();
    for own in &answer.pending {
        ensure(!own.hook.is_empty(), || "a hook has no name".to_owned())?;
        ensure(names.insert(&own.hook), || {
            format!("{} is pending twice", own.hook)
        })?;
        ensure(own.error.as_deref() != Some(""), || {
            format!("{} does not say what went wrong", own.hook)
        })?;
    }
    for (key, value) in &answer.labels {
        let odd = key_error(key).or_else(|| label_value_error(value));
        ensure(odd.is_none(), || format!("{key}={value} is not a label"))?;
    }
    Ok(())
}

/// The claim of an order that got this machine.
fn claim(order: &Order, instance: &Instance) -> Result<NodeClaim, String> {
    let class = order.class.as_ref().ok_or("the order has no class")?;
    let labels = order.labels.iter().chain(&instance.labels);
    let labels: serde_json::Map<String, Value> = labels
        .map(|(key, value)| (key.to_string(), json!(&**value)))
        .collect();
    let claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": &*order.claim, "uid": &*order.claim_uid, "labels": labels},
        "spec": {
            "requirements": [],
            "nodeClassRef": {
                "group": &*class.group, "kind": &*class.kind, "name": &*class.name,
            },
        },
        "status": {"providerID": &*instance.id.0},
    });
    serde_json::from_value(claim).map_err(|error| failed("the claim", error))
}
