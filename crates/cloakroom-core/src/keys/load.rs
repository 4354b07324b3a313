//! Loads keys from the database and unwraps them.

use std::sync::{Arc, OnceLock};

use cloakroom_crypto::{
    Control, Data, Fingerprinting, Index, Key, KeyPurpose, Purpose, Reply, Request, RootKek,
    SealsRecords, TenantKek, WrapContext, Wraps,
};
use cloakroom_custody::RootKeys;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Db;
use cloakroom_platform::telemetry::catalog;

use super::keyset::{KeysetAuthority, KeysetMismatch, VAULT};
use super::store::{self, KeyRow, ListedKeys};
use super::tenant_keys::{DigestKey, DigestKeys, SealingKeys};
use super::{ControlKey, Error, State, TenantKeys, unwrap_below_root};

/// Reads a keyset again this often if a concurrent change is seen halfway.
const ATTEMPTS: usize = 5;

/// What loading needs: the database with the wrapped keys, the root keys, and what authenticates keysets.
pub(super) struct Loader {
    pub db: Db,
    pub roots: RootKeys,
    pub environment: Arc<str>,
    pub authority: Arc<dyn KeysetAuthority>,
    /// Verifies keysets. Not set until it is loaded itself.
    pub control: OnceLock<Arc<ControlKey>>,
}

impl Loader {
    pub(super) async fn load_tenant(&self, tenant: TenantId) -> Result<TenantKeys, Error> {
        let rows = self.list_tenant_keys(tenant).await?;
        let keks = self.unwrap_keks(tenant, &rows).await?;
        Ok(TenantKeys {
            environment: self.environment.clone(),
            tenant,
            data: self.sealing(tenant, &keks, &rows)?,
            reply: self.sealing(tenant, &keks, &rows)?,
            fingerprinting: self.digesting(tenant, &keks, &rows)?,
            index: self.digesting(tenant, &keks, &rows)?,
            request: self.digesting(tenant, &keks, &rows)?,
            digest_epoch: digest_epoch(&rows),
        })
    }

    /// Lists the keys of a tenant, which must be the current ones.
    pub(super) async fn list_tenant_keys(&self, tenant: TenantId) -> Result<Vec<KeyRow>, Error> {
        self.list_verified(tenant).await
    }

    /// Lists the keys of the vault, which must be the current ones.
    pub(super) async fn list_system_keys(&self) -> Result<Vec<KeyRow>, Error> {
        self.list_verified(VAULT).await
    }

    /// Lists the keys of a tenant or of the vault. Reads them again while a concurrent change is seen halfway, and verifies their keyset.
    pub(super) async fn list_verified(&self, owner: TenantId) -> Result<Vec<KeyRow>, Error> {
        let mut attempt = 1;
        loop {
            let listed = match owner == VAULT {
                true => store::list_system_keys(&self.db).await?,
                false => store::list_tenant_keys(&self.db, owner).await?,
            };
            let Some(control) = self.control.get() else {
                return Ok(listed.rows);
            };
            // A tenant that does not exist.
            if listed.rows.is_empty() {
                return Ok(listed.rows);
            }
            let verified = self
                .authority
                .verify_keyset(control, owner.number, &listed.keyset);
            match verified {
                Ok(()) => return Ok(listed.rows),
                Err(KeysetMismatch::Older) if attempt < ATTEMPTS => attempt += 1,
                // This process was stopped while the control key was replaced.
                Err(_) if is_by_newer_control(control, &listed) && attempt < ATTEMPTS => {
                    attempt += 1;
                    self.load_newer_control(control).await?;
                }
                Err(_) => {
                    catalog::KEYS_ALTERED.increment(1);
                    return Err(Error::AlteredKeyset(match owner == VAULT {
                        true => "the vault".to_owned(),
                        false => format!("tenant {}", owner.uuid),
                    }));
                }
            }
        }
    }

    /// Loads the control key again.
    pub(super) async fn reload_control(&self, control: &ControlKey) -> Result<(), Error> {
        let rows = self.list_system_keys().await?;
        control.replace(self.unwrap_control(&rows).await?);
        Ok(())
    }

    /// Loads versions of the control key that were added after those of this process. They authenticate the keyset of the
    /// vault themselves: the root key wrapped them. Older ones never do, because a former version may have leaked.
    async fn load_newer_control(&self, control: &ControlKey) -> Result<(), Error> {
        let listed = store::list_system_keys(&self.db).await?;
        let known = control.versions();
        let newest = known.iter().map(|key| key.version).max();
        let is_known = |version| known.iter().any(|key| key.version == version);
        let mut trusted = self.unwrap_control(&listed.rows).await?;
        trusted.retain(|key| is_known(key.version) || newest < Some(key.version));
        let trusted = ControlKey::new(trusted);
        let owner = VAULT.number;
        match self
            .authority
            .verify_keyset(&trusted, owner, &listed.keyset)
        {
            Ok(()) => control.replace(trusted.versions().to_vec()),
            Err(_) => return Err(Error::AlteredKeyset("the vault".to_owned())),
        }
        Ok(())
    }

    async fn unwrap_control(&self, rows: &[KeyRow]) -> Result<Vec<Arc<SystemKey<Control>>>, Error> {
        let versions = self.unwrap_system_keys(rows).await?;
        Ok(versions.into_iter().map(Arc::new).collect())
    }

