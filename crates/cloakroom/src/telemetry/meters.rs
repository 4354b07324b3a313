//! What counts requests, by method, route and status: looked up by name once, and then remembered.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use metrics::{Counter, Histogram};

/// The counters of requests that are alike.
#[derive(Clone)]
pub(super) struct Meters {
    pub(super) requests: Counter,
    pub(super) durations: Histogram,
}

/// All counters that were needed so far, by route. There are few: routes are templates, not paths.
#[derive(Default)]
pub(super) struct KnownMeters(RwLock<HashMap<Box<str>, Vec<Known>>>);

type Known = (&'static str, u16, Meters);

impl KnownMeters {
    pub(super) fn of(&self, method: &'static str, route: &str, status: u16) -> Meters {
        self.find(method, route, status)
            .unwrap_or_else(|| self.make(method, route, status))
    }

    fn find(&self, method: &'static str, route: &str, status: u16) -> Option<Meters> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let alike = known.get(route)?;
        let is_it = |(of, with, _): &&Known| *of == method && *with == status;
        alike.iter().find(is_it).map(|(.., meters)| meters.clone())
    }

    fn make(&self, method: &'static str, route: &str, status: u16) -> Meters {
        let meters = Meters {
            requests: metrics::counter!(
                "http_requests_total",
                "method" => method, "route" => route.to_owned(), "status" => status.to_string(),
            ),
            durations: metrics::histogram!(
                "http_request_duration_seconds",
                "method" => method, "route" => route.to_owned(),
            ),
        };
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let alike = known.entry(route.into()).or_default();
        alike.push((method, status, meters.clone()));
        meters
    }
}
