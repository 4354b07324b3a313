//! Values derived from hidden data do not disclose it: fingerprints, ids, masks, counts and errors.

use cloakroom::access::Permission::{
    TokenCreate, TokenIntentCreate, TokenRead, TokenSearch, TokenUpdate,
};
use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant, Transform};
use cloakroom::config::Secret;
use cloakroom_testkit::{
    Client, TestDatabase, TestRedis, TestResponse, TestVault, encrypt, everything, grants,
    passes_luhn, rule,
};
use http::StatusCode;
use serde_json::{Value, json};

const NUMBER: &str = "4147202464191053";

struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    owner: Client,
}

impl Fixture {
    async fn start() -> Self {
        Self::start_with(None).await
    }

    /// The same with counters in Redis.
    async fn start_with(redis: Option<&TestRedis>) -> Self {
        let vault = TestVault::start_with(TestDatabase::create().await, |config| {
            config.redis.url = redis.map(|redis| Secret::new(redis.url()));
        })
        .await;
        let tenant = vault.tenant().await;
        let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
        Self {
            vault,
            tenant,
            owner,
        }
    }

    /// A client for a new application with one rule.
    async fn client(
        &self,
        kind: ApplicationKind,
        container: &str,
        transform: Transform,
        permissions: &[Permission],
    ) -> Client {
        let grants = Grants {
            rules: vec![rule(1, container, transform, permissions)],
            ..grants(&[TokenIntentCreate])
        };
        let holder = self.vault.holder(&self.tenant, kind, grants).await;
        self.vault.client_with(Some(&holder.key))
    }

    /// Creates a client encryption key.
    async fn encryption_key(&self) -> Value {
        let kind = ApplicationKind::Management;
        let granted = grants(&[Permission::KeysCreate]);
        let manager = self.vault.holder(&self.tenant, kind, granted).await;
        let manager = self.vault.client_with(Some(&manager.key));
        manager.post("/keys", json!({})).await.body
    }
}

fn card(number: &str) -> Value {
    json!({"type": "card", "data": {"number": number, "holder": "Ada Lovelace"}})
}

fn text(response: &TestResponse) -> String {
    String::from_utf8_lossy(&response.bytes).into_owned()
}

/// Encrypted data is not disclosed to callers without `reveal`, even through attributes of the new token.
///
/// Covers 16.26.
#[tokio::test]
async fn encrypted_data_is_not_disclosed_to_callers_without_reveal() {
    let fixture = Fixture::start().await;
    let key = fixture.encryption_key().await;
    let data = json!({"number": NUMBER, "holder": "Ada Lovelace"}).to_string();
    for transform in [Transform::Mask, Transform::Redact] {
        let public = fixture
            .client(ApplicationKind::Public, "/pci/", transform, &[TokenCreate])
            .await;
        for kind in ["token", "card"] {
            let new = |name: &str, value: Value| {
                let encrypted = encrypt(&key, &data);
                let mut new =
                    json!({"type": kind, "containers": ["/pci/high/"], "encrypted": encrypted});
                new[name] = value;
                new
            };
            for (name, value) in [
                ("mask", json!("{{ data }}")),
                ("id", json!("{{ data.holder }}")),
                ("fingerprint_expression", json!("{{ data.number }}-x")),
                ("search_indexes", json!(["{{ data.holder }}"])),
            ] {
                let response = public.post("/tokens", new(name, value)).await;
                assert_eq!(response.status, StatusCode::FORBIDDEN, "{kind} {name}");
            }
            let plain = public.post("/tokens", new("metadata", json!({}))).await;
            assert_eq!(plain.status, StatusCode::CREATED, "{}", plain.body);
            let shown = text(&plain);
            assert!(
                !shown.contains("20246419") && !shown.contains("Lovelace"),
                "{shown}"
            );
        }
    }
    let encrypted = encrypt(&key, &data);
    let new = json!({"type": "card", "encrypted": encrypted, "mask": "{{ data.number }}"});
    let seen = fixture.owner.post("/tokens", new).await;
    assert_eq!(seen.body["data"]["number"], NUMBER, "{}", seen.body);
}

