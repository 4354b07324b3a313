//! Looking every kept key over: does it unwrap, and is it the key its row says?

use cloakroom_crypto::{
    Audit, Control, Data, Fingerprinting, Index, Key, Purpose, Reply, RootKek, TenantKek,
    WrapContext, Wraps,
};

use super::store::{self, KeyRow};
use super::{Error, RootKey, State};
use crate::ids::TenantId;
use crate::storage::Db;

/// What an examination of keys found.
#[derive(Debug, Default)]
pub struct Examined {
    pub keys: usize,
    /// Sentences that name each key which is not usable.
    pub broken: Vec<String>,
}

/// Unwraps every usable key of the vault and of the given tenants.
pub async fn examine(
    db: &Db,
    root: &RootKey,
    environment: &str,
    tenants: &[TenantId],
) -> Result<Examined, Error> {
    let mut examined = Examined::default();
    for row in store::list_system_keys(db).await? {
        let context = WrapContext {
            environment,
            tenant: None,
            version: row.version,
        };
        if is::<Control>(&row) {
            examined
                .below_root::<Control>(root, &context, &row, "the vault")
                .await;
        } else if is::<Audit>(&row) {
            examined
                .below_root::<Audit>(root, &context, &row, "the vault")
                .await;
        }
    }
    for tenant in tenants {
        let owner = format!("tenant {}", tenant.uuid);
        let rows = store::list_tenant_keys(db, *tenant).await?;
        let mut keks = Vec::new();
        for row in &rows {
            let context = context_of(environment, *tenant, row);
            if is::<TenantKek>(row) {
                keks.extend(
                    examined
                        .below_root::<TenantKek>(root, &context, row, &owner)
                        .await,
                );
            }
        }
        examined.require_active::<TenantKek>(&rows, &owner);
        examined.require_active::<Data>(&rows, &owner);
        examined.require_active::<Fingerprinting>(&rows, &owner);
        examined.require_active::<Index>(&rows, &owner);
        examined.require_active::<Reply>(&rows, &owner);
        for row in &rows {
            let context = context_of(environment, *tenant, row);
            examined.below_tenant::<Data>(&keks, &context, row, &owner);
            examined.below_tenant::<Fingerprinting>(&keks, &context, row, &owner);
            examined.below_tenant::<Index>(&keks, &context, row, &owner);
            examined.below_tenant::<Reply>(&keks, &context, row, &owner);
        }
    }
    Ok(examined)
}

fn context_of<'a>(environment: &'a str, tenant: TenantId, row: &KeyRow) -> WrapContext<'a> {
    WrapContext {
        environment,
        tenant: Some(tenant.uuid.into_bytes()),
        version: row.version,
    }
}

fn is<P: Purpose>(row: &KeyRow) -> bool {
    row.purpose == P::PURPOSE.number() && State::from_number(row.state).is_some()
}

impl Examined {
    /// Without an active key of a purpose, nothing new can be sealed under it.
    fn require_active<P: Purpose>(&mut self, rows: &[KeyRow], owner: &str) {
        let is_active = |row: &KeyRow| State::from_number(row.state) == Some(State::Active);
        if !rows.iter().any(|row| is::<P>(row) && is_active(row)) {
            let name = P::PURPOSE.name();
            self.broken
                .push(format!("{owner} has no active {name} key"));
        }
    }

    async fn below_root<P: Purpose>(
        &mut self,
        root: &RootKey,
        context: &WrapContext<'_>,
        row: &KeyRow,
        owner: &str,
    ) -> Option<Key<P>>
    where
        RootKek: Wraps<P>,
    {
        let key = root.unwrap::<P>(&row.wrapped, context).await.ok();
        self.judge(key, row, owner)
    }

    fn below_tenant<P: Purpose>(
        &mut self,
        keks: &[Key<TenantKek>],
        context: &WrapContext<'_>,
        row: &KeyRow,
        owner: &str,
    ) where
        TenantKek: Wraps<P>,
    {
        if is::<P>(row) {
            let key = keks
                .iter()
                .find_map(|kek| cloakroom_crypto::unwrap::<_, P>(kek, context, &row.wrapped).ok());
            self.judge(key, row, owner);
        }
    }

    fn judge<P: Purpose>(
        &mut self,
        key: Option<Key<P>>,
        row: &KeyRow,
        owner: &str,
    ) -> Option<Key<P>> {
        self.keys += 1;
        let intact = key.filter(|key| key.check_value().as_bytes()[..] == row.check_value);
        if intact.is_none() {
            self.broken.push(format!(
                "version {} of the {} key of {owner} cannot be used: another root key wrapped it, \
                 or it was altered",
                row.version,
                P::PURPOSE.name()
            ));
        }
        intact
    }
}
