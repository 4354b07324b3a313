//! The directory of a server, deleted with the server unless it is persistent.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;
use crate::owner::Owner;

/// The location of a server's files.
#[derive(Clone, Debug, Default)]
pub enum Place {
    /// A new directory in the system's temporary directory, deleted with the server.
    #[default]
    Temporary,
    /// A new directory in this directory, deleted with the server.
    Below(PathBuf),
    /// This directory, created if it is missing. It persists, and the next start reuses its data.
    Persistent(PathBuf),
}

/// An opened [`Place`].
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    temporary: Option<TempDir>,
}

impl Folder {
    pub(crate) fn open(place: Place, kind: &str, owner: &Owner) -> Result<Self, Error> {
        let folder = match place {
            Place::Temporary => Self::fresh(&std::env::temp_dir(), kind)?,
            Place::Below(parent) => Self::fresh(&parent, kind)?,
            Place::Persistent(path) => {
                make_private(&path).map_err(|source| unusable(&path, source))?;
                let path = path
                    .canonicalize()
                    .map_err(|source| unusable(&path, source))?;
                Self {
                    path,
                    temporary: None,
                }
            }
        };
        owner.chown(&folder.path)?;
        Ok(folder)
    }

    fn fresh(parent: &Path, kind: &str) -> Result<Self, Error> {
        std::fs::create_dir_all(parent).map_err(|source| unusable(parent, source))?;
        let temporary = tempfile::Builder::new()
            .prefix(&format!("cloakroom-{kind}-"))
            .tempdir_in(parent)
            .map_err(|source| unusable(parent, source))?;
        let path = temporary.path().to_owned();
        Ok(Self {
            path,
            temporary: Some(temporary),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Makes a temporary directory persistent.
    pub(crate) fn keep(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            let _path = temporary.keep();
        }
    }

    /// Creates a subdirectory with access for `owner` only.
    pub(crate) fn sub_folder(&self, name: &str, owner: &Owner) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        make_private(&path).map_err(|source| unusable(&path, source))?;
        owner.chown(&path)?;
        Ok(path)
    }

    /// Writes a file that only `owner` can read.
    pub(crate) fn write(&self, name: &str, text: &str, owner: &Owner) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|source| unusable(&path, source))?;
        owner.chown(&path)?;
        Ok(path)
    }

    /// The secret stored in `name`, generated on first use.
    pub(crate) fn secret(&self, name: &str, owner: &Owner) -> Result<String, Error> {
        let path = self.path.join(name);
        if let Ok(stored) = std::fs::read_to_string(&path) {
            return Ok(stored);
        }
        let secret = random_text().map_err(|source| unusable(&path, source))?;
        self.write(name, &secret, owner)?;
        Ok(secret)
    }
}

pub(crate) fn unusable(path: &Path, source: std::io::Error) -> Error {
    Error::Folder {
        path: path.to_owned(),
        source,
    }
}

fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        done => done,
    }
}

/// 128 random bits as text that needs no quoting in URLs, SQL and configuration files.
fn random_text() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_generated_once_per_folder() {
        let owner = Owner::current_user();
        let one = Folder::open(Place::Temporary, "test", &owner).unwrap();
        let other = Folder::open(Place::Temporary, "test", &owner).unwrap();

        let first = one.secret("password", &owner).unwrap();

        assert_eq!(one.secret("password", &owner).unwrap(), first);
        assert_ne!(other.secret("password", &owner).unwrap(), first);
        assert_eq!(first.len(), 32);
    }

    #[test]
    fn only_a_persistent_folder_outlives_its_value() {
        let parent = tempfile::tempdir().unwrap();
        let owner = Owner::current_user();
        let persistent_path = parent.path().join("deep/kept");

        let below = Folder::open(Place::Below(parent.path().into()), "test", &owner).unwrap();
        let below_path = below.path().to_owned();
        drop(below);
        drop(Folder::open(Place::Persistent(persistent_path.clone()), "test", &owner).unwrap());

        assert!(!below_path.exists());
        assert!(persistent_path.exists());
    }
}
