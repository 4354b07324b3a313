//! Tests of the server settings.

use super::*;

#[test]
fn settings_are_durable_and_quoted() {
    let options = PostgresOptions {
        settings: vec![("application_name".into(), "it's".into())],
        ..PostgresOptions::default()
    };

    let text = settings(&options, 5999, Path::new("/tmp/x"));

    for line in [
        "fsync = 'on'",
        "full_page_writes = 'on'",
        "synchronous_commit = 'on'",
        "port = '5999'",
        "unix_socket_directories = '/tmp/x'",
        "application_name = 'it''s'",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

#[test]
fn an_overlong_socket_folder_is_omitted() {
    // The longest file name is `/.s.PGSQL.65535.lock`; 107 bytes are the limit.
    for (length, expected) in [(87, true), (88, false)] {
        let folder = format!("/tmp/{}", "x".repeat(length - "/tmp/".len()));

        let text = settings(&PostgresOptions::default(), 5999, Path::new(&folder));

        assert_eq!(
            !text.contains("unix_socket_directories = ''\n"),
            expected,
            "{length}"
        );
    }
}
