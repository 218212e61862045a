//! The kubeconfig that opens the HTTPS door.

use std::net::SocketAddr;

/// A kubeconfig with the authority's certificate and the token.
#[must_use]
pub fn render(address: SocketAddr, ca_pem: &str, token: &str) -> String {
    let ca = base64(ca_pem.as_bytes());
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: joiner-sandbox
  cluster:
    server: https://{address}
    certificate-authority-data: {ca}
users:
- name: joiner-sandbox
  user:
    token: {token}
contexts:
- name: joiner-sandbox
  context:
    cluster: joiner-sandbox
    user: joiner-sandbox
current-context: joiner-sandbox
"
    )
}

/// Name of the extension that says where the cluster's autoscaler answers questions.
pub use joiner_api::labels::ours::CONTROLLER;

/// The same kubeconfig, with the address of the autoscaler's own endpoint.
#[must_use]
pub fn with_controller(kubeconfig: &str, url: &str) -> String {
    let extension = format!(
        "    extensions:\n    - name: {CONTROLLER}\n      extension: {{url: '{url}'}}\nusers:\n"
    );
    kubeconfig.replacen("users:\n", &extension, 1)
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            if i <= chunk.len() {
                let letter = (bits >> (18 - 6 * i)) & 63;
                text.push(char::from(LETTERS[letter as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
