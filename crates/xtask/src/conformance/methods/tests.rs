//! Tests of the table of methods.

use super::*;

fn unsupported() -> Unsupported {
    let text = r#"[{"methods":"networkless.*","reason":"no network"},
            {"methods":"web_hooks.get","reason":"not built yet"},
            {"methods":"nothing.*","reason":"?"}]"#;
    serde_json::from_str(text).unwrap()
}

fn methods(lines: &[(&str, &str, u16)]) -> Methods {
    let mut text = String::new();
    for (method, request, status) in lines {
        let line = if request.is_empty() {
            serde_json::json!({ "sdk": "node 1", "method": method })
        } else {
            serde_json::json!({ "sdk": "node 1", "method": method, "request": request, "status": status })
        };
        writeln!(text, "{line}").unwrap();
    }
    Methods::parse(&text, &unsupported()).unwrap()
}

#[test]
fn every_method_has_a_row_with_its_outcome() {
    let methods = methods(&[
        ("tokens.get", "", 0),
        ("tokens.get", "GET /tokens/{id}", 404),
        ("tokens.get", "GET /tokens/{id}", 200),
        ("networkless.part.get", "", 0),
        ("networkless.part.get", "GET /part", 404),
        ("webHooks.get", "", 0),
        ("webHooks.get", "GET /hooks", 410),
    ]);

    let text = table(&[&methods]).to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "SDK     method                request           result",
            "node 1  networkless.part.get  GET /part         unsupported: no network",
            "node 1  tokens.get            GET /tokens/{id}  ok 200",
            "node 1  webHooks.get          GET /hooks        unsupported: not built yet",
        ]
    );
    assert_eq!(methods.failures(), [""; 0]);
    assert!(page(&[&methods]).contains("| `tokens.get` | `GET /tokens/{id}` | 200 |"));
    assert_eq!(unsupported().idle(&[&methods]), ["nothing.*"]);
}

#[test]
fn unexpected_outcomes_are_reported() {
    let methods = methods(&[
        ("a.forgotten", "", 0),
        ("b.rejected", "", 0),
        ("b.rejected", "GET /b", 404),
        ("networkless.works", "", 0),
        ("networkless.works", "GET /c", 404),
        ("networkless.works", "GET /c", 200),
        ("networkless.forbidden", "", 0),
        ("networkless.forbidden", "GET /d", 403),
    ]);

    assert_eq!(
        methods.failures(),
        [
            "node 1 a.forgotten: not called by the suite",
            "node 1 b.rejected: never succeeded",
            "node 1 networkless.forbidden: rejected, but not as unsupported",
            "node 1 networkless.works: is unsupported, and succeeded",
        ]
    );
}
