//! The user that a server runs as: the current user, or `postgres` if that is root, which PostgreSQL rejects.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::{Uid, User};

use crate::Error;
use crate::folder::unusable;

/// The user that owns a server's files and process.
#[derive(Debug)]
pub(crate) struct Owner {
    other: Option<User>,
}

impl Owner {
    pub(crate) fn current_user() -> Self {
        Self { other: None }
    }

    /// The current user, or `postgres` if the current user is root.
    pub(crate) fn for_postgres() -> Result<Self, Error> {
        if !Uid::effective().is_root() {
            return Ok(Self::current_user());
        }
        match User::from_name("postgres") {
            Ok(Some(user)) => Ok(Self { other: Some(user) }),
            Ok(None) | Err(_) => Err(Error::UserMissing),
        }
    }

    pub(crate) fn chown(&self, path: &Path) -> Result<(), Error> {
        let Some(user) = &self.other else {
            return Ok(());
        };
        chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
            .map_err(|source| unusable(path, source))
    }

    /// Configures `command` to run as this user, with `folder` as its home and working directory.
    pub(crate) fn configure(&self, command: &mut Command, folder: &Path) {
        // This user may have no access to the caller's working directory, which PostgreSQL's programs need.
        command.current_dir(folder);
        if let Some(user) = &self.other {
            command
                .uid(user.uid.as_raw())
                .gid(user.gid.as_raw())
                .env("HOME", folder);
        }
    }
}
