//! Steps of a rotation in the keyset of a tenant: each is part of a transaction that holds the lock of the keyset.

use cloakroom_crypto::{Data, Key, KeyPurpose, Reply, TenantKek};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Transaction};
use jiff::Timestamp;

use crate::keys::create::{NewKey, wrap_below_root, wrap_below_tenant};
use crate::keys::keyset::KeysetChange;
use crate::keys::store::{self, KeyRow};
use crate::keys::{Error, Keyring, State};

/// A version of a key, as listed for an operator. Contains no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyVersion {
    pub purpose: KeyPurpose,
    pub version: u32,
    pub state: State,
    pub created_at: Timestamp,
    pub activated_at: Option<Timestamp>,
}

/// A new version of a tenant's key, wrapped and not stored yet.
pub struct NewVersion(KeyRow);

impl NewVersion {
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// Inserts the key, which opens and does not seal yet.
    pub async fn insert(
        &self,
        transaction: &Transaction,
        tenant: TenantId,
    ) -> Result<KeysetChange, Error> {
        store::insert_tenant_key(transaction, tenant, &self.0).await?;
        Ok(KeysetChange {
            inserted: vec![self.0.member()],
            ..KeysetChange::default()
        })
    }
}

impl Keyring {
    /// Lists the keys of a tenant, which must be the current ones.
    pub async fn list_versions(&self, tenant: TenantId) -> Result<Vec<KeyVersion>, Error> {
        let rows = self.loader.list_tenant_keys(tenant).await?;
        Ok(rows.iter().filter_map(KeyVersion::of).collect())
    }

    /// Creates the next version of a key that seals data. Calls the key provider, so it comes before the transaction.
    pub async fn create_version(
        &self,
        tenant: TenantId,
        purpose: KeyPurpose,
        at: Timestamp,
    ) -> Result<NewVersion, Error> {
        let rows = self.loader.list_tenant_keys(tenant).await?;
        let keks = self.loader.unwrap_keks(tenant, &rows).await?;
        // The active one is listed first.
        let kek = keks.first();
        let kek = kek.ok_or(Error::Missing("active key-encryption key for this tenant"))?;
        let number = purpose.number();
        let newest = rows.iter().filter(|row| row.purpose == number);
        let newest = newest.map(|row| row.version).max().unwrap_or(0);
        let new = NewKey {
            environment: self.environment(),
            tenant: Some(tenant),
            version: newest + 1,
            at,
        };
        let mut row = match purpose {
            KeyPurpose::Data => wrap_below_tenant(kek, &Key::<Data>::generate(), &new)?,
            KeyPurpose::Reply => wrap_below_tenant(kek, &Key::<Reply>::generate(), &new)?,
            _ => return Err(Error::Missing("rotation for keys of this purpose")),
        };
        row.state = State::PreActive as i16;
        row.activated_at = None;
        Ok(NewVersion(row))
    }

    /// Creates the next key-encryption key of a tenant and wraps all its keys with it.
    pub async fn create_kek(&self, tenant: TenantId, at: Timestamp) -> Result<NewKek, Error> {
        let rows = self.loader.list_tenant_keys(tenant).await?;
        let keks = self.loader.unwrap_keks(tenant, &rows).await?;
        let number = KeyPurpose::TenantKek.number();
        let newest = rows.iter().filter(|row| row.purpose == number);
        let newest = newest.map(|row| row.version).max().unwrap_or(0);
        let new = NewKey {
            environment: self.environment(),
            tenant: Some(tenant),
            version: newest + 1,
            at,
        };
        let kek = Key::<TenantKek>::generate();
        let row = wrap_below_root(self.root(), &kek, &new).await?;
        let mut rewrapped = Vec::new();
        for below in rows.iter().filter(|row| row.purpose != number) {
            if State::is_usable(below.state) {
                let wrapped = self.loader.rewrap(tenant, &keks, &kek, below)?;
                rewrapped.push((below.purpose, below.version, wrapped));
            }
        }
        Ok(NewKek { row, rewrapped })
    }
}

