//! The control endpoints.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cloakroom_threeds_simulator::{Error, Simulator};
use serde_json::{Value, json};

use crate::authentication::authenticate;
use crate::harness::{any_port, options, start, start_with, text};

#[tokio::test]
async fn received_messages_are_available_without_card_numbers() {
    let harness = start().await;
    let number = "4200000000000002";
    let request = harness.areq("2.2.0", number);
    authenticate(&harness, "visa", &request).await;
    let path = format!(
        "/control/transactions/{}",
        text(&request, "threeDSServerTransID").unwrap()
    );
    let (_, recorded) = harness.control(&path, None).await;
    assert!(!recorded.to_string().contains(number));
    let mut arrived = recorded["areq"].clone();
    assert_eq!(arrived["acctNumber"], "0002");
    arrived["acctNumber"] = json!(number);
    assert_eq!(arrived, request);
    assert_eq!(recorded["ares"]["transStatus"], "Y");
    assert_eq!(recorded["method_seen"], false);
    assert_eq!(
        harness
            .control("/control/transactions/nothing", None)
            .await
            .0,
        404
    );
    let (_, counts) = harness.control("/control/messages", None).await;
    assert_eq!(
        counts,
        json!({"received": {"AReq": 1}, "sent": {"ARes": 1}})
    );
}

#[tokio::test]
async fn results_can_be_resent_altered_or_without_certificate() {
    let harness = start().await;
    let request = harness.areq("2.2.0", "9000100000000072");
    let response = authenticate(&harness, "visa", &request).await;
    let id = text(&response, "threeDSServerTransID").unwrap();
    let path = format!("/control/transactions/{id}/result");
    let send = async |body: Value| harness.control(&path, Some(body)).await.1;

    let rejected = send(json!({"certificate": false})).await;
    assert!(rejected.get("failure").is_some(), "{rejected}");
    assert!(harness.results().is_empty());

    let reply = send(json!({})).await;
    assert_eq!(reply["message"]["messageType"], "RRes");
    let altered = json!({"change": {"transStatus": "N", "transStatusReason": "01", "eci": null}});
    send(altered).await;
    let results = harness.results();
    assert_eq!(text(&results[0], "transStatus"), Some("Y"));
    assert_eq!(text(&results[1], "transStatus"), Some("N"));
    assert!(results[1].get("eci").is_none());
    assert_eq!(results[0]["dsTransID"], results[1]["dsTransID"]);
}

#[tokio::test]
async fn faults_are_injected_and_cleared() {
    let harness = start().await;
    let inject = async |body: Value| {
        assert_eq!(harness.control("/control/trouble", Some(body)).await.0, 204);
    };
    let send = async || {
        let request = harness.areq("2.2.0", "4200000000000002").to_string();
        harness.send("visa", &request).await
    };
    inject(json!({"kind": "AReq", "what": "http-500", "times": 1})).await;
    assert_eq!(send().await.unwrap().0, 500);
    inject(json!({"kind": "AReq", "what": "garbage", "times": 1})).await;
    assert!(serde_json::from_str::<Value>(&send().await.unwrap().1).is_err());
    inject(json!({"kind": "AReq", "what": "refuse", "times": 1})).await;
    assert!(send().await.is_err());
    inject(json!({"kind": "AReq", "what": "stall", "seconds": 1, "times": 1})).await;
    let began = Instant::now();
    assert!(send().await.is_err());
    assert!(began.elapsed() >= Duration::from_secs(1));
    inject(json!({"kind": "AReq", "what": "erro", "code": "103"})).await;
    for _ in 0..2 {
        assert!(send().await.unwrap().1.contains("\"103\""));
    }
    assert_eq!(harness.delete("/control/trouble").await, 204);
    assert!(send().await.unwrap().1.contains("\"ARes\""));
    let nonsense = json!({"kind": "AReq", "what": "rain"});
    assert_eq!(
        harness.control("/control/trouble", Some(nonsense)).await.0,
        400
    );
}

#[tokio::test]
async fn body_sizes_are_limited() {
    let harness = start().await;
    let long = " ".repeat(129 * 1024);
    assert_eq!(harness.send("visa", &long).await.unwrap().0, 413);
    let long = "a".repeat(65 * 1024);
    assert_eq!(
        harness.form("/acs/challenge", &[("creq", &long)]).await.0,
        413
    );
}

#[tokio::test]
async fn the_acs_can_use_plain_http() {
    let harness = start_with(|options| options.acs_plain = true).await;
    assert!(harness.simulator.acs_url().starts_with("http://127.0.0.1:"));
    assert_eq!(
        harness.control("/control/messages", None).await,
        (200, json!({"received": {}, "sent": {}}))
    );
    let response = authenticate(&harness, "visa", &harness.areq("2.2.0", "4200000000000004")).await;
    let url = format!("{}/acs/challenge", harness.simulator.acs_url());
    assert_eq!(text(&response, "acsURL"), Some(&*url));
}

#[tokio::test]
async fn non_loopback_addresses_are_rejected() {
    let elsewhere = SocketAddr::from(([0, 0, 0, 0], 0));
    for (listen, acs_listen) in [(elsewhere, any_port()), (any_port(), elsewhere)] {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(folder.path().to_owned());
        (options.listen, options.acs_listen) = (listen, acs_listen);
        let started = Simulator::start(options).await;
        assert!(matches!(started, Err(Error::NotLoopback { .. })));
    }
}

#[tokio::test]
async fn stopping_releases_the_addresses() {
    let harness = start().await;
    let address: SocketAddr = harness
        .simulator
        .acs_url()
        .strip_prefix("https://")
        .unwrap()
        .parse()
        .unwrap();
    harness.simulator.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
