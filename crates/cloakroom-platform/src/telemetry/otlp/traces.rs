//! Traces: exported to the configured collector, with allowlisted attributes only.

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::{Client, INSTANCE, Signal};
use crate::config::Config;
use crate::telemetry::{Error, fields};

/// Creates the exporter to the collector, if one is configured.
pub(in crate::telemetry) fn provider(config: &Config) -> Result<Option<SdkTracerProvider>, Error> {
    let Some(endpoint) = &config.telemetry.otlp_endpoint else {
        return Ok(None);
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint)
        .with_http_client(Client::start(Signal::Traces, &config.telemetry)?)
        .build()?;
    let sampler = Sampler::TraceIdRatioBased(config.telemetry.sample_ratio);
    // Not the default resource, which includes values from the environment.
    let resource = Resource::builder_empty()
        .with_service_name("cloakroom")
        .with_attribute(KeyValue::new(INSTANCE, config.vault.node_name()))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .with_resource(resource)
        .build();
    Ok(Some(provider))
}

/// Exports spans. Events are only logged, because their text may not reach a collector.
///
/// Without a provider every span is disabled and costs nothing.
pub(in crate::telemetry) fn layer<S>(provider: Option<&SdkTracerProvider>) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let is_enabled = provider.is_some();
    let layer = provider.map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("cloakroom"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false)
    });
    layer.with_filter(filter_fn(move |metadata| {
        is_enabled && fields::may_be_traced(metadata)
    }))
}
