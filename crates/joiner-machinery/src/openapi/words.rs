//! What fields mean, in a few words.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The description of a field: written for the struct, or for the name anywhere, or the name itself.
pub(super) fn field(of: &str, name: &str) -> String {
    let known = table();
    let own = known.get(&(of, name)).or_else(|| known.get(&("*", name)));
    own.map_or_else(|| spelled_out(name), |words| (*words).to_owned())
}

/// The description of a struct, where its name does not say it all.
pub(super) fn of_struct(of: &str) -> Option<&'static str> {
    table().get(&(of, "")).copied()
}

fn table() -> &'static BTreeMap<(&'static str, &'static str), &'static str> {
    static TABLE: OnceLock<BTreeMap<(&str, &str), &str>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines = include_str!("words.txt").lines();
        let lines = lines.filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| {
                let (key, words) = line.split_once(' ')?;
                let (of, name) = key.split_once(':').unwrap_or((key, ""));
                Some(((of, name), words))
            })
            .collect()
    })
}

/// `terminationGracePeriodSeconds` as "Termination grace period seconds."
fn spelled_out(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let is = |at: usize, test: fn(&char) -> bool| letters.get(at).is_some_and(test);
    let mut text = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let upper_before = at > 0 && is(at - 1, |c| c.is_uppercase());
        // The plural of an acronym ends small, and is still one word.
        let plural = is(at + 1, |c| *c == 's') && letters.len() == at + 2;
        let small_after = is(at + 1, |c| c.is_lowercase()) && !plural;
        if at > 0 && letter.is_uppercase() && (!upper_before || small_after) {
            text.push(' ');
        }
        let acronym = (upper_before || is(at + 1, |c| c.is_uppercase()) || plural) && !small_after;
        if at == 0 {
            text.extend(letter.to_uppercase());
        } else if acronym {
            text.push(*letter);
        } else {
            text.extend(letter.to_lowercase());
        }
    }
    text.push('.');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::fields;

    #[test]
    fn names_are_spelled_out() {
        for (name, text) in [
            (
                "terminationGracePeriodSeconds",
                "Termination grace period seconds.",
            ),
            ("podIPs", "Pod IPs."),
            ("hostPID", "Host PID."),
            ("nonResourceURLs", "Non resource URLs."),
            ("CSIDriver", "CSI driver."),
            ("x", "X."),
        ] {
            assert_eq!(spelled_out(name), text);
        }
    }

    #[test]
    fn words_are_about_fields_that_exist() {
        for (of, name) in table().keys() {
            let mut structs = fields::structs().iter();
            let found = match *of {
                "*" => structs.any(|s| s.field(name).is_some()),
                of => structs.any(|s| s.name == of && (name.is_empty() || s.field(name).is_some())),
            };
            assert!(found, "{of}:{name}");
        }
    }
}
