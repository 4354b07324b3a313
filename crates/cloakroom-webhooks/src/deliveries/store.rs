//! SQL statements of deliveries.

use std::time::Duration;

use cloakroom_core::events::SignedEvent;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::delivery::{Delivery, State};
use super::outcome::OutcomeRow;
use super::replay::ReplayRange;

/// Webhooks that have rows in this index, found with one probe each instead of a scan of all rows.
macro_rules! owners {
    ($rows:literal) => {
        concat!(
            "recursive owner as (
            (
                select tenant_id, webhook_id
                from webhook_delivery",
            $rows,
            "
                order by tenant_id, webhook_id
                limit 1
            )
            union all
            select following.tenant_id, following.webhook_id
            from owner
            cross join lateral (
                select tenant_id, webhook_id
                from webhook_delivery",
            $rows,
            "
                  and (tenant_id, webhook_id) > (owner.tenant_id, owner.webhook_id)
                order by tenant_id, webhook_id
                limit 1
            ) as following
        )"
        )
    };
}

statements! {
    // Enabled webhooks of all tenants that have due deliveries.
    LIST_DUE: "deliveries::list_due" = concat!(
        "with ", owners!("
                where state = 1"), "
        select owner.tenant_id, owner.webhook_id
        from owner
        join webhook
          on webhook.tenant_id = owner.tenant_id
         and webhook.webhook_id = owner.webhook_id
         and webhook.is_enabled
        where exists (
            select
            from webhook_delivery
            where tenant_id = owner.tenant_id
              and webhook_id = owner.webhook_id
              and state = 1
              and next_at <= now()
        )");
    // Claims due deliveries until `next_at`, which is also how the outcome names its claim. Of the deliveries of one
    // entity, only the first is claimed; later ones wait, unless three attempts of the first have failed. Those that
    // wait get a later `next_at`, so that they do not hide others in the next claim. Arrays of ids keep the plan on the
    // primary key, however old the statistics are.
    CLAIM: "deliveries::claim" =
        "with due as materialized (
            select event_id, entity, recorded_at
            from webhook_delivery
            where tenant_id = $1
              and webhook_id = $2
              and state = 1
              and next_at <= now()
            order by next_at
            limit $3
            for update skip locked
        ), ordered as materialized (
            select due.event_id, due.recorded_at, earlier.next_at as blocked_until,
                   earlier.attempts as blocked_attempts
            from due
            left join lateral (
                select next_at, attempts
                from webhook_delivery
                where tenant_id = $1
                  and webhook_id = $2
                  and state = 1
                  and entity <> ''
                  and entity = due.entity
                  and (recorded_at, event_id) < (due.recorded_at, due.event_id)
                  and attempts < 3
                order by recorded_at, event_id
                limit 1
            ) as earlier on true
        ), postponed as (
            update webhook_delivery
            set next_at = case
                when ordered.blocked_attempts = 0 then now() + interval '2 seconds'
                else greatest(ordered.blocked_until, now() + interval '2 seconds')
            end
            from ordered
            where webhook_delivery.tenant_id = $1
              and webhook_delivery.webhook_id = $2
              and webhook_delivery.event_id = any(array(select event_id from due))
              and webhook_delivery.event_id = ordered.event_id
              and ordered.blocked_until is not null
        ), claimed as (
            update webhook_delivery
            set next_at = clock_timestamp() + make_interval(secs => $5)
            where tenant_id = $1
              and webhook_id = $2
              and event_id = any(array(
                select event_id
                from ordered
                where blocked_until is null
                order by recorded_at
                limit $4
              ))
            returning webhook_delivery.*
        )
        select (select count(*) from due), claimed.event_id, claimed.event_type, claimed.entity,
               claimed.actor_type, claimed.actor_id, claimed.trace_id, claimed.payload, claimed.mac,
               claimed.occurred_at, claimed.attempts, claimed.next_at, application.name
        from (select true) as one
        left join claimed
          on true
        left join application
          on application.tenant_id = claimed.tenant_id
         and application.application_id = claimed.actor_id
        order by claimed.recorded_at";
    // Outcomes of several tenants. A claim that has ended is not written, except that a delivered event stays delivered.
    // The next delivery of the same entity becomes due, and the health of each webhook is updated.
    WRITE_OUTCOMES: "deliveries::write_outcomes" =
        "with outcome as (
            select *
            from unnest($1::integer[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::smallint[],
                        $6::float8[], $7::smallint[], $8::text[])
                as outcome (tenant_id, webhook_id, event_id, claim, kind, delay, status, error)
        ), written as (
            update webhook_delivery
            set state = case
                    when outcome.kind = 1 then 2
                    when outcome.kind = 2
                     and now() + make_interval(secs => outcome.delay)
                         > webhook_delivery.retry_from + make_interval(secs => $9)
                        then 3
                    else 1
                end,
                attempts = webhook_delivery.attempts + case when outcome.kind = 3 then 0 else 1 end,
                next_at = now() + make_interval(secs => outcome.delay),
                last_status = outcome.status,
                last_error = outcome.error,
                finished_at = case
                    when outcome.kind = 1
                      or outcome.kind = 2
                     and now() + make_interval(secs => outcome.delay)
                         > webhook_delivery.retry_from + make_interval(secs => $9)
                        then now()
                end
            from outcome
            where webhook_delivery.tenant_id = outcome.tenant_id
              and webhook_delivery.webhook_id = outcome.webhook_id
              and webhook_delivery.event_id = outcome.event_id
              and webhook_delivery.state = 1
              and (outcome.kind = 1 or webhook_delivery.next_at = outcome.claim)
            returning webhook_delivery.tenant_id, webhook_delivery.webhook_id,
                      webhook_delivery.event_id, webhook_delivery.entity,
                      webhook_delivery.recorded_at, webhook_delivery.state, outcome.kind
        ), woken as (
            update webhook_delivery
            set next_at = now()
            from (
                select following.*
                from written
                cross join lateral (
                    select tenant_id, webhook_id, event_id
                    from webhook_delivery
                    where tenant_id = written.tenant_id
                      and webhook_id = written.webhook_id
                      and state = 1
                      and entity <> ''
                      and entity = written.entity
                      and (recorded_at, event_id) > (written.recorded_at, written.event_id)
                    order by recorded_at, event_id
                    limit 1
                ) as following
                where written.state <> 1
            ) as following
            where webhook_delivery.tenant_id = following.tenant_id
              and webhook_delivery.webhook_id = following.webhook_id
              and webhook_delivery.event_id = following.event_id
              and webhook_delivery.attempts = 0
              and webhook_delivery.next_at > now()
        ), health as (
            select tenant_id, webhook_id, bool_or(kind = 1) as is_working,
                   count(*) filter (where kind = 2) as failed
            from written
            group by tenant_id, webhook_id
        ), measured as (
            update webhook
            set failures = case when health.is_working then 0 else webhook.failures + health.failed end,
                failing_since = case
                    when health.is_working then null
                    else coalesce(webhook.failing_since, now())
                end
            from health
            where webhook.tenant_id = health.tenant_id
              and webhook.webhook_id = health.webhook_id
              and (health.is_working and webhook.failures > 0
                   or not health.is_working and health.failed > 0)
        )
        select count(*) filter (where state = 3)
        from written";
    LIST: "deliveries::list" =
        "select event_id, event_type, state, attempts, recorded_at, next_at, last_status, last_error,
               finished_at
        from webhook_delivery
        where tenant_id = $1
          and webhook_id = $2
          and state >= 1
          and ($3::smallint is null or state = $3)
          and ($4::timestamptz is null or (recorded_at, event_id) < ($4, $5::uuid))
        order by recorded_at desc, event_id desc
        limit $6";
    REPLAY_EVENT: "deliveries::replay_event" =
        "update webhook_delivery
        set state = 1,
            attempts = 0,
            next_at = now(),
            retry_from = now(),
            finished_at = null
        where tenant_id = $1
          and webhook_id = $2
          and event_id = $3
          and state > 1
        returning true";
    EXISTS: "deliveries::exists" =
        "select true
        from webhook_delivery
        where tenant_id = $1
          and webhook_id = $2
          and event_id = $3";
    REPLAY_RANGE: "deliveries::replay_range" =
        "update webhook_delivery
        set state = 1,
            attempts = 0,
            next_at = now(),
            retry_from = now(),
            finished_at = null
        where tenant_id = $1
          and webhook_id = $2
          and event_id = any(array(
            select event_id
            from webhook_delivery
            where tenant_id = $1
              and webhook_id = $2
              and recorded_at >= $3
              and recorded_at < $4
              and state > 1
              and ($5::smallint is null or state = $5)
            order by recorded_at, event_id
            limit $6
          ))
        returning true";
    // Rows of all tenants. Pending ones whose time has passed, for example because the webhook is disabled.
    EXPIRE: "deliveries::expire" =
        "with due as (
            select tenant_id, webhook_id, event_id
            from webhook_delivery
            where state = 1
              and retry_from <= now() - make_interval(secs => $2)
            order by retry_from
            limit $1
            for update skip locked
        )
        update webhook_delivery
        set state = 3,
            finished_at = now()
        from due
        where webhook_delivery.tenant_id = due.tenant_id
          and webhook_delivery.webhook_id = due.webhook_id
          and webhook_delivery.event_id = due.event_id
        returning true";
    SWEEP: "deliveries::sweep" =
        "with due as (
            select tenant_id, webhook_id, event_id
            from webhook_delivery
            where state > 1
              and state = $2
              and finished_at <= now() - make_interval(secs => $3)
            order by finished_at
            limit $1
            for update skip locked
        )
        delete from webhook_delivery
        using due
        where webhook_delivery.tenant_id = due.tenant_id
          and webhook_delivery.webhook_id = due.webhook_id
          and webhook_delivery.event_id = due.event_id
        returning true";
    // Rows of a webhook that was deleted.
    SWEEP_ORPHANS: "deliveries::sweep_orphans" = concat!(
        "with ", owners!("
                where state >= 1"), ", orphan as (
            select tenant_id, webhook_id
            from owner
            where not exists (
                select
                from webhook
                where tenant_id = owner.tenant_id
                  and webhook_id = owner.webhook_id
            )
            limit 1
        ), due as (
            select webhook_delivery.tenant_id, webhook_delivery.webhook_id, webhook_delivery.event_id
            from orphan
            join webhook_delivery
              on webhook_delivery.tenant_id = orphan.tenant_id
             and webhook_delivery.webhook_id = orphan.webhook_id
             and webhook_delivery.state >= 1
            limit $1
        )
        delete from webhook_delivery
        using due
        where webhook_delivery.tenant_id = due.tenant_id
          and webhook_delivery.webhook_id = due.webhook_id
          and webhook_delivery.event_id = due.event_id
        returning true");
    // Counts no further than a backlog that needs attention anyway.
    MEASURE: "deliveries::measure" =
        "select (
            select count(*)
            from (
                select
                from webhook_delivery
                where state = 1
                limit 1000000
            ) as pending
        ), (
            select extract(epoch from now() - webhook_delivery.retry_from)::float8
            from webhook_delivery
            join webhook
              on webhook.tenant_id = webhook_delivery.tenant_id
             and webhook.webhook_id = webhook_delivery.webhook_id
             and webhook.is_enabled
            where webhook_delivery.state = 1
            order by webhook_delivery.retry_from
            limit 1
        ), (
            select count(*)
            from webhook
            where not is_enabled
        )";
}

