//! Admissions that a node reserves in advance.

use std::time::Duration;

use tokio::time::Instant;

use super::{counter, small_row};
use crate::rate_limits::counter::Outcome;
use crate::rate_limits::reserves::{Group, Reservation, Reserves};

/// Requests of the same counters, with this limit in two seconds.
fn group(limit: u64) -> Group {
    let row = small_row("many".into(), limit, 2_000, 0);
    Group([counter(&row)].into())
}

/// Outcomes of reserved admissions.
fn admissions(count: u64) -> Vec<Vec<Outcome>> {
    let outcome = |remaining| Outcome {
        is_rejected: false,
        remaining,
        wait: Duration::ZERO,
    };
    (0..count)
        .rev()
        .map(|remaining| vec![outcome(remaining)])
        .collect()
}

#[tokio::test]
async fn reserved_admissions_are_used_in_order_until_they_expire() {
    let (reserves, now, group) = (Reserves::default(), Instant::now(), group(1_000));
    assert_eq!(reserves.take(&group, now), None);
    let reservation = reserves.plan(&group, 4, 1, now);
    // All concurrent requests but the first.
    assert_eq!(
        (reservation.admissions, reservation.ttl),
        (3, Duration::from_millis(20))
    );
    // Only one call at a time reserves admissions.
    assert_eq!(reserves.plan(&group, 4, 1, now), Reservation::NONE);
    let until = now + reservation.ttl;
    reserves.insert(&group, admissions(3), until);

    let remaining = |taken: Option<Vec<Outcome>>| taken.map(|outcomes| outcomes[0].remaining);
    assert_eq!(remaining(reserves.take(&group, now)), Some(2));
    assert_eq!(
        remaining(reserves.take(&group, until - Duration::from_nanos(1))),
        Some(1)
    );
    assert_eq!(remaining(reserves.take(&group, until)), None);
    // Two were used within the TTL, and two arrive together now.
    assert_eq!(reserves.plan(&group, 2, 1, until).admissions, 3);
    reserves.insert(&group, admissions(2), until + reservation.ttl);
    assert_eq!(remaining(reserves.take(&group, until)), Some(1));
    assert_eq!(remaining(reserves.take(&group, until)), Some(0));
    // All were used.
    assert_eq!(reserves.plan(&group, 1, 1, until).admissions, 4);
}

#[tokio::test]
async fn few_admissions_are_reserved_and_none_for_occasional_requests() {
    let (reserves, now) = (Reserves::default(), Instant::now());
    let plan = |limit, requests, nodes| reserves.plan(&group(limit), requests, nodes, now);
    assert_eq!(plan(1_000_000, 1, 1), Reservation::NONE);
    assert_eq!(plan(99, 50, 1), Reservation::NONE);
    assert_eq!(plan(400, 50, 4).admissions, 1);
    assert_eq!(plan(500, 50, 1).admissions, 5);
    assert_eq!(plan(399, 50, 4), Reservation::NONE);

    // A reservation call that was cancelled does not block the next.
    let busy = group(1_000);
    assert_ne!(reserves.plan(&busy, 9, 1, now), Reservation::NONE);
    assert_eq!(reserves.plan(&busy, 9, 1, now), Reservation::NONE);
    let later = now + Duration::from_secs(1);
    assert_ne!(reserves.plan(&busy, 9, 1, later), Reservation::NONE);
}
