//! SQL statements that end and delete deliveries, and measure the backlog.

use std::time::Duration;

use cloakroom_platform::storage::{Db, Error, Params, statements};

use super::owners;
use crate::deliveries::delivery::State;

statements! {
    // Rows of all tenants. Pending ones whose time has passed, because the webhook is disabled or was deleted, or its last
    // attempt was not recorded. Events that an enabled webhook has not been sent yet stay: the vault is late, not the
    // endpoint.
    EXPIRE: "deliveries::expire" = concat!(
        "with ", owners!("
                where state = 1"), ", due as (
            select overdue.tenant_id, overdue.webhook_id, overdue.event_id
            from owner
            left join webhook
              on webhook.tenant_id = owner.tenant_id
             and webhook.webhook_id = owner.webhook_id
            cross join lateral (
                select tenant_id, webhook_id, event_id
                from webhook_delivery
                where tenant_id = owner.tenant_id
                  and webhook_id = owner.webhook_id
                  and state = 1
                  and retry_from <= now() - make_interval(secs => $2)
                  and (attempts > 0 or webhook.is_enabled is not true)
                order by retry_from
                limit $1
                for update skip locked
            ) as overdue
            limit $1
        )
        update webhook_delivery
        set state = 3,
            finished_at = now()
        from due
        where webhook_delivery.tenant_id = due.tenant_id
          and webhook_delivery.webhook_id = due.webhook_id
          and webhook_delivery.event_id = due.event_id
        returning true");
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
    // Counts no further than a backlog that needs attention anyway. The oldest delivery is one probe per webhook.
    MEASURE: "deliveries::measure" = concat!(
        "with ", owners!("
                where state = 1"), "
        select (
            select count(*)
            from (
                select
                from webhook_delivery
                where state = 1
                limit 10000
            ) as pending
        ), (
            select max(extract(epoch from now() - oldest.retry_from)::float8)
            from owner
            join webhook
              on webhook.tenant_id = owner.tenant_id
             and webhook.webhook_id = owner.webhook_id
             and webhook.is_enabled
            cross join lateral (
                select retry_from
                from webhook_delivery
                where tenant_id = owner.tenant_id
                  and webhook_id = owner.webhook_id
                  and state = 1
                order by retry_from
                limit 1
            ) as oldest
        ), (
            select count(*)
            from webhook
            where not is_enabled
        )");
}

/// Ends up to `limit` pending deliveries whose retries should have ended `age` after they began.
pub(in crate::deliveries) async fn expire(
    db: &Db,
    limit: i64,
    age: Duration,
) -> Result<usize, Error> {
    Ok(db
        .write(&EXPIRE, &[&limit, &age.as_secs_f64()])
        .await?
        .len())
}

/// Deletes up to `limit` deliveries that finished in this state longer than `age` ago.
pub(in crate::deliveries) async fn sweep(
    db: &Db,
    limit: i64,
    state: State,
    age: Duration,
) -> Result<usize, Error> {
    let params: Params<'_> = &[&limit, &(state as i16), &age.as_secs_f64()];
    Ok(db.write(&SWEEP, params).await?.len())
}

/// Deletes up to `limit` deliveries of one deleted webhook.
pub(in crate::deliveries) async fn sweep_orphans(db: &Db, limit: i64) -> Result<usize, Error> {
    Ok(db.write(&SWEEP_ORPHANS, &[&limit]).await?.len())
}

/// Figures for metrics.
pub(in crate::deliveries) struct Backlog {
    pub pending: i64,
    /// Age of the oldest pending delivery of an enabled webhook.
    pub oldest_seconds: f64,
    pub disabled: i64,
}

pub(in crate::deliveries) async fn measure(db: &Db) -> Result<Backlog, Error> {
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
