//! What a request must be like to be answered: short enough, and for decisions meant for this machine.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;

use crate::connections::Peer;
use crate::http::HttpSettings;

/// Bytes of a request's body. Nothing here reads one.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Refuses bodies that are too large.
pub(crate) async fn bounded(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let too_large = || {
        let text = format!("the body is larger than {BODY_BYTES_MAX} bytes");
        (StatusCode::PAYLOAD_TOO_LARGE, text).into_response()
    };
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return too_large();
    }
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => {
            let body = Body::from(body.to_bytes());
            next.run(Request::from_parts(parts, body)).await
        }
        Err(error) if error.is::<LengthLimitError>() => too_large(),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the body did not come").into_response(),
    }
}

/// Who is shown decisions.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// The address that we listen on, if it is one.
    bound: Option<IpAddr>,
    /// Names under which others may ask.
    names: Vec<String>,
}

impl Guard {
    pub(crate) fn new(settings: &HttpSettings) -> Self {
        Self {
            bound: settings.address.filter(|address| !address.is_unspecified()),
            names: settings.debug_hosts.clone(),
        }
    }

    /// Whether a client at this address may ask at all.
    fn admits(&self, peer: IpAddr) -> bool {
        peer.to_canonical().is_loopback() || !self.names.is_empty()
    }

    /// Whether a name is one of ours. A page in a browser on this machine may have any name point
    /// here; only names that nobody else can have point here are answered.
    fn knows(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        if host.contains('@') {
            return false;
        }
        let name = authority.host();
        let plain = name.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = plain.parse::<IpAddr>() {
            let address = address.to_canonical();
            let is_bound = self.bound.map(|bound| bound.to_canonical()) == Some(address);
            if address.is_loopback() || is_bound {
                return true;
            }
        }
        let mut names = self.names.iter().map(String::as_str);
        name.eq_ignore_ascii_case("localhost")
            || names.any(|known| known.eq_ignore_ascii_case(plain))
    }
}

/// The names by which a request calls us.
fn hosts<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Vec<&'a str> {
    let given = headers.get_all(header::HOST).into_iter();
    // What cannot be read is no name of ours.
    let given = given.map(|host| host.to_str().unwrap_or_default());
    let authority = uri.authority().map(Authority::as_str);
    authority.into_iter().chain(given).collect()
}

/// Refuses requests from other machines and under names that are not ours.
pub(crate) async fn only_known_names(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>();
    let peer: Option<SocketAddr> = peer.map(|peer| peer.0);
    if !peer.is_some_and(|peer| guard.admits(peer.ip())) {
        let text = "decisions are shown on this machine only: use kubectl port-forward, or start \
                    with --debug-hosts";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    let hosts = hosts(request.uri(), request.headers());
    let unknown = hosts.iter().find(|host| !guard.knows(host));
    if let Some(host) = unknown {
        let text = format!(
            "decisions are not shown under the name {host:?}: ask for localhost, or name it with \
             --debug-hosts"
        );
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    if hosts.is_empty() {
        let text = "decisions are shown under the name localhost: send a Host header";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(bound: Option<&str>, names: &[&str]) -> Guard {
        let names = names.iter().map(|name| (*name).to_owned());
        Guard::new(&HttpSettings {
            address: bound.map(|address| address.parse().unwrap()),
            debug_hosts: names.collect(),
            ..HttpSettings::default()
        })
    }

    #[test]
    fn only_names_that_cannot_point_elsewhere_are_ours() {
        let plain = guard(Some("0.0.0.0"), &[]);
        for host in [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
        ] {
            assert!(plain.knows(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8080",
            "localhost@evil.example",
            "evil.example@localhost",
            "10.0.0.5",
            "0.0.0.0:8080",
            "[::]:8080",
            "a b",
        ] {
            assert!(!plain.knows(host), "{host}");
        }
        let bound = guard(Some("10.0.0.5"), &[]);
        assert!(bound.knows("10.0.0.5:8080") && !bound.knows("10.0.0.6:8080"));
        let named = guard(None, &["joiner.kube-system"]);
        assert!(named.knows("joiner.kube-system:8080") && named.knows("localhost"));
        assert!(!named.knows("joiner.evil.example"));
    }

    #[test]
    fn other_machines_are_shown_nothing_unless_names_are_given() {
        let (here, there) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 9]));
        let plain = guard(None, &[]);
        assert!(plain.admits(here) && !plain.admits(there));
        assert!(guard(None, &["joiner"]).admits(there));
    }
}
