//! The least that a server of this kind can do: one handler of `axum` that answers the same bytes to everybody.
//!
//! `cargo xtask bench` compares what a request costs a node with what it costs here. Runtime, allocator and
//! profile are the node's, so that what differs is what the node does. It is an example of this package and not of
//! `cloakroom-cli`, whose dependencies would all be built a second time for it.
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
    reason = "its one route is no part of the service"
)]
async fn serve(address: &str, body: Bytes) -> Result<()> {
    let answer = async move || ([(CONTENT_TYPE, "application/json")], body.clone());
    let router = Router::new().route("/tokens/{id}", get(answer));
    axum::serve(TcpListener::bind(address).await?, router).await?;
    Ok(())
}
