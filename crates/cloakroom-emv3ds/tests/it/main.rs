//! Integration tests of the public interface.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod card_ranges;
mod correlation;
mod field_tables;
mod formats;
mod generate;
mod redaction;
mod round_trips;
mod samples;
mod validation_errors;
mod values;
