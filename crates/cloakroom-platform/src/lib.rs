//! Infrastructure of the service, without any logic of tokens, tenants or keys.
//!
//! Reading order: [`config`], [`storage`], [`api`] (HTTP requests, responses and errors), [`telemetry`], then
//! [`batching`] and [`admission`].

pub mod admission;
pub mod api;
pub mod batching;
pub mod callback_hosts;
pub mod card_numbers;
pub mod certificates;
pub mod clock;
pub mod config;
pub mod egress_hosts;
pub mod failpoints;
pub mod ids;
pub mod one_line;
pub mod outbound;
pub mod storage;
pub mod telemetry;

pub use failpoints::failpoint;
