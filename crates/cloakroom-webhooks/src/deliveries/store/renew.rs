//! SQL statements that replace the MACs of events after the control key was replaced.

use cloakroom_core::events::SignedEvent;
use cloakroom_platform::storage::{Db, Error, Params, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::deliveries::renew::RenewedUntil;

statements! {
    // Rows of all tenants, in the order of their primary key.
    LIST_AFTER: "deliveries::list_after" =
        "select tenant_id, webhook_id, event_id, event_type, entity, actor_type, actor_id, trace_id, payload, mac
        from webhook_delivery
        where (tenant_id, event_id, webhook_id) > ($1, $2, $3)
        order by tenant_id, event_id, webhook_id
        limit $4";
    // A row that is being sent is skipped, so that it does not wait; the next scan finds it.
    RENEW: "deliveries::renew" =
        "with free as materialized (
            select delivery.tenant_id, delivery.event_id, delivery.webhook_id, renewed.after
            from unnest($1::integer[], $2::uuid[], $3::uuid[], $4::bytea[], $5::bytea[])
                as renewed (tenant_id, event_id, webhook_id, before, after)
            join webhook_delivery delivery
              on delivery.tenant_id = renewed.tenant_id
             and delivery.event_id = renewed.event_id
             and delivery.webhook_id = renewed.webhook_id
             and delivery.mac = renewed.before
            for update of delivery skip locked
        )
        update webhook_delivery
        set mac = free.after
        from free
        where webhook_delivery.tenant_id = free.tenant_id
          and webhook_delivery.event_id = free.event_id
          and webhook_delivery.webhook_id = free.webhook_id
        returning true";
}

pub(in crate::deliveries) async fn list_after(
    db: &Db,
    after: RenewedUntil,
    limit: i64,
) -> Result<Vec<(RenewedUntil, SignedEvent)>, Error> {
    let params: Params<'_> = &[&after.tenant, &after.event, &after.webhook, &limit];
    let rows = db.read(&LIST_AFTER, params).await?;
    let event = |row: &Row| {
        let id = RenewedUntil {
            tenant: row.get(0),
            webhook: row.get(1),
            event: row.get(2),
        };
        let event = SignedEvent {
            id: id.event,
            event_type: row.get(3),
            entity: row.get(4),
            actor_type: row.get(5),
            actor: row.get(6),
            trace_id: row.get(7),
            payload: row.get(8),
            mac: row.get(9),
        };
        (id, event)
    };
    Ok(rows.iter().map(event).collect())
}

/// Replaces MACs, each if the row still has the one before; returns how many.
pub(in crate::deliveries) async fn renew(
    db: &Db,
    renewed: &[(RenewedUntil, Vec<u8>, Vec<u8>)],
) -> Result<u64, Error> {
    let tenants: Vec<i32> = renewed.iter().map(|(id, ..)| id.tenant).collect();
    let events: Vec<Uuid> = renewed.iter().map(|(id, ..)| id.event).collect();
    let webhooks: Vec<Uuid> = renewed.iter().map(|(id, ..)| id.webhook).collect();
    let before: Vec<&[u8]> = renewed.iter().map(|(_, before, _)| &before[..]).collect();
    let after: Vec<&[u8]> = renewed.iter().map(|(.., after)| &after[..]).collect();
    let params: Params<'_> = &[&tenants, &events, &webhooks, &before, &after];
    Ok(db.write(&RENEW, params).await?.len() as u64)
}
