//! Rejection of card numbers in clear-text attributes, and of sensitive authentication data anywhere.

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{Client, TestVault, everything, grants};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// Card numbers of less common schemes, and card numbers adjacent to other digits.
const NUMBERS: [&str; 9] = [
    "5066991111111118",
    "5018000000000009",
    "5061000000000000007",
    "6521110000000004",
    "9792030000000000",
    "135412345678911",
    "7926390000000001",
    "42424242424242421228",
    "0016424242424242424230122011",
];
const PAN: &str = "4242424242424242";

struct Fixture {
    vault: TestVault,
    private: Client,
    management: Client,
    server: Client,
    public: Client,
}

impl Fixture {
    async fn start() -> Self {
        use Permission::{
            ApplicationCreate, ApplicationUpdate, TenantUpdate, TokenCreate, TokenIntentCreate,
            TokenRead, TokenSearch, TokenUpdate,
        };
        let vault = TestVault::start().await;
        let tenant = vault.tenant().await;
        let mut granted = everything(Transform::Reveal);
        granted.permissions = grants(&[TokenIntentCreate]).permissions;
        let private = vault.client(&tenant, granted).await;
        let managing = grants(&[ApplicationCreate, ApplicationUpdate, TenantUpdate]);
        let management = vault
            .holder(&tenant, ApplicationKind::Management, managing)
            .await;
        let server = vault
            .client(&tenant, grants(&[TokenRead, TokenSearch]))
            .await;
        let public = grants(&[TokenCreate, TokenUpdate, TokenIntentCreate]);
        let public = vault.holder(&tenant, ApplicationKind::Public, public).await;
        Self {
            management: vault.client_with(Some(&management.key)),
            public: vault.client_with(Some(&public.key)),
            private,
            server,
            vault,
        }
    }

    /// Clear-text columns of all tokens in the database.
    async fn clear_text(&self) -> String {
        let database = self.vault.database.connect().await;
        let sql = "select coalesce(string_agg(concat_ws(' ', alias, metadata, mask), ' '), '') from token";
        database.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn authorize(&self, rule: &Value) -> cloakroom_testkit::TestResponse {
        let request = self.public.request(Method::POST, "/sessions");
        let request = request.header("content-length", "0");
        let session = self.public.send(request).await;
        let body = json!({"nonce": session.body["nonce"], "rules": [rule]});
        self.server.post("/sessions/authorize", body).await
    }
}

fn rule(description: &str, scope: &str, value: Value) -> Value {
    json!({"description": description, "priority": 1, "transform": "mask",
        "permissions": ["token:read"], scope: value})
}

/// Covers 3.32.
#[tokio::test]
async fn no_card_number_of_any_scheme_is_stored_or_logged_in_clear() {
    let fixture = Fixture::start().await;
    for number in NUMBERS {
        let token = |name: &str, value: Value| {
            let mut token = json!({"type": "token", "data": "x"});
            token[name] = value;
            token
        };
        let text = format!("card {number}");
        let path = format!("/pci/{number}/");
        let tokens = [
            token("metadata", json!({"note": text})),
            token("metadata", json!({number: "x"})),
            token("id", json!(format!("pan-{number}"))),
            token("containers", json!([path])),
            token("mask", json!(text)),
            token("fingerprint_expression", json!(text)),
            token("search_indexes", json!([text])),
        ];
        for body in tokens {
            let response = fixture.private.post("/tokens", body.clone()).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
            assert!(!response.body.to_string().contains(number), "{body}");
        }
        let application =
            |name: &str, rules: Value| json!({"name": name, "type": "private", "rules": rules});
        let root_rule = || rule(&text, "container", json!("/"));
        let applications = [
            application(&text, json!([])),
            application("n", json!([root_rule()])),
            application("n", json!([rule("r", "container", json!(path))])),
        ];
        for body in applications {
            let response = fixture.management.post("/applications", body.clone()).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
        }
        let renamed = fixture
            .management
            .put("/tenants/self", json!({"name": text}))
            .await;
        assert_eq!(renamed.status, StatusCode::BAD_REQUEST, "{number}");
        let condition = |value: &str| {
            let condition = json!({"attribute": "id", "operator": "starts_with", "value": value});
            rule("r", "conditions", json!([condition]))
        };
        for body in [condition(number), condition(&text), root_rule()] {
            let response = fixture.authorize(&body).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
        }
        let allowed = fixture.authorize(&condition("order-17")).await;
        assert_eq!(allowed.status, StatusCode::OK, "{}", allowed.body);
        let request = fixture.private.request(Method::GET, "/tokens/none");
        let traced = fixture
            .private
            .send(request.header("BT-TRACE-ID", number))
            .await;
        assert_ne!(traced.header("bt-trace-id"), number);
    }
    assert_eq!(fixture.clear_text().await.trim(), "");
}

/// Covers 3.33.
#[tokio::test]
async fn security_codes_are_recognized_under_any_usual_name() {
    let fixture = Fixture::start().await;
    for name in [
        "cvv",
        "CVC",
        "Cvv2",
        "security_code",
        "card-verification-value",
        "cid",
    ] {
        let card = json!({"type": "card", "data": {"number": PAN, name: "737"}});
        let created = fixture.private.post("/tokens", card.clone()).await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{name} {}",
            created.body
        );
        let expected = json!({"number": PAN, "cvc": "737"});
        assert_eq!(created.body["data"], expected, "{name}");
        let path = format!("/tokens/{}", created.id());
        let removed = fixture
            .private
            .patch(&path, json!({"data": {name: null}}))
            .await;
        let changed = fixture
            .private
            .patch(&path, json!({"data": {name: 738}}))
            .await;
        assert_eq!(removed.body["data"], json!({"number": PAN}), "{name}");
        assert_eq!(
            changed.body["data"]["cvc"], "738",
            "{name} {}",
            changed.body
        );
        let intent = fixture.private.post("/token-intents", card).await;
        assert_eq!(intent.status, StatusCode::CREATED, "{name}");
    }
}

