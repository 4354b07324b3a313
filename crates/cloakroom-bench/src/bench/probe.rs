//! Single requests: readiness of the node, and permissions of the keys.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::load::{Load, Operation};

/// Sends one request and returns the body of a successful response.
pub(super) async fn get(address: &str, path: &str, key: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nBT-API-KEY: {key}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (head, body) = response.split_once("\r\n\r\n").context("no response")?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{path}: {response}");
    Ok(body.to_owned())
}

/// Verifies that one key gets a masked card number and the other the full one. Returns the masked card.
pub(super) async fn views_differ(load: &Load) -> Result<String> {
    let card = token(load, Operation::GetMasked).await?;
    let masked = card_number(&card)?;
    let revealed = card_number(&token(load, Operation::GetRevealed).await?)?;
    let is_whole = |number: &str| number.len() == 16 && number.bytes().all(|b| b.is_ascii_digit());
    ensure!(!is_whole(&masked), "the masked number is not masked");
    ensure!(is_whole(&revealed), "the revealed number is not whole");
    Ok(card)
}

async fn token(load: &Load, operation: Operation) -> Result<String> {
    let path = format!("/tokens/{}", load.first_id);
    get(&load.address, &path, load.keys.of(operation)).await
}

fn card_number(token: &str) -> Result<String> {
    let token: Value = serde_json::from_str(token).context("a token that is no JSON")?;
    let number = token.pointer("/data/number").and_then(Value::as_str);
    Ok(number.context("a card without a number")?.to_owned())
}
