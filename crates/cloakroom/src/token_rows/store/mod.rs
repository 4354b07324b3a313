//! Every SQL statement about single tokens and what stands or falls with them.

mod change;
mod columns;
mod expired;
mod together;
mod write;

use cloakroom_crypto::Fingerprint;
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use self::together::{Asked, behind};
use crate::access::Container;
use crate::ids::TenantId;
use crate::storage::{Db, Error, statements};
use crate::token_attributes::Term;
use crate::token_attributes::{Expiry, TokenId};

pub(crate) use self::change::{Before, CodeChange, Outcome, Told, Values, Write};
pub(crate) use self::expired::STATEMENTS as EXPIRED_STATEMENTS;
pub(crate) use self::expired::{is_expired, key_is_taken, sweep, sweep_one};
pub(crate) use self::together::STATEMENTS as SHARED_STATEMENTS;
pub(crate) use self::together::{Finding, Reads, Writes};
pub(crate) use self::write::STATEMENTS as WRITE_STATEMENTS;
pub(crate) use self::write::{delete, write};

/// The columns of a token in the order that `TokenRow` reads them.
macro_rules! token_columns {
    () => {
        token_columns!("token.sealed")
    };
    ($sealed:literal) => {
        concat!(
            "token.token_id, token.alias, token.row_version, token.container_id, token.kind,
               token.expires_at, token.expires_offset_minutes, token.created_at, token.created_by,
               token.modified_at, token.modified_by, ",
            $sealed,
            ", token.mask, token.metadata,
               token.fingerprint, token.fingerprint_expression, token.search_indexes, token.terms,
               coalesce(token.security_code_until > now(), false)"
        )
    };
}
pub(crate) use token_columns;

/// A token as the table keeps it.
pub(crate) struct TokenRow {
    pub id: TokenId,
    pub row_version: u32,
    pub container: i32,
    pub kind: i16,
    pub expiry: Option<Expiry>,
    pub created_at: Timestamp,
    pub created_by: Uuid,
    pub modified_at: Option<Timestamp>,
    pub modified_by: Option<Uuid>,
    pub sealed: Vec<u8>,
    pub mask: Option<String>,
    pub metadata: Option<String>,
    pub fingerprint: Option<Fingerprint>,
    pub fingerprint_expression: Option<String>,
    pub search_indexes: Option<String>,
    pub terms: Vec<Term>,
    pub has_security_code: bool,
}

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
    FIND_PLACE: "tokens::find_place" =
        "select container_id, alias, kind
        from token
        where tenant_id = $1
          and token_id = $2
          and (expires_at is null or expires_at > now())";
    // The oldest one with this fingerprint, except the one that asks.
    FIND_EQUAL: "tokens::find_equal" = concat!(
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
}

/// Finds a token that has not expired.
///
/// A name and a UUID can share a key, and only one of them is this token's id: whoever opens the row
/// compares them, because only then it is known that nobody changed the name.
pub(crate) async fn find(
    reads: &Reads,
    tenant: TenantId,
    id: &TokenId,
) -> Result<Option<TokenRow>, Error> {
    let asked = Asked {
        tenant: tenant.number,
        key: *id.key(),
    };
    // A read that got lost has changed nothing.
    let row = reads.join(asked).await.unwrap_or_else(|_| Err(behind()))?;
    Ok(row.as_ref().map(TokenRow::read))
}

/// Finds the tokens under the keys of these ids that have not expired, in no order.
pub(crate) async fn find_all(
    db: &Db,
    tenant: TenantId,
    ids: &[TokenId],
) -> Result<Vec<TokenRow>, Error> {
    let keys: Vec<&Uuid> = ids.iter().map(TokenId::key).collect();
    let rows = db.read(&FIND_ALL, &[&tenant.number, &keys]).await?;
    Ok(rows.iter().map(TokenRow::read).collect())
}

/// Finds the container and the type of a token that has not expired.
pub(crate) async fn find_place(
    db: &Db,
    tenant: TenantId,
    id: &TokenId,
) -> Result<Option<(i32, i16)>, Error> {
    let row = db
        .read_optional(&FIND_PLACE, &[&tenant.number, &id.key()])
        .await?;
    let row = row.filter(|row| row.get::<_, Option<&str>>(1) == id.alias());
    Ok(row.map(|row| (row.get(0), row.get(2))))
}

/// Finds the oldest other token with this fingerprint in this container.
pub(crate) async fn find_equal(
    db: &Db,
    tenant: TenantId,
    fingerprint: &Fingerprint,
    container: &Container,
    except: &Uuid,
) -> Result<Option<TokenRow>, Error> {
    let bytes = &fingerprint.as_bytes()[..];
    let row = db
        .read_optional(
            &FIND_EQUAL,
            &[
                &tenant.number,
                &&bytes[..16],
                &container.as_str(),
                except,
                &bytes,
            ],
        )
        .await?;
    Ok(row.as_ref().map(TokenRow::read))
}

impl TokenRow {
    /// Reads `token_columns!`, which come first.
    pub(crate) fn read(row: &Row) -> Self {
        let expires_at: Option<Timestamp> = row.get(5);
        let fingerprint: Option<&[u8]> = row.get(14);
        let terms: Vec<&[u8]> = row.get(17);
        Self {
            id: TokenId::kept(row.get(0), row.get(1)),
            row_version: row.get::<_, i32>(2).cast_unsigned(),
            container: row.get(3),
            kind: row.get(4),
            expiry: expires_at.map(|at| Expiry {
                at,
                offset_minutes: row.get::<_, Option<i16>>(6).unwrap_or(0),
            }),
            created_at: row.get(7),
            created_by: row.get(8),
            modified_at: row.get(9),
            modified_by: row.get(10),
            sealed: row.get(11),
            mask: row.get(12),
            metadata: row.get(13),
            fingerprint: fingerprint
                .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
                .map(Fingerprint::from),
            fingerprint_expression: row.get(15),
            search_indexes: row.get(16),
            terms: terms
                .into_iter()
                .filter_map(|term| term.try_into().ok())
                .collect(),
            has_security_code: row.get(18),
        }
    }
}
