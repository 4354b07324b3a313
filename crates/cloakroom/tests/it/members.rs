//! The people of a tenant: members, the owner, and invitations.

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom::members::{self, Email, Member, NewInvitation, NewMember, Role};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Answer, Client, TestVault, grants};

const MEMBERS: &str = "/tenants/self/members";
const INVITATIONS: &str = "/tenants/self/invitations";
const OWNER: &str = "/tenants/self/owner";

const ALL: [Permission; 10] = [
    Permission::TenantRead,
    Permission::TenantUpdate,
    Permission::TenantMemberRead,
    Permission::TenantMemberUpdate,
    Permission::TenantMemberDelete,
    Permission::TenantInvitationCreate,
    Permission::TenantInvitationRead,
    Permission::TenantInvitationUpdate,
    Permission::TenantInvitationDelete,
    Permission::LogRead,
];

async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    holder_of(vault, tenant, &ALL).await
}

async fn holder_of(vault: &TestVault, tenant: &Tenant, permissions: &[Permission]) -> Client {
    let holder = vault
        .holder(tenant, ApplicationKind::Management, grants(permissions))
        .await;
    vault.client_with(Some(&holder.key))
}

async fn add(vault: &TestVault, tenant: &Tenant, name: &str, role: Role) -> Member {
    let new = NewMember {
        email: Email::parse(&format!("{name}@example.com")).unwrap(),
        role,
        first_name: Some("Ada".to_owned()),
        last_name: None,
    };
    members::add(&vault.vault, tenant.id, new).await.unwrap()
}

/// The names before the @ in a list's order.
fn names(answer: &Answer) -> Vec<String> {
    let name = |item: &Value| {
        let email = item["user"]["email"].as_str().or(item["email"].as_str());
        email.unwrap().split('@').next().unwrap().to_owned()
    };
    answer.items().iter().map(name).collect()
}

/// Covers 15.1, 15.2.
#[tokio::test]
async fn members_are_listed_newest_first() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let none = client.get(MEMBERS).await;
    let one = add(&vault, &tenant, "one", Role::Owner).await;
    add(&vault, &tenant, "two", Role::ReadOnly).await;
    let three = add(&vault, &tenant, "three", Role::Admin).await;

    let all = client.get(MEMBERS).await;
    let pages = [
        client.get(&format!("{MEMBERS}?size=2")).await,
        client.get(&format!("{MEMBERS}?size=2&page=2")).await,
        client
            .get(&format!("{MEMBERS}?size=2&page=3&start=x"))
            .await,
        client.get(&format!("{MEMBERS}?size=0")).await,
        client
            .get(&format!("{MEMBERS}?page=2147483647&size=50"))
            .await,
    ];
    let (first, third) = (one.user.id, three.user.id);
    let filtered = client
        .get(&format!("{MEMBERS}?user_id={first}&user_id={third}"))
        .await;
    let unknown = client.get(&format!("{MEMBERS}?user_id={}", one.id)).await;

    assert_eq!(none.items().len(), 0);
    assert_eq!(none.body["pagination"]["total_pages"], 0);
    assert_eq!(names(&all), ["three", "two", "one"]);
    let oldest = &all.items()[2];
    assert_eq!(oldest["created_at"], oldest["created_date"]);
    let mut shown = oldest.clone();
    for (path, text) in [
        ("/id", one.id.to_string()),
        ("/tenant_id", tenant.id.uuid.to_string()),
        ("/user/id", one.user.id.to_string()),
    ] {
        let place = shown.pointer_mut(path).unwrap();
        assert_eq!(*place, text, "{path}");
        *place = json!("[id]");
    }
    for name in ["created_at", "created_date"] {
        shown[name] = json!("[time]");
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&shown).unwrap(), @r#"
    {
      "id": "[id]",
      "tenant_id": "[id]",
      "role": "OWNER",
      "user": {
        "id": "[id]",
        "email": "one@example.com",
        "first_name": "Ada",
        "mfa_enrolled": false
      },
      "created_at": "[time]",
      "created_date": "[time]"
    }
    "#);
    let told: Vec<_> = pages.iter().map(names).collect();
    assert_eq!(
        told,
        [vec!["three", "two"], vec!["one"], vec![], vec![], vec![]]
    );
    assert_eq!(
        pages[1].body["pagination"],
        json!({"total_items": 3, "page_number": 2, "page_size": 2, "total_pages": 2})
    );
    assert_eq!(names(&filtered), ["three", "one"]);
    assert_eq!(filtered.body["pagination"]["total_items"], 2);
    assert_eq!(unknown.items().len(), 0);
}

