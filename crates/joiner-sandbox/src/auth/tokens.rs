//! Tokens of service accounts: JSON web tokens that this server signs and reads.

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use joiner_machinery::rbac::{NODE_NAME_KEY, NODE_UID_KEY, POD_NAME_KEY, POD_UID_KEY, User};
use joiner_machinery::{ApiError, Reason, meta};
use serde_json::{Value, json};

use super::Shown;
use crate::server::Server;

/// For whom tokens are unless they say otherwise, and who issues them.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";
/// Who issues the tokens that are kept in Secrets.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// How far clocks may be apart.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// The key that signs tokens.
pub(super) struct Keys(EcdsaKeyPair);

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// A new key; `None` when the system gives no randomness.
    pub(super) fn make() -> Option<Self> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
        pair.ok().map(Self)
    }

    pub(super) fn sign(&self, claims: &Value) -> Result<String, ApiError> {
        let head = json!({"alg": "ES256", "typ": "JWT"});
        let code = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", code(&head), code(claims));
        let signature = self.0.sign(&SystemRandom::new(), text.as_bytes());
        let signature = signature.map_err(|_| {
            ApiError::new(
                Reason::InternalError,
                "failed to generate token: no signature",
            )
        })?;
        Ok(format!(
            "{text}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(signature)
        ))
    }

    /// The claims of a token that this key has signed.
    fn verify(&self, token: &str) -> Option<Value> {
        let (text, signature) = token.rsplit_once('.')?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = self.0.public_key().as_ref();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public);
        public.verify(text.as_bytes(), &signature).ok()?;
        claims_of(token)
    }
}

/// What a token says, whoever signed it.
fn claims_of(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let claims = parts.nth(1)?;
    let is_whole = parts.next().is_some() && parts.next().is_none();
    let text = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
    serde_json::from_slice(&text).ok().filter(|_| is_whole)
}

/// True for equal texts, in a time that does not tell where they differ.
pub(super) fn same(one: &str, other: &str) -> bool {
    let equal = aws_lc_rs::constant_time::verify_slices_are_equal;
    equal(one.as_bytes(), other.as_bytes()).is_ok()
}

/// An object that a token lives no longer than.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// `pod`, `node` or `secret`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// What a token of a service account says.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// `None` for the tokens in Secrets, which do not expire.
    pub(crate) times: Option<Times>,
    pub(crate) bound: Vec<Bound>,
}

/// From when till when, for whom, and a number of its own.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    pub(crate) now: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) audiences: Vec<String>,
    pub(crate) id: String,
}

impl Claims {
    pub(super) fn to_json(&self) -> Value {
        let subject = format!("system:serviceaccount:{}:{}", self.namespace, self.name);
        let Some(times) = &self.times else {
            let secret = self.bound.first().map_or("", |secret| secret.name.as_str());
            return json!({"iss": LEGACY_ISSUER, "sub": subject,
                "kubernetes.io/serviceaccount/namespace": self.namespace,
                "kubernetes.io/serviceaccount/secret.name": secret,
                "kubernetes.io/serviceaccount/service-account.name": self.name,
                "kubernetes.io/serviceaccount/service-account.uid": self.uid});
        };
        let mut own = json!({"namespace": self.namespace,
            "serviceaccount": {"name": self.name, "uid": self.uid}});
        for bound in &self.bound {
            own[bound.kind] = json!({"name": bound.name, "uid": bound.uid});
        }
        json!({"aud": times.audiences, "exp": times.until.as_second(),
            "iat": times.now.as_second(), "iss": AUDIENCE, "jti": times.id, "kubernetes.io": own,
            "nbf": times.now.as_second(), "sub": subject})
    }
}

/// Reads a token of a service account.
pub(super) fn read(server: &Server, token: &str, audiences: &[String]) -> Result<Shown, String> {
    let unknown = || "invalid bearer token".to_owned();
    let refused = |why: String| format!("[invalid bearer token, {why}]");
    let claims = claims_of(token).ok_or_else(unknown)?;
    let issuer = claims["iss"].as_str().unwrap_or("");
    if ![AUDIENCE, LEGACY_ISSUER].contains(&issuer) {
        return Err(unknown());
    }
    let keys = server.credentials.keys().map_err(|error| error.message)?;
    let signed = keys.verify(token);
    let claims = signed.ok_or_else(|| {
        refused("failed to verify the signature of the token: it was not signed here".to_owned())
    })?;
    let shown = match issuer == LEGACY_ISSUER {
        true => read_kept(server, token, &claims, audiences),
        false => read_issued(server, &claims, audiences),
    };
    shown.map_err(refused)
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or("")
}

/// An object of the core group.
fn find(server: &Server, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
    let resource = (String::new(), plural.to_owned());
    let key = (namespace.to_owned(), name.to_owned());
    server.store.with(|s| s.get(&resource, &key).cloned())
}

/// True for objects that are going, and were to be gone a while ago.
fn is_gone(server: &Server, object: &Value) -> bool {
    let at = object["metadata"]["deletionTimestamp"].as_str();
    let at = at.and_then(meta::parse_time);
    at.is_some_and(|at| at < server.clock.now() - LEEWAY)
}

