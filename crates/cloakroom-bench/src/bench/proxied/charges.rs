//! The proxied requests: charges with a card number that the proxy inserts.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::Servers;
use crate::bench::command::capture;
use crate::bench::load::{self, Load, Outcome};
use crate::bench::stage::Stage;

const SCRIPT: &str = include_str!("proxied.lua");
const PATH: &str = "/proxy/v1/charges";

pub(super) struct Charges<'a> {
    load: &'a Load,
    script: PathBuf,
    url: String,
}

impl<'a> Charges<'a> {
    pub(super) fn new(stage: &'a Stage, servers: &Servers) -> Result<Self> {
        let script = stage.folder.path().join("proxied.lua");
        std::fs::write(&script, SCRIPT)?;
        Ok(Self {
            load: &stage.load,
            script,
            url: servers.url.clone(),
        })
    }

    pub(super) async fn run(
        &self,
        address: &str,
        connections: u32,
        seconds: u32,
    ) -> Result<Outcome> {
        let mut wrk = self.wrk(address, PATH, connections);
        wrk.args(["--threads=1", &format!("--duration={seconds}s")]);
        load::parse(&capture(wrk).await?)
    }

    /// wrk with this script.
    pub(super) fn wrk(&self, address: &str, path: &str, connections: u32) -> Command {
        let mut wrk = Command::new("wrk");
        wrk.arg(format!("--connections={connections}"))
            .arg("--timeout=60s")
            .arg("--script")
            .arg(&self.script)
            .arg(format!("http://{address}"))
            .env("BENCH_KEY", self.load.keys.using())
            .env("BENCH_URL", &self.url)
            .env("BENCH_PATH", path)
            .env("BENCH_IDS", self.load.ids());
        wrk
    }

    /// Verifies that the destination receives a card number in place of the expression.
    pub(super) async fn require_replaced_token(&self, address: &str) -> Result<()> {
        let id = &self.load.first_id;
        let body = format!(r#"{{"number":"{{{{ {id} | json: '$.number' }}}}"}}"#);
        let mut stream = TcpStream::connect(address).await?;
        let head = format!(
            "POST /proxy/echo HTTP/1.1\r\nHost: {address}\r\nBT-API-KEY: {}\r\nBT-PROXY-URL: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.load.keys.using(),
            self.url,
            body.len(),
        );
        stream.write_all((head + &body).as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        let number = response.split(r#""number":""#).nth(1);
        let number = number.and_then(|rest| rest.split('"').next());
        let number = number.with_context(|| format!("no number was echoed:\n{response}"))?;
        let is_whole = number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_digit());
        ensure!(is_whole, "the proxy did not replace the expression");
        Ok(())
    }
}
