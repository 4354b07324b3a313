//! Documents with token references, as sent to /detokenize.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::documents(bytes));
