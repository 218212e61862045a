//! What Kubernetes accepts as label keys and values.

/// True for `name` or `prefix.example.com/name`.
pub(crate) fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_domain(prefix) && is_name(name),
        None => is_name(text),
    }
}

/// True for something that a label can have as its value.
pub(crate) fn is_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && edge(text.as_bytes().first())
        && edge(text.as_bytes().last())
        && text.bytes().all(inner)
}

fn is_domain(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.len() <= 253 && text.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values() {
        for good in ["a", "a.b/c", "karpenter.sh/nodepool", "A_b-c.9"] {
            assert!(is_key(good), "{good}");
        }
        for bad in ["", "/", "a/", "/b", "a/b/c", "-a", "a b", "A.b/c", "a..b/c"] {
            assert!(!is_key(bad), "{bad}");
        }
        assert!(is_value("") && is_value("x") && !is_value("-x") && !is_value(&"x".repeat(64)));
    }
}
