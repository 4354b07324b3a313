//! SQL statements for single tokens and their dependent rows.

mod change;
mod claims;
mod columns;
mod delete;
mod expired;
mod export;
mod history;
mod import;
mod insert;
mod inserter;
mod reader;
mod redigest;
mod reseal;
mod update;

use cloakroom_core::access::Container;
use cloakroom_core::audit::AuditedStatement;
use cloakroom_core::keys::OtherFingerprint;
use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, statements};
use uuid::Uuid;

pub(crate) use self::change::{
    CodeChange, PreviousState, SealedToken, Write, WriteContext, WriteResult,
};
pub(crate) use self::claims::{
    STATEMENTS as CLAIM_STATEMENTS, claim_others, delete_stale_claims, needs_other_claims,
};
pub(crate) use self::columns::{TokenRow, read_columns, read_list, token_columns};
pub(crate) use self::delete::{STATEMENTS as DELETE_STATEMENTS, TokenPlace, delete};
pub(crate) use self::expired::{
    DeletedToken, STATEMENTS as EXPIRED_STATEMENTS, find_expired_claimant, is_expired,
    key_is_taken, sweep, sweep_one, sweep_reserved_ids,
};
pub use self::export::ExportFilter;
pub(crate) use self::export::{
    STATEMENTS as EXPORT_STATEMENTS, count as count_exported, stream as stream_exported,
};
pub(crate) use self::history::{STATEMENTS as HISTORY_STATEMENTS, TokenHistory, stream_histories};
pub(crate) use self::import::{STATEMENTS as IMPORT_STATEMENTS, find_duplicates, find_taken};
pub(crate) use self::insert::{STATEMENTS as INSERT_STATEMENTS, insert_all};
pub(crate) use self::inserter::{PendingInsert, TokenInsertBatchers};
pub(crate) use self::reader::{STATEMENTS as READER_STATEMENTS, TokenReadBatcher, TokenReader};
use self::reader::{TokenKey, queue_full};
pub(crate) use self::redigest::{
    RedigestedTokens, STATEMENTS as REDIGEST_STATEMENTS, remove_unnamed_claims,
    remove_unnamed_terms, replace_digests,
};
pub(crate) use self::reseal::{STATEMENTS as RESEAL_STATEMENTS, list_sealed, replace_sealed};
pub(crate) use self::update::STATEMENTS as UPDATE_STATEMENTS;
use crate::attributes::TokenId;

statements! {
    FIND: "tokens::find" = concat!(
        "select ", token_columns!(), "
        from token
        where tenant_id = $1
          and token_id = $2
          and (expires_at is null or expires_at > now())"
    );
    FIND_ALL: "tokens::find_all" = concat!(
        "select ", token_columns!(), "
        from token
        where tenant_id = $1
          and token_id = any($2)
          and (expires_at is null or expires_at > now())"
    );
    FIND_LOCATION: "tokens::find_place" =
        "select container_id, alias, kind
        from token
        where tenant_id = $1
          and token_id = $2
          and (expires_at is null or expires_at > now())";
    // The oldest token with this fingerprint, except the one given.
    FIND_DUPLICATE: "tokens::find_equal" = concat!(
        "select ", token_columns!(), "
        from term
        join token
          on token.tenant_id = $1
         and token.token_id = term.token_id
        where term.tenant_id = $1
          and term.term = $2
          and term.path = $3
          and term.token_id <> $4
          and token.fingerprint = $5
          and (token.expires_at is null or token.expires_at > now())
        order by term.created_at, term.token_id
        limit 1"
    );
    // The same for all fingerprints of a value, in one snapshot: it can change from one to the other.
    FIND_DUPLICATE_OF_ANY: "tokens::find_equal_to_any" = concat!(
        "select ", token_columns!(), "
        from term
        join token
          on token.tenant_id = $1
         and token.token_id = term.token_id
        where term.tenant_id = $1
          and term.term = any($2)
          and term.path = $3
          and term.token_id <> $4
          and token.fingerprint = any($5)
          and (token.expires_at is null or token.expires_at > now())
        order by term.created_at, term.token_id
        limit 1"
    );
}

