//! The vault through its front door: real PostgreSQL, real HTTP, one binary.

mod access;
mod conventions;
mod doors;
mod keys;
mod storage;
mod support;
mod tokens;
