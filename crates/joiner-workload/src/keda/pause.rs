//! Annotations that hold a ScaledObject still, or drive it.

use std::collections::BTreeMap;

use crate::condition::{Said, Truth};
use crate::part::FieldError;

const PAUSED: &str = "autoscaling.keda.sh/paused";
const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
const PAUSED_IN: &str = "autoscaling.keda.sh/paused-scale-in";
const PAUSED_OUT: &str = "autoscaling.keda.sh/paused-scale-out";
/// The annotation that makes an object active whatever its triggers say.
pub const FORCE_ACTIVATION: &str = "autoscaling.keda.sh/force-activation";

/// What annotations hold still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// Everything: there is no polling, and no HPA.
    pub whole: bool,
    /// Everything, at this size.
    pub replicas: Option<i32>,
    /// The way to fewer replicas.
    pub scale_in: bool,
    /// The way to more replicas.
    pub scale_out: bool,
}

impl Pause {
    /// Reads the annotations of an object.
    ///
    /// # Errors
    /// When a number of replicas is none.
    pub fn read(annotations: &BTreeMap<String, String>) -> Result<Self, FieldError> {
        let replicas = match annotations.get(PAUSED_REPLICAS) {
            Some(text) => {
                let parsed = text.parse().map_err(|_| {
                    let path = format!("metadata.annotations[{PAUSED_REPLICAS}]");
                    FieldError::new(&path, format!("must be a whole number, not {text:?}"))
                })?;
                Some(parsed)
            }
            None => None,
        };
        Ok(Self {
            whole: replicas.is_some() || is_on(annotations, PAUSED),
            replicas,
            scale_in: is_on(annotations, PAUSED_IN),
            scale_out: is_on(annotations, PAUSED_OUT),
        })
    }

    /// Whether anything is held still.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.whole || self.scale_in || self.scale_out
    }

    /// What the condition `Paused` says.
    #[must_use]
    pub fn condition(&self) -> Said {
        if !self.is_any() {
            return Said::new(
                "Paused",
                Truth::False,
                "ScaledObjectUnpaused",
                "scaling goes on",
            );
        }
        let message = match (self.replicas, self.whole, self.scale_in, self.scale_out) {
            (Some(replicas), ..) => format!("scaling is paused at {replicas} replicas"),
            (None, true, ..) => "scaling is paused".to_owned(),
            (None, false, true, true) => "scaling in and out is paused".to_owned(),
            (None, false, true, false) => "scaling in is paused".to_owned(),
            (None, false, false, _) => "scaling out is paused".to_owned(),
        };
        Said::new("Paused", Truth::True, "ScaledObjectPaused", message)
    }
}

/// Whether the annotation makes the object active.
#[must_use]
pub fn is_forced(annotations: &BTreeMap<String, String>) -> bool {
    is_on(annotations, FORCE_ACTIVATION)
}

/// Whether an annotation is there and does not say no. What is neither yes nor no counts as yes.
fn is_on(annotations: &BTreeMap<String, String>, name: &str) -> bool {
    const NO: [&str; 6] = ["0", "f", "F", "false", "FALSE", "False"];
    annotations
        .get(name)
        .is_some_and(|text| !NO.contains(&text.as_str()))
}
