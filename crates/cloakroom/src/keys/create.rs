//! Making keys: the vault's own when it is first used, and a tenant's when it is created.

use cloakroom_crypto::{
    Audit, Control, Data, Fingerprinting, Index, Key, Purpose, Reply, RootKek, TenantKek,
    WrapContext, Wraps,
};

use super::store::{self, KeyRow};
use super::{Error, RootKey, State};
use crate::ids::TenantId;
use crate::storage::{Db, Transaction};

/// The first version of every key.
const FIRST: u32 = 1;

/// Binds an empty database to the environment and gives it its system keys.
///
/// Safe to call again and from several places at once: what exists stays.
pub async fn initialize(db: &Db, root: &RootKey, environment: &str) -> Result<(), Error> {
    store::bind_environment(db, environment).await?;
    let known = store::list_system_keys(db).await?;
    let lacks = |purpose: i16| !known.iter().any(|key| key.purpose == purpose);
    let lacks_any = lacks(Control::PURPOSE.number()) || lacks(Audit::PURPOSE.number());
    // New keys beside old tenants would make every row of theirs look forged.
    if lacks_any && store::any_tenant_keys(db).await? {
        return Err(Error::SystemKeysLost);
    }
    let context = WrapContext {
        environment,
        tenant: None,
        version: FIRST,
    };
    if lacks(Control::PURPOSE.number()) {
        let key = wrap_below_root(root, &Key::<Control>::generate(), &context).await?;
        store::insert_system_key(db, &key).await?;
    }
    if lacks(Audit::PURPOSE.number()) {
        let key = wrap_below_root(root, &Key::<Audit>::generate(), &context).await?;
        store::insert_system_key(db, &key).await?;
    }
    Ok(())
}

/// Makes a tenant's keys, one per purpose, inside the transaction that makes the tenant.
pub async fn create_tenant_keys(
    transaction: &Transaction,
    root: &RootKey,
    environment: &str,
    tenant: TenantId,
) -> Result<(), Error> {
    let context = WrapContext {
        environment,
        tenant: Some(tenant.uuid.into_bytes()),
        version: FIRST,
    };
    let kek = Key::<TenantKek>::generate();
    let keys = [
        wrap_below_root(root, &kek, &context).await?,
        wrap_below_tenant(&kek, &Key::<Data>::generate(), &context)?,
        wrap_below_tenant(&kek, &Key::<Fingerprinting>::generate(), &context)?,
        wrap_below_tenant(&kek, &Key::<Index>::generate(), &context)?,
        wrap_below_tenant(&kek, &Key::<Reply>::generate(), &context)?,
    ];
    for key in &keys {
        store::insert_tenant_key(transaction, tenant, key).await?;
    }
    Ok(())
}

async fn wrap_below_root<P: Purpose>(
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
