//! Every test card, from its token to the result of its challenge.

use cloakroom_threeds_simulator::{Scenario, TestCard, test_cards};
use http::StatusCode;
use serde_json::Value;

use super::checkout::{Checkout, id_of};
use super::requests::payment;

/// The course of an authentication, as documented or as observed.
#[derive(Debug, Default, PartialEq)]
struct Flow {
    /// The brand, or the status and source of the error when creating the session.
    created: String,
    has_method: bool,
    /// `transStatus` of the ARes, or the error.
    directory: String,
    mandated: String,
    kind: String,
    /// The status that the page reported to the shop.
    page: String,
    /// Final status, reason and ECI, and whether liability is shifted.
    end: String,
}

/// The flow that the documentation specifies.
fn documented(card: &TestCard) -> Flow {
    use Scenario as S;
    let (directory, status, reason) = match card.scenario {
        S::FrictionlessSuccess => ("Y", "successful", ""),
        S::FrictionlessAttempted => ("A", "attempted", ""),
        S::FrictionlessFailed => ("N", "failed", "card-authentication-failed"),
        S::FrictionlessUnavailable => ("U", "unavailable", "cardholder-not-enrolled"),
        S::FrictionlessRejected => ("R", "rejected", "suspected-fraud"),
        S::ChallengeSuccess
        | S::ChallengeSuccessWithoutMethod
        | S::MandatedChallengeSuccess
        | S::OutOfBandChallengeSuccess
        | S::CoBadged => ("C", "successful", ""),
        S::AttemptedAfterChallenge => ("C", "attempted", ""),
        S::ChallengeFailed | S::OutOfBandChallengeFailed => {
            ("C", "failed", "card-authentication-failed")
        }
        S::UnavailableAfterChallenge => ("C", "unavailable", "cardholder-not-enrolled"),
        S::RejectedAfterChallenge => ("C", "rejected", "suspected-fraud"),
        S::DirectoryServerError => ("424 502 Directory Server", "", ""),
        S::InternalError | S::WithoutThreeds => {
            let status = if card.scenario == S::InternalError {
                500
            } else {
                404
            };
            return Flow {
                created: format!("424 {status} 3DS Server"),
                ..Flow::default()
            };
        }
    };
    let is_challenged = directory == "C";
    let is_authenticated = matches!(status, "successful" | "attempted");
    let kind = match card.scenario {
        _ if !is_challenged => "",
        S::ChallengeSuccess | S::ChallengeSuccessWithoutMethod | S::CoBadged => "static",
        S::OutOfBandChallengeSuccess | S::OutOfBandChallengeFailed => "out-of-band",
        _ => "dynamic",
    };
    let mandated = match card.scenario {
        _ if !is_challenged => "",
        S::MandatedChallengeSuccess => "Y",
        _ => "N",
    };
    Flow {
        created: brand(card.number).to_owned(),
        has_method: card.scenario != S::ChallengeSuccessWithoutMethod,
        directory: directory.to_owned(),
        mandated: mandated.to_owned(),
        kind: kind.to_owned(),
        page: match (is_challenged, is_authenticated) {
            (false, _) => String::new(),
            (true, true) => "successful".to_owned(),
            (true, false) => "failed".to_owned(),
        },
        end: match status {
            "" => String::new(),
            _ => format!(
                "{status} {reason} eci {} shifted {is_authenticated}",
                indicator(card.number, status, is_challenged)
            ),
        },
    }
}

fn brand(number: &str) -> &'static str {
    match number.as_bytes() {
        [b'3', b'6', ..] => "Diners Club",
        [b'3', b'4' | b'7', ..] => "American Express",
        [b'3', b'5', ..] => "JCB",
        [b'5', ..] | [b'6', b'7', ..] => "Mastercard",
        [b'6', ..] => "Discover",
        _ => "Visa",
    }
}

fn indicator(number: &str, status: &str, is_challenged: bool) -> &'static str {
    match (brand(number), status) {
        ("Mastercard", "successful") => "02",
        ("Mastercard", "attempted") => "01",
        (_, "successful") => "05",
        (_, "attempted") => "06",
        _ if is_challenged => "",
        ("Mastercard", _) => "00",
        _ => "07",
    }
}

