//! Random calls, weighted toward those that could escalate permissions.

use cloakroom::route_requirements::ROUTES;
use cloakroom_testkit::SeededRng;
use http::Method;
use serde_json::{Value, json};

use super::model::{CONTAINERS, OWN};
use super::proxied;
use super::world::{Plant, Planted};

/// A call by one caller. Placeholders such as `@victim` are replaced by the values of each world.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) caller: usize,
    /// Whether a session sends it that the caller authorized.
    pub(super) by_session: bool,
    pub(super) request: RequestParts,
}

#[derive(Debug)]
pub(super) struct Calls(pub(super) Vec<Call>);

impl Calls {
    /// `are_public`: whether everybody has the keys of all callers.
    pub(super) fn random(
        chance: &mut SeededRng,
        plant: &Plant,
        callers: &[usize],
        are_public: bool,
    ) -> Self {
        let mut calls = Vec::new();
        for _ in 0..2 + chance.below(4) {
            let caller = *chance.pick(callers);
            let request = match are_public && plant.kind == "token" && chance.one_in(3) {
                true => create_guess(chance, plant),
                false => random(chance, plant),
            };
            calls.push(Call {
                caller,
                by_session: chance.one_in(4),
                request,
            });
        }
        Self(calls)
    }
}

#[derive(Debug)]
pub(super) struct RequestParts {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<String>,
}

impl RequestParts {
    fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> Self {
        let media = match method == Method::PATCH {
            true => "application/merge-patch+json",
            false => "application/json",
        };
        let media = ("content-type", media.to_owned());
        Self {
            method,
            path: path.into(),
            headers: body.iter().map(|_| media.clone()).collect(),
            body: body.map(|body| body.to_string()),
        }
    }
}

fn random(chance: &mut SeededRng, plant: &Plant) -> RequestParts {
    match chance.below(28) {
        0..=5 => match plant.planted {
            Planted::Token => update(chance, plant),
            Planted::Intent => convert(chance, plant, "@victim"),
            Planted::Encrypted => create_encrypted(chance, plant),
        },
        6 => get("/tokens/@victim"),
        7 => get("/token-intents/@victim"),
        8..=9 => intent_of_known(),
        10..=11 => convert(chance, plant, "@intent"),
        12 => create(chance, plant),
        13 => list(chance),
        14..=15 => search(chance, plant),
        16 => detokenize(chance),
        17 => RequestParts::new(
            Method::POST,
            "/tokenize",
            Some(json!({"a": new_token(chance, plant)})),
        ),
        18 => get("/tokens/@known"),
        19..=26 => proxied::invoke(chance, plant),
        _ => any_route(chance),
    }
}

fn get(path: &str) -> RequestParts {
    RequestParts::new(Method::GET, path, None)
}

/// A random expression over the hidden part of the data, `number` or `secret`.
fn expression(chance: &mut SeededRng, plant: &Plant, kind: &str) -> String {
    if chance.one_in(6) {
        return plant.guess(chance);
    }
    let value = match kind {
        "card" => "data.number",
        "token" => "data.secret",
        _ => "data",
    };
    let (place, digit) = (chance.below(16), chance.below(10));
    let expressions = [
        digit.to_string(),
        format!("{{{{ {value} }}}}"),
        format!("{{{{ {value} | slice: {place} }}}}"),
        format!("{{{{ {value} | slice: {place}, 3 }}}}"),
        format!("{{{{ {value} }}}}-{{{{ {value} | slice: {place} }}}}"),
        format!("{{{{ {value} }}}}{{% if {value} contains '{digit}' %}}a{{% endif %}}"),
        format!("{{{{ {value} | last4 }}}}"),
        format!("{{{{ {value} | modulo: 7 }}}}"),
        format!("{{% if {value} contains '{digit}' %}}a{{% else %}}b{{% endif %}}"),
        "{{ data | stringify }}".to_owned(),
    ];
    chance.pick(&expressions).clone()
}

/// Adds attributes that affect what is shown or found.
fn decorate(chance: &mut SeededRng, plant: &Plant, kind: &str, body: &mut Value) {
    for _ in 0..=chance.below(2) {
        let text = expression(chance, plant, kind);
        match chance.below(7) {
            0 | 1 => body["mask"] = json!(text),
            2 | 3 => body["fingerprint_expression"] = json!(text),
            4 => body["search_indexes"] = json!([text]),
            5 => body["metadata"] = json!({"k": plant.guess(chance)}),
            _ => {
                let container = *chance.pick(&CONTAINERS);
                body["containers"] = json!([container]);
            }
        }
    }
}

fn update(chance: &mut SeededRng, plant: &Plant) -> RequestParts {
    let mut patch = json!({});
    match chance.below(16) {
        0 => patch["metadata"] = json!({"k": "v"}),
        1..=6 => patch["data"] = json!({"note": plant.guess(chance)}),
        7 => patch["mask"] = Value::Null,
        8 => patch["data"] = json!({"secret": "chosen"}),
        9 => patch["data"] = json!({"cvc": "737"}),
        10 => patch["containers"] = json!([OWN]),
        _ => decorate(chance, plant, plant.kind, &mut patch),
    }
    if chance.one_in(6) {
        patch["deduplicate_token"] = json!(true);
    }
    let target = if chance.one_in(5) {
        "@known"
    } else {
        "@victim"
    };
    RequestParts::new(Method::PATCH, format!("/tokens/{target}"), Some(patch))
}

fn intent_of_known() -> RequestParts {
    let card = json!({
        "type": "card",
        "data": {"number": "@number", "expiration_month": 2, "expiration_year": 2032},
    });
    RequestParts::new(Method::POST, "/token-intents", Some(card))
}

