//! Branding of a tenant.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_testkit::{TestResponse, TestVault};
use http::StatusCode;
use serde_json::{Value, json};

use super::{manager, merchant, navigate, new_session, tenant, text};

/// A complete PNG of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

fn branding() -> Value {
    json!({
        "name": "Coat & Hat",
        "colors": {"accent": "#7A1F5C", "accent_text": "#ffffff"},
        "dark_colors": {"accent": "#f0a6d8", "accent_text": "#2b0a20"},
        "logo": PIXEL,
    })
}

fn path_of(url: &Value, vault: &TestVault) -> String {
    url.as_str().unwrap().replace(&vault.base_url, "")
}

async fn checkout_page(vault: &TestVault, tenant: &cloakroom::access::Tenant) -> TestResponse {
    let merchant = merchant(vault, tenant).await;
    let created = merchant.post("/checkout/sessions", new_session()).await;
    navigate(vault, &path_of(&created.body["url"], vault), "en").await
}

/// Covers 31.1, 31.2.
#[tokio::test]
async fn branding_is_shown_on_pages_until_it_is_deleted() {
    let vault = TestVault::start().await;
    let tenant = tenant(&vault).await;
    let manager = manager(&vault, &tenant).await;
    assert_eq!(
        manager.get("/tenants/self/branding").await.status,
        StatusCode::NOT_FOUND
    );

    let set = manager.put("/tenants/self/branding", branding()).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.body);
    let read = manager.get("/tenants/self/branding").await;
    assert_eq!(read.body, set.body);
    assert_eq!(read.body["colors"]["accent"], "#7a1f5c");
    assert!(read.body.get("logo").is_none());

    let page = checkout_page(&vault, &tenant).await;
    assert!(text(&page).contains("Coat &amp; Hat"));
    let logo_path = path_of(&read.body["logo_url"], &vault);
    assert!(text(&page).contains(&format!("src=\"{logo_path}\"")));
    let anonymous = vault.client_with(None);
    let logo = anonymous.get(&logo_path).await;
    assert_eq!(logo.bytes, STANDARD.decode(PIXEL).unwrap());
    assert_eq!(logo.header("content-type"), "image/png");
    assert_eq!(logo.header("x-content-type-options"), "nosniff");
    assert_eq!(
        logo.header("content-security-policy"),
        "default-src 'none'; sandbox"
    );
    let colors = anonymous
        .get(&logo_path.replace("/logo", "/colors.css"))
        .await;
    assert!(
        text(&colors).contains("--accent: #7a1f5c; --accent-text: #ffffff;"),
        "{}",
        text(&colors)
    );
    assert!(text(&colors).contains("--accent: #f0a6d8;"));

    // Every change has URLs of its own, which browsers cache.
    let renamed = manager
        .put("/tenants/self/branding", json!({"name": "  Hats "}))
        .await;
    assert_eq!(renamed.body["name"], "Hats");
    assert_eq!(renamed.body.get("logo_url"), None);
    assert_eq!(
        anonymous.get(&logo_path).await.status,
        StatusCode::NOT_FOUND
    );
    let deleted = manager.delete("/tenants/self/branding").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let page = checkout_page(&vault, &tenant).await;
    assert!(text(&page).contains("<span>shop.example</span>") && !text(&page).contains("Hats"));
    let log = manager.get("/logs?entity_type=tenant&size=100").await;
    let updates = log
        .items()
        .iter()
        .filter(|entry| entry["operation"] == "update");
    assert_eq!(updates.count(), 3);
}

