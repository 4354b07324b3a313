//! Statements that keep, change and delete tokens, with all that belongs to them.

use cloakroom_crypto::Fingerprint;
use jiff::Timestamp;
use tokio_postgres::Row;

use super::change::{Before, CodeChange, Outcome, Told, Values, Write};
use super::expired::{find_expired_claimant, sweep_one};
use super::together::New;
use crate::access::Container;
use crate::audit::{Entry, Pen, logged};
use crate::idempotency::{self, replied};
use crate::ids::TenantId;
use crate::storage::{Db, Error, Params, Statement, Transaction, statements};
use crate::token_attributes::Term;
use crate::token_attributes::{Expiry, TokenId};
use crate::token_intents::{all_held, consumed, held};
use crate::vault::Vault;

statements! {
    // The database's clock decides whether an expiry still lies ahead. What belongs to a token is
    // written with it or not at all; a claim or an id that is taken refuses everything.
    INSERT: "tokens::insert" = concat!(
        "with ", held!("$22"), ", fresh as (
            insert into token
                (tenant_id, token_id, alias, container_id, kind, expires_at,
                 expires_offset_minutes, created_by, sealed, mask, metadata, fingerprint,
                 fingerprint_expression, search_indexes, terms, path, security_code_until,
                 created_at)
            select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                   now() + make_interval(secs => $19), coalesce($23, now())
            where ($6::timestamptz is null or $6::timestamptz > now())
              and ", all_held!("$22"), "
            returning created_at
        ), termed as (
            insert into term (tenant_id, term, path, created_at, token_id)
            select $1, unnest($15::bytea[]), $16, created_at, $2
            from fresh
        ), coded as (
            insert into security_code (tenant_id, token_id, key_id, sealed, expires_at)
            select $1, $2, $17, $18, now() + make_interval(secs => $19)
            from fresh
            where $17::bytea is not null
        ), claimed as (
            insert into claim (tenant_id, fingerprint, container_id, token_id)
            select $1, $12, $4, $2
            from fresh
            where $20
        ), ", consumed!("$22", "fresh"), ", ", replied!("$24", "fresh"), ", ",
        logged!("$21", "fresh"), "
        select created_at
        from fresh");
    // The row version that was read decides whether anyone was faster. Rows of `term` and `claim`
    // are named one by one, and none is both removed and inserted.
    UPDATE: "tokens::update" = concat!(
        "with ", held!("$27"), ", changed as (
            update token
            set row_version = $3 + 1,
                container_id = $4,
                path = $18,
                expires_at = $5,
                expires_offset_minutes = $6,
                modified_by = $7,
                modified_at = coalesce($28, now()),
                sealed = $8,
                mask = $9,
                metadata = $10,
                fingerprint = $11,
                fingerprint_expression = $12,
                search_indexes = $13,
                terms = $14,
                security_code_until = case
                    when $20::bytea is not null then now() + make_interval(secs => $22)
                    when $23 then null
                    else security_code_until
                end
            where tenant_id = $1
              and token_id = $2
              and row_version = $3
              and (expires_at is null or expires_at > now())
              and ($5::timestamptz is null or $5::timestamptz > now())
              and ", all_held!("$27"), "
            returning created_at, modified_at
        ), forgotten as (
            delete from term
            using changed, unnest($15::bytea[]) as gone (term)
            where term.tenant_id = $1
              and term.term = gone.term
              and term.path = $16
              and term.created_at = changed.created_at
              and term.token_id = $2
        ), termed as (
            insert into term (tenant_id, term, path, created_at, token_id)
            select $1, unnest($17::bytea[]), $18, created_at, $2
            from changed
        ), released as (
            delete from claim
            using changed
            where claim.tenant_id = $1
              and claim.fingerprint = $24
              and claim.container_id = $25
              and claim.token_id = $2
        ), claimed as (
            insert into claim (tenant_id, fingerprint, container_id, token_id)
            select $1, $11, $4, $2
            from changed
            where $19
              and not exists (
                select
                from claim
                where tenant_id = $1
                  and fingerprint = $11
                  and container_id = $4
                  and token_id = $2
              )
        ), uncoded as (
            delete from security_code
            using changed
            where security_code.tenant_id = $1
              and security_code.token_id = $2
              and $23
        ), coded as (
            insert into security_code (tenant_id, token_id, key_id, sealed, expires_at)
            select $1, $2, $20, $21, now() + make_interval(secs => $22)
            from changed
            where $20::bytea is not null
            on conflict (tenant_id, token_id) do update
            set key_id = excluded.key_id,
                sealed = excluded.sealed,
                expires_at = excluded.expires_at
        ), ", consumed!("$27", "changed"), ", ", replied!("$29", "changed"), ", ",
        logged!("$26", "changed"), "
        select modified_at
        from changed");
    DELETE: "tokens::delete" = concat!(
        "with gone as (
            delete from token
            where tenant_id = $1
              and token_id = $2
              and container_id = $3
            returning created_at, fingerprint, terms
        ), forgotten as (
            delete from term
            using gone, unnest(gone.terms) as old (term)
            where term.tenant_id = $1
              and term.term = old.term
              and term.path = $4
              and term.created_at = gone.created_at
              and term.token_id = $2
        ), released as (
            delete from claim
            using gone
            where claim.tenant_id = $1
              and claim.fingerprint = gone.fingerprint
              and claim.container_id = $3
              and claim.token_id = $2
        ), uncoded as (
            delete from security_code
            using gone
            where security_code.tenant_id = $1
              and security_code.token_id = $2
        ), ", logged!("$5", "gone"), "
        select true
        from gone");
}

