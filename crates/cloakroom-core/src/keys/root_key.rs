//! The root key: its providers, and wrapping of the keys directly below it.

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use cloakroom_crypto::{Key, Purpose, RootKek, Sensitive, WrapContext, Wraps, random_bytes};
use cloakroom_platform::config;

use super::Error;

/// Prefix of a root-key file, to detect other files.
const FILE_PREFIX: &str = "cloakroom-root-key-v1";

/// A provider of the root key. Callers only wrap and unwrap, wherever the key is stored.
///
/// Further providers (PKCS#11, a cloud KMS, Vault Transit) become variants: they get the key's bytes through
/// `Key::expose_for_custody` and store its `CustodyBinding` with their own ciphertext. The methods are `async` for
/// them.
pub enum RootKey {
    File(Key<RootKek>),
}

impl RootKey {
    /// Loads the configured root key.
    pub fn load(config: &config::RootKey) -> Result<Self, Error> {
        match config.provider {
            config::Provider::File => {
                let path = config
                    .require_file()
                    .map_err(|error| Error::RootKey(error.to_string()))?;
                read_file(path).map(Self::File)
            }
        }
    }

    pub async fn wrap<P: Purpose>(
        &self,
        key: &Key<P>,
        context: &WrapContext<'_>,
    ) -> Result<Vec<u8>, Error>
    where
        RootKek: Wraps<P>,
    {
        match self {
            Self::File(root) => cloakroom_crypto::wrap(root, key, context).map_err(|_| Error::Seal),
        }
    }

    pub async fn unwrap<P: Purpose>(
        &self,
        wrapped: &[u8],
        context: &WrapContext<'_>,
    ) -> Result<Key<P>, Error>
    where
        RootKek: Wraps<P>,
    {
        match self {
            Self::File(root) => cloakroom_crypto::unwrap(root, context, wrapped)
                .map_err(|_| Error::WrongKey(format!("the {} key", P::PURPOSE.name()))),
        }
    }
}

/// Generates a root key and writes it to a file that only its owner can read.
///
/// Never overwrites an existing file: without its root key, everything sealed below it is lost.
pub fn create_file(path: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::RootKey(format!("{}: {error}", path.display()));
    let bytes = Sensitive::new(random_bytes::<32>());
    let text = Sensitive::new(hex::encode(bytes.expose()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o400)
        .open(path)
        .map_err(failed)?;
    writeln!(file, "{FILE_PREFIX} {}", text.expose()).map_err(failed)?;
    file.sync_all().map_err(failed)
}

fn read_file(path: &Path) -> Result<Key<RootKek>, Error> {
    let failed = |what: &str| Error::RootKey(format!("{}: {what}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| failed(&error.to_string()))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(failed("other users can read it; run `chmod 400` on it"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error.to_string()))?;
    let text = Sensitive::new(text);
    let secret = text
        .expose()
        .trim()
        .strip_prefix(FILE_PREFIX)
        .ok_or_else(|| {
            failed("it is not a root-key file; create one with `cloakroom root-key create`")
        })?;
    let bytes = hex::decode(secret.trim()).map_err(|_| failed("its key is not hexadecimal"))?;
    Key::from_bytes(&Sensitive::new(bytes)).map_err(|_| failed("its key is not 32 bytes long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_key_file_is_readable_only_by_its_owner_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root.key");

        create_file(&path).unwrap();
        let written = std::fs::read(&path).unwrap();

        assert!(read_file(&path).is_ok());
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o400
        );
        assert!(create_file(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), written);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o440)).unwrap();
        assert!(read_file(&path).is_err());
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

            let error = read_file(&path).err().unwrap().to_string();

            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("abcd"), "{error}");
        }
    }
}
