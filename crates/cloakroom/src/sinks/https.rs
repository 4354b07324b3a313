//! Sends checkpoints with HTTP POST, one request each.

use std::sync::Arc;

use http::{Request, Uri, header};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio_rustls::rustls::ClientConfig;

use cloakroom_core::audit::Shipment;
use http_body_util::Full;

use super::{Error, connection};

const PORT: u16 = 443;

pub(super) async fn post(
    url: &str,
    tls: Arc<ClientConfig>,
    page: &[Shipment],
) -> Result<(), Error> {
    let url: Uri = url.parse().map_err(|_| Error::Setting)?;
    let host = url.host().ok_or(Error::Setting)?;
    let authority = url.authority().ok_or(Error::Setting)?.as_str();
    let stream = connection::connect(host, url.port_u16().unwrap_or(PORT), tls).await?;
    let failed = |error: hyper::Error| Error::Io(std::io::Error::other(error));
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let requests = async {
        for shipment in page {
            let body = Full::new(Bytes::from(shipment.note.clone()));
            let request = Request::post(url.path_and_query().map_or("/", |it| it.as_str()))
                .header(header::HOST, authority)
                .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
                .header("cloakroom-checkpoint", shipment.number)
                .body(body)
                .map_err(|_| Error::Setting)?;
            let response = sender.send_request(request).await.map_err(failed)?;
            if !response.status().is_success() {
                return Err(Error::Status(response.status().as_u16()));
            }
            // The connection is ready for the next request once the body of this response was read.
            let _body = http_body_util::BodyExt::collect(response.into_body())
                .await
                .map_err(failed)?;
            sender.ready().await.map_err(failed)?;
        }
        Ok(())
    };
    tokio::select! {
        done = requests => done,
        ended = driver => Err(failed_connection(ended)),
    }
}

fn failed_connection(ended: Result<(), hyper::Error>) -> Error {
    let error = ended.err().map_or_else(
        || std::io::Error::from(std::io::ErrorKind::ConnectionReset),
        std::io::Error::other,
    );
    Error::Io(error)
}
