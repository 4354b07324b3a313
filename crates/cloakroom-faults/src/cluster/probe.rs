//! Plain HTTP requests to machines.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the status and body of the response.
pub(crate) async fn get(address: &str, path: &str) -> Result<(u16, String)> {
    tokio::time::timeout(TIMEOUT, send(address, path))
        .await
        .context("no response in time")?
}

async fn send(address: &str, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await?;
    let response = String::from_utf8_lossy(&response);
    let (head, body) = response
        .split_once("\r\n\r\n")
        .context("incomplete response")?;
    let status = head
        .split(' ')
        .nth(1)
        .context("the response has no status")?
        .parse()?;
    Ok((status, body.to_owned()))
}
