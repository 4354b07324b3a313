//! The CA of the cluster and the certificates of its machines.

use std::path::Path;

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    pub(crate) fn create() -> Result<Self> {
        let mut params = named("Cloakroom faults", &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// The CA certificate.
    pub(crate) fn pem(&self) -> &str {
        &self.certificate
    }

    /// Writes `ca.crt`, `server.crt`, `server.key` and both in `server.pem`.
    pub(crate) fn provision(&self, folder: &Path, names: &[&str]) -> Result<()> {
        let key = KeyPair::generate()?;
        let mut params = named(names[0], names)?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        let key = key.serialize_pem();
        std::fs::write(folder.join("ca.crt"), &self.certificate)?;
        std::fs::write(folder.join("server.crt"), &certificate)?;
        super::files::write_private(&folder.join("server.key"), &key)?;
        super::files::write_private(&folder.join("server.pem"), &format!("{certificate}{key}"))
    }
}

fn named(common_name: &str, names: &[&str]) -> Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    // Valid for nodes with shifted clocks.
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2049, 12, 31);
    Ok(params)
}
