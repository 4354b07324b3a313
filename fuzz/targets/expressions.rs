//! Template expressions, evaluated over data.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::expressions(bytes));
