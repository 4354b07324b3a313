//! Search queries and query strings.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::queries(bytes));
