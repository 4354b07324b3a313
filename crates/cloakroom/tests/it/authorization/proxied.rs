//! Random calls of the proxy, and a destination that repeats what it receives, as processors repeat references.

use cloakroom_testkit::{ReceivedRequest, Reply, SeededRng, TestDestination};
use http::{Method, StatusCode};
use serde_json::json;

use super::call::RequestParts;
use super::world::{Plant, Planted};

/// The header that destinations repeat.
const REPEATED: &str = "x-reference";
/// The header with the configuration value of a proxy.
pub(super) const CREDENTIAL: &str = "x-credential";

/// Lets the destination repeat header, query and body in responses below `/repeat` and `/decline`.
pub(super) fn repeat(destination: &TestDestination) {
    destination.respond(|received| {
        let text = |name: &str| match received.headers.get(name) {
            Some(value) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
            None => String::new(),
        };
        let mut reply = Reply::json("{}");
        if received.target.contains("/decline") {
            reply.status = StatusCode::PAYMENT_REQUIRED;
        } else if !received.target.contains("/repeat") {
            return reply;
        }
        reply.headers.push((REPEATED, text(REPEATED)));
        let (_, query) = received.target.split_once('?').unwrap_or_default();
        let body =
            json!({"reference": received.body, "query": query, "credential": text(CREDENTIAL)});
        reply.body = body.to_string().into_bytes();
        reply
    });
}

/// What a destination received, without what differs between the worlds in any case.
pub(super) fn line(received: &ReceivedRequest, prefix: &str) -> String {
    let ReceivedRequest {
        method,
        target,
        headers,
        body,
    } = received;
    let (target, reference) = (&target[prefix.len()..], headers.get(REPEATED));
    format!("received {method} {target} {reference:?} {body}")
}

/// An expression in some place of a proxied request.
pub(super) fn invoke(chance: &mut SeededRng, plant: &Plant) -> RequestParts {
    // A destination that repeats other values than card numbers discloses them.
    let path = match plant.kind {
        "token" => "quiet",
        _ => *chance.pick(&["repeat", "repeat", "decline", "quiet"]),
    };
    let mut path = format!("/proxy/{path}");
    let mut headers = vec![match chance.below(4) {
        0 => ("bt-proxy-key", "@proxy".to_owned()),
        1 => ("bt-proxy-key", "@credential".to_owned()),
        _ => ("bt-proxy-url", "@destination".to_owned()),
    }];
    if plant.planted == Planted::Encrypted {
        headers.push(("bt-encrypted", "@sent".to_owned()));
    }
    let value = expression(chance, plant);
    let json = ("content-type", "application/json".to_owned());
    let body = match chance.below(8) {
        0 => {
            headers.push((REPEATED, value));
            None
        }
        1 => {
            path = format!(
                "{path}?reference={}",
                value.replace(' ', "+").replace('#', "%23")
            );
            None
        }
        2 => Some(format!("reference={}", value.replace(' ', "+"))),
        3 => Some(format!(
            "<a b=\"{}\"/>",
            value.replace('&', "&amp;").replace('"', "&quot;")
        )),
        4 => {
            headers.push(json);
            Some(json!({"source": {"number": value}, "note": plant.guess(chance)}).to_string())
        }
        5 => {
            headers.push(json);
            headers.push((REPEATED, plant.guess(chance)));
            Some(json!({"reference": format!("x {value} y")}).to_string())
        }
        _ => {
            headers.push(json);
            Some(json!([value]).to_string())
        }
    };
    RequestParts {
        method: Method::POST,
        path,
        headers,
        body,
    }
}

fn expression(chance: &mut SeededRng, plant: &Plant) -> String {
    if chance.one_in(8) {
        let configuration = [
            "config: KEY",
            "proxy.config.KEY",
            "proxy.config",
            "proxy | json: '$.config'",
        ];
        let filters = ["", " | slice: 0, 3", " | append: proxy.config.KEY"];
        return format!(
            "{{{{ {}{} }}}}",
            chance.pick(&configuration),
            chance.pick(&filters)
        );
    }
    let (reference, data) = match plant.planted {
        Planted::Token if chance.one_in(2) => ("@victim", "$"),
        Planted::Token => ("token: @victim", "$.data"),
        Planted::Intent => ("token_intent: @victim", "$.data"),
        Planted::Encrypted => ("encrypted", "$.data"),
    };
    let member = match plant.kind {
        "card" => ".number",
        "token" => ".secret",
        _ => "",
    };
    let path = match chance.below(8) {
        0 => "$..number".to_owned(),
        1 => "$[?(@ > 4)]".to_owned(),
        _ => format!("{data}{member}"),
    };
    if chance.one_in(2) {
        return format!("{{{{ {reference} | json: '{data}{member}' }}}}");
    }
    let (place, digit) = (chance.below(16), chance.below(10));
    let filters = [
        " | last4".to_owned(),
        " | card_bin".to_owned(),
        " | card_exp: 'MM/YY'".to_owned(),
        " | pad_left: 30, 'x' | to_string".to_owned(),
        format!(" | slice: {place}, 1"),
        format!(" | slice: {place}, 1 | replace: '{digit}', 'x' | to_number"),
        format!(" | split: '{digit}' | first | to_number"),
        " | stringify".to_owned(),
        " | divided_by: 0".to_owned(),
        " | hmac: 'sha-256', 'k' | to_base16".to_owned(),
    ];
    format!(
        "{{{{ {reference} | json: '{path}'{} }}}}",
        chance.pick(&filters)
    )
}
