//! Card numbers, authentication values, device data and keys must not leak into logs, errors or tables. Also: no
//! result is lost under load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cloakroom_testkit::LogCapture;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::checkout::{Checkout, card_number, id_of};
use super::requests::{decoupled, payment, payment_of};

/// The contents of all tables as text.
async fn tables(checkout: &Checkout) -> String {
    let database = checkout.vault.database.connect().await;
    let sql = "select relname::text from pg_class
               where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')";
    let mut dump = String::new();
    for row in database.query(sql, &[]).await.unwrap() {
        let table: String = row.get(0);
        let sql = format!("select t::text from {table} t");
        for row in database.query(&sql, &[]).await.unwrap() {
            dump.push_str(row.get(0));
            dump.push('\n');
        }
    }
    dump
}

#[tokio::test]
async fn sensitive_data_is_never_stored_or_logged_in_plaintext() {
    let lines = LogCapture::start();
    let checkout = Checkout::start().await;
    let number = card_number("0072");
    let session = checkout.create_session(&number).await;
    let id = id_of(&session);
    checkout.run_method(&session).await;
    let mut bodies = Vec::new();
    bodies.push(checkout.authenticate(id, payment_of("991303")).await.bytes);
    bodies.push(checkout.authenticate(id, json!({})).await.bytes);
    let response = checkout.authenticate(id, payment()).await;
    bodies.push(checkout.authenticate(id, payment()).await.bytes);
    bodies.push(checkout.result(id).await.bytes);
    let html = checkout.open_challenge(&response.body).await;
    let return_form = checkout.complete_challenge(html).await.unwrap();
    checkout
        .submit(&return_form.action, &return_form.fields)
        .await;
    bodies.push(
        checkout
            .send_result(id, json!({"eci": "06"}))
            .await
            .to_string()
            .into_bytes(),
    );
    let result = checkout.result(id).await.body;
    let proof = result["authentication_value"].as_str().unwrap().to_owned();
    let rejected = checkout.request_session("4100000000000003").await;
    bodies.push(rejected.bytes);
    bodies.push(format!("{:?}", checkout.log_entries(id).await).into_bytes());

    let keys = [
        checkout.merchant.key().unwrap(),
        checkout.page.key().unwrap(),
    ];
    let secrets = [
        ("card number", number.as_str()),
        ("card number", "4100000000000003"),
        ("proof", proof.as_str()),
        ("device", "a test of devices"),
        ("cardholder", "john@example.com"),
        ("private key", keys[0]),
        ("public key", keys[1]),
    ];
    let logged = lines.text();
    let stored = tables(&checkout).await;
    assert!(logged.len() > 1_000 && stored.len() > 1_000);
    for (what, secret) in secrets {
        assert!(!logged.contains(secret), "{what} in a log line");
        assert!(!stored.contains(secret), "{what} in a table");
        let in_hex = secret.bytes().map(|byte| format!("{byte:02x}"));
        assert!(
            !stored.contains(&in_hex.collect::<String>()),
            "{what} in bytes of a table"
        );
        for body in &bodies {
            let body = String::from_utf8_lossy(body);
            assert!(!body.contains(secret), "{what} in {body}");
        }
    }
}

/// Runs one session of the load, from its token to its result.
async fn run_session(checkout: &Checkout, turn: usize) -> Value {
    let (tail, request) = match turn % 3 {
        0 => ("0000", payment()),
        1 => ("0070", payment()),
        _ => ("0080", decoupled(5)),
    };
    let session = checkout.create_session(&card_number(tail)).await;
    let response = checkout.authenticate(id_of(&session), request).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    if turn % 3 == 1 {
        let html = checkout.open_challenge(&response.body).await;
        let return_form = checkout.complete_challenge(html).await.unwrap();
        checkout
            .submit(&return_form.action, &return_form.fields)
            .await;
    }
    // Polls like a shop, for as long as a busy machine takes.
    let mut last = Value::Null;
    for _ in 0..120 {
        let result = checkout.result(id_of(&session)).await;
        if result.status == StatusCode::OK {
            return result.body;
        }
        last = json!({"turn": turn, "status": result.status.as_u16(), "body": result.body});
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    last
}

#[tokio::test]
async fn a_crowd_loses_no_result() {
    let checkout = Arc::new(Checkout::start().await);
    let started = Instant::now();
    let mut sessions = JoinSet::new();
    for turn in 0..200 {
        let checkout = Arc::clone(&checkout);
        // Boxed: two hundred futures exceed the stack of a test.
        sessions.spawn(Box::pin(async move { run_session(&checkout, turn).await }));
    }
    let mut successful = 0;
    while let Some(result) = sessions.join_next().await {
        let result = result.unwrap();
        successful += usize::from(result["authentication_status"] == "successful");
        assert_eq!(result["liability_shifted"], true, "{result}");
    }
    println!(
        "200 sessions, {} lost, {:?}",
        200 - successful,
        started.elapsed()
    );
    assert_eq!(successful, 200);
    assert_eq!(checkout.received_count("AReq").await, 200);
}