    /// Unwraps every usable key-encryption key of a tenant.
    pub(super) async fn unwrap_keks(
        &self,
        tenant: TenantId,
        rows: &[KeyRow],
    ) -> Result<Vec<Key<TenantKek>>, Error> {
        let mut keks = Vec::new();
        for row in usable::<TenantKek>(rows) {
            let context = self.context(tenant, row.version);
            let kek = unwrap_below_root(&self.roots, &row.wrapped, &context).await?;
            keks.push(require_check_value(kek, row)?);
        }
        Ok(keks)
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
            Ok((row.version, require_check_value(key, row)?))
        };
        usable::<P>(rows).map(unwrap).collect()
    }

    /// Unwraps every usable version of a key for digests.
    fn digesting<P: Purpose>(
        &self,
        tenant: TenantId,
        keks: &[Key<TenantKek>],
        rows: &[KeyRow],
    ) -> Result<DigestKeys<P>, Error>
    where
        TenantKek: Wraps<P>,
    {
        let mut keys = Vec::new();
        for (row, (version, key)) in usable::<P>(rows).zip(self.unwrap_all(tenant, keks, rows)?) {
            let state = State::from_number(row.state).unwrap_or(State::DecryptOnly);
            keys.push(DigestKey {
                version,
                state,
                key,
            });
        }
        DigestKeys::new(keys)
    }

    /// Wraps a key of a tenant with another key-encryption key.
    pub(super) fn rewrap(
        &self,
        tenant: TenantId,
        keks: &[Key<TenantKek>],
        kek: &Key<TenantKek>,
        row: &KeyRow,
    ) -> Result<Vec<u8>, Error> {
        let context = self.context(tenant, row.version);
        let broken = || Error::WrongKey("a key of a tenant".to_owned());
        let purpose = KeyPurpose::try_from(row.purpose).map_err(|_| broken())?;
        let rewrapped = match purpose {
            KeyPurpose::Data => rewrap_one::<Data>(keks, kek, &context, row),
            KeyPurpose::Fingerprint => rewrap_one::<Fingerprinting>(keks, kek, &context, row),
            KeyPurpose::Index => rewrap_one::<Index>(keks, kek, &context, row),
            KeyPurpose::Reply => rewrap_one::<Reply>(keks, kek, &context, row),
            KeyPurpose::Request => rewrap_one::<Request>(keks, kek, &context, row),
            _ => None,
        };
        rewrapped.ok_or_else(broken)
    }

    pub(super) fn context(&self, tenant: TenantId, version: u32) -> WrapContext<'_> {
        WrapContext {
            environment: &self.environment,
            tenant: Some(tenant.uuid.into_bytes()),
            version,
        }
    }

    /// Unwraps every usable version of a key of the vault, the active one first.
    pub(super) async fn load_system_keys<P: Purpose>(&self) -> Result<Vec<SystemKey<P>>, Error>
    where
        RootKek: Wraps<P>,
    {
        let rows = self.list_system_keys().await?;
        self.unwrap_system_keys(&rows).await
    }

    /// Unwraps every usable version of a key of the vault among listed rows, the active one first.
    pub(super) async fn unwrap_system_keys<P: Purpose>(
        &self,
        rows: &[KeyRow],
    ) -> Result<Vec<SystemKey<P>>, Error>
    where
        RootKek: Wraps<P>,
    {
        let mut versions = Vec::new();
        for row in usable::<P>(rows) {
            let context = WrapContext {
                environment: &self.environment,
                tenant: None,
                version: row.version,
            };
            let key = unwrap_below_root(&self.roots, &row.wrapped, &context).await?;
            versions.push(SystemKey {
                version: row.version,
                key: require_check_value(key, row)?,
            });
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

fn is_by_newer_control(control: &ControlKey, listed: &ListedKeys) -> bool {
    let state = listed.keyset.state.as_ref();
    state.is_some_and(|state| control.is_older_than(&state.row_mac))
}

/// A version of a key of the vault.
pub(super) struct SystemKey<P: Purpose> {
    pub version: u32,
    pub key: Key<P>,
}

/// How many state changes the fingerprint and index keys of a keyset have had. No two keysets of a tenant's history
/// have the same one unless these keys are the same.
pub(super) fn digest_epoch(rows: &[KeyRow]) -> i32 {
    let purposes = [KeyPurpose::Fingerprint, KeyPurpose::Index].map(KeyPurpose::number);
    let rows = rows.iter().filter(|row| purposes.contains(&row.purpose));
    let states = rows.filter_map(|row| State::from_number(row.state));
    states.map(State::position).sum()
}

fn rewrap_one<P: Purpose>(
    keks: &[Key<TenantKek>],
    kek: &Key<TenantKek>,
    context: &WrapContext<'_>,
    row: &KeyRow,
) -> Option<Vec<u8>>
where
    TenantKek: Wraps<P>,
{
    let key = keks
        .iter()
        .find_map(|old| cloakroom_crypto::unwrap::<_, P>(old, context, &row.wrapped).ok());
    let key = require_check_value(key?, row).ok()?;
    cloakroom_crypto::wrap(kek, &key, context).ok()
}

/// The keyset authenticates the check value, so that no other version of the wrapped bytes can take its place.
fn require_check_value<P: Purpose>(key: Key<P>, row: &KeyRow) -> Result<Key<P>, Error> {
    match key.check_value().as_bytes()[..] == row.check_value {
        true => Ok(key),
        false => Err(Error::WrongKey(format!("a {} key", P::PURPOSE.name()))),
    }
}

/// Rows of one purpose in a usable state; the store lists active ones first.
pub(super) fn usable<P: Purpose>(rows: &[KeyRow]) -> impl Iterator<Item = &KeyRow> {
    rows.iter()
        .filter(|row| row.purpose == P::PURPOSE.number() && State::is_usable(row.state))
}
