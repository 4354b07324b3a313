//! The commands of docs/guides, executed as a reader pastes them.

mod charge;
mod page;
