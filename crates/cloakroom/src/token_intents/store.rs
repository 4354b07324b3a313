//! Every SQL statement about token intents, except their conversion, which tokens do.

use cloakroom_crypto::Fingerprint;
use tokio_postgres::Row;
use uuid::Uuid;

use super::TokenIntent;
use crate::audit::{self, EntityKind, Entry, Operation, logged, told_again};
use crate::idempotency::{Kept, replied};
use crate::ids::TenantId;
use crate::security_codes::SealedCode;
use crate::storage::{Db, Error, statements};
use crate::token_types::TokenKind;
use crate::vault::Vault;

/// Parts of a statement that converts intents (a parameter of the type `uuid[]`): they are locked first,
/// nothing is written unless all of them are there, and they go with what is written.
macro_rules! held {
    ($intents:literal) => {
        concat!(
            "held as (
            select intent_id
            from token_intent
            where tenant_id = $1
              and intent_id = any(",
            $intents,
            "::uuid[])
              and expires_at > now()
            order by intent_id
            for update
        )"
        )
    };
}

macro_rules! all_held {
    ($intents:literal) => {
        concat!(
            "cardinality(",
            $intents,
            "::uuid[]) = (select count(*) from held)"
        )
    };
}

macro_rules! consumed {
    ($intents:literal, $done:literal) => {
        concat!(
            "consumed as (
            delete from token_intent
            using ",
            $done,
            "
            where token_intent.tenant_id = $1
              and token_intent.intent_id = any(",
            $intents,
            "::uuid[])
        )"
        )
    };
}

pub(crate) use {all_held, consumed, held};

statements! {
    INSERT: "token_intents::insert" = concat!(
        "with fresh as (
            insert into token_intent
                (tenant_id, intent_id, kind, fingerprint, sealed, created_by, created_at,
                 expires_at, code_key_id, code_sealed, code_until)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + make_interval(secs => $11))
            returning true
        ), ", replied!("$13", "fresh"), ", ", logged!("$12", "fresh"), "
        select true
        from fresh");
    FIND: "token_intents::find" =
        "select intent_id, kind, fingerprint, created_by, created_at, expires_at, sealed
        from token_intent
        where tenant_id = $1
          and intent_id = $2
          and expires_at > now()";
    DELETE: "token_intents::delete" = concat!(
        "with gone as (
            delete from token_intent
            where tenant_id = $1
              and intent_id = $2
              and expires_at > now()
            returning true
        ), ", logged!("$3", "gone"), "
        select true
        from gone");
    // Everything that expired, the longest expired first; nodes that sweep at once take turns.
    SWEEP: "token_intents::sweep" =
        "with due as (
            select tenant_id, intent_id
            from token_intent
            where expires_at <= now()
            order by expires_at
            limit $1
            for update skip locked
        )
        delete from token_intent
        using due
        where token_intent.tenant_id = due.tenant_id
          and token_intent.intent_id = due.intent_id
        returning token_intent.tenant_id, token_intent.intent_id";
    SWEEP_CODES: "token_intents::sweep_codes" =
        "with due as (
            select tenant_id, intent_id
            from token_intent
            where code_until <= now()
            order by code_until
            limit $1
            for update skip locked
        )
        update token_intent
        set code_key_id = null,
            code_sealed = null,
            code_until = null
        from due
        where token_intent.tenant_id = due.tenant_id
          and token_intent.intent_id = due.intent_id
        returning true";
}

/// What one row holds.
pub(super) struct Values<'a> {
    pub intent: &'a TokenIntent,
    pub sealed: Vec<u8>,
    pub code: Option<SealedCode>,
}

pub(super) async fn insert(
    vault: &Vault,
    tenant: TenantId,
    values: &Values<'_>,
    entry: Entry,
    kept: Kept<'_>,
) -> Result<(), Error> {
    let kept_rows = kept.rows(&told_again(std::slice::from_ref(&entry)))?;
    let mut pen = vault.audit.pen().await?;
    let signed = pen.sign(&[entry]);
    let Values {
        intent,
        sealed,
        code,
    } = values;
    let fingerprint = intent.fingerprint.as_ref();
    let written = vault
        .db
        .write(
            &INSERT,
            &[
                &tenant.number,
                &intent.id,
                &(intent.kind as i16),
                &fingerprint.map(|print| &print.as_bytes()[..]),
                sealed,
                &intent.created_by,
                &intent.created_at,
                &intent.expires_at,
                &code.as_ref().map(|code| &code.key_id),
                &code.as_ref().map(|code| &code.sealed),
                &code.as_ref().map(|code| code.retention.as_secs_f64()),
                &signed,
                &kept_rows,
            ],
        )
        .await;
    pen.settle(&written, |rows| !rows.is_empty());
    written?;
    kept.done();
    Ok(())
}

/// An intent that has not expired, unless its row makes no sense, and its sealed data.
pub(super) async fn find(
    db: &Db,
    tenant: TenantId,
    id: &Uuid,
) -> Result<Option<(Option<TokenIntent>, Vec<u8>)>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, id]).await?;
    Ok(row.map(|row| (intent(&row), row.get(6))))
}

fn intent(row: &Row) -> Option<TokenIntent> {
    let fingerprint: Option<Vec<u8>> = row.get(2);
    let fingerprint = fingerprint
        .map(<[u8; 32]>::try_from)
        .transpose()
        .ok()?
        .map(Fingerprint::from);
    Some(TokenIntent {
        id: row.get(0),
        kind: TokenKind::from_number(row.get(1))?,
        fingerprint,
        created_by: row.get(3),
        created_at: row.get(4),
        expires_at: row.get(5),
    })
}

/// Deletes an intent; false when there is none.
pub(super) async fn delete(
    vault: &Vault,
    tenant: TenantId,
    id: &Uuid,
    entry: Entry,
) -> Result<bool, Error> {
    let mut pen = vault.audit.pen().await?;
    let signed = pen.sign(&[entry]);
    let deleted = vault
        .db
        .write(&DELETE, &[&tenant.number, id, &signed])
        .await;
    pen.settle(&deleted, |rows| !rows.is_empty());
    Ok(!deleted?.is_empty())
}

/// Removes up to `limit` expired intents of all tenants, and records it.
pub(super) async fn sweep(vault: &Vault, limit: i64) -> Result<u64, Error> {
    let recorded = audit::begin(vault).await?;
    let rows = recorded.run(&SWEEP, &[&limit]).await?;
    if rows.is_empty() {
        recorded.roll_back().await;
        return Ok(0);
    }
    let entry = |row: &Row| {
        let (tenant, id): (i32, Uuid) = (row.get(0), row.get(1));
        Entry::by_system(tenant, Operation::Expire, EntityKind::TokenIntent, id)
    };
    let entries: Vec<Entry> = rows.iter().map(entry).collect();
    recorded.commit(&entries).await?;
    Ok(rows.len() as u64)
}

/// Forgets up to `limit` codes that have reached their end.
pub(super) async fn sweep_codes(db: &Db, limit: i64) -> Result<u64, Error> {
    let rows = db.write(&SWEEP_CODES, &[&limit]).await?;
    Ok(rows.len() as u64)
}