/// Runs the whole flow of a card, as a shop and its customer do.
async fn run_flow(checkout: &Checkout, card: &TestCard) -> Flow {
    let created = checkout.request_session(card.number).await;
    if created.status != StatusCode::CREATED {
        return Flow {
            created: describe_error(created.status, &created.body),
            ..Flow::default()
        };
    }
    let session = created.body;
    assert_eq!(session["cardBrand"], session["card_brand"]);
    let mut flow = Flow {
        created: text(&session, "card_brand"),
        has_method: session["method_url"].is_string(),
        ..Flow::default()
    };
    if flow.has_method {
        assert!(checkout.run_method(&session).await);
    }
    let response = checkout.authenticate(id_of(&session), payment()).await;
    if response.status != StatusCode::OK {
        flow.directory = describe_error(response.status, &response.body);
        return flow;
    }
    let mut outcome = response.body;
    flow.directory = text(&outcome, "authentication_status_code");
    flow.mandated = text(&outcome, "acs_challenge_mandated");
    flow.kind = text(&outcome, "authentication_challenge_type");
    if flow.directory == "C" {
        assert_eq!(outcome["authentication_status"], "challenge");
        assert!(outcome["authentication_value"].is_null(), "{outcome}");
        flow.page = challenge(checkout, &outcome).await;
    }
    let result = checkout.result(id_of(&session)).await;
    assert_eq!(result.status, StatusCode::OK, "{}", result.body);
    outcome = result.body;
    assert_eq!(text(&outcome, "directory_status_code"), flow.directory);
    let read = checkout.read(id_of(&session)).await.body;
    assert_eq!(read["authentication"], outcome);
    assert!(read["expiration_date"].is_string(), "{read}");
    let has_value = outcome["authentication_value"].is_string();
    assert_eq!(has_value, outcome["liability_shifted"] == true, "{outcome}");
    flow.end = format!(
        "{} {} eci {} shifted {}",
        text(&outcome, "authentication_status"),
        text(&outcome, "authentication_status_reason"),
        text(&outcome, "eci"),
        outcome["liability_shifted"],
    );
    flow
}

async fn challenge(checkout: &Checkout, authentication: &Value) -> String {
    let html = checkout.open_challenge(authentication).await;
    let return_form = checkout.complete_challenge(html).await.unwrap();
    let (status, html) = checkout
        .submit(&return_form.action, &return_form.fields)
        .await;
    assert_eq!(status, StatusCode::OK, "{html}");
    let status_text = html.split_once("\"authenticationStatus\":\"");
    let status_text = status_text.and_then(|(_, rest)| rest.split_once('"'));
    status_text
        .map(|(status, _)| status.to_owned())
        .unwrap_or_default()
}

fn describe_error(status: StatusCode, body: &Value) -> String {
    format!(
        "{} {} {}",
        status.as_u16(),
        text(&body["error"], "service_status"),
        text(&body["error"], "error_source")
    )
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// Covers 24.2, 24.4, 24.8, 24.11.
#[tokio::test]
async fn test_cards_behave_as_documented() {
    let checkout = Checkout::start().await;
    let mut mismatches = Vec::new();
    println!("| card | expected | got |\n| --- | --- | --- |");
    for card in test_cards() {
        let expected = documented(card);
        let observed = run_flow(&checkout, card).await;
        println!(
            "| {} | {} | {} |",
            card.number,
            describe(&expected),
            describe(&observed)
        );
        if expected != observed {
            mismatches.push(card.number);
        }
    }
    assert_eq!(mismatches, Vec::<&str>::new());
}

fn describe(flow: &Flow) -> String {
    let parts = [
        flow.created.as_str(),
        if flow.has_method {
            "method"
        } else {
            "no method"
        },
        &flow.directory,
        &flow.mandated,
        &flow.kind,
        &flow.page,
        &flow.end,
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

/// Covers 24.2.
///
/// A co-badged card is sent to the network that the merchant selects, and to no other.
#[tokio::test]
async fn co_badged_cards_use_the_selected_brand() {
    let checkout = Checkout::start().await;
    let number = "4150580996517927";
    for (brand, network, extension) in [
        (None, "visa", None),
        (Some("Visa"), "visa", None),
        (
            Some("Cartes Bancaires"),
            "cartes-bancaires",
            Some("CB-SCORE"),
        ),
    ] {
        let session = checkout.create_session(number).await;
        let brands = &session["additional_card_brands"];
        assert_eq!(*brands, serde_json::json!(["Visa", "Cartes Bancaires"]));
        let mut request = payment();
        if let Some(brand) = brand {
            request["card_brand"] = brand.into();
        }
        let response = checkout.authenticate(id_of(&session), request).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        assert_eq!(
            checkout.transaction(id_of(&session)).await["network"],
            network
        );
        let name = response.body["message_extensions"][0]["name"].as_str();
        assert_eq!(name, extension);
    }
    let session = checkout.create_session(number).await;
    let mut request = payment();
    request["card_brand"] = "Mastercard".into();
    let rejected = checkout.authenticate(id_of(&session), request).await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    assert_eq!(rejected.refused(), ["card_brand"]);
}
