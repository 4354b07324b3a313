//! Metrics as OTLP: converts the text of `/metrics`, so that both exports have the same series and values.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Method, Request, header};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use super::{Client, Error, INSTANCE, Signal};
use crate::config::Config;
use crate::telemetry::catalog;
use crate::telemetry::metric::{Definition, Kind};

const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// Sends metrics to the collector.
#[derive(Clone)]
pub(in crate::telemetry) struct MetricsExporter {
    client: Client,
    endpoint: String,
    node: String,
    interval: Duration,
    /// Since when counters count.
    started: u64,
}

impl MetricsExporter {
    /// The exporter, if an endpoint is configured.
    pub(in crate::telemetry) fn start(config: &Config) -> Result<Option<Self>, Error> {
        let settings = &config.telemetry;
        let Some(endpoint) = &settings.otlp_metrics_endpoint else {
            return Ok(None);
        };
        Ok(Some(Self {
            client: Client::start(Signal::Metrics, settings)?,
            endpoint: endpoint.clone(),
            node: config.vault.node_name(),
            interval: settings.otlp_metrics_interval,
            started: nanoseconds(),
        }))
    }

    pub(in crate::telemetry) fn interval(&self) -> Duration {
        self.interval
    }

    /// Sends the metrics of a scrape. Failures are counted and logged by the client; the next export has the same counters.
    pub(in crate::telemetry) async fn export(&self, text: &str) {
        let metrics = convert(text, self.started, nanoseconds());
        let body = request(&self.node, metrics).encode_to_vec();
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.endpoint)
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .body(Bytes::from(body));
        if let Ok(request) = request {
            let _ = self.client.send(request).await;
        }
    }
}

fn nanoseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// A line of the Prometheus text format.
struct Sample<'a> {
    name: &'a str,
    /// Without `le`.
    labels: Vec<(&'a str, String)>,
    /// The upper bound of a bucket.
    bound: Option<f64>,
    value: f64,
}

/// The parts of a histogram with certain labels. Counts are cumulative, as in the text.
#[derive(Default)]
struct Buckets {
    counts: Vec<(f64, f64)>,
    sum: f64,
    count: f64,
}

type Labels<'a> = Vec<(&'a str, String)>;

fn convert(text: &str, started: u64, now: u64) -> Vec<Metric> {
    let mut numbers: BTreeMap<&str, Vec<NumberDataPoint>> = BTreeMap::new();
    let mut histograms: BTreeMap<&str, BTreeMap<Labels<'_>, Buckets>> = BTreeMap::new();
    for sample in text.lines().filter_map(parse_line) {
        if let Some(definition) = find(sample.name) {
            let point = NumberDataPoint {
                attributes: attributes(&sample.labels),
                start_time_unix_nano: started,
                time_unix_nano: now,
                value: Some(Value::AsDouble(sample.value)),
                ..NumberDataPoint::default()
            };
            numbers.entry(definition.name).or_default().push(point);
        } else if let Some((name, part)) = sample.name.rsplit_once('_')
            && find(name).is_some_and(|it| it.kind == Kind::Histogram)
        {
            let series = histograms.entry(name).or_default();
            let buckets = series.entry(sample.labels).or_default();
            match (part, sample.bound) {
                ("bucket", Some(bound)) => buckets.counts.push((bound, sample.value)),
                ("sum", None) => buckets.sum = sample.value,
                ("count", None) => buckets.count = sample.value,
                _ => {}
            }
        }
    }
    let numbers = numbers
        .into_iter()
        .filter_map(|(name, points)| Some(number_metric(find(name)?, points)));
    let histograms = histograms.into_iter().filter_map(|(name, series)| {
        let points = series.into_iter();
        let points = points.map(|(labels, it)| histogram_point(&labels, it, started, now));
        Some(metric(
            find(name)?,
            Data::Histogram(Histogram {
                data_points: points.collect(),
                aggregation_temporality: CUMULATIVE,
            }),
        ))
    });
    numbers.chain(histograms).collect()
}