/// Covers 15.2.
#[tokio::test]
async fn a_page_of_members_has_fifty_at_most() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    let cases = [
        ("size=50", "", StatusCode::OK),
        ("size=51", "size", StatusCode::BAD_REQUEST),
        ("size=-1", "size", StatusCode::BAD_REQUEST),
        ("page=0", "page", StatusCode::BAD_REQUEST),
        ("page=x&size=y", "page size", StatusCode::BAD_REQUEST),
        ("user_id=me", "user_id", StatusCode::BAD_REQUEST),
    ];
    for (query, refused, expected) in cases {
        let answer = client.get(&format!("{MEMBERS}?{query}")).await;
        assert_eq!(answer.status, expected, "{query}");
        assert_eq!(answer.refused().join(" "), refused, "{query}");
    }
}

/// Covers 15.3, 15.4.
#[tokio::test]
async fn a_member_gets_another_role_and_the_owner_does_not() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let owner = add(&vault, &tenant, "owner", Role::Owner).await;
    let member = add(&vault, &tenant, "member", Role::Admin).await;
    let path = |id: Uuid| format!("{MEMBERS}/{id}");

    // As official clients send it.
    let request = client
        .request(Method::PUT, &path(member.id))
        .header("content-type", "application/json-patch+json")
        .body(json!({"role": "READ_ONLY"}).to_string());
    let changed = client.send(request).await;

    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    assert_eq!(changed.body["role"], "READ_ONLY");
    assert!(changed.body["modified_at"].is_string() && changed.body["modified_by"].is_string());
    assert_eq!(client.get(MEMBERS).await.items()[0]["role"], "READ_ONLY");
    let admin = || json!({"role": "ADMIN"});
    let cases = [
        (path(owner.id), admin(), StatusCode::UNPROCESSABLE_ENTITY),
        (path(Uuid::nil()), admin(), StatusCode::NOT_FOUND),
        (format!("{MEMBERS}/me"), admin(), StatusCode::NOT_FOUND),
        (
            path(member.id),
            json!({"role": "OWNER"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            path(member.id),
            json!({"role": "admin"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            path(member.id),
            json!({"role": null}),
            StatusCode::BAD_REQUEST,
        ),
        (path(member.id), json!({}), StatusCode::BAD_REQUEST),
        // Validation comes before the look-up.
        (path(Uuid::nil()), json!({}), StatusCode::BAD_REQUEST),
    ];
    for (path, body, expected) in cases {
        let answer = client.put(&path, body.clone()).await;
        assert_eq!(answer.status, expected, "{path} {body}");
        if expected == StatusCode::BAD_REQUEST {
            assert_eq!(answer.refused(), ["role"], "{path} {body}");
        }
    }
    assert_eq!(client.get(OWNER).await.body["id"], owner.id.to_string());
}

/// Covers 15.5.
#[tokio::test]
async fn a_member_is_removed_and_the_owner_is_not() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let owner = add(&vault, &tenant, "owner", Role::Owner).await;
    let member = add(&vault, &tenant, "member", Role::Admin).await;
    let path = |id: Uuid| format!("{MEMBERS}/{id}");

    let removed = client.delete(&path(member.id)).await;
    let again = client.delete(&path(member.id)).await;
    let refused = client.delete(&path(owner.id)).await;

    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.body["title"], "Unprocessable Entity");
    assert_eq!(names(&client.get(MEMBERS).await), ["owner"]);
}

/// Covers 15.6, 15.7.
#[tokio::test]
async fn the_ownership_goes_to_another_member() {
    let vault = TestVault::start().await;
    let (tenant, elsewhere) = (vault.tenant().await, vault.tenant().await);
    let client = manager(&vault, &tenant).await;
    let stranger = add(&vault, &elsewhere, "stranger", Role::Admin).await;
    let none = client.get(OWNER).await;
    let first = add(&vault, &tenant, "first", Role::Admin).await;
    let second = add(&vault, &tenant, "second", Role::ReadOnly).await;
    let to = |id: Uuid| json!({"member_id": id});

    let taken = client.put(OWNER, to(first.id)).await;
    let moved = client.put(OWNER, to(second.id)).await;
    let again = client.put(OWNER, to(second.id)).await;

    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert_eq!(taken.status, StatusCode::OK, "{}", taken.body);
    assert_eq!(taken.body["role"], "OWNER");
    assert_eq!(moved.body["id"], second.id.to_string());
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(client.get(OWNER).await.body["id"], second.id.to_string());
    let roles: Vec<Value> = client
        .get(MEMBERS)
        .await
        .items()
        .iter()
        .map(|item| item["role"].clone())
        .collect();
    assert_eq!(roles, ["OWNER", "ADMIN"]);
    for (body, expected) in [
        (to(stranger.id), StatusCode::UNPROCESSABLE_ENTITY),
        (to(Uuid::nil()), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"member_id": "me"}), StatusCode::BAD_REQUEST),
        (json!({}), StatusCode::BAD_REQUEST),
    ] {
        let answer = client.put(OWNER, body.clone()).await;
        assert_eq!(answer.status, expected, "{body}");
    }
    // What could not be done took nothing from the owner.
    assert_eq!(client.get(OWNER).await.body["id"], second.id.to_string());
}

