//! HTTP POST to sinks and time-stamp authorities.

use std::sync::Arc;

use cloakroom_platform::outbound;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio_rustls::rustls::ClientConfig;

use super::Error;

const RESPONSE_BYTES_MAX: usize = 64 * 1024;

pub(super) struct Post {
    pub checkpoint: i64,
    pub content_type: &'static str,
    pub body: Bytes,
}

/// Sends requests one after the other on one connection, until one fails, and returns the bodies of the responses.
pub(super) async fn send(
    url: &str,
    tls: Arc<ClientConfig>,
    posts: Vec<Post>,
) -> Result<Vec<Bytes>, Error> {
    let url: Uri = url.parse().map_err(|_| Error::Setting)?;
    let stream = outbound::connect_to(&url, tls).await?;
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let requests = async {
        let mut bodies = Vec::with_capacity(posts.len());
        for post in posts {
            let response = sender.send_request(request(&url, post)?).await;
            let response = response.map_err(failed)?;
            if !response.status().is_success() {
                return Err(Error::Status(response.status().as_u16()));
            }
            // The connection is ready for the next request once the body of this response was read.
            let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX);
            let body = body.collect().await.map_err(|_| Error::Response)?;
            bodies.push(body.to_bytes());
            // The server may close the connection after the last response.
            let _is_reusable = sender.ready().await;
        }
        Ok(bodies)
    };
    tokio::pin!(requests);
    tokio::select! {
        biased;
        done = &mut requests => done,
        ended = driver => match requests.await {
            Ok(bodies) => Ok(bodies),
            Err(error) => Err(ended.err().map_or(error, failed)),
        },
    }
}

fn request(url: &Uri, post: Post) -> Result<Request<Full<Bytes>>, Error> {
    let authority = url.authority().ok_or(Error::Setting)?.as_str();
    Request::post(url.path_and_query().map_or("/", |it| it.as_str()))
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, post.content_type)
        .header("cloakroom-checkpoint", post.checkpoint)
        .body(Full::new(post.body))
        .map_err(|_| Error::Setting)
}

fn failed(error: hyper::Error) -> Error {
    Error::Io(std::io::Error::other(error))
}
