//! EMV 3-D Secure messages.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::messages(bytes));
