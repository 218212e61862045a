//! The tokens of service accounts that are kept in Secrets.
//!
//! A Secret of type `kubernetes.io/service-account-token` that names an account gets the account's uid,
//! a token, the namespace and the certificate to trust. One whose account is gone is deleted.

use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::fields;
use crate::view::{Action, Controller, Resource, Step, View};

const SECRETS: Resource = ("", "secrets");
const ACCOUNTS: Resource = ("", "serviceaccounts");
const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

/// Makes the token of an account for a Secret: `(account, secret) -> token`.
pub type MakeToken = Box<dyn Fn(&Value, &Value) -> Option<String> + Send>;

/// The controller of Secrets with tokens.
pub struct AccountTokens {
    ca: String,
    make: MakeToken,
    encode: fn(&[u8]) -> String,
}

impl AccountTokens {
    /// With the certificate that clients are to trust, in PEM, who makes tokens, and base 64.
    #[must_use]
    pub fn new(ca: impl Into<String>, make: MakeToken, encode: fn(&[u8]) -> String) -> Self {
        Self {
            ca: ca.into(),
            make,
            encode,
        }
    }

    fn look(&self, view: &View<'_>, secret: &Value) -> Option<Action> {
        let name = meta::annotation(secret, NAME).unwrap_or("");
        let uid = meta::annotation(secret, UID).unwrap_or("");
        let account = view.get(ACCOUNTS, meta::namespace(secret), name);
        let account = account.filter(|own| uid.is_empty() || uid == meta::uid(own));
        let Some(account) = account else {
            return Some(fields::delete(SECRETS, secret, None));
        };
        let data = &secret["data"];
        let mut wanted = json!({});
        let mut want = |key: &str, text: &str| {
            let coded = json!((self.encode)(text.as_bytes()));
            if data[key].as_str().is_none_or(str::is_empty) && !text.is_empty() {
                wanted[key] = coded;
            }
        };
        want("ca.crt", &self.ca);
        want("namespace", meta::namespace(secret));
        if data["token"].as_str().is_none_or(str::is_empty) {
            want("token", &(self.make)(account, secret)?);
        }
        let is_named = uid == meta::uid(account);
        if is_named && wanted.as_object().is_some_and(serde_json::Map::is_empty) {
            return None;
        }
        let annotations = json!({UID: meta::uid(account)});
        let patch = json!({"metadata": {"annotations": annotations}, "data": wanted});
        Some(fields::patch(SECRETS, secret, patch))
    }
}

impl Controller for AccountTokens {
    fn name(&self) -> &'static str {
        "tokens-controller"
    }

    fn reads(&self) -> &'static [Resource] {
        &[SECRETS, ACCOUNTS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        let secrets = view.all(SECRETS).filter(|secret| secret["type"] == TYPE);
        let secrets = secrets.filter(|secret| !meta::is_deleting(secret));
        Step {
            actions: secrets
                .filter_map(|secret| self.look(view, secret))
                .collect(),
            wake: None,
        }
    }
}
