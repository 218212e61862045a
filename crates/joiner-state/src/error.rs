//! What went wrong while reading, and where.

use std::fmt::{self, Write as _};

use joiner_model::Name;

use crate::wording;

/// A place in the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// The same, with the path of the field continued upward.
    pub(crate) fn below(mut self, path: &str) -> Self {
        self.field = Some(match self.field {
            Some(field) => format!("{path}.{field}"),
            None => path.to_owned(),
        });
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
        for part in [&self.object, &self.field].into_iter().flatten() {
            write!(f, "{}: ", wording::one_line(part))?;
        }
        for c in self.problem.chars() {
            match c.is_control() {
                true => write!(f, "{}", c.escape_debug())?,
                false => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
