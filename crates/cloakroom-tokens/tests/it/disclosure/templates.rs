//! Public application templates grant no access to existing tokens.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::grants;
use serde_json::json;

use super::Fixture;

/// Public templates only create tokens; they neither read nor change existing ones.
#[tokio::test]
async fn public_templates_grant_create_only() {
    let fixture = Fixture::start().await;
    let kind = ApplicationKind::Management;
    let reads = grants(&[Permission::ApplicationRead]);
    let manager = fixture.vault.holder(&fixture.tenant, kind, reads).await;
    let manager = fixture.vault.client_with(Some(&manager.key));
    let listed = manager.get("/application-templates").await;
    let templates = listed.body.as_array().unwrap();
    let public = templates
        .iter()
        .filter(|one| one["application_type"] == "public");
    let mut count = 0;
    for template in public {
        for rule in template["rules"].as_array().unwrap() {
            assert_eq!(rule["permissions"], json!(["token:create"]), "{template}");
            count += 1;
        }
    }
    assert_eq!(count, 3);
}
