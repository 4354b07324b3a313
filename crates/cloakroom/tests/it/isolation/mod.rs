//! Walls that hold when someone reaches past the front door: rows changed by SQL, and other tenants.

mod attempt;
mod side;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom::doors::{DOORS, Door, Needs};
use http::{Method, StatusCode};
use serde_json::json;

use self::attempt::{Attempt, Between, Memory};
use self::side::Side;
use crate::support::{Answer, Chance, Client, TestVault, calls, everything, grants};

const VICTIM: &str = "/tokens/order%2017";

/// A token that is attacked, another one that could be shown in its place, and one that may become
/// equal to the first.
async fn stage(client: &Client) -> String {
    let token = |id: &str, secret: &str, container: &str| {
        json!({
            "id": id,
            "type": "token",
            "data": {"secret": secret},
            "mask": {"secret": "{{ data.secret | reveal_last: 3 }}"},
            "metadata": {"who": id},
            "search_indexes": ["{{ data.secret }}"],
            "containers": [container],
            "deduplicate_token": true,
        })
    };
    for new in [
        token("order 17", "of the victim", "/a/"),
        token("order 18", "of the donor", "/a/"),
        token("order 19", "of nobody", "/a/"),
        token("order 20", "of the donor", "/b/"),
    ] {
        let created = client.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    }
    let fingerprint = client.get(VICTIM).await.body["fingerprint"].clone();
    fingerprint.as_str().unwrap().to_owned()
}

/// Every way to get at the victim, and its answer.
async fn reach_victim(client: &Client, fingerprint: &str) -> Vec<(&'static str, Answer)> {
    let equal = json!({"type": "token", "data": {"secret": "of the victim"}, "containers": ["/a/"],
        "deduplicate_token": true});
    let by_data = json!({"query": "data:\"of the victim\""});
    let by_fingerprint = json!({ "query": format!("fingerprint:{fingerprint}") });
    let by_name = json!({"query": "metadata.who:\"order 17\""});
    let by_id = json!({"query": "id:\"order 17\""});
    let becomes_equal = json!({"data": {"secret": "of the victim"}, "deduplicate_token": true});
    let (search, old_search) = ("/v2/tokens/search", "/tokens/search");
    let listed_by_fingerprint = format!("/v2/tokens?fingerprint={fingerprint}");
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
        ("old search by data", client.post(old_search, by_data).await),
        (
            "old search by metadata",
            client.post(old_search, by_name).await,
        ),
        ("old search by id", client.post(old_search, by_id).await),
        (
            "detokenize",
            client.post("/detokenize", json!("{{ order 17 }}")).await,
        ),
        (
            "detokenize whole",
            client
                .post("/detokenize", json!("{{ token: order 17 }}"))
                .await,
        ),
        (
            "update",
            client.patch(VICTIM, json!({"metadata": {"k": "v"}})).await,
        ),
        (
            "update of another",
            client.patch("/tokens/order%2019", becomes_equal).await,
        ),
        ("equal create", client.post("/tokens", equal.clone()).await),
        (
            "equal tokenize",
            client.post("/tokenize", json!([equal])).await,
        ),
    ]
}

/// What an attacker with SQL does to the victim's row, as the end of `update token set`.
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
async fn a_row_changed_by_sql_is_refused_wherever_it_is_met() {
    let vault = TestVault::start().await;
    let (one, two) = (
        vault.revealing_client().await,
        vault.revealing_client().await,
    );
    let fingerprint = stage(&one).await;
    stage(&two).await;
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

    let mut refusals = 0;
    for (attack, change) in ATTACKS {
        let victim = "where tenant_id = 1 and token_id = (select victim from spoils)";
        let keep = format!("create temp table kept as select * from token {victim}");
        database.batch_execute(&keep).await.unwrap();
        let attacked = format!("update token set {change} {victim}");
        assert_eq!(
            database.execute(&attacked, &[]).await.unwrap(),
            1,
            "{attack}"
        );

        for (way, answer) in reach_victim(&one, &fingerprint).await {
            let case = format!("{attack}, {way}: {}", answer.body);
            assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR, "{case}");
            assert_eq!(answer.body["code"], "integrity_error", "{case}");
            let text = String::from_utf8(answer.bytes).unwrap();
            assert!(
                !text.contains("of the") && !text.contains("order"),
                "{case}"
            );
            refusals += 1;
        }
        let restore = format!(
            "delete from token {victim}; insert into token select * from kept; drop table kept"
        );
        database.batch_execute(&restore).await.unwrap();
        let healed = one.get(VICTIM).await;
        assert_eq!(
            healed.body["data"],
            json!({"secret": "of the victim"}),
            "{attack}"
        );
    }
    println!("{} attacks, {refusals} refusals", ATTACKS.len());
    // None of the ways is closed for another reason.
    for (way, answer) in reach_victim(&one, &fingerprint).await {
        assert!(answer.status.is_success(), "{way}: {}", answer.body);
    }
}

