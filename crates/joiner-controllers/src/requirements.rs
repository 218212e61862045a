//! Requirements of our kinds, as the model has them.

use joiner_api::types as api;
use joiner_model::{Name, Operator, Requirement, Requirements};

/// Reads requirements.
///
/// # Errors
/// What is wrong with the first that cannot be read.
pub(crate) fn read(given: &[api::Requirement]) -> Result<Requirements, String> {
    let mut all = Requirements::new();
    for own in given {
        let word = own.operator.as_str();
        let operator = Operator::parse(word)
            .ok_or_else(|| format!("operator {word} of {} is not known", own.key))?;
        let values = own.values.iter().map(|value| Name::from(value.as_str()));
        let requirement = Requirement::new(&own.key, operator, values)
            .map_err(|why| format!("requirement {}: {why}", own.key))?;
        all.add(requirement.with_min_values(own.min_values));
    }
    Ok(all)
}
