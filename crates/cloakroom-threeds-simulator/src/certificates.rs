//! Certificates of the simulator and the 3DS Server, issued by a CA whose key is discarded.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, date_time_ymd,
};
use tokio_rustls::rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

use crate::Error;

const CA: &str = "ca.pem";
const DIRECTORY_SERVER: &str = "directory-server";
const THREEDS_SERVER: &str = "threeds-server";
/// Subject alternative names: everything runs on one machine.
const NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// PEM files in one folder: the CA, and the certificates and keys of the simulator and of the 3DS
/// Server under test. Each certificate is valid for server and client authentication.
#[derive(Clone, Debug)]
pub struct Certificates {
    folder: PathBuf,
    acs_spki_sha256: String,
}

impl Certificates {
    /// Loads the files of the folder if all exist, otherwise creates all of them.
    pub fn create_or_load(folder: &Path) -> Result<Self, Error> {
        let files = Self {
            folder: folder.to_owned(),
            acs_spki_sha256: String::new(),
        };
        if !files.paths().iter().all(|path| path.is_file()) {
            files.create()?;
        }
        let key = read(&files.directory_key())?;
        let key = KeyPair::from_pem(&key)?;
        Ok(Self {
            acs_spki_sha256: STANDARD.encode(sha256(&key.subject_public_key_info())?),
            ..files
        })
    }

    pub fn ca(&self) -> PathBuf {
        self.folder.join(CA)
    }

    /// The certificate for the 3DS Server under test.
    pub fn server_certificate(&self) -> PathBuf {
        self.file(THREEDS_SERVER, "pem")
    }

    pub fn server_key(&self) -> PathBuf {
        self.file(THREEDS_SERVER, "key")
    }

    /// The certificate of the simulator, as server and as client when it sends an RReq.
    pub fn directory_certificate(&self) -> PathBuf {
        self.file(DIRECTORY_SERVER, "pem")
    }

    pub fn directory_key(&self) -> PathBuf {
        self.file(DIRECTORY_SERVER, "key")
    }

    /// SHA-256 of the ACS's public key in base64, for a browser's list of accepted certificates.
    pub fn acs_spki_sha256(&self) -> String {
        self.acs_spki_sha256.clone()
    }

    fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(name).with_extension(extension)
    }

    fn paths(&self) -> [PathBuf; 5] {
        [
            self.ca(),
            self.directory_certificate(),
            self.directory_key(),
            self.server_certificate(),
            self.server_key(),
        ]
    }

    fn create(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.folder).map_err(|reason| Error::file(&self.folder, reason))?;
        let mut params = named("Cloakroom 3DS test authority", &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let authority = params.self_signed(&key)?;
        let issuer = Issuer::new(params, key);
        write(&self.ca(), &authority.pem())?;
        for name in [DIRECTORY_SERVER, THREEDS_SERVER] {
            let key = KeyPair::generate()?;
            let mut params = named(name, &NAMES)?;
            params.use_authority_key_identifier_extension = true;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ];
            let certificate = params.signed_by(&key, &issuer)?;
            write(&self.file(name, "pem"), &certificate.pem())?;
            write_secret(&self.file(name, "key"), &key.serialize_pem())?;
        }
        Ok(())
    }
}

fn named(common_name: &str, addresses: &[&str]) -> Result<CertificateParams, rcgen::Error> {
    let addresses: Vec<String> = addresses.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(addresses)?;
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2049, 12, 31);
    Ok(params)
}

/// Uses the TLS library's SHA-256, so that the workspace has one cryptography library.
fn sha256(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().ok_or(Error::NoDigest)?;
    Ok(suite.common.hash_provider.hash(bytes).as_ref().to_vec())
}

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|reason| Error::file(path, reason))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|reason| Error::file(path, reason))
}

/// Creates the file readable by its owner only.
fn write_secret(path: &Path, text: &str) -> Result<(), Error> {
    use io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|reason| Error::file(path, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_reused_and_a_missing_file_renews_all() {
        let folder = tempfile::tempdir().unwrap();
        let first = Certificates::create_or_load(folder.path()).unwrap();
        let again = Certificates::create_or_load(folder.path()).unwrap();
        assert_eq!(first.acs_spki_sha256(), again.acs_spki_sha256());
        assert_eq!(
            STANDARD.decode(first.acs_spki_sha256()).unwrap().len(),
            32,
            "a browser expects SHA-256"
        );

        fs::remove_file(first.server_key()).unwrap();
        let renewed = Certificates::create_or_load(folder.path()).unwrap();
        assert_ne!(first.acs_spki_sha256(), renewed.acs_spki_sha256());
    }
}