fn request(node: &str, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
    let service = attribute("service.name", "cloakroom".to_owned());
    let version = attribute("service.version", env!("CARGO_PKG_VERSION").to_owned());
    let instance = attribute(INSTANCE, node.to_owned());
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: vec![service, version, instance],
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(InstrumentationScope {
                    name: "cloakroom".to_owned(),
                    ..InstrumentationScope::default()
                }),
                metrics,
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn number_metric(definition: &Definition, data_points: Vec<NumberDataPoint>) -> Metric {
    let data = match definition.kind {
        Kind::Counter => Data::Sum(Sum {
            data_points,
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        Kind::Gauge | Kind::Histogram => Data::Gauge(Gauge { data_points }),
    };
    metric(definition, data)
}

fn metric(definition: &Definition, data: Data) -> Metric {
    Metric {
        name: definition.name.to_owned(),
        description: definition.help.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

/// A histogram of OTLP counts each bucket by itself, and its last bucket has no bound.
fn histogram_point(
    labels: &Labels<'_>,
    buckets: Buckets,
    started: u64,
    now: u64,
) -> HistogramDataPoint {
    let mut counts = buckets.counts;
    counts.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let finite = counts.iter().filter(|(bound, _)| bound.is_finite());
    let (bounds, cumulative): (Vec<f64>, Vec<f64>) = finite.copied().unzip();
    let upper = cumulative.iter().copied().chain([buckets.count]);
    let lower = [0.0].into_iter().chain(cumulative.iter().copied());
    HistogramDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: started,
        time_unix_nano: now,
        count: to_count(buckets.count),
        sum: Some(buckets.sum),
        bucket_counts: upper
            .zip(lower)
            .map(|(up, low)| to_count(up - low))
            .collect(),
        explicit_bounds: bounds,
        ..HistogramDataPoint::default()
    }
}

/// Counts of the recorder are whole and not negative.
fn to_count(value: f64) -> u64 {
    value.max(0.0) as u64
}

fn find(name: &str) -> Option<&'static Definition> {
    let mut all = catalog::ALL.iter();
    all.find(|definition| definition.name == name).copied()
}

fn attributes(labels: &[(&str, String)]) -> Vec<KeyValue> {
    let labels = labels.iter();
    labels
        .map(|(name, value)| attribute(name, value.clone()))
        .collect()
}

fn attribute(name: &str, value: String) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value)),
        }),
        ..KeyValue::default()
    }
}

/// Parses a line as the recorder writes it; `None` for comments and empty lines.
fn parse_line(line: &str) -> Option<Sample<'_>> {
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let name_end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(name_end);
    let mut sample = Sample {
        name,
        labels: Vec::new(),
        bound: None,
        value: 0.0,
    };
    let value = match rest.strip_prefix('{') {
        Some(labels) => parse_labels(labels, &mut sample)?,
        None => rest,
    };
    sample.value = value.trim().parse().ok()?;
    Some(sample)
}