/// Due deliveries that one claim looks at. More than can be claimed, so that blocked ones do not hide others.
const WINDOW: i64 = 64;

/// A delivery that this node may attempt until its claim ends.
pub(super) struct ClaimedDelivery {
    pub event: SignedEvent,
    pub occurred_at: Timestamp,
    /// Completed attempts.
    pub attempts: i32,
    /// When the claim ends; identifies it.
    pub claim: Timestamp,
    /// Name of the application that acted, if it still exists.
    pub actor_name: Option<String>,
}

/// The result of a claim.
pub(super) struct Claim {
    pub deliveries: Vec<ClaimedDelivery>,
    /// Whether more deliveries may be due.
    pub is_partial: bool,
}

pub(super) async fn list_due(db: &Db) -> Result<Vec<(i32, Uuid)>, Error> {
    let rows = db.read(&LIST_DUE, &[]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Claims up to `limit` deliveries of a webhook for `period`.
pub(super) async fn claim(
    db: &Db,
    tenant: TenantId,
    webhook: Uuid,
    limit: i64,
    period: Duration,
) -> Result<Claim, Error> {
    let period = period.as_secs_f64();
    let params: Params<'_> = &[&tenant.number, &webhook, &WINDOW, &limit, &period];
    let rows = db.write(&CLAIM, params).await?;
    let due: i64 = rows.first().map_or(0, |row| row.get(0));
    Ok(Claim {
        deliveries: rows.iter().filter_map(claimed).collect(),
        is_partial: due == WINDOW,
    })
}

fn claimed(row: &Row) -> Option<ClaimedDelivery> {
    let id: Option<Uuid> = row.get(1);
    Some(ClaimedDelivery {
        event: SignedEvent {
            id: id?,
            event_type: row.get(2),
            entity: row.get(3),
            actor_type: row.get(4),
            actor: row.get(5),
            trace_id: row.get(6),
            payload: row.get(7),
            mac: row.get(8),
        },
        occurred_at: row.get(9),
        attempts: row.get(10),
        claim: row.get(11),
        actor_name: row.get(12),
    })
}

/// Writes outcomes; returns how many events have finally failed.
pub(super) async fn write_outcomes(
    db: &Db,
    outcomes: &[OutcomeRow],
    retry_period: Duration,
) -> Result<u64, Error> {
    fn column<T>(outcomes: &[OutcomeRow], value: impl Fn(&OutcomeRow) -> T) -> Vec<T> {
        outcomes.iter().map(value).collect()
    }
    let params: Params<'_> = &[
        &column(outcomes, |row| row.tenant),
        &column(outcomes, |row| row.webhook),
        &column(outcomes, |row| row.event),
        &column(outcomes, |row| row.claim),
        &column(outcomes, |row| row.kind),
        &column(outcomes, |row| row.delay.as_secs_f64()),
        &column(outcomes, |row| row.status),
        &column(outcomes, |row| row.error),
        &retry_period.as_secs_f64(),
    ];
    let rows = db.write(&WRITE_OUTCOMES, params).await?;
    let failed: i64 = rows.first().map_or(0, |row| row.get(0));
    Ok(failed.unsigned_abs())
}

/// Lists deliveries older than `before`, newest first.
pub(super) async fn list(
    db: &Db,
    tenant: TenantId,
    webhook: Uuid,
    state: Option<State>,
    (before, limit): (Option<(Timestamp, Uuid)>, i64),
) -> Result<Vec<Delivery>, Error> {
    let state = state.map(|state| state as i16);
    let (at, id) = before.unzip();
    let params: Params<'_> = &[&tenant.number, &webhook, &state, &at, &id, &limit];
    let rows = db.read(&LIST, params).await?;
    Ok(rows.iter().filter_map(delivery).collect())
}

fn delivery(row: &Row) -> Option<Delivery> {
    let state = State::from_number(row.get(2))?;
    Some(Delivery {
        event_id: row.get(0),
        event_type: row.get(1),
        state,
        attempts: row.get(3),
        recorded_at: row.get(4),
        next_at: Some(row.get(5)).filter(|_| state == State::Pending),
        last_status: row.get(6),
        last_error: row.get(7),
        finished_at: row.get(8),
    })
}

/// Makes a finished delivery pending again; false if there is none.
pub(super) async fn replay_event(
    transaction: &Transaction,
    tenant: TenantId,
    webhook: Uuid,
    event: Uuid,
) -> Result<bool, Error> {
    let params: Params<'_> = &[&tenant.number, &webhook, &event];
    let rows = transaction.run(&REPLAY_EVENT, params).await?;
    Ok(!rows.is_empty())
}

/// Whether a webhook has this event in its log.
pub(super) async fn exists(
    transaction: &Transaction,
    tenant: TenantId,
    webhook: Uuid,
    event: Uuid,
) -> Result<bool, Error> {
    let params: Params<'_> = &[&tenant.number, &webhook, &event];
    let rows = transaction.run(&EXISTS, params).await?;
    Ok(!rows.is_empty())
}

/// Makes up to `limit` finished deliveries of a time range pending again; returns how many.
pub(super) async fn replay_range(
    transaction: &Transaction,
    tenant: TenantId,
    webhook: Uuid,
    range: &ReplayRange,
    limit: i64,
) -> Result<usize, Error> {
    let state = range.state.map(|state| state as i16);
    let params: Params<'_> = &[
        &tenant.number,
        &webhook,
        &range.from,
        &range.to,
        &state,
        &limit,
    ];
    Ok(transaction.run(&REPLAY_RANGE, params).await?.len())
}

