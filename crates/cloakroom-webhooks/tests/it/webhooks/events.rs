//! Events are written by the commit that makes them true, and carry no data.

use cloakroom::access::{ApplicationKind, Permission, TenantKind};
use cloakroom::events::EventKind;
use cloakroom::members::{self, Email, NewInvitation, NewMember, Role};
use cloakroom::security_codes;
use cloakroom_testkit::grants;
use http::StatusCode;
use serde_json::{Value, json};

use super::Fixture;

const CARD: &str = "4242424242424242";

fn all_types() -> Vec<&'static str> {
    EventKind::ALL.iter().map(|kind| kind.name()).collect()
}

fn find<'a>(stored: &'a [(String, Value)], name: &str) -> &'a Value {
    let found = stored.iter().find(|(found, _)| found == name);
    found.map_or_else(|| panic!("no {name} in {stored:?}"), |(_, data)| data)
}

/// Covers 3.31, 6.6.
#[tokio::test]
async fn every_change_of_a_token_is_an_event() {
    let fixture = Fixture::start().await;
    fixture.subscribe(&all_types()).await;
    let new = json!({
        "id": "card-1",
        "type": "card",
        "data": {"number": CARD, "expiration_month": 12, "expiration_year": 2040, "cvc": "123"},
        "metadata": {"order": "17"},
        "containers": ["/pci/high/"],
        "search_indexes": ["{{ data.number | last4 }}"],
    });

    let created = fixture.client.post("/tokens", new).await;
    let patch = json!({"metadata": {"order": "18"}});
    let updated = fixture.client.patch("/tokens/card-1", patch).await;
    assert_eq!(
        fixture.client.get("/tokens/card-1").await.status,
        StatusCode::OK
    );
    fixture.vault.vault.audit.flush().await.unwrap();
    fixture
        .sql("update security_code set expires_at = now()", &[])
        .await;
    security_codes::sweep(&fixture.vault.vault).await.unwrap();
    assert_eq!(
        fixture.client.delete("/tokens/card-1").await.status,
        StatusCode::NO_CONTENT
    );

    let stored = fixture.stored().await;
    let types: Vec<&str> = stored.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        types,
        [
            "token.created",
            "token.updated",
            "token.read",
            "token.property.expired",
            "token.deleted"
        ]
    );
    let token = &find(&stored, "token.created")["token"];
    assert_eq!(token["id"], "card-1");
    assert_eq!(token["type"], "card");
    assert_eq!(token["metadata"], json!({"order": "17"}));
    assert_eq!(token["containers"], json!(["/pci/high/"]));
    assert_eq!(token["fingerprint"], created.body["fingerprint"]);
    assert_eq!(
        token["search_indexes"],
        json!(["{{ data.number | last4 }}"])
    );
    assert_eq!(token["created_by"], created.body["created_by"]);
    let token = &find(&stored, "token.updated")["token"];
    assert_eq!(token["metadata"]["order"], "18");
    assert_eq!(token["created_at"], updated.body["created_at"]);
    let expired = &find(&stored, "token.property.expired")["token"];
    assert_eq!(*expired, json!({"id": "card-1", "property_name": "cvc"}));
    assert_eq!(
        find(&stored, "token.deleted"),
        &json!({"token": {"id": "card-1"}})
    );
    let all = json!(stored).to_string();
    for secret in [CARD, "4242", "123"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}

