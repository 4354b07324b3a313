//! Rows altered by SQL are rejected by every operation.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom::access::Transform;
use cloakroom_testkit::{Client, TestResponse, TestVault, everything};
use http::StatusCode;
use serde_json::json;

use super::{VICTIM, create_tokens};

/// Sends a request through every operation that can return the victim.
async fn request_victim(client: &Client, fingerprint: &str) -> Vec<(&'static str, TestResponse)> {
    let duplicate = json!({"type": "token", "data": {"secret": "of the victim"}, "containers": ["/a/"],
        "deduplicate_token": true});
    let by_data = json!({"query": "data:\"of the victim\""});
    let by_fingerprint = json!({ "query": format!("fingerprint:{fingerprint}") });
    let by_name = json!({"query": "metadata.who:\"order 17\""});
    let by_id = json!({"query": "id:\"order 17\""});
    let becomes_duplicate = json!({"data": {"secret": "of the victim"}, "deduplicate_token": true});
    let (search, v1_search) = ("/v2/tokens/search", "/tokens/search");
    let listed_by_fingerprint = format!("/v2/tokens?fingerprint={fingerprint}");
    let whole = json!("{{ token: order 17 }}");
    vec![
        ("get", client.get(VICTIM).await),
        ("list", client.get("/v2/tokens").await),
        (
            "list by fingerprint",
            client.get(&listed_by_fingerprint).await,
        ),
        (
            "list by metadata",
            client.get("/v2/tokens?metadata.who=order+17").await,
        ),
        ("old list", client.get("/tokens").await),
        ("old list by id", client.get("/tokens?id=order+17").await),
        (
            "old list by metadata",
            client.get("/tokens?metadata.who=order+17").await,
        ),
        ("search", client.post(search, json!({})).await),
        ("search by data", client.post(search, by_data.clone()).await),
        (
            "search by fingerprint",
            client.post(search, by_fingerprint).await,
        ),
        (
            "search by metadata",
            client.post(search, by_name.clone()).await,
        ),
        ("old search by data", client.post(v1_search, by_data).await),
        (
            "old search by metadata",
            client.post(v1_search, by_name).await,
        ),
        ("old search by id", client.post(v1_search, by_id).await),
        (
            "detokenize",
            client.post("/detokenize", json!("{{ order 17 }}")).await,
        ),
        ("detokenize whole", client.post("/detokenize", whole).await),
        (
            "update",
            client.patch(VICTIM, json!({"metadata": {"k": "v"}})).await,
        ),
        (
            "update of another",
            client.patch("/tokens/order%2019", becomes_duplicate).await,
        ),
        (
            "equal create",
            client.post("/tokens", duplicate.clone()).await,
        ),
        (
            "equal tokenize",
            client.post("/tokenize", json!([duplicate])).await,
        ),
    ]
}

/// Manipulations of the victim's row, as the rest of an `update token set` statement.
const ATTACKS: &[(&str, &str)] = &[
    (
        "data of another row",
        "sealed = (select sealed from token, spoils where token_id = donor)",
    ),
    (
        "all of another row but its names",
        "(sealed, row_version, kind, container_id, expires_at, mask) =
         (select sealed, row_version, kind, container_id, expires_at, mask
          from token, spoils where token_id = donor)",
    ),
    (
        "data of the same name in another tenant",
        "(sealed, row_version) =
         (select sealed, row_version from token, spoils
          where tenant_id = 2 and alias = 'order 17')",
    ),
    (
        "its own data from before",
        "sealed = (select before from spoils)",
    ),
    (
        "a sealed value of another kind",
        "sealed = (select cursor from spoils)",
    ),
    ("no data", "sealed = ''::bytea"),
    ("a version back", "row_version = row_version - 1"),
    ("a version ahead", "row_version = row_version + 1"),
    ("another type", "kind = 8"),
    (
        "another container",
        "container_id = (select container_id from container where tenant_id = 1 and path = '/b/')",
    ),
    (
        "another container with its path",
        "(container_id, path) =
         (select container_id, path from container where tenant_id = 1 and path = '/b/')",
    ),
    ("a longer life", "expires_at = now() + interval '100 years'"),
    ("no end", "expires_at = null, expires_offset_minutes = null"),
    (
        "a mask that shows everything",
        "mask = '\"{{ data.secret }}\"'",
    ),
    ("the mask of the type", "mask = null"),
    ("another name", "alias = 'order 21'"),
    ("the name of another", "alias = 'order 18'"),
    ("no name", "alias = null"),
];

