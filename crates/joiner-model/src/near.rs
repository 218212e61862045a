//! Names that are close to one that does not exist.

/// Most letters that may be wrong, added or missing.
const WRONG_MAX: usize = 3;

/// The names that come closest to what was written, if they come close: all that are equally close, in
/// their order.
pub fn nearest<'a>(
    written: &str,
    names: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    let most = (written.chars().count() / 4).clamp(1, WRONG_MAX);
    let mut best = most;
    let mut close = Vec::new();
    for name in names {
        let wrong = edits(written, name);
        if wrong < best {
            close.clear();
            best = wrong;
        }
        if wrong == best {
            close.push(name);
        }
    }
    close.into_iter()
}

/// How many letters must be added, dropped or changed to get from one text to the other.
#[must_use]
pub fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_names_are_found() {
        let zones = ["us-east-1a", "us-east-1b", "us-west-2a"];
        let near = |written| nearest(written, zones.into_iter()).collect::<Vec<_>>();
        assert_eq!(near("us-east1a"), ["us-east-1a"]);
        assert_eq!(near("us-east-1x"), ["us-east-1a", "us-east-1b"]);
        assert_eq!(near("us-est-1b"), ["us-east-1b"]);
        assert_eq!(near("moon-1a"), Vec::<&str>::new());
        assert_eq!(near(""), Vec::<&str>::new());
    }

    #[test]
    fn edits_count_letters() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("zürich", "zurich"), 1);
    }
}