/// Parses labels up to the closing brace, and returns what follows it.
fn parse_labels<'a>(mut rest: &'a str, sample: &mut Sample<'a>) -> Option<&'a str> {
    loop {
        if let Some(value) = rest.strip_prefix('}') {
            return Some(value);
        }
        let (name, quoted) = rest.trim_start_matches(',').split_once("=\"")?;
        let mut text = String::new();
        let mut characters = quoted.char_indices();
        let end = loop {
            match characters.next()? {
                (end, '"') => break end,
                (_, '\\') => text.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => text.push(other),
            }
        };
        match name {
            "le" => sample.bound = Some(text.parse().ok()?),
            _ => sample.labels.push((name, text)),
        }
        rest = quoted.get(end + 1..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::recorder;

    fn exported() -> Vec<Metric> {
        let recorder = recorder().unwrap().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            catalog::PANICS.increment(3);
            let requests = catalog::HTTP_REQUESTS.with(["GET", "/a\"b\\c\nd", "200"]);
            requests.increment(7);
            catalog::UPTIME.set(1.5);
            for seconds in [0.0001, 0.004, 0.004, 0.3, 60.0] {
                let durations = catalog::HTTP_REQUEST_DURATION.with(["GET", "/tokens"]);
                durations.record(seconds);
            }
            catalog::HTTP_REQUEST_DURATION
                .with(["GET", "/other"])
                .record(0.3);
        });
        let text = recorder.handle().render();
        let bytes = request("left", convert(&text, 1, 2)).encode_to_vec();
        let mut decoded = ExportMetricsServiceRequest::decode(&bytes[..]).unwrap();
        decoded
            .resource_metrics
            .remove(0)
            .scope_metrics
            .remove(0)
            .metrics
    }

    fn data(metrics: &[Metric], definition: &Definition) -> Data {
        let found = metrics.iter().find(|it| it.name == definition.name);
        let found = found.unwrap();
        assert_eq!(found.description, definition.help);
        found.data.clone().unwrap()
    }

    fn text_of(attribute: &KeyValue) -> (&str, &str) {
        let value = attribute.value.as_ref().unwrap().value.as_ref().unwrap();
        let any_value::Value::StringValue(value) = value else {
            panic!("{attribute:?}");
        };
        (&attribute.key, value)
    }

    #[test]
    fn counters_and_gauges_keep_values_and_labels() {
        let metrics = exported();

        let Data::Sum(panics) = data(&metrics, catalog::PANICS.0) else {
            panic!("{metrics:?}");
        };
        assert!(panics.is_monotonic);
        assert_eq!(panics.aggregation_temporality, CUMULATIVE);
        assert_eq!(panics.data_points[0].value, Some(Value::AsDouble(3.0)));
        assert_eq!(panics.data_points[0].start_time_unix_nano, 1);
        assert_eq!(panics.data_points[0].time_unix_nano, 2);
        let Data::Gauge(uptime) = data(&metrics, catalog::UPTIME.0) else {
            panic!("{metrics:?}");
        };
        assert_eq!(uptime.data_points[0].value, Some(Value::AsDouble(1.5)));
        let Data::Sum(requests) = data(&metrics, catalog::HTTP_REQUESTS.0) else {
            panic!("{metrics:?}");
        };
        let labels: Vec<_> = requests.data_points[0]
            .attributes
            .iter()
            .map(text_of)
            .collect();
        let expected = [
            ("method", "GET"),
            ("route", "/a\"b\\c\nd"),
            ("status", "200"),
        ];
        assert_eq!(labels, expected);
    }

    #[test]
    fn histograms_have_a_count_for_each_bucket() {
        let metrics = exported();

        let definition = catalog::HTTP_REQUEST_DURATION.0;
        let Data::Histogram(histogram) = data(&metrics, definition) else {
            panic!("{metrics:?}");
        };
        assert_eq!(histogram.aggregation_temporality, CUMULATIVE);
        assert_eq!(histogram.data_points.len(), 2, "one for each route");
        let is_tokens = |it: &&HistogramDataPoint| text_of(&it.attributes[1]).1 == "/tokens";
        let point = histogram.data_points.iter().find(is_tokens).unwrap();
        assert_eq!(point.explicit_bounds, definition.buckets);
        assert_eq!(point.bucket_counts.len(), definition.buckets.len() + 1);
        assert_eq!(point.count, 5);
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), 5);
        let count_of = |value: f64| {
            let bucket = definition.buckets.partition_point(|bound| *bound < value);
            point.bucket_counts[bucket]
        };
        assert_eq!(
            [0.0001, 0.004, 0.3, 60.0].map(count_of),
            [1, 2, 1, 1],
            "{point:?}"
        );
        assert!((point.sum.unwrap() - 60.3081).abs() < 1e-9);
    }
}
