//! Every SQL statement about tokens.

use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::TokenKind;
use super::expiry::Expiry;
use crate::ids::TenantId;
use crate::storage::{Db, Error, statements};

/// A token on its way into the table.
pub(super) struct NewRow<'a> {
    pub id: Uuid,
    pub container: i32,
    pub kind: TokenKind,
    pub expiry: Option<Expiry>,
    pub created_by: Uuid,
    pub sealed: &'a [u8],
    pub mask: Option<&'a str>,
    pub metadata: Option<&'a str>,
}

/// A token as the table keeps it.
pub(super) struct TokenRow {
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
}

statements! {
    // The database's clock decides whether an expiry still lies ahead.
    INSERT: "tokens::insert" =
        "insert into token
            (tenant_id, token_id, container_id, kind, expires_at, expires_offset_minutes,
             created_by, sealed, mask, metadata)
        select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
        where $5::timestamptz is null
           or $5::timestamptz > now()
        returning created_at";
    FIND: "tokens::find" =
        "select row_version, container_id, kind, expires_at, expires_offset_minutes, created_at,
               created_by, modified_at, modified_by, sealed, mask, metadata
        from token
        where tenant_id = $1
          and token_id = $2
          and (expires_at is null or expires_at > now())";
    FIND_CONTAINER_NUMBER_OF_TOKEN: "tokens::find_container_number_of_token" =
        "select container_id
        from token
        where tenant_id = $1
          and token_id = $2
          and (expires_at is null or expires_at > now())";
    DELETE: "tokens::delete" =
        "delete from token
        where tenant_id = $1
          and token_id = $2
          and container_id = $3
        returning true";
    DELETE_EXPIRED: "tokens::delete_expired" =
        "delete from token
        where tenant_id = $1
          and token_id = $2
          and expires_at <= now()
        returning true";
}

/// Keeps a token; `None` when its expiry has already passed.
pub(super) async fn insert(
    db: &Db,
    tenant: TenantId,
    new: &NewRow<'_>,
) -> Result<Option<Timestamp>, Error> {
    let kind = new.kind as i16;
    let expires_at = new.expiry.map(|expiry| expiry.at);
    let offset_minutes = new.expiry.map(|expiry| expiry.offset_minutes);
    let rows = db
        .write(
            &INSERT,
            &[
                &tenant.number,
                &new.id,
                &new.container,
                &kind,
                &expires_at,
                &offset_minutes,
                &new.created_by,
                &new.sealed,
                &new.mask,
                &new.metadata,
            ],
        )
        .await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Finds a token that has not expired.
pub(super) async fn find(db: &Db, tenant: TenantId, id: Uuid) -> Result<Option<TokenRow>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, &id]).await?;
    Ok(row.as_ref().map(token_row))
}

/// Finds the container of a token that has not expired.
pub(super) async fn find_container_number_of_token(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<i32>, Error> {
    let row = db
        .read_optional(&FIND_CONTAINER_NUMBER_OF_TOKEN, &[&tenant.number, &id])
        .await?;
    Ok(row.map(|row| row.get(0)))
}

/// Deletes a token from the container it was seen in; false when it is no longer there.
pub(super) async fn delete(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
    container: i32,
) -> Result<bool, Error> {
    let rows = db
        .write(&DELETE, &[&tenant.number, &id, &container])
        .await?;
    Ok(!rows.is_empty())
}

/// Removes an expired token that still occupies its id; false when there was none.
pub(super) async fn delete_expired(db: &Db, tenant: TenantId, id: Uuid) -> Result<bool, Error> {
    let rows = db.write(&DELETE_EXPIRED, &[&tenant.number, &id]).await?;
    Ok(!rows.is_empty())
}

fn token_row(row: &Row) -> TokenRow {
    let expires_at: Option<Timestamp> = row.get(3);
    TokenRow {
        row_version: row.get::<_, i32>(0).cast_unsigned(),
        container: row.get(1),
        kind: row.get(2),
        expiry: expires_at.map(|at| Expiry {
            at,
            offset_minutes: row.get::<_, Option<i16>>(4).unwrap_or(0),
        }),
        created_at: row.get(5),
        created_by: row.get(6),
        modified_at: row.get(7),
        modified_by: row.get(8),
        sealed: row.get(9),
        mask: row.get(10),
        metadata: row.get(11),
    }
}
