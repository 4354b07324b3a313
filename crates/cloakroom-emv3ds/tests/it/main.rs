//! The messages from outside, as the service and a simulator use them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answers;
mod card_ranges;
mod formats;
mod formats_of_answers;
mod round_trips;
mod samples;
mod secrecy;
mod single_faults;
mod tables;
mod values;