/// Covers 8.13, 18.15.
#[tokio::test]
async fn expired_tokens_and_intents_are_events() {
    let fixture = Fixture::start().await;
    fixture
        .subscribe(&[
            "token.expired",
            "token-intent.created",
            "token-intent.converted",
            "token-intent.deleted",
        ])
        .await;
    let intents = fixture
        .vault
        .holder(
            &fixture.tenant,
            ApplicationKind::Private,
            grants(&[
                Permission::TokenIntentCreate,
                Permission::TokenIntentRead,
                Permission::TokenIntentDelete,
                Permission::TokenCreate,
                Permission::TokenRead,
            ]),
        )
        .await;
    let client = fixture.vault.client_with(Some(&intents.key));
    let data = json!({"number": CARD, "expiration_month": 12, "expiration_year": 2040});
    let intent = json!({"type": "card", "data": data});

    let first = client.post("/token-intents", intent.clone()).await;
    let second = client.post("/token-intents", intent).await;
    let convert = json!({"token_intent_id": first.id()});
    let token = client.post("/tokens", convert).await;
    assert_eq!(token.status, StatusCode::CREATED, "{}", token.body);
    client
        .delete(&format!("/token-intents/{}", second.id()))
        .await;
    let expiring = fixture.create_token().await;
    fixture
        .sql(
            "update token set expires_at = now() where token_id = $1",
            &[&expiring.parse::<uuid::Uuid>().unwrap()],
        )
        .await;
    cloakroom::tokens::sweep(&fixture.vault.vault)
        .await
        .unwrap();

    let stored = fixture.stored().await;
    let types: Vec<&str> = stored.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        types,
        [
            "token-intent.created",
            "token-intent.created",
            "token-intent.converted",
            "token-intent.deleted",
            "token.expired"
        ]
    );
    let converted = find(&stored, "token-intent.converted");
    assert_eq!(converted["token_intent"]["id"], first.id());
    assert_eq!(
        converted["token"],
        json!({"id": token.id(), "type": "card"})
    );
    assert_eq!(find(&stored, "token.expired")["token"]["id"], expiring);
    assert!(!json!(stored).to_string().contains(CARD));
}

