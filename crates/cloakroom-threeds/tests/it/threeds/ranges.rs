//! Card ranges: fetched from directory servers, stored in the database, and shared by all nodes.

use cloakroom::Node;
use cloakroom::doctor::{self, Severity};
use cloakroom::threeds::networks;
use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::json;

use super::checkout::{Checkout, CheckoutOptions, card_number, id_of};
use super::requests::{browser, payment};

const NUMBER: &str = "4200000000000002";
/// Number of directory servers queried on each refresh.
const DIRECTORIES: u64 = 7;

async fn refresh(checkout: &Checkout) -> u64 {
    let before = checkout.received_count("PReq").await;
    networks::refresh_all_ranges(&checkout.vault.vault, &checkout.vault.vault.card_networks)
        .await
        .unwrap();
    checkout.received_count("PReq").await - before
}

async fn change_range(checkout: &Checkout, action: &str, more: serde_json::Value) {
    let mut change = json!({"action": action, "start": NUMBER, "end": NUMBER});
    change
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    checkout.control("/control/ranges/visa", change).await;
}

/// Whether the card is known and has a 3DS Method URL, or the error.
async fn lookup(checkout: &Checkout) -> String {
    let created = checkout.request_session(NUMBER).await;
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
async fn range_updates_are_applied() {
    let checkout = Checkout::start().await;
    assert_eq!(checkout.received_count("PReq").await, DIRECTORIES);
    assert_eq!(lookup(&checkout).await, "known, method true");

    change_range(&checkout, "modify", json!({"method": "absent"})).await;
    assert_eq!(lookup(&checkout).await, "known, method true");
    assert_eq!(refresh(&checkout).await, DIRECTORIES);
    assert_eq!(lookup(&checkout).await, "known, method false");

    change_range(&checkout, "delete", json!({})).await;
    assert_eq!(refresh(&checkout).await, DIRECTORIES);
    assert_eq!(lookup(&checkout).await, "424 \"404\"");

    change_range(&checkout, "add", json!({})).await;
    assert_eq!(refresh(&checkout).await, DIRECTORIES);
    assert_eq!(lookup(&checkout).await, "known, method true");

    // The network no longer knows the serial number: all ranges are fetched.
    checkout
        .control("/control/ranges/visa/forget", json!({}))
        .await;
    assert_eq!(refresh(&checkout).await, DIRECTORIES + 1);
    assert_eq!(lookup(&checkout).await, "known, method true");

    // An invalid change: the network gets an error message, and all ranges are fetched.
    let invalid = json!({"action": "delete", "start": "4999999999999990",
                      "end": "4999999999999999", "pretend": true});
    checkout.control("/control/ranges/visa", invalid).await;
    let errors = checkout.received_count("Erro").await;
    assert_eq!(refresh(&checkout).await, DIRECTORIES + 1);
    assert_eq!(checkout.received_count("Erro").await - errors, 1);
    assert_eq!(lookup(&checkout).await, "known, method true");
    assert_eq!(refresh(&checkout).await, DIRECTORIES);
}

#[tokio::test]
async fn failed_range_updates_keep_the_stored_ranges() {
    let checkout = Checkout::start().await;
    for what in ["refuse", "garbage", "http-500", "erro"] {
        let fault = json!({"kind": "PReq", "what": what, "times": 7, "code": "103"});
        checkout.control("/control/trouble", fault).await;
        refresh(&checkout).await;
        assert_eq!(lookup(&checkout).await, "known, method true", "{what}");
    }
    let outside = checkout.request_session("4100000000000003").await;
    assert_eq!(outside.status, StatusCode::FAILED_DEPENDENCY);
    let error = &outside.body["error"];
    assert_eq!(error["service_status"], "404");
    assert_eq!(error["error_source"], "3DS Server");
    let message = "The card was not supported by any card schemes";
    assert_eq!(error["message"], message);
}

#[tokio::test]
async fn ranges_are_shared_between_nodes() {
    let checkout = Checkout::start().await;
    let node = checkout.vault.second_node().await;
    networks::tend(&node.vault, &node.vault.card_networks)
        .await
        .unwrap();
    let before = checkout.received_count("PReq").await;
    change_range(&checkout, "delete", json!({})).await;
    refresh(&checkout).await;
    networks::tend(&node.vault, &node.vault.card_networks)
        .await
        .unwrap();
    assert_eq!(checkout.received_count("PReq").await - before, DIRECTORIES);

    let there = checkout.merchant.at(&node.base_url);
    let new = |token: String| {
        json!({"token_id": token, "device": "browser",
                                     "device_info": browser()})
    };
    let removed = there
        .post("/3ds/sessions", new(checkout.create_token(NUMBER).await))
        .await;
    assert_eq!(removed.status, StatusCode::FAILED_DEPENDENCY);
    let card = checkout.create_token(&card_number("0000")).await;
    let found = there.post("/3ds/sessions", new(card)).await;
    assert_eq!(found.status, StatusCode::CREATED, "{}", found.body);
}

#[tokio::test]
async fn ranges_survive_a_restart_while_the_network_is_unavailable() {
    let mut checkout = Checkout::start().await;
    let token = checkout.create_token(NUMBER).await;
    checkout.simulator.take().unwrap().stop().await;
    let node = checkout.vault.second_node().await;
    networks::tend(&node.vault, &node.vault.card_networks)
        .await
        .unwrap();
    let there = checkout.merchant.at(&node.base_url);
    let new = json!({"token_id": token, "device": "browser", "device_info": browser()});
    let created = there.post("/3ds/sessions", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let path = format!("/3ds/sessions/{}/authenticate", created.id());
    let response = there.post(&path, payment()).await;
    assert_eq!(response.body["error"]["service_status"], "502");
}

/// Covers 24.15.
///
/// The protocol version by what the vault and the issuer support.
#[tokio::test]
async fn the_newest_common_version_is_used() {
    println!("| ours | issuer | spoken |\n| --- | --- | --- |");
    for (supported, expected) in [
        ("2.1.0,2.2.0", ["2.1.0 2.2.0", "2.1.0", "2.2.0", ""]),
        (
            "2.1.0,2.2.0,2.3.1",
            ["2.1.0 2.2.0 2.3.1", "2.1.0", "2.2.0", "2.3.1"],
        ),
        ("2.2.0", ["2.2.0", "", "2.2.0", ""]),
    ] {
        let checkout = Checkout::start_with(CheckoutOptions {
            versions: Some(supported),
            ..CheckoutOptions::default()
        })
        .await;
        for (v, expected) in expected.into_iter().enumerate() {
            let created = checkout
                .request_session(&card_number(&format!("{v}070")))
                .await;
            println!("| {supported} | {v} | {expected} |");
            if expected.is_empty() {
                assert_eq!(
                    created.status,
                    StatusCode::FAILED_DEPENDENCY,
                    "{supported} {v}"
                );
                assert_eq!(created.body["error"]["service_status"], "404");
                continue;
            }
            assert_eq!(
                created.status,
                StatusCode::CREATED,
                "{supported} {v}: {}",
                created.body
            );
            let session = created.body;
            let version = checkout.read(id_of(&session)).await.body["version"].clone();
            let all: Vec<&str> = expected.split(' ').collect();
            assert_eq!(version["available_version"], json!(all));
            assert_eq!(version["available_versions"], json!(all));
            let newest = *all.last().unwrap();
            assert_eq!(session["recommended_version"], newest);
            let response = checkout.authenticate(id_of(&session), payment()).await;
            assert_eq!(
                response.status,
                StatusCode::OK,
                "{supported} {v}: {}",
                response.body
            );
            assert_eq!(response.body["threeds_version"], newest);
            let transaction = checkout.transaction(id_of(&session)).await;
            assert_eq!(transaction["areq"]["messageVersion"], newest);
            let html = checkout.open_challenge(&response.body).await;
            let return_form = checkout.complete_challenge(html).await.unwrap();
            assert_eq!(return_form.message("cres")["messageVersion"], newest);
            checkout
                .submit(&return_form.action, &return_form.fields)
                .await;
            let result = checkout.result(id_of(&session)).await.body;
            assert_eq!(
                result["authentication_status"], "successful",
                "{supported} {v}"
            );
        }
    }
}

#[tokio::test]
async fn doctor_reports_an_unusable_networks_file() {
    let vault = TestVault::start().await;
    let mut config = vault.configuration();
    config.threeds.networks_file = Some("/nowhere/networks.toml".into());

    let findings = doctor::diagnose(&config, None).await;
    let started = Node::open(config).await;

    let finding = findings.iter().find(|finding| finding.area == "threeds");
    let finding = finding.expect("doctor does not check the networks file");
    assert_eq!(finding.severity, Severity::Bad, "{}", finding.what);
    assert!(
        finding.what.contains("/nowhere/networks.toml"),
        "{}",
        finding.what
    );
    assert!(started.is_err());
}