/// Covers 15.7.
#[tokio::test]
async fn transfers_at_one_moment_leave_one_owner() {
    let vault = TestVault::start_patient().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let mut people = vec![add(&vault, &tenant, "owner", Role::Owner).await];
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        people.push(add(&vault, &tenant, name, Role::Admin).await);
    }
    let to = |member: &Member| client.put(OWNER, json!({"member_id": member.id}));

    for _ in 0..10 {
        for answer in join_all(people.iter().map(to)).await {
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        }
        let listed = client.get(MEMBERS).await;
        let owners = listed.items().iter().filter(|item| item["role"] == "OWNER");
        assert_eq!(owners.count(), 1);
    }
    let second = NewMember {
        email: Email::parse("second@example.com").unwrap(),
        role: Role::Owner,
        first_name: None,
        last_name: None,
    };
    let refused = members::add(&vault.vault, tenant.id, second).await;
    assert!(matches!(refused, Err(members::Error::OwnerExists)));
}

/// Covers 15.8.
#[tokio::test]
async fn roles_are_an_array_of_names() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, grants(&[Permission::TokenUse])).await;

    let answer = client.get("/roles").await;

    assert_eq!(
        answer.body,
        json!([{"name": "OWNER"}, {"name": "ADMIN"}, {"name": "READ_ONLY"}])
    );
}

async fn invite(client: &Client, name: &str) -> Answer {
    let new = json!({"email": format!("{name}@example.com")});
    let answer = client.post(INVITATIONS, new).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    answer
}

