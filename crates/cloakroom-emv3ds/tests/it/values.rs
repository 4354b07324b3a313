//! Any value of a format.

use cloakroom_emv3ds::Format;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

fn text(pattern: impl Strategy<Value = String> + 'static) -> BoxedStrategy<Value> {
    pattern.prop_map(Value::String).boxed()
}

fn chars(class: &str, min: usize, max: usize) -> BoxedStrategy<Value> {
    let pattern = format!("{class}{{{min},{}}}", max.min(min + 40));
    text(proptest::string::string_regex(&pattern).unwrap())
}

fn date() -> impl Strategy<Value = String> {
    (1990..2100, 1..=12, 1..=28).prop_map(|(y, m, d)| format!("{y:04}{m:02}{d:02}"))
}

/// Without floating point numbers: how those are spelled is not for a message to keep.
pub(crate) fn any_json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| json!(n)),
        "\\PC{0,8}".prop_map(Value::String),
    ];
    let deeper = |inner: BoxedStrategy<Value>| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::Array),
            any_object(inner).prop_map(Value::Object),
        ]
    };
    leaf.prop_recursive(3, 12, 3, deeper).boxed()
}

fn any_object(
    inner: BoxedStrategy<Value>,
) -> impl Strategy<Value = serde_json::Map<String, Value>> {
    vec(("[a-z]{1,6}", inner), 1..4).prop_map(|entries| entries.into_iter().collect())
}

/// Any value of that format. Objects with rows of their own are left to the caller.
pub(crate) fn of(format: &Format) -> BoxedStrategy<Value> {
    match *format {
        Format::Text { min, max } => chars("\\PC", min, max),
        Format::Ascii { min, max } => chars("[ -~]", min, max),
        Format::Digits { min, max } => chars("[0-9]", min, max),
        Format::Number {
            digits: (least, _),
            min,
            max,
        } => text((min..=max).prop_map(move |number| format!("{number:0least$}"))),
        Format::Minutes => text("[+-]?[0-9]{1,4}"),
        Format::Letters { min, max } => chars("[A-Za-z]", min, max),
        Format::Alphanumeric { min, max } => chars("[A-Za-z0-9]", min, max),
        Format::Codes(codes) | Format::CodesOrNetwork(codes) => {
            text(select(codes).prop_map(str::to_owned))
        }
        Format::Uuid => text("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
        Format::Version => text(
            select(&["2.0.1", "2.1.0", "2.2.0", "2.3.1", "2.10.0"][..]).prop_map(str::to_owned),
        ),
        Format::Email { .. } => text("[a-z.+]{1,20}@[a-z]{1,10}\\.example"),
        Format::Url { .. } => text(
            "https?://[a-z]{1,20}\\.example(:[1-9][0-9]{1,3})?(/[a-z0-9%-]{0,20}){0,3}(\\?[a-z]=[0-9])?",
        ),
        Format::Ip => text(prop_oneof![
            any::<std::net::Ipv4Addr>().prop_map(|ip| ip.to_string()),
            any::<std::net::Ipv6Addr>().prop_map(|ip| ip.to_string()),
        ]),
        Format::Date => text(date()),
        Format::Month => text((0..100, 1..=12).prop_map(|(y, m)| format!("{y:02}{m:02}"))),
        Format::Minute => {
            text((date(), 0..24, 0..60).prop_map(|(d, h, m)| format!("{d}{h:02}{m:02}")))
        }
        Format::Second => text(
            (date(), 0..24, 0..60, 0..60).prop_map(|(d, h, m, s)| format!("{d}{h:02}{m:02}{s:02}")),
        ),
        Format::Currency => text((1..955).prop_map(|n| format!("{n:03}"))),
        Format::Country => text((0..901).prop_map(|n| format!("{n:03}"))),
        Format::Base64 { .. } => text("[A-Za-z0-9+/]{26}[AEIMQUYcgkosw048]="),
        Format::Boolean => any::<bool>().prop_map(Value::Bool).boxed(),
        Format::True => Just(Value::Bool(true)).boxed(),
        Format::PublicKey { .. } => ("[A-Za-z0-9_-]{43}", "[A-Za-z0-9_-]{43}")
            .prop_map(|(x, y)| json!({"kty": "EC", "crv": "P-256", "x": x, "y": y}))
            .boxed(),
        Format::AnyObject { .. } => any_object(any_json()).prop_map(Value::Object).boxed(),
        Format::AnyList { .. } => vec(any_json(), 1..3).prop_map(Value::Array).boxed(),
        Format::AnyObjects { .. } => vec(any_object(any_json()).prop_map(Value::Object), 1..3)
            .prop_map(Value::Array)
            .boxed(),
        Format::List { of: element, count } => vec(of(element), 1..=count.min(3))
            .prop_map(Value::Array)
            .boxed(),
        Format::Object | Format::Objects { .. } => panic!("made of its rows"),
    }
}
