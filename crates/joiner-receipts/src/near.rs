//! Names that may have been meant.

use std::collections::BTreeSet;

use joiner_model::edits;

/// Most names that are proposed.
const SHOWN_MAX: usize = 5;
/// Most letters that may be wrong, added or missing.
const WRONG_MAX: usize = 3;

/// The names that come closest to what was typed, best first. Only the last part of a name with
/// slashes is compared when what was typed has none.
#[must_use]
pub fn near(typed: &str, names: &BTreeSet<String>) -> Vec<String> {
    let part = |name: &'_ str| match typed.contains('/') {
        true => name.to_owned(),
        false => name.rsplit('/').next().unwrap_or(name).to_owned(),
    };
    let mut close: Vec<(usize, &String)> = names
        .iter()
        .filter_map(|name| Some((distance(typed, &part(name))?, name)))
        .collect();
    close.sort();
    let shown = close.into_iter().take(SHOWN_MAX);
    shown.map(|(_, name)| name.clone()).collect()
}

/// How far a name is from what was typed; nothing when too far. Beginnings and parts are close:
/// `web` stands for `web-7d4b9c-x2x8n`.
fn distance(typed: &str, name: &str) -> Option<usize> {
    if typed.is_empty() {
        return None;
    }
    if name.starts_with(typed) {
        return Some(0);
    }
    if name.contains(typed) {
        return Some(1);
    }
    let wrong = edits(typed, name);
    let allowed = (typed.len() / 4).clamp(1, WRONG_MAX);
    (wrong <= allowed).then_some(1 + wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_names_come_first() {
        let names: BTreeSet<String> = ["shop/web-1", "shop/web-2", "shop/api-1", "other/wob-1"]
            .map(str::to_owned)
            .into();
        assert_eq!(near("web", &names), ["shop/web-1", "shop/web-2"]);
        assert_eq!(near("wep-1", &names), ["shop/web-1"]);
        assert_eq!(near("shop/api-2", &names), ["shop/api-1"]);
        assert_eq!(near("database", &names), Vec::<String>::new());
        let many: BTreeSet<String> = (0..100).map(|n| format!("a/web-{n}")).collect();
        assert_eq!(near("web", &many).len(), SHOWN_MAX);
    }
}
