//! Every test card, from its token to the result of its challenge.

use cloakroom_threeds_simulator::{Scenario, TestCard, test_cards};
use http::StatusCode;
use serde_json::Value;

use super::checkout::{Checkout, id_of};
use super::requests::payment;

/// What the documentation promises of a card, and what is seen of it: in the same words.
#[derive(Debug, Default, PartialEq)]
struct Course {
    /// The brand, or the status and source of the trouble that creating the session met.
    created: String,
    has_method: bool,
    /// `transStatus` of the ARes, or the trouble.
    directory: String,
    mandated: String,
    kind: String,
    /// What the page told the shop.
    page: String,
    /// Status, reason and indicator in the end, and whether liability is shifted.
    end: String,
}

/// The table of the documentation.
fn documented(card: &TestCard) -> Course {
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
            return Course {
                created: format!("424 {status} 3DS Server"),
                ..Course::default()
            };
        }
    };
    let is_challenged = directory == "C";
    let is_proved = matches!(status, "successful" | "attempted");
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
    Course {
        created: brand(card.number).to_owned(),
        has_method: card.scenario != S::ChallengeSuccessWithoutMethod,
        directory: directory.to_owned(),
        mandated: mandated.to_owned(),
        kind: kind.to_owned(),
        page: match (is_challenged, is_proved) {
            (false, _) => String::new(),
            (true, true) => "successful".to_owned(),
            (true, false) => "failed".to_owned(),
        },
        end: match status {
            "" => String::new(),
            _ => format!(
                "{status} {reason} eci {} shifted {is_proved}",
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

/// Goes all the way with a card, as a shop and its customer do.
async fn walk(checkout: &Checkout, card: &TestCard) -> Course {
    let created = checkout.session(card.number).await;
    if created.status != StatusCode::CREATED {
        return Course {
            created: trouble(created.status, &created.body),
            ..Course::default()
        };
    }
    let session = created.body;
    assert_eq!(session["cardBrand"], session["card_brand"]);
    let mut course = Course {
        created: text(&session, "card_brand"),
        has_method: session["method_url"].is_string(),
        ..Course::default()
    };
    if course.has_method {
        assert!(checkout.see_browser(&session).await);
    }
    let answer = checkout.authenticate(id_of(&session), payment()).await;
    if answer.status != StatusCode::OK {
        course.directory = trouble(answer.status, &answer.body);
        return course;
    }
    let mut outcome = answer.body;
    course.directory = text(&outcome, "authentication_status_code");
    course.mandated = text(&outcome, "acs_challenge_mandated");
    course.kind = text(&outcome, "authentication_challenge_type");
    if course.directory == "C" {
        assert_eq!(outcome["authentication_status"], "challenge");
        assert!(outcome["authentication_value"].is_null(), "{outcome}");
        course.page = challenge(checkout, &outcome).await;
    }
    let result = checkout.result(id_of(&session)).await;
    assert_eq!(result.status, StatusCode::OK, "{}", result.body);
    outcome = result.body;
    assert_eq!(text(&outcome, "directory_status_code"), course.directory);
    let read = checkout.read(id_of(&session)).await.body;
    assert_eq!(read["authentication"], outcome);
    assert!(read["expiration_date"].is_null(), "{read}");
    let has_value = outcome["authentication_value"].is_string();
    assert_eq!(has_value, outcome["liability_shifted"] == true, "{outcome}");
    course.end = format!(
        "{} {} eci {} shifted {}",
        text(&outcome, "authentication_status"),
        text(&outcome, "authentication_status_reason"),
        text(&outcome, "eci"),
        outcome["liability_shifted"],
    );
    course
}

async fn challenge(checkout: &Checkout, authentication: &Value) -> String {
    let html = checkout.challenge(authentication).await;
    let back = checkout.pass(html).await.unwrap();
    let (status, html) = checkout.submit(&back.action, &back.fields).await;
    assert_eq!(status, StatusCode::OK, "{html}");
    let told = html.split_once("\"authenticationStatus\":\"");
    let told = told.and_then(|(_, rest)| rest.split_once('"'));
    told.map(|(status, _)| status.to_owned())
        .unwrap_or_default()
}

fn trouble(status: StatusCode, body: &Value) -> String {
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
async fn every_test_card_ends_as_documented() {
    let checkout = Checkout::start().await;
    let mut wrong = Vec::new();
    println!("| card | expected | got |\n| --- | --- | --- |");
    for card in test_cards() {
        let expected = documented(card);
        let got = walk(&checkout, card).await;
        println!("| {} | {} | {} |", card.number, told(&expected), told(&got));
        if expected != got {
            wrong.push(card.number);
        }
    }
    assert_eq!(wrong, Vec::<&str>::new());
}

fn told(course: &Course) -> String {
    let parts = [
        course.created.as_str(),
        if course.has_method {
            "method"
        } else {
            "no method"
        },
        &course.directory,
        &course.mandated,
        &course.kind,
        &course.page,
        &course.end,
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

/// Covers 24.2.
///
/// A card of two brands goes to the one that the merchant names, and to no other one.
#[tokio::test]
async fn a_card_of_two_brands_goes_to_the_one_that_is_named() {
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
        let session = checkout.created(number).await;
        let brands = &session["additional_card_brands"];
        assert_eq!(*brands, serde_json::json!(["Visa", "Cartes Bancaires"]));
        let mut request = payment();
        if let Some(brand) = brand {
            request["card_brand"] = brand.into();
        }
        let answer = checkout.authenticate(id_of(&session), request).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert_eq!(checkout.seen(id_of(&session)).await["network"], network);
        let name = answer.body["message_extensions"][0]["name"].as_str();
        assert_eq!(name, extension);
    }
    let session = checkout.created(number).await;
    let mut request = payment();
    request["card_brand"] = "Mastercard".into();
    let refused = checkout.authenticate(id_of(&session), request).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.refused(), ["card_brand"]);
}
