//! What tests can see and bring about.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cloakroom_threeds_simulator::{Error, Simulator};
use serde_json::{Value, json};

use crate::answers::authenticate;
use crate::stand_in::{any_port, options, start, start_with, text};

#[tokio::test]
async fn a_test_sees_what_arrived_but_no_card_number() {
    let stage = start().await;
    let number = "4200000000000002";
    let request = stage.areq("2.2.0", number);
    authenticate(&stage, "visa", &request).await;
    let path = format!(
        "/control/transactions/{}",
        text(&request, "threeDSServerTransID").unwrap()
    );
    let (_, seen) = stage.control(&path, None).await;
    assert!(!seen.to_string().contains(number));
    let mut arrived = seen["areq"].clone();
    assert_eq!(arrived["acctNumber"], "0002");
    arrived["acctNumber"] = json!(number);
    assert_eq!(arrived, request);
    assert_eq!(seen["ares"]["transStatus"], "Y");
    assert_eq!(seen["method_seen"], false);
    assert_eq!(
        stage.control("/control/transactions/nothing", None).await.0,
        404
    );
    let (_, counts) = stage.control("/control/messages", None).await;
    assert_eq!(
        counts,
        json!({"received": {"AReq": 1}, "sent": {"ARes": 1}})
    );
}

#[tokio::test]
async fn results_can_be_repeated_altered_and_sent_without_certificate() {
    let stage = start().await;
    let request = stage.areq("2.2.0", "9000100000000072");
    let answer = authenticate(&stage, "visa", &request).await;
    let id = text(&answer, "threeDSServerTransID").unwrap();
    let path = format!("/control/transactions/{id}/result");
    let send = async |body: Value| stage.control(&path, Some(body)).await.1;

    let refused = send(json!({"certificate": false})).await;
    assert!(refused.get("failure").is_some(), "{refused}");
    assert!(stage.results().is_empty());

    let reply = send(json!({})).await;
    assert_eq!(reply["message"]["messageType"], "RRes");
    let altered = json!({"change": {"transStatus": "N", "transStatusReason": "01", "eci": null}});
    send(altered).await;
    let results = stage.results();
    assert_eq!(text(&results[0], "transStatus"), Some("Y"));
    assert_eq!(text(&results[1], "transStatus"), Some("N"));
    assert!(results[1].get("eci").is_none());
    assert_eq!(results[0]["dsTransID"], results[1]["dsTransID"]);
}

#[tokio::test]
async fn trouble_comes_when_it_is_asked_for_and_goes() {
    let stage = start().await;
    let trouble = async |body: Value| {
        assert_eq!(stage.control("/control/trouble", Some(body)).await.0, 204);
    };
    let send = async || {
        let request = stage.areq("2.2.0", "4200000000000002").to_string();
        stage.send("visa", &request).await
    };
    trouble(json!({"kind": "AReq", "what": "http-500", "times": 1})).await;
    assert_eq!(send().await.unwrap().0, 500);
    trouble(json!({"kind": "AReq", "what": "garbage", "times": 1})).await;
    assert!(serde_json::from_str::<Value>(&send().await.unwrap().1).is_err());
    trouble(json!({"kind": "AReq", "what": "refuse", "times": 1})).await;
    assert!(send().await.is_err());
    trouble(json!({"kind": "AReq", "what": "stall", "seconds": 1, "times": 1})).await;
    let began = Instant::now();
    assert!(send().await.is_err());
    assert!(began.elapsed() >= Duration::from_secs(1));
    trouble(json!({"kind": "AReq", "what": "erro", "code": "103"})).await;
    for _ in 0..2 {
        assert!(send().await.unwrap().1.contains("\"103\""));
    }
    assert_eq!(stage.delete("/control/trouble").await, 204);
    assert!(send().await.unwrap().1.contains("\"ARes\""));
    let nonsense = json!({"kind": "AReq", "what": "rain"});
    assert_eq!(
        stage.control("/control/trouble", Some(nonsense)).await.0,
        400
    );
}

#[tokio::test]
async fn bodies_are_bounded() {
    let stage = start().await;
    let long = " ".repeat(129 * 1024);
    assert_eq!(stage.send("visa", &long).await.unwrap().0, 413);
    let long = "a".repeat(65 * 1024);
    assert_eq!(
        stage.form("/acs/challenge", &[("creq", &long)]).await.0,
        413
    );
}

#[tokio::test]
async fn pages_can_be_plain_for_a_laptops_browser() {
    let stage = start_with(|options| options.acs_plain = true).await;
    assert!(stage.simulator.acs_url().starts_with("http://127.0.0.1:"));
    assert_eq!(
        stage.control("/control/messages", None).await,
        (200, json!({"received": {}, "sent": {}}))
    );
    let answer = authenticate(&stage, "visa", &stage.areq("2.2.0", "4200000000000004")).await;
    let url = format!("{}/acs/challenge", stage.simulator.acs_url());
    assert_eq!(text(&answer, "acsURL"), Some(&*url));
}

#[tokio::test]
async fn only_loopback_addresses_are_listened_on() {
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
async fn stopping_frees_the_addresses() {
    let stage = start().await;
    let address: SocketAddr = stage
        .simulator
        .acs_url()
        .strip_prefix("https://")
        .unwrap()
        .parse()
        .unwrap();
    stage.simulator.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
