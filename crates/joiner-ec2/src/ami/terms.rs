//! The terms of a class as questions: to the parameter store, then to EC2.

use std::collections::BTreeMap;

use joiner_api::types::{AmiTerm, Ec2NodeClassSpec};

use super::alias::{AliasError, Lookup, parameters};
use crate::family;
use crate::request::{Filter, Query};

/// Images a page.
const PAGE: i32 = 1000;
/// How ids of images start.
const IMAGE: &str = "ami-";

/// None of the parameters behind an alias is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "none of the {n_parameters} parameters of {alias} in spec.amiSelectorTerms is there, as {first}; select a \
     version that AWS publishes, or allow ssm:GetParameter"
)]
pub struct NoParameters {
    /// The alias.
    pub alias: String,
    /// How many parameters it has.
    pub n_parameters: usize,
    /// The first of them.
    pub first: String,
}

/// The parameters that a class selects images by. `kubernetes` is the cluster's minor version, `1.36`.
///
/// # Errors
/// An alias that selects nothing.
pub fn lookups(spec: &Ec2NodeClassSpec, kubernetes: &str) -> Result<Vec<Lookup>, AliasError> {
    let mut all = Vec::new();
    for term in &spec.ami_selector_terms {
        if let Some(alias) = &term.alias {
            let (family, version) =
                family::parse_alias(alias).ok_or_else(|| AliasError::Unreadable(alias.clone()))?;
            all.extend(parameters(family, version, kubernetes)?);
        } else if let Some(parameter) = term.ssm_parameter.as_ref().filter(|_| term.id.is_none()) {
            all.push(Lookup {
                parameter: parameter.clone(),
                is_users: true,
                is_mutable: false,
                variants: Vec::new(),
            });
        }
    }
    Ok(all)
}

/// The questions about images. `values` holds the parameters that were found; others are passed over, and so is a
/// value that is no id of an image.
///
/// # Errors
/// No parameter of an alias was found.
pub fn queries(
    spec: &Ec2NodeClassSpec,
    lookups: &[Lookup],
    values: &BTreeMap<String, String>,
) -> Result<Vec<Query>, NoParameters> {
    let of_alias: Vec<&Lookup> = lookups.iter().filter(|lookup| !lookup.is_users).collect();
    if let [first, ..] = of_alias.as_slice()
        && of_alias
            .iter()
            .all(|lookup| !values.contains_key(&lookup.parameter))
    {
        let alias = spec
            .ami_selector_terms
            .iter()
            .find_map(|term| term.alias.clone());
        return Err(NoParameters {
            alias: alias.unwrap_or_default(),
            n_parameters: of_alias.len(),
            first: first.parameter.clone(),
        });
    }
    let given = spec
        .ami_selector_terms
        .iter()
        .filter_map(|term| term.id.clone());
    let found = lookups
        .iter()
        .filter_map(|lookup| values.get(&lookup.parameter).cloned());
    let mut ids: Vec<String> = given
        .chain(found)
        .filter(|id| id.starts_with(IMAGE))
        .collect();
    ids.sort();
    ids.dedup();
    let by_id = (!ids.is_empty()).then(|| query(vec![Filter::new("image-id", ids)], Vec::new()));
    let others = spec.ami_selector_terms.iter().filter_map(by_properties);
    Ok(by_id.into_iter().chain(others).collect())
}

/// The question of a term that names neither image nor parameter.
fn by_properties(term: &AmiTerm) -> Option<Query> {
    if term.id.is_some() || term.alias.is_some() || term.ssm_parameter.is_some() {
        return None;
    }
    let name = term
        .name
        .as_ref()
        .map(|name| Filter::new("name", [name.as_str()]));
    let tags = term
        .tags
        .iter()
        .flatten()
        .map(|(key, value)| Filter::tag(key, value));
    let filters: Vec<Filter> = name.into_iter().chain(tags).collect();
    let owners = match (&term.owner, &term.name) {
        (Some(owner), _) => vec![owner.clone()],
        // Names are easily forged.
        (None, Some(_)) => ["self", "amazon"].map(str::to_owned).into(),
        (None, None) => Vec::new(),
    };
    (!filters.is_empty()).then(|| query(filters, owners))
}

fn query(mut filters: Vec<Filter>, owners: Vec<String>) -> Query {
    filters.push(Filter::new("state", ["available"]));
    Query {
        filters,
        owners,
        include_deprecated: Some(true),
        max_results: Some(PAGE),
        ..Query::default()
    }
}
