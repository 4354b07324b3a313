//! Creates keys: the system keys when the vault is initialized, and the keys of a new tenant.

use std::sync::Arc;

use cloakroom_crypto::{
    AuditAuthority, Control, Data, Fingerprinting, Index, Key, KeyPurpose, Purpose, Reply, Request,
    RootKek, SecurityCodeWrap, TenantKek, WrapContext, Wraps,
};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{DatabaseClock, Db, Transaction};
use jiff::Timestamp;

use super::keyset::{KeysetAuthority, KeysetChange, KeysetState, VAULT};
use super::load::SystemKey;
use super::store::{self, KeyRow};
use super::{ControlKey, Error, RootKeys, State};

/// The first version of every key.
const FIRST_VERSION: u32 = 1;

/// Binds an empty database to the environment and creates its system keys.
///
/// Idempotent and safe to run concurrently: existing keys are not replaced.
pub async fn initialize(
    db: &Db,
    root: &RootKeys,
    environment: &str,
    authority: &dyn KeysetAuthority,
) -> Result<(), Error> {
    let known = store::list_system_keys(db).await?;
    let lacks = |purpose: KeyPurpose| {
        let number = purpose.number();
        !known.rows.iter().any(|key| key.purpose == number)
    };
    let needed = [
        KeyPurpose::Control,
        KeyPurpose::AuditAuthority,
        KeyPurpose::SecurityCodeWrap,
    ];
    if !needed.into_iter().any(lacks) {
        return Ok(());
    }
    // With new system keys, the MACs of all existing tenants' rows would fail to verify.
    if !known.rows.is_empty() || store::any_tenant_keys(db).await? {
        return Err(Error::SystemKeysLost);
    }
    let context = NewKey {
        environment,
        tenant: None,
        version: FIRST_VERSION,
        at: DatabaseClock::new(db.clone()).now().await?,
    };
    let control = Key::<Control>::generate();
    let rows = vec![
        wrap_below_root(root, &control, &context).await?,
        wrap_below_root(root, &Key::<AuditAuthority>::generate(), &context).await?,
        wrap_below_root(root, &Key::<SecurityCodeWrap>::generate(), &context).await?,
    ];
    let members: Vec<Vec<u8>> = rows.iter().map(KeyRow::member).collect();
    let version = FIRST_VERSION;
    let control = ControlKey::new(vec![Arc::new(SystemKey {
        version,
        key: control,
    })]);
    let state = authority.first_state(&control, VAULT.number, &members);
    let transaction = db.begin().await?;
    let written = insert_system_keys(&transaction, environment, &rows, &state).await;
    match written {
        Ok(()) => Ok(transaction.commit().await?),
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}

/// Inserts the keys unless another process has done so meanwhile.
async fn insert_system_keys(
    transaction: &Transaction,
    environment: &str,
    rows: &[KeyRow],
    state: &KeysetState,
) -> Result<(), Error> {
    store::bind_environment(transaction, environment).await?;
    let known = store::list_system_keys_within(transaction).await?;
    match known.rows.is_empty() {
        true => Ok(store::insert_system_keys(transaction, rows, state).await?),
        false => Ok(()),
    }
}

/// What a key to create belongs to.
pub(super) struct NewKey<'a> {
    pub environment: &'a str,
    pub tenant: Option<TenantId>,
    pub version: u32,
    pub at: Timestamp,
}

impl NewKey<'_> {
    fn context(&self) -> WrapContext<'_> {
        WrapContext {
            environment: self.environment,
            tenant: self.tenant.map(|tenant| tenant.uuid.into_bytes()),
            version: self.version,
        }
    }

    /// The row of an active key.
    fn row<P: Purpose>(&self, key: &Key<P>, wrapped: Vec<u8>) -> KeyRow {
        KeyRow {
            purpose: P::PURPOSE.number(),
            version: self.version,
            state: State::Active as i16,
            wrapped,
            check_value: key.check_value().as_bytes().to_vec(),
            created_at: self.at,
            activated_at: Some(self.at),
        }
    }
}

/// The keys of a new tenant, wrapped and not stored yet.
pub struct NewTenantKeys(Vec<KeyRow>);

impl NewTenantKeys {
    /// Creates one key per purpose. Calls the key provider, so it comes before the transaction that stores them.
    pub async fn create(
        root: &RootKeys,
        environment: &str,
        tenant: TenantId,
        at: Timestamp,
    ) -> Result<Self, Error> {
        let new = NewKey {
            environment,
            tenant: Some(tenant),
            version: FIRST_VERSION,
            at,
        };
        let kek = Key::<TenantKek>::generate();
        Ok(Self(vec![
            wrap_below_root(root, &kek, &new).await?,
            wrap_below_tenant(&kek, &Key::<Data>::generate(), &new)?,
            wrap_below_tenant(&kek, &Key::<Fingerprinting>::generate(), &new)?,
            wrap_below_tenant(&kek, &Key::<Index>::generate(), &new)?,
            wrap_below_tenant(&kek, &Key::<Reply>::generate(), &new)?,
            wrap_below_tenant(&kek, &Key::<Request>::generate(), &new)?,
        ]))
    }

    /// Inserts the keys in the transaction that creates the tenant.
    pub async fn insert(
        &self,
        transaction: &Transaction,
        tenant: TenantId,
    ) -> Result<KeysetChange, Error> {
        for key in &self.0 {
            store::insert_tenant_key(transaction, tenant, key).await?;
        }
        Ok(KeysetChange {
            inserted: self.0.iter().map(KeyRow::member).collect(),
            ..KeysetChange::default()
        })
    }
}

pub(super) async fn wrap_below_root<P: Purpose>(
    root: &RootKeys,
    key: &Key<P>,
    new: &NewKey<'_>,
) -> Result<KeyRow, Error>
where
    RootKek: Wraps<P>,
{
    let wrapped = root.wrap(key, &new.context()).await;
    let wrapped = wrapped.map_err(|failure| Error::from_failure(failure, P::PURPOSE.name()))?;
    Ok(new.row(key, wrapped))
}

pub(super) fn wrap_below_tenant<P: Purpose>(
    kek: &Key<TenantKek>,
    key: &Key<P>,
    new: &NewKey<'_>,
) -> Result<KeyRow, Error>
where
    TenantKek: Wraps<P>,
{
    let wrapped = cloakroom_crypto::wrap(kek, key, &new.context()).map_err(|_| Error::Seal)?;
    Ok(new.row(key, wrapped))
}
