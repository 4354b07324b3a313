//! Identifiers of persons and bank numbers.

use cloakroom::access::ApplicationKind;
use cloakroom_testkit::TestRedis;
use serde_json::{Value, json};

use super::{ALLOWED, card, holder, is_compared, start};

/// Identifiers of one type with the same last four digits.
fn identifiers(kind: &str) -> Vec<Value> {
    let nine = |number: u32| format!("{number:05}1120");
    let passes_aba = |text: &String| {
        let weights = [3, 7, 1].into_iter().cycle();
        let digits = text.bytes().map(|digit| u32::from(digit - b'0'));
        digits
            .zip(weights)
            .map(|(digit, weight)| digit * weight)
            .sum::<u32>()
            % 10
            == 0
    };
    let all = 10_000..;
    match kind {
        "us_bank_routing_number" => {
            let all = all.map(nine).filter(passes_aba).take(30);
            all.map(Value::from).collect()
        }
        "bank" => {
            let bank =
                |number| json!({"routing_number": "021000021", "account_number": nine(number)});
            all.map(bank).take(30).collect()
        }
        _ => all.map(|number| nine(number).into()).take(30).collect(),
    }
}

const IDENTIFIERS: [&str; 5] = [
    "social_security_number",
    "employer_id_number",
    "us_bank_account_number",
    "us_bank_routing_number",
    "bank",
];

/// Covers 23.7.
#[tokio::test]
async fn identifiers_and_bank_numbers_are_counted_by_last_four_digits() {
    let redis = TestRedis::start(&[]).await;
    for redis in [None, Some(&redis)] {
        let vault = start(redis).await;
        let tenant = vault.tenant().await;
        for kind in IDENTIFIERS {
            for operation in [
                "create",
                "tokenize",
                "intent",
                "patch",
                "search",
                "older search",
            ] {
                let holder = holder(&vault, &tenant, ApplicationKind::Private).await;
                let client = vault.client_with(Some(&holder.key));
                let numbers = identifiers(kind);
                let token = |data: &Value| json!({"type": kind, "data": data});
                let id = match operation {
                    "patch" => client.post("/tokens", token(&numbers[0])).await.id(),
                    _ => String::new(),
                };
                let mut accepted = 0;
                for number in &numbers {
                    let value = number
                        .as_str()
                        .or_else(|| number["account_number"].as_str());
                    let query = json!({"query": format!("data:{}", value.unwrap())});
                    let response = match operation {
                        "create" => client.post("/tokens", token(number)).await,
                        "tokenize" => client.post("/tokenize", json!([token(number)])).await,
                        "intent" => client.post("/token-intents", token(number)).await,
                        "patch" => {
                            client
                                .patch(&format!("/tokens/{id}"), json!({"data": number}))
                                .await
                        }
                        "search" => client.post("/v2/tokens/search", query).await,
                        _ => client.post("/tokens/search", query).await,
                    };
                    accepted += usize::from(is_compared(&response));
                }
                assert_eq!(accepted, ALLOWED, "{kind} {operation}");
            }
        }
    }
}

/// Covers 23.7.
#[tokio::test]
async fn public_applications_do_not_see_fingerprints_of_identifiers() {
    let vault = start(None).await;
    let tenant = vault.tenant().await;
    let private = holder(&vault, &tenant, ApplicationKind::Private).await;
    let private = vault.client_with(Some(&private.key));
    let public = holder(&vault, &tenant, ApplicationKind::Public).await;
    let public = vault.client_with(Some(&public.key));
    for kind in IDENTIFIERS {
        let token = json!({"type": kind, "data": identifiers(kind)[0]});
        for path in ["/tokens", "/token-intents"] {
            let visible = private.post(path, token.clone()).await;
            assert!(
                visible.body["fingerprint"].is_string(),
                "{kind} {}",
                visible.body
            );
            let hidden = public.post(path, token.clone()).await;
            assert!(hidden.status.is_success(), "{kind} {}", hidden.body);
            assert_eq!(hidden.body.get("fingerprint"), None, "{kind} {path}");
        }
        let tokenized = public.post("/tokenize", json!({"a": token})).await;
        assert!(tokenized.status.is_success(), "{kind} {}", tokenized.body);
        assert_eq!(tokenized.body["a"].get("fingerprint"), None, "{kind}");
    }
    let shown = public.post("/tokens", card("4242424242424242")).await;
    assert!(shown.body["fingerprint"].is_string());
}
