//! Parses any JSON or text as a document and fills its references with the input.

#![no_main]

use cloakroom_expressions::{Context, Document, Mask, Sources};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &str| {
    let value: Value = serde_json::from_str(input).unwrap_or_else(|_| input.into());
    for context in [Context::Detokenize, Context::Proxy] {
        if let Ok(document) = Document::parse(context, &value) {
            let _ = document.fill(|_| Some(&value), &Sources::default());
        }
    }
    if let Ok(mask) = Mask::parse(&value) {
        mask.apply(&value);
    }
});
