//! What operators need to know about a certificate: subject, key and validity.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::ObjectIdentifier;

use super::{Error, read_chain};

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC_CURVE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
/// Curves by their object identifier.
const CURVES: [(&str, &str); 3] = [
    ("1.2.840.10045.3.1.7", "ECDSA P-256"),
    ("1.3.132.0.34", "ECDSA P-384"),
    ("1.3.132.0.35", "ECDSA P-521"),
];
/// Bytes of an encoded RSA public key beside its modulus.
const RSA_OVERHEAD_BYTES: usize = 14;

/// Subject, public key and validity of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateDetails {
    pub subject: String,
    /// Such as `RSA 2048` or `ECDSA P-256`.
    pub public_key: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

impl CertificateDetails {
    pub(super) fn parse(der: &CertificateDer<'_>) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?;
        let content = &certificate.tbs_certificate;
        Some(Self {
            subject: content.subject.to_string(),
            public_key: public_key(&certificate),
            not_before: timestamp(content.validity.not_before.to_unix_duration())?,
            not_after: timestamp(content.validity.not_after.to_unix_duration())?,
        })
    }

    pub(super) fn is_valid_at(&self, now: UnixTime) -> bool {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        (self.not_before.as_second()..=self.not_after.as_second()).contains(&now)
    }
}

/// Reads the details of every certificate in a PEM file.
pub fn read_details(path: &Path) -> Result<Vec<CertificateDetails>, Error> {
    let details = read_chain(path)?;
    let details = details.iter().map(CertificateDetails::parse);
    let details: Option<Vec<_>> = details.collect();
    details.ok_or_else(|| Error::Certificates(path.to_owned()))
}

fn timestamp(since_1970: Duration) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(since_1970.as_secs()).ok()?).ok()
}

fn public_key(certificate: &Certificate) -> String {
    let key = &certificate.tbs_certificate.subject_public_key_info;
    match key.algorithm.oid {
        RSA => {
            let bytes = key.subject_public_key.raw_bytes().len();
            // The modulus has a multiple of 64 bits; the exponent and the lengths around it vary by a few bytes.
            let modulus = bytes.saturating_sub(RSA_OVERHEAD_BYTES).next_multiple_of(8);
            format!("RSA {}", 8 * modulus)
        }
        ELLIPTIC_CURVE => {
            let curve = key.algorithm.parameters.as_ref();
            let curve = curve.and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok());
            let curve = curve.map(|curve| curve.to_string()).unwrap_or_default();
            let known = CURVES.iter().find(|(oid, _)| *oid == curve);
            known.map_or("ECDSA", |(_, name)| name).to_owned()
        }
        ED25519 => "Ed25519".to_owned(),
        other => other.to_string(),
    }
}
