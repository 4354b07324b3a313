//! Client-encrypted values (JWE).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::encrypted(bytes));
