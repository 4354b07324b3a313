//! The baseline of a node: one `axum` handler that returns the same bytes to every request.
//!
//! `cargo xtask bench` compares the cost of a request to a node with the cost here. Runtime, allocator and profile are
//! those of the node. It is an example of this package and not of `cloakroom-cli`, whose dependencies would be built a
//! second time for it.
//!
//! `hello ADDRESS FILE` serves the content of the file.

use std::process::ExitCode;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use mimalloc::MiMalloc;
use tokio::net::TcpListener;
use zeroizing_alloc::ZeroAlloc;

#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().context("hello ADDRESS FILE")?;
    let file = arguments.next().context("hello ADDRESS FILE")?;
    let body = Bytes::from(std::fs::read(file)?);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(serve(&address, body))?;
    Ok(ExitCode::SUCCESS)
}

#[expect(
    clippy::disallowed_methods,
    reason = "its route is not part of the service"
)]
async fn serve(address: &str, body: Bytes) -> Result<()> {
    let response = async move || ([(CONTENT_TYPE, "application/json")], body.clone());
    let router = Router::new().route("/tokens/{id}", get(response));
    axum::serve(TcpListener::bind(address).await?, router).await?;
    Ok(())
}
