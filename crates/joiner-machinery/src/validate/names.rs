//! The shapes of names, keys and values, and what upstream says of a text that has another.

/// What is wrong with a text; empty when nothing is.
pub type Complaints = Vec<String>;

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

/// True for the inside of a DNS label.
fn is_dns(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// True for a lower-case DNS label of any length.
fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| is_dns(*b))
        && bytes.last().is_some_and(|b| is_dns(*b))
        && bytes.iter().all(|b| is_dns(*b) || *b == b'-')
}

/// True for the middle part of a label key or a label value.
fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Names are counted in characters, keys and values in bytes: they are the same here, the words
/// differ.
fn too_long(max: usize, unit: &str) -> String {
    format!("must be no more than {max} {unit}")
}

/// The sentence about a regular expression, with examples.
fn pattern(what: &str, examples: &[&str], regex: &str) -> String {
    let quoted: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    let examples = quoted.join(" or ");
    format!("{what} (e.g. {examples}regex used for validation is '{regex}')")
}

/// A lower-case DNS label: namespaces, containers, volumes.
#[must_use]
pub fn dns_label(text: &str) -> Complaints {
    let mut all = Vec::new();
    if text.len() > LABEL_MAX {
        all.push(too_long(LABEL_MAX, "characters"));
    }
    if !is_dns_label(text) {
        if dns_subdomain(text).is_empty() {
            all.push("must not contain dots".to_owned());
        } else {
            all.push(pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character",
                &["my-name", "123-abc"],
                "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
            ));
        }
    }
    all
}

/// A lower-case DNS name: most objects.
#[must_use]
pub fn dns_subdomain(text: &str) -> Complaints {
    let mut all = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        all.push(too_long(SUBDOMAIN_MAX, "characters"));
    }
    if !text.split('.').all(is_dns_label) {
        all.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            &["example.com"],
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        ));
    }
    all
}

/// A DNS label that starts with a letter: custom kinds.
#[must_use]
pub fn dns_1035_label(text: &str) -> Complaints {
    let mut all = Vec::new();
    if text.len() > LABEL_MAX {
        all.push(too_long(LABEL_MAX, "characters"));
    }
    let starts = text.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    if !starts || !is_dns_label(text) {
        all.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
            &["my-name", "abc-123"],
            "[a-z]([-a-z0-9]*[a-z0-9])?",
        ));
    }
    all
}

/// A key of labels, annotations, taints, resources: an optional DNS name, a slash, a word.
#[must_use]
pub fn qualified(text: &str) -> Complaints {
    let mut all = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "{} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')",
                name_rule("a valid label key ")
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                all.push("prefix part must be non-empty".to_owned());
            } else {
                let complaints = dns_subdomain(prefix);
                // A key is counted in bytes.
                let in_bytes = |c: &String| match c.strip_suffix(" characters") {
                    Some(c) => format!("prefix part {c} bytes"),
                    None => format!("prefix part {c}"),
                };
                all.extend(complaints.iter().map(in_bytes));
            }
            name
        }
    };
    if name.is_empty() {
        all.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        all.push(format!("name part {}", too_long(LABEL_MAX, "bytes")));
    }
    if !is_word(name) {
        all.push(name_rule("name part "));
    }
    all
}

fn name_rule(start: &str) -> String {
    pattern(
        &format!(
            "{start}must consist of alphanumeric characters, '-', '_' or '.', and must start and \
             end with an alphanumeric character"
        ),
        &["MyName", "my.name", "123-abc"],
        "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    )
}

/// A value of a label. The empty one is fine.
#[must_use]
pub fn label_value(text: &str) -> Complaints {
    let mut all = Vec::new();
    if text.len() > LABEL_MAX {
        all.push(too_long(LABEL_MAX, "bytes"));
    }
    if !text.is_empty() && !is_word(text) {
        all.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character",
            &["MyValue", "my_value", "12345"],
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
        ));
    }
    all
}

/// A key of a ConfigMap or Secret.
#[must_use]
pub fn config_key(text: &str) -> Complaints {
    let mut all = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        all.push(too_long(SUBDOMAIN_MAX, "characters"));
    }
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(fits) {
        all.push(pattern(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            &["key.name", "KEY_NAME", "key-name"],
            "[-._a-zA-Z0-9]+",
        ));
    }
    match text {
        "." => all.push("must not be '.'".to_owned()),
        ".." => all.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => all.push("must not start with '..'".to_owned()),
        _ => {}
    }
    all
}

/// The name of an environment variable.
#[must_use]
pub fn env_name(text: &str) -> Complaints {
    let fits = |b: u8| (b' '..=b'~').contains(&b) && b != b'=';
    if !text.is_empty() && text.bytes().all(fits) {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other \
         than '='"
            .to_owned(),
    ]
}

/// The name of a port: at most 15 of `[a-z0-9-]`, with a letter.
#[must_use]
pub fn port_name(text: &str) -> Complaints {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    if text.len() > 15 {
        all.push("must be no more than 15 characters".to_owned());
    }
    if !bytes.iter().all(|b| is_dns(*b) || *b == b'-') || text.is_empty() {
        all.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !bytes.iter().any(u8::is_ascii_lowercase) {
        all.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        all.push("must not contain consecutive hyphens".to_owned());
    }
    if bytes.first() == Some(&b'-') || bytes.last() == Some(&b'-') {
        all.push("must not begin or end with a hyphen".to_owned());
    }
    all
}

/// A name that goes into a path: anything but a few signs. Roles and bindings have it.
#[must_use]
pub fn path_segment(text: &str) -> Complaints {
    match text {
        "." => vec!["may not be '.'".to_owned()],
        ".." => vec!["may not be '..'".to_owned()],
        _ => ["/", "%"]
            .into_iter()
            .filter(|sign| text.contains(sign))
            .map(|sign| format!("may not contain '{sign}'"))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_upstreams() {
        assert_eq!(
            dns_label("A"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
              and must start and end with an alphanumeric character (e.g. 'my-name',  or \
              '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(
            dns_subdomain("A"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
              '-' or '.', and must start and end with an alphanumeric character (e.g. \
              'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(
            label_value("_b"),
            [
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
              or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
              'my_value',  or '12345', regex used for validation is \
              '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ]
        );
    }

    #[test]
    fn shapes() {
        for (check, good, bad) in [
            (dns_label as fn(&str) -> Complaints, "a-1", "-a"),
            (dns_subdomain, "a.b-c", "a..b"),
            (dns_1035_label, "a1", "1a"),
            (qualified, "example.com/A_b", "a/b/c"),
            (qualified, "a", "/a"),
            (label_value, "", "a/b"),
            (config_key, "a.b", "a/b"),
            (config_key, ".a", "..a"),
            (env_name, "A_B", "A=B"),
            (port_name, "http-1", "8080"),
            (path_segment, "system:node", "a/b"),
        ] {
            assert_eq!(check(good), Vec::<String>::new(), "{good}");
            assert!(!check(bad).is_empty(), "{bad}");
        }
    }
}
