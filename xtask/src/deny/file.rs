//! What `deny.toml` says. Keys that only `cargo deny` knows are refused, so that no rule of the file goes
//! unchecked in silence.

use std::fmt;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Rules {
    pub(super) graph: Graph,
    /// Only `cargo deny` has a list of them.
    #[serde(default, rename = "advisories")]
    _advisories: Option<IgnoredAny>,
    pub(super) licenses: Licenses,
    pub(super) bans: Bans,
    #[serde(rename = "sources")]
    _sources: Sources,
}

/// Which crates are looked at.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Graph {
    #[serde(rename = "all-features")]
    _all_features: True,
    /// The platforms that Joiner is built for.
    pub(super) targets: Vec<String>,
}

/// Which licenses are fine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Licenses {
    #[serde(rename = "include-dev")]
    _include_dev: True,
    #[serde(rename = "unused-allowed-license")]
    _unused_allowed: Deny,
    #[serde(rename = "unused-license-exception")]
    _unused_exception: Deny,
    /// SPDX identifiers.
    pub(super) allow: Vec<String>,
    #[serde(default)]
    pub(super) exceptions: Vec<Exception>,
}

/// Further licenses for one crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Exception {
    #[serde(rename = "crate")]
    pub(super) name: Spec,
    pub(super) allow: Vec<String>,
}

/// Which crates are not wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Bans {
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Deny,
    #[serde(rename = "multiple-versions-include-dev")]
    _include_dev: True,
    #[serde(rename = "wildcards")]
    _wildcards: Deny,
    #[serde(rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: True,
    /// Versions that may be there besides another one.
    #[serde(default)]
    pub(super) skip: Vec<Reasoned>,
    #[serde(default)]
    pub(super) deny: Vec<Reasoned>,
}

/// Where crates may come from: nowhere but from the registry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Deny,
    #[serde(rename = "unknown-git")]
    _unknown_git: Deny,
}

/// A crate, and why it is listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reasoned {
    #[serde(rename = "crate")]
    pub(super) name: Spec,
    pub(super) reason: String,
}

/// A crate, `NAME` or `NAME@VERSION`, where the version may be the beginning of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) name: String,
    version: Option<String>,
}

impl Spec {
    /// True for a crate that is meant.
    pub(super) fn matches(&self, name: &str, version: &str) -> bool {
        let is_version = self.version.as_deref().is_none_or(|wanted| {
            let rest = version.strip_prefix(wanted);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        self.name == name && is_version
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (text.as_str(), None),
        };
        let is_plain = |c: char| c.is_ascii_digit() || c == '.';
        if version.is_some_and(|version| version.is_empty() || !version.chars().all(is_plain)) {
            return Err(D::Error::custom(format!("{text:?} is not NAME@VERSION")));
        }
        Ok(Self {
            name: name.to_owned(),
            version: version.map(str::to_owned),
        })
    }
}

/// The only value that is understood.
#[derive(Debug, Deserialize)]
enum Deny {
    #[serde(rename = "deny")]
    Deny,
}

/// Likewise.
#[derive(Debug)]
struct True;

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match bool::deserialize(deserializer)? {
            true => Ok(Self),
            false => Err(D::Error::custom("only `true` is checked here")),
        }
    }
}

impl Rules {
    /// Reads the file.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let rules: Self = toml::from_str(text).context("cannot read deny.toml")?;
        ensure!(
            !rules.graph.targets.is_empty(),
            "deny.toml names no platform under graph.targets"
        );
        for listed in rules.bans.skip.iter().chain(&rules.bans.deny) {
            let name = &listed.name;
            ensure!(
                !listed.reason.trim().is_empty(),
                "deny.toml gives no reason for {name}"
            );
        }
        Ok(rules)
    }
}