/// The account that a token is of, if it is still that one.
fn account(server: &Server, namespace: &str, name: &str, uid: &str) -> Result<(), String> {
    let found = find(server, "serviceaccounts", namespace, name);
    let found = found.ok_or_else(|| format!("serviceaccounts \"{name}\" not found"))?;
    let now = meta::uid(&found);
    if now != uid {
        return Err(format!(
            "service account UID ({now}) does not match claim ({uid})"
        ));
    }
    match is_gone(server, &found) {
        true => Err(format!(
            "service account {namespace}/{name} has been deleted"
        )),
        false => Ok(()),
    }
}

/// A token that was asked for.
fn read_issued(server: &Server, claims: &Value, audiences: &[String]) -> Result<Shown, String> {
    let meant = claims["aud"].as_array().into_iter().flatten();
    let meant: Vec<&str> = meant.filter_map(Value::as_str).collect();
    let both = audiences.iter().filter(|own| meant.contains(&own.as_str()));
    let both: Vec<String> = both.cloned().collect();
    if both.is_empty() {
        let list = |all: &[&str]| {
            let all: Vec<String> = all.iter().map(|one| format!("{one:?}")).collect();
            format!("[{}]", all.join(" "))
        };
        let wanted: Vec<&str> = audiences.iter().map(String::as_str).collect();
        return Err(format!(
            "token audiences {} is invalid for the target audiences {}",
            list(&meant),
            list(&wanted)
        ));
    }
    let now = server.clock.now();
    let time = |field: &str| {
        let second = claims[field].as_i64().unwrap_or(0);
        Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH)
    };
    if now > time("exp") + LEEWAY {
        return Err("service account token has expired".to_owned());
    }
    if now < time("nbf") - LEEWAY {
        return Err("service account token is not valid yet".to_owned());
    }
    let own = &claims["kubernetes.io"];
    let namespace = text(own, "namespace");
    let (name, uid) = (
        text(&own["serviceaccount"], "name"),
        text(&own["serviceaccount"], "uid"),
    );
    account(server, namespace, name, uid)?;
    let mut user = User::service_account(namespace, name, uid);
    let credential = vec![format!("JTI={}", text(claims, "jti"))];
    user.extra.insert(CREDENTIAL.to_owned(), credential);
    check_bound(server, own, namespace)?;
    for (kind, name_key, uid_key) in [
        ("pod", POD_NAME_KEY, POD_UID_KEY),
        ("node", NODE_NAME_KEY, NODE_UID_KEY),
    ] {
        for (field, key) in [("name", name_key), ("uid", uid_key)] {
            if let Some(value) = own[kind][field].as_str().filter(|value| !value.is_empty()) {
                user.extra.insert(key.to_owned(), vec![value.to_owned()]);
            }
        }
    }
    Ok(Shown {
        user,
        audiences: both,
    })
}

/// A token ends with what it is bound to. The node of a pod's token may change.
fn check_bound(server: &Server, own: &Value, namespace: &str) -> Result<(), String> {
    let of_pod = own["pod"].is_object();
    for (kind, plural, namespace) in [
        ("secret", "secrets", namespace),
        ("pod", "pods", namespace),
        ("node", "nodes", ""),
    ] {
        let bound = &own[kind];
        if !bound.is_object() || (kind == "node" && of_pod) {
            continue;
        }
        let found = find(server, plural, namespace, text(bound, "name"));
        let found = found.filter(|found| !is_gone(server, found));
        let found = found.ok_or("service account token has been invalidated")?;
        let (now, uid) = (meta::uid(&found), text(bound, "uid"));
        if now != uid {
            let shown = format!("{}{}", kind[..1].to_uppercase(), &kind[1..]);
            let shown = if kind == "secret" { kind } else { &shown };
            return Err(format!(
                "{shown} UID ({now}) does not match service account {kind} ref claim ({uid})"
            ));
        }
    }
    Ok(())
}

/// A token that a Secret keeps.
fn read_kept(
    server: &Server,
    token: &str,
    claims: &Value,
    audiences: &[String],
) -> Result<Shown, String> {
    if !audiences.iter().any(|one| one == AUDIENCE) {
        return Err("token audiences do not match".to_owned());
    }
    let own =
        |field: &str| text(claims, &format!("kubernetes.io/serviceaccount/{field}")).to_owned();
    let namespace = own("namespace");
    let (name, uid) = (own("service-account.name"), own("service-account.uid"));
    let secret = find(server, "secrets", &namespace, &own("secret.name"));
    let invalid = || "service account token has been invalidated".to_owned();
    let secret = secret
        .filter(|secret| !meta::is_deleting(secret))
        .ok_or_else(invalid)?;
    let kept = base64::prelude::BASE64_STANDARD.decode(text(&secret["data"], "token"));
    if kept.unwrap_or_default() != token.as_bytes() {
        return Err("service account token does not match server's copy".to_owned());
    }
    account(server, &namespace, &name, &uid)?;
    Ok(Shown {
        user: User::service_account(&namespace, &name, &uid),
        audiences: vec![AUDIENCE.to_owned()],
    })
}
