//! What a VPA says of itself.

use jiff::Timestamp;

use super::cluster::Recommended;
use crate::condition::{Conditions, Said, Truth};

const NO_PODS: &str = "NoPodsMatched";
const UNSUPPORTED: &str = "ConfigUnsupported";

/// Says what a pass came to.
pub fn conditions(conditions: &mut Conditions, recommended: &Recommended, now: Timestamp) {
    let (mut reason, mut message) = ("", "");
    if recommended.has_pods {
        conditions.remove(NO_PODS);
    } else {
        reason = NO_PODS;
        message = "the selector of the target chooses no pods";
        conditions.set(Said::new(NO_PODS, Truth::True, reason, message), now);
    }
    let provided = !recommended.containers.is_empty();
    let said = if provided {
        Said::new("RecommendationProvided", Truth::True, "", "")
    } else {
        Said::new("RecommendationProvided", Truth::False, reason, message)
    };
    conditions.set(said, now);
    conditions.sort();
}

/// Says whether the target is one whose pods can be found, and why not.
pub fn supported(conditions: &mut Conditions, problem: Option<&str>, now: Timestamp) {
    match problem {
        Some(problem) => {
            conditions.set(Said::new(UNSUPPORTED, Truth::True, "", problem), now);
        }
        None => conditions.remove(UNSUPPORTED),
    }
    conditions.remove("ConfigDeprecated");
    conditions.sort();
}
