//! Deliveries: sends pending events to webhooks, in order per entity, until they are delivered or 72 hours have passed.
//!
//! Every node delivers. It claims due rows for a limited time (`claim`), sends them (`attempt`) and writes the outcomes
//! (`outcome`); after a crash the claim ends and another node repeats the attempt. Events are therefore delivered at
//! least once.

mod api;
mod attempt;
mod delivery;
mod health;
mod list;
mod outcome;
mod payload;
mod renew;
mod replay;
mod run;
mod schedule;
mod slots;
mod store;
mod sweep;

pub use self::api::routes;
pub use self::delivery::{Delivery, State};
pub use self::list::{DeliveryPage, PageRequest, Position, list, oldest_pending};
pub use self::renew::{RenewedUntil, renew_macs};
pub use self::replay::{ReplayRange, Replayed, Selection, replay, replay_as_operator};
pub use self::run::run;
pub(crate) use self::store::{
    LOG_STATEMENTS, MAINTENANCE_STATEMENTS, RENEW_STATEMENTS, STATEMENTS,
};
pub use self::sweep::{measure, sweep};
