//! Export of traces and metrics to a collector, with OTLP over HTTP.

mod client;
mod metrics;
pub(super) mod traces;

pub(super) use self::client::{Client, Error, Signal};
pub(super) use self::metrics::MetricsExporter;

/// The attribute of a resource that names the node: without it, the series of all nodes are one in the collector.
const INSTANCE: &str = "service.instance.id";

#[cfg(test)]
mod tests;
