//! SQL statements of deliveries: claims and outcomes here, the log in `log.rs`, the sweep in `maintenance.rs`, MACs in `renew.rs`.

mod log;
mod maintenance;
mod renew;

use std::time::Duration;

use cloakroom_core::events::SignedEvent;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

pub(crate) use self::log::STATEMENTS as LOG_STATEMENTS;
pub(super) use self::log::{exists, list, oldest_pending, replay_event, replay_range};
pub(crate) use self::maintenance::STATEMENTS as MAINTENANCE_STATEMENTS;
pub(super) use self::maintenance::{expire, measure, sweep, sweep_orphans};
pub(crate) use self::renew::STATEMENTS as RENEW_STATEMENTS;
pub(super) use self::renew::{list_after, renew};
use super::outcome::OutcomeRow;
use super::slots::WebhookKey;

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
use owners;

statements! {
    // Enabled webhooks of all tenants that have due deliveries.
    LIST_DUE: "deliveries::list_due" = concat!(
        "with ", owners!("
                where state = 1"), "
        select owner.tenant_id, owner.webhook_id, webhook.failing_since is not null
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
    // wait get a much later `next_at`, so that they neither hide others in the next claim nor are looked at over and
    // over: the outcome of the first makes the next one due. Their delay doubles, in case that is lost. Arrays of ids
    // keep the plan on the primary key, however old the statistics are.
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
            select due.event_id, due.recorded_at, earlier.event_id is not null as is_waiting
            from due
            left join lateral (
                select event_id
                from webhook_delivery
                where tenant_id = $1
                  and webhook_id = $2
                  and state = 1
                  and entity <> ''
                  and attempts < 3
                  and entity = due.entity
                  and (recorded_at, event_id) < (due.recorded_at, due.event_id)
                order by recorded_at, event_id
                limit 1
            ) as earlier on true
        ), postponed as (
            update webhook_delivery
            set next_at = now() + least(
                greatest(now() - retry_from, interval '1 minute'),
                interval '1 hour'
            )
            where tenant_id = $1
              and webhook_id = $2
              and event_id = any(array(
                select event_id
                from ordered
                where is_waiting
              ))
        ), claimed as (
            update webhook_delivery
            set next_at = clock_timestamp() + make_interval(secs => $5)
            where tenant_id = $1
              and webhook_id = $2
              and event_id = any(array(
                select event_id
                from ordered
                where not is_waiting
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
    // An event fails with the attempt at the end of its retries, which begin with its first attempt. A delivery that no
    // longer precedes others makes the next one of its entity due, even if a claim postpones that one meanwhile. The
    // health of each webhook is updated, in a fixed order, so that outcomes of several nodes do not deadlock.
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
                     and webhook_delivery.attempts > 0
                     and webhook_delivery.retry_from <= now() - make_interval(secs => $9)
                        then 3
                    else 1
                end,
                attempts = webhook_delivery.attempts + case when outcome.kind = 3 then 0 else 1 end,
                retry_from = case
                    when outcome.kind = 2 and webhook_delivery.attempts = 0 then now()
                    else webhook_delivery.retry_from
                end,
                next_at = least(
                    now() + make_interval(secs => outcome.delay),
                    case
                        when outcome.kind = 2 and webhook_delivery.attempts > 0
                            then webhook_delivery.retry_from + make_interval(secs => $9)
                    end
                ),
                last_status = outcome.status,
                last_error = outcome.error,
                finished_at = case
                    when outcome.kind = 1
                      or outcome.kind = 2
                     and webhook_delivery.attempts > 0
                     and webhook_delivery.retry_from <= now() - make_interval(secs => $9)
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
                      webhook_delivery.recorded_at, webhook_delivery.state,
                      webhook_delivery.attempts, outcome.kind
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
                      and attempts < 3
                      and entity = written.entity
                      and (recorded_at, event_id) > (written.recorded_at, written.event_id)
                    order by recorded_at, event_id
                    limit 1
                ) as following
                where written.kind <> 3
                  and written.attempts <= 3
                  and (written.state <> 1 or written.attempts = 3)
            ) as following
            where webhook_delivery.tenant_id = following.tenant_id
              and webhook_delivery.webhook_id = following.webhook_id
              and webhook_delivery.event_id = following.event_id
              and webhook_delivery.state = 1
              and webhook_delivery.attempts = 0
        ), health as (
            select tenant_id, webhook_id, bool_or(kind = 1) as is_working,
                   count(*) filter (where kind = 2) as failed
            from written
            group by tenant_id, webhook_id
        ), locked as materialized (
            select webhook.tenant_id, webhook.webhook_id, health.is_working, health.failed
            from webhook
            join health
              on health.tenant_id = webhook.tenant_id
             and health.webhook_id = webhook.webhook_id
            where health.is_working and webhook.failures > 0
               or not health.is_working and health.failed > 0
            order by webhook.tenant_id, webhook.webhook_id
            for update of webhook
        ), measured as (
            update webhook
            set failures = case when locked.is_working then 0 else webhook.failures + locked.failed end,
                failing_since = case
                    when locked.is_working then null
                    else coalesce(webhook.failing_since, now())
                end
            from locked
            where webhook.tenant_id = locked.tenant_id
              and webhook.webhook_id = locked.webhook_id
        )
        select count(*) filter (where state = 3)
        from written";
}

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

/// A webhook with due deliveries.
pub(super) struct DueWebhook {
    pub webhook: WebhookKey,
    /// Whether all attempts since the last success have failed.
    pub is_failing: bool,
}

pub(super) async fn list_due(db: &Db) -> Result<Vec<DueWebhook>, Error> {
    let rows = db.read(&LIST_DUE, &[]).await?;
    let due = |row: &Row| DueWebhook {
        webhook: (row.get(0), row.get(1)),
        is_failing: row.get(2),
    };
    Ok(rows.iter().map(due).collect())
}

/// Claims up to `limit` of the first `window` due deliveries of a webhook for `period`.
pub(super) async fn claim(
    db: &Db,
    (tenant, webhook): (TenantId, Uuid),
    window: i64,
    limit: i64,
    period: Duration,
) -> Result<Claim, Error> {
    let period = period.as_secs_f64();
    let params: Params<'_> = &[&tenant.number, &webhook, &window, &limit, &period];
    let rows = db.write(&CLAIM, params).await?;
    let due: i64 = rows.first().map_or(0, |row| row.get(0));
    Ok(Claim {
        deliveries: rows.iter().filter_map(claimed).collect(),
        is_partial: due == window,
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
