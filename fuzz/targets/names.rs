//! API keys, ids, containers and timestamps.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::names(bytes));