/// Rows that agree in everything but their ids, or in everything but their tenants.
#[tokio::test]
async fn data_swapped_between_rows_of_the_same_kind_opens_nowhere() {
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
            let answers = [
                client.get(&format!("/tokens/{id}")).await,
                client.get("/v2/tokens").await,
                client.get(&format!("/tokens?id={id}")).await,
                client
                    .post("/detokenize", json!(format!("{{{{ {id} }}}}")))
                    .await,
                client.patch(&format!("/tokens/{id}"), json!({})).await,
            ];
            for answer in answers {
                assert_eq!(answer.body["code"], "integrity_error", "{one:?} {other:?}");
                let text = String::from_utf8(answer.bytes).unwrap();
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
async fn a_type_that_does_not_exist_opens_nothing() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    stage(&client).await;
    let database = vault.database.connect().await;
    let attack = "update token set kind = 99 where alias = 'order 17'";
    assert_eq!(database.execute(attack, &[]).await.unwrap(), 1);

    let read = client.get(VICTIM).await;
    let listed = client.get("/v2/tokens").await;

    assert_eq!(read.body["code"], "integrity_error");
    // Lists go by type, and none of them is this one.
    assert_eq!(listed.body["pagination"]["page_size"], 3);
    assert!(!listed.body.to_string().contains("order 17"));
}

#[tokio::test]
async fn a_container_renamed_by_sql_opens_nothing() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let fingerprint = stage(&client).await;
    let database = vault.database.connect().await;
    let attack = "update container set path = '/z/' where path = '/a/'";
    assert_eq!(database.execute(attack, &[]).await.unwrap(), 1);

    // The first node may remember the old name; another one has to believe the table.
    let second = vault.second_node().await;
    let client = second.client(&tenant, everything(Transform::Reveal)).await;
    for (way, answer) in reach_victim(&client, &fingerprint).await {
        assert_eq!(
            answer.body["code"], "integrity_error",
            "{way}: {}",
            answer.body
        );
    }
}

#[tokio::test]
async fn a_sealed_row_is_no_cursor() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    stage(&client).await;
    let database = vault.database.connect().await;
    let sealed: Vec<u8> = database
        .query_one("select sealed from token where alias = 'order 17'", &[])
        .await
        .unwrap()
        .get(0);
    let start = URL_SAFE_NO_PAD.encode(sealed);

    let listed = client.get(&format!("/v2/tokens?start={start}")).await;
    let searched = client
        .post("/v2/tokens/search", json!({ "start": start }))
        .await;

    assert_eq!(listed.refused(), ["start"]);
    assert_eq!(searched.refused(), ["start"]);
}

#[tokio::test]
async fn the_key_under_which_a_name_is_kept_is_no_id() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    stage(&client).await;
    let database = vault.database.connect().await;
    let key: uuid::Uuid = database
        .query_one("select token_id from token where alias = 'order 17'", &[])
        .await
        .unwrap()
        .get(0);
    let path = format!("/tokens/{key}");

    let unknown = client.get("/tokens/nowhere").await;
    let others = [
        client.get(&path).await,
        client.patch(&path, json!({})).await,
        client.delete(&path).await,
    ];
    for other in others {
        assert_eq!(other.status, StatusCode::NOT_FOUND);
        assert_eq!(other.bytes, unknown.bytes);
    }
    let listed = client.get(&format!("/tokens?id={key}")).await;
    assert_eq!(listed.body["data"], json!([]));
    let expression = json!(format!("{{{{ {key} }}}}"));
    let detokenized = client.post("/detokenize", expression).await;
    assert_eq!(detokenized.status, StatusCode::BAD_REQUEST);
    // Both cannot exist, and whichever does is known by its own id alone.
    let new = json!({"id": key, "type": "token", "data": "by key"});
    assert_eq!(
        client.post("/tokens", new.clone()).await.status,
        StatusCode::CONFLICT
    );
    client.delete(VICTIM).await;
    assert_eq!(
        client.post("/tokens", new).await.status,
        StatusCode::CREATED
    );
    assert_eq!(client.get(&path).await.body["data"], "by key");
    assert_eq!(client.get(VICTIM).await.bytes, unknown.bytes);
}

