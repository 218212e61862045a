//! Names as users type them: what cannot be one is told before anybody is asked.

use anyhow::bail;

/// Most letters of a name, and of a part between dots.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;
/// What a name looks like.
const RULE: &str = "lower case letters, digits, - and ., with a letter or digit at both ends";

/// `namespace/name`, or a name that stands for itself.
pub(super) fn of_pod(typed: &str, namespace: Option<&str>) -> anyhow::Result<String> {
    let (in_name, name) = match typed.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, typed),
    };
    if !is_name(name) {
        bail!("{typed:?} cannot be the name of a pod: give NAME or NAMESPACE/NAME, each of {RULE}");
    }
    let namespace = namespace.or(in_name);
    if let Some(namespace) = [namespace, in_name]
        .into_iter()
        .flatten()
        .find(|own| !is_label(own))
    {
        bail!(
            "{namespace:?} cannot be the name of a namespace: it has 1 to {LABEL_MAX} lower case \
             letters, digits and -, with a letter or digit at both ends"
        );
    }
    Ok(match namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    })
}

/// The name of a node or of its claim.
pub(super) fn of_node(typed: &str) -> anyhow::Result<&str> {
    if !is_name(typed) {
        bail!("{typed:?} cannot be the name of a node: a name has {RULE}");
    }
    Ok(typed)
}

/// A subdomain of RFC 1123.
fn is_name(text: &str) -> bool {
    text.len() <= NAME_MAX && text.split('.').all(is_part)
}

/// A label of RFC 1123.
fn is_label(text: &str) -> bool {
    text.len() <= LABEL_MAX && is_part(text)
}

fn is_part(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| is_plain(*byte))
        && bytes.last().is_some_and(|byte| is_plain(*byte))
        && bytes.iter().all(|byte| is_plain(*byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_and_others_refused() {
        let pod = |typed, namespace| of_pod(typed, namespace).ok();
        assert_eq!(pod("web-0", None).as_deref(), Some("web-0"));
        assert_eq!(pod("shop/web.v1", None).as_deref(), Some("shop/web.v1"));
        assert_eq!(pod("web-0", Some("shop")).as_deref(), Some("shop/web-0"));
        assert_eq!(pod("a/web", Some("b")).as_deref(), Some("b/web"));
        for wrong in [
            "", "/", "a/", "/a", "a/b/c", "../../x", "Web", "web-", "web?x=1", "a b", "a.b/c", ".",
        ] {
            let error = of_pod(wrong, None).unwrap_err().to_string();
            assert!(error.contains("cannot be the name of"), "{error}");
        }
        assert!(of_pod("web", Some("")).is_err() && of_pod("web", Some("a/b")).is_err());
        assert!(of_node("ip-10-0-0-1.ec2.internal").is_ok());
        let long = "a".repeat(254);
        for wrong in ["", "a/b", "..", "N", &long] {
            assert!(of_node(wrong).is_err(), "{wrong}");
        }
    }
}
