//! Passwords of a cluster.

use anyhow::Result;

use super::files;

pub(super) struct Secrets {
    pub(super) superuser: String,
    pub(super) replication: String,
    pub(super) rewind: String,
    pub(super) owner: String,
    pub(super) node: String,
    pub(super) redis: String,
}

impl Secrets {
    pub(super) fn make() -> Result<Self> {
        Ok(Self {
            superuser: files::secret()?,
            replication: files::secret()?,
            rewind: files::secret()?,
            owner: files::secret()?,
            node: files::secret()?,
            redis: files::secret()?,
        })
    }
}
