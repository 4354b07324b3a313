//! The upstream HTTP proxy, which opens connections by CONNECT.

use std::net::SocketAddr;

use bytes::BytesMut;
use http::Uri;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::{Error, NotSent};

const SETTING: &str = "egress.connect_proxy";
const RESPONSE_BYTES_MAX: usize = 8_192;

pub(crate) struct ConnectProxy {
    /// Host and port. The operator chose the host, so it may have any address.
    authority: String,
    /// The line of the header `Proxy-Authorization`, or nothing.
    authorization: String,
}

impl ConnectProxy {
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let invalid = || Error::new(SETTING, "must be an http URL with host and port".to_owned());
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        let authority = uri.authority().ok_or_else(invalid)?;
        let port = authority.port_u16().ok_or_else(invalid)?;
        let authorization = match authority.as_str().rsplit_once('@') {
            Some((credentials, _)) => {
                let credentials: Vec<u8> = percent_decode_str(credentials).collect();
                let credentials = BASE64_STANDARD.encode(credentials);
                format!("Proxy-Authorization: Basic {credentials}\r\n")
            }
            None => String::new(),
        };
        Ok(Self {
            authority: format!("{}:{port}", authority.host()),
            authorization,
        })
    }

    /// Opens a connection to an address that was checked. The name would be resolved again, by the proxy.
    pub(crate) async fn connect(&self, address: SocketAddr) -> Result<TcpStream, NotSent> {
        let stream = self.open_tunnel(address).await;
        stream.ok_or(NotSent::ConnectProxy)
    }

    async fn open_tunnel(&self, address: SocketAddr) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(&self.authority).await.ok()?;
        let request = format!(
            "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{}\r\n",
            self.authorization
        );
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut response = BytesMut::with_capacity(RESPONSE_BYTES_MAX);
        while !response.ends_with(b"\r\n\r\n") {
            // A server that uses TLS waits for the client, so nothing may follow the head.
            let has_more = response.windows(4).any(|window| window == b"\r\n\r\n");
            if has_more || response.len() >= RESPONSE_BYTES_MAX {
                return None;
            }
            if stream.read_buf(&mut response).await.ok()? == 0 {
                return None;
            }
        }
        let is_open = response.starts_with(b"HTTP/1.1 2") || response.starts_with(b"HTTP/1.0 2");
        is_open.then_some(stream)
    }
}
