//! The shapes of names, keys and label values that Kubernetes accepts.
//!
//! Each question is answered with what is wrong, to be put after the text in question.

/// Longest name of an object, and longest prefix of a key.
const SUBDOMAIN_MAX: usize = 253;
/// Longest name part of a key, and longest label value.
const LABEL_MAX: usize = 63;

/// Why a text cannot be the name of an object.
#[must_use]
pub fn object_name_error(name: &str) -> Option<&'static str> {
    if name.len() > SUBDOMAIN_MAX {
        return Some("must have at most 253 characters");
    }
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.first().is_some_and(is_end)
            && bytes.last().is_some_and(is_end)
            && bytes.iter().all(|byte| is_end(byte) || *byte == b'-')
    };
    if name.split('.').all(is_part) {
        None
    } else {
        Some(
            "must be lower case letters, digits, '-' and '.', with a letter or digit at both ends \
             of each part",
        )
    }
}

/// Why a text cannot be a label or taint key.
#[must_use]
pub fn key_error(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| object_name_error(prefix).is_some()) {
        return Some("must have a DNS name of at most 253 characters before the slash");
    }
    if name.is_empty() {
        return Some("must not be empty");
    }
    if name.len() > LABEL_MAX {
        return Some("must have at most 63 characters after the slash");
    }
    word_error(name)
}

/// Why a text cannot be a label value. The empty one can.
#[must_use]
pub fn label_value_error(value: &str) -> Option<&'static str> {
    if value.len() > LABEL_MAX {
        return Some("must have at most 63 characters");
    }
    if value.is_empty() {
        None
    } else {
        word_error(value)
    }
}

fn word_error(word: &str) -> Option<&'static str> {
    let bytes = word.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let fits = ends
        .iter()
        .all(|byte| byte.is_some_and(u8::is_ascii_alphanumeric))
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if fits {
        None
    } else {
        Some("must be letters, digits, '-', '_' and '.', with a letter or digit at both ends")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_names() {
        for name in ["a", "default", "a-b.c-1", "0"] {
            assert_eq!(object_name_error(name), None, "{name}");
        }
        let long = "a".repeat(254);
        for name in ["", "A", "a_b", "-a", "a-", "a..b", ".a", long.as_str()] {
            assert!(object_name_error(name).is_some(), "{name}");
        }
    }

    #[test]
    fn keys_and_values() {
        for key in ["a", "example.com/A_b.c", "karpenter.sh/nodepool"] {
            assert_eq!(key_error(key), None, "{key}");
        }
        let long = "a".repeat(64);
        let long_prefix = format!("{}/a", "a".repeat(254));
        for key in [
            "",
            "/a",
            "a/",
            "a/b/c",
            "UPPER.com/a",
            "a b",
            "-a",
            &long,
            &long_prefix,
        ] {
            assert!(key_error(key).is_some(), "{key}");
        }
        assert_eq!(label_value_error(""), None);
        assert_eq!(label_value_error("v1.2_3-x"), None);
        assert!(label_value_error(&long).is_some());
        assert!(label_value_error("a/b").is_some());
    }
}
