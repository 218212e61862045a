//! Crates against the rules, as a pure function.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use spdx::{Expression, Licensee, ParseMode};

use super::file::Rules;

/// Where crates may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// A crate that something of ours is built with.
#[derive(Clone, Debug)]
pub(super) struct Linked {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression, or nothing.
    pub(super) license: Option<String>,
    /// `None` for a folder on this machine.
    pub(super) source: Option<String>,
    /// It is a crate of this repository.
    pub(super) is_ours: bool,
    /// Crates that it takes in any version.
    pub(super) any_version_of: Vec<String>,
}

/// Everything that breaks a rule, and every allowance that nothing needs.
pub(super) fn problems(rules: &Rules, crates: &[Linked]) -> anyhow::Result<Vec<String>> {
    let mut problems = licenses(rules, crates)?;
    problems.extend(banned(rules, crates));
    problems.extend(duplicates(rules, crates));
    for one in crates {
        let of = format!("{} {}", one.name, one.version);
        match &one.source {
            Some(source) if source != REGISTRY => {
                problems.push(format!("{of} comes from {source}, not from the registry"));
            }
            None if !one.is_ours => {
                problems.push(format!("{of} comes from a folder outside the repository"));
            }
            Some(_) | None => {}
        }
        let any = one.any_version_of.iter();
        problems.extend(any.map(|other| format!("{of} takes any version of {other}")));
    }
    Ok(problems)
}

fn licensees(texts: &[String]) -> anyhow::Result<Vec<Licensee>> {
    let parse = |text: &String| {
        Licensee::parse(text).with_context(|| format!("deny.toml: {text} is no license of SPDX"))
    };
    texts.iter().map(parse).collect()
}

fn licenses(rules: &Rules, crates: &[Linked]) -> anyhow::Result<Vec<String>> {
    let allowed = licensees(&rules.licenses.allow)?;
    let mut exceptions = Vec::new();
    for exception in &rules.licenses.exceptions {
        exceptions.push((&exception.name, licensees(&exception.allow)?));
    }
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut problems = Vec::new();
    for one in crates {
        let of = format!("{} {}", one.name, one.version);
        let Some(text) = &one.license else {
            problems.push(format!("{of} does not say what its license is"));
            continue;
        };
        let Ok(expression) = Expression::parse_mode(text, ParseMode::LAX) else {
            problems.push(format!("{of}: {text:?} is no expression of licenses"));
            continue;
        };
        let is_fine = expression.evaluate(|wanted| {
            let all = allowed.iter().find(|licensee| licensee.satisfies(wanted));
            if let Some(licensee) = all {
                used.insert(licensee.to_string());
                return true;
            }
            let mut its = exceptions
                .iter()
                .filter(|(spec, _)| spec.matches(&one.name, &one.version));
            its.any(|(spec, more)| {
                let Some(licensee) = more.iter().find(|licensee| licensee.satisfies(wanted)) else {
                    return false;
                };
                used.insert(format!("{spec} {licensee}"));
                true
            })
        });
        if !is_fine {
            problems.push(format!(
                "{of} has the license {text:?}, which is not allowed"
            ));
        }
    }
    for licensee in &allowed {
        if !used.contains(&licensee.to_string()) {
            problems.push(format!("deny.toml allows {licensee}, which no crate needs"));
        }
    }
    for (spec, more) in &exceptions {
        let unused = more
            .iter()
            .filter(|own| !used.contains(&format!("{spec} {own}")));
        problems.extend(unused.map(|licensee| {
            format!("deny.toml allows {licensee} for {spec}, which does not need it")
        }));
    }
    Ok(problems)
}

fn banned(rules: &Rules, crates: &[Linked]) -> Vec<String> {
    let mut problems = Vec::new();
    for one in crates {
        let bans = rules.bans.deny.iter();
        for ban in bans.filter(|ban| ban.name.matches(&one.name, &one.version)) {
            problems.push(format!(
                "{} {} is banned: {}",
                one.name, one.version, ban.reason
            ));
        }
    }
    problems
}