/// Covers 15.9, 15.10.
#[tokio::test]
async fn somebody_is_invited_for_72_hours() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    let made = invite(&client, "ada").await;
    let reader = json!({"email": "grace@example.com", "role": "READ_ONLY"});
    let reader = client.post(INVITATIONS, reader).await;
    let read = client.get(&format!("{INVITATIONS}/{}", made.id())).await;

    let location = format!("{}{INVITATIONS}/{}", vault.base_url, made.id());
    assert_eq!(made.header("location"), location);
    assert_eq!(made.body["tenant_id"], tenant.id.uuid.to_string());
    let unstable = ["id", "tenant_id", "created_by", "created_at", "expires_at"];
    insta::assert_snapshot!(made.told(&unstable), @r#"
    {
      "id": "[id]",
      "tenant_id": "[tenant_id]",
      "email": "ada@example.com",
      "role": "ADMIN",
      "status": "PENDING",
      "expires_at": "[expires_at]",
      "created_by": "[created_by]",
      "created_at": "[created_at]"
    }
    "#);
    assert_eq!(read.body, made.body);
    assert_eq!(reader.body["role"], "READ_ONLY");
    let hours = |answer: &Answer| {
        let at = |name: &str| {
            let text = answer.body[name].as_str().unwrap();
            text.parse::<jiff::Timestamp>().unwrap()
        };
        (at("expires_at") - at("created_at"))
            .total(jiff::Unit::Hour)
            .unwrap()
    };
    assert!((hours(&made) - 72.0).abs() < 0.001, "{}", hours(&made));
}

/// Covers 15.11.
#[tokio::test]
async fn an_invitation_that_breaks_a_rule_is_refused() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let long = format!("{}@example.com", "e".repeat(319));

    let cases = [
        (json!({}), "email"),
        (json!({"email": null}), "email"),
        (json!({"email": "ada"}), "email"),
        (json!({"email": long}), "email"),
        (json!({"email": "4242424242424242@example.com"}), "email"),
        (json!({"email": "a@b", "role": "OWNER"}), "role"),
        (json!({"email": "", "role": "BOSS"}), "email role"),
    ];
    for (new, refused) in cases {
        let answer = client.post(INVITATIONS, new.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{new}");
        assert_eq!(answer.refused().join(" "), refused, "{new}");
    }
    assert_eq!(client.get(INVITATIONS).await.items().len(), 0);
}

async fn expire(vault: &TestVault, id: &str) {
    let database = vault.database.connect().await;
    let sql = format!(
        "update invitation set expires_at = now() - interval '1 s' where invitation_id = '{id}'"
    );
    assert_eq!(database.execute(&sql, &[]).await.unwrap(), 1);
}