/// Ends up to `limit` pending deliveries whose retries should have ended `age` after they began.
pub(super) async fn expire(db: &Db, limit: i64, age: Duration) -> Result<usize, Error> {
    Ok(db
        .write(&EXPIRE, &[&limit, &age.as_secs_f64()])
        .await?
        .len())
}

/// Deletes up to `limit` deliveries that finished in this state longer than `age` ago.
pub(super) async fn sweep(
    db: &Db,
    limit: i64,
    state: State,
    age: Duration,
) -> Result<usize, Error> {
    let params: Params<'_> = &[&limit, &(state as i16), &age.as_secs_f64()];
    Ok(db.write(&SWEEP, params).await?.len())
}

/// Deletes up to `limit` deliveries of one deleted webhook.
pub(super) async fn sweep_orphans(db: &Db, limit: i64) -> Result<usize, Error> {
    Ok(db.write(&SWEEP_ORPHANS, &[&limit]).await?.len())
}

/// Figures for metrics.
pub(super) struct Backlog {
    pub pending: i64,
    /// Age of the oldest pending delivery of an enabled webhook.
    pub oldest_seconds: f64,
    pub disabled: i64,
}

pub(super) async fn measure(db: &Db) -> Result<Backlog, Error> {
    let row = db.read_optional(&MEASURE, &[]).await?;
    Ok(row.map_or(
        Backlog {
            pending: 0,
            oldest_seconds: 0.0,
            disabled: 0,
        },
        |row| Backlog {
            pending: row.get(0),
            oldest_seconds: row.get::<_, Option<f64>>(1).unwrap_or_default(),
            disabled: row.get(2),
        },
    ))
}
