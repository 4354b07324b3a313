//! Creates keys: the system keys when the vault is initialized, and the keys of a new tenant.

use cloakroom_crypto::{
    AuditAuthority, Control, Data, Fingerprinting, Index, Key, Purpose, Reply, Request, RootKek,
    SecurityCodeWrap, TenantKek, WrapContext, Wraps,
};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Transaction};

use super::store::{self, KeyRow};
use super::{Error, RootKeys, State};

/// The first version of every key.
const FIRST_VERSION: u32 = 1;

/// Binds an empty database to the environment and creates its system keys.
///
/// Idempotent and safe to run concurrently: existing keys are not replaced.
pub async fn initialize(db: &Db, root: &RootKeys, environment: &str) -> Result<(), Error> {
    store::bind_environment(db, environment).await?;
    let known = store::list_system_keys(db).await?;
    let lacks = |purpose: i16| !known.iter().any(|key| key.purpose == purpose);
    let (control, audit) = (Control::PURPOSE.number(), AuditAuthority::PURPOSE.number());
    let security_codes = SecurityCodeWrap::PURPOSE.number();
    let lacks_any = lacks(control) || lacks(audit) || lacks(security_codes);
    // With new system keys, the MACs of all existing tenants' rows would fail to verify.
    if lacks_any && store::any_tenant_keys(db).await? {
        return Err(Error::SystemKeysLost);
    }
    if lacks(control) {
        insert_system_key(db, root, environment, &Key::<Control>::generate()).await?;
    }
    if lacks(audit) {
        insert_system_key(db, root, environment, &Key::<AuditAuthority>::generate()).await?;
    }
    if lacks(security_codes) {
        insert_system_key(db, root, environment, &Key::<SecurityCodeWrap>::generate()).await?;
    }
    Ok(())
}

async fn insert_system_key<P: Purpose>(
    db: &Db,
    root: &RootKeys,
    environment: &str,
    key: &Key<P>,
) -> Result<(), Error>
where
    RootKek: Wraps<P>,
{
    let context = WrapContext {
        environment,
        tenant: None,
        version: FIRST_VERSION,
    };
    let row = wrap_below_root(root, key, &context).await?;
    Ok(store::insert_system_key(db, &row).await?)
}

/// The keys of a new tenant, wrapped and not stored yet.
pub struct NewTenantKeys(Vec<KeyRow>);

impl NewTenantKeys {
    /// Creates one key per purpose. Calls the key provider, so it comes before the transaction that stores them.
    pub async fn create(
        root: &RootKeys,
        environment: &str,
        tenant: TenantId,
    ) -> Result<Self, Error> {
        let context = WrapContext {
            environment,
            tenant: Some(tenant.uuid.into_bytes()),
            version: FIRST_VERSION,
        };
        let kek = Key::<TenantKek>::generate();
        Ok(Self(vec![
            wrap_below_root(root, &kek, &context).await?,
            wrap_below_tenant(&kek, &Key::<Data>::generate(), &context)?,
            wrap_below_tenant(&kek, &Key::<Fingerprinting>::generate(), &context)?,
            wrap_below_tenant(&kek, &Key::<Index>::generate(), &context)?,
            wrap_below_tenant(&kek, &Key::<Reply>::generate(), &context)?,
            wrap_below_tenant(&kek, &Key::<Request>::generate(), &context)?,
        ]))
    }

    /// Inserts the keys in the transaction that creates the tenant.
    pub async fn insert(&self, transaction: &Transaction, tenant: TenantId) -> Result<(), Error> {
        for key in &self.0 {
            store::insert_tenant_key(transaction, tenant, key).await?;
        }
        Ok(())
    }
}

pub(super) async fn wrap_below_root<P: Purpose>(
    root: &RootKeys,
    key: &Key<P>,
    context: &WrapContext<'_>,
) -> Result<KeyRow, Error>
where
    RootKek: Wraps<P>,
{
    let wrapped = root.wrap(key, context).await;
    let wrapped = wrapped.map_err(|failure| Error::from_failure(failure, P::PURPOSE.name()))?;
    Ok(active_row(key, context, wrapped))
}

fn wrap_below_tenant<P: Purpose>(
    kek: &Key<TenantKek>,
    key: &Key<P>,
    context: &WrapContext<'_>,
) -> Result<KeyRow, Error>
where
    TenantKek: Wraps<P>,
{
    let wrapped = cloakroom_crypto::wrap(kek, key, context).map_err(|_| Error::Seal)?;
    Ok(active_row(key, context, wrapped))
}

fn active_row<P: Purpose>(key: &Key<P>, context: &WrapContext<'_>, wrapped: Vec<u8>) -> KeyRow {
    KeyRow {
        purpose: P::PURPOSE.number(),
        version: context.version,
        state: State::Active as i16,
        wrapped,
        check_value: key.check_value().as_bytes().to_vec(),
    }
}
