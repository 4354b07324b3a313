//! Loads keys from the database and unwraps them.

use std::sync::Arc;

use cloakroom_crypto::{Key, Purpose, RootKek, SealsRecords, TenantKek, WrapContext, Wraps};
use cloakroom_custody::RootKeys;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Db;

use super::store::{self, KeyRow};
use super::tenant_keys::SealingKeys;
use super::{Error, State, TenantKeys, unwrap_below_root};

/// What loading needs: the database with the wrapped keys, and the root keys.
pub(super) struct Loader {
    pub db: Db,
    pub roots: RootKeys,
    pub environment: Arc<str>,
}

impl Loader {
    pub(super) async fn load_tenant(&self, tenant: TenantId) -> Result<TenantKeys, Error> {
        let rows = store::list_tenant_keys(&self.db, tenant).await?;
        let mut keks: Vec<Key<TenantKek>> = Vec::new();
        for row in usable::<TenantKek>(&rows) {
            let context = self.context(tenant, row.version);
            let kek = unwrap_below_root(&self.roots, &row.wrapped, &context);
            keks.push(kek.await?);
        }
        Ok(TenantKeys {
            environment: self.environment.clone(),
            tenant,
            data: self.sealing(tenant, &keks, &rows)?,
            reply: self.sealing(tenant, &keks, &rows)?,
            fingerprinting: self.active(tenant, &keks, &rows)?,
            index: self.active(tenant, &keks, &rows)?,
            request: self.active(tenant, &keks, &rows)?,
        })
    }

    /// Unwraps every usable version of a sealing key; one must be active.
    fn sealing<P: SealsRecords>(
        &self,
        tenant: TenantId,
        keks: &[Key<TenantKek>],
        rows: &[KeyRow],
    ) -> Result<SealingKeys<P>, Error>
    where
        TenantKek: Wraps<P>,
    {
        let active = usable::<P>(rows)
            .find(|row| State::from_number(row.state) == Some(State::Active))
            .ok_or(Error::Missing("active sealing key for this tenant"))?;
        Ok(SealingKeys {
            active: active.version,
            versions: self.unwrap_all(tenant, keks, rows)?,
        })
    }

    /// Unwraps every usable version of a key, the active one first.
    fn unwrap_all<P: Purpose>(
        &self,
        tenant: TenantId,
        keks: &[Key<TenantKek>],
        rows: &[KeyRow],
    ) -> Result<Vec<(u32, Key<P>)>, Error>
    where
        TenantKek: Wraps<P>,
    {
        let unwrap = |row: &KeyRow| {
            let context = self.context(tenant, row.version);
            let key = keks
                .iter()
                .find_map(|kek| cloakroom_crypto::unwrap(kek, &context, &row.wrapped).ok())
                .ok_or_else(|| Error::WrongKey(format!("a tenant's {} key", P::PURPOSE.name())))?;
            Ok((row.version, key))
        };
        usable::<P>(rows).map(unwrap).collect()
    }

    /// Unwraps the active version of a key.
    fn active<P: Purpose>(
        &self,
        tenant: TenantId,
        keks: &[Key<TenantKek>],
        rows: &[KeyRow],
    ) -> Result<Key<P>, Error>
    where
        TenantKek: Wraps<P>,
    {
        let versions = self.unwrap_all::<P>(tenant, keks, rows)?;
        let active = versions.into_iter().next();
        active.map(|(_, key)| key).ok_or(Error::Missing(
            "active key of every purpose for this tenant",
        ))
    }

    fn context(&self, tenant: TenantId, version: u32) -> WrapContext<'_> {
        WrapContext {
            environment: &self.environment,
            tenant: Some(tenant.uuid.into_bytes()),
            version,
        }
    }

    /// Unwraps every usable version of a key of the vault, the active one first.
    pub(super) async fn load_system_keys<P: Purpose>(&self) -> Result<Vec<Key<P>>, Error>
    where
        RootKek: Wraps<P>,
    {
        let rows = store::list_system_keys(&self.db).await?;
        let mut versions = Vec::new();
        for row in usable::<P>(&rows) {
            let context = WrapContext {
                environment: &self.environment,
                tenant: None,
                version: row.version,
            };
            versions.push(unwrap_below_root(&self.roots, &row.wrapped, &context).await?);
        }
        if versions.is_empty() {
            let is_in_use = store::any_tenant_keys(&self.db).await?;
            return Err(if is_in_use {
                Error::SystemKeysLost
            } else {
                Error::NotInitialized
            });
        }
        Ok(versions)
    }

    /// Rejects a database that belongs to another environment.
    pub(super) async fn check_environment(&self) -> Result<(), Error> {
        let found = store::find_environment(&self.db)
            .await?
            .ok_or(Error::NotInitialized)?;
        if *found != *self.environment {
            return Err(Error::WrongEnvironment {
                found,
                configured: self.environment.to_string(),
            });
        }
        Ok(())
    }
}

/// Rows of one purpose in a usable state; the store lists active ones first.
pub(super) fn usable<P: Purpose>(rows: &[KeyRow]) -> impl Iterator<Item = &KeyRow> {
    rows.iter()
        .filter(|row| row.purpose == P::PURPOSE.number() && State::from_number(row.state).is_some())
}
