//! What went wrong while reading, and where.

use std::fmt;

use joiner_model::Name;

/// A place in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the source, usually a file.
    pub source: Name,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, when it is known.
    pub column: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.line)?;
        match self.column {
            Some(column) => write!(f, ":{column}"),
            None => Ok(()),
        }
    }
}

/// Input that cannot be used: where, which object, which field, what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ReadError {
    /// Where it is.
    pub place: Option<Place>,
    /// The object: kind and name.
    pub object: Option<String>,
    /// Path of the field in the object.
    pub field: Option<String>,
    /// What is wrong, and what to do about it where that is plain.
    pub problem: String,
}

impl ReadError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self {
            place: None,
            object: None,
            field: None,
            problem: problem.into(),
        }
    }

    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place.get_or_insert(place);
        self
    }

    pub(crate) fn of(mut self, object: impl Into<String>) -> Self {
        self.object.get_or_insert(object.into());
        self
    }

    pub(crate) fn field(mut self, field: impl Into<String>) -> Self {
        self.field.get_or_insert(field.into());
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.problem)
    }
}