/// Covers 15.10, 15.12.
#[tokio::test]
async fn invitations_are_listed_by_how_they_stand() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    for name in ["a", "b", "c"] {
        invite(&client, name).await;
    }
    let id = client.get(INVITATIONS).await.items()[1]["id"].clone();
    let id = id.as_str().unwrap();

    expire(&vault, id).await;

    let list = async |query: &str| names(&client.get(&format!("{INVITATIONS}?{query}")).await);
    assert_eq!(list("").await, ["c", "b", "a"]);
    assert_eq!(list("status=PENDING").await, ["c", "a"]);
    assert_eq!(list("status=EXPIRED").await, ["b"]);
    assert_eq!(list("size=2").await, ["c", "b"]);
    assert_eq!(list("size=2&page=2").await, ["a"]);
    assert_eq!(list("size=2&page=3").await, Vec::<String>::new());
    let read = client.get(&format!("{INVITATIONS}/{id}")).await;
    assert_eq!(read.body["status"], "EXPIRED");
    let pending = client
        .get(&format!("{INVITATIONS}?status=PENDING&size=1"))
        .await;
    assert_eq!(
        pending.body["pagination"],
        json!({"total_items": 2, "page_number": 1, "page_size": 1, "total_pages": 2})
    );
    for (query, refused) in [
        ("status=pending", "status"),
        ("status=", "status"),
        ("size=101", "size"),
        ("page=0&status=OPEN", "page status"),
    ] {
        let answer = client.get(&format!("{INVITATIONS}?{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(answer.refused().join(" "), refused, "{query}");
    }
}

/// Covers 15.13.
#[tokio::test]
async fn an_invitation_that_is_sent_again_lives_again_and_its_old_link_is_dead() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let new = NewInvitation {
        email: Email::parse("ada@example.com").unwrap(),
        role: Role::ReadOnly,
    };
    let (invitation, old_link) = members::invite_by_command(&vault.vault, tenant.id, &new)
        .await
        .unwrap();
    let path = format!("{INVITATIONS}/{}", invitation.id);
    expire(&vault, &invitation.id.to_string()).await;
    let expired = members::accept(&vault.vault, tenant.id, old_link.expose()).await;

    // Without a body and without a content type.
    let resend = client.request(Method::POST, &format!("{path}/resend"));
    let resent = client.send(resend).await;
    let dead = members::accept(&vault.vault, tenant.id, old_link.expose()).await;
    let (_, link) = members::resend_by_command(&vault.vault, tenant.id, invitation.id)
        .await
        .unwrap();
    let member = members::accept(&vault.vault, tenant.id, link.expose()).await;
    let twice = members::accept(&vault.vault, tenant.id, link.expose()).await;

    assert!(matches!(expired, Err(members::Error::DeadLink)));
    assert_eq!(resent.status, StatusCode::OK, "{}", resent.body);
    assert_eq!(resent.body["status"], "PENDING");
    assert!(resent.body["modified_at"].is_string());
    assert!(matches!(dead, Err(members::Error::DeadLink)));
    let member = member.unwrap();
    assert_eq!(member.role, Role::ReadOnly);
    assert!(matches!(twice, Err(members::Error::DeadLink)));
    assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(names(&client.get(MEMBERS).await), ["ada"]);
    let unknown = client.request(Method::POST, &format!("{path}/resend"));
    assert_eq!(client.send(unknown).await.status, StatusCode::NOT_FOUND);
}

/// Covers 15.13.
#[tokio::test]
async fn sending_again_needs_both_permissions() {
    use Permission::{TenantInvitationCreate, TenantInvitationUpdate};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let id = invite(&manager(&vault, &tenant).await, "ada").await.id();
    let path = format!("{INVITATIONS}/{id}/resend");

    for (held, expected) in [
        (&[TenantInvitationCreate][..], StatusCode::FORBIDDEN),
        (&[TenantInvitationUpdate], StatusCode::FORBIDDEN),
        (
            &[TenantInvitationCreate, TenantInvitationUpdate],
            StatusCode::OK,
        ),
    ] {
        let client = holder_of(&vault, &tenant, held).await;
        let answer = client.send(client.request(Method::POST, &path)).await;
        assert_eq!(answer.status, expected, "{held:?}");
    }
}

/// Covers 15.14.
#[tokio::test]
async fn an_invitation_is_taken_back() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let path = format!("{INVITATIONS}/{}", invite(&client, "ada").await.id());

    let deleted = client.delete(&path).await;

    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.delete(&path).await.status, StatusCode::NOT_FOUND);
}

/// Covers 15.15.
#[tokio::test]
async fn the_link_of_an_invitation_is_not_kept() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let new = NewInvitation {
        email: Email::parse("ada@example.com").unwrap(),
        role: Role::Admin,
    };
    let (_, link) = members::invite_by_command(&vault.vault, tenant.id, &new)
        .await
        .unwrap();

    let database = vault.database.connect().await;
    let row = database
        .query_one("select i::text from invitation i", &[])
        .await;
    let row: String = row.unwrap().get(0);

    assert!(row.contains("ada@example.com"), "{row}");
    let hex: String = link
        .expose()
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(!row.contains(link.expose()) && !row.contains(&hex));
}

