//! SQL statements for token intents, except their conversion, which is in `tokens`.

use cloakroom_core::audit::{AuditedStatement, audited};
use cloakroom_core::keys::ResealedPage;
use cloakroom_core::{fenced_digests, replace_sealed, sealed_page};
use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use super::TokenIntent;
use crate::security_codes::SealedCode;
use crate::types::TokenKind;

/// Fragments of a statement that converts intents (a parameter of the type `uuid[]`). The intents are locked first,
/// nothing is written unless all of them exist, and they are deleted with the write.
macro_rules! locked_intents {
    ($intents:expr) => {
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

macro_rules! all_intents_locked {
    ($intents:expr) => {
        concat!(
            "cardinality(",
            $intents,
            "::uuid[]) = (select count(*) from held)"
        )
    };
}

macro_rules! deleted_intents {
    ($intents:expr, $done:literal) => {
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

pub(crate) use all_intents_locked;
pub(crate) use deleted_intents;
pub(crate) use locked_intents;

statements! {
    INSERT: "token_intents::insert" = concat!(
        "with fresh as (
            insert into token_intent
                (tenant_id, intent_id, kind, fingerprint, sealed, created_by, created_at,
                 expires_at, code_key_id, code_sealed, code_until)
            values ($1, $2, $3, $4, ", fenced_digests!("$1", "$5", "$12"), ", $6, $7, $8, $9, $10, $11)
            returning true
        ), ", audited!("fresh", entries = "$13", responses = "$14", events = "$15"), "
        select true
        from fresh");
    FIND: "token_intents::find" =
        "select intent_id, kind, fingerprint, created_by, created_at, expires_at, sealed
        from token_intent
        where tenant_id = $1
          and intent_id = $2
          and expires_at > now()";
    FIND_CODE: "token_intents::find_code" =
        "select code_key_id, code_sealed, code_until
        from token_intent
        where tenant_id = $1
          and intent_id = $2
          and expires_at > now()
          and code_until > now()
          and code_key_id is not null
          and code_sealed is not null";
    LIST_SEALED: "token_intents::list_sealed" = sealed_page!(
        "token_intent", "intent_id",
        "intent_id, kind, fingerprint, created_by, created_at, expires_at, sealed");
    REPLACE_SEALED: "token_intents::replace_sealed" = replace_sealed!("token_intent", "intent_id");
    // Replaces fingerprints and the values that are bound to them, each only if it is still the one that was opened.
    REPLACE_FINGERPRINTS: "token_intents::replace_fingerprints" = concat!(
        "with at_once as materialized (
            select set_config('synchronous_commit', 'off', true)
        )
        update token_intent
        set sealed = ", fenced_digests!("$1", "given.sealed", "$6"), ",
            fingerprint = given.fingerprint
        from at_once, unnest($2::uuid[], $3::bytea[], $4::bytea[], $5::bytea[])
            as given (id, opened, sealed, fingerprint)
        where token_intent.tenant_id = $1
          and token_intent.intent_id = given.id
          and substring(token_intent.sealed from 3 for 20) = given.opened
        returning true");
    DELETE: "token_intents::delete" = concat!(
        "with gone as (
            delete from token_intent
            where tenant_id = $1
              and intent_id = $2
              and expires_at > now()
            returning true
        ), ", audited!("gone", entries = "$3", responses = "$4", events = "$5"), "
        select true
        from gone");
    // Expired intents, oldest expiry first. Nodes that sweep concurrently skip each other's rows.
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

/// An intent to insert, with its encrypted data and security code.
pub(super) struct SealedIntent<'a> {
    pub intent: &'a TokenIntent,
    pub sealed: &'a [u8],
    /// The age of the keys that the fingerprint was computed with.
    pub digest_epoch: i32,
    pub code: Option<&'a SealedCode>,
}

pub(super) async fn insert(
    change: AuditedStatement<'_>,
    tenant: TenantId,
    new: &SealedIntent<'_>,
) -> Result<(), Error> {
    let SealedIntent {
        intent,
        sealed,
        digest_epoch,
        code,
    } = new;
    let fingerprint = intent.fingerprint.as_ref();
    let params: Params<'_> = &[
        &tenant.number,
        &intent.id,
        &(intent.kind as i16),
        &fingerprint.map(|print| &print.as_bytes()[..]),
        sealed,
        &intent.created_by,
        &intent.created_at,
        &intent.expires_at,
        &code.map(|code| &code.key_id),
        &code.map(|code| &code.sealed),
        &code.map(|code| code.until),
        digest_epoch,
    ];
    change.run(&INSERT, params).await?;
    Ok(())
}

/// Finds an unexpired intent and its sealed data. The intent is `None` if its row is invalid.
pub(super) async fn find(
    db: &Db,
    tenant: TenantId,
    id: &Uuid,
) -> Result<Option<(Option<TokenIntent>, Vec<u8>)>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, id]).await?;
    Ok(row.map(|row| (intent(&row), row.get(6))))
}

