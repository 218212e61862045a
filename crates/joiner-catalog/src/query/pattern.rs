//! Patterns as shells have them: `*` is any text, `?` any one letter.

/// True when a pattern describes the name, or a plain text starts it.
pub(super) fn matches_name(pattern: &str, name: &str) -> bool {
    if pattern.contains(['*', '?']) {
        matches(pattern, name)
    } else {
        name.starts_with(pattern)
    }
}

/// True when the pattern describes the whole text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on when a letter does not fit: just after the last star, one letter later.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t + 1));
                p += 1;
            }
            Some(b) if *b == b'?' || Some(b) == text.get(t) => {
                p += 1;
                t += 1;
            }
            Some(_) | None => {
                let Some((after_star, next)) = retry else {
                    return false;
                };
                (p, t) = (after_star, next);
                retry = Some((after_star, next + 1));
            }
        }
    }
    pattern.iter().skip(p).all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, text, expected) in [
            ("m5.*", "m5.large", true),
            ("m5.*", "m5a.large", false),
            ("m?.xlarge", "m5.xlarge", true),
            ("m?.xlarge", "m5a.xlarge", false),
            ("*.metal*", "c8g.metal-24xl", true),
            ("*a*b*c", "xxaxxbxbxxc", true),
            ("*a*b*c", "xxaxxbxbxxcd", false),
            ("*", "", true),
            ("?", "", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_plain_name_is_a_prefix() {
        assert!(matches_name("m5", "m5a.large"));
        assert!(!matches_name("m5.", "m5a.large"));
    }
}
