//! Card ranges: learned from networks, kept in the database, and the same at every node.

use cloakroom::card_networks;
use http::StatusCode;
use serde_json::json;

use super::checkout::{Checkout, Plan, digits, id_of};
use super::requests::{browser, payment};

const NUMBER: &str = "4200000000000002";
/// How many directory servers are asked each time.
const DIRECTORIES: u64 = 7;

async fn refresh(checkout: &Checkout) -> u64 {
    let before = checkout.received("PReq").await;
    card_networks::ask_all(&checkout.vault.vault).await.unwrap();
    checkout.received("PReq").await - before
}

async fn change(checkout: &Checkout, action: &str, more: serde_json::Value) {
    let mut change = json!({"action": action, "start": NUMBER, "end": NUMBER});
    change
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    checkout.control("/control/ranges/visa", change).await;
}

/// 201 with or without an address for the 3DS Method, or what stands in the way.
async fn known(checkout: &Checkout) -> String {
    let created = checkout.session(NUMBER).await;
    match created.status {
        StatusCode::CREATED => format!("known, method {}", created.body["method_url"].is_string()),
        status => format!(
            "{} {}",
            status.as_u16(),
            created.body["error"]["service_status"]
        ),
    }
}

#[tokio::test]
async fn changes_of_ranges_are_followed() {
    let checkout = Checkout::start().await;
    assert_eq!(checkout.received("PReq").await, DIRECTORIES);
    assert_eq!(known(&checkout).await, "known, method true");

    change(&checkout, "modify", json!({"method": "absent"})).await;
    assert_eq!(known(&checkout).await, "known, method true");
    assert_eq!(refresh(&checkout).await, DIRECTORIES);
    assert_eq!(known(&checkout).await, "known, method false");

    change(&checkout, "delete", json!({})).await;
    assert_eq!(refresh(&checkout).await, DIRECTORIES);
    assert_eq!(known(&checkout).await, "424 \"404\"");

    change(&checkout, "add", json!({})).await;
    assert_eq!(refresh(&checkout).await, DIRECTORIES);
    assert_eq!(known(&checkout).await, "known, method true");

    // A serial number that the network does not know any more: everything is asked for.
    checkout
        .control("/control/ranges/visa/forget", json!({}))
        .await;
    assert_eq!(refresh(&checkout).await, DIRECTORIES + 1);
    assert_eq!(known(&checkout).await, "known, method true");

    // A change that cannot be: the network is told so, and everything is asked for.
    let gone = json!({"action": "delete", "start": "4999999999999990",
                      "end": "4999999999999999", "pretend": true});
    checkout.control("/control/ranges/visa", gone).await;
    let complaints = checkout.received("Erro").await;
    assert_eq!(refresh(&checkout).await, DIRECTORIES + 1);
    assert_eq!(checkout.received("Erro").await - complaints, 1);
    assert_eq!(known(&checkout).await, "known, method true");
    assert_eq!(refresh(&checkout).await, DIRECTORIES);
}

#[tokio::test]
async fn trouble_with_ranges_leaves_the_known_ones() {
    let checkout = Checkout::start().await;
    for what in ["refuse", "garbage", "http-500", "erro"] {
        let trouble = json!({"kind": "PReq", "what": what, "times": 7, "code": "103"});
        checkout.control("/control/trouble", trouble).await;
        refresh(&checkout).await;
        assert_eq!(known(&checkout).await, "known, method true", "{what}");
    }
    let outside = checkout.session("4100000000000003").await;
    assert_eq!(outside.status, StatusCode::FAILED_DEPENDENCY);
    let error = &outside.body["error"];
    assert_eq!(error["service_status"], "404");
    assert_eq!(error["error_source"], "3DS Server");
    let told = "The card was not supported by any card schemes";
    assert_eq!(error["message"], told);
}