/// A new key-encryption key, and all keys below it, wrapped by it.
pub struct NewKek {
    row: KeyRow,
    rewrapped: Vec<(i16, u32, Vec<u8>)>,
}

impl NewKek {
    pub fn version(&self) -> u32 {
        self.row.version
    }

    /// How many keys it wraps.
    pub fn rewrapped(&self) -> usize {
        self.rewrapped.len()
    }

    /// Replaces the key-encryption key. The one before it is destroyed: nothing is wrapped by it any more.
    pub async fn insert(
        &self,
        transaction: &Transaction,
        tenant: TenantId,
    ) -> Result<KeysetChange, Error> {
        let mut change = KeysetChange::default();
        let rows = store::list_tenant_keys_within(transaction, tenant).await?;
        for mut row in rows {
            let is_rewrapped = |(purpose, version, _): &&(i16, u32, Vec<u8>)| {
                (*purpose, *version) == (row.purpose, row.version)
            };
            if row.purpose == self.row.purpose && State::is_usable(row.state) {
                let before = row.member();
                row.state = State::Destroyed as i16;
                row.wrapped.clear();
                store::write_tenant_key(transaction, tenant, &row).await?;
                change.replaced.push((before, row.member()));
            } else if let Some((.., wrapped)) = self.rewrapped.iter().find(is_rewrapped) {
                row.wrapped.clone_from(wrapped);
                store::write_tenant_key(transaction, tenant, &row).await?;
            } else if State::is_usable(row.state) {
                // Another process added a key meanwhile, which the new one does not wrap.
                return Err(storage::Error::RolledBack.into());
            }
        }
        store::insert_tenant_key(transaction, tenant, &self.row).await?;
        change.inserted.push(self.row.member());
        Ok(change)
    }
}

impl KeyVersion {
    fn of(row: &KeyRow) -> Option<Self> {
        Some(Self {
            purpose: row.purpose.try_into().ok()?,
            version: row.version,
            state: State::from_number(row.state)?,
            created_at: row.created_at,
            activated_at: row.activated_at,
        })
    }
}

/// The change of a key's state within a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    pub purpose: KeyPurpose,
    pub version: u32,
    pub to: State,
}

/// Changes the state of a key within a transaction that holds the lock of its keyset. Fails unless the state may follow the
/// present one.
pub async fn change_state(
    transaction: &Transaction,
    tenant: TenantId,
    transition: Transition,
    at: Timestamp,
) -> Result<KeysetChange, Error> {
    let rows = store::list_tenant_keys_within(transaction, tenant).await?;
    let number = transition.purpose.number();
    let row = rows
        .into_iter()
        .find(|row| (row.purpose, row.version) == (number, transition.version));
    let mut row = row.ok_or(Error::Missing("such key of the tenant"))?;
    let before = row.member();
    let allowed = matches!(
        (State::from_number(row.state), transition.to),
        (Some(State::PreActive), State::Active)
            | (Some(State::Active), State::Retiring)
            | (Some(State::Retiring), State::DecryptOnly)
            | (Some(State::DecryptOnly), State::Destroyed)
    );
    if !allowed {
        return Err(Error::Missing("key of the tenant in this state"));
    }
    row.state = transition.to as i16;
    match transition.to {
        State::Active => row.activated_at = Some(at),
        State::Destroyed => row.wrapped.clear(),
        State::PreActive | State::DecryptOnly | State::Retiring => {}
    }
    store::write_tenant_key(transaction, tenant, &row).await?;
    Ok(KeysetChange {
        replaced: vec![(before, row.member())],
        ..KeysetChange::default()
    })
}

/// Counts a change of keys, which other nodes learn of with their next heartbeat. The last statement of a transaction that
/// changes keys, because every other one waits for it.
pub async fn count_change(transaction: &Transaction) -> Result<i64, storage::Error> {
    store::count_change(transaction).await
}