/// A row that does not open fails its page instead of being left out: who acts on a list must not
/// act on less than there is, and an attacker must not be able to hide a token by breaking it.
#[tokio::test]
async fn a_row_that_does_not_open_fails_its_page_and_no_other() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    stage(&client).await;
    let database = vault.database.connect().await;
    let break_it = "update token set sealed = set_bit(sealed, 400, 1 - get_bit(sealed, 400))
        where alias = 'order 18'";
    assert_eq!(database.execute(break_it, &[]).await.unwrap(), 1);

    // In order: 20 in /b/, then 19, 18 and 17 in /a/.
    let first = client.get("/v2/tokens?size=2").await;
    let next = first.body["pagination"]["next"].as_str().unwrap();
    let second = client.get(&format!("/v2/tokens?size=1&start={next}")).await;
    let elsewhere = client.get("/v2/tokens?container=/b/").await;
    let others = [
        client.get(VICTIM).await,
        client.post("/detokenize", json!("{{ order 17 }}")).await,
        client.patch(VICTIM, json!({})).await,
        client.get("/tokens?id=order+17&id=order+19").await,
        client
            .post(
                "/v2/tokens/search",
                json!({"query": "data:\"of the victim\""}),
            )
            .await,
    ];

    assert_eq!(first.body["data"][1]["id"], "order 19");
    assert_eq!(second.body["code"], "integrity_error");
    assert_eq!(elsewhere.body["data"][0]["id"], "order 20");
    for other in others {
        assert_eq!(other.status, StatusCode::OK, "{}", other.body);
    }
    let both = json!(["{{ order 17 }}", "{{ order 18 }}"]);
    let both = client.post("/detokenize", both).await;
    assert_eq!(both.body["code"], "integrity_error");
    // It can be removed without being opened, and then the page is whole again.
    let deleted = client.delete("/tokens/order%2018").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let listed = client.get("/v2/tokens").await;
    assert_eq!(listed.body["pagination"]["page_size"], 3);
}

/// The pipeline makes some thousand calls; `CLOAKROOM_TEST_CALLS` makes it the hundred thousand of
/// the security design.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_are_isolated_on_every_route() {
    let vault = Arc::new(TestVault::start_patient().await);
    let mut sides = Vec::new();
    for number in 0..3 {
        sides.push(Side::new(&vault, number).await);
    }
    let sides = Arc::new(sides);
    let total = calls(2_000);
    let mut chance = Chance::new();

    // Each caller by itself, so that what it makes and takes away again is not in its own way.
    let mut calling = tokio::task::JoinSet::new();
    for caller in 0..sides.len() {
        let (vault, sides, mut chance) = (vault.clone(), sides.clone(), chance.fork());
        let count = total / 3 + usize::from(caller < total % 3);
        calling.spawn(async move {
            let caller = &sides[caller];
            call_others(&vault, (caller, &sides), count, &mut chance).await
        });
    }
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (counts, failures) in calling.join_all().await {
        for (route, count) in counts {
            *tried.entry(route).or_default() += count;
        }
        for (route, failure) in failures {
            wrong.entry(route).or_default().push(failure);
        }
    }

    let successes: usize = wrong.values().map(Vec::len).sum();
    println!("{total} calls, {successes} successes: {tried:#?}");
    let first: Vec<&String> = wrong.values().map(|failures| &failures[0]).collect();
    assert!(first.is_empty(), "{successes} of {total}: {first:#?}");
    assert_eq!(tried.len(), keyed_doors().count());
    // A node that remembers nothing sees what is in the database.
    let second = vault.second_node().await;
    for side in sides.iter() {
        side.check_unchanged(&second.base_url).await;
    }
}

/// Every route that knows who is asking.
fn keyed_doors() -> impl Iterator<Item = &'static Door> {
    let is_open = |needs| matches!(needs, Needs::Nothing | Needs::KeyInAddress);
    DOORS.iter().filter(move |door| !is_open(door.needs))
}

/// Makes random calls of one tenant about things of the others, over all routes in turn.
async fn call_others(
    vault: &TestVault,
    (caller, sides): (&Side, &[Side]),
    count: usize,
    chance: &mut Chance,
) -> (BTreeMap<String, usize>, Vec<(String, String)>) {
    let (mut tried, mut wrong) = (BTreeMap::new(), Vec::new());
    let mut memory = Memory::default();
    let others: Vec<&Side> = sides
        .iter()
        .filter(|other| other.tenant.id != caller.tenant.id)
        .collect();
    let routes: Vec<_> = keyed_doors().collect();
    for turn in 0..count {
        let door = routes[turn % routes.len()];
        let owner = *chance.pick(&others);
        let made = match (&door.method, door.path) {
            (&Method::DELETE, "/tenants/self") => delete_another(vault, caller).await,
            (&Method::POST, "/sessions/authorize") => authorize_another(caller, owner).await,
            _ => {
                let between = Between { caller, owner };
                let attempt = Attempt::new(chance, door, between);
                attempt.make(between, &mut memory).await
            }
        };
        *tried.entry(door.to_string()).or_default() += 1;
        wrong.extend(made.err().map(|failure| (door.to_string(), failure)));
    }
    (tried, wrong)
}

