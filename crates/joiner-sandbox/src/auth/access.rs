//! What a request asks for, in the words of rules.

use http::Method;
use joiner_machinery::rbac::Access;
use percent_encoding::percent_decode_str;

use crate::exchange::Request;
use crate::route::{Route, Target, parse};

/// The access that a request needs.
pub(super) fn of(request: &Request) -> Access {
    match parse(&request.path) {
        Route::Objects(target) => to_objects(request, target),
        Route::Health
        | Route::Version
        | Route::CoreVersions
        | Route::Groups
        | Route::Group(_)
        | Route::Kinds { .. }
        | Route::OpenApiV2
        | Route::OpenApiV3
        | Route::OpenApiV3Of { .. }
        | Route::Unknown => {
            let path = percent_decode_str(&request.path).decode_utf8_lossy();
            Access::to_path(&request.method.as_str().to_lowercase(), &path)
        }
    }
}

fn to_objects(request: &Request, target: Target) -> Access {
    let mut name = target.name.unwrap_or_default();
    let verb = match request.method {
        _ if target.watch => "watch",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if name.is_empty() => "deletecollection",
        Method::DELETE => "delete",
        Method::GET | Method::HEAD if !name.is_empty() => "get",
        Method::GET | Method::HEAD if request.flag("watch") => "watch",
        Method::GET | Method::HEAD => "list",
        _ => "",
    };
    if name.is_empty() && ["list", "watch"].contains(&verb) {
        name = one_name(request).unwrap_or_default();
    }
    // A namespace is in itself.
    let is_namespace = target.group.is_empty() && target.plural == "namespaces";
    let namespace = match target.namespace {
        None if is_namespace => name.clone(),
        given => given.unwrap_or_default(),
    };
    let below = target.subresource.unwrap_or_default();
    let below = below.split('/').next().unwrap_or("");
    Access {
        verb: verb.to_owned(),
        path: None,
        group: target.group,
        resource: target.plural,
        subresource: below.to_owned(),
        namespace,
        name,
    }
}

/// The name, where a field selector leaves one only.
fn one_name(request: &Request) -> Option<String> {
    let selector = request.param("fieldSelector")?;
    let name = selector.split(',').find_map(|term| {
        let (field, value) = term.split_once('=')?;
        let value = value.strip_prefix('=').unwrap_or(value);
        (field == "metadata.name").then_some(value)
    })?;
    let is_name = !name.is_empty() && ![".", ".."].contains(&name) && !name.contains(['/', '%']);
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;
    use joiner_machinery::rbac::User;

    fn access(method: &str, target: &str) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = form_urlencoded::parse(query.as_bytes());
        let request = Request {
            method: method.parse().unwrap(),
            path: path.to_owned(),
            query: query.into_owned().collect(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            user: User::administrator(),
        };
        let a = of(&request);
        match &a.path {
            Some(path) => format!("{} {path}", a.verb),
            None => format!(
                "{} {}/{}/{} in {:?} named {:?}",
                a.verb, a.group, a.resource, a.subresource, a.namespace, a.name
            ),
        }
    }

    #[test]
    fn requests_need_what_upstream_says() {
        for (method, target, expected) in [
            ("GET", "/healthz", "get /healthz"),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
            ("POST", "/nope", "post /nope"),
            ("GET", "/api/v1/pods", "list /pods/ in \"\" named \"\""),
            (
                "GET",
                "/api/v1/pods?watch=true",
                "watch /pods/ in \"\" named \"\"",
            ),
            (
                "GET",
                "/api/v1/watch/pods",
                "watch /pods/ in \"\" named \"\"",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx",
                "list /pods/ in \"a\" named \"x\"",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/pods/x",
                "get /pods/ in \"a\" named \"x\"",
            ),
            (
                "GET",
                "/api/v1/namespaces/a",
                "get /namespaces/ in \"a\" named \"a\"",
            ),
            (
                "POST",
                "/api/v1/namespaces/a/pods/x/eviction",
                "create /pods/eviction in \"a\" named \"x\"",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/w/scale",
                "patch apps/deployments/scale in \"a\" named \"w\"",
            ),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods",
                "deletecollection /pods/ in \"a\" named \"\"",
            ),
            (
                "DELETE",
                "/api/v1/nodes/n",
                "delete /nodes/ in \"\" named \"n\"",
            ),
        ] {
            assert_eq!(access(method, target), expected, "{method} {target}");
        }
    }
}
