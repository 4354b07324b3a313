//! Parses any text as a template in every context and evaluates it. Input: the text, a line feed, the data as JSON.

#![no_main]

use cloakroom_expressions::{Context, OUTPUT_BYTES_MAX, Scope, Sources, Template};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const CONTEXTS: [Context; 4] = [
    Context::IdAlias,
    Context::Fingerprint,
    Context::SearchIndex,
    Context::Mask,
];

fuzz_target!(|input: &str| {
    let (text, data) = input.split_once('\n').unwrap_or((input, "null"));
    let data: Value = serde_json::from_str(data).unwrap_or_else(|_| data.into());
    let scope = Scope {
        variables: &[("data", &data), ("metadata", &data)],
        sources: Sources {
            now: None,
            random: Some(&|bytes| bytes.fill(1)),
            hmac: Some(&|_, _, message| message.to_vec()),
        },
    };
    for context in CONTEXTS {
        let Ok(template) = Template::parse(context, text) else {
            continue;
        };
        if let Ok(shown) = template.evaluate_to_text(&scope) {
            assert!(shown.len() <= OUTPUT_BYTES_MAX);
        }
    }
});
