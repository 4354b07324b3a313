//! Export of traces and metrics to a collector, with OTLP over HTTP.

mod client;
mod metrics;
pub(super) mod traces;

pub(super) use self::client::{Client, Error, Signal};
pub(super) use self::metrics::MetricsExporter;

#[cfg(test)]
mod tests;
