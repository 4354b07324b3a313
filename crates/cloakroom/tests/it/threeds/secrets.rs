//! What must not be seen: numbers, proofs, devices and keys in logs, errors, records and tables. And a
//! crowd, of whose results none is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::checkout::{Checkout, digits, id_of};
use super::requests::{decoupled, payment, payment_of};
use crate::support::Lines;

/// Everything in every table, as text.
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
async fn numbers_proofs_devices_and_keys_are_nowhere_in_clear() {
    let lines = Lines::capture();
    let checkout = Checkout::start().await;
    let number = digits("0072");
    let session = checkout.created(&number).await;
    let id = id_of(&session);
    checkout.see_browser(&session).await;
    let mut bodies = Vec::new();
    bodies.push(checkout.authenticate(id, payment_of("991303")).await.bytes);
    bodies.push(checkout.authenticate(id, json!({})).await.bytes);
    let answer = checkout.authenticate(id, payment()).await;
    bodies.push(checkout.authenticate(id, payment()).await.bytes);
    bodies.push(checkout.result(id).await.bytes);
    let html = checkout.challenge(&answer.body).await;
    let back = checkout.pass(html).await.unwrap();
    checkout.submit(&back.action, &back.fields).await;
    bodies.push(
        checkout
            .send_result(id, json!({"eci": "06"}))
            .await
            .to_string()
            .into_bytes(),
    );
    let result = checkout.result(id).await.body;
    let proof = result["authentication_value"].as_str().unwrap().to_owned();
    let refused = checkout.session("4100000000000003").await;
    bodies.push(refused.bytes);
    bodies.push(format!("{:?}", checkout.recorded(id).await).into_bytes());

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
    let kept = tables(&checkout).await;
    assert!(logged.len() > 1_000 && kept.len() > 1_000);
    for (what, secret) in secrets {
        assert!(!logged.contains(secret), "{what} in a log line");
        assert!(!kept.contains(secret), "{what} in a table");
        let in_hex = secret.bytes().map(|byte| format!("{byte:02x}"));
        assert!(
            !kept.contains(&in_hex.collect::<String>()),
            "{what} in bytes of a table"
        );
        for body in &bodies {
            let body = String::from_utf8_lossy(body);
            assert!(!body.contains(secret), "{what} in {body}");
        }
    }
}

/// One of the crowd, from its token to its result.
async fn walk(checkout: &Checkout, turn: usize) -> Value {
    let (tail, request) = match turn % 3 {
        0 => ("0000", payment()),
        1 => ("0070", payment()),
        _ => ("0080", decoupled(5)),
    };
    let session = checkout.created(&digits(tail)).await;
    let answer = checkout.authenticate(id_of(&session), request).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    if turn % 3 == 1 {
        let html = checkout.challenge(&answer.body).await;
        let back = checkout.pass(html).await.unwrap();
        checkout.submit(&back.action, &back.fields).await;
    }
    // As a shop would ask: now and then, for as long as the machine makes it wait.
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
    let mut crowd = JoinSet::new();
    for turn in 0..200 {
        let checkout = Arc::clone(&checkout);
        // In a box: two hundred of them are too much for the stack of a test.
        crowd.spawn(Box::pin(async move { walk(&checkout, turn).await }));
    }
    let mut successful = 0;
    while let Some(result) = crowd.join_next().await {
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
    assert_eq!(checkout.received("AReq").await, 200);
}
