//! Objects of our own kinds go through the same gate as in a cluster.

use joiner_api::Rejection;
use joiner_api::admission::older_api;
use serde_json::Value;

use crate::documents::{Document, Header};
use crate::error::{Place, ReadError};
use crate::objects::Objects;

impl Objects {
    /// The object, complete with defaults, after every rule of its schema.
    pub(crate) fn admitted(
        &mut self,
        header: &Header,
        document: Document<'_>,
        place: &Place,
    ) -> Result<Value, ReadError> {
        let mut object: Value = document.parse(place)?;
        if let Some(fields) = object.as_object_mut() {
            // The items of a typed list leave these to the list.
            for (key, value) in [("apiVersion", &header.api_version), ("kind", &header.kind)] {
                fields.entry(key).or_insert_with(|| value.as_str().into());
            }
        }
        if self.trusting {
            return Ok(object);
        }
        let title = Document::Value(&object).title();
        match joiner_api::admit(&mut object) {
            Ok(admitted) => {
                let told = admitted.warnings.iter();
                self.warnings.extend(told.map(|w| format!("{title}: {w}")));
                Ok(object)
            }
            Err(rejection) => Err(explained(&rejection).of(title).at(place.clone())),
        }
    }
}

/// What a refused object's author has to change.
fn explained(rejection: &Rejection) -> ReadError {
    match rejection {
        Rejection::Invalid { errors, .. } => match errors.as_slice() {
            [one] => {
                let problem = match &one.value {
                    Some(value) => format!("{} (got {value})", one.message),
                    None => one.message.clone(),
                };
                ReadError::new(problem).field(one.path.as_str())
            }
            several => {
                let all: Vec<String> = several.iter().map(ToString::to_string).collect();
                ReadError::new(all.join("; "))
            }
        },
        Rejection::OlderApi { older, .. } => ReadError::new(older.to_string()),
        Rejection::NotAnObject { .. } | Rejection::UnknownKind { .. } => {
            ReadError::new(rejection.to_string())
        }
    }
}

/// Refuses kinds that earlier releases had and that are no longer read.
pub(crate) fn refuse_older(
    header: &Header,
    document: Document<'_>,
    place: &Place,
) -> Result<(), ReadError> {
    match older_api(&header.api_version, &header.kind) {
        Some(older) => {
            let error = ReadError::new(older.to_string());
            Err(error.of(document.title()).at(place.clone()))
        }
        None => Ok(()),
    }
}