/// Finds an unexpired token.
///
/// An alias and a UUID can share a key, and only one of them is the token's id. The caller compares the id after
/// opening the row, because only then is the alias authenticated.
pub(super) async fn find(
    reads: &TokenReadBatcher,
    tenant: TenantId,
    id: &TokenId,
) -> Result<Option<TokenRow>, Error> {
    let token_key = TokenKey {
        tenant: tenant.number,
        key: *id.key(),
    };
    // An unknown outcome is harmless for a read.
    let row = reads
        .process(token_key)
        .await
        .unwrap_or_else(|_| Err(queue_full()))?;
    Ok(row.as_ref().map(TokenRow::decode))
}

/// Finds the unexpired tokens under the keys of these ids, unordered.
pub(super) async fn find_all(
    db: &Db,
    tenant: TenantId,
    ids: &[TokenId],
) -> Result<Vec<TokenRow>, Error> {
    let keys: Vec<&Uuid> = ids.iter().map(TokenId::key).collect();
    let rows = db.read(&FIND_ALL, &[&tenant.number, &keys]).await?;
    Ok(rows.iter().map(TokenRow::decode).collect())
}

/// The container number and the type of a token.
pub(super) struct TokenLocation {
    pub container_number: i32,
    pub kind: i16,
}

/// Finds the container and the type of an unexpired token.
pub(super) async fn find_location(
    db: &Db,
    tenant: TenantId,
    id: &TokenId,
) -> Result<Option<TokenLocation>, Error> {
    let row = db
        .read_optional(&FIND_LOCATION, &[&tenant.number, &id.key()])
        .await?;
    let row = row.filter(|row| row.get::<_, Option<&str>>(1) == id.alias());
    Ok(row.map(|row| TokenLocation {
        container_number: row.get(0),
        kind: row.get(2),
    }))
}

/// Finds the oldest other token with one of a value's fingerprints in this container.
pub(super) async fn find_duplicate(
    db: &Db,
    tenant: TenantId,
    (fingerprint, others): (&Fingerprint, &[OtherFingerprint]),
    container: &Container,
    except: &Uuid,
) -> Result<Option<TokenRow>, Error> {
    if !others.is_empty() {
        let others = others.iter().map(|it| &it.fingerprint);
        let prints = std::iter::once(fingerprint).chain(others);
        let prints: Vec<&[u8]> = prints.map(|print| &print.as_bytes()[..]).collect();
        let terms: Vec<&[u8]> = prints.iter().map(|print| &print[..16]).collect();
        let path = container.as_str();
        let params: Params<'_> = &[&tenant.number, &terms, &path, except, &prints];
        let row = db.read_optional(&FIND_DUPLICATE_OF_ANY, params).await?;
        return Ok(row.as_ref().map(TokenRow::decode));
    }
    let bytes = &fingerprint.as_bytes()[..];
    let row = db
        .read_optional(
            &FIND_DUPLICATE,
            &[
                &tenant.number,
                &&bytes[..16],
                &container.as_str(),
                except,
                &bytes,
            ],
        )
        .await?;
    Ok(row.as_ref().map(TokenRow::decode))
}

/// Runs one write; false if it was rejected.
pub(super) async fn write(
    change: AuditedStatement<'_>,
    tenant: TenantId,
    write: &Write,
    context: WriteContext,
) -> Result<bool, Error> {
    match write {
        Write::Insert(new) => insert::insert(change, tenant, new, context).await,
        Write::Update(before, new) => update::update(change, tenant, before, new, context).await,
        Write::Consume(intent, _) => update::consume(change, tenant, *intent).await,
    }
}
