//! Tests of the detection and extraction of card numbers.

use super::*;

#[test]
fn card_numbers_are_detected_in_text() {
    let cases = [
        ("4242424242424242", true),
        ("4242 4242 4242 4242", true),
        ("order 4242-4242-4242-4242!", true),
        ("378282246310005", true),
        ("4242424242424242 123", true),
        ("12 4242424242424242", true),
        ("4242424242424242 12/30", true),
        ("4242424242424242-1", true),
        ("4242.4242.4242.4242", true),
        ("4242_4242_4242_4242", true),
        ("4242\u{a0}4242\t4242  4242", true),
        ("4242\u{2013}4242\u{2013}4242\u{2013}4242", true),
        ("\u{ff14}242424242424242", true),
        ("PAN4242424242424242exp", true),
        ("{\"number\":\"4242424242424242\"}", true),
        ("42424242424242424242", true),
        ("42424242424242421228", true),
        ("16424242424242424212280000", true),
        ("4242 4242 4242 42421228", true),
        ("5066991111111118", true),
        ("pan-5018000000000009", true),
        ("6521110000000004", true),
        ("9792030000000000", true),
        ("135412345678911", true),
        ("4242 a 4242 a 4242 a 4242", false),
        ("4242424242424241", false),
        ("1234567890123452", true),
        ("1763212345678904", false),
        ("4006381333931", false),
        ("+4915123456787", false),
        ("2026-11-15 10:00:00", false),
        ("c06d0789-0a38-40be-b7cc-c28a718f76f1", false),
        ("49b56700-4912-4733-8318-9e9a0e055286", false),
        ("/49B56700-4912-4733-8318-9E9A0E055286/x", false),
        ("x49b56700-4912-4733-8318-9e9a0e055286", true),
        ("49b56700-4912-4733-8318-9e9a0e0552860", true),
        ("49b56700-4912-4733-8318-9e9a0e05528g", true),
        ("42424242-4242-4242-a234-56789abcdef0", true),
        ("a2345678-9abc-def0-4242-424242424242", true),
        ("42424242-4242-4242-4242-424242424242", true),
        (
            "49b56700-4912-4733-8318-9e9a0e055286 4242424242424242",
            true,
        ),
        (
            "4242424242424242 49b56700-4912-4733-8318-9e9a0e055286",
            true,
        ),
        (
            "4242-4242-4242-4242-49b56700-4912-4733-8318-9e9a0e055286",
            true,
        ),
        ("é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é-é", false),
        ("42424242", false),
        ("", false),
    ];
    for (text, expected) in cases {
        assert_eq!(contains_card_number(text), expected, "{text}");
    }
}

#[test]
fn distinct_card_numbers_are_extracted() {
    let many: String = (0..200)
        .map(|n| format!("{:012}", 400_000_000_000_u64 + n))
        .flat_map(|start| (0..10).map(move |end| format!("{start}000{end} x ")))
        .collect();
    let cases: [(&str, &[&str]); 4] = [
        ("order 42", &[]),
        (
            "4242-4242-4242-4242 and 4242424242424242",
            &["4242424242424242"],
        ),
        (
            "{\"a\":\"378282246310005\",\"b\":4242424242424242}",
            &["378282246310005", "4242424242424242"],
        ),
        ("4.242424242424242e15", &["4242424242424242"]),
    ];
    for (text, expected) in cases {
        let found = card_numbers_in(text);
        let found: Vec<&str> = found.iter().map(|n| n.expose().as_str()).collect();
        assert_eq!(found, expected, "{text}");
    }
    assert_eq!(card_numbers_in(&many).len(), FOUND_MAX);
}

/// Takes seconds on a loaded machine. Superlinear time would be hours.
#[test]
fn long_texts_are_searched_in_linear_time() {
    let started = std::time::Instant::now();
    for text in ["1 ", "1", "+1 ", "0-", "4:"] {
        let text = text.repeat(100_000 / text.len());

        assert!(!contains_card_number(&text), "{}", &text[..8]);
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(300));
}

#[test]
fn digits_in_any_style_are_digits() {
    let styled = [
        "𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐𝟒𝟐",
        "④②④②④②④②④②④②④②④②",
        "⁴²⁴²⁴²⁴²⁴²⁴²⁴²⁴²",
        "₄₂₄₂₄₂₄₂₄₂₄₂₄₂₄₂",
        "４２４２４２４２４２４２４２４２",
        "𝟜𝟚𝟜𝟚 ④②④② ⁴²⁴² 4242",
    ];
    for text in styled {
        assert!(contains_card_number(text), "{text}");
        let found = card_numbers_in(text);
        assert_eq!(found[0].expose(), "4242424242424242", "{text}");
    }
}
