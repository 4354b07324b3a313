//! The provider `file`: a root key in a file that only its owner can read.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use cloakroom_crypto::{Key, RootKek, Sensitive};

use crate::{Failure, secret_file};

/// Prefix of a root-key file, to detect other files.
const PREFIX: &str = "cloakroom-root-key-v1";

/// Generates a root key and writes it to a file that only its owner can read.
///
/// Never overwrites an existing file: without its root key, everything sealed below it is lost.
pub fn create_file(path: &Path) -> Result<(), Failure> {
    write_key(path, &Key::generate())
}

/// Writes a root key that custodians have combined to a file, like [`create_file`].
pub fn write_key(path: &Path, key: &Key<RootKek>) -> Result<(), Failure> {
    let text = Sensitive::new(hex::encode(key.to_bytes().expose()));
    let line = Sensitive::new(format!("{PREFIX} {}", text.expose()));
    write_new(path, line.expose())
}

/// Writes one line to a new file of mode 0400.
pub(crate) fn write_new(path: &Path, line: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::Configuration(format!("{}: {}", path.display(), error.kind()))
    };
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o400)
        .open(path)
        .map_err(failed)?;
    writeln!(file, "{line}").map_err(failed)?;
    file.sync_all().map_err(failed)
}

pub(crate) fn read(path: &Path) -> Result<Key<RootKek>, Failure> {
    let failed = |what: &str| Failure::Configuration(format!("{}: {what}", path.display()));
    let text = secret_file::read(path)?;
    let secret = text.expose().strip_prefix(PREFIX).ok_or_else(|| {
        failed("it is not a root-key file; create one with `cloakroom root-key create`")
    })?;
    let bytes = hex::decode(secret.trim()).map_err(|_| failed("its key is not hexadecimal"))?;
    Key::from_bytes(&Sensitive::new(bytes)).map_err(|_| failed("its key is not 32 bytes long"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_root_key_file_is_readable_only_by_its_owner_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root.key");

        create_file(&path).unwrap();
        let written = std::fs::read(&path).unwrap();

        assert!(read(&path).is_ok());
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o400
        );
        assert!(create_file(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), written);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o440)).unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn errors_about_a_root_key_file_do_not_contain_its_content() {
        let cases = [
            ("hello", "not a root-key file"),
            ("cloakroom-root-key-v1 abcd", "not 32 bytes"),
            ("cloakroom-root-key-v1 zz", "not hexadecimal"),
        ];
        for (content, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("root.key");
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();

            let error = read(&path).err().unwrap().to_string();

            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("abcd"), "{error}");
        }
    }
}
