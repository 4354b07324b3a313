//! Certificates whose files are replaced.

use std::sync::atomic::{AtomicI64, Ordering};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::*;

/// Distinguishes the files of two writes within the resolution of file times: each has a subject of its own.
static WRITES: AtomicI64 = AtomicI64::new(0);

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write("first", 2050);
        files
    }

    fn cert(&self) -> PathBuf {
        self.0.path().join("cert.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("key.pem")
    }

    fn write(&self, subject: &str, end: i32) {
        let (cert, key) = issue(subject, end);
        self.replace(&self.cert(), &cert);
        self.replace(&self.key(), &key);
    }

    /// Replaces a file as most tools do: writes another one and renames it.
    fn replace(&self, path: &Path, text: &str) {
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let temporary = self.0.path().join(format!("new-{number}"));
        std::fs::write(&temporary, text).unwrap();
        std::fs::rename(temporary, path).unwrap();
    }

    fn load(&self) -> Arc<Certificate> {
        Certificate::load("test", &self.cert(), &self.key()).unwrap()
    }
}

fn issue(subject: &str, end: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([format!("{subject}.example")]).unwrap();
    let name = rcgen::DnType::CommonName;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(name, subject);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(end, 1, 1);
    let cert = params.self_signed(&key).unwrap();
    (cert.pem(), key.serialize_pem())
}

fn subject(certificate: &Certificate) -> String {
    certificate.details().subject
}

#[test]
fn a_changed_certificate_is_loaded_after_its_files_have_settled() {
    let files = Files::new();
    let certificate = files.load();
    let first = Arc::as_ptr(&certificate.current());

    certificate.poll();
    assert_eq!(Arc::as_ptr(&certificate.current()), first);
    files.write("second", 2050);
    certificate.poll();
    assert_eq!(subject(&certificate), "CN=first");
    certificate.poll();

    assert_eq!(subject(&certificate), "CN=second");
    assert_ne!(Arc::as_ptr(&certificate.current()), first);
}

#[test]
fn a_certificate_and_its_key_can_be_replaced_one_after_the_other() {
    let files = Files::new();
    let certificate = files.load();
    let (cert, key) = issue("second", 2050);

    files.replace(&files.cert(), &cert);
    certificate.poll();
    files.replace(&files.key(), &key);
    certificate.poll();
    let between = subject(&certificate);
    certificate.poll();

    assert_eq!(between, "CN=first");
    assert_eq!(subject(&certificate), "CN=second");
}

#[test]
fn unusable_files_leave_the_previous_certificate_in_use() {
    let files = Files::new();
    let certificate = files.load();
    let (other, _) = issue("other", 2050);
    let broken: [(&str, &dyn Fn()); 5] = [
        ("no PEM", &|| files.replace(&files.cert(), "hello")),
        ("of another key", &|| files.replace(&files.cert(), &other)),
        ("expired", &|| files.write("expired", 2021)),
        ("no key", &|| files.replace(&files.key(), "")),
        ("removed", &|| {
            std::fs::remove_file(files.cert()).unwrap();
        }),
    ];
    for (case, damage) in broken {
        damage();
        for _ in 0..3 {
            certificate.poll();
        }
        assert_eq!(subject(&certificate), "CN=first", "{case}");
        files.write("first", 2050);
        certificate.poll();
        certificate.poll();
    }

    files.write("second", 2050);
    certificate.poll();
    certificate.poll();
    assert_eq!(subject(&certificate), "CN=second");
}

#[test]
fn errors_name_the_file() {
    let files = Files::new();
    let (cert, key) = (files.cert(), files.key());
    let (_, other_key) = issue("other", 2050);
    let nowhere = Path::new("/nowhere/cert.pem");

    let missing = Certificate::load("test", nowhere, &key).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "cannot read certificates from /nowhere/cert.pem"
    );
    files.replace(&key, &other_key);
    let mismatch = Certificate::load("test", &cert, &key).unwrap_err();
    assert_eq!(mismatch, Error::Mismatch(cert));
}

#[test]
fn details_describe_the_key_and_the_validity() {
    let files = Files::new();

    let details = read_details(&files.cert()).unwrap();

    assert_eq!(details.len(), 1);
    assert_eq!(details[0].public_key, "ECDSA P-256");
    assert_eq!(details[0].not_after.to_string(), "2050-01-01T00:00:00Z");
    assert_eq!(files.load().details(), details[0]);
}