/// Covers 3.34.
#[tokio::test]
async fn sensitive_authentication_data_is_rejected() {
    let fixture = Fixture::start().await;
    let card =
        |name: &str, value: Value| json!({"type": "card", "data": {"number": PAN, name: value}});
    let track = ";4242424242424242=30122011000000000000?";
    let cases = [
        (card("billing", json!({"cvv": "737"})), "data.billing.cvv"),
        (card("track2", json!("x")), "data.track2"),
        (card("swipe", json!(track)), "data.swipe"),
        (
            card("swipe", json!("%B4242424242424242^DOE/JANE^3012201?")),
            "data.swipe",
        ),
        (card("pin", json!("1234")), "data.pin"),
        (
            card("pin_block", json!("041234FFFFFFFFFF")),
            "data.pin_block",
        ),
        (
            json!({"type": "token", "data": {"number": PAN, "cvc": "737"}}),
            "data.cvc",
        ),
        (json!({"type": "token", "data": track}), "data"),
        (
            json!({"type": "token", "data": {"n": "5066991111111118", "PIN": 1234}}),
            "data.PIN",
        ),
        (
            json!({"type": "token", "data": "x", "metadata": {"cvc": "737"}}),
            "metadata.cvc",
        ),
        (
            json!({"type": "token", "data": "x", "metadata": {"Card_CVV": "x"}}),
            "metadata.Card_CVV",
        ),
        (
            json!({"type": "token", "data": "x", "metadata": {"t": track}}),
            "metadata.t",
        ),
    ];
    let card_id = fixture
        .private
        .post("/tokens", card("name", json!("A")))
        .await
        .id();
    let token_id = json!({"type": "token", "data": {"number": PAN}});
    let token_id = fixture.private.post("/tokens", token_id).await.id();
    for (body, path) in cases {
        let created = fixture.private.post("/tokens", body.clone()).await;
        assert_eq!(created.refused(), [path], "{body}");
        let tokenized = fixture.private.post("/tokenize", json!({"a": body})).await;
        assert_eq!(tokenized.refused(), [format!("a.{path}")], "{body}");
        if body.get("metadata").is_none() {
            let intent = fixture.private.post("/token-intents", body.clone()).await;
            assert_eq!(intent.refused(), [path], "{body}");
        }
        let id = if body["type"] == "card" {
            &card_id
        } else {
            &token_id
        };
        let mut patch = body.clone();
        patch.as_object_mut().unwrap().remove("type");
        let patched = fixture.private.patch(&format!("/tokens/{id}"), patch).await;
        assert_eq!(patched.refused(), [path], "{body}");
    }
    let document = json!({"payment": {"pan": PAN, "cvc": "737"}});
    let tokenized = fixture.private.post("/tokenize", document).await;
    assert_eq!(tokenized.refused(), ["payment.cvc"]);
    assert!(!fixture.clear_text().await.contains("737"));
}

/// Covers 3.34.
#[tokio::test]
async fn sensitive_names_without_a_card_number_are_accepted() {
    let fixture = Fixture::start().await;
    let accepted = [
        json!({"type": "token", "data": {"pin": "1234", "cvc": "737"}}),
        json!({"type": "token", "data": {"number": PAN, "cvc_result": "M", "pin": "top left"}}),
        json!({"type": "card", "data": {"number": PAN, "cid": "customer-7", "track": "sports"}}),
        json!({"type": "token", "data": "x", "metadata": {"cid": "GA1.2", "pincode": "560001"}}),
    ];
    for body in accepted {
        let created = fixture.private.post("/tokens", body.clone()).await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{body} {}",
            created.body
        );
    }
}

/// Covers 3.35.
#[tokio::test]
async fn a_tenant_setting_allows_card_numbers_in_metadata_values() {
    let fixture = Fixture::start().await;
    let token = json!({"type": "token", "data": "x", "metadata": {"order": PAN}});
    let path = |id: String| format!("/tokens/{id}");
    assert_eq!(
        fixture
            .private
            .post("/tokens", token.clone())
            .await
            .refused(),
        ["metadata.order"]
    );

    let settings = json!({"name": "Shop", "settings": {"card_numbers_in_metadata": "true"}});
    let changed = fixture.management.put("/tenants/self", settings).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    fixture.vault.vault.principals.invalidate_all();

    let created = fixture.private.post("/tokens", token).await;
    assert_eq!(created.body["metadata"]["order"], PAN, "{}", created.body);
    let patch = json!({"metadata": {"other": "5066991111111118"}});
    let patched = fixture.private.patch(&path(created.id()), patch).await;
    assert_eq!(patched.status, StatusCode::OK, "{}", patched.body);
    let track = ";4242424242424242=30122011000000000000?";
    for (metadata, rejected) in [
        (json!({PAN: "x"}), "metadata"),
        (json!({"cvc": "737"}), "metadata.cvc"),
        (json!({"a": track}), "metadata.a"),
    ] {
        let token = json!({"type": "token", "data": "x", "metadata": metadata});
        assert_eq!(
            fixture.private.post("/tokens", token).await.refused(),
            [rejected]
        );
    }
}
