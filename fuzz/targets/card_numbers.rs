//! Detection of card numbers in text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cloakroom::fuzzing::card_numbers(bytes));
