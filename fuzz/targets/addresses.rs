//! Addresses that proxies forward for.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::addresses(bytes));
