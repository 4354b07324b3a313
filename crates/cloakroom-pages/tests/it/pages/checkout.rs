//! The hosted card form.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom::{ids, jobs};
use cloakroom_testkit::{Client, TestResponse, TestVault, grants};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{CANCEL, SHOP, merchant, navigate, new_session, tenant, text};

const NUMBER: &str = "4242424242424242";

/// A vault, a merchant, and an open session with the path of its page.
struct Checkout {
    vault: TestVault,
    tenant: cloakroom::access::Tenant,
    merchant: Client,
    id: String,
    path: String,
}

impl Checkout {
    async fn start() -> Self {
        Self::start_with(new_session()).await
    }

    async fn start_with(new: Value) -> Self {
        let vault = TestVault::start().await;
        let tenant = tenant(&vault).await;
        let merchant = merchant(&vault, &tenant).await;
        let (id, path) = open(&vault, &merchant, new).await;
        Self {
            vault,
            tenant,
            merchant,
            id,
            path,
        }
    }

    async fn submit(&self, body: &Value) -> TestResponse {
        submit(&self.vault, &self.path, body).await
    }

    async fn read(&self) -> Value {
        let path = format!("/checkout/sessions/{}", self.id);
        self.merchant.get(&path).await.body
    }

    async fn sql(&self, statement: &str) -> u64 {
        let connection = self.vault.database.connect().await;
        connection.execute(statement, &[]).await.unwrap()
    }

    async fn intents(&self) -> i64 {
        let connection = self.vault.database.connect().await;
        let row = connection
            .query_one("select count(*) from token_intent", &[])
            .await;
        row.unwrap().get(0)
    }
}