/// Writes everything or nothing. Claims that were in the way are released if their tokens have
/// expired, so that another attempt may succeed.
pub(crate) async fn write(
    vault: &Vault,
    tenant: TenantId,
    writes: Vec<Write>,
    told: Told<'_>,
) -> Result<Outcome, Error> {
    let claims: Vec<_> = writes
        .iter()
        .filter_map(|write| write.values().wants().0)
        .collect();
    match write_all(vault, tenant, writes, &told).await {
        Ok(Outcome::Written(times)) => {
            told.kept.done();
            Ok(Outcome::Written(times))
        }
        Err(error) if error.is_conflict("claim_pkey") => {
            for claim in claims {
                release_expired(vault, tenant, claim).await?;
            }
            Ok(Outcome::Outrun)
        }
        Err(error) if error.is_conflict("token_pkey") => Ok(Outcome::Outrun),
        Err(Error::RolledBack) => Ok(Outcome::Outrun),
        outcome => outcome,
    }
}

async fn release_expired(
    vault: &Vault,
    tenant: TenantId,
    (fingerprint, container): ([u8; 32], i32),
) -> Result<(), Error> {
    let fingerprint = Fingerprint::from(fingerprint);
    let claimant = find_expired_claimant(&vault.db, tenant, &fingerprint, container).await?;
    if let Some(key) = claimant {
        sweep_one(vault, tenant, &key).await?;
    }
    Ok(())
}

async fn write_all(
    vault: &Vault,
    tenant: TenantId,
    mut writes: Vec<Write>,
    told: &Told<'_>,
) -> Result<Outcome, Error> {
    let kept = told.rows()?;
    if writes.is_empty() {
        idempotency::keep(&vault.db, &kept).await?;
        return Ok(Outcome::Written(Vec::new()));
    }
    if let Some(values) = take_plain(&mut writes) {
        let new = New {
            tenant,
            values,
            at: told.at,
            kept,
        };
        return Ok(match vault.token_writes.keep(new).await? {
            Some(at) => Outcome::Written(vec![at]),
            None => Outcome::Refused(0),
        });
    }
    let mut pen = vault.audit.pen().await?;
    if let [write] = &writes[..] {
        let signed = Signed {
            entries: pen.sign(&write.values().entries),
            at: told.at,
            kept: &kept,
        };
        let written = run(Target::Alone(&vault.db), tenant, write, &signed).await;
        pen.settle(&written, |rows| !rows.is_empty());
        return Ok(match written?.first() {
            Some(row) => Outcome::Written(vec![row.get(0)]),
            None => Outcome::Refused(0),
        });
    }
    let transaction = vault.db.begin().await?;
    let outcome = write_within(&transaction, tenant, (&writes, told.at, &kept), &mut pen).await;
    match outcome {
        Ok(Outcome::Written(_)) => {
            let committed = transaction.commit().await;
            pen.settle(&committed, |()| true);
            committed?;
        }
        _ => {
            transaction.roll_back().await;
            pen.unused();
        }
    }
    outcome
}

/// The one new token that is all there is to write. It may share a statement with those of others.
fn take_plain(writes: &mut Vec<Write>) -> Option<Values> {
    let is_plain = matches!(&writes[..], [Write::Insert(new)] if new.intents.is_empty());
    match writes.pop_if(|_| is_plain)? {
        Write::Insert(values) | Write::Update(_, values) => Some(values),
    }
}

async fn write_within(
    transaction: &Transaction,
    tenant: TenantId,
    (writes, at, kept): (&[Write], Option<Timestamp>, &[String]),
    pen: &mut Pen<'_>,
) -> Result<Outcome, Error> {
    let mut times = vec![Timestamp::UNIX_EPOCH; writes.len()];
    // Everybody in the same order, or two that want the same would wait for each other.
    let mut order: Vec<usize> = (0..writes.len()).collect();
    order.sort_by_key(|position| writes[*position].values().wants());
    let last = order.last().copied();
    for position in order {
        let write = &writes[position];
        let signed = Signed {
            entries: pen.sign(&write.values().entries),
            at,
            // The answer goes with the last one: before it, nothing is certain.
            kept: match Some(position) == last {
                true => kept,
                false => &[],
            },
        };
        let rows = run(Target::Within(transaction), tenant, write, &signed).await?;
        let Some(row) = rows.first() else {
            return Ok(Outcome::Refused(position));
        };
        times[position] = row.get(0);
    }
    Ok(Outcome::Written(times))
}

/// What goes along with one write.
pub(super) struct Signed<'a> {
    pub(super) entries: Vec<String>,
    pub(super) at: Option<Timestamp>,
    pub(super) kept: &'a [String],
}

