//! Instance profiles: those that we make for a class's role, and those that nothing needs any more.

use std::collections::BTreeSet;

use joiner_api::labels::REGION;
use joiner_api::labels::aws::EC2_NODE_CLASS;
use joiner_api::structural;
use joiner_api::types::Ec2NodeClassSpec;

use crate::cluster::Cluster;
use crate::tags::{self, Tag};

/// The longest name that IAM takes.
const NAME_MAX: usize = 128;

/// A profile to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its path, by which profiles of a class are found.
    pub path: String,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// The role that is put into it, without path.
    pub role: String,
}

/// A profile that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// Its role, without path, if it has one.
    pub role: Option<String>,
}

/// What is to be done about the profile of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needed {
    /// The user's own: it is taken as it is, and IAM is not asked.
    Users(String),
    /// The profile in use is right.
    Keep(String),
    /// A new one is needed: there is none, or it has another role. The old one stays for machines that run.
    Make(Profile),
    /// The class names neither role nor profile; the schema keeps that out.
    Nothing,
}

/// What a class needs. `found` is the profile that its status names, as IAM has it now; `uuid` makes the name of a
/// new one unique.
#[must_use]
pub fn needed(
    (class, uid, spec): (&str, &str, &Ec2NodeClassSpec),
    cluster: &Cluster,
    found: Option<&Known>,
    uuid: &str,
) -> Needed {
    if let Some(name) = &spec.instance_profile {
        return Needed::Users(name.clone());
    }
    let Some(role) = spec.role.as_deref().map(without_path) else {
        return Needed::Nothing;
    };
    match found {
        Some(profile) if profile.role.as_deref().map(without_path) == Some(role) => {
            Needed::Keep(profile.name.clone())
        }
        _ => Needed::Make(Profile {
            name: name(cluster, &format!("{}{class}{uuid}", cluster.region)),
            path: path_of_class(cluster, uid),
            tags: tags(spec, cluster, class),
            role: role.to_owned(),
        }),
    }
}

fn tags(spec: &Ec2NodeClassSpec, cluster: &Cluster, class: &str) -> Vec<Tag> {
    let ours = [
        (tags::owned(&cluster.name), tags::OWNED),
        (tags::CLUSTER_NAME.to_owned(), cluster.name.as_str()),
        (EC2_NODE_CLASS.to_owned(), class),
        (REGION.to_owned(), cluster.region.as_str()),
    ];
    tags::merged(spec.tags.as_ref(), ours)
}

fn name(cluster: &Cluster, what: &str) -> String {
    format!("{}_{}", cluster.name, structural::string(what))
}

/// The name that releases before 1.7 gave to the profile of a class; `None` where IAM could not have it.
#[must_use]
pub fn legacy_name(cluster: &Cluster, class: &str) -> Option<String> {
    let name = name(cluster, &format!("{}{class}", cluster.region));
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c);
    let fits = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_valid);
    fits.then_some(name)
}

/// The path of all profiles of a cluster.
#[must_use]
pub fn path_of_cluster(cluster: &Cluster) -> String {
    format!("/karpenter/{}/{}/", cluster.region, cluster.name)
}

/// The path of the profiles of a class.
#[must_use]
pub fn path_of_class(cluster: &Cluster, uid: &str) -> String {
    format!("{}{uid}/", path_of_cluster(cluster))
}

/// A role's name without its path.
#[must_use]
pub fn without_path(role: &str) -> &str {
    role.rsplit('/').next().unwrap_or(role)
}

/// Which profiles of the cluster nothing needs: no class uses them, no claim was launched with them, and they are not
/// protected because they have just been made or replaced.
#[must_use]
pub fn unused<'p>(
    profiles: &'p [String],
    of_classes: &BTreeSet<String>,
    of_claims: &BTreeSet<String>,
    protected: &BTreeSet<String>,
) -> Vec<&'p str> {
    let needed = [of_classes, of_claims, protected];
    let unused = profiles
        .iter()
        .filter(|name| needed.iter().all(|names| !names.contains(*name)));
    unused.map(String::as_str).collect()
}
