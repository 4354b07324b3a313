//! Tests of limits, blocking and bounded memory.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn digests(group: u8, member: u8) -> NumberDigests {
    NumberDigests {
        group: [group; 16],
        member: GroupMember {
            part: [0; 8],
            digest: [member; 8],
        },
        volume: [1; 16],
        part_volume: [2; 16],
    }
}

#[test]
fn eleventh_distinct_number_blocks_the_whole_group() {
    let (mut memory, start) = (Memory::default(), Uptime::now());
    for member in 0..10 {
        let now = start + SECOND * u32::from(member);
        assert_eq!(memory.admit(&[digests(1, member)], 10, now), None);
    }
    let later = start + SECOND * 60;

    let again = memory.admit(&[digests(1, 3)], 10, later);
    let eleventh = memory.admit(&[digests(1, 10)], 10, later);
    let elsewhere = memory.admit(&[digests(2, 10)], 10, later);
    let just_before = later + (admit::WINDOW - Duration::from_millis(1));
    let before = [3, 10].map(|member| memory.admit(&[digests(1, member)], 10, just_before));
    let after = memory.admit(&[digests(1, 10)], 10, later + admit::WINDOW);

    assert_eq!((again, elsewhere), (None, None));
    assert_eq!(eleventh, Some(admit::WINDOW));
    assert_eq!(before, [Some(Duration::from_millis(1)); 2]);
    assert_eq!(after, None);
}

#[test]
fn numbers_of_one_request_are_counted_atomically() {
    let (mut memory, now) = (Memory::default(), Uptime::now());
    let eleven: Vec<NumberDigests> = (0..11).map(|member| digests(1, member)).collect();

    let twice = [&eleven[..9], &eleven[..9]].concat();
    let admitted = memory.admit(&twice, 10, now);
    let rejected = memory.admit(&eleven[9..], 10, now);
    let later = now + admit::WINDOW;
    let ten = memory.admit(&eleven[..10], 10, later);

    assert_eq!(admitted, None);
    assert_eq!(rejected, Some(admit::WINDOW));
    assert_eq!(ten, None, "rejected numbers are not counted");
}

#[test]
fn eleventh_invalid_number_blocks_for_ten_minutes() {
    let (mut memory, start) = (Memory::default(), Uptime::now());
    let (client, other) = ([1; 16], [2; 16]);
    for second in 0..10 {
        let now = start + SECOND * second;
        assert_eq!(memory.count_invalid(client, 1, now), None);
    }
    // One of the ten has expired, so one more is tolerated.
    let late = start + invalid_numbers::WINDOW;
    assert_eq!(memory.count_invalid(client, 1, late), None);

    assert_eq!(
        memory.count_invalid(client, 1, late),
        Some(invalid_numbers::BLOCK)
    );
    assert_eq!(
        memory.block_remaining(&client, late + SECOND),
        Some(invalid_numbers::BLOCK - SECOND)
    );
    assert_eq!(memory.block_remaining(&other, late), None);
    assert_eq!(
        memory.block_remaining(&client, late + invalid_numbers::BLOCK),
        None
    );
    assert_eq!(
        memory.count_invalid(client, 1, late + invalid_numbers::BLOCK),
        None
    );
    assert_eq!(
        memory.count_invalid(other, 11, late),
        Some(invalid_numbers::BLOCK)
    );
}

#[test]
fn memory_is_bounded_and_retains_the_newest_groups() {
    let (mut memory, start) = (Memory::default(), Uptime::now());
    let group = |number: usize| NumberDigests {
        group: (number as u128).to_be_bytes(),
        ..digests(0, 0)
    };
    for number in 0..GROUPS_MAX + 10 {
        let now = start + Duration::from_millis(number as u64);
        memory.insert(&[group(number)], now);
    }

    assert!(memory.cards.len() <= GROUPS_MAX / 2 + 10);
    assert!(memory.cards.contains_key(&group(GROUPS_MAX - 1).group));
    assert!(!memory.cards.contains_key(&group(0).group));
}

/// SplitMix64: a reproducible sequence.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The digests of a number with sixteen digits.
fn card(number: u64) -> NumberDigests {
    let group = |parts: [u64; 2]| {
        let [one, other] = parts.map(u64::to_be_bytes);
        let mut group = [0; 16];
        group[..8].copy_from_slice(&one);
        group[8..].copy_from_slice(&other);
        group
    };
    let (six, eight) = (number / 10_u64.pow(10), number / 10_u64.pow(8));
    NumberDigests {
        group: group([six, number % 10_000]),
        member: GroupMember {
            part: eight.to_be_bytes(),
            digest: number.to_be_bytes(),
        },
        volume: group([6, six]),
        part_volume: group([8, eight]),
    }
}

/// A number with this prefix that passes the Luhn check.
fn luhn_number(start: u64, digits: u32, state: &mut u64) -> u64 {
    let free = 15 - digits;
    let number = (start * 10_u64.pow(free) + random(state) % 10_u64.pow(free)) * 10;
    let passes = |digit: &u64| {
        cloakroom_platform::card_numbers::passes_luhn((number + digit).to_string().as_bytes())
    };
    number + (0..10).find(passes).unwrap()
}

/// 72,000 creates an hour with cards of one BIN, for three hours: none is rejected. Meanwhile
/// an attacker who knows eight and four digits of one of the cards can try at most ten numbers
/// an hour if the traffic is spread over the BIN, and few more if all of it shares those eight
/// digits.
#[test]
fn cards_of_one_bin_are_admitted_at_the_specified_rate() {
    for (start, digits, tried_max) in [(424_242, 6, 10), (42_424_242, 8, 30)] {
        let (mut memory, begin) = (Memory::default(), Uptime::default());
        let mut state = u64::from(digits);
        let (mut rejected, mut now) = (0, begin);
        for _ in 0..3 * 72_000 {
            now = now + Duration::from_millis(50);
            let number = luhn_number(start, digits, &mut state);
            rejected += usize::from(memory.admit(&[card(number)], 10, now).is_some());
        }
        assert_eq!(rejected, 0, "{digits} digits");

        let candidates = (0..10_000).map(|middle| (42_424_242 * 10_000 + middle) * 10_000 + 4_242);
        let tried =
            candidates.filter(|candidate| memory.admit(&[card(*candidate)], 10, now).is_none());
        let tried = tried.count();
        assert!((1..=tried_max).contains(&tried), "{digits} digits: {tried}");
    }
}

/// Without other traffic in the BIN the limit is ten, whether six or eight digits are known.
#[test]
fn enumeration_without_other_traffic_stops_at_ten() {
    for step in [1, 1_000, 10_007] {
        let (mut memory, now) = (Memory::default(), Uptime::now());
        let candidates = (0..1_000).map(|n| 4_242_420_000_004_242 + n * step % 1_000_000 * 10_000);
        let tried = candidates.filter(|number| memory.admit(&[card(*number)], 10, now).is_none());
        assert_eq!(tried.count(), 10);
    }
}