/// Finds the sealed security code of an intent, unless the intent or the code has expired.
pub(super) async fn find_code(
    db: &Db,
    tenant: TenantId,
    id: &Uuid,
) -> Result<Option<SealedCode>, Error> {
    let row = db.read_optional(&FIND_CODE, &[&tenant.number, id]).await?;
    Ok(row.map(|row| SealedCode {
        key_id: row.get(0),
        sealed: row.get(1),
        until: row.get(2),
    }))
}

/// Lists up to `limit` intents after an id, also expired ones, with their sealed data. An intent is `None` if its row is
/// invalid.
pub(super) async fn list_sealed(
    db: &Db,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<(Uuid, Option<TokenIntent>, Vec<u8>)>, Error> {
    let params: Params<'_> = &[&tenant.number, &after, &limit];
    let rows = db.read(&LIST_SEALED, params).await?;
    let listed = |row: &Row| (row.get(0), intent(row), row.get(6));
    Ok(rows.iter().map(listed).collect())
}

pub(super) async fn replace_sealed(
    db: &Db,
    tenant: TenantId,
    page: ResealedPage,
) -> Result<ResealedPage, Error> {
    page.write(db, &REPLACE_SEALED, tenant).await
}

/// Intents with new fingerprints, as parameters.
#[derive(Default)]
pub(super) struct RefingerprintedIntents {
    ids: Vec<Uuid>,
    opened: Vec<Vec<u8>>,
    sealed: Vec<Vec<u8>>,
    fingerprints: Vec<Option<Vec<u8>>>,
}

impl RefingerprintedIntents {
    /// Adds an intent; `opened` identifies the value that was opened.
    pub(super) fn push(&mut self, intent: &TokenIntent, opened: Vec<u8>, sealed: Vec<u8>) {
        let fingerprint = intent.fingerprint.as_ref();
        self.ids.push(intent.id);
        self.opened.push(opened);
        self.sealed.push(sealed);
        let bytes = fingerprint.map(|print| print.as_bytes().to_vec());
        self.fingerprints.push(bytes);
    }
}

/// Writes new fingerprints, computed with keys of this epoch; returns how many intents were still the same.
pub(super) async fn replace_fingerprints(
    db: &Db,
    tenant: TenantId,
    intents: &RefingerprintedIntents,
    digest_epoch: i32,
) -> Result<u64, Error> {
    if intents.ids.is_empty() {
        return Ok(0);
    }
    let params: Params<'_> = &[
        &tenant.number,
        &intents.ids,
        &intents.opened,
        &intents.sealed,
        &intents.fingerprints,
        &digest_epoch,
    ];
    let rows = db.write(&REPLACE_FINGERPRINTS, params).await?;
    Ok(rows.len() as u64)
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

/// Deletes an intent; false if it does not exist.
pub(super) async fn delete(
    change: AuditedStatement<'_>,
    tenant: TenantId,
    id: &Uuid,
) -> Result<bool, Error> {
    let deleted = change.run(&DELETE, &[&tenant.number, id]).await?;
    Ok(!deleted.is_empty())
}

/// Deletes up to `limit` expired intents of all tenants; returns their tenant numbers and ids.
pub(super) async fn sweep(
    transaction: &Transaction,
    limit: i64,
) -> Result<Vec<(i32, Uuid)>, Error> {
    let rows = transaction.run(&SWEEP, &[&limit]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Deletes up to `limit` expired security codes.
pub(super) async fn sweep_codes(db: &Db, limit: i64) -> Result<u64, Error> {
    let rows = db.write(&SWEEP_CODES, &[&limit]).await?;
    Ok(rows.len() as u64)
}
