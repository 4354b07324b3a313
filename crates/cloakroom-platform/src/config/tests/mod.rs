//! Tests of loading and checking a configuration.

mod check;
mod load;