/// Covers 31.1.
#[tokio::test]
async fn invalid_branding_is_rejected_by_attribute() {
    let vault = TestVault::start().await;
    let tenant = tenant(&vault).await;
    let manager = manager(&vault, &tenant).await;
    let svg =
        STANDARD.encode("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>");
    let polyglot = STANDARD.encode([&STANDARD.decode(PIXEL).unwrap()[..], b"<script>"].concat());
    let colors = |accent: &str, text: &str| json!({"accent": accent, "accent_text": text});
    let cases = [
        (json!({"name": ""}), vec!["name"]),
        (json!({"name": "a\nb"}), vec!["name"]),
        (json!({"name": "Coat \u{202e}taH"}), vec!["name"]),
        (json!({"name": "Coat\u{200b}Hat"}), vec!["name"]),
        (json!({"name": "4242 4242 4242 4242"}), vec!["name"]),
        (json!({"name": "a".repeat(51)}), vec!["name"]),
        (
            json!({"colors": {"accent": "#000000"}}),
            vec!["colors.accent_text"],
        ),
        (
            json!({"colors": colors("red", "#fff}*{background:url(//evil.example)}")}),
            vec!["colors.accent", "colors.accent_text"],
        ),
        (
            json!({"colors": colors("#777777", "#ffffff")}),
            vec!["colors.accent_text"],
        ),
        (
            json!({"colors": colors("#ffff00", "#000000")}),
            vec!["colors.accent"],
        ),
        (
            json!({"dark_colors": colors("#1f2937", "#ffffff")}),
            vec!["dark_colors.accent"],
        ),
        (json!({ "logo": svg }), vec!["logo"]),
        (json!({ "logo": polyglot }), vec!["logo"]),
        (json!({"logo": "not base64"}), vec!["logo"]),
        (json!({"logo": "A".repeat(100_000)}), vec!["logo"]),
    ];
    for (body, expected) in cases {
        let response = manager.put("/tenants/self/branding", body.clone()).await;
        assert_eq!(response.refused(), expected, "{body} {}", response.body);
    }
    let gray = json!({"colors": colors("#777777", "#ffffff")});
    let response = manager.put("/tenants/self/branding", gray).await;
    let rule = &response.body["errors"]["colors.accent_text"][0];
    let expected =
        "has a contrast of 4.47:1 with the accent color; WCAG AA requires at least 4.5:1";
    assert_eq!(rule, expected);
    assert_eq!(
        manager.get("/tenants/self/branding").await.status,
        StatusCode::NOT_FOUND
    );
}

/// Covers 31.2.
#[tokio::test]
async fn branding_changed_by_sql_is_not_shown() {
    let vault = TestVault::start().await;
    let tenant = tenant(&vault).await;
    let manager = manager(&vault, &tenant).await;
    let changes = [
        "update branding set name = 'Evil'",
        "update branding set accent = '#123456'",
        "update branding set dark_accent_text = '#000000'",
        "update branding set logo = '\\x00'",
        "update branding set logo_type = 2",
        "update branding set branding_id = gen_random_uuid()",
    ];
    for change in changes {
        let set = manager.put("/tenants/self/branding", branding()).await;
        let logo_path = path_of(&set.body["logo_url"], &vault);
        vault
            .database
            .connect()
            .await
            .execute(change, &[])
            .await
            .unwrap();

        let page = checkout_page(&vault, &tenant).await;
        assert_eq!(page.status, StatusCode::OK, "{change}");
        assert!(
            text(&page).contains("<span>shop.example</span>"),
            "{change}"
        );
        let logo = vault.client_with(None).get(&logo_path).await;
        assert_eq!(logo.status, StatusCode::NOT_FOUND, "{change}");
        let read = manager.get("/tenants/self/branding").await;
        assert_eq!(read.body["code"], "altered_row", "{change}");
    }
}

/// Covers 31.2.
#[tokio::test]
async fn branding_whose_null_became_empty_is_altered() {
    let vault = TestVault::start().await;
    let tenant = tenant(&vault).await;
    let manager = manager(&vault, &tenant).await;
    let connection = vault.database.connect().await;
    for change in [
        "update branding set name = ''",
        "update branding set dark_accent = ''",
        "update branding set logo = ''",
    ] {
        let set = manager.put("/tenants/self/branding", json!({})).await;
        assert_eq!(set.status, StatusCode::OK, "{}", set.body);
        connection.execute(change, &[]).await.unwrap();
        let read = manager.get("/tenants/self/branding").await;
        assert_eq!(read.body["code"], "altered_row", "{change}");
    }
}

/// Covers 31.2.
#[tokio::test]
async fn branding_restored_by_sql_is_not_shown() {
    let vault = TestVault::start().await;
    let tenant = tenant(&vault).await;
    let manager = manager(&vault, &tenant).await;
    let database = vault.database.connect().await;
    let set = manager.put("/tenants/self/branding", branding()).await;
    let logo_path = path_of(&set.body["logo_url"], &vault);
    let save = "create table saved as table branding";
    database.batch_execute(save).await.unwrap();
    let deleted = manager.delete("/tenants/self/branding").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);

    let restore = "insert into branding select * from saved";
    assert_eq!(database.execute(restore, &[]).await.unwrap(), 1);

    let page = checkout_page(&vault, &tenant).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(text(&page).contains("<span>shop.example</span>"));
    let logo = vault.client_with(None).get(&logo_path).await;
    assert_eq!(logo.status, StatusCode::NOT_FOUND);
    let read = manager.get("/tenants/self/branding").await;
    assert_eq!(read.body["code"], "altered_row");
}
