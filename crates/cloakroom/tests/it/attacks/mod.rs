//! Hostile input: malformed bodies, request smuggling, and timing of key lookups.

mod bodies;
mod corpus;
mod corruption;
mod place;
mod smuggling;
mod target;
mod text;
mod timing;
