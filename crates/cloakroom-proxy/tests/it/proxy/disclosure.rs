//! A caller that may use data but not see it learns nothing of it from errors, responses and configuration values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom_testkit::{Client, encrypt, grants, rule};
use http::{Method, StatusCode};
use serde_json::json;

use super::destination::Behavior;
use super::{Fixture, NUMBER, card, proxy_error};

impl Fixture {
    /// A client that may use and see all tokens.
    pub(super) async fn revealing(&self) -> Client {
        let sees = [Permission::TokenRead, Permission::ProxyInvoke];
        let rules = vec![rule(1, "/", Transform::Reveal, &sees)];
        self.vault
            .client(
                &self.tenant,
                Grants {
                    rules,
                    ..grants(&[])
                },
            )
            .await
    }
}

/// S1: whether an expression failed told the caller which digit a card has.
#[tokio::test]
async fn expressions_of_callers_without_reveal_are_closed() {
    let fixture = Fixture::start().await;
    let id = fixture.card().await;
    let revealing = fixture.revealing().await;
    let number = format!("{id} | json: '$.number'");
    let digit = "slice: 3, 1 | replace: '2', 'x' | to_number";
    for open in [
        format!("{number} | {digit}"),
        format!("{number} | slice: 0, 4"),
        format!("{number} | split: '' | join: '-'"),
        format!("{number} | hmac: 'sha-256', 'k' | to_base16"),
        format!("{number} | reveal: 8, 4"),
        format!("{number} | pad_left: proxy.request.headers.X-A, '0'"),
        format!("{id} | json: '$..number'"),
        format!("{id} | json: '$[?(@ == \"{}\")]'", "4"),
        format!("{id} | json: proxy.request.headers.X-A"),
        format!("{id} | stringify"),
        format!("{id} | card_exp: 'MM YYYY or so'"),
        format!("token: {id} | json: '$.data.number' | divided_by: 0"),
    ] {
        let body = json!({"a": 1, "card": {"x": [format!("{{{{ {open} }}}}")]}});
        let rejected = fixture.post_json(body.clone()).await;
        assert_eq!(
            rejected.status,
            StatusCode::BAD_REQUEST,
            "{open}: {}",
            rejected.body
        );
        let errors = &proxy_error(&rejected)["errors"];
        assert!(errors["body.card.x[0]"].is_array(), "{open}: {errors}");
        assert_eq!(fixture.destination.connections(), 0, "{open}");
    }
    let body = json!({"a": format!("{{{{ {number} | slice: 0, 4 }}}}")});
    let seen = fixture
        .post_as(&revealing, "application/json", body.to_string())
        .await;
    assert_eq!(seen.status, StatusCode::OK, "{}", seen.body);
    assert_eq!(fixture.destination.last().text(), r#"{"a":"4242"}"#);
    let body = json!({"a": format!("{{{{ {number} | {digit} }}}}")});
    let failed = fixture
        .post_as(&revealing, "application/json", body.to_string())
        .await;
    assert_eq!(proxy_error(&failed)["code"], "not_evaluated");
}

/// A rule that reveals other tokens does not open the language for this one.
#[tokio::test]
async fn the_language_is_open_only_if_every_value_is_seen() {
    let fixture = Fixture::start().await;
    let hidden = fixture.card().await;
    let seen = fixture.token_in("/seen/", json!("abc")).await;
    let sees = rule(1, "/seen/", Transform::Reveal, &[Permission::TokenRead]);
    let rules = vec![sees];
    let granted = Grants {
        rules,
        ..grants(&[Permission::ProxyInvoke])
    };
    let client = fixture.vault.client(&fixture.tenant, granted).await;
    for (expressions, expected) in [
        (vec![format!("{{{{ {seen} | upcase }}}}")], StatusCode::OK),
        (
            vec![format!("{{{{ {hidden} | json: '$.number' | upcase }}}}")],
            StatusCode::BAD_REQUEST,
        ),
        (
            vec![
                format!("{{{{ {seen} | upcase }}}}"),
                format!("{{{{ {hidden} }}}}"),
            ],
            StatusCode::BAD_REQUEST,
        ),
    ] {
        let body = json!(expressions).to_string();
        let response = fixture
            .post_as(&client, "application/json", body.clone())
            .await;
        assert_eq!(response.status, expected, "{body}: {}", response.body);
    }
}

/// Closed expressions are total: no value decides between an error and a request.
#[tokio::test]
async fn closed_expressions_never_fail() {
    let fixture = Fixture::start().await;
    let values = [
        json!("a\r\nb\u{1}"),
        json!(7),
        json!(null),
        json!([1]),
        json!({"number": {"a": 1}}),
    ];
    for value in values {
        let id = fixture.token(json!({"v": value})).await;
        for filters in [
            "",
            " | last4",
            " | card_bin",
            " | card_exp: 'MM/YY'",
            " | pad_left: 3, '0' | to_string",
            " | json: '$.number.a[3]' | last4",
        ] {
            let expression = format!("{{{{ {id} | json: '$.v'{filters} }}}}");
            let places = [
                ("application/json", json!([expression]).to_string()),
                ("text/xml", format!("<a>{expression}</a>")),
                (
                    "multipart/form-data; boundary=b",
                    format!("--b\r\n\r\n{expression}\r\n--b--"),
                ),
            ];
            for (media, body) in places {
                let request = fixture.request(Method::POST, "");
                let request = request
                    .header("content-type", media)
                    .header("x-a", &expression);
                let response = fixture.client.send(request.body(body)).await;
                assert_eq!(
                    response.status,
                    StatusCode::OK,
                    "{value} {filters}: {}",
                    response.body
                );
            }
        }
    }
    assert!(
        !fixture
            .destination
            .received()
            .iter()
            .any(|it| it.headers.contains_key("b"))
    );
}

/// S1: processors repeat references, metadata and descriptions.
#[tokio::test]
async fn a_response_with_a_hidden_card_number_is_withheld() {
    let echo = Behavior::respond(|received| {
        let form = received.header("x-form").to_owned();
        let body = received.text().to_owned();
        let number: String = body.chars().filter(char::is_ascii_digit).take(16).collect();
        let grouped = format!("{} {} {}", &number[..4], &number[4..12], &number[12..]);
        let status = if form == "error" { 402 } else { 200 };
        let response = http::Response::builder().status(status);
        let (header, body) = match &*form {
            "header" => (number, String::new()),
            "number" => ("".to_owned(), format!(r#"{{"a": {number}}}"#)),
            "escaped" => (
                "".to_owned(),
                format!(r#"{{"a": "\u0034{}"}}"#, &number[1..]),
            ),
            "grouped" => ("".to_owned(), grouped),
            "last4" => (
                "".to_owned(),
                format!(
                    r#"{{"last4": "{}", "id": 4242424242424243}}"#,
                    &number[12..]
                ),
            ),
            "large" => ("".to_owned(), "x".repeat(1_100_000)),
            _ => ("".to_owned(), body),
        };
        response.header("x-echo", header).body(body.into()).unwrap()
    });
    let fixture = Fixture::with(echo, |_| {}).await;
    let id = fixture.card().await;
    let revealing = fixture.revealing().await;
    let body = format!("{{{{ {id} | json: '$.number' }}}}");
    for form in [
        "body", "error", "header", "number", "escaped", "grouped", "large", "last4",
    ] {
        let send = async |client: &Client| {
            let request = fixture.request_of(client, Method::POST, "/charges");
            let request = request
                .header("content-type", "text/plain")
                .header("x-form", form);
            client.send(request.body(body.clone())).await
        };
        let hidden = send(&fixture.client).await;
        if form == "last4" {
            assert_eq!(hidden.status, StatusCode::OK, "{}", hidden.body);
        } else {
            assert_eq!(
                hidden.status,
                StatusCode::BAD_GATEWAY,
                "{form}: {}",
                hidden.body
            );
            assert_eq!(proxy_error(&hidden)["code"], "response_withheld");
        }
        assert_ne!(
            send(&revealing).await.status,
            StatusCode::BAD_GATEWAY,
            "{form}"
        );
    }
    let database = fixture.vault.database.connect().await;
    let sql = "select count(*) from log where log::text like '%' || $1 || '%'";
    let logged: i64 = database.query_one(sql, &[&id]).await.unwrap().get(0);
    assert!(16 <= logged, "{logged}");
}

/// Whether a response is withheld must not tell which of a caller's guesses is the number, also if the vault completes them.
#[tokio::test]
async fn guesses_are_withheld_whatever_they_are() {
    let echo = Behavior::respond(|received| {
        let body = received.text().to_owned();
        let note: serde_json::Value = serde_json::from_str(&body).unwrap();
        http::Response::new(note["note"].to_string().into())
    });
    let fixture = Fixture::with(echo, |_| {}).await;
    let id = fixture.card().await;
    let completed = |middle: &str| {
        let part = |filter: &str| format!("{{{{ {id} | json: '$.number' | {filter} }}}}");
        format!("{}{middle}{}", part("card_bin"), part("last4"))
    };
    for (guess, expected) in [
        (NUMBER.to_owned(), StatusCode::BAD_GATEWAY),
        ("4242429999994242".to_owned(), StatusCode::BAD_GATEWAY),
        ("4242-4200 0000.4242".to_owned(), StatusCode::BAD_GATEWAY),
        (completed("4242"), StatusCode::BAD_GATEWAY),
        (completed("0000"), StatusCode::BAD_GATEWAY),
        ("4242420000004243".to_owned(), StatusCode::OK),
        ("5555555555554444".to_owned(), StatusCode::OK),
    ] {
        let body = json!({"note": guess, "number": format!("{{{{ {id} | json: '$.number' }}}}")});
        let response = fixture.post_json(body).await;
        assert_eq!(response.status, expected, "{guess}: {}", response.body);
    }
}

/// S7: any rule for `token:use` decrypted values that were encrypted for the vault, without an entry in the audit log.
#[tokio::test]
async fn encrypted_values_are_used_as_in_the_container_of_their_type() {
    let fixture = Fixture::start().await;
    let manager = fixture.vault.holder(
        &fixture.tenant,
        ApplicationKind::Management,
        grants(&[Permission::KeysCreate]),
    );
    let manager = fixture.vault.client_with(Some(&manager.await.key));
    let key = manager.post("/keys", json!({})).await.body;
    let data = card()["data"].to_string();
    for (kind, container, transform, expected) in [
        ("card", "/", Transform::Reveal, Some(NUMBER)),
        (
            "card",
            "/pci/high/",
            Transform::Mask,
            Some("XXXXXXXXXXXX4242"),
        ),
        ("card", "/pci/", Transform::Redact, None),
        ("card", "/nothing/", Transform::Reveal, None),
        ("card", "/nothing/", Transform::Mask, None),
        // A card is a card under any type.
        ("token", "/general/", Transform::Reveal, None),
        ("token", "/", Transform::Mask, Some("")),
    ] {
        let rules = vec![rule(1, container, transform, &[Permission::TokenUse])];
        let granted = Grants {
            rules,
            ..grants(&[])
        };
        let client = fixture.vault.client(&fixture.tenant, granted).await;
        let sent = json!({"type": kind, "encrypted": encrypt(&key, &data)});
        let request = fixture.request_of(&client, Method::POST, "");
        let request = request.header("bt-encrypted", STANDARD.encode(sent.to_string()));
        let request = request.header("content-type", "text/plain");
        let response = client
            .send(request.body("{{ encrypted | json: '$.data.number' }}"))
            .await;
        match expected {
            Some(expected) => {
                assert_eq!(response.status, StatusCode::OK, "{}", response.body);
                assert_eq!(fixture.destination.last().text(), expected);
            }
            None => assert_eq!(
                response.status,
                StatusCode::FORBIDDEN,
                "{container} {transform:?}"
            ),
        }
    }
    let database = fixture.vault.database.connect().await;
    let sql = "select count(*) from log where log::text like '%' || $1 || '%'";
    let logged: i64 = database
        .query_one(sql, &[&key["id"].as_str()])
        .await
        .unwrap()
        .get(0);
    // The creation of the key, and three uses.
    assert_eq!(logged, 4);
}
