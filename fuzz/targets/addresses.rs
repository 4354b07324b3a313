//! Client addresses in forwarding headers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::addresses(bytes));
