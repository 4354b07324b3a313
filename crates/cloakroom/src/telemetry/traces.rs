//! Traces: sent to a collector when one is configured, with allowed attributes only.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::{Error, fields};
use crate::config::Config;

/// Prepares sending to the configured collector, if there is one.
pub(super) fn provider(config: &Config) -> Result<Option<SdkTracerProvider>, Error> {
    let Some(endpoint) = &config.telemetry.otlp_endpoint else {
        return Ok(None);
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint)
        .build()?;
    let sampler = Sampler::TraceIdRatioBased(config.telemetry.sample_ratio);
    // An empty resource: the default one copies what it finds in the environment.
    let resource = Resource::builder_empty()
        .with_service_name("cloakroom")
        .build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .with_resource(resource)
        .build();
    Ok(Some(provider))
}

/// Turns spans into traces. Events stay in the log: their text is not for collectors.
///
/// Without a provider every span is refused, which makes spans cost nothing.
pub(super) fn layer<S>(provider: Option<&SdkTracerProvider>) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let is_wanted = provider.is_some();
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
        is_wanted && fields::may_be_traced(metadata)
    }))
}
