//! Answers to an AReq that end at once.

use std::time::{Duration, Instant};

use cloakroom_emv3ds::{AReq, ARes, Message, MessageKind, Version};
use cloakroom_threeds_simulator::test_cards;
use serde_json::{Value, json};

use crate::stand_in::{Stage, new_id, start, text, with};

/// Sends an AReq, and holds the answer against it as a 3DS Server does.
pub(crate) async fn authenticate(stage: &Stage, network: &str, request: &Value) -> Value {
    let answer = stage.exchange(network, request).await;
    let read = cloakroom_emv3ds::read(
        answer.to_string().as_bytes(),
        &[MessageKind::ARes],
        &Version::ALL,
    );
    match read.unwrap() {
        Message::ARes(read) => matches(&read, request),
        other => panic!("{other:?} {answer}"),
    }
    answer
}

fn matches(answer: &ARes, request: &Value) {
    let fields = request.as_object().unwrap().clone();
    let request = AReq::from_object(fields).unwrap();
    answer.answers(&request).unwrap();
}

#[tokio::test]
async fn every_test_card_is_answered_as_documented_in_every_version() {
    let stage = start().await;
    for version in ["2.1.0", "2.2.0", "2.3.1"] {
        for card in test_cards()
            .iter()
            .filter(|card| !card.scenario.is_refused_at_create())
        {
            let expected = card.expected();
            let request = stage.areq(version, card.number);
            let completion = if expected.has_method { "N" } else { "U" };
            let request = with(request, "threeDSCompInd", completion);
            let network = card.network().unwrap();
            let Some(status) = expected.directory_status else {
                let answer = stage.exchange(network, &request).await;
                assert_eq!(text(&answer, "errorCode"), Some("403"));
                assert_eq!(text(&answer, "errorComponent"), Some("D"));
                continue;
            };
            let answer = authenticate(&stage, network, &request).await;
            assert_eq!(
                text(&answer, "transStatus"),
                Some(status),
                "{}",
                card.number
            );
            assert_eq!(
                text(&answer, "transStatusReason"),
                expected.directory_reason
            );
            assert_eq!(
                text(&answer, "dsReferenceNumber"),
                Some(&*format!("sim-ds-{network}"))
            );
            let mandated = (status == "C").then_some(if expected.is_mandated { "Y" } else { "N" });
            assert_eq!(text(&answer, "acsChallengeMandated"), mandated);
            let kind = match version {
                "2.3.1" => answer["authenticationMethod"][0]
                    .as_str()
                    .map(|it| it.replace("09", "03")),
                _ => text(&answer, "authenticationType").map(str::to_owned),
            };
            assert_eq!(kind.as_deref(), expected.challenge_type);
        }
    }
}

#[tokio::test]
async fn success_carries_a_value_and_the_indicator_of_its_network() {
    let stage = start().await;
    let cases = [
        ("visa", "4200000000000002", Some("05"), true),
        ("visa", "4200000000000003", Some("06"), true),
        ("visa", "4200000000000005", Some("07"), false),
        ("mastercard", "5204247750001471", Some("02"), true),
        ("mastercard", "5424180011113336", Some("01"), true),
        ("american-express", "340000000004001", Some("05"), true),
    ];
    for (network, number, eci, has_value) in cases {
        let answer = authenticate(&stage, network, &stage.areq("2.2.0", number)).await;
        assert_eq!(text(&answer, "eci"), eci, "{number}");
        assert_eq!(text(&answer, "authenticationValue").is_some(), has_value);
    }
    let answer = authenticate(
        &stage,
        "cartes-bancaires",
        &stage.areq("2.2.0", "4150580996517927"),
    )
    .await;
    assert_eq!(answer["messageExtension"][0]["name"], "CB-SCORE");
}

#[tokio::test]
async fn faults_are_told_by_code_and_field() {
    let stage = start().await;
    let request = || stage.areq("2.2.0", "4200000000000002");
    let without = |name: &str| {
        let mut message = request();
        message.as_object_mut().unwrap().remove(name);
        message.to_string()
    };
    let duplicated = request().to_string().replacen('{', "{\"mcc\":\"5411\",", 1);
    let cases = [
        (without("merchantName"), "201", "merchantName"),
        (without("deviceChannel"), "201", "deviceChannel"),
        (with(request(), "mcc", "54").to_string(), "203", "mcc"),
        (
            with(request(), "messageVersion", "2.9.0").to_string(),
            "102",
            "messageVersion",
        ),
        (duplicated, "204", "mcc"),
        (
            with(request(), "acquirerMerchantID", "unknown").to_string(),
            "303",
            "acquirerMerchantID",
        ),
        (
            with(request(), "acctNumber", "5204247750001471").to_string(),
            "305",
            "acctNumber",
        ),
        (
            with(request(), "threeDSCompInd", "U").to_string(),
            "203",
            "threeDSCompInd",
        ),
        (
            with(request(), "purchaseCurrency", "999").to_string(),
            "203",
            "purchaseCurrency",
        ),
    ];
    for (message, code, detail) in cases {
        let (status, answer) = stage.send("visa", &message).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(status, 200);
        assert_eq!(text(&answer, "errorCode"), Some(code), "{answer}");
        assert!(
            text(&answer, "errorDetail").unwrap().contains(detail),
            "{answer}"
        );
    }
    let (_, answer) = stage.send("visa", "no message").await.unwrap();
    assert!(answer.contains("\"101\""), "{answer}");
}

