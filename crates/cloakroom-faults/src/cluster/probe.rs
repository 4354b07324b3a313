//! Asking a program on a machine over plain HTTP.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const WAIT_MAX: Duration = Duration::from_secs(2);

/// The status and the body of the answer.
pub(crate) async fn get(address: &str, path: &str) -> Result<(u16, String)> {
    tokio::time::timeout(WAIT_MAX, ask(address, path))
        .await
        .context("no answer in time")?
}

async fn ask(address: &str, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("half an answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body.to_owned()))
}
