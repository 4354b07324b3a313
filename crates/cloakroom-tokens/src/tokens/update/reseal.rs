//! Seals the tokens of a tenant again after its data key was replaced.

use cloakroom_core::keys::{ResealedPage, TenantKeys};
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use crate::containers;
use crate::data_vault::DataVault;
use crate::tokens::store::{self, TokenRow};
use crate::tokens::{Error, Token};
use crate::types::TokenKind;

/// Seals up to `limit` tokens after the key `after`. Their versions and times do not change.
pub async fn reseal(
    vault: &DataVault,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
    limit: i64,
) -> Result<ResealedPage, Error> {
    let rows = store::list_sealed(&vault.db, tenant, after, limit).await?;
    let mut page = ResealedPage::default();
    for row in rows {
        let (key, sealed, terms) = (*row.id.key(), row.sealed.clone(), row.terms.clone());
        let token = token(vault, tenant, row).await?;
        let record = token.as_ref().map(|token| token.record(&terms));
        page.add(keys, key, record.as_ref(), &sealed);
    }
    Ok(store::replace_sealed(&vault.db, tenant, page).await?)
}

/// The token of a row; `None` if its type or container is invalid.
pub(super) async fn token(
    vault: &DataVault,
    tenant: TenantId,
    row: TokenRow,
) -> Result<Option<Token>, Error> {
    let container = containers::container_of(&vault.container_numbers, tenant, row.container);
    Ok(match (TokenKind::from_number(row.kind), container.await?) {
        (Some(kind), Some(container)) => Some(Token {
            id: row.id,
            kind,
            container,
            attributes: row.attributes,
            row_version: row.row_version,
            fingerprint: row.fingerprint,
            has_security_code: row.has_security_code,
            security_code_until: row.security_code_until,
            created_by: row.created_by,
            created_at: row.created_at,
            modified_by: row.modified_by,
            modified_at: row.modified_at,
        }),
        _ => None,
    })
}