#[tokio::test]
async fn another_node_knows_what_the_first_one_learned() {
    let checkout = Checkout::start().await;
    let node = checkout.vault.second_node().await;
    card_networks::tend(&node.vault).await.unwrap();
    let before = checkout.received("PReq").await;
    change(&checkout, "delete", json!({})).await;
    refresh(&checkout).await;
    card_networks::tend(&node.vault).await.unwrap();
    assert_eq!(checkout.received("PReq").await - before, DIRECTORIES);

    let there = checkout.merchant.at(&node.base_url);
    let new = |token: String| {
        json!({"token_id": token, "device": "browser",
                                     "device_info": browser()})
    };
    let gone = there
        .post("/3ds/sessions", new(checkout.token(NUMBER).await))
        .await;
    assert_eq!(gone.status, StatusCode::FAILED_DEPENDENCY);
    let card = checkout.token(&digits("0000")).await;
    let known = there.post("/3ds/sessions", new(card)).await;
    assert_eq!(known.status, StatusCode::CREATED, "{}", known.body);
}

#[tokio::test]
async fn a_restart_keeps_the_ranges_while_the_network_is_away() {
    let mut checkout = Checkout::start().await;
    let token = checkout.token(NUMBER).await;
    checkout.simulator.take().unwrap().stop().await;
    let node = checkout.vault.second_node().await;
    card_networks::tend(&node.vault).await.unwrap();
    let there = checkout.merchant.at(&node.base_url);
    let new = json!({"token_id": token, "device": "browser", "device_info": browser()});
    let created = there.post("/3ds/sessions", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let path = format!("/3ds/sessions/{}/authenticate", created.id());
    let answer = there.post(&path, payment()).await;
    assert_eq!(answer.body["error"]["service_status"], "502");
}

/// Covers 24.15.
///
/// Which version is spoken, by what the vault and the issuer can.
#[tokio::test]
async fn the_newest_common_version_is_spoken() {
    println!("| ours | issuer | spoken |\n| --- | --- | --- |");
    for (ours, expected) in [
        ("2.1.0,2.2.0", ["2.1.0 2.2.0", "2.1.0", "2.2.0", ""]),
        (
            "2.1.0,2.2.0,2.3.1",
            ["2.1.0 2.2.0 2.3.1", "2.1.0", "2.2.0", "2.3.1"],
        ),
        ("2.2.0", ["2.2.0", "", "2.2.0", ""]),
    ] {
        let checkout = Checkout::start_with(Plan {
            versions: Some(ours),
            ..Plan::default()
        })
        .await;
        for (v, expected) in expected.into_iter().enumerate() {
            let created = checkout.session(&digits(&format!("{v}070"))).await;
            println!("| {ours} | {v} | {expected} |");
            if expected.is_empty() {
                assert_eq!(created.status, StatusCode::FAILED_DEPENDENCY, "{ours} {v}");
                assert_eq!(created.body["error"]["service_status"], "404");
                continue;
            }
            assert_eq!(
                created.status,
                StatusCode::CREATED,
                "{ours} {v}: {}",
                created.body
            );
            let session = created.body;
            let version = checkout.read(id_of(&session)).await.body["version"].clone();
            let all: Vec<&str> = expected.split(' ').collect();
            assert_eq!(version["available_version"], json!(all));
            assert_eq!(version["available_versions"], json!(all));
            let newest = *all.last().unwrap();
            assert_eq!(session["recommended_version"], newest);
            let answer = checkout.authenticate(id_of(&session), payment()).await;
            assert_eq!(answer.status, StatusCode::OK, "{ours} {v}: {}", answer.body);
            assert_eq!(answer.body["threeds_version"], newest);
            let seen = checkout.seen(id_of(&session)).await;
            assert_eq!(seen["areq"]["messageVersion"], newest);
            let html = checkout.challenge(&answer.body).await;
            let back = checkout.pass(html).await.unwrap();
            assert_eq!(back.message("cres")["messageVersion"], newest);
            checkout.submit(&back.action, &back.fields).await;
            let result = checkout.result(id_of(&session)).await.body;
            assert_eq!(result["authentication_status"], "successful", "{ours} {v}");
        }
    }
}
