//! The sandbox's own certificate authority, and the kubeconfig that goes with it.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// What went wrong while making certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate could not be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    /// The certificate could not be used.
    #[error("cannot use the certificate")]
    Use(#[from] rustls::Error),
    /// The key could not be read back.
    #[error("cannot read the key")]
    Key(#[from] rustls_pki_types::pem::Error),
}

/// A certificate authority and a server certificate for the loopback addresses.
pub struct Certificates {
    /// The authority's certificate, PEM.
    pub ca_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Certificates {
    /// Makes both anew.
    pub fn make() -> Result<Self, CertificateError> {
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        ca.distinguished_name
            .push(rcgen::DnType::CommonName, "joiner-sandbox");
        let ca_certificate = ca.self_signed(&ca_key)?;
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate()?;
        let names = ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"];
        let server = CertificateParams::new(names.map(str::to_owned))?;
        let certificate = server.signed_by(&key, &issuer)?;
        Ok(Self {
            ca_pem: ca_certificate.pem(),
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes())?,
        })
    }

    /// Settings for the server side of TLS, HTTP/2 and HTTP/1.1.
    pub fn server_config(&self) -> Result<rustls::ServerConfig, CertificateError> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let mut config = rustls::ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
