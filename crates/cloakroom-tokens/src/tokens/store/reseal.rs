//! Statements that seal tokens again after their key was replaced.

use cloakroom_core::keys::ResealedPage;
use cloakroom_core::{replace_sealed, sealed_page};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, statements};
use uuid::Uuid;

use super::columns::{TokenRow, token_columns};

statements! {
    LIST_SEALED: "tokens::list_sealed" = sealed_page!("token", "token_id", token_columns!());
    REPLACE_SEALED: "tokens::replace_sealed" = replace_sealed!("token", "token_id");
}

/// Lists up to `limit` tokens of a tenant after a key, also expired ones.
pub(crate) async fn list_sealed(
    db: &Db,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<TokenRow>, Error> {
    let params: Params<'_> = &[&tenant.number, &after, &limit];
    let rows = db.read(&LIST_SEALED, params).await?;
    Ok(rows.iter().map(TokenRow::decode).collect())
}

pub(crate) async fn replace_sealed(
    db: &Db,
    tenant: TenantId,
    page: ResealedPage,
) -> Result<ResealedPage, Error> {
    page.write(db, &REPLACE_SEALED, tenant).await
}
