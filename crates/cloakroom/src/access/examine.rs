//! Looking over every row that grants rights: was it written by the vault?

use uuid::Uuid;

use super::row_mac::Authenticated as _;
use super::{Error, store};
use crate::ids::TenantId;
use crate::vault::Vault;

const PAGE: i64 = 500;

/// What an examination of tenants, applications and keys found.
#[derive(Debug, Default)]
pub struct Examined {
    pub rows: usize,
    /// Tenants that are not deleted and whose row is genuine; only their other rows are looked at.
    pub tenants: Vec<TenantId>,
    /// Sentences that name each row which was changed outside the vault.
    pub altered: Vec<String>,
}

/// Verifies the digest of every tenant, application and API key.
pub async fn examine(vault: &Vault) -> Result<Examined, Error> {
    let control = vault.keys.control();
    let mut examined = Examined::default();
    let mut after = 0;
    loop {
        let page = store::list_tenants(&vault.db, after, PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = last.id.number;
        for (tenant, mac) in page {
            let genuine = tenant.is_genuine(control, &mac);
            let genuine = examined.judge(genuine, "tenant", tenant.id.uuid);
            if genuine && tenant.deleted_at.is_none() {
                examined.tenants.push(tenant.id);
            }
        }
    }
    for tenant in examined.tenants.clone() {
        examine_applications(vault, tenant, &mut examined).await?;
        examine_keys(vault, tenant, &mut examined).await?;
    }
    Ok(examined)
}

async fn examine_applications(
    vault: &Vault,
    tenant: TenantId,
    examined: &mut Examined,
) -> Result<(), Error> {
    let mut after = Uuid::nil();
    loop {
        let page = store::list_applications(&vault.db, tenant, after, PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        after = last.id;
        for (application, mac) in page {
            let genuine = application.is_genuine(vault.keys.control(), &mac);
            examined.judge(genuine, "application", application.id);
        }
    }
}

async fn examine_keys(
    vault: &Vault,
    tenant: TenantId,
    examined: &mut Examined,
) -> Result<(), Error> {
    let mut after = (Uuid::nil(), Uuid::nil());
    loop {
        let page = store::list_keys(&vault.db, tenant, after, PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        after = (last.application, last.id);
        for (key, mac) in page {
            examined.judge(
                key.is_genuine(vault.keys.control(), &mac),
                "API key",
                key.id,
            );
        }
    }
}

impl Examined {
    fn judge(&mut self, genuine: bool, what: &str, id: Uuid) -> bool {
        self.rows += 1;
        if !genuine {
            self.altered
                .push(format!("the {what} {id} was changed outside the vault"));
        }
        genuine
    }
}
