//! What developer tasks (`xtask`) and benchmarks (`cloakroom-bench`) share: running commands, finding what cargo built,
//! installing missing packages, starting private servers.
#![expect(
    clippy::print_stdout,
    reason = "command-line tools report their progress to the developer"
)]

pub mod haproxy;
pub mod packages;
pub mod process;
pub mod python;
pub mod servers;
pub mod service_sql;
pub mod workspace;