/// Authorizes a session of another tenant, which must stay as it is until its own tenant does.
async fn authorize_another(caller: &Side, owner: &Side) -> Result<(), String> {
    let [nonce, session_key] = owner.ask_for_session().await;
    let authorize = async |side: &Side, nonce: &str| {
        let body = json!({"nonce": nonce, "permissions": ["token:read"]});
        side.client.post("/sessions/authorize", body).await
    };
    let session = owner.client.with_key(&session_key);
    let (foreign, unknown) = (
        authorize(caller, &nonce).await,
        authorize(caller, "22222222222222222222222").await,
    );
    let before = session.get(&owner.tokens[0].path).await.status;
    let own = authorize(owner, &nonce).await.status;
    let after = session.get(&owner.tokens[0].path).await.status;
    let statuses = [foreign.status, before, own, after];
    let expected = [
        StatusCode::NOT_FOUND,
        StatusCode::FORBIDDEN,
        StatusCode::OK,
        StatusCode::OK,
    ];
    match statuses == expected && foreign.bytes == unknown.bytes {
        true => Ok(()),
        false => Err(format!("a session of another tenant: {statuses:?}")),
    }
}

/// Deletes a tenant that was made for this, which must be the only one that it is felt by: the caller
/// notices here, the others in their own calls.
async fn delete_another(vault: &TestVault, caller: &Side) -> Result<(), String> {
    let tenant = vault.tenant().await;
    let grants = grants(&[Permission::TenantDelete, Permission::TenantRead]);
    let kind = ApplicationKind::Management;
    let holder = vault.holder(&tenant, kind, grants).await;
    let client = caller.client.with_key(&holder.key);
    let deleted = client.delete("/tenants/self").await.status;
    let (gone, stays) = (
        client.get("/tenants/self").await.status,
        caller.manager.get("/tenants/self").await.status,
    );
    let expected = [
        StatusCode::NO_CONTENT,
        StatusCode::UNAUTHORIZED,
        StatusCode::OK,
    ];
    match [deleted, gone, stays] == expected {
        true => Ok(()),
        false => Err(format!("deleting a tenant: {deleted}, {gone}, {stays}")),
    }
}

#[tokio::test]
async fn a_cursor_of_another_tenant_continues_nothing() {
    let vault = TestVault::start().await;
    let (one, two) = (Side::new(&vault, 1).await, Side::new(&vault, 2).await);
    let ask = async |side: &Side, cursors: &[String; 3]| {
        let listed = format!("/v2/tokens?size=2&start={}", cursors[0]);
        let searched = json!({"size": 2, "start": cursors[1]});
        [
            side.client.get(&listed).await,
            side.client.post("/v2/tokens/search", searched).await,
        ]
    };

    for (side, other) in [(&one, &two), (&two, &one)] {
        for answer in ask(side, &side.cursors).await {
            assert_eq!(answer.body["pagination"]["page_size"], 2);
        }
        for answer in ask(side, &other.cursors).await {
            assert_eq!(answer.status, StatusCode::BAD_REQUEST);
            assert_eq!(answer.refused(), ["start"]);
        }
    }
}

#[tokio::test]
async fn equal_data_of_two_tenants_has_nothing_in_common() {
    let vault = TestVault::start().await;
    let (one, two) = (Side::new(&vault, 0).await, Side::new(&vault, 0).await);

    // Both have the same tokens, by the same names.
    for (a, b) in one.tokens.iter().zip(&two.tokens) {
        assert_eq!(a.new["data"], b.new["data"]);
        assert_ne!(a.fingerprint, b.fingerprint);
    }
    let database = vault.database.connect().await;
    let shared = "select count(*) from (select term from term group by term
            having count(distinct tenant_id) > 1) shared,
        (select fingerprint from claim group by fingerprint
            having count(distinct tenant_id) > 1) claimed";
    let shared: i64 = database.query_one(shared, &[]).await.unwrap().get(0);
    assert_eq!(shared, 0);
    // A name means one's own token, whoever else uses it.
    let name = &one.tokens[6].path;
    let changed = one
        .client
        .patch(name, json!({"data": {"secret": "new"}}))
        .await;
    assert_eq!(changed.status, StatusCode::OK);
    assert_eq!(two.client.get(name).await.bytes, two.tokens[6].seen);
    one.client.delete(name).await;
    assert_eq!(two.client.get(name).await.bytes, two.tokens[6].seen);
}
