//! Finding the code of a token.

use cloakroom_crypto::Sensitive;
use uuid::Uuid;

use super::{count, open, store};
use crate::ids::TenantId;
use crate::storage;
use crate::vault::Vault;

/// The code of a token, while it has not expired by the database's clock and its key lives.
///
/// Only the database can make this fail: without Redis, codes of other nodes are absent.
pub async fn find(
    vault: &Vault,
    tenant: TenantId,
    token_id: &Uuid,
) -> Result<Option<Sensitive<String>>, storage::Error> {
    let Some(kept) = store::find(&vault.db, tenant, token_id).await? else {
        count("absent");
        return Ok(None);
    };
    Ok(open(vault, tenant, token_id, &kept.key_id, &kept.sealed).await)
}
