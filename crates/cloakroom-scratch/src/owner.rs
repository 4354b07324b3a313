//! Which user a server runs as: oneself, or `postgres` where PostgreSQL would refuse to run as root.

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
    pub(crate) fn oneself() -> Self {
        Self { other: None }
    }

    /// Oneself, or the user `postgres` when that would be root.
    pub(crate) fn of_postgres() -> Result<Self, Error> {
        if !Uid::effective().is_root() {
            return Ok(Self::oneself());
        }
        match User::from_name("postgres") {
            Ok(Some(user)) => Ok(Self { other: Some(user) }),
            Ok(None) | Err(_) => Err(Error::UserMissing),
        }
    }

    pub(crate) fn own(&self, path: &Path) -> Result<(), Error> {
        let Some(user) = &self.other else {
            return Ok(());
        };
        chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
            .map_err(|source| unusable(path, source))
    }

    /// Makes `command` run as this user, at home in `folder`.
    pub(crate) fn run(&self, command: &mut Command, folder: &Path) {
        // The caller's folder may be closed to this user, and PostgreSQL's programs enter it.
        command.current_dir(folder);
        if let Some(user) = &self.other {
            command
                .uid(user.uid.as_raw())
                .gid(user.gid.as_raw())
                .env("HOME", folder);
        }
    }
}
