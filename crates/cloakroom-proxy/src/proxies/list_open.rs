//! Lists proxies that need no API key.

use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::{Error, row, store};

const PAGE: i64 = 100;

/// The ids of the tenant's proxies whose key is enough to invoke them. Rows that were changed outside the vault invoke
/// nothing, and are not listed.
pub async fn list_open(vault: &Vault, tenant: TenantId) -> Result<Vec<Uuid>, Error> {
    let (mut open, mut after) = (Vec::new(), Uuid::nil());
    loop {
        let page = store::list_after(&vault.db, tenant, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(open);
        };
        after = last.row.id;
        for stored in page {
            match row::open(vault, tenant, stored).await {
                Ok(proxy) if !proxy.sealed.require_auth => open.push(proxy.id),
                Ok(_) | Err(Error::Altered(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
