//! Windows in the memory of a node.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cloakroom_platform::ids;
use proptest::prelude::*;
use tokio::time::Instant;

use super::{counter, small_row};
use crate::rate_limits::counter::{Counter, Outcome};
use crate::rate_limits::local_windows::LocalWindows;
use crate::rate_limits::{Action, Row, Table};

#[tokio::test]
async fn every_built_in_limit_holds_at_its_boundary() {
    let millisecond = Duration::from_millis(1);
    for row in &Table::shipped().unwrap().rows {
        let (windows, start, counters) = (LocalWindows::default(), Instant::now(), [counter(row)]);
        let admit = |at: Duration| windows.admit(&counters, 1, start + at)[0];

        for _ in 0..row.requests {
            assert!(!admit(Duration::ZERO).is_rejected, "{}", row.name);
        }
        let first = admit(millisecond);
        let reopened = match row.action {
            Action::Throttle => row.window,
            Action::Block(time) => row.window.max(time + millisecond),
        };

        assert!(
            first.is_rejected && first.wait == reopened - millisecond,
            "{row:?} {first:?}"
        );
        assert!(admit(reopened - millisecond).is_rejected, "{}", row.name);
        assert!(!admit(reopened).is_rejected, "{}", row.name);
    }
}

#[tokio::test]
async fn local_node_admits_its_share_and_at_least_one() {
    let table = Table::shipped().unwrap();
    for (nodes, expected) in [(1, 50), (2, 25), (4, 12), (49, 1), (1_000, 1)] {
        let (windows, now) = (LocalWindows::default(), Instant::now());
        let counters = [counter(&table.rows[0])];
        let admitted = (0..100).filter(|_| !windows.admit(&counters, nodes, now)[0].is_rejected);
        assert_eq!(admitted.count(), expected, "{nodes}");
    }
}

/// A minimal window: stores every admission and counts them on each request.
#[derive(Default)]
struct Model {
    admitted: HashMap<String, VecDeque<Instant>>,
    blocked_until: HashMap<String, Instant>,
}

impl Model {
    fn rejects(&mut self, counter: &Counter, now: Instant) -> bool {
        let (name, window) = (&counter.name, counter.row.window);
        if self
            .blocked_until
            .get(name)
            .is_some_and(|until| now < *until)
        {
            return true;
        }
        let admitted = self.admitted.entry(name.clone()).or_default();
        let inside: Vec<Instant> = admitted
            .iter()
            .copied()
            .filter(|at| now < *at + window)
            .collect();
        let is_full = inside.len() as u64 >= counter.limit;
        if is_full && let Action::Block(time) = counter.row.action {
            let place = inside.len() - usize::try_from(counter.limit).unwrap();
            let until = (now + time).max(inside[place] + window);
            self.blocked_until.insert(name.clone(), until);
        }
        is_full
    }

    fn admit(&mut self, counters: &[Counter], now: Instant) -> Vec<bool> {
        let rejections: Vec<bool> = counters.iter().map(|one| self.rejects(one, now)).collect();
        if !rejections.contains(&true) {
            for counter in counters {
                self.admitted.get_mut(&counter.name).unwrap().push_back(now);
            }
        }
        rejections
    }
}

proptest! {
    #[test]
    fn local_windows_match_the_model(
        rows in prop::collection::vec((1_u64..6, 1_u64..40, 0_u64..30), 1..4),
        steps in prop::collection::vec((0_u64..15, 0_usize..8), 1..120),
    ) {
        let rows: Vec<Arc<Row>> = rows
            .into_iter()
            .enumerate()
            .map(|(at, (requests, window, block))| small_row(at.to_string(), requests, window, block))
            .collect();
        let (windows, mut model, mut now) = (LocalWindows::default(), Model::default(), Instant::now());
        for (pause, chosen) in steps {
            now += Duration::from_millis(pause);
            let counters: Vec<Counter> = rows
                .iter()
                .enumerate()
                .filter(|(at, _)| chosen & (1 << at) != 0)
                .map(|(_, row)| counter(row))
                .collect();
            let outcomes: Vec<Outcome> = windows.admit(&counters, 1, now);
            let rejections: Vec<bool> = outcomes.iter().map(|outcome| outcome.is_rejected).collect();
            prop_assert_eq!(rejections, model.admit(&counters, now));
        }
    }
}

#[tokio::test]
async fn excess_counters_are_evicted() {
    let (windows, now) = (LocalWindows::default(), Instant::now());
    let row = small_row("one".into(), 1, 1_000, 0);
    for _ in 0..150_000 {
        let counter = Counter {
            name: ids::new_uuid().to_string(),
            ..counter(&row)
        };
        assert!(!windows.admit(&[counter], 1, now)[0].is_rejected);
    }
    assert!(windows.count() <= 100_000, "{}", windows.count());
}
