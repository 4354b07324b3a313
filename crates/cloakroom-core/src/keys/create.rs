//! Creates keys: the system keys when the vault is initialized, and the keys of a new tenant.

use cloakroom_crypto::{
    AuditAuthority, Control, Data, Fingerprinting, Index, Key, Purpose, Reply, Request, RootKek,
    TenantKek, WrapContext, Wraps,
};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Transaction};

use super::store::{self, KeyRow};
use super::{Error, RootKey, State};

/// The first version of every key.
const FIRST_VERSION: u32 = 1;

/// Binds an empty database to the environment and creates its system keys.
///
/// Idempotent and safe to run concurrently: existing keys are not replaced.
pub async fn initialize(db: &Db, root: &RootKey, environment: &str) -> Result<(), Error> {
    store::bind_environment(db, environment).await?;
    let known = store::list_system_keys(db).await?;
    let lacks = |purpose: i16| !known.iter().any(|key| key.purpose == purpose);
    let lacks_any = lacks(Control::PURPOSE.number()) || lacks(AuditAuthority::PURPOSE.number());
    // With new system keys, the MACs of all existing tenants' rows would fail to verify.
    if lacks_any && store::any_tenant_keys(db).await? {
        return Err(Error::SystemKeysLost);
    }
    let context = WrapContext {
        environment,
        tenant: None,
        version: FIRST_VERSION,
    };
    if lacks(Control::PURPOSE.number()) {
        let key = wrap_below_root(root, &Key::<Control>::generate(), &context).await?;
        store::insert_system_key(db, &key).await?;
    }
    if lacks(AuditAuthority::PURPOSE.number()) {
        let key = wrap_below_root(root, &Key::<AuditAuthority>::generate(), &context).await?;
        store::insert_system_key(db, &key).await?;
    }
    Ok(())
}

/// Creates a tenant's keys, one per purpose, in the transaction that creates the tenant.
pub async fn create_tenant_keys(
    transaction: &Transaction,
    root: &RootKey,
    environment: &str,
    tenant: TenantId,
) -> Result<(), Error> {
    let context = WrapContext {
        environment,
        tenant: Some(tenant.uuid.into_bytes()),
        version: FIRST_VERSION,
    };
    let kek = Key::<TenantKek>::generate();
    let keys = [
        wrap_below_root(root, &kek, &context).await?,
        wrap_below_tenant(&kek, &Key::<Data>::generate(), &context)?,
        wrap_below_tenant(&kek, &Key::<Fingerprinting>::generate(), &context)?,
        wrap_below_tenant(&kek, &Key::<Index>::generate(), &context)?,
        wrap_below_tenant(&kek, &Key::<Reply>::generate(), &context)?,
        wrap_below_tenant(&kek, &Key::<Request>::generate(), &context)?,
    ];
    for key in &keys {
        store::insert_tenant_key(transaction, tenant, key).await?;
    }
    Ok(())
}

pub(super) async fn wrap_below_root<P: Purpose>(
    root: &RootKey,
    key: &Key<P>,
    context: &WrapContext<'_>,
) -> Result<KeyRow, Error>
where
    RootKek: Wraps<P>,
{
    Ok(active_row(key, context, root.wrap(key, context).await?))
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