/// Covers 15.16.
#[tokio::test]
async fn people_are_unknown_to_other_tenants() {
    let vault = TestVault::start().await;
    let (tenant, elsewhere) = (vault.tenant().await, vault.tenant().await);
    let owner = add(&vault, &tenant, "owner", Role::Owner).await;
    let member = add(&vault, &tenant, "member", Role::Admin).await;
    let invitation = invite(&manager(&vault, &tenant).await, "ada").await.id();
    let client = manager(&vault, &elsewhere).await;
    let (member, invitation) = (
        format!("{MEMBERS}/{}", member.id),
        format!("{INVITATIONS}/{invitation}"),
    );

    let user = owner.user.id;
    let answers = [
        client.put(&member, json!({"role": "READ_ONLY"})).await,
        client.delete(&member).await,
        client.get(&invitation).await,
        client.delete(&invitation).await,
        client
            .post(&format!("{invitation}/resend"), json!({}))
            .await,
        client.get(OWNER).await,
    ];

    for answer in answers {
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.body);
    }
    for list in [MEMBERS, INVITATIONS, &format!("{MEMBERS}?user_id={user}")] {
        assert_eq!(client.get(list).await.items().len(), 0, "{list}");
    }
    let own = manager(&vault, &tenant).await;
    assert_eq!(names(&own.get(MEMBERS).await), ["member", "owner"]);
    assert_eq!(own.get(&invitation).await.status, StatusCode::OK);
}

/// Covers 15.17.
#[tokio::test]
async fn one_address_is_one_member() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    add(&vault, &tenant, "ada", Role::Admin).await;
    let new = NewInvitation {
        email: Email::parse("ADA@example.com").unwrap(),
        role: Role::Admin,
    };
    let (invitation, link) = members::invite_by_command(&vault.vault, tenant.id, &new)
        .await
        .unwrap();

    let accepted = members::accept(&vault.vault, tenant.id, link.expose()).await;

    assert!(matches!(accepted, Err(members::Error::AlreadyMember)));
    let path = format!("{INVITATIONS}/{}", invitation.id);
    assert_eq!(
        client.get(&path).await.status,
        StatusCode::OK,
        "it is not used up"
    );
}

/// Covers 15.18.
#[tokio::test]
async fn what_is_done_to_people_is_recorded() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let owner = add(&vault, &tenant, "owner", Role::Owner).await;
    let member = add(&vault, &tenant, "member", Role::Admin).await;
    let told = async |kind: &str| {
        let logs = client.get(&format!("/logs?entity_type={kind}")).await;
        let words = |record: &Value| {
            let id = record["entity_id"].as_str().unwrap();
            let who = match id {
                id if id == owner.id.to_string() => " owner",
                id if id == member.id.to_string() => " member",
                _ => "",
            };
            format!("{}{who}", record["operation"].as_str().unwrap())
        };
        let mut told: Vec<String> = logs.items().iter().map(words).collect();
        told.sort();
        told
    };

    client
        .put(
            &format!("{MEMBERS}/{}", member.id),
            json!({"role": "READ_ONLY"}),
        )
        .await;
    client.put(OWNER, json!({"member_id": member.id})).await;
    client.get(OWNER).await;
    client.delete(&format!("{MEMBERS}/{}", member.id)).await;
    client.delete(&format!("{MEMBERS}/{}", owner.id)).await;
    client.get(MEMBERS).await;
    let path = format!("{INVITATIONS}/{}", invite(&client, "ada").await.id());
    client.get(&path).await;
    client.post(&format!("{path}/resend"), json!({})).await;
    client.delete(&path).await;
    client.get(&path).await;

    assert_eq!(
        told("member").await,
        [
            "create member",
            "create owner",
            "delete owner",
            "read member",
            "update member",
            "update member",
            "update owner",
        ]
    );
    assert_eq!(
        told("invitation").await,
        ["create", "delete", "read", "update"]
    );
}
