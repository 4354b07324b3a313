//! Wraps keys with the active root key that another one wrapped: the root key is replaced without touching any data.

use cloakroom_crypto::{
    AuditAuthority, Control, KeyPurpose, Purpose, RootKek, RootWrapped, SecurityCodeWrap, Signing,
    TenantKek, WrapContext, Wraps,
};
use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;

use crate::keys::keyset::VAULT;
use crate::keys::store::{self, KeyRow};
use crate::keys::{Error, Keyring, State, unwrap_below_root};

/// What was wrapped again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewrapped {
    /// Keys directly below a root key.
    pub keys: u64,
    /// Those that were wrapped again.
    pub rewrapped: u64,
    /// Those that name another root key than the active one afterwards.
    pub remaining: u64,
}

impl Keyring {
    /// Wraps the keys of the vault, or the key-encryption keys of a tenant, with the active root key. Each key by itself, so
    /// that an interruption leaves every key usable.
    pub async fn rewrap_below_root(&self, owner: TenantId) -> Result<Rewrapped, Error> {
        let mut report = Rewrapped::default();
        for row in self.list_below_root(owner).await? {
            if !self.names_another_root(&row) && !self.root().active().has_own_versions() {
                continue;
            }
            let wrapped = self.rewrap_row(owner, &row).await?;
            failpoint("rotation.root")?;
            let replaced =
                store::replace_wrapped(&self.loader.db, owner.number, &row, &wrapped).await?;
            report.rewrapped += u64::from(replaced);
        }
        // Counted from what is stored, not from what was done.
        for row in self.list_below_root(owner).await? {
            report.keys += 1;
            report.remaining += u64::from(self.names_another_root(&row));
        }
        Ok(report)
    }

    async fn list_below_root(&self, owner: TenantId) -> Result<Vec<KeyRow>, Error> {
        let mut rows = match owner == VAULT {
            true => self.loader.list_system_keys().await?,
            false => {
                let mut rows = self.loader.list_tenant_keys(owner).await?;
                rows.retain(|row| row.purpose == KeyPurpose::TenantKek.number());
                rows
            }
        };
        rows.retain(|row| State::is_usable(row.state));
        Ok(rows)
    }

    fn names_another_root(&self, row: &KeyRow) -> bool {
        let active = self.root().active().id();
        RootWrapped::parse(&row.wrapped).map_or(true, |wrapped| wrapped.root != *active)
    }

    async fn rewrap_row(&self, owner: TenantId, row: &KeyRow) -> Result<Vec<u8>, Error> {
        let context = WrapContext {
            environment: self.environment(),
            tenant: (owner != VAULT).then(|| owner.uuid.into_bytes()),
            version: row.version,
        };
        let wrong = || Error::WrongKey("a key below the root key".to_owned());
        match KeyPurpose::try_from(row.purpose).map_err(|_| wrong())? {
            KeyPurpose::TenantKek => self.rewrap_as::<TenantKek>(row, &context).await,
            KeyPurpose::Control => self.rewrap_as::<Control>(row, &context).await,
            KeyPurpose::AuditAuthority => self.rewrap_as::<AuditAuthority>(row, &context).await,
            KeyPurpose::Signing => self.rewrap_as::<Signing>(row, &context).await,
            KeyPurpose::SecurityCodeWrap => self.rewrap_as::<SecurityCodeWrap>(row, &context).await,
            _ => Err(wrong()),
        }
    }

    async fn rewrap_as<P: Purpose>(
        &self,
        row: &KeyRow,
        context: &WrapContext<'_>,
    ) -> Result<Vec<u8>, Error>
    where
        RootKek: Wraps<P>,
    {
        let key = unwrap_below_root::<P>(self.root(), &row.wrapped, context).await?;
        let wrapped = self.root().wrap(&key, context).await;
        wrapped.map_err(|failure| Error::from_failure(failure, P::PURPOSE.name()))
    }
}
