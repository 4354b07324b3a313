//! Computes the fingerprints and search terms of a tenant's tokens again after their key was replaced.

use cloakroom_core::keys::{self, ResealedPage, SEALED_IDENTITY, ScannedPage, TenantKeys};
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::reseal::token;
use crate::attributes::Digests;
use crate::fingerprint_pairs;
use crate::tokens::content::Content;
use crate::tokens::store::{self, RedigestedTokens, TokenRow};
use crate::tokens::{Error, Token, TokenVault};

/// Rows of `term` and `claim` that one statement examines.
const SWEPT_AT_ONCE: i64 = 20_000;

/// A token whose digests were computed again.
enum Examined {
    Current,
    Former(Box<FormerToken>),
    /// It does not open, or its expressions fail.
    Unreadable,
}

/// A token with digests under another version of a key.
struct FormerToken {
    /// With the new fingerprint.
    token: Token,
    digests: Digests,
    content: Content,
    opened: Vec<u8>,
}

/// Replaces the digests of up to `limit` tokens after the key `after`. Their versions and times do not change.
pub async fn redigest(
    vault: &TokenVault,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
    limit: i64,
) -> Result<ResealedPage, Error> {
    let mut page = ResealedPage::default();
    let (mut tokens, mut former) = (RedigestedTokens::default(), Vec::new());
    for row in store::list_sealed(&vault.db, tenant, after, limit).await? {
        page.scanned += 1;
        page.last = Some(*row.id.key());
        match examine(vault, tenant, keys, row).await? {
            Examined::Current => {}
            Examined::Unreadable => page.unreadable += 1,
            Examined::Former(token) => former.push(token),
        }
    }
    for it in &former {
        let (token, terms) = (&it.token, &it.digests.terms);
        let sealed = it.content.seal(keys, token, terms)?;
        let fingerprint = token.fingerprint.as_ref();
        let values = (it.opened.clone(), sealed);
        tokens.push(*token.id.key(), values, fingerprint, terms);
    }
    let digests = former.iter().map(|it| &it.digests);
    let values = digests.map(|it| (it.fingerprint, &it.other_fingerprints[..]));
    fingerprint_pairs::insert(&vault.db, tenant, values).await?;
    let epoch = keys.digest_epoch();
    page.rewritten = store::replace_digests(&vault.db, tenant, &tokens, epoch).await?;
    Ok(page)
}

/// Counts the tokens among up to `limit` after the key `after` whose digests are not those of the active keys.
pub async fn count_former(
    vault: &TokenVault,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
    limit: i64,
) -> Result<ScannedPage, Error> {
    let mut page = ScannedPage::default();
    for row in store::list_sealed(&vault.db, tenant, after, limit).await? {
        page.rows += 1;
        page.last = Some(*row.id.key());
        match examine(vault, tenant, keys, row).await? {
            Examined::Current => {}
            Examined::Former(_) | Examined::Unreadable => page.found += 1,
        }
    }
    Ok(page)
}

/// Deletes rows of the tables by which tokens are found that no token names. Returns the tables and how many rows each
/// has. With all tokens current, no digest under an older version is left in them.
pub async fn remove_unnamed_rows(
    vault: &TokenVault,
    tenant: TenantId,
    purpose: KeyPurpose,
) -> Result<Vec<(&'static str, u64)>, Error> {
    let db = &vault.db;
    let (rows, removed) = store::remove_unnamed_terms(db, tenant, SWEPT_AT_ONCE).await?;
    let mut tables = vec![("term", rows - removed)];
    if purpose == KeyPurpose::Fingerprint {
        let (rows, removed) = store::remove_unnamed_claims(db, tenant, SWEPT_AT_ONCE).await?;
        tables.push(("claim", rows - removed));
    }
    Ok(tables)
}

/// Opens a token and compares its digests with those of the active keys.
async fn examine(
    vault: &TokenVault,
    tenant: TenantId,
    keys: &TenantKeys,
    row: TokenRow,
) -> Result<Examined, Error> {
    let (sealed, terms) = (row.sealed.clone(), row.terms.clone());
    let (Some(mut token), Some(opened)) = (
        token(vault, tenant, row).await?,
        sealed.get(SEALED_IDENTITY),
    ) else {
        return Ok(Examined::Unreadable);
    };
    let data = vault
        .keys
        .open(tenant, &token.record(&terms), &sealed)
        .await;
    let data = match data {
        Err(keys::Error::Integrity) => return Ok(Examined::Unreadable),
        data => data?,
    };
    let content = Content {
        kind: token.kind,
        data,
        container: token.container.clone(),
        attributes: token.attributes.clone(),
    };
    // A token that the velocity limit left without a fingerprint gets none here.
    let has_fingerprint = token.fingerprint.is_some();
    let digests = content.digests(vault, tenant, keys, has_fingerprint).await;
    let digests = match digests {
        Err(Error::Invalid(_)) => return Ok(Examined::Unreadable),
        digests => digests?,
    };
    if digests.fingerprint == token.fingerprint && digests.terms == terms {
        return Ok(Examined::Current);
    }
    token.fingerprint = digests.fingerprint;
    Ok(Examined::Former(Box::new(FormerToken {
        token,
        digests,
        content,
        opened: opened.to_vec(),
    })))
}
