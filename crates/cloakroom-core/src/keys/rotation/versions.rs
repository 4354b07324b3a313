//! Steps of a rotation in the keyset of a tenant: each is part of a transaction that holds the lock of the keyset.

use cloakroom_crypto::{
    AuditAuthority, Control, Data, Fingerprinting, Index, Key, KeyPurpose, Reply, Request,
    SecurityCodeWrap, TenantKek,
};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Transaction};
use jiff::Timestamp;

use crate::keys::create::{NewKey, wrap_below_root, wrap_below_tenant};
use crate::keys::keyset::{KeysetChange, VAULT};
use crate::keys::load::digest_epoch;
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

/// A new version of a key of a tenant or of the vault, wrapped and not stored yet.
pub struct NewVersion(KeyRow);

impl NewVersion {
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// Inserts the key, which opens and does not seal yet.
    pub async fn insert(
        &self,
        transaction: &Transaction,
        owner: TenantId,
    ) -> Result<KeysetChange, Error> {
        store::insert_key(transaction, owner, &self.0).await?;
        Ok(KeysetChange {
            inserted: vec![self.0.member()],
            ..KeysetChange::default()
        })
    }
}

impl Keyring {
    /// Lists the keys of a tenant or of the vault, which must be the current ones.
    pub async fn list_versions(&self, owner: TenantId) -> Result<Vec<KeyVersion>, Error> {
        let rows = self.loader.list_verified(owner).await?;
        Ok(rows.iter().filter_map(KeyVersion::of).collect())
    }

    /// Creates the next version of a key. Calls the key provider, so it comes before the transaction.
    pub async fn create_version(
        &self,
        owner: TenantId,
        purpose: KeyPurpose,
        at: Timestamp,
    ) -> Result<NewVersion, Error> {
        let mut row = match owner == VAULT {
            true => self.create_vault_key(purpose, at).await?,
            false => self.create_tenant_key(owner, purpose, at).await?,
        };
        row.state = State::PreActive as i16;
        row.activated_at = None;
        Ok(NewVersion(row))
    }

    async fn create_vault_key(&self, purpose: KeyPurpose, at: Timestamp) -> Result<KeyRow, Error> {
        let rows = self.loader.list_system_keys().await?;
        let new = NewKey {
            environment: self.environment(),
            tenant: None,
            version: next_version(&rows, purpose),
            at,
        };
        let root = self.root();
        match purpose {
            KeyPurpose::Control => wrap_below_root(root, &Key::<Control>::generate(), &new).await,
            KeyPurpose::AuditAuthority => {
                wrap_below_root(root, &Key::<AuditAuthority>::generate(), &new).await
            }
            KeyPurpose::SecurityCodeWrap => {
                wrap_below_root(root, &Key::<SecurityCodeWrap>::generate(), &new).await
            }
            _ => Err(Error::Missing("rotation for keys of this purpose")),
        }
    }

    async fn create_tenant_key(
        &self,
        tenant: TenantId,
        purpose: KeyPurpose,
        at: Timestamp,
    ) -> Result<KeyRow, Error> {
        let rows = self.loader.list_tenant_keys(tenant).await?;
        let keks = self.loader.unwrap_keks(tenant, &rows).await?;
        // The active one is listed first.
        let kek = keks.first();
        let kek = kek.ok_or(Error::Missing("active key-encryption key for this tenant"))?;
        let new = NewKey {
            environment: self.environment(),
            tenant: Some(tenant),
            version: next_version(&rows, purpose),
            at,
        };
        match purpose {
            KeyPurpose::Data => wrap_below_tenant(kek, &Key::<Data>::generate(), &new),
            KeyPurpose::Reply => wrap_below_tenant(kek, &Key::<Reply>::generate(), &new),
            KeyPurpose::Fingerprint => {
                wrap_below_tenant(kek, &Key::<Fingerprinting>::generate(), &new)
            }
            KeyPurpose::Index => wrap_below_tenant(kek, &Key::<Index>::generate(), &new),
            KeyPurpose::Request => wrap_below_tenant(kek, &Key::<Request>::generate(), &new),
            _ => Err(Error::Missing("rotation for keys of this purpose")),
        }
    }

    /// Creates the next key-encryption key of a tenant and wraps all its keys with it.
    pub async fn create_kek(&self, tenant: TenantId, at: Timestamp) -> Result<NewKek, Error> {
        let rows = self.loader.list_tenant_keys(tenant).await?;
        let keks = self.loader.unwrap_keks(tenant, &rows).await?;
        let number = KeyPurpose::TenantKek.number();
        let new = NewKey {
            environment: self.environment(),
            tenant: Some(tenant),
            version: next_version(&rows, KeyPurpose::TenantKek),
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

fn next_version(rows: &[KeyRow], purpose: KeyPurpose) -> u32 {
    let versions = rows.iter().filter(|row| row.purpose == purpose.number());
    versions.map(|row| row.version).max().unwrap_or(0) + 1
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
    owner: TenantId,
    transition: Transition,
    at: Timestamp,
) -> Result<KeysetChange, Error> {
    let rows = store::list_keys_within(transaction, owner).await?;
    let number = transition.purpose.number();
    let row = rows
        .into_iter()
        .find(|row| (row.purpose, row.version) == (number, transition.version));
    let mut row = row.ok_or(Error::Missing("such key"))?;
    let before = row.member();
    let allowed = matches!(
        (State::from_number(row.state), transition.to),
        (Some(State::PreActive), State::Active)
            | (Some(State::Active), State::Retiring)
            | (Some(State::Retiring), State::DecryptOnly)
            | (Some(State::DecryptOnly), State::Destroyed)
    );
    if !allowed {
        return Err(Error::Missing("such key in this state"));
    }
    row.state = transition.to as i16;
    match transition.to {
        State::Active => row.activated_at = Some(at),
        State::Destroyed => row.wrapped.clear(),
        State::PreActive | State::DecryptOnly | State::Retiring => {}
    }
    store::write_key(transaction, owner, &row).await?;
    Ok(KeysetChange {
        replaced: vec![(before, row.member())],
        ..KeysetChange::default()
    })
}

/// Rejects statements that store fingerprints or terms with keys older than the stored ones, which all nodes must have
/// loaded. False if they are rejected already.
pub async fn raise_digest_fence(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<bool, Error> {
    let rows = store::list_tenant_keys_within(transaction, tenant).await?;
    let epoch = digest_epoch(&rows);
    Ok(store::raise_digest_fence(transaction, tenant, epoch).await?)
}

/// Counts a change of keys, which other nodes learn of with their next heartbeat. The last statement of a transaction that
/// changes keys, because every other one waits for it.
pub async fn count_change(transaction: &Transaction) -> Result<i64, storage::Error> {
    store::count_change(transaction).await
}
