//! SQL statements of the delivery log and of replays.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::deliveries::delivery::{Delivery, State};
use crate::deliveries::replay::ReplayRange;

// One statement per state, because the planner must know the state to use the index of failed deliveries.

macro_rules! list {
    ($state:literal) => {
        concat!(
            "select event_id, event_type, state, attempts, recorded_at, next_at, last_status, last_error,
               finished_at
        from webhook_delivery
        where tenant_id = $1
          and webhook_id = $2
          and ",
            $state,
            "
          and ($3::timestamptz is null or (recorded_at, event_id) < ($3, $4::uuid))
        order by recorded_at desc, event_id desc
        limit $5"
        )
    };
}

macro_rules! replay_range {
    ($state:literal) => {
        concat!(
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
              and ",
            $state,
            "
            order by recorded_at, event_id
            limit $5
          ))
        returning recorded_at"
        )
    };
}

statements! {
    LIST: "deliveries::list" = list!("state >= 1");
    LIST_PENDING: "deliveries::list_pending" = list!("state = 1");
    LIST_DELIVERED: "deliveries::list_delivered" = list!("state = 2");
    LIST_FAILED: "deliveries::list_failed" = list!("state = 3");
    // One probe per webhook.
    OLDEST_PENDING: "deliveries::oldest_pending" =
        "select webhook.webhook_id, extract(epoch from now() - oldest.retry_from)::float8
        from webhook
        cross join lateral (
            select retry_from
            from webhook_delivery
            where tenant_id = webhook.tenant_id
              and webhook_id = webhook.webhook_id
              and state = 1
            order by retry_from
            limit 1
        ) as oldest
        where webhook.tenant_id = $1";
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
    REPLAY_RANGE: "deliveries::replay_range" = replay_range!("state > 1");
    REPLAY_DELIVERED: "deliveries::replay_delivered" = replay_range!("state = 2");
    REPLAY_FAILED: "deliveries::replay_failed" = replay_range!("state = 3");
}

/// Lists deliveries older than `before`, newest first.
pub(in crate::deliveries) async fn list(
    db: &Db,
    tenant: TenantId,
    webhook: Uuid,
    state: Option<State>,
    (before, limit): (Option<(Timestamp, Uuid)>, i64),
) -> Result<Vec<Delivery>, Error> {
    let statement = match state {
        None => &LIST,
        Some(State::Pending) => &LIST_PENDING,
        Some(State::Delivered) => &LIST_DELIVERED,
        Some(State::Failed) => &LIST_FAILED,
    };
    let (at, id) = before.unzip();
    let params: Params<'_> = &[&tenant.number, &webhook, &at, &id, &limit];
    let rows = db.read(statement, params).await?;
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

/// The age of the oldest pending delivery of each webhook of a tenant that has one.
pub(in crate::deliveries) async fn oldest_pending(
    db: &Db,
    tenant: TenantId,
) -> Result<Vec<(Uuid, f64)>, Error> {
    let rows = db.read(&OLDEST_PENDING, &[&tenant.number]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Makes a finished delivery pending again; false if there is none.
pub(in crate::deliveries) async fn replay_event(
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
pub(in crate::deliveries) async fn exists(
    transaction: &Transaction,
    tenant: TenantId,
    webhook: Uuid,
    event: Uuid,
) -> Result<bool, Error> {
    let params: Params<'_> = &[&tenant.number, &webhook, &event];
    let rows = transaction.run(&EXISTS, params).await?;
    Ok(!rows.is_empty())
}

/// Makes up to `limit` finished deliveries of a time range pending again, oldest first; returns when they were recorded.
pub(in crate::deliveries) async fn replay_range(
    transaction: &Transaction,
    tenant: TenantId,
    webhook: Uuid,
    range: &ReplayRange,
    limit: i64,
) -> Result<Vec<Timestamp>, Error> {
    let statement = match range.state {
        // Pending ones are delivered anyway.
        None | Some(State::Pending) => &REPLAY_RANGE,
        Some(State::Delivered) => &REPLAY_DELIVERED,
        Some(State::Failed) => &REPLAY_FAILED,
    };
    let params: Params<'_> = &[&tenant.number, &webhook, &range.from, &range.to, &limit];
    let rows = transaction.run(statement, params).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
