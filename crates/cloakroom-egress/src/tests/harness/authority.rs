//! A certificate authority.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

pub(in crate::tests) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// A certificate with its key.
pub(in crate::tests) struct Leaf {
    pub(in crate::tests) certificate: String,
    pub(in crate::tests) key: String,
}

impl Authority {
    pub(in crate::tests) fn new() -> Self {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "Test CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
            folder: TempDir::new().unwrap(),
        }
    }

    /// The PEM file with the certificate of the authority.
    pub(in crate::tests) fn file(&self) -> PathBuf {
        self.write("ca.pem", &self.issuer.pem())
    }

    pub(in crate::tests) fn certificate(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    pub(in crate::tests) fn issue(&self, name: &str) -> Leaf {
        self.issue_with(name, |_| {})
    }

    pub(in crate::tests) fn issue_expired(&self, name: &str) -> Leaf {
        self.issue_with(name, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        })
    }

    fn issue_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Leaf {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Leaf {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    pub(in crate::tests) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Leaf {
    pub(in crate::tests) fn self_signed(name: &str) -> Self {
        let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        Self {
            certificate: certified.cert.pem(),
            key: certified.signing_key.serialize_pem(),
        }
    }

    pub(in crate::tests) fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()]
    }

    pub(in crate::tests) fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap()
    }
}
