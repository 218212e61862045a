//! Parts that several kinds share.

use super::build::{Field, int64, integer, list, object, string, time};
use super::keys::{Owner, key_rules};
use super::patterns::{
    DURATION, DURATION_OR_NEVER, NO_SLASH, QUALIFIED_NAME, REASON, REASON_OR_NONE,
};
use crate::types::{Operator, TaintEffect};
use serde_json::json;

/// Longest key: a prefix of 253, a slash, a name of 63, less one.
const KEY_LENGTH_MAX: u64 = 316;

/// Requirements of NodePools and NodeClaims.
pub(super) fn requirements(owner: Owner) -> Field {
    let item = requirement(owner)
        .field(
            "minValues",
            integer(
                "How many different values of this label must stay possible, so that a launch can \
                 choose among them. Alpha.",
            )
            .range(1, 50),
        )
        .rule(
            "self.operator != 'In' || (has(self.values) && size(self.values) > 0)",
            "the operator In needs at least one value",
        )
        .rule(COMPARISON_RULE.0, COMPARISON_RULE.1)
        .rule(
            "self.operator != 'In' || !has(self.minValues) || \
             (has(self.values) && size(self.values) >= self.minValues)",
            "minValues asks for more values than are listed",
        );
    list(
        "What the labels of a node must be. All of them apply.",
        item,
    )
    .max_items(100)
    .atomic()
}

/// Requirements of NodeOverlays: no minValues, and NotIn needs values too.
pub(super) fn overlay_requirements() -> Field {
    let item = requirement(Owner::Overlay)
        .rule(
            "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
            "the operators In and NotIn need at least one value",
        )
        .rule(COMPARISON_RULE.0, COMPARISON_RULE.1);
    list(
        "Which instance types and pools are corrected. All of them apply.",
        item,
    )
    .max_items(100)
    .atomic()
}

/// Comparisons need one number.
pub(super) const COMPARISON_RULE: (&str, &str) = (
    "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || \
     (has(self.values) && size(self.values) == 1 && int(self.values[0]) >= 0)",
    "the operators Gt, Lt, Gte and Lte need exactly one value, a whole number that is not negative",
);

fn requirement(owner: Owner) -> Field {
    let operators: Vec<&str> = Operator::ALL.iter().map(|o| o.as_str()).collect();
    object("A wish about one label.")
        .required(
            "key",
            string("The label.")
                .max_length(KEY_LENGTH_MAX)
                .pattern(QUALIFIED_NAME)
                .rules(key_rules(owner)),
        )
        .required(
            "operator",
            string("How the label is compared.").one_of(&operators),
        )
        .field(
            "values",
            list("What it is compared with.", string("A label value.")).atomic(),
        )
}

/// A list of taints.
pub(super) fn taints(description: &str) -> Field {
    let effects: Vec<&str> = TaintEffect::ALL.iter().map(|e| e.as_str()).collect();
    let item = object("Keeps pods off the node unless they tolerate it.")
        .required(
            "key",
            string("Key that tolerations match.")
                .not_empty()
                .pattern(QUALIFIED_NAME),
        )
        .field(
            "value",
            string("Value that tolerations match.")
                .not_empty()
                .pattern(QUALIFIED_NAME),
        )
        .required(
            "effect",
            string("What happens to other pods.").one_of(&effects),
        )
        .field("timeAdded", time("When the taint was added."));
    list(description, item).atomic()
}

/// Reference to a node class. Pools may not switch to another provider.
pub(super) fn node_class_ref(is_fixed: bool) -> Field {
    let part = |description: &str, name: &str, pattern: Option<&str>| {
        let field = string(description).not_empty();
        let field = match pattern {
            Some(pattern) => field.pattern(pattern),
            None => field,
        };
        if is_fixed {
            let message =
                format!("the {name} of the node class cannot be changed; make a new pool");
            field.rule("self == oldSelf", message)
        } else {
            field
        }
    };
    object("The node class that holds the provider's settings.")
        .required(
            "group",
            part("API group of the class.", "group", Some(NO_SLASH)),
        )
        .required("kind", part("Kind of the class.", "kind", None))
        .required("name", string("Name of the class.").not_empty())
}

/// Age at which a node is replaced.
pub(super) fn expire_after() -> Field {
    string("Age at which a node is replaced, or Never.")
        .pattern(DURATION_OR_NEVER)
        .default(json!("720h"))
}

/// Longest time that a drain may take.
pub(super) fn termination_grace_period() -> Field {
    string(
        "How long a drain may take before pods are forced off. Without it, a drain waits for as \
         long as disruption budgets and do-not-disrupt pods ask.",
    )
    .pattern(DURATION)
}

/// Whether conditions must give a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Required,
    Optional,
}

/// Conditions of a status.
pub(super) fn conditions(reason: Reason) -> Field {
    list("Observations about the object.", condition(reason))
}

/// One condition.
pub(super) fn condition(reason: Reason) -> Field {
    let message = string("Why, for people.").max_length(32768);
    let word = string("Why, in one word.").max_length(1024);
    let base = object("One observation.")
        .required("lastTransitionTime", time("When the verdict last changed."))
        .field(
            "observedGeneration",
            int64("Generation that was looked at.").at_least(0),
        )
        .required(
            "status",
            string("The verdict.").one_of(&["True", "False", "Unknown"]),
        )
        .required(
            "type",
            string("What is observed.")
                .max_length(KEY_LENGTH_MAX)
                .pattern(QUALIFIED_NAME),
        );
    match reason {
        Reason::Required => base
            .required("message", message)
            .required("reason", word.not_empty().pattern(REASON)),
        Reason::Optional => base
            .field("message", message)
            .field("reason", word.pattern(REASON_OR_NONE)),
    }
}