#[tokio::test]
async fn a_transaction_is_answered_once_and_may_be_repeated_after_an_error() {
    let stage = start().await;
    let id = new_id();
    let request = |number: &str| with(stage.areq("2.2.0", number), "threeDSServerTransID", &id);
    let answer = stage.exchange("visa", &request("4200000000000012")).await;
    assert_eq!(text(&answer, "errorCode"), Some("403"));
    let answer = stage.exchange("visa", &request("4200000000000002")).await;
    assert_eq!(text(&answer, "transStatus"), Some("Y"));
    let answer = stage.exchange("visa", &request("4200000000000002")).await;
    assert_eq!(text(&answer, "errorCode"), Some("305"));
}

#[tokio::test]
async fn amounts_add_errors_extensions_texts_and_delays() {
    let stage = start().await;
    let request = |amount: &str| {
        with(
            stage.areq("2.2.0", "4200000000000002"),
            "purchaseAmount",
            amount,
        )
    };
    for code in [
        "101", "103", "202", "303", "304", "306", "402", "403", "404", "405",
    ] {
        let answer = stage
            .exchange("visa", &request(&format!("991{code}")))
            .await;
        assert_eq!(text(&answer, "errorCode"), Some(code));
    }
    let answer = authenticate(&stage, "visa", &request("990101")).await;
    assert!(text(&answer, "cardholderInfo").is_some());
    let answer = authenticate(&stage, "visa", &request("990103")).await;
    assert_eq!(answer["messageExtension"][0]["criticalityIndicator"], false);

    let answer = stage.exchange("visa", &request("990102")).await;
    let body = answer.to_string();
    let read = cloakroom_emv3ds::read(body.as_bytes(), &[MessageKind::ARes], &Version::ALL);
    assert_eq!(read.unwrap_err().code.code(), "202");

    let began = Instant::now();
    authenticate(&stage, "visa", &request("990201")).await;
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn digits_reach_statuses_and_reasons() {
    let stage = start().await;
    let cases = [
        ("2.2.0", "0012", "N", Some("03")),
        ("2.2.0", "0040", "I", None),
        ("2.1.0", "1040", "U", Some("12")),
        ("2.2.0", "2059", "U", Some("26")),
        ("2.1.0", "1059", "U", Some("14")),
        ("2.3.1", "3031", "R", Some("12")),
        ("2.2.0", "0080", "U", Some("23")),
    ];
    for (version, tail, status, reason) in cases {
        let request = stage.areq(version, &format!("900010000000{tail}"));
        let answer = authenticate(&stage, "visa", &request).await;
        assert_eq!(text(&answer, "transStatus"), Some(status), "{tail}");
        assert_eq!(text(&answer, "transStatusReason"), reason, "{tail}");
    }
    let answer = stage
        .exchange("visa", &stage.areq("2.2.0", "9000100000001000"))
        .await;
    assert_eq!(text(&answer, "errorCode"), Some("102"));
}

#[tokio::test]
async fn trust_lists_follow_the_preference() {
    let stage = start().await;
    for (preference, status) in [("08", Some("Y")), ("09", Some("P")), ("02", None)] {
        let request = stage.areq("2.2.0", "4200000000000002");
        let request = with(request, "threeDSRequestorChallengeInd", preference);
        let answer = authenticate(&stage, "visa", &request).await;
        assert_eq!(text(&answer, "whiteListStatus"), status, "{preference}");
    }
    let mut request = stage.areq("2.3.1", "4200000000000002");
    request["threeDSRequestorChallengeInd"] = json!(["08"]);
    let answer = authenticate(&stage, "visa", &request).await;
    assert_eq!(text(&answer, "trustListStatus"), Some("Y"));
}

#[tokio::test]
async fn a_card_keeps_its_directory_server_silent() {
    let stage = start().await;
    let request = stage.areq("2.2.0", "9000100000000060").to_string();
    let answer = stage.send("visa", &request);
    let patience = Duration::from_secs(2);
    assert!(tokio::time::timeout(patience, answer).await.is_err());
}
