//! Which image a machine boots from.

use joiner_api::types::{Ami, Operator, Requirement};
use joiner_model::InstanceType;

/// The image for a type: the first whose requirements it meets.
#[must_use]
pub fn for_type<'a>(amis: &'a [Ami], ty: &InstanceType) -> Option<&'a Ami> {
    amis.iter()
        .find(|ami| ami.requirements.iter().all(|own| meets(ty, own)))
}

/// Whether a type meets a requirement of an image.
fn meets(ty: &InstanceType, own: &Requirement) -> bool {
    let values = ty.labels.get(own.key.as_str());
    let any_in = || {
        let mut values = values.into_iter().flatten();
        values.any(|value| own.values.iter().any(|wanted| **wanted == **value))
    };
    match own.operator {
        Operator::Exists => values.is_some(),
        Operator::DoesNotExist => values.is_none(),
        Operator::In => any_in(),
        Operator::NotIn => !any_in(),
        // Images have no requirements that compare numbers.
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => false,
    }
}
