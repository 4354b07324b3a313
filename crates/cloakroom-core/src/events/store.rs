//! SQL statements that insert events.

use cloakroom_platform::storage::{Error, Transaction, statements};

use super::event::{Event, Origin, encode};
use crate::keys::ControlKey;

/// Inserts the events of a change (a parameter of type `text[]`) for each enabled webhook that subscribes to them, if
/// another part of the statement wrote a row.
///
/// For the statement that makes the change: `insert_events!("$9", "fresh")` inserts the events of the ninth parameter if
/// the CTE `fresh` is not empty. Reading the webhooks in the same statement means that no cached subscription can be
/// stale.
///
/// `recorded_at` is the order of events. It is read once, after the change has its locks: the start of the transaction
/// may precede an earlier change that it waited for. `offset 0` makes the webhooks of a tenant one index probe: a join
/// would read the webhooks of all tenants. The stored MAC is bound to the webhook, like `bind` in `event.rs`.
#[macro_export]
macro_rules! insert_events {
    ($events:expr, $done:literal) => {
        concat!(
            "notified as (
            insert into webhook_delivery
                (tenant_id, webhook_id, event_id, event_type, entity, actor_type, actor_id, trace_id,
                 occurred_at, recorded_at, payload, mac)
            select event.tenant_id, webhook.webhook_id, event.event_id, event.event_type,
                   event.entity, event.actor_type, event.actor_id, event.trace_id,
                   coalesce(event.occurred_at, now()),
                   (select clock_timestamp() from (select count(*) from ",
            $done,
            ") as written)
                       + event.position * interval '1 microsecond',
                   event.payload, ",
            $crate::fenced_mac!(
                "(substring(event.mac from 1 for 4) || sha256(event.mac || uuid_send(webhook.webhook_id)))"
            ),
            "
            from unnest(",
            $events,
            "::text[]::webhook_event[]) with ordinality
                as event (tenant_id, event_id, event_type, entity, actor_type, actor_id, trace_id,
                          occurred_at, payload, mac, position)
            cross join lateral (
                select webhook_id
                from webhook
                where tenant_id = event.tenant_id
                  and is_enabled
                  and event.event_type = any(events)
                offset 0
            ) as webhook
            where (select count(*) from ",
            $done,
            ") > 0
        )"
        )
    };
}
pub use crate::insert_events;

statements! {
    // For changes without an audit log entry. The events may belong to several tenants.
    INSERT: "events::insert" = concat!(
        "with done as (
            select true
        ), ", insert_events!("$1", "done"), "
        select true");
}

/// Inserts events of the system in the transaction that makes them true, for changes without an audit log entry.
pub async fn insert(
    transaction: &Transaction,
    key: &ControlKey,
    events: &[(i32, Event)],
) -> Result<(), Error> {
    let rows: Vec<String> = events
        .iter()
        .map(|(tenant, event)| {
            let origin = Origin {
                tenant: *tenant,
                actor_type: "system",
                actor: None,
                trace_id: "",
            };
            encode(key, &origin, event)
        })
        .collect();
    transaction.run(&INSERT, &[&rows]).await?;
    Ok(())
}
