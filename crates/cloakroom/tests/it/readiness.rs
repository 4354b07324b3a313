//! What the log says about the checks of `/readyz`.

use cloakroom::admin::Readiness;
use cloakroom_testkit::LogCapture;

#[test]
fn a_check_that_fails_is_logged_once_with_its_reason_and_once_when_it_succeeds_again() {
    let readiness = Readiness::new(&["database", "clock"]);
    let log = LogCapture::start();
    let fail = |reason: &str| readiness.set("database", Err(reason.to_owned()));
    let succeed = || readiness.set("database", Ok(()));

    succeed();
    readiness.set("clock", Ok(()));
    assert_eq!(log.text(), "", "a node that starts");
    for seconds in 1..4 {
        fail(&format!("no response for {seconds} s"));
    }
    fail("the password is wrong");
    for _ in 0..3 {
        succeed();
    }

    let text = log.text();
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        ["the node is not ready", "reason=\"no response for 1 s\""],
        ["the node is not ready", "reason=\"the password is wrong\""],
        ["the check succeeds again", ""],
    ];
    assert_eq!(lines.len(), expected.len(), "{text}");
    for (line, words) in lines.iter().zip(expected) {
        assert!(words.iter().all(|it| line.contains(it)), "{line}");
        assert!(line.contains("check=\"database\""), "{line}");
    }
}
