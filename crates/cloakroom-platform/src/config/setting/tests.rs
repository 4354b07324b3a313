//! Tests of parsing, formatting and redaction.

use super::*;

#[test]
fn durations_are_parsed_and_formatted() {
    let cases = [
        ("10s", Some(Duration::from_secs(10)), Some("10s")),
        ("5m", Some(Duration::from_secs(300)), Some("5m")),
        ("1h 30m", Some(Duration::from_secs(5400)), Some("1h 30m")),
        ("250ms", Some(Duration::from_millis(250)), Some("250ms")),
        ("10", None, None),
        ("0s", None, None),
        ("-5s", None, None),
        ("5s ago", None, None),
        ("soon", None, None),
        ("", None, None),
    ];
    for (text, expected, shown) in cases {
        let parsed = Duration::parse(text).ok();
        assert_eq!(parsed, expected, "{text:?}");
        assert_eq!(parsed.and_then(|d| d.text()).as_deref(), shown, "{text:?}");
    }
}

#[test]
fn limits_are_at_least_one() {
    for (text, expected) in [("1", Some(1)), ("0", None), ("-1", None), ("1.5", None)] {
        assert_eq!(usize::parse(text).ok(), expected, "{text:?}");
    }
}

#[test]
fn secrets_are_redacted() {
    let secret = Secret::parse(" canary\n").unwrap();

    assert_eq!(secret.reveal(), "canary");
    assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "*** Some(***)");
    assert_eq!(secret.text(), None);
}

#[test]
fn error_messages_do_not_contain_the_value() {
    let errors = [
        SocketAddr::parse("canary").err(),
        Duration::parse("canary").err(),
        usize::parse("canary").err(),
        bool::parse("canary").err(),
        f64::parse("canary").err(),
    ];
    for error in errors {
        assert!(!error.unwrap().contains("canary"));
    }
}
