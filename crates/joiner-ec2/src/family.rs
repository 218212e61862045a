//! Which family of images a class means.

use joiner_api::types::{AmiFamily, Ec2NodeClassSpec};

/// The family that a class's nodes are started like: what it says, else that of its alias, else `Custom`.
#[must_use]
pub fn of(spec: &Ec2NodeClassSpec) -> AmiFamily {
    let alias = || alias(spec).map(|(family, _)| family);
    spec.ami_family.or_else(alias).unwrap_or(AmiFamily::Custom)
}

/// Family and version of the alias that a class selects its images by.
#[must_use]
pub fn alias(spec: &Ec2NodeClassSpec) -> Option<(AmiFamily, &str)> {
    let term = spec.ami_selector_terms.iter();
    term.filter_map(|term| parse_alias(term.alias.as_deref()?))
        .next()
}

/// Splits `family@version`. A family that has no alias, as `Custom`, is none.
#[must_use]
pub fn parse_alias(alias: &str) -> Option<(AmiFamily, &str)> {
    let (name, version) = alias.split_once('@')?;
    let mut families = AmiFamily::ALL.iter().copied();
    let family = families.find(|family| family.as_str().to_lowercase() == name)?;
    (family != AmiFamily::Custom).then_some((family, version))
}

/// Whether nodes of the family run Windows.
#[must_use]
pub const fn is_windows(family: AmiFamily) -> bool {
    match family {
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => true,
        AmiFamily::Al2 | AmiFamily::Al2023 | AmiFamily::Bottlerocket | AmiFamily::Custom => false,
    }
}