/// Neither the value of a fingerprint or search index nor its acceptance discloses single hidden digits, even if the
/// expression also contains the whole number.
#[tokio::test]
async fn expressions_use_hidden_digits_as_a_whole_only() {
    let fixture = Fixture::start().await;
    let hidden = 8..12;
    for position in 0..16 {
        let number = "{{ data.number }}";
        let piece = format!("{number}-{{{{ data.number | slice: {position} }}}}");
        let digit = &NUMBER[position..=position];
        let question = format!(
            "{number}{{% assign d = data.number | slice: {position} %}}{{% if d == '{digit}' %}}x{{% endif %}}"
        );
        for (attribute, expression) in [
            ("fingerprint_expression", json!(piece)),
            ("search_indexes", json!([piece])),
        ] {
            let mut new = card(NUMBER);
            new[attribute] = expression;
            let created = fixture.owner.post("/tokens", new).await;
            let expected = match hidden.contains(&position) {
                true => StatusCode::BAD_REQUEST,
                false => StatusCode::CREATED,
            };
            assert_eq!(created.status, expected, "{attribute} {position}");
        }
        let fingerprint = async |expression: &str| {
            let mut new = card(NUMBER);
            new["fingerprint_expression"] = json!(expression);
            let created = fixture.owner.post("/tokens", new).await;
            created.body["fingerprint"].clone()
        };
        if hidden.contains(&position) {
            assert_eq!(fingerprint(&question).await, fingerprint(number).await);
        }
    }
    let mut equal = card(NUMBER);
    equal["fingerprint_expression"] = json!("{{ data.number }}");
    let [by_type, by_expression] = [
        fixture.owner.post("/tokens", card(NUMBER)).await,
        fixture.owner.post("/tokens", equal).await,
    ];
    assert_eq!(
        by_type.body["fingerprint"],
        by_expression.body["fingerprint"]
    );
}

/// An intent cannot be converted into a container in which the caller sees more than in the default one.
///
/// Covers 18.16.
#[tokio::test]
async fn converting_an_intent_into_another_container_does_not_disclose_it() {
    let fixture = Fixture::start().await;
    let shopper = fixture
        .client(
            ApplicationKind::Public,
            "/pci/",
            Transform::Mask,
            &[TokenCreate],
        )
        .await;
    let mine = [TokenRead, TokenCreate, TokenUpdate];
    let attacker = fixture
        .client(ApplicationKind::Private, "/mine/", Transform::Reveal, &mine)
        .await;
    let intent = shopper.post("/token-intents", card(NUMBER)).await.id();
    let convert = json!({"token_intent_id": intent, "containers": ["/mine/"]});

    let direct = attacker.post("/tokens", convert.clone()).await;
    // A session belongs to the public application that created it, not to the key that authorized it.
    let session = shopper.post("/sessions", json!({})).await;
    let rules = json!([{"description": "r", "priority": 1, "container": "/mine/", "transform": "reveal",
        "permissions": ["token:create", "token:read"]}]);
    let nonce = json!({"nonce": session.body["nonce"], "rules": rules});
    let authorized = attacker.post("/sessions/authorize", nonce).await;
    assert_eq!(authorized.status, StatusCode::OK, "{}", authorized.body);
    let session = shopper.with_key(session.body["session_key"].as_str().unwrap());
    let through_session = session.post("/tokens", convert).await;

    for response in [direct, through_session] {
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{}", response.body);
    }
    // The other members of a card are hidden as well.
    for (name, value) in [("id", "{{ data.holder }}"), ("mask", "{{ data }}")] {
        let mut convert = json!({"token_intent_id": intent});
        convert[name] = json!(value);
        let response = shopper.post("/tokens", convert).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{name}");
    }
    let whole = fixture
        .owner
        .post(
            "/tokens",
            json!({"token_intent_id": intent, "containers": ["/mine/"]}),
        )
        .await;
    assert_eq!(whole.body["data"]["number"], NUMBER);
}