#[tokio::test]
async fn altered_rows_are_rejected_by_every_operation() {
    let vault = TestVault::start().await;
    let (one, two) = (
        vault.revealing_client().await,
        vault.revealing_client().await,
    );
    let fingerprint = create_tokens(&one).await;
    create_tokens(&two).await;
    let database = vault.database.connect().await;
    let next = one.get("/v2/tokens?size=1").await.body["pagination"]["next"].clone();
    let cursor = URL_SAFE_NO_PAD.decode(next.as_str().unwrap()).unwrap();
    database
        .execute(
            "create temp table spoils as
             select victim.token_id as victim, donor.token_id as donor,
                    victim.sealed as before, $1::bytea as cursor
             from token victim, token donor
             where victim.tenant_id = 1 and victim.alias = 'order 17'
               and donor.tenant_id = 1 and donor.alias = 'order 18'",
            &[&cursor],
        )
        .await
        .unwrap();
    let changed = one.patch(VICTIM, json!({"expires_at": "2040-01-01"})).await;
    assert_eq!(changed.status, StatusCode::OK);

    let mut rejections = 0;
    for (attack, change) in ATTACKS {
        let victim = "where tenant_id = 1 and token_id = (select victim from spoils)";
        let backup = format!("create temp table saved as select * from token {victim}");
        database.batch_execute(&backup).await.unwrap();
        let attacked = format!("update token set {change} {victim}");
        assert_eq!(
            database.execute(&attacked, &[]).await.unwrap(),
            1,
            "{attack}"
        );

        for (operation, response) in request_victim(&one, &fingerprint).await {
            let case = format!("{attack}, {operation}: {}", response.body);
            assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR, "{case}");
            assert_eq!(response.body["code"], "integrity_error", "{case}");
            let text = String::from_utf8(response.bytes).unwrap();
            assert!(
                !text.contains("of the") && !text.contains("order"),
                "{case}"
            );
            rejections += 1;
        }
        let restore = format!(
            "delete from token {victim}; insert into token select * from saved; drop table saved"
        );
        database.batch_execute(&restore).await.unwrap();
        let restored = one.get(VICTIM).await;
        assert_eq!(
            restored.body["data"],
            json!({"secret": "of the victim"}),
            "{attack}"
        );
    }
    println!("{} attacks, {rejections} rejections", ATTACKS.len());
    // Control: none of the operations fails for another reason.
    for (operation, response) in request_victim(&one, &fingerprint).await {
        assert!(
            response.status.is_success(),
            "{operation}: {}",
            response.body
        );
    }
}

/// Rows that differ only in their ids, or only in their tenants.
#[tokio::test]
async fn data_swapped_between_rows_cannot_be_decrypted() {
    let vault = TestVault::start().await;
    let clients = [
        vault.revealing_client().await,
        vault.revealing_client().await,
    ];
    let ids = [cloakroom::ids::new_uuid(), cloakroom::ids::new_uuid()];
    for (client, of) in clients.iter().zip(["one", "two"]) {
        for (id, number) in ids.iter().zip(["first", "second"]) {
            let data = format!("the {number} secret of {of}");
            let new = json!({"id": id, "type": "token", "data": data});
            let created = client.post("/tokens", new).await;
            assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        }
    }
    let database = vault.database.connect().await;
    let swap = "update token as mine set sealed = other.sealed from token as other
        where (mine.tenant_id, mine.token_id, other.tenant_id, other.token_id)
           in (($1, $2, $3, $4), ($3, $4, $1, $2))";

    let pairs = [((1, 0), (1, 1)), ((1, 0), (2, 0)), ((1, 1), (2, 0))];
    for (one, other) in pairs {
        let ((a, b), (c, d)) = (one, other);
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&a, &ids[b], &c, &ids[d]];
        assert_eq!(database.execute(swap, &parameters).await.unwrap(), 2);
        for (tenant, number) in [one, other] {
            let client = &clients[usize::try_from(tenant).unwrap() - 1];
            let id = ids[number];
            let responses = [
                client.get(&format!("/tokens/{id}")).await,
                client.get("/v2/tokens").await,
                client.get(&format!("/tokens?id={id}")).await,
                client
                    .post("/detokenize", json!(format!("{{{{ {id} }}}}")))
                    .await,
                client.patch(&format!("/tokens/{id}"), json!({})).await,
            ];
            for response in responses {
                assert_eq!(
                    response.body["code"], "integrity_error",
                    "{one:?} {other:?}"
                );
                let text = String::from_utf8(response.bytes).unwrap();
                assert!(!text.contains("secret"), "{text}");
            }
        }
        database.execute(swap, &parameters).await.unwrap();
    }
    for client in clients {
        assert_eq!(
            client.get("/v2/tokens").await.body["pagination"]["page_size"],
            2
        );
    }
}

#[tokio::test]
async fn rows_with_an_unknown_type_are_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    create_tokens(&client).await;
    let database = vault.database.connect().await;
    let attack = "update token set kind = 99 where alias = 'order 17'";
    assert_eq!(database.execute(attack, &[]).await.unwrap(), 1);

    let read = client.get(VICTIM).await;
    let listed = client.get("/v2/tokens").await;

    assert_eq!(read.body["code"], "integrity_error");
    // Lists filter by type, and this type does not exist.
    assert_eq!(listed.body["pagination"]["page_size"], 3);
    assert!(!listed.body.to_string().contains("order 17"));
}

#[tokio::test]
async fn renamed_containers_are_rejected() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let fingerprint = create_tokens(&client).await;
    let database = vault.database.connect().await;
    let attack = "update container set path = '/z/' where path = '/a/'";
    assert_eq!(database.execute(attack, &[]).await.unwrap(), 1);

    // The first node may have the old name cached; a second one has to read the table.
    let second = vault.second_node().await;
    let client = second.client(&tenant, everything(Transform::Reveal)).await;
    for (operation, response) in request_victim(&client, &fingerprint).await {
        assert_eq!(
            response.body["code"], "integrity_error",
            "{operation}: {}",
            response.body
        );
    }
}