/// Covers 17.12.
#[expect(clippy::too_many_lines, reason = "one table of events")]
#[tokio::test]
async fn changes_of_applications_sessions_members_and_the_tenant_are_events() {
    let fixture = Fixture::start().await;
    fixture.subscribe(&all_types()).await;
    let admin = fixture
        .vault
        .holder(
            &fixture.tenant,
            ApplicationKind::Management,
            grants(&[
                Permission::ApplicationCreate,
                Permission::ApplicationUpdate,
                Permission::ApplicationDelete,
                Permission::ApplicationGrant,
                Permission::TenantUpdate,
                Permission::TenantRead,
                Permission::TenantInvitationCreate,
                Permission::TenantInvitationUpdate,
                Permission::TenantInvitationDelete,
                Permission::TenantMemberDelete,
            ]),
        )
        .await;
    let admin = fixture.vault.client_with(Some(&admin.key));
    fixture.sql("delete from webhook_delivery", &[]).await;

    let new = json!({"name": "Shop", "type": "public", "permissions": ["token:create"]});
    let shop = admin.post("/applications", new).await;
    let path = format!("/applications/{}", shop.id());
    let change = json!({"name": "Store", "permissions": ["token:create"]});
    admin.put(&path, change).await;
    let key = admin.post(&format!("{path}/keys"), json!({})).await;
    admin.delete(&format!("{path}/keys/{}", key.id())).await;
    let public = fixture.vault.client_with(shop.body["key"].as_str());
    let session = public.post("/sessions", json!({})).await;
    let authorize = json!({"nonce": session.body["nonce"], "permissions": ["token:create"]});
    let authorized = fixture.client.post("/sessions/authorize", authorize).await;
    assert_eq!(authorized.status, StatusCode::OK, "{}", authorized.body);
    admin.delete(&path).await;
    admin.put("/tenants/self", json!({"name": "Books"})).await;
    let invitation = json!({"email": "ada@example.com", "role": "ADMIN"});
    let invitation = admin.post("/tenants/self/invitations", invitation).await;
    let invited = format!("/tenants/self/invitations/{}", invitation.id());
    admin.post(&format!("{invited}/resend"), json!({})).await;
    admin.delete(&invited).await;
    let (vault, tenant) = (&fixture.vault.vault, fixture.tenant.id);
    let email = Email::parse("grace@example.com").unwrap();
    let new = NewInvitation {
        email,
        role: Role::Admin,
    };
    let (_, link) = members::invite_as_operator(vault, tenant, &new)
        .await
        .unwrap();
    let member = members::accept(vault, tenant, link.expose()).await.unwrap();
    admin
        .delete(&format!("/tenants/self/members/{}", member.id))
        .await;
    let new = NewMember {
        email: Email::parse("joan@example.com").unwrap(),
        role: Role::Admin,
        first_name: None,
        last_name: None,
    };
    members::add(vault, tenant, new).await.unwrap();

    let stored = fixture.stored().await;
    let types: Vec<&str> = stored.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        types,
        [
            "application.created",
            "application.key.created",
            "application.updated",
            "application.key.created",
            "application.key.deleted",
            "session.created",
            "session.authorized",
            "application.key.deleted",
            "application.deleted",
            "tenant.updated",
            "tenant.invitation.created",
            "tenant.invitation.resent",
            "tenant.invitation.deleted",
            "tenant.invitation.created",
            "tenant.invitation.accepted",
            "tenant.member.created",
            "tenant.member.deleted",
            "tenant.member.created",
        ]
    );
    let application = &find(&stored, "application.updated")["application"];
    assert_eq!(application["name"], "Store");
    assert_eq!(application["permissions"], json!(["token:create"]));
    let created = &find(&stored, "application.key.created")["application_key"];
    assert_eq!(created["application_id"], shop.id());
    let session_event = &find(&stored, "session.authorized")["session"];
    assert_eq!(session_event["permissions"], json!(["token:create"]));
    assert_eq!(session_event["issued_to_application"]["id"], shop.id());
    assert_eq!(find(&stored, "tenant.updated")["tenant"]["name"], "Books");
    let all = json!(stored).to_string();
    let secrets = [
        &shop.body["key"],
        &key.body["key"],
        &session.body["session_key"],
        &session.body["nonce"],
    ];
    for secret in secrets {
        assert!(!all.contains(secret.as_str().unwrap()));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "compares with the clock of the receiver"
)]
#[tokio::test]
async fn changes_by_the_vault_and_of_the_security_contact_are_events() {
    let fixture = Fixture::start().await;
    fixture.subscribe(&all_types()).await;
    let shop = json!({"name": "Shop", "type": "private", "permissions": ["token:create"]});
    let admin = fixture
        .vault
        .holder(
            &fixture.tenant,
            ApplicationKind::Management,
            grants(&[
                Permission::ApplicationCreate,
                Permission::ApplicationGrant,
                Permission::TenantUpdate,
            ]),
        )
        .await;
    let admin = fixture.vault.client_with(Some(&admin.key));
    let shop = admin.post("/applications", shop).await;
    let token = fixture.create_token().await;
    let (vault, tenant) = (&fixture.vault.vault, fixture.tenant.id);
    fixture.sql("delete from webhook_delivery", &[]).await;

    let expire = "update application set expires_at = now() where application_id = $1::text::uuid";
    assert_eq!(fixture.sql(expire, &[&shop.id()]).await, 1);
    cloakroom::applications::sweep(vault).await.unwrap();
    let contact = json!({"email": "security@example.com"});
    let contact = admin.put("/tenants/self/security-contact", contact).await;
    assert_eq!(contact.status, StatusCode::OK, "{}", contact.body);
    let deleted_at = jiff::Timestamp::now() + std::time::Duration::from_secs(60);
    let is_erased = cloakroom::tokens::erase(vault, tenant, &token, deleted_at).await;
    assert!(is_erased.unwrap());

    let stored = fixture.stored().await;
    let types: Vec<&str> = stored.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "application.key.deleted",
        "application.deleted",
        "tenant.updated",
        "token.deleted",
    ];
    assert_eq!(types, expected);
    let key = &find(&stored, "application.key.deleted")["application_key"];
    assert_eq!(key["application_id"], shop.id());
    assert_eq!(find(&stored, "token.deleted")["token"]["id"], token);
    assert!(!json!(stored).to_string().contains("security@example.com"));
}