/// Hidden members cannot be guessed one at a time.
///
/// Covers 5.25.
#[tokio::test]
async fn partial_updates_of_hidden_data_require_reveal() {
    let fixture = Fixture::start().await;
    let updater = fixture
        .client(
            ApplicationKind::Private,
            "/general/",
            Transform::Redact,
            &[TokenUpdate],
        )
        .await;
    let data = json!({"name": "Ada", "pin": "0731", "address": {"zip": "03127", "city": "x"}});
    let token = json!({"type": "token", "data": data});
    let path = format!(
        "/tokens/{}",
        fixture.owner.post("/tokens", token).await.id()
    );

    for patch in [
        json!({"pin": "0731"}),
        json!({"name": null, "address": null}),
        json!({"name": "x", "pin": "y", "address": {"zip": "03127"}}),
        json!({}),
    ] {
        let patched = updater.patch(&path, json!({"data": patch})).await;
        assert_eq!(patched.status, StatusCode::FORBIDDEN, "{patch}");
    }
    // An expiry in the past is rejected before duplicates are searched.
    let past = "2001-01-01T00:00:00Z";
    let whole = json!({"name": "x", "pin": "y", "address": "z"});
    let equal = json!({"type": "token", "data": whole, "deduplicate_token": true});
    fixture.owner.post("/tokens", equal).await;
    let patch = json!({"data": whole, "deduplicate_token": true, "expires_at": past});
    assert_eq!(updater.patch(&path, patch).await.refused(), ["expires_at"]);

    assert_eq!(fixture.owner.get(&path).await.body["data"], data);
    let replaced = updater.patch(&path, json!({"data": "all of it"})).await;
    assert_eq!(replaced.status, StatusCode::OK, "{}", replaced.body);
}

/// S2: a caller with `token:update` compared the number with text in another member of the card.
///
/// Covers 5.25.
#[tokio::test]
async fn partial_updates_of_hidden_cards_require_reveal() {
    let fixture = Fixture::start().await;
    let mask = Transform::Mask;
    let sees = [TokenRead, TokenUpdate];
    let clerk = fixture
        .client(ApplicationKind::Private, "/pci/", mask, &sees)
        .await;
    let mut new = card(NUMBER);
    new["mask"] =
        json!({"number": "{{ data.number | reveal_last: 4 }}", "holder": "{{ data.holder }}"});
    new["search_indexes"] = json!(["{{ data.holder }}"]);
    let path = format!("/tokens/{}", fixture.owner.post("/tokens", new).await.id());
    let candidates = neighbors();

    for patch in [
        json!({"holder": candidates.join(" ")}),
        json!({"holder": NUMBER}),
        json!({"number": "4242424242424242"}),
        json!({"expiration_year": 2031}),
        json!({"cvc": "123", "holder": "B"}),
        json!({}),
    ] {
        let patched = clerk.patch(&path, json!({"data": patch})).await;
        assert_eq!(patched.status, StatusCode::FORBIDDEN, "{}", patched.body);
    }
    let whole = json!({"number": "4242424242424242", "holder": "B"});
    let replaced = clerk.patch(&path, json!({"data": whole})).await;
    assert_eq!(replaced.status, StatusCode::OK, "{}", replaced.body);
}

/// The number itself and numbers that differ from it in one hidden digit.
fn neighbors() -> Vec<String> {
    let change = |digit: char| format!("{}{digit}{}", &NUMBER[..9], &NUMBER[10..]);
    ('0'..='9').map(change).collect()
}

/// S2: masks and indexes treat text in other members alike, whether or not it contains the number.
#[tokio::test]
async fn text_in_other_members_is_not_compared_with_the_number() {
    let fixture = Fixture::start().await;
    let reads = [TokenRead, TokenSearch];
    let reader = fixture
        .client(ApplicationKind::Private, "/pci/", Transform::Mask, &reads)
        .await;
    let mut shown = Vec::new();
    for candidate in neighbors() {
        for text in [
            candidate.clone(),
            format!("PAN {candidate}!"),
            format!("{} {}", &candidate[..8], &candidate[8..]),
            candidate.replace('2', "\u{ff12}"),
            format!("x{}", &candidate[..12]),
        ] {
            let mut new = card(NUMBER);
            new["data"]["holder"] = json!(text);
            new["mask"] = json!("{{ data.holder }}");
            new["search_indexes"] = json!(["{{ data.holder }}", "{{ data.number }}"]);
            let created = fixture.owner.post("/tokens", new).await;
            assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
            let found = reader.get(&format!("/tokens/{}", created.id())).await;
            let data = found.body["data"].as_str().unwrap().to_owned();
            assert!(!data.contains(char::is_numeric), "{text}: {data}");
            shown.push(data);
        }
    }
    let same = |one: &[String]| one == &shown[..5];
    assert!(shown.chunks(5).all(same), "{shown:?}");
}