fn convert(chance: &mut SeededRng, plant: &Plant, intent: &str) -> RequestParts {
    let mut new = json!({"token_intent_id": intent});
    let kind = if intent == "@victim" {
        plant.kind
    } else {
        "card"
    };
    match chance.below(4) {
        0 | 1 => decorate(chance, plant, kind, &mut new),
        2 => new["containers"] = json!([OWN]),
        _ => {}
    }
    if chance.one_in(2) {
        new["deduplicate_token"] = json!(true);
        new["metadata"] = json!({"owner": "mallory"});
        new["expires_at"] = json!("2098-01-01T00:00:00Z");
    }
    // Ids derived from cards are random.
    if plant.kind == "token" && intent == "@victim" && chance.one_in(5) {
        new["id"] = json!(format!("id-{}", expression(chance, plant, kind)));
    }
    RequestParts::new(Method::POST, "/tokens", Some(new))
}

/// Creates a token of some type from the encrypted value.
fn create_encrypted(chance: &mut SeededRng, plant: &Plant) -> RequestParts {
    let kind = *chance.pick(&[plant.kind, "token"]);
    let mut new = json!({"type": kind, "encrypted": "@encrypted"});
    if chance.one_in(2) {
        decorate(chance, plant, plant.kind, &mut new);
    }
    if chance.one_in(3) {
        new["deduplicate_token"] = json!(true);
    }
    if chance.one_in(5) {
        new["id"] = json!(format!("id-{}", expression(chance, plant, plant.kind)));
    }
    RequestParts::new(Method::POST, "/tokens", Some(new))
}

/// Compares the whole value by deduplication. Whoever may create tokens with a private key can do that.
fn create_guess(chance: &mut SeededRng, plant: &Plant) -> RequestParts {
    let new = json!({
        "type": plant.kind, "data": plant.whole(chance), "containers": [plant.container],
        "deduplicate_token": true,
    });
    let (path, body) = match chance.one_in(3) {
        true => ("/tokenize", json!([new])),
        false => ("/tokens", new),
    };
    RequestParts::new(Method::POST, path, Some(body))
}

fn create(chance: &mut SeededRng, plant: &Plant) -> RequestParts {
    RequestParts::new(Method::POST, "/tokens", Some(new_token(chance, plant)))
}

fn new_token(chance: &mut SeededRng, plant: &Plant) -> Value {
    let digit = chance.below(10).to_string();
    let mut new = match plant.kind {
        // Equals a planted value after a patch if the guessed PIN is right.
        "token" if chance.one_in(2) => {
            json!({"type": "token", "data": {"secret": "chosen", "pin": digit}})
        }
        "token" => json!({"type": "token", "data": {"secret": digit}}),
        _ => json!({
            "type": "card",
            "data": {"number": "4242424242424242", "expiration_month": 3, "note": plant.guess(chance)},
        }),
    };
    decorate(
        chance,
        plant,
        if plant.kind == "token" {
            "token"
        } else {
            "card"
        },
        &mut new,
    );
    if chance.one_in(3) {
        new["deduplicate_token"] = json!(true);
    }
    if chance.one_in(8) {
        new["id"] = json!("@victim");
    }
    new
}

fn list(chance: &mut SeededRng) -> RequestParts {
    let paths = [
        "/v2/tokens?size=3",
        "/v2/tokens?type=card&size=2",
        "/v2/tokens?container=/vault/&size=3",
        "/v2/tokens?fingerprint=@fingerprint",
        "/tokens?size=3",
        "/tokens?id=@victim",
        "/tokens?metadata.k=v&size=2",
    ];
    get(chance.pick::<&str>(&paths))
}

fn search(chance: &mut SeededRng, plant: &Plant) -> RequestParts {
    let (digit, piece) = (chance.below(10), chance.below(1_000));
    let queries = [
        format!("data:{digit}"),
        format!("data:{piece:03}"),
        "data:a".to_owned(),
        format!("data:\"{}\"", plant.guess(chance)),
        "fingerprint:@fingerprint".to_owned(),
        "id:@victim".to_owned(),
        "metadata.k:v".to_owned(),
        "type:card AND container:/pci/".to_owned(),
    ];
    let body = json!({"query": chance.pick(&queries), "size": 3});
    let path = *chance.pick(&["/v2/tokens/search", "/v2/tokens/search", "/tokens/search"]);
    RequestParts::new(Method::POST, path, Some(body))
}

fn detokenize(chance: &mut SeededRng) -> RequestParts {
    let texts = [
        "{{ @victim }}",
        "{{ @victim | json: '$.number' }}",
        "{{ token: @victim }}",
        "{{ @known }} {{ @victim }}",
        "{{ token_intent: @victim | json: '$.data' }}",
        "{{ @victim | json: '$.data.number' | slice: 8, 2 }}",
    ];
    let body = json!({"a": chance.pick(&texts)});
    RequestParts::new(Method::POST, "/detokenize", Some(body))
}

/// Any route, with the victim in place of every path parameter.
fn any_route(chance: &mut SeededRng) -> RequestParts {
    let route = chance.pick(ROUTES);
    let mut path = String::new();
    for part in route.path.split('/').skip(1) {
        path.push('/');
        path.push_str(if part.starts_with('{') {
            "@victim"
        } else {
            part
        });
    }
    let method = route.method.clone();
    let body = (method != Method::GET && method != Method::DELETE)
        .then(|| json!({"token_id": "@victim", "token_intent_id": "@victim", "id": "@victim"}));
    RequestParts::new(method, path, body)
}
