//! Request metrics by method, route and status. Each handle is looked up by name once and then cached.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use metrics::{Counter, Histogram, SharedString};

use super::catalog;

/// The metrics of requests with the same method, route and status.
#[derive(Clone)]
pub(super) struct Meters {
    pub(super) requests: Counter,
    pub(super) durations: Histogram,
}

/// Cache of metric handles by route. It stays small, because routes are templates, not paths.
#[derive(Default)]
pub(super) struct MeterCache(RwLock<HashMap<Box<str>, Vec<Entry>>>);

type Entry = (&'static str, u16, Meters);

impl MeterCache {
    pub(super) fn of(&self, method: &'static str, route: &str, status: u16) -> Meters {
        self.find(method, route, status)
            .unwrap_or_else(|| self.insert(method, route, status))
    }

    fn find(&self, method: &'static str, route: &str, status: u16) -> Option<Meters> {
        let cache = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let entries = cache.get(route)?;
        let matches = |(of, with, _): &&Entry| *of == method && *with == status;
        entries
            .iter()
            .find(matches)
            .map(|(.., meters)| meters.clone())
    }

    fn insert(&self, method: &'static str, route: &str, status: u16) -> Meters {
        let meters = Meters {
            requests: catalog::HTTP_REQUESTS.with([
                SharedString::from(method),
                route.to_owned().into(),
                status.to_string().into(),
            ]),
            durations: catalog::HTTP_REQUEST_DURATION
                .with([SharedString::from(method), route.to_owned().into()]),
        };
        let mut cache = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let entries = cache.entry(route.into()).or_default();
        entries.push((method, status, meters.clone()));
        meters
    }
}