/// Where a statement runs: in a transaction of its own, or together with others.
pub(super) enum Target<'a> {
    Alone(&'a Db),
    Within(&'a Transaction),
}

impl Target<'_> {
    async fn run(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>, Error> {
        match self {
            Self::Alone(db) => db.write(statement, params).await,
            Self::Within(transaction) => transaction.run(statement, params).await,
        }
    }
}

async fn run(
    target: Target<'_>,
    tenant: TenantId,
    write: &Write,
    signed: &Signed<'_>,
) -> Result<Vec<Row>, Error> {
    match write {
        Write::Insert(values) => insert(target, tenant, values, signed).await,
        Write::Update(before, values) => update(target, tenant, (before, values), signed).await,
    }
}

pub(super) async fn insert(
    target: Target<'_>,
    tenant: TenantId,
    new: &Values,
    signed: &Signed<'_>,
) -> Result<Vec<Row>, Error> {
    let (expires_at, offset_minutes) = expiry_columns(new.expiry);
    let (key_id, sealed_code, code_seconds) = code_columns(&new.code);
    target
        .run(
            &INSERT,
            &[
                &tenant.number,
                &new.id.key(),
                &new.id.alias(),
                &new.container_number,
                &(new.kind as i16),
                &expires_at,
                &offset_minutes,
                &new.by,
                &new.sealed,
                &new.mask,
                &new.metadata,
                &new.fingerprint.as_ref().map(|print| &print.as_bytes()[..]),
                &new.fingerprint_expression,
                &new.search_indexes,
                &as_slices(&new.terms),
                &new.container.as_str(),
                &key_id,
                &sealed_code,
                &code_seconds,
                &new.claims,
                &signed.entries,
                &new.intents,
                &signed.at,
                &signed.kept,
            ],
        )
        .await
}

async fn update(
    target: Target<'_>,
    tenant: TenantId,
    change: (&Before, &Values),
    signed: &Signed<'_>,
) -> Result<Vec<Row>, Error> {
    let (before, new) = change;
    let (expires_at, offset_minutes) = expiry_columns(new.expiry);
    let (key_id, sealed_code, code_seconds) = code_columns(&new.code);
    let moves = before.container != new.container;
    let without = |all: &[Term], others: &[Term]| -> Vec<Term> {
        let differs = |term: &&Term| moves || !others.contains(term);
        all.iter().filter(differs).copied().collect()
    };
    let (gone, fresh) = (
        without(&before.terms, &new.terms),
        without(&new.terms, &before.terms),
    );
    let releases = moves || before.fingerprint != new.fingerprint;
    let released = before.fingerprint.filter(|_| releases);
    target
        .run(
            &UPDATE,
            &[
                &tenant.number,
                &new.id.key(),
                &before.row_version.cast_signed(),
                &new.container_number,
                &expires_at,
                &offset_minutes,
                &new.by,
                &new.sealed,
                &new.mask,
                &new.metadata,
                &new.fingerprint.as_ref().map(|print| &print.as_bytes()[..]),
                &new.fingerprint_expression,
                &new.search_indexes,
                &as_slices(&new.terms),
                &as_slices(&gone),
                &before.container.as_str(),
                &as_slices(&fresh),
                &new.container.as_str(),
                &new.claims,
                &key_id,
                &sealed_code,
                &code_seconds,
                &matches!(new.code, CodeChange::Goes),
                &released.as_ref().map(|print| &print.as_bytes()[..]),
                &before.container_number,
                &signed.entries,
                &new.intents,
                &signed.at,
                &signed.kept,
            ],
        )
        .await
}

/// Deletes a token from the container it was seen in; false when it is no longer there.
pub(crate) async fn delete(
    vault: &Vault,
    tenant: TenantId,
    id: &TokenId,
    container: (i32, &Container),
    entry: Entry,
) -> Result<bool, Error> {
    let (number, container) = container;
    let mut pen = vault.audit.pen().await?;
    let signed = pen.sign(&[entry]);
    let container = container.as_str();
    let params: Params<'_> = &[&tenant.number, &id.key(), &number, &container, &signed];
    let deleted = vault.db.write(&DELETE, params).await;
    pen.settle(&deleted, |rows| !rows.is_empty());
    Ok(!deleted?.is_empty())
}

pub(super) fn expiry_columns(expiry: Option<Expiry>) -> (Option<Timestamp>, Option<i16>) {
    expiry
        .map(|expiry| (expiry.at, expiry.offset_minutes))
        .unzip()
}

pub(super) fn code_columns(code: &CodeChange) -> (Option<&[u8]>, Option<&[u8]>, Option<f64>) {
    match code {
        CodeChange::Comes(code) => (
            Some(&code.key_id),
            Some(&code.sealed),
            Some(code.retention.as_secs_f64()),
        ),
        CodeChange::Stays | CodeChange::Goes => (None, None, None),
    }
}

fn as_slices(terms: &[Term]) -> Vec<&[u8]> {
    terms.iter().map(|term| &term[..]).collect()
}
