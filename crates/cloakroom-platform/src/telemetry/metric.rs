//! Kinds of metrics, as the catalog defines them.

use metrics::{Label as LabelValue, SharedString};

/// Everything that is known about a metric.
#[derive(Debug)]
pub struct Definition {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub labels: &'static [Label],
    /// Upper bounds of the buckets of a histogram.
    pub buckets: &'static [f64],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    /// The name in the Prometheus text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A label of a metric.
#[derive(Debug)]
pub struct Label {
    pub name: &'static str,
    /// All values, if they are known when the node is built.
    pub values: &'static [&'static str],
}

/// A counter with `N` labels.
pub struct Counter<const N: usize>(pub(super) &'static Definition);

/// A gauge with `N` labels.
pub struct Gauge<const N: usize>(pub(super) &'static Definition);

/// A histogram with `N` labels.
pub struct Histogram<const N: usize>(pub(super) &'static Definition);

impl Counter<0> {
    pub fn increment(&self, by: u64) {
        metrics::counter!(self.0.name).increment(by);
    }
}

impl<const N: usize> Counter<N> {
    /// The counter with these values of its labels, in the order of the catalog.
    pub fn with(&self, values: [impl Into<SharedString>; N]) -> metrics::Counter {
        metrics::counter!(self.0.name, self.0.labels(values))
    }
}

impl Counter<2> {
    /// Registers the counter at 0 for a value of its first label and all known values of its second one.
    pub fn start_at_zero(&self, first: &str) {
        let values = self.0.labels.last().map_or(&[][..], |label| label.values);
        for second in values {
            self.with([first.to_owned(), (*second).to_owned()])
                .increment(0);
        }
    }
}

impl Gauge<0> {
    pub fn set(&self, value: f64) {
        metrics::gauge!(self.0.name).set(value);
    }
}

impl<const N: usize> Gauge<N> {
    /// The gauge with these values of its labels, in the order of the catalog.
    pub fn with(&self, values: [impl Into<SharedString>; N]) -> metrics::Gauge {
        metrics::gauge!(self.0.name, self.0.labels(values))
    }
}

impl Histogram<0> {
    pub fn record(&self, value: f64) {
        metrics::histogram!(self.0.name).record(value);
    }
}

impl<const N: usize> Histogram<N> {
    /// The histogram with these values of its labels, in the order of the catalog.
    pub fn with(&self, values: [impl Into<SharedString>; N]) -> metrics::Histogram {
        metrics::histogram!(self.0.name, self.0.labels(values))
    }
}

impl Definition {
    /// The unit of the values, by the suffix of the name.
    pub fn unit(&self) -> &'static str {
        let base = self.name.trim_end_matches("_total");
        match base.rsplit('_').next() {
            Some("seconds") if base.ends_with("_timestamp_seconds") => "seconds since 1970",
            Some("seconds") => "seconds",
            Some("bytes") => "bytes",
            Some("ratio") => "ratio",
            _ => "count",
        }
    }

    fn labels<const N: usize>(&self, values: [impl Into<SharedString>; N]) -> Vec<LabelValue> {
        let labels = self.labels.iter().zip(values);
        labels
            .map(|(label, value)| {
                let value = value.into();
                // A value that the catalog lacks has no counter at 0, and is missing in the reference.
                debug_assert!(
                    label.values.is_empty() || label.values.contains(&value.as_ref()),
                    "{} of {} is not in the catalog: {value}",
                    label.name,
                    self.name
                );
                LabelValue::new(label.name, value)
            })
            .collect()
    }

    /// Adds its help text to the recorder, and a counter or histogram for all known values of its labels.
    pub(super) fn register(&self) {
        match self.kind {
            Kind::Counter => metrics::describe_counter!(self.name, self.help),
            Kind::Gauge => metrics::describe_gauge!(self.name, self.help),
            Kind::Histogram => metrics::describe_histogram!(self.name, self.help),
        }
        for values in self.known_values() {
            let names = self.labels.iter().map(|label| label.name);
            let labels: Vec<_> = names
                .zip(values)
                .map(|(name, value)| LabelValue::new(name, value))
                .collect();
            match self.kind {
                Kind::Counter => metrics::counter!(self.name, labels).increment(0),
                Kind::Histogram => drop(metrics::histogram!(self.name, labels)),
                // Nothing is known before the first measurement, and 0 may be an alarming value.
                Kind::Gauge => {}
            }
        }
    }

    /// Every combination of the values of all labels; none if one of them is not known.
    fn known_values(&self) -> Vec<Vec<&'static str>> {
        let mut all = vec![Vec::new()];
        for label in self.labels {
            all = all
                .iter()
                .flat_map(|before| {
                    label
                        .values
                        .iter()
                        .map(move |value| [before.as_slice(), &[*value]].concat())
                })
                .collect();
        }
        all
    }
}
