//! Where we are in an object. Built on the stack, rendered only when something is wrong there.

use std::fmt;

/// A place in an object, linked to the place above it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    /// The object itself.
    Root,
    /// A declared field.
    Field(&'a Path<'a>, &'a str),
    /// An entry of a map.
    Key(&'a Path<'a>, &'a str),
    /// An item of a list.
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(above, name) => write!(f, "{above}.{name}"),
            Self::Key(above, key) => write!(f, "{above}[{key}]"),
            Self::Index(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}
