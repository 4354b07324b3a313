//! SQL statements of the delivery log and of replays.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::deliveries::delivery::{Delivery, State};
use crate::deliveries::replay::ReplayRange;

statements! {
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
}

/// Lists deliveries older than `before`, newest first.
pub(in crate::deliveries) async fn list(
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

/// Makes up to `limit` finished deliveries of a time range pending again; returns how many.
pub(in crate::deliveries) async fn replay_range(
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
