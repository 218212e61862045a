//! Which question a path asks.

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health,
    /// `/version`.
    Version,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`: the kinds there.
    Kinds {
        /// Empty for the core group.
        group: String,
        /// Version.
        version: String,
    },
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiV3,
    /// `/openapi/v3/api/v1` or `/openapi/v3/apis/GROUP/VERSION`.
    OpenApiV3Of {
        /// Empty for the core group.
        group: String,
        /// Version.
        version: String,
    },
    /// Objects.
    Objects(Target),
    /// Nothing that is known.
    Unknown,
}

/// Objects of one kind, one object, or something under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name of the kind.
    pub plural: String,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The object.
    pub name: Option<String>,
    /// What is under the object: `status`, `scale`, …
    pub subresource: Option<String>,
    /// The old form of a watch, `/watch/` in the path.
    pub watch: bool,
}

/// Reads a path. As upstream has it, escapes are undone first: an escaped slash is a slash. One slash
/// at the end does not count.
#[must_use]
pub fn parse(path: &str) -> Route {
    let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let path = path.strip_prefix('/').unwrap_or(&path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let parts: Vec<&str> = path.split('/').collect();
    match &parts[..] {
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["version"] => Route::Version,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiV3,
        ["openapi", "v3", "api", version] => Route::OpenApiV3Of {
            group: String::new(),
            version: (*version).to_owned(),
        },
        ["openapi", "v3", "apis", group, version] => Route::OpenApiV3Of {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
        },
        ["api", version] => Route::Kinds {
            group: String::new(),
            version: (*version).to_owned(),
        },
        ["apis", group, version] => Route::Kinds {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
        },
        ["api", version, rest @ ..] => objects("", version, rest),
        ["apis", group, version, rest @ ..] => objects(group, version, rest),
        _ => Route::Unknown,
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Route {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let (namespace, rest) = match rest {
        // These are parts of the namespace itself, not kinds within it.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            (Some((*namespace).to_owned()), rest)
        }
        rest => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(name), None),
        [plural, name, subresource @ ..] if !subresource.is_empty() => {
            (plural, Some(name), Some(subresource.join("/")))
        }
        _ => return Route::Unknown,
    };
    Route::Objects(Target {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: (*plural).to_owned(),
        namespace,
        name: name.map(|name| (*name).to_owned()),
        subresource,
        watch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> String {
        let or = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
        let route = parse(path);
        if let Route::Objects(t) = route {
            return format!(
                "{}/{} {} {} {} {}{}",
                t.group,
                t.version,
                t.plural,
                or(t.namespace),
                or(t.name),
                or(t.subresource),
                if t.watch { " watch" } else { "" }
            );
        }
        format!("{route:?}")
    }

    #[test]
    fn paths_of_objects() {
        for (path, expected) in [
            ("/api/v1/pods", "/v1 pods - - -"),
            ("/api/v1/namespaces", "/v1 namespaces - - -"),
            ("/api/v1/namespaces/shop", "/v1 namespaces - shop -"),
            (
                "/api/v1/namespaces/shop/finalize",
                "/v1 namespaces - shop finalize",
            ),
            ("/api/v1/namespaces/shop/pods", "/v1 pods shop - -"),
            (
                "/api/v1/namespaces/shop/pods/web/log",
                "/v1 pods shop web log",
            ),
            (
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                "apps/v1 deployments a b scale",
            ),
            ("/api/v1/watch/pods", "/v1 pods - - - watch"),
            ("/api/v1/nodes/a%20b", "/v1 nodes - a b -"),
            ("/api/v1/nodes/a%2Fb", "/v1 nodes - a b"),
            ("/api/v1/nodes/", "/v1 nodes - - -"),
            (
                "/apis/karpenter.sh/v1/nodepools/x",
                "karpenter.sh/v1 nodepools - x -",
            ),
        ] {
            assert_eq!(target(path), expected, "{path}");
        }
    }

    #[test]
    fn other_paths() {
        assert_eq!(parse("/healthz/ping"), Route::Health);
        assert_eq!(parse("/apis/apps"), Route::Group("apps".to_owned()));
        assert_eq!(parse("/"), Route::Unknown);
        assert_eq!(parse("/nope"), Route::Unknown);
        let kinds = Route::Kinds {
            group: String::new(),
            version: "v1".to_owned(),
        };
        assert_eq!(parse("/api/v1"), kinds);
    }
}
