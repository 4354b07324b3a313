//! Tests of the counters in memory.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_group_is_blocked_until_its_oldest_rejection_expires() {
    let (rejections, start) = (Rejections::default(), Uptime::now());
    for second in 0..3 {
        let now = start + SECOND * second;
        assert_eq!(rejections.wait("a", 3, now), None);
        rejections.add("a", now);
    }
    let later = start + SECOND * 10;

    assert_eq!(rejections.wait("a", 3, later), Some(WINDOW - SECOND * 10));
    assert_eq!(rejections.wait("a", 2, later), Some(WINDOW - SECOND * 9));
    assert_eq!(rejections.wait("a", 4, later), None);
    assert_eq!(rejections.wait("b", 3, later), None);
    assert_eq!(rejections.wait("a", 3, start + WINDOW), None);
}

#[test]
fn memory_is_bounded() {
    let (rejections, now) = (Rejections::default(), Uptime::now());
    for _ in 0..REJECTIONS_MAX + 10 {
        rejections.add("a", now);
    }
    for group in 0..GROUPS_MAX + 10 {
        rejections.add(&group.to_string(), now);
    }
    let groups = rejections.0.lock().unwrap();

    assert!(groups.len() <= GROUPS_MAX);
    assert!(groups.values().all(|times| times.len() <= REJECTIONS_MAX));
}
