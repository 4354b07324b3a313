//! Token queries: lists and searches.

mod list;
mod search;
