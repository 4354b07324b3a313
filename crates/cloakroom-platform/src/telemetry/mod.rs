//! Telemetry: log, metrics and traces, none of which may contain customer data.

pub mod catalog;
mod fields;
mod log;
mod log_writer;
mod meters;
mod metric;
mod otlp;
mod requests;

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;

use self::log_writer::LogWriter;
pub use self::metric::{Definition, Kind, Label};
use self::otlp::{MetricsExporter, traces};
pub use self::requests::{
    Actor, ClientAddress, ErrorCode, KeyPrefix, Recorder, TraceId, is_refusal, recorded,
};
use crate::config::Config;

const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// Handles for rendering metrics, and for flushing traces and logs at shutdown.
#[derive(Clone)]
pub struct Telemetry {
    metrics: PrometheusHandle,
    traces: Option<SdkTracerProvider>,
    exporter: Option<MetricsExporter>,
    log_writer: Option<LogWriter>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("telemetry is already running in this process")]
    AlreadyStarted,
    #[error("metrics cannot be collected")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
    #[error("traces cannot be sent to telemetry.otlp_endpoint")]
    Traces(#[from] opentelemetry_otlp::ExporterBuildError),
    #[error(transparent)]
    Collector(#[from] otlp::Error),
    #[error("a thread for metrics or the log cannot be started")]
    Threads(#[from] std::io::Error),
}

/// Starts the log, metrics and traces of this process. A second call fails.
pub fn start(config: &Config) -> Result<Telemetry, Error> {
    let traces = traces::provider(config)?;
    let exporter = MetricsExporter::start(config)?;
    let log_writer = LogWriter::start(Box::new(std::io::stderr())).map_err(Error::Threads)?;
    let sink = {
        let log_writer = log_writer.clone();
        Box::new(move |level, line: &[u8]| log_writer.write(level, line))
    };
    tracing::subscriber::set_global_default(subscriber(config, sink, traces.as_ref()))
        .map_err(|_| Error::AlreadyStarted)?;
    std::panic::set_hook(Box::new(log_panic));

    let metrics = recorder()?.install_recorder()?;
    catalog::register();
    catalog::BUILD.with([env!("CARGO_PKG_VERSION")]).set(1.0);
    spawn_upkeep(metrics.clone())?;
    Ok(Telemetry {
        metrics,
        traces,
        exporter,
        log_writer: Some(log_writer),
    })
}

impl Telemetry {
    /// Telemetry of a program that exports neither traces nor logs and has its own metrics recorder.
    pub fn from_metrics(metrics: PrometheusHandle) -> Self {
        Self {
            metrics,
            traces: None,
            exporter: None,
            log_writer: None,
        }
    }

    /// Renders all metrics in the Prometheus text format.
    pub fn metrics_text(&self) -> String {
        self.metrics.render()
    }

    /// Time between two exports of metrics; `None` if they are not exported.
    pub fn export_interval(&self) -> Option<Duration> {
        self.exporter.as_ref().map(MetricsExporter::interval)
    }

    /// Sends all metrics to the collector, if one is configured. Waits a few seconds at most.
    pub async fn export_metrics(&self) {
        if let Some(exporter) = &self.exporter {
            exporter.export(&self.metrics_text()).await;
        }
    }

    /// Flushes pending traces and log lines. Blocks for a few seconds at most.
    pub fn shutdown(&self) {
        if let Some(traces) = &self.traces
            && traces.shutdown().is_err()
        {
            tracing::warn!("the last traces could not be sent");
        }
        if let Some(log_writer) = &self.log_writer {
            log_writer.flush();
        }
    }
}

fn subscriber(
    config: &Config,
    sink: log::Sink,
    traces: Option<&SdkTracerProvider>,
) -> impl Subscriber + Send + Sync + use<> {
    let lines = log::Lines::new(config, sink).with_filter(log::filter(config.log.level));
    tracing_subscriber::registry()
        .with(traces::layer(traces))
        .with(lines)
}

/// A recorder with the buckets of the catalog.
pub fn recorder() -> Result<PrometheusBuilder, Error> {
    let mut builder = PrometheusBuilder::new();
    for definition in catalog::ALL {
        if !definition.buckets.is_empty() {
            let name = Matcher::Full(definition.name.to_owned());
            builder = builder.set_buckets_for_metric(name, definition.buckets)?;
        }
    }
    Ok(builder)
}

/// Runs the upkeep of histograms in a separate thread, so that samples do not accumulate when metrics are not scraped.
fn spawn_upkeep(metrics: PrometheusHandle) -> Result<(), Error> {
    std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || {
            loop {
                std::thread::sleep(UPKEEP_PERIOD);
                metrics.run_upkeep();
            }
        })?;
    Ok(())
}

/// Logs the location of a panic. The message may contain data, so it is omitted.
fn log_panic(info: &std::panic::PanicHookInfo<'_>) {
    catalog::PANICS.increment(1);
    match info.location() {
        Some(at) => {
            let location = format_args!("{}:{}", at.file(), at.line());
            tracing::error!(location = %location, "panic");
        }
        None => tracing::error!("panic"),
    }
}

#[cfg(test)]
mod tests;