#[tokio::test]
async fn a_change_that_is_rolled_back_has_no_event() {
    let fixture = Fixture::start().await;
    fixture
        .subscribe(&["token.created", "token.updated", "token.deleted"])
        .await;
    let token = json!({"id": "one", "type": "token", "data": "a"});

    fixture.client.post("/tokens", token.clone()).await;
    let taken = fixture.client.post("/tokens", token.clone()).await;
    // Two tokens in one transaction, of which the second fails.
    let both = json!({"a": {"type": "token", "data": "b", "id": "two"}, "b": token});
    let rejected = fixture.client.post("/tokenize", both).await;
    let expired = json!({"type": "token", "data": "c", "expires_at": "2020-01-01T00:00:00Z"});
    let expired = fixture.client.post("/tokens", expired).await;
    let missing = fixture.client.delete("/tokens/none").await;

    assert_eq!(taken.status, StatusCode::CONFLICT);
    assert_eq!(rejected.status, StatusCode::CONFLICT, "{}", rejected.body);
    assert_eq!(expired.status, StatusCode::BAD_REQUEST);
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert_eq!(fixture.stored_types().await, ["token.created"]);
}

#[tokio::test]
async fn batched_creates_have_one_event_each() {
    let fixture = Fixture::start().await;
    fixture.subscribe(&["token.created"]).await;
    let other = fixture.vault.revealing_client().await;

    let mut requests = tokio::task::JoinSet::new();
    for number in 0..60 {
        let client = match number % 3 {
            0 => other.clone(),
            _ => fixture.client.clone(),
        };
        requests.spawn(async move {
            let token = json!({"type": "token", "data": number, "metadata": {"number": number.to_string()}});
            client.post("/tokens", token).await.status
        });
    }
    let statuses = requests.join_all().await;

    assert!(statuses.iter().all(|status| *status == StatusCode::CREATED));
    let mut numbers: Vec<u32> = fixture
        .stored()
        .await
        .iter()
        .map(|(_, data)| {
            data["token"]["metadata"]["number"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    numbers.sort_unstable();
    let expected: Vec<u32> = (0..60).filter(|number| number % 3 != 0).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn only_subscribed_events_of_enabled_webhooks_are_stored() {
    let fixture = Fixture::start().await;
    fixture.create_token().await;
    let id = fixture.subscribe(&["token.deleted"]).await;
    let token = fixture.create_token().await;
    let mut disabled = fixture.webhook(&["token.created"]);
    disabled["status"] = json!("disabled");
    fixture
        .manager
        .put(&format!("/webhooks/{id}"), disabled)
        .await;
    fixture.create_token().await;
    assert_eq!(fixture.stored_types().await, [""; 0]);

    fixture
        .manager
        .put(
            &format!("/webhooks/{id}"),
            fixture.webhook(&["token.deleted"]),
        )
        .await;
    fixture.client.delete(&format!("/tokens/{token}")).await;
    assert_eq!(fixture.stored_types().await, ["token.deleted"]);
    assert_eq!(fixture.tenant.kind, TenantKind::Test);
}

/// Tenants may allow values in metadata that look like card numbers. They stay in the vault.
#[tokio::test]
async fn card_numbers_in_metadata_are_not_delivered() {
    let mut fixture = Fixture::start().await;
    let lax = json!({"name": "A tenant", "settings": {"card_numbers_in_metadata": "true"}});
    let changed = fixture.manager.put("/tenants/self", lax).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    fixture.subscribe(&["token.created"]).await;
    fixture.deliver();

    let token = json!({"type": "token", "data": "a", "metadata": {"order": "17", "number": CARD}});
    let created = fixture.client.post("/tokens", token).await;
    let received = fixture.endpoint.wait_for(1).await;

    assert_eq!(created.body["metadata"]["number"], CARD);
    let metadata = &received[0].event()["data"]["token"]["metadata"];
    assert_eq!(*metadata, json!({"order": "17"}));
    // Events are stored in the clear.
    assert!(!json!(fixture.stored().await).to_string().contains(CARD));
    assert!(!String::from_utf8_lossy(&received[0].bytes).contains(CARD));
}
