//! Finds the security code of a token.

use cloakroom_crypto::Sensitive;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use uuid::Uuid;

use super::{SecurityCodes, count, open, store};

/// Returns the code of a token, if it has not expired by the database's clock and its key is available.
///
/// Only the database can cause an error: without Redis, codes sealed by other nodes are absent.
pub async fn find(
    codes: &SecurityCodes,
    tenant: TenantId,
    token_id: &Uuid,
) -> Result<Option<Sensitive<String>>, storage::Error> {
    let Some(stored) = store::find(&codes.vault.db, tenant, token_id).await? else {
        count("absent");
        return Ok(None);
    };
    Ok(open(codes, tenant, token_id, &stored).await)
}
