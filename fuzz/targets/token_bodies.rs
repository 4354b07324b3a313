//! Request bodies of new tokens.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::token_bodies(bytes));
