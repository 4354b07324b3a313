//! The database: schema, statements, and which commits are acknowledged.

mod commits;
mod outages;
mod schema;
mod tampering;
