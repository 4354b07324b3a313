//! The baseline of a node: an axum handler that returns the bytes of a masked card.

use std::path::Path;

use anyhow::Result;

use super::server::{LAUNCHER, Ready, Server, bare, free_addresses};

/// Starts `examples/hello.rs`, which returns `body`.
pub(super) async fn start(program: &Path, body: &str, folder: &Path) -> Result<Server> {
    let file = folder.join("hello.json");
    std::fs::write(&file, body)?;
    let [address, _] = free_addresses()?.map(|address| address.to_string());
    let mut command = bare(&LAUNCHER, program);
    command.arg(&address).arg(file);
    let ready = Ready {
        address: &address,
        path: "/tokens/any",
    };
    Server::start(command, &address, ready, &folder.join("hello.log")).await
}
