//! What a reader of a converted object should know.

use std::fmt;

/// One thing that changed its meaning, or that needs a hand.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Remark {
    /// `kind name` of the old object.
    pub subject: String,
    /// The field of the old object.
    pub path: String,
    /// What has become of it, or what is to be done.
    pub message: String,
    /// The operator has to do something before the object is of use.
    #[serde(rename = "needsHand")]
    pub needs_hand: bool,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "{}: {}", self.subject, self.message),
            path => write!(f, "{}: {path}: {}", self.subject, self.message),
        }
    }
}

/// Remarks on one object, as they come.
pub(super) struct Remarks<'a> {
    pub(super) subject: &'a str,
    pub(super) list: &'a mut Vec<Remark>,
}

impl Remarks<'_> {
    /// A field means something else now, or stands elsewhere.
    pub(super) fn note(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.add(path.into(), message.into(), false);
    }

    /// A field needs a hand.
    pub(super) fn hand(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.add(path.into(), message.into(), true);
    }

    fn add(&mut self, path: String, message: String, needs_hand: bool) {
        self.list.push(Remark {
            subject: self.subject.to_owned(),
            path,
            message,
            needs_hand,
        });
    }
}
