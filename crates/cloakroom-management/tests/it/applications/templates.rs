//! Permissions and application templates.

use cloakroom::access::Permission;
use cloakroom_testkit::{TestVault, grants};
use http::StatusCode;
use serde_json::json;

use super::{UNKNOWN_ID, manager};

/// Covers 13.23.
#[tokio::test]
async fn permissions_are_listed_for_any_key() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, grants(&[Permission::TokenUse])).await;

    let all = client.get("/permissions").await;
    let of = async |kind: &str| {
        let path = format!("/permissions?application_type={kind}");
        let listed = client.get(&path).await;
        let names = listed.body.as_array().unwrap().iter().map(|item| {
            let types = item["application_types"].as_array().unwrap();
            assert!(types.contains(&json!(kind)));
            item["type"].as_str().unwrap().to_owned()
        });
        names.collect::<Vec<_>>()
    };

    assert_eq!(
        all.body[0],
        json!({"type": "token:create", "description": "Create tokens",
            "application_types": ["public", "private"]})
    );
    let (public, private, management) = (
        of("public").await,
        of("private").await,
        of("management").await,
    );
    assert_eq!(all.body.as_array().unwrap().len(), 72);
    assert_eq!((public.len(), private.len(), management.len()), (7, 39, 34));
    assert!(private.contains(&"orchestration:connection_formulas".to_owned()));
    assert!(management.contains(&"tenant:invitation:create".to_owned()));
    let rejected = client.get("/permissions?application_type=expiring").await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    assert_eq!(rejected.refused(), ["application_type"]);
}

/// Covers 13.24.
#[tokio::test]
async fn every_template_creates_a_valid_application() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let client = vault.client(&tenant, grants(&[Permission::TokenUse])).await;

    let listed = client.get("/application-templates").await;
    let templates = listed.body.as_array().unwrap();

    assert_eq!(templates.len(), 10);
    for template in templates {
        let name = template["name"].as_str().unwrap();
        let path = format!(
            "/application-templates/{}",
            template["id"].as_str().unwrap()
        );
        assert_eq!(client.get(&path).await.body, *template, "{name}");
        let new = json!({"name": name, "type": template["application_type"],
            "permissions": template["permissions"], "rules": template["rules"]});
        let created = manager.post("/applications", new).await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{name}: {}",
            created.body
        );
        assert_eq!(created.body["rules"], template["rules"], "{name}");
        assert_eq!(
            created.body["permissions"], template["permissions"],
            "{name}"
        );
        assert_eq!(template["is_starter"], name == "Full Access");
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&templates[1]).unwrap(), @r#"
    {
      "id": "db9148c1-a55f-4164-b830-a20ab6d720ae",
      "name": "Collect PCI Data",
      "description": "Take cards from browsers and apps",
      "application_type": "public",
      "template_type": "payments",
      "is_starter": false,
      "rules": [
        {
          "description": "Collect PCI data",
          "priority": 1,
          "container": "/pci/",
          "transform": "mask",
          "permissions": [
            "token:create"
          ]
        }
      ],
      "permissions": []
    }
    "#);
    for unknown in [UNKNOWN_ID, "nothing"] {
        let missing = client
            .get(&format!("/application-templates/{unknown}"))
            .await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
    }
}
