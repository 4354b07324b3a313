//! Telemetry: the log, metrics and traces of a running vault, none of which may hold data.

mod fields;
mod log;
mod meters;
mod outlet;
mod requests;
mod traces;

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;

use self::outlet::Outlet;
pub use self::requests::{Actor, ErrorCode, Recorder, TraceId, recorded};

use crate::config::Config;

/// Upper bounds of the buckets in which durations are counted, in seconds.
const DURATIONS: [f64; 15] = [
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.035, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];
const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// What a process needs to show its metrics and to end well.
#[derive(Clone)]
pub struct Telemetry {
    metrics: PrometheusHandle,
    traces: Option<SdkTracerProvider>,
    outlet: Option<Outlet>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("telemetry is already running in this process")]
    AlreadyStarted,
    #[error("metrics cannot be collected")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
    #[error("traces cannot be sent to telemetry.otlp_endpoint")]
    Traces(#[from] opentelemetry_otlp::ExporterBuildError),
    #[error("a thread for metrics or the log cannot be started")]
    Threads(#[from] std::io::Error),
}

/// Starts the log, metrics and traces of this process; once.
pub fn start(config: &Config) -> Result<Telemetry, Error> {
    let traces = traces::provider(config)?;
    let outlet = Outlet::start(Box::new(std::io::stderr())).map_err(Error::Threads)?;
    let sink = {
        let outlet = outlet.clone();
        Box::new(move |level, line: &[u8]| outlet.take(level, line))
    };
    tracing::subscriber::set_global_default(subscriber(config, sink, traces.as_ref()))
        .map_err(|_| Error::AlreadyStarted)?;
    std::panic::set_hook(Box::new(log_panic));

    let metrics = recorder()?.install_recorder()?;
    keep_up(metrics.clone())?;
    Ok(Telemetry {
        metrics,
        traces,
        outlet: Some(outlet),
    })
}

impl Telemetry {
    /// All metrics, as Prometheus reads them.
    pub fn metrics_text(&self) -> String {
        self.metrics.render()
    }

    /// Sends the traces and writes the lines that are still waiting. Blocks for some seconds at most.
    pub fn shutdown(&self) {
        if let Some(traces) = &self.traces
            && traces.shutdown().is_err()
        {
            tracing::warn!("the last traces could not be sent");
        }
        if let Some(outlet) = &self.outlet {
            outlet.flush();
        }
    }
}

#[cfg(test)]
impl Telemetry {
    /// Telemetry that no other test sees, with one metric in it.
    pub(crate) fn for_tests() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            metrics::counter!("started_total").increment(1);
        });
        Self {
            metrics: recorder.handle(),
            traces: None,
            outlet: None,
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

fn recorder() -> Result<PrometheusBuilder, Error> {
    let durations = Matcher::Suffix("_seconds".to_owned());
    Ok(PrometheusBuilder::new().set_buckets_for_metric(durations, &DURATIONS)?)
}

/// Folds samples into their buckets, which otherwise happens only when metrics are read.
///
/// A thread of its own, so that samples do not pile up even if nobody ever reads them.
fn keep_up(metrics: PrometheusHandle) -> Result<(), Error> {
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

/// Logs where a panic happened. Its message may hold data, so it is not read.
fn log_panic(info: &std::panic::PanicHookInfo<'_>) {
    metrics::counter!("panics_total").increment(1);
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