/// A security code is replaced as a whole and beside the data: the response and the fingerprint show nothing of it.
///
/// Covers 5.25.
#[tokio::test]
async fn a_security_code_alone_is_replaced_without_reveal() {
    let fixture = Fixture::start().await;
    let redact = Transform::Redact;
    let updater = fixture
        .client(ApplicationKind::Public, "/pci/", redact, &[TokenUpdate])
        .await;
    let path = format!(
        "/tokens/{}",
        fixture.owner.post("/tokens", card(NUMBER)).await.id()
    );
    let before = fixture.owner.get(&path).await;

    let replaced = updater.patch(&path, json!({"data": {"cvc": "737"}})).await;

    assert_eq!(replaced.status, StatusCode::OK, "{}", replaced.body);
    assert_eq!(replaced.body.get("data"), None, "{}", replaced.body);
    let after = fixture.owner.get(&path).await;
    assert_eq!(after.body["data"]["cvc"], "737");
    assert_eq!(after.body["data"]["number"], NUMBER);
    assert_eq!(after.body["fingerprint"], before.body["fingerprint"]);
    for wrong in [json!("73"), json!(NUMBER), json!({"a": NUMBER})] {
        let rejected = updater.patch(&path, json!({"data": {"cvc": wrong}})).await;
        assert_eq!(rejected.refused(), ["data.cvc"]);
    }
}

/// A blocked group does not disclose which numbers were sent before.
///
/// Covers 23.8.
#[tokio::test]
async fn no_number_of_a_group_over_its_velocity_limit_is_compared() {
    let redis = TestRedis::start(&[]).await;
    for redis in [None, Some(&redis)] {
        let fixture = Fixture::start_with(redis).await;
        let public = fixture
            .client(
                ApplicationKind::Public,
                "/pci/",
                Transform::Mask,
                &[TokenCreate],
            )
            .await;
        let numbers: Vec<String> = (0..10_000)
            .map(|middle| format!("41472024{middle:04}1053"))
            .filter(|number| passes_luhn(number))
            .take(30)
            .collect();
        let mut compared = Vec::new();
        for number in numbers.iter().chain(&numbers[..10]) {
            let created = public.post("/token-intents", card(number)).await;
            assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
            compared.push(created.body["fingerprint"].is_string());
        }
        assert_eq!(compared[..10], [true; 10]);
        let again = "also numbers that were compared before";
        assert_eq!(compared[10..], [false; 30], "{again}");
    }
}

/// A hidden number is not counted as sent by the caller.
#[tokio::test]
async fn updates_beside_the_number_do_not_count_toward_the_velocity_limit() {
    let fixture = Fixture::start().await;
    let permissions = [TokenUpdate, TokenSearch];
    let updater = fixture
        .client(
            ApplicationKind::Private,
            "/pci/",
            Transform::Redact,
            &permissions,
        )
        .await;
    let path = format!(
        "/tokens/{}",
        fixture.owner.post("/tokens", card(NUMBER)).await.id()
    );
    let others: Vec<String> = (0..10_000)
        .map(|middle| format!("41472024{middle:04}1053"))
        .filter(|number| number != NUMBER && passes_luhn(number))
        .take(11)
        .collect();

    for patch in [
        json!({"data": {"cvc": "123"}}),
        json!({"data": {"cvc": null}}),
    ] {
        let patched = updater.patch(&path, patch).await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.body);
    }
    let mut statuses = Vec::new();
    for number in &others {
        let query = json!({"query": format!("data:{number}")});
        let found = updater.post("/v2/tokens/search", query).await;
        statuses.push(found.status.as_u16());
    }

    let mut expected = [200; 11];
    expected[10] = 429;
    assert_eq!(statuses, expected, "the hidden number is not counted");
}