async fn open(vault: &TestVault, merchant: &Client, new: Value) -> (String, String) {
    let created = merchant.post("/checkout/sessions", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let url = created.body["url"].as_str().unwrap();
    (created.id(), url.replace(&vault.base_url, ""))
}

async fn submit(vault: &TestVault, path: &str, body: &Value) -> TestResponse {
    let client = vault.client_with(None);
    client.post(&format!("{path}/card"), body.clone()).await
}

fn card(number: &str) -> Value {
    json!({"data": {"number": number, "expiration_month": 12, "expiration_year": 2040, "cvc": "123"}})
}

/// Covers 31.3, 31.4, 31.5.
#[tokio::test]
async fn a_card_becomes_a_token_intent_of_the_merchant() {
    let new = json!({
        "return_url": SHOP, "cancel_url": CANCEL, "amount": 123_450, "currency": "EUR",
        "reference": "Order <1>", "locale": "de", "collect_cardholder_name": true,
    });
    let checkout = Checkout::start_with(new).await;
    let page = navigate(&checkout.vault, &checkout.path, "fr").await;
    assert_eq!(page.status, StatusCode::OK);
    let html = text(&page);
    for expected in [
        "<html lang=\"de\">",
        "1.234,50\u{a0}€",
        "Order &lt;1&gt;",
        "Kartennummer",
        "Name auf der Karte",
        "autocomplete=\"cc-number\"",
        "inputmode=\"numeric\"",
        "https://shop.example/cart?checkout_session_id=",
    ] {
        assert!(html.contains(expected), "{expected}\n{html}");
    }
    let open = checkout.read().await;
    assert_eq!(
        (
            &open["status"],
            open.get("url"),
            open.get("token_intent_id")
        ),
        (&json!("open"), None, None)
    );

    let mut body = card(NUMBER);
    body["cardholder_name"] = json!(" Ada Example ");
    let submitted = checkout.submit(&body).await;
    assert_eq!(submitted.status, StatusCode::OK, "{}", submitted.body);
    let read = checkout.read().await;
    let intent = read["token_intent_id"].as_str().unwrap();
    let id = &checkout.id;
    let location = format!(
        "https://shop.example/thanks?order=1&checkout_session_id={id}&token_intent_id={intent}#top"
    );
    assert_eq!(submitted.body, json!({ "location": location }));
    assert_eq!(read["status"], "complete");
    assert_eq!(read["cardholder_name"], "Ada Example");
    let found = checkout
        .merchant
        .get(&format!("/token-intents/{intent}"))
        .await;
    assert_eq!(found.body["card"]["last4"], "4242", "{}", found.body);
    assert_eq!(found.body["created_by"], read["created_by"]);
}

/// Covers 31.5.
#[tokio::test]
async fn a_session_accepts_one_card() {
    let checkout = Checkout::start().await;
    let bodies: Vec<Value> = (0..8).map(|_| card(NUMBER)).collect();
    let responses = join_all(bodies.iter().map(|body| checkout.submit(body))).await;

    let count = |status| responses.iter().filter(|it| it.status == status).count();
    assert_eq!((count(StatusCode::OK), count(StatusCode::CONFLICT)), (1, 7));
    assert_eq!(checkout.intents().await, 1);
    let again = checkout.submit(&card("5555555555554444")).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    // The page leads back without the id of the intent, which only the page that created it knows.
    let page = navigate(&checkout.vault, &checkout.path, "en").await;
    assert_eq!(page.status, StatusCode::OK);
    let html = text(&page);
    assert!(
        html.contains("Card details received") && !html.contains("<input"),
        "{html}"
    );
    assert!(
        !html.contains("token_intent_id") && !html.contains("4242"),
        "{html}"
    );
    assert!(
        html.contains("https://shop.example/thanks?order=1&amp;checkout_session_id="),
        "{html}"
    );
}

/// Covers 31.4, 31.5.
#[tokio::test]
async fn expired_sessions_accept_no_card_and_lead_back() {
    let checkout = Checkout::start().await;
    let lifetime = checkout.read().await;
    let [created, expires] = ["created_at", "expires_at"].map(|name| {
        lifetime[name]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    });
    assert_eq!(expires.duration_since(created).as_mins(), 30);

    let soon = checkout.merchant.post("/checkout/sessions", {
        let mut new = new_session();
        let at = created
            .checked_add(std::time::Duration::from_secs(2))
            .unwrap();
        new["expires_at"] = json!(at.to_string());
        new
    });
    let soon = soon.await;
    let path = soon.body["url"]
        .as_str()
        .unwrap()
        .replace(&checkout.vault.base_url, "");
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let page = navigate(&checkout.vault, &path, "es").await;
    assert_eq!(page.status, StatusCode::GONE, "{}", soon.body);
    assert!(text(&page).contains("Esta página ha caducado"));
    assert!(text(&page).contains("https://shop.example/cart?checkout_session_id="));
    let submitted = submit(&checkout.vault, &path, &card(NUMBER)).await;
    assert_eq!(submitted.status, StatusCode::CONFLICT);
    let read = checkout
        .merchant
        .get(&format!("/checkout/sessions/{}", soon.id()))
        .await;
    assert_eq!(read.body["status"], "expired");
    assert_eq!(checkout.intents().await, 0);

    // Sessions are deleted a day after their expiry.
    let aged = "update checkout_session set expires_at = now() - interval '25 hours'";
    assert_eq!(checkout.sql(aged).await, 2);
    jobs::sweep_once(&checkout.vault.vault, ids::new_uuid())
        .await
        .unwrap();
    assert_eq!(checkout.sql("delete from checkout_session").await, 0);
}

/// Covers 31.3.
#[tokio::test]
async fn invalid_sessions_are_rejected_by_attribute() {
    let vault = TestVault::start().await;
    let tenant = tenant(&vault).await;
    let merchant = merchant(&vault, &tenant).await;
    let cases = [
        ("return_url", json!("https://evil.example/"), "return_url"),
        (
            "return_url",
            json!("https://shop.example@evil.example/"),
            "return_url",
        ),
        (
            "return_url",
            json!("https://shop.example\\@evil.example/"),
            "return_url",
        ),
        (
            "return_url",
            json!("javascript:alert(1)//https://shop.example/"),
            "return_url",
        ),
        ("return_url", json!("//shop.example/"), "return_url"),
        ("return_url", json!("http://shop.example/"), "return_url"),
        ("return_url", Value::Null, "return_url"),
        ("cancel_url", json!("https://a.shop.example/"), "cancel_url"),
        ("cancel_url", json!("data:text/html,x"), "cancel_url"),
        ("amount", json!(1), "currency"),
        ("currency", json!("EUR"), "amount"),
        ("reference", json!(NUMBER), "reference"),
        ("reference", json!("a\u{0}b"), "reference"),
        ("reference", json!("a".repeat(51)), "reference"),
        ("reference", json!("a\u{202e}b"), "reference"),
        ("reference", json!("a\u{feff}b"), "reference"),
        ("locale", json!("ja"), "locale"),
        ("expires_at", json!("2020-01-01T00:00:00Z"), "expires_at"),
        ("expires_at", json!("2099-01-01T00:00:00Z"), "expires_at"),
    ];
    for (name, value, expected) in cases {
        let mut new = new_session();
        new[name] = value.clone();
        let response = merchant.post("/checkout/sessions", new).await;
        assert_eq!(response.refused(), [expected], "{name} {value}");
    }
    for (amount, currency, expected) in [(-1, "EUR", "amount"), (1, "XXZ", "currency")] {
        let mut new = new_session();
        (new["amount"], new["currency"]) = (json!(amount), json!(currency));
        let response = merchant.post("/checkout/sessions", new).await;
        assert_eq!(response.refused(), [expected]);
    }
}

/// Covers 31.3.
#[tokio::test]
async fn only_private_keys_create_and_read_sessions() {
    let checkout = Checkout::start().await;
    let held = grants(&[Permission::TokenIntentCreate]);
    let public = checkout
        .vault
        .holder(&checkout.tenant, ApplicationKind::Public, held)
        .await;
    let public = checkout.vault.client_with(Some(&public.key));
    let created = public.post("/checkout/sessions", new_session()).await;
    assert_eq!(created.status, StatusCode::FORBIDDEN, "{}", created.body);
    let read = public
        .get(&format!("/checkout/sessions/{}", checkout.id))
        .await;
    assert_eq!(read.status, StatusCode::FORBIDDEN);
    // The id of a session does not open its page, and its page key does not read it.
    let by_id = navigate(&checkout.vault, &format!("/checkout/{}", checkout.id), "en").await;
    assert_eq!(by_id.status, StatusCode::NOT_FOUND);
    let key = checkout.path.rsplit('/').next().unwrap();
    assert_eq!(key.len(), 32);
    let by_key = checkout
        .merchant
        .get(&format!("/checkout/sessions/{key}"))
        .await;
    assert_eq!(by_key.status, StatusCode::NOT_FOUND);
}

/// Covers 31.4.
#[tokio::test]
async fn pages_cannot_be_framed_cached_or_submitted_from_other_sites() {
    let checkout = Checkout::start().await;
    let page = navigate(&checkout.vault, &checkout.path, "en").await;
    let policy = page.header("content-security-policy");
    for directive in [
        "default-src 'none'",
        "form-action 'none'",
        "frame-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "connect-src 'self'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(
            policy.split("; ").any(|part| part == directive),
            "{directive}: {policy}"
        );
    }
    assert!(!policy.contains("unsafe"));
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("set-cookie", ""),
    ] {
        assert_eq!(page.header(name), value, "{name}");
    }
    let client = checkout.vault.client_with(None);
    let path = format!("{}/card", checkout.path);
    for (site, status) in [
        ("cross-site", StatusCode::FORBIDDEN),
        ("same-site", StatusCode::FORBIDDEN),
        ("none", StatusCode::FORBIDDEN),
        ("same-origin", StatusCode::OK),
    ] {
        let request = client
            .request(Method::POST, &path)
            .header("sec-fetch-site", site);
        let request = request.header("content-type", "application/json");
        let response = client.send(request.body(card(NUMBER).to_string())).await;
        assert_eq!(response.status, status, "{site} {}", response.body);
    }
    // A form of another site cannot send JSON.
    let form = client
        .post_text(&path, &card(NUMBER).to_string(), "text/plain")
        .await;
    assert_eq!(form.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

/// Covers 31.4.
#[tokio::test]
async fn removing_a_host_from_the_tenant_closes_its_pages() {
    let checkout = Checkout::start().await;
    let updating = grants(&[Permission::TenantUpdate]);
    let manager = checkout
        .vault
        .holder(&checkout.tenant, ApplicationKind::Management, updating);
    let manager = checkout.vault.client_with(Some(&manager.await.key));
    let settings = json!({"threeds_callback_hosts": "other.example"});
    let body = json!({"name": "n", "settings": settings});
    assert_eq!(
        manager.put("/tenants/self", body).await.status,
        StatusCode::OK
    );

    let page = navigate(&checkout.vault, &checkout.path, "en").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(!text(&page).contains("shop.example"), "{}", text(&page));
    let submitted = checkout.submit(&card(NUMBER)).await;
    assert_eq!(submitted.status, StatusCode::FORBIDDEN);
    assert_eq!(checkout.intents().await, 0);
}

/// Covers 31.4.
#[tokio::test]
async fn sessions_changed_by_sql_are_unusable() {
    let changes = [
        "update checkout_session set expires_at = expires_at + interval '1 hour'",
        "update checkout_session set state = 2",
        "update checkout_session set row_version = 2",
        "update checkout_session set created_by = gen_random_uuid()",
        "update checkout_session set sealed = set_byte(sealed, 40, get_byte(sealed, 40) # 1)",
        "update checkout_session a set sealed = b.sealed from checkout_session b where a.session_id <> b.session_id",
        // The page of one session must not lead to another.
        "update checkout_session set page_digest = sha256(page_digest)",
    ];
    for change in changes {
        let checkout = Checkout::start().await;
        open(&checkout.vault, &checkout.merchant, new_session()).await;
        assert!(checkout.sql(change).await > 0);

        let page = navigate(&checkout.vault, &checkout.path, "en").await;
        assert!(
            !page.status.is_success() && !text(&page).contains("<input"),
            "{change} {}",
            page.status
        );
        let submitted = checkout.submit(&card(NUMBER)).await;
        assert!(!submitted.status.is_success(), "{change}");
        assert_eq!(checkout.intents().await, 0, "{change}");
        let read = checkout
            .merchant
            .get(&format!("/checkout/sessions/{}", checkout.id))
            .await;
        assert!(!read.status.is_success(), "{change}");
    }
}

/// Covers 31.5.
#[tokio::test]
async fn invalid_cards_are_rejected_without_echo_and_leave_the_session_open() {
    let checkout = Checkout::start().await;
    let with = |name: &str, value: Value| {
        let mut body = card(NUMBER);
        body["data"][name] = value;
        body
    };
    let cases = [
        (with("number", json!("4242424242424241")), "data.number"),
        (with("expiration_month", json!(13)), "data.expiration_month"),
        (with("expiration_year", json!(2020)), "data.expiration_year"),
        (
            with("expiration_year", json!("2020")),
            "data.expiration_year",
        ),
        (with("expiration_year", Value::Null), "data.expiration_year"),
        (
            with("expiration_month", Value::Null),
            "data.expiration_month",
        ),
        (with("cvc", Value::Null), "data.cvc"),
        (with("cvc", json!("12")), "data.cvc"),
        (with("pin", json!("1234")), "data"),
        (json!({"data": {"number": NUMBER}}), "data.cvc"),
        (json!({}), "data"),
        (json!({"data": NUMBER}), "data"),
    ];
    for (body, expected) in cases {
        let response = checkout.submit(&body).await;
        assert!(
            response.refused().contains(&expected),
            "{body} {}",
            response.body
        );
        assert!(!String::from_utf8_lossy(&response.bytes).contains("42424242"));
    }
    assert_eq!(checkout.intents().await, 0);
    assert_eq!(checkout.submit(&card(NUMBER)).await.status, StatusCode::OK);
}

/// Covers 31.5.
///
/// Merchants read the name in clear.
#[tokio::test]
async fn a_card_number_is_not_accepted_as_cardholder_name() {
    let mut new = new_session();
    new["collect_cardholder_name"] = json!(true);
    let checkout = Checkout::start_with(new).await;
    let with_name = |name: &str| {
        let mut body = card(NUMBER);
        body["cardholder_name"] = json!(name);
        body
    };
    for name in [NUMBER, "4242 4242 4242 4242", "Ada 4242-4242-4242-4242"] {
        let response = checkout.submit(&with_name(name)).await;
        assert_eq!(response.refused(), ["cardholder_name"], "{name}");
        assert!(!String::from_utf8_lossy(&response.bytes).contains("4242"));
    }
    assert_eq!(checkout.intents().await, 0);
    assert_eq!(checkout.read().await["status"], "open");
    let accepted = checkout.submit(&with_name("Ada Example")).await;
    assert_eq!(accepted.status, StatusCode::OK, "{}", accepted.body);
}

/// Covers 31.6.
///
/// Invalid numbers count per application and address, over all of its sessions.
#[tokio::test]
async fn card_testing_on_pages_is_stopped() {
    let checkout = Checkout::start().await;
    let mut blocked = None;
    for attempt in 0..12 {
        let (_, path) = open(&checkout.vault, &checkout.merchant, new_session()).await;
        let response = submit(&checkout.vault, &path, &card("4242424242424241")).await;
        if response.status == StatusCode::TOO_MANY_REQUESTS {
            blocked = Some((attempt, response));
            break;
        }
    }
    let (attempt, response) = blocked.unwrap();
    assert_eq!(attempt, 10);
    assert_ne!(response.header("retry-after"), "");
    // Others share the address: their cards are stored, and compared with nothing.
    let valid = checkout.submit(&card(NUMBER)).await;
    assert_eq!(valid.status, StatusCode::OK, "{}", valid.body);
    let intents = "select count(*), count(fingerprint) from token_intent";
    let database = checkout.vault.database.connect().await;
    let counts = database.query_one(intents, &[]).await.unwrap();
    let counts: (i64, i64) = (counts.get(0), counts.get(1));
    assert_eq!(counts, (1, 0));
}

/// Covers 31.4.
#[tokio::test]
async fn pages_stop_when_their_application_is_deleted_or_loses_the_permission() {
    let checkout = Checkout::start().await;
    let held = grants(&[Permission::TokenIntentCreate]);
    let holder = checkout
        .vault
        .holder(&checkout.tenant, ApplicationKind::Private, held)
        .await;
    let other = checkout.vault.client_with(Some(&holder.key));
    let (_, path) = open(&checkout.vault, &other, new_session()).await;
    let deleting = grants(&[Permission::ApplicationDelete, Permission::ApplicationGrant]);
    let manager = checkout
        .vault
        .holder(&checkout.tenant, ApplicationKind::Management, deleting);
    let manager = checkout.vault.client_with(Some(&manager.await.key));
    let deleted = manager
        .delete(&format!("/applications/{}", holder.application))
        .await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.body);

    let page = navigate(&checkout.vault, &path, "en").await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    let submitted = submit(&checkout.vault, &path, &card(NUMBER)).await;
    assert_eq!(submitted.status, StatusCode::NOT_FOUND);
}
