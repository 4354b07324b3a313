//! Tests of web elements over HTTP, against real PostgreSQL and Redis.

mod elements;