fn duplicates(rules: &Rules, crates: &[Linked]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in crates {
        versions.entry(&one.name).or_default().insert(&one.version);
    }
    let mut problems = Vec::new();
    for (name, versions) in &versions {
        let is_skipped = |version: &str| {
            let mut skips = rules.bans.skip.iter();
            skips.any(|skip| skip.name.matches(name, version))
        };
        let left: Vec<&str> = versions
            .iter()
            .copied()
            .filter(|v| !is_skipped(v))
            .collect();
        if versions.len() > 1 && left.len() > 1 {
            problems.push(format!(
                "{name} is there in versions {}: bring them together, or skip all but one in deny.toml",
                left.join(" and ")
            ));
        }
    }
    for skip in &rules.bans.skip {
        let all = versions.get(skip.name.name.as_str());
        let is_there = |version: &&str| skip.name.matches(&skip.name.name, version);
        if all.is_none_or(|all| all.len() < 2 || !all.iter().any(is_there)) {
            let spec = &skip.name;
            problems.push(format!("deny.toml skips {spec}, which is no duplicate"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        [graph]
        all-features = true
        targets = ["x86_64-unknown-linux-gnu"]
        [licenses]
        include-dev = true
        unused-allowed-license = "deny"
        unused-license-exception = "deny"
        allow = ["Apache-2.0", "MIT"]
        exceptions = [{ crate = "maps", allow = ["MPL-2.0"] }]
        [bans]
        multiple-versions = "deny"
        multiple-versions-include-dev = true
        wildcards = "deny"
        allow-wildcard-paths = true
        skip = [{ crate = "syn@2", reason = "others need it" }]
        deny = [{ crate = "openssl-sys", reason = "no C library for TLS" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
    "#;

    fn linked(name: &str, version: &str, license: &str) -> Linked {
        Linked {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some(license.to_owned()),
            source: Some(REGISTRY.to_owned()),
            is_ours: false,
            any_version_of: Vec::new(),
        }
    }

    /// Crates that need everything that the rules allow.
    fn good() -> Vec<Linked> {
        vec![
            linked("a", "1.0.0", "Apache-2.0 OR Zlib"),
            linked("b", "1.0.0", "MIT/Unlicense"),
            linked("maps", "6.1.0", "MPL-2.0+"),
            linked("syn", "2.0.1", "MIT"),
            linked("syn", "3.0.1", "MIT"),
        ]
    }

    fn found(change: impl FnOnce(&mut Vec<Linked>)) -> Vec<String> {
        let mut crates = good();
        change(&mut crates);
        problems(&Rules::parse(RULES).unwrap(), &crates).unwrap()
    }

    #[test]
    fn what_keeps_the_rules_is_fine() {
        assert_eq!(found(|_| {}), [""; 0]);
    }

    #[test]
    fn every_license_is_allowed_for_all_or_for_its_crate() {
        assert_eq!(
            found(|crates| crates.push(linked("c", "1.0.0", "MIT AND ISC"))),
            ["c 1.0.0 has the license \"MIT AND ISC\", which is not allowed"]
        );
        assert_eq!(
            found(|crates| crates.push(linked("c", "1.0.0", "MPL-2.0"))).len(),
            1
        );
        assert_eq!(
            found(|crates| crates.push(linked("c", "1.0.0", "beer"))),
            ["c 1.0.0: \"beer\" is no expression of licenses"]
        );
        assert_eq!(
            found(|crates| crates[0].license = None)[0],
            "a 1.0.0 does not say what its license is"
        );
    }

    #[test]
    fn what_is_allowed_in_vain_is_told() {
        assert_eq!(
            found(|crates| drop(crates.remove(0))),
            ["deny.toml allows Apache-2.0, which no crate needs"]
        );
        assert_eq!(
            found(|crates| drop(crates.remove(2))),
            ["deny.toml allows MPL-2.0 for maps, which does not need it"]
        );
        assert_eq!(
            found(|crates| drop(crates.remove(4))),
            ["deny.toml skips syn@2, which is no duplicate"]
        );
    }

    #[test]
    fn versions_bans_and_sources_are_checked() {
        assert_eq!(
            found(|crates| crates.push(linked("b", "2.0.0", "MIT"))),
            [
                "b is there in versions 1.0.0 and 2.0.0: bring them together, or skip all but one in \
                 deny.toml"
            ]
        );
        assert_eq!(
            found(|crates| crates.push(linked("openssl-sys", "0.9.1", "MIT"))),
            ["openssl-sys 0.9.1 is banned: no C library for TLS"]
        );
        let other = "git+https://example.com/a.git#1";
        assert_eq!(
            found(|crates| crates[0].source = Some(other.to_owned())),
            [format!("a 1.0.0 comes from {other}, not from the registry")]
        );
        assert_eq!(
            found(|crates| crates[0].source = None),
            ["a 1.0.0 comes from a folder outside the repository"]
        );
        assert_eq!(
            found(|crates| crates[0].any_version_of.push("b".to_owned())),
            ["a 1.0.0 takes any version of b"]
        );
    }

    #[test]
    fn a_rule_that_is_not_checked_is_refused() {
        for (from, to) in [
            ("wildcards = \"deny\"", "wildcards = \"warn\""),
            ("[sources]", "[sources]\nallow-git = []"),
            ("include-dev = true", "include-dev = false"),
            ("others need it", " "),
            ("syn@2", "syn@^2"),
        ] {
            let changed = RULES.replace(from, to);
            assert_ne!(changed, RULES);
            assert!(Rules::parse(&changed).is_err(), "{to}");
        }
    }
}
